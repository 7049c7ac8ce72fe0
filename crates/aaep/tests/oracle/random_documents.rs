//! Random documents: each is a valid document with up to three changes.

use serde_json::{Value, json};

use crate::random_values;
use testing::random::SplitMix64;

/// The base seed. Each caller adds its own offset.
const SEED: u64 = 0x5A75_0A4E;

/// Generates `count` documents, each made from `sample` by at most three changes. The first is `sample`
/// itself.
pub(crate) fn documents(sample: &Value, seed_offset: u64, count: usize) -> impl Iterator<Item = Value> {
    let mut random = SplitMix64::new(SEED + seed_offset);
    (0..count).map(move |at| {
        let mut document = sample.clone();
        let changes = if at == 0 { 0 } else { 1 + random.below(3) };
        for _ in 0..changes {
            change(&mut document, &mut random);
        }
        document
    })
}

fn change(document: &mut Value, random: &mut SplitMix64) {
    if random.one_in(8) {
        return change_related(document, random);
    }
    let path = random_path(document, random);
    match random.below(16) {
        0..=3 => remove(document, &path),
        4..=10 => {
            let value = plausible_value(document, &path, random);
            set(document, &path, value);
        }
        11 | 12 => set(document, &path, random_values::arbitrary_value(random)),
        13 | 14 => add_member(document, random),
        _ => change_list(document, random),
    }
}

/// Groups of members whose values depend on each other, first in payloads, then in envelopes.
const RELATED: [&[&[&str]]; 2] = [
    &[
        &["irreversible", "reversibility", "risk_level", "default_decision"],
        &["irreversible", "reversibility", "risk_level", "default_decision", "allowed_replies"],
        &["chunk", "complete", "coalesce_hint"],
        &["accepted_response_kinds", "choices"],
        &["progress/step", "progress/total_steps"],
        &["capabilities/supported_conformance_levels", "capabilities/supports_confirmation_reply"],
        &["capabilities/supports_clarification_reply", "capabilities/event_filters"],
        &["honored_capabilities/event_filters"],
    ],
    &[
        &["type", "@context"],
        &["type", "aaep_version"],
        &["extensions", "@context"],
        &["localization_hints", "summary_normal"],
    ],
];

/// Changes related members together, so that invalid combinations occur often enough.
fn change_related(document: &mut Value, random: &mut SplitMix64) {
    let exists = |name: &&str, document: &Value| document.pointer(&format!("/{name}")).is_some();
    let groups: Vec<_> = random
        .choose_one(&RELATED)
        .iter()
        .filter(|group| group.iter().all(|name| exists(name, document)))
        .collect();
    if groups.is_empty() {
        return;
    }
    let use_valid_values = random.one_in(2);
    for name in **random.choose_one(&groups) {
        let path: ValuePath = name.split('/').map(str::to_owned).collect();
        let valid = random_values::valid_value(path.last().map_or("", String::as_str), random)
            .filter(|_| use_valid_values);
        if random.one_in(4) {
            remove(document, &path);
        } else {
            let value = valid.unwrap_or_else(|| plausible_value(document, &path, random));
            set(document, &path, value);
        }
    }
}

/// The path of a value: names of members and indexes of items.
type ValuePath = Vec<String>;

/// Returns the path of a member of the document, or sometimes of a value deeper inside.
fn random_path(document: &Value, random: &mut SplitMix64) -> ValuePath {
    let mut paths = Vec::new();
    let depth = if random.below(3) < 2 { 1 } else { 4 };
    collect_paths(document, &mut Vec::new(), depth, &mut paths);
    if paths.is_empty() { vec!["type".to_owned()] } else { random.choose_one(&paths).clone() }
}

fn collect_paths(value: &Value, prefix: &mut ValuePath, depth: usize, paths: &mut Vec<ValuePath>) {
    if depth == 0 {
        return;
    }
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => return,
    };
    for (name, value) in children {
        prefix.push(name);
        paths.push(prefix.clone());
        collect_paths(value, prefix, depth - 1, paths);
        prefix.pop();
    }
}

fn parent_of<'v>(document: &'v mut Value, path: &ValuePath) -> Option<&'v mut Value> {
    path.iter().take(path.len() - 1).try_fold(document, |value, name| match value {
        Value::Object(members) => members.get_mut(name),
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    })
}

fn remove(document: &mut Value, path: &ValuePath) {
    let (Some(name), Some(parent)) = (path.last().cloned(), parent_of(document, path)) else { return };
    match parent {
        Value::Object(members) => {
            members.remove(&name);
        }
        Value::Array(items) => {
            items.remove(name.parse::<usize>().unwrap_or(0));
        }
        _ => {}
    }
}

fn set(document: &mut Value, path: &ValuePath, value: Value) {
    let (Some(name), Some(parent)) = (path.last().cloned(), parent_of(document, path)) else { return };
    match parent {
        Value::Object(members) => {
            members.insert(name, value);
        }
        Value::Array(items) => {
            if let Some(slot) = name.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                *slot = value;
            }
        }
        _ => {}
    }
}

/// Returns a plausible value for `path`. An item of a list gets a value that fits the list.
fn plausible_value(document: &Value, path: &ValuePath, random: &mut SplitMix64) -> Value {
    let name = path.iter().rev().find(|name| name.parse::<usize>().is_err()).map_or("", String::as_str);
    if name == "type" && random.below(3) == 0 {
        return other_form_of_type(document, random);
    }
    let value = random_values::plausible_value(name, random);
    let is_list_item = path.last().is_some_and(|last| last.parse::<usize>().is_ok());
    match value {
        Value::Array(mut items) if is_list_item && !items.is_empty() => items.swap_remove(0),
        value => value,
    }
}

/// Returns the document's own type as a full URI (C-A3), or in the form of the published context file (C-A4).
fn other_form_of_type(document: &Value, random: &mut SplitMix64) -> Value {
    let name = document["type"].as_str().unwrap_or_default();
    let local = name.strip_prefix("aaep:").unwrap_or(name);
    let namespace = *random.choose_one(&[
        "https://aaep-protocol.org/types/",
        "https://aaep-protocol.org/types/",
        "https://aaep-protocol.org/vocab/v1#",
    ]);
    json!(format!("{namespace}{local}"))
}

/// Names that are not a member of any type, and some that are members of another type.
const UNKNOWN_MEMBER_NAMES: &[&str] = &[
    "custom_field",
    "aaep_foo",
    "aaep_version_2",
    "@id",
    "@graph",
    "@base",
    "@vocab",
    "@type",
    "",
    "x",
    "id",
    "amount_raw",
    "currency",
    "error_message",
    "language",
    "tool",
    "progress_percent",
    "summary",
    "summary_",
    "summary_brief",
    "extension",
    "urgency_",
    "Type",
];
/// Suffixes of a name that mark a translated text (§11.5.1, C-H1).
pub(crate) const LANGUAGE_SUFFIXES: &[&str] = &["yo", "en_us", "zh_hant_tw", "es_419", "x_home", "haw"];
/// Suffixes that look similar but are not valid.
const INVALID_LANGUAGE_SUFFIXES: &[&str] =
    &["", "YO", "en_US", "en-us", "english", "1", "a_1", "yo_", "_yo", "four"];

fn add_member(document: &mut Value, random: &mut SplitMix64) {
    let name = match random.below(4) {
        0 => with_language_suffix(document, LANGUAGE_SUFFIXES, random),
        1 => with_language_suffix(document, INVALID_LANGUAGE_SUFFIXES, random),
        _ => (*random.choose_one(UNKNOWN_MEMBER_NAMES)).to_owned(),
    };
    let value = if random.below(3) < 2 {
        random_values::text(random)
    } else {
        random_values::arbitrary_value(random)
    };
    let mut path = Vec::new();
    if random.one_in(4) {
        // Adds to an inner object, if the path leads to one.
        path = random_path(document, random);
    }
    path.push(name);
    set(document, &path, value);
}

fn with_language_suffix(document: &Value, suffixes: &[&str], random: &mut SplitMix64) -> String {
    // Skips names that already have a suffix, so that no name gets two.
    let has_suffix = |name: &str| {
        LANGUAGE_SUFFIXES
            .iter()
            .chain(INVALID_LANGUAGE_SUFFIXES)
            .any(|suffix| name.ends_with(&format!("_{suffix}")))
    };
    let names: Vec<_> = document
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys())
        .filter(|name| !has_suffix(name.as_str()))
        .collect();
    let name = if names.is_empty() { "summary_normal" } else { random.choose_one(&names).as_str() };
    format!("{name}_{}", random.choose_one(suffixes))
}

/// Empties or reverses a list, adds a duplicate or an arbitrary item, or fills the list to its maximum length or beyond.
fn change_list(document: &mut Value, random: &mut SplitMix64) {
    let mut paths = Vec::new();
    collect_paths(document, &mut Vec::new(), 4, &mut paths);
    paths.retain(|path| document.pointer(&format!("/{}", path.join("/"))).is_some_and(Value::is_array));
    if paths.is_empty() {
        return;
    }
    let path = random.choose_one(&paths).clone();
    let name = path.last().cloned().unwrap_or_default();
    let pointer = format!("/{}", path.join("/"));
    let mut items = document.pointer(&pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let limit = random_values::max_list_length(&name);
    match random.below(6) {
        0 => items.clear(),
        1 => items.extend(items.first().cloned()),
        2 => items.push(random_values::arbitrary_value(random)),
        3 => items = (0..limit).map(|at| random_values::item(&name, at)).collect(),
        4 => items = (0..=limit).map(|at| random_values::item(&name, at)).collect(),
        _ => items.reverse(),
    }
    set(document, &path, Value::Array(items));
}
