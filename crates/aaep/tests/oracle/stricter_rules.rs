//! Where sayso is stricter than the published schemas, and why: one entry for each `C-…` decision
//! (docs/decisions.md) or requirement that a schema does not express.
//!
//! `broken_by` implements each decision independently of the code under test. For documents that the
//! published schema accepts, both directions must hold: an entry explains each of our rejections, and we
//! reject every document that breaks an entry.

use serde_json::Value;

use crate::random_values::VERSIONED_AGENTS;
use crate::rule_predicates::*;
use crate::validators::compact_type;
use crate::value_pools::*;

pub(crate) struct StricterRule {
    pub(crate) name: &'static str,
    /// The rules that the validator may report for it.
    pub(crate) rules: &'static [&'static str],
    /// Returns whether a document that the published schema accepts breaks the decision.
    pub(crate) broken_by: fn(&Value) -> bool,
}

pub(crate) const STRICTER_RULES: &[StricterRule] = &[
    StricterRule { name: "C-A1 closed top level", rules: &["AAEP-3.5-4"], broken_by: has_unknown_member },
    StricterRule {
        name: "C-A1 reserved names",
        rules: &["AAEP-3.5-1", "AAEP-3.5-3"],
        broken_by: has_reserved_member,
    },
    StricterRule {
        name: "C-A1 a translated text has the form of its field",
        rules: &[
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
        broken_by: has_malformed_variant,
    },
    StricterRule {
        name: "C-A1 translated choices have the form and values of choices",
        rules: &["AAEP-4.4.2s-1"],
        broken_by: has_wrong_choices_variant,
    },
    StricterRule {
        name: "C-A6 timestamp digits",
        rules: &["AAEP-3.2.5-2"],
        broken_by: |it| is_event(it) && time_of(it) == TimeClass::FractionDigits,
    },
    StricterRule {
        name: "C-A6 timestamp letters",
        rules: &["AAEP-3.2.5-1"],
        broken_by: |it| is_event(it) && time_of(it) == TimeClass::LowercaseLetters,
    },
    StricterRule {
        name: "C-A6 only real leap seconds",
        rules: &["AAEP-3.2.5-4", "AAEP-6.3.1-2"],
        broken_by: |it| time_of(it) == TimeClass::NoLeapSecond,
    },
    StricterRule {
        name: "AAEP-3.2.5-4 placeholder timestamp",
        rules: &["AAEP-3.2.5-4"],
        broken_by: |it| is_event(it) && time_of(it) == TimeClass::Placeholder,
    },
    StricterRule {
        name: "C-A8 explicit critical",
        rules: &["AAEP-4.1.3-4", "AAEP-4.4.1-7", "AAEP-4.4.2-3", "AAEP-4.4.3-3"],
        broken_by: |it| CRITICAL.contains(&compact_type(it).as_str()) && it.get("urgency").is_none(),
    },
    StricterRule {
        name: "C-A9 localization_hints",
        rules: &["AAEP-11.1-1"],
        broken_by: |it| has_spoken_text(it) && it.get("localization_hints").is_none(),
    },
    StricterRule {
        name: "C-A9 primary_language",
        rules: &["AAEP-11.1.1-1"],
        broken_by: |it| {
            has_spoken_text(it)
                && it.get("localization_hints").is_some_and(|hints| hints.get("primary_language").is_none())
        },
    },
    StricterRule {
        name: "C-A12 undeclared prefix",
        rules: &["AAEP-3.4.3-1"],
        broken_by: has_undeclared_prefix,
    },
    StricterRule {
        name: "C-A15 language tags",
        rules: &["AAEP-11.1.2-1", "AAEP-4.3.3s-3", "AAEP-5.3s-1"],
        broken_by: has_loose_tag,
    },
    StricterRule {
        name: "C-A16 non-empty producer strings",
        rules: &["AAEP-3.2.6.2-1"],
        broken_by: |it| {
            ["agent_version", "agent_name", "model"].iter().any(|name| it["producer"][name] == "")
        },
    },
    StricterRule {
        name: "C-A19 integral floats",
        rules: &[
            "C-A19",
            // Values that are too large for a 64-bit integer:
            "AAEP-3.4.1-1",
            "AAEP-4.1.2s-1",
            "AAEP-4.2.2s-1",
            "AAEP-4.3.3s-1",
        ],
        broken_by: has_float_for_integer,
    },
    StricterRule {
        name: "AAEP-3.8-5 integers beyond 2^53",
        rules: &["AAEP-3.8-5"],
        broken_by: has_large_integer,
    },
    StricterRule {
        name: "AAEP-3.4.4-1 published version",
        rules: &["AAEP-3.4.4-1"],
        broken_by: |it| is_event(it) && !knows_version(it),
    },
    StricterRule {
        name: "AAEP-3.2.6.1-2 version inside agent_id",
        rules: &["AAEP-3.2.6.1-2"],
        broken_by: |it| {
            is_event(it)
                && it["producer"]["agent_id"].as_str().is_some_and(|id| VERSIONED_AGENTS.contains(&id))
        },
    },
    StricterRule {
        name: "AAEP-3.4.1-1 a session's first number is 0",
        rules: &["AAEP-3.4.1-1"],
        broken_by: |it| {
            compact_type(it) == "aaep:agent.session.started"
                && count(&it["sequence_number"]).is_some_and(|number| number > 0)
        },
    },
    StricterRule {
        name: "AAEP-3.2.2-5 the twelve names under aaep:",
        rules: &["AAEP-3.2.2-5"],
        broken_by: |it| type_of(it) == Some(TypeClass::Reserved) && knows_version(it),
    },
    StricterRule {
        name: "AAEP-3.2.2-2 form of a type",
        rules: &["AAEP-3.2.2-2"],
        broken_by: |it| match type_of(it) {
            Some(TypeClass::Malformed) => true,
            Some(TypeClass::Prefixed) => !declares_vocabulary(it),
            _ => false,
        },
    },
    StricterRule {
        name: "AAEP-3.9-5 undeclared type",
        rules: &["AAEP-3.9-5"],
        broken_by: |it| type_of(it) == Some(TypeClass::Uri) && !declares_vocabulary(it),
    },
    StricterRule { name: "C-G4 reserved prefixes", rules: &["AAEP-7.3.2-1"], broken_by: has_reserved_prefix },
    StricterRule {
        name: "C-J3 body of a known extension",
        rules: &["AAEP-3.9-8"],
        broken_by: has_wrong_sayso_body,
    },
    StricterRule {
        name: "AAEP-4.1.1s-1 summaries of other types",
        rules: &["AAEP-4.1.1s-1"],
        broken_by: |it| {
            type_of(it).is_some()
                && members(it)
                    .any(|(name, value)| name.starts_with("summary_") && !is_text_up_to(value, 16_384))
        },
    },
    StricterRule {
        name: "AAEP-4.2.2s-2 step is at most total_steps",
        rules: &["AAEP-4.2.2s-2"],
        broken_by: |it| {
            is_core(it, "agent.progress.updated")
                && matches!(
                    (count(&it["progress"]["step"]), count(&it["progress"]["total_steps"])),
                    (Some(step), Some(total)) if step > total
                )
        },
    },
    StricterRule {
        name: "C-J7 coalesce_hint inside a sentence",
        rules: &["AAEP-9.3.1-5"],
        broken_by: lacks_hint,
    },
    StricterRule {
        name: "C-B5 unsafe default",
        rules: &["AAEP-6.4.1-1", "AAEP-6.4.1-2"],
        broken_by: |it| {
            is_core(it, "agent.awaiting.confirmation")
                && it["default_decision"] == "accept"
                && (it["irreversible"] == true || it["reversibility"] == "irreversible")
                && it["risk_level"] != "low"
        },
    },
    StricterRule {
        name: "C-B5 irreversible against reversibility",
        rules: &["C-B5"],
        broken_by: |it| {
            is_core(it, "agent.awaiting.confirmation")
                && (it["irreversible"] == true && it["reversibility"] == "reversible"
                    || it["irreversible"] == false && it["reversibility"] == "irreversible")
        },
    },
    StricterRule {
        name: "C-D5 allowed_replies",
        rules: &["C-D5"],
        broken_by: |it| {
            is_core(it, "agent.awaiting.confirmation")
                && it["allowed_replies"].as_array().is_some_and(|list| {
                    !list.contains(&it["default_decision"])
                        || list.iter().any(|reply| reply != "accept" && reply != "reject")
                })
        },
    },
    StricterRule {
        name: "C-D6 multiple_choice without choices",
        rules: &["AAEP-4.4.2s-1"],
        broken_by: |it| {
            is_core(it, "agent.awaiting.clarification")
                && items(&it["accepted_response_kinds"]).any(|kind| kind == "multiple_choice")
                && it.get("choices").is_none()
        },
    },
    StricterRule {
        name: "C-C23 reply support from level 2 on",
        rules: &["AAEP-5.3.1.4-3"],
        broken_by: |it| {
            let offer = &it["capabilities"];
            it["type"] == "subscription.request"
                && items(&offer["supported_conformance_levels"]).any(|level| level.as_f64() >= Some(2.0))
                && (offer["supports_confirmation_reply"] != true
                    || offer["supports_clarification_reply"] != true)
        },
    },
    StricterRule {
        name: "C-C4 filter patterns",
        rules: &["AAEP-5.3.1.7-2"],
        broken_by: |it| {
            ["capabilities", "honored_capabilities"]
                .iter()
                .flat_map(|name| ["include", "exclude"].map(|list| &it[name]["event_filters"][list]))
                .flat_map(items)
                .filter_map(Value::as_str)
                .any(|pattern| pattern.chars().rev().skip(1).any(|letter| letter == '*'))
        },
    },
    StricterRule {
        name: "AAEP-10.2.2-6 secrets",
        rules: &["AAEP-10.2.2-6", "AAEP-4.3.1-5", "AAEP-4.1.1s-4"],
        broken_by: |it| spoken(it).iter().any(|text| SECRETS.contains(text)),
    },
    StricterRule {
        name: "AAEP-11.4.2-1 text of both directions",
        rules: &["AAEP-11.4.2-1"],
        broken_by: |it| {
            spoken(it).iter().any(|text| MIXED_DIRECTION_TEXTS.contains(text))
                && it.get("localization_hints").is_some_and(|hints| hints["text_direction"] != "auto")
        },
    },
];
