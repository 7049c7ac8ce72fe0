//! Where we are stricter than the published schemas, and why: one entry for each decision of the digest (section 18)
//! or row of the requirements that a schema does not express.
//!
//! `broken_by` says it again, apart from the code under test. For a document that its schema accepts it must hold
//! both ways: whatever we refuse, an entry explains; whatever breaks an entry, we refuse.

use std::sync::LazyLock;

use serde_json::Value;

use crate::judge::compact_type;
use crate::lawful;
use crate::mutate::VARIANTS;
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

const CRITICAL: &[&str] = &[
    "aaep:agent.session.errored",
    "aaep:agent.awaiting.confirmation",
    "aaep:agent.awaiting.clarification",
    "aaep:agent.handoff.requested",
];

/// Members whose text is for people.
const SPOKEN: &[&str] = &[
    "summary_normal",
    "summary_terse",
    "summary_detailed",
    "request_text",
    "output_summary",
    "remediation_hint",
    "partial_result",
    "description",
    "args_summary",
    "error_message",
    "chunk",
    "action",
    "consequence",
    "question",
    "context",
    "default_response",
    "reason",
];

/// Members that are integers.
const INTEGERS: &[&str] = &[
    "sequence_number",
    "tool_invocations_count",
    "position",
    "step",
    "total_steps",
    "expected_duration_ms",
    "duration_ms",
    "eta_ms",
    "timeout_seconds",
    "retry_after_seconds",
    "max_events_per_second",
    "pace_wpm",
    "supported_conformance_levels",
];

fn members(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document.as_object().into_iter().flatten()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A number that is small enough to be compared; of others AAEP-3.8-5 or C-A19 speaks.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
fn count(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number =
            value.as_f64().filter(|number| value.is_f64() && number.abs() <= 9_007_199_254_740_992.0)?;
        Some(number as i64)
    })
}

/// Messages have no `@context`, and their schemas refuse one.
fn is_event(document: &Value) -> bool {
    document.get("@context").is_some()
}

fn is_core(document: &Value, name: &str) -> bool {
    compact_type(document).strip_prefix("aaep:") == Some(name)
}

/// The full document of the same core type.
fn lawful_like(document: &Value) -> Option<&'static Value> {
    static LAWFUL: LazyLock<Vec<Value>> = LazyLock::new(lawful::published);
    let name = compact_type(document);
    LAWFUL.iter().find(|lawful| is_event(lawful) && lawful["type"] == *name)
}

/// What an event's type is, if it is no core type.
fn type_of(document: &Value) -> Option<Type> {
    let name = document["type"].as_str().filter(|_| is_event(document) && lawful_like(document).is_none())?;
    if compact_type(document).starts_with("aaep:") {
        return Some(Type::Reserved);
    }
    TYPES.iter().find(|(text, _)| *text == name).map(|(_, class)| *class)
}

fn time_of(document: &Value) -> Time {
    let text = document["timestamp"].as_str().unwrap_or_default();
    TIMES.iter().find(|(known, _)| *known == text).map_or(Time::Good, |(_, class)| *class)
}

/// Where the version is unknown, what is unknown may be new rather than wrong (C-A2).
fn knows_version(document: &Value) -> bool {
    document.get("aaep_version").is_none_or(|version| version == "1.0.0" || version == "0.1.0-draft")
}

fn has_stray_member(document: &Value) -> bool {
    let Some(lawful) = lawful_like(document).filter(|_| knows_version(document)) else { return false };
    members(document).any(|(name, _)| {
        lawful.get(name).is_none() && !is_reserved_name(name) && variant_of(name, lawful).is_none()
    })
}

fn has_reserved_member(document: &Value) -> bool {
    is_event(document) && knows_version(document) && members(document).any(|(name, _)| is_reserved_name(name))
}

fn is_reserved_name(name: &str) -> bool {
    matches!(name, "@id" | "@graph" | "@base" | "@vocab")
        || name.starts_with("aaep_") && name != "aaep_version"
}

/// The field whose text `name` is in another language.
fn variant_of<'n>(name: &'n str, lawful: &Value) -> Option<&'n str> {
    VARIANTS
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix)?.strip_suffix('_'))
        .find(|base| SPOKEN.contains(base) && lawful.get(base).is_some())
}

fn has_formless_variant(document: &Value) -> bool {
    let Some(lawful) = lawful_like(document) else { return false };
    members(document).any(|(name, value)| {
        variant_of(name, lawful).is_some_and(|base| {
            let limit = match base {
                "summary_terse" | "remediation_hint" | "description" | "error_message" | "context"
                | "default_response" => 4096,
                _ => 16_384,
            };
            let may_be_empty = matches!(
                base,
                "request_text"
                    | "output_summary"
                    | "partial_result"
                    | "args_summary"
                    | "chunk"
                    | "default_response"
            );
            !is_text_up_to(value, limit) && !(may_be_empty && value == "")
        })
    })
}

fn is_text_up_to(value: &Value, limit: usize) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty() && text.chars().count() <= limit)
}

/// All that a person would hear of an event.
fn spoken(document: &Value) -> Vec<&str> {
    let core = lawful_like(document);
    let heard = |name: &str| match core {
        Some(lawful) => {
            lawful.get(name).is_some() && SPOKEN.contains(&name) || variant_of(name, lawful).is_some()
        }
        None => name.starts_with("summary_"),
    };
    let labels = core.iter().flat_map(|_| items(&document["choices"])).map(|choice| &choice["label"]);
    let step = core.iter().map(|_| &document["progress"]["description"]);
    members(document)
        .filter(|(name, _)| is_event(document) && heard(name))
        .map(|(_, value)| value)
        .chain(labels)
        .chain(step)
        .filter_map(Value::as_str)
        .filter(|text| !text.is_empty())
        .collect()
}

fn speaks(document: &Value) -> bool {
    !spoken(document).is_empty()
}

/// Whether `@context` names a vocabulary beside the core.
fn declares_vocabulary(document: &Value) -> bool {
    items(&document["@context"]).any(|uri| uri != "https://aaep-protocol.org/context/v1")
}

fn prefixes(document: &Value) -> impl Iterator<Item = &String> {
    members(&document["extensions"]).map(|(prefix, _)| prefix).filter(|_| is_event(document))
}

fn is_reserved_prefix(prefix: &str) -> bool {
    matches!(prefix, "aaep" | "xsd" | "rdf" | "rdfs") || prefix.starts_with('@')
}

fn has_reserved_prefix(document: &Value) -> bool {
    type_of(document) == Some(Type::ReservedPrefix)
        || prefixes(document).any(|prefix| is_reserved_prefix(prefix))
}

fn has_undeclared_prefix(document: &Value) -> bool {
    prefixes(document).filter(|prefix| !is_reserved_prefix(prefix)).any(|prefix| match prefix.as_str() {
        "sayso" => !items(&document["@context"]).any(|uri| uri == "urn:sayso:context:v1"),
        "" | "not a prefix" => true,
        prefix => {
            !declares_vocabulary(document) || !prefix.starts_with(|letter: char| letter.is_ascii_alphabetic())
        }
    })
}

fn has_wrong_sayso_body(document: &Value) -> bool {
    let body = &document["extensions"]["sayso"];
    is_event(document)
        && (body.get("reply_token").is_some_and(|token| token != "rpl_4f8a")
            || body.get("decision").is_some_and(|decision| decision != "accept")
            || body.get("by").is_some_and(|by| by != "reply")
            || body.get("parent_session_id").is_some())
}

fn has_loose_tag(document: &Value) -> bool {
    let hints = &document["localization_hints"];
    let single = [&hints["primary_language"], &document["language"]];
    let lists = [
        &hints["available_languages"],
        &hints["fallback_chain"],
        &document["capabilities"]["languages"],
        &document["honored_capabilities"]["languages"],
    ];
    // A `language` outside of agent.output.streaming is a stray member, whatever it says (C-H5).
    let single = single.into_iter().filter(|tag| {
        **tag != document["language"]
            || is_core(document, "agent.output.streaming")
            || **tag == hints["primary_language"]
    });
    single
        .chain(lists.into_iter().flat_map(items))
        .filter_map(Value::as_str)
        .any(|tag| LOOSE_TAGS.contains(&tag))
}

/// Whether an integer of the document is written with a fraction or an exponent. Only members of the document's own
/// type count: elsewhere a number is a number.
fn has_float_for_integer(document: &Value) -> bool {
    let lawful = lawful_like(document);
    let own = |name: &str| lawful.is_none_or(|lawful| lawful.get(name).is_some());
    let top = members(document).filter(|(name, _)| {
        own(name) && (lawful.is_some() || !is_event(document) || *name == "sequence_number")
    });
    let inner = ["progress", "capabilities", "honored_capabilities"]
        .into_iter()
        .filter(|name| own(name) && (lawful.is_some() || !is_event(document)))
        .flat_map(|name| members(&document[name]));
    top.chain(inner)
        .filter(|(name, _)| INTEGERS.contains(&name.as_str()))
        .flat_map(|(_, value)| std::iter::once(value).chain(items(value)))
        .any(Value::is_f64)
}

fn has_large_integer(value: &Value) -> bool {
    const LIMIT: u64 = 1 << 53;
    match value {
        Value::Number(number) => {
            number.as_u64().is_some_and(|number| number > LIMIT)
                || number.as_i64().is_some_and(|number| number.unsigned_abs() > LIMIT)
        }
        Value::Array(items) => items.iter().any(has_large_integer),
        Value::Object(members) => members.values().any(has_large_integer),
        _ => false,
    }
}

/// A chunk that is not the last, has no hint, and breaks off inside a sentence.
fn lacks_hint(document: &Value) -> bool {
    is_core(document, "agent.output.streaming")
        && document["complete"] == false
        && document.get("coalesce_hint").is_none()
        && document["chunk"].as_str().is_some_and(|chunk| {
            FRAGMENTS.contains(&chunk) || SECRETS.contains(&chunk) && !chunk.ends_with(['.', '!', '?'])
        })
}
