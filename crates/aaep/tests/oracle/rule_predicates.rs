//! Predicates for the stricter rules: each returns whether a document breaks a rule. The document must be one
//! that the published schema accepts. The predicates are implemented independently of the code under test.

use std::sync::LazyLock;

use serde_json::Value;

use crate::random_documents::LANGUAGE_SUFFIXES;
use crate::valid_documents;
use crate::validators::compact_type;
use crate::value_pools::*;

pub(crate) const CRITICAL_TYPES: &[&str] = &[
    "aaep:agent.session.errored",
    "aaep:agent.awaiting.confirmation",
    "aaep:agent.awaiting.clarification",
    "aaep:agent.handoff.requested",
];

/// Members whose text is for people.
const SPOKEN_MEMBERS: &[&str] = &[
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

pub(crate) fn members(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document.as_object().into_iter().flatten()
}

pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns the number if it is small enough to compare. AAEP-3.8-5 and C-A19 cover larger numbers.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn comparable_integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number =
            value.as_f64().filter(|number| value.is_f64() && number.abs() <= 9_007_199_254_740_992.0)?;
        Some(number as i64)
    })
}

/// Returns whether the document is an event. Messages have no `@context`, and their schemas reject one.
pub(crate) fn is_event(document: &Value) -> bool {
    document.get("@context").is_some()
}

pub(crate) fn has_core_type(document: &Value, name: &str) -> bool {
    compact_type(document).strip_prefix("aaep:") == Some(name)
}

/// Returns the sample document of the same core type.
fn sample_of_same_type(document: &Value) -> Option<&'static Value> {
    static SAMPLES: LazyLock<Vec<Value>> = LazyLock::new(valid_documents::published);
    let name = compact_type(document);
    SAMPLES.iter().find(|sample| is_event(sample) && sample["type"] == *name)
}

/// Returns the class of an event's type, if it is not a core type.
pub(crate) fn type_class(document: &Value) -> Option<TypeClass> {
    let name = document["type"]
        .as_str()
        .filter(|_| is_event(document) && sample_of_same_type(document).is_none())?;
    if compact_type(document).starts_with("aaep:") {
        return Some(TypeClass::Reserved);
    }
    TYPES.iter().find(|(text, _)| *text == name).map(|(_, class)| *class)
}

pub(crate) fn time_class(document: &Value) -> TimeClass {
    let text = document["timestamp"].as_str().unwrap_or_default();
    TIMES.iter().find(|(known, _)| *known == text).map_or(TimeClass::Valid, |(_, class)| *class)
}

/// Returns whether the version is known. In an unknown version, an unknown name may be new instead of wrong
/// (C-A2).
pub(crate) fn has_known_version(document: &Value) -> bool {
    document.get("aaep_version").is_none_or(|version| version == "1.0.0" || version == "0.1.0-draft")
}

pub(crate) fn has_unknown_member(document: &Value) -> bool {
    let Some(sample) = sample_of_same_type(document).filter(|_| has_known_version(document)) else {
        return false;
    };
    members(document).any(|(name, _)| {
        sample.get(name).is_none()
            && !is_reserved_name(name)
            && translated_field(name, sample).is_none()
            && !is_choices_variant(name, sample)
    })
}

pub(crate) fn has_reserved_member(document: &Value) -> bool {
    is_event(document)
        && has_known_version(document)
        && members(document).any(|(name, _)| is_reserved_name(name))
}

fn is_reserved_name(name: &str) -> bool {
    matches!(name, "@id" | "@graph" | "@base" | "@vocab")
        || name.starts_with("aaep_") && name != "aaep_version"
}

/// Returns the field that `name` is a translation of.
fn translated_field<'n>(name: &'n str, sample: &Value) -> Option<&'n str> {
    base_field(name, sample).filter(|base| SPOKEN_MEMBERS.contains(base))
}

fn base_field<'n>(name: &'n str, sample: &Value) -> Option<&'n str> {
    LANGUAGE_SUFFIXES
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix)?.strip_suffix('_'))
        .find(|base| sample.get(base).is_some())
}

/// Returns whether `name` holds translated choices.
fn is_choices_variant(name: &str, sample: &Value) -> bool {
    base_field(name, sample) == Some("choices")
}

/// Returns whether translated choices differ from `choices` in form or values.
pub(crate) fn has_wrong_choices_variant(document: &Value) -> bool {
    fn values(list: &Value) -> Vec<&Value> {
        items(list).map(|choice| &choice["value"]).collect()
    }
    let Some(sample) = sample_of_same_type(document) else { return false };
    let is_choice = |choice: &Value| {
        members(choice).count() == 2
            && is_text_up_to(&choice["value"], 256)
            && is_text_up_to(&choice["label"], 1024)
    };
    members(document).filter(|(name, _)| is_choices_variant(name, sample)).any(|(_, list)| {
        !list.is_array() || !items(list).all(is_choice) || values(list) != values(&document["choices"])
    })
}

pub(crate) fn has_malformed_variant(document: &Value) -> bool {
    let Some(sample) = sample_of_same_type(document) else { return false };
    members(document).any(|(name, value)| {
        translated_field(name, sample).is_some_and(|base| {
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
            !(is_text_up_to(value, limit) || may_be_empty && value == "")
        })
    })
}

pub(crate) fn is_text_up_to(value: &Value, limit: usize) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty() && text.chars().count() <= limit)
}

/// Returns all texts of an event that a person hears.
pub(crate) fn spoken_texts(document: &Value) -> Vec<&str> {
    let sample = sample_of_same_type(document);
    let is_spoken = |name: &str| match sample {
        Some(sample) => {
            sample.get(name).is_some() && SPOKEN_MEMBERS.contains(&name)
                || translated_field(name, sample).is_some()
        }
        None => name.starts_with("summary_"),
    };
    let labels = sample.iter().flat_map(|_| items(&document["choices"])).map(|choice| &choice["label"]);
    let step_description = sample.iter().map(|_| &document["progress"]["description"]);
    members(document)
        .filter(|(name, _)| is_event(document) && is_spoken(name))
        .map(|(_, value)| value)
        .chain(labels)
        .chain(step_description)
        .filter_map(Value::as_str)
        .filter(|text| !text.is_empty())
        .collect()
}

pub(crate) fn has_spoken_text(document: &Value) -> bool {
    !spoken_texts(document).is_empty()
}

/// Returns whether `@context` lists another vocabulary besides AAEP's own.
pub(crate) fn declares_vocabulary(document: &Value) -> bool {
    items(&document["@context"]).any(|uri| uri != "https://aaep-protocol.org/context/v1")
}

fn prefixes(document: &Value) -> impl Iterator<Item = &String> {
    members(&document["extensions"]).map(|(prefix, _)| prefix).filter(|_| is_event(document))
}

fn is_reserved_prefix(prefix: &str) -> bool {
    matches!(prefix, "aaep" | "xsd" | "rdf" | "rdfs") || prefix.starts_with('@')
}

pub(crate) fn has_reserved_prefix(document: &Value) -> bool {
    type_class(document) == Some(TypeClass::ReservedPrefix)
        || prefixes(document).any(|prefix| is_reserved_prefix(prefix))
}

pub(crate) fn has_undeclared_prefix(document: &Value) -> bool {
    prefixes(document).filter(|prefix| !is_reserved_prefix(prefix)).any(|prefix| match prefix.as_str() {
        "sayso" => !items(&document["@context"]).any(|uri| uri == "urn:sayso:context:v1"),
        "" | "not a prefix" => true,
        prefix => {
            !declares_vocabulary(document)
                || !prefix.starts_with(|character: char| character.is_ascii_alphabetic())
        }
    })
}

/// Returns whether the `sayso` extension is invalid. Only the values of `compound_values::extensions` can occur.
pub(crate) fn has_wrong_sayso_body(document: &Value) -> bool {
    let body = &document["extensions"]["sayso"];
    is_event(document)
        && (body.get("reply_token").is_some_and(|token| !is_token(token))
            || body.get("decision").is_some_and(|decision| decision != "accept" && decision != "reject")
            || body.get("by").is_some_and(|by| by != "reply")
            || body.get("parent_session_id").is_some())
}

fn is_token(value: &Value) -> bool {
    value.as_str().and_then(|text| text.strip_prefix("rpl_")).is_some_and(|suffix| {
        (1..=64).contains(&suffix.len()) && suffix.chars().all(|character| character.is_ascii_alphanumeric())
    })
}

/// Returns whether a language tag is one of those that the schema accepts and RFC 5646 does not (C-A15).
pub(crate) fn has_schema_only_tag(document: &Value) -> bool {
    let hints = &document["localization_hints"];
    // In other types, `language` is an unknown member, whatever its value (C-H5).
    let language = has_core_type(document, "agent.output.streaming").then(|| &document["language"]);
    let lists = [
        &hints["available_languages"],
        &hints["fallback_chain"],
        &document["capabilities"]["languages"],
        &document["honored_capabilities"]["languages"],
    ];
    std::iter::once(&hints["primary_language"])
        .chain(language)
        .chain(lists.into_iter().flat_map(items))
        .filter_map(Value::as_str)
        .any(|tag| SCHEMA_ONLY_TAGS.contains(&tag))
}

/// Returns whether an integer of the document is written with a fraction or an exponent. Only members of the
/// document's own type count, because other members may be any number.
pub(crate) fn has_float_for_integer(document: &Value) -> bool {
    let sample = sample_of_same_type(document);
    let is_own_member = |name: &str| sample.is_none_or(|sample| sample.get(name).is_some());
    let top_level = members(document).filter(|(name, _)| {
        is_own_member(name) && (sample.is_some() || !is_event(document) || *name == "sequence_number")
    });
    let nested = ["progress", "capabilities", "honored_capabilities"]
        .into_iter()
        .filter(|name| is_own_member(name) && (sample.is_some() || !is_event(document)))
        .flat_map(|name| members(&document[name]));
    top_level
        .chain(nested)
        .filter(|(name, _)| INTEGERS.contains(&name.as_str()))
        .flat_map(|(_, value)| std::iter::once(value).chain(items(value)))
        .any(Value::is_f64)
}

pub(crate) fn has_large_integer(value: &Value) -> bool {
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

/// Returns whether a chunk has no `coalesce_hint` and ends inside a sentence, although it is not the last chunk.
pub(crate) fn lacks_hint(document: &Value) -> bool {
    has_core_type(document, "agent.output.streaming")
        && document["complete"] == false
        && document.get("coalesce_hint").is_none()
        && document["chunk"].as_str().is_some_and(|chunk| {
            FRAGMENTS.contains(&chunk) || SECRETS.contains(&chunk) && !chunk.ends_with(['.', '!', '?'])
        })
}
