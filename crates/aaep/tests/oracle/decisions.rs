//! Where we are stricter than the published schemas, and why: one entry for each decision of the digest (section 18)
//! or row of the requirements that a schema does not express.
//!
//! `broken_by` says it again, apart from the code under test. For a document that its schema accepts it must hold
//! both ways: whatever we refuse, an entry explains; whatever breaks an entry, we refuse.

use serde_json::Value;

use crate::broken::*;
use crate::judge::compact_type;
use crate::pools::*;
use crate::values::VERSIONED_AGENTS;

pub(crate) struct Decision {
    pub(crate) name: &'static str,
    /// What the rule book may say of it.
    pub(crate) rules: &'static [&'static str],
    /// Whether a document that its published schema accepts breaks it.
    pub(crate) broken_by: fn(&Value) -> bool,
}

pub(crate) const DECISIONS: &[Decision] = &[
    Decision { name: "C-A1 closed top level", rules: &["AAEP-3.5-4"], broken_by: has_stray_member },
    Decision {
        name: "C-A1 reserved names",
        rules: &["AAEP-3.5-1", "AAEP-3.5-3"],
        broken_by: has_reserved_member,
    },
    Decision {
        name: "C-A1 a text in another language has the form of its field",
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
        broken_by: has_formless_variant,
    },
    Decision {
        name: "C-A1 choices in another language have the form and values of choices",
        rules: &["AAEP-4.4.2s-1"],
        broken_by: has_wrong_choices_variant,
    },
    Decision {
        name: "C-A6 timestamp digits",
        rules: &["AAEP-3.2.5-2"],
        broken_by: |it| is_event(it) && time_of(it) == Time::Digits,
    },
    Decision {
        name: "C-A6 timestamp letters",
        rules: &["AAEP-3.2.5-1"],
        broken_by: |it| is_event(it) && time_of(it) == Time::Letters,
    },
    Decision {
        name: "C-A6 leap seconds are true ones",
        rules: &["AAEP-3.2.5-4", "AAEP-6.3.1-2"],
        broken_by: |it| time_of(it) == Time::NoLeapSecond,
    },
    Decision {
        name: "AAEP-3.2.5-4 stand-in for a time",
        rules: &["AAEP-3.2.5-4"],
        broken_by: |it| is_event(it) && time_of(it) == Time::StandIn,
    },
    Decision {
        name: "C-A8 explicit critical",
        rules: &["AAEP-4.1.3-4", "AAEP-4.4.1-7", "AAEP-4.4.2-3", "AAEP-4.4.3-3"],
        broken_by: |it| CRITICAL.contains(&compact_type(it).as_str()) && it.get("urgency").is_none(),
    },
    Decision {
        name: "C-A9 localization_hints",
        rules: &["AAEP-11.1-1"],
        broken_by: |it| speaks(it) && it.get("localization_hints").is_none(),
    },
    Decision {
        name: "C-A9 primary_language",
        rules: &["AAEP-11.1.1-1"],
        broken_by: |it| {
            speaks(it)
                && it.get("localization_hints").is_some_and(|hints| hints.get("primary_language").is_none())
        },
    },
    Decision { name: "C-A12 undeclared prefix", rules: &["AAEP-3.4.3-1"], broken_by: has_undeclared_prefix },
    Decision {
        name: "C-A15 language tags",
        rules: &["AAEP-11.1.2-1", "AAEP-4.3.3s-3", "AAEP-5.3s-1"],
        broken_by: has_loose_tag,
    },
    Decision {
        name: "C-A16 non-empty producer strings",
        rules: &["AAEP-3.2.6.2-1"],
        broken_by: |it| {
            ["agent_version", "agent_name", "model"].iter().any(|name| it["producer"][name] == "")
        },
    },
    Decision {
        name: "C-A19 integral floats",
        rules: &[
            "C-A19",
            // Where they are so large that they are no 64-bit integer either:
            "AAEP-3.4.1-1",
            "AAEP-4.1.2s-1",
            "AAEP-4.2.2s-1",
            "AAEP-4.3.3s-1",
        ],
        broken_by: has_float_for_integer,
    },
    Decision {
        name: "AAEP-3.8-5 integers beyond 2^53",
        rules: &["AAEP-3.8-5"],
        broken_by: has_large_integer,
    },
    Decision {
        name: "AAEP-3.4.4-1 published version",
        rules: &["AAEP-3.4.4-1"],
        broken_by: |it| is_event(it) && !knows_version(it),
    },
    Decision {
        name: "AAEP-3.2.6.1-2 version inside agent_id",
        rules: &["AAEP-3.2.6.1-2"],
        broken_by: |it| {
            is_event(it)
                && it["producer"]["agent_id"].as_str().is_some_and(|id| VERSIONED_AGENTS.contains(&id))
        },
    },
    Decision {
        name: "AAEP-3.4.1-1 a session's first number is 0",
        rules: &["AAEP-3.4.1-1"],
        broken_by: |it| {
            compact_type(it) == "aaep:agent.session.started"
                && count(&it["sequence_number"]).is_some_and(|number| number > 0)
        },
    },
    Decision {
        name: "AAEP-3.2.2-5 the twelve names under aaep:",
        rules: &["AAEP-3.2.2-5"],
        broken_by: |it| type_of(it) == Some(Type::Reserved) && knows_version(it),
    },
    Decision {
        name: "AAEP-3.2.2-2 form of a type",
        rules: &["AAEP-3.2.2-2"],
        broken_by: |it| match type_of(it) {
            Some(Type::Formless) => true,
            Some(Type::Prefixed) => !declares_vocabulary(it),
            _ => false,
        },
    },
    Decision {
        name: "AAEP-3.9-5 undeclared type",
        rules: &["AAEP-3.9-5"],
        broken_by: |it| type_of(it) == Some(Type::Uri) && !declares_vocabulary(it),
    },
    Decision { name: "C-G4 reserved prefixes", rules: &["AAEP-7.3.2-1"], broken_by: has_reserved_prefix },
    Decision {
        name: "C-J3 body of an extension that we know",
        rules: &["AAEP-3.9-8"],
        broken_by: has_wrong_sayso_body,
    },
    Decision {
        name: "AAEP-4.1.1s-1 summaries of other types",
        rules: &["AAEP-4.1.1s-1"],
        broken_by: |it| {
            type_of(it).is_some()
                && members(it)
                    .any(|(name, value)| name.starts_with("summary_") && !is_text_up_to(value, 16_384))
        },
    },
    Decision {
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
    Decision {
        name: "C-J7 coalesce_hint inside a sentence",
        rules: &["AAEP-9.3.1-5"],
        broken_by: lacks_hint,
    },
    Decision {
        name: "C-B5 unsafe default",
        rules: &["AAEP-6.4.1-1", "AAEP-6.4.1-2"],
        broken_by: |it| {
            is_core(it, "agent.awaiting.confirmation")
                && it["default_decision"] == "accept"
                && (it["irreversible"] == true || it["reversibility"] == "irreversible")
                && it["risk_level"] != "low"
        },
    },
    Decision {
        name: "C-B5 irreversible against reversibility",
        rules: &["C-B5"],
        broken_by: |it| {
            is_core(it, "agent.awaiting.confirmation")
                && (it["irreversible"] == true && it["reversibility"] == "reversible"
                    || it["irreversible"] == false && it["reversibility"] == "irreversible")
        },
    },
    Decision {
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
    Decision {
        name: "C-D6 multiple_choice without choices",
        rules: &["AAEP-4.4.2s-1"],
        broken_by: |it| {
            is_core(it, "agent.awaiting.clarification")
                && items(&it["accepted_response_kinds"]).any(|kind| kind == "multiple_choice")
                && it.get("choices").is_none()
        },
    },
    Decision {
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
    Decision {
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
    Decision {
        name: "AAEP-10.2.2-6 secrets",
        rules: &["AAEP-10.2.2-6", "AAEP-4.3.1-5", "AAEP-4.1.1s-4"],
        broken_by: |it| spoken(it).iter().any(|text| SECRETS.contains(text)),
    },
    Decision {
        name: "AAEP-11.4.2-1 text of both directions",
        rules: &["AAEP-11.4.2-1"],
        broken_by: |it| {
            spoken(it).iter().any(|text| BOTH_WAYS.contains(text))
                && it.get("localization_hints").is_some_and(|hints| hints["text_direction"] != "auto")
        },
    },
];
