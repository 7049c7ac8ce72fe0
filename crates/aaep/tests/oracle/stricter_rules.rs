//! The rules by which sayso is stricter than the published schemas. Each entry is a `C-…` decision
//! (docs/decisions.md) or a requirement that a schema does not express.
//!
//! `is_broken_by` implements each rule independently of the code under test. For documents that the published
//! schema accepts, both directions must hold: a stricter rule explains each of our rejections, and we reject
//! every document that breaks a stricter rule.

use serde_json::Value;

use crate::random_values::VERSIONED_AGENTS;
use crate::rule_predicates::*;
use crate::validators::compact_type;
use crate::value_pools::*;

pub(crate) struct StricterRule {
    pub(crate) name: &'static str,
    /// The validator must report at least one of these rules.
    pub(crate) rule_ids: &'static [&'static str],
    /// Returns whether a document that the published schema accepts breaks the rule.
    pub(crate) is_broken_by: fn(&Value) -> bool,
}

pub(crate) const STRICTER_RULES: &[StricterRule] = &[
    StricterRule {
        name: "C-A1 no unknown top-level members",
        rule_ids: &["AAEP-3.5-4"],
        is_broken_by: has_unknown_member,
    },
    StricterRule {
        name: "C-A1 reserved names",
        rule_ids: &["AAEP-3.5-1", "AAEP-3.5-3"],
        is_broken_by: has_reserved_member,
    },
    StricterRule {
        name: "C-A1 a translation obeys the constraints of the field it translates",
        rule_ids: &[
            "AAEP-4.1.1s-1",
            "AAEP-4.1.1s-2",
            "AAEP-4.1.2s-1",
            "AAEP-4.1.3s-1",
            "AAEP-4.1.4s-1",
            "AAEP-4.3.1s-1",
            "AAEP-4.3.2s-1",
            "AAEP-4.3.3s-1",
            "AAEP-4.4.1s-2",
            "AAEP-4.4.2s-2",
            "AAEP-4.4.3s-1",
        ],
        is_broken_by: has_malformed_variant,
    },
    StricterRule {
        name: "C-A1 translated choices have the form and values of choices",
        rule_ids: &["AAEP-4.4.2s-1"],
        is_broken_by: has_wrong_choices_variant,
    },
    StricterRule {
        name: "C-A6 fraction digits of a timestamp",
        rule_ids: &["AAEP-3.2.5-2"],
        is_broken_by: |document| is_event(document) && time_class(document) == TimeClass::FractionDigits,
    },
    StricterRule {
        name: "C-A6 lowercase letters in a timestamp",
        rule_ids: &["AAEP-3.2.5-1"],
        is_broken_by: |document| is_event(document) && time_class(document) == TimeClass::LowercaseLetters,
    },
    StricterRule {
        name: "C-A6 only real leap seconds",
        rule_ids: &["AAEP-3.2.5-4", "AAEP-6.3.1-2"],
        is_broken_by: |document| time_class(document) == TimeClass::FalseLeapSecond,
    },
    StricterRule {
        name: "AAEP-3.2.5-4 placeholder timestamp",
        rule_ids: &["AAEP-3.2.5-4"],
        is_broken_by: |document| is_event(document) && time_class(document) == TimeClass::Placeholder,
    },
    StricterRule {
        name: "C-A8 explicit critical urgency",
        rule_ids: &["AAEP-4.1.3-4", "AAEP-4.4.1-7", "AAEP-4.4.2-3", "AAEP-4.4.3-3"],
        is_broken_by: |document| {
            CRITICAL_TYPES.contains(&compact_type(document).as_str()) && document.get("urgency").is_none()
        },
    },
    StricterRule {
        name: "C-A9 localization_hints",
        rule_ids: &["AAEP-11.1-1"],
        is_broken_by: |document| has_spoken_text(document) && document.get("localization_hints").is_none(),
    },
    StricterRule {
        name: "C-A9 primary_language",
        rule_ids: &["AAEP-11.1.1-1"],
        is_broken_by: |document| {
            has_spoken_text(document)
                && document
                    .get("localization_hints")
                    .is_some_and(|hints| hints.get("primary_language").is_none())
        },
    },
    StricterRule {
        name: "C-A12 undeclared prefix",
        rule_ids: &["AAEP-3.4.3-1"],
        is_broken_by: has_undeclared_prefix,
    },
    StricterRule {
        name: "C-A15 language tags",
        rule_ids: &["AAEP-11.1.2-1", "AAEP-4.3.3s-3", "AAEP-5.3s-1"],
        is_broken_by: has_schema_only_tag,
    },
    StricterRule {
        name: "C-A16 non-empty producer strings",
        rule_ids: &["AAEP-3.2.6.2-1"],
        is_broken_by: |document| {
            ["agent_version", "agent_name", "model"].iter().any(|name| document["producer"][name] == "")
        },
    },
    StricterRule {
        name: "C-A19 integral floats",
        rule_ids: &[
            "C-A19",
            // Values that are too large for a 64-bit integer:
            "AAEP-3.4.1-1",
            "AAEP-4.1.2s-1",
            "AAEP-4.2.2s-1",
            "AAEP-4.3.3s-1",
        ],
        is_broken_by: has_float_for_integer,
    },
    StricterRule {
        name: "AAEP-3.8-5 integers beyond 2^53",
        rule_ids: &["AAEP-3.8-5"],
        is_broken_by: has_large_integer,
    },
    StricterRule {
        name: "AAEP-3.4.4-1 published version",
        rule_ids: &["AAEP-3.4.4-1"],
        is_broken_by: |document| is_event(document) && !has_known_version(document),
    },
    StricterRule {
        name: "AAEP-3.2.6.1-2 version inside agent_id",
        rule_ids: &["AAEP-3.2.6.1-2"],
        is_broken_by: |document| {
            is_event(document)
                && document["producer"]["agent_id"].as_str().is_some_and(|id| VERSIONED_AGENTS.contains(&id))
        },
    },
    StricterRule {
        name: "AAEP-3.4.1-1 a session's first number is 0",
        rule_ids: &["AAEP-3.4.1-1"],
        is_broken_by: |document| {
            compact_type(document) == "aaep:agent.session.started"
                && comparable_integer(&document["sequence_number"]).is_some_and(|number| number > 0)
        },
    },
    StricterRule {
        name: "AAEP-3.2.2-5 only the twelve core types start with aaep:",
        rule_ids: &["AAEP-3.2.2-5"],
        is_broken_by: |document| {
            type_class(document) == Some(TypeClass::Reserved) && has_known_version(document)
        },
    },
    StricterRule {
        name: "AAEP-3.2.2-2 form of a type",
        rule_ids: &["AAEP-3.2.2-2"],
        is_broken_by: |document| match type_class(document) {
            Some(TypeClass::Malformed) => true,
            Some(TypeClass::Prefixed) => !declares_vocabulary(document),
            _ => false,
        },
    },
    StricterRule {
        name: "AAEP-3.9-5 undeclared type",
        rule_ids: &["AAEP-3.9-5"],
        is_broken_by: |document| {
            type_class(document) == Some(TypeClass::Uri) && !declares_vocabulary(document)
        },
    },
    StricterRule {
        name: "C-G4 reserved prefixes",
        rule_ids: &["AAEP-7.3.2-1"],
        is_broken_by: has_reserved_prefix,
    },
    StricterRule {
        name: "C-J3 body of a known extension",
        rule_ids: &["AAEP-3.9-8"],
        is_broken_by: has_wrong_sayso_body,
    },
    StricterRule {
        name: "AAEP-4.1.1s-1 summaries of other types",
        rule_ids: &["AAEP-4.1.1s-1"],
        is_broken_by: |document| {
            type_class(document).is_some()
                && members(document)
                    .any(|(name, value)| name.starts_with("summary_") && !is_text_up_to(value, 16_384))
        },
    },
    StricterRule {
        name: "AAEP-4.2.2s-2 step is at most total_steps",
        rule_ids: &["AAEP-4.2.2s-2"],
        is_broken_by: |document| {
            has_core_type(document, "agent.progress.updated")
                && matches!(
                    (comparable_integer(&document["progress"]["step"]), comparable_integer(&document["progress"]["total_steps"])),
                    (Some(step), Some(total)) if step > total
                )
        },
    },
    StricterRule {
        name: "C-J7 coalesce_hint inside a sentence",
        rule_ids: &["AAEP-9.3.1-5"],
        is_broken_by: lacks_hint,
    },
    StricterRule {
        name: "C-B5 unsafe default",
        rule_ids: &["AAEP-6.4.1-1", "AAEP-6.4.1-2"],
        is_broken_by: |document| {
            has_core_type(document, "agent.awaiting.confirmation")
                && document["default_decision"] == "accept"
                && (document["irreversible"] == true || document["reversibility"] == "irreversible")
                && document["risk_level"] != "low"
        },
    },
    StricterRule {
        name: "C-B5 irreversible contradicts reversibility",
        rule_ids: &["C-B5"],
        is_broken_by: |document| {
            has_core_type(document, "agent.awaiting.confirmation")
                && (document["irreversible"] == true && document["reversibility"] == "reversible"
                    || document["irreversible"] == false && document["reversibility"] == "irreversible")
        },
    },
    StricterRule {
        name: "C-D5 allowed_replies",
        rule_ids: &["C-D5"],
        is_broken_by: |document| {
            has_core_type(document, "agent.awaiting.confirmation")
                && document["allowed_replies"].as_array().is_some_and(|list| {
                    !list.contains(&document["default_decision"])
                        || list.iter().any(|reply| reply != "accept" && reply != "reject")
                })
        },
    },
    StricterRule {
        name: "C-D6 multiple_choice without choices",
        rule_ids: &["AAEP-4.4.2s-1"],
        is_broken_by: |document| {
            has_core_type(document, "agent.awaiting.clarification")
                && items(&document["accepted_response_kinds"]).any(|kind| kind == "multiple_choice")
                && document.get("choices").is_none()
        },
    },
    StricterRule {
        name: "C-C23 reply support from level 2 on",
        rule_ids: &["AAEP-5.3.1.4-3"],
        is_broken_by: |document| {
            let capabilities = &document["capabilities"];
            document["type"] == "subscription.request"
                && items(&capabilities["supported_conformance_levels"])
                    .any(|level| level.as_f64() >= Some(2.0))
                && (capabilities["supports_confirmation_reply"] != true
                    || capabilities["supports_clarification_reply"] != true)
        },
    },
    StricterRule {
        name: "C-C4 filter patterns",
        rule_ids: &["AAEP-5.3.1.7-2"],
        is_broken_by: |document| {
            ["capabilities", "honored_capabilities"]
                .iter()
                .flat_map(|name| ["include", "exclude"].map(|list| &document[name]["event_filters"][list]))
                .flat_map(items)
                .filter_map(Value::as_str)
                .any(|pattern| pattern.chars().rev().skip(1).any(|character| character == '*'))
        },
    },
    StricterRule {
        name: "AAEP-10.2.2-6 secrets",
        rule_ids: &["AAEP-10.2.2-6", "AAEP-4.3.1-5", "AAEP-4.1.1s-4"],
        is_broken_by: |document| spoken_texts(document).iter().any(|text| SECRETS.contains(text)),
    },
    StricterRule {
        name: "AAEP-11.4.2-1 text in both directions",
        rule_ids: &["AAEP-11.4.2-1"],
        is_broken_by: |document| {
            spoken_texts(document).iter().any(|text| MIXED_DIRECTION_TEXTS.contains(text))
                && document.get("localization_hints").is_some_and(|hints| hints["text_direction"] != "auto")
        },
    },
];
