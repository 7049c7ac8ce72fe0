//! Documents by chance: a lawful one, and up to three changes.

use serde_json::{Value, json};

use crate::values;
use testing::random::Random;

/// Every so many documents come of one seed; a type's number is added to it.
const SEED: u64 = 0x5A75_0A4E;

/// So many documents, each made from `lawful` by at most three changes. The first is `lawful` itself.
pub(crate) fn documents(lawful: &Value, number: u64, count: usize) -> impl Iterator<Item = Value> {
    let mut random = Random::new(SEED + number);
    (0..count).map(move |at| {
        let mut document = lawful.clone();
        let changes = if at == 0 { 0 } else { 1 + random.below(3) };
        for _ in 0..changes {
            change(&mut document, &mut random);
        }
        document
    })
}

fn change(document: &mut Value, random: &mut Random) {
    if random.one_in(8) {
        return change_related(document, random);
    }
    let place = some_place(document, random);
    match random.below(16) {
        0..=3 => remove(document, &place),
        4..=10 => {
            let value = meant(document, &place, random);
            set(document, &place, value);
        }
        11 | 12 => set(document, &place, values::odd(random)),
        13 | 14 => add_member(document, random),
        _ => change_list(document, random),
    }
}

/// Members that mean something for each other: of payloads, and of every event.
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

/// Changes members together, so that what they must not say together is met often enough.
fn change_related(document: &mut Value, random: &mut Random) {
    let there = |name: &&str, document: &Value| document.pointer(&format!("/{name}")).is_some();
    let groups: Vec<_> =
        random.pick(&RELATED).iter().filter(|group| group.iter().all(|name| there(name, document))).collect();
    if groups.is_empty() {
        return;
    }
    let rightly = random.one_in(2);
    for name in **random.pick(&groups) {
        let place: Place = name.split('/').map(str::to_owned).collect();
        let right = values::right(place.last().map_or("", String::as_str), random).filter(|_| rightly);
        if random.one_in(4) {
            remove(document, &place);
        } else {
            let value = right.unwrap_or_else(|| meant(document, &place, random));
            set(document, &place, value);
        }
    }
}

/// Where a value stands: names of members, and numbers of items.
type Place = Vec<String>;

/// A member of the document, or sometimes one deeper inside.
fn some_place(document: &Value, random: &mut Random) -> Place {
    let mut all = Vec::new();
    let depth = if random.below(3) < 2 { 1 } else { 4 };
    gather(document, &mut Vec::new(), depth, &mut all);
    if all.is_empty() { vec!["type".to_owned()] } else { random.pick(&all).clone() }
}

fn gather(value: &Value, here: &mut Place, depth: usize, all: &mut Vec<Place>) {
    if depth == 0 {
        return;
    }
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => return,
    };
    for (name, value) in inside {
        here.push(name);
        all.push(here.clone());
        gather(value, here, depth - 1, all);
        here.pop();
    }
}

fn parent_of<'v>(document: &'v mut Value, place: &Place) -> Option<&'v mut Value> {
    place.iter().take(place.len() - 1).try_fold(document, |value, name| match value {
        Value::Object(members) => members.get_mut(name),
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    })
}

fn remove(document: &mut Value, place: &Place) {
    let (Some(name), Some(parent)) = (place.last().cloned(), parent_of(document, place)) else { return };
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

fn set(document: &mut Value, place: &Place, value: Value) {
    let (Some(name), Some(parent)) = (place.last().cloned(), parent_of(document, place)) else { return };
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

/// A value that somebody could mean for what stands at `place`. An item takes after the list that it is in.
fn meant(document: &Value, place: &Place, random: &mut Random) -> Value {
    let name = place.iter().rev().find(|name| name.parse::<usize>().is_err()).map_or("", String::as_str);
    if name == "type" && random.below(3) == 0 {
        return other_form_of_type(document, random);
    }
    let value = values::meant(name, random);
    let in_a_list = place.last().is_some_and(|last| last.parse::<usize>().is_ok());
    match value {
        Value::Array(mut items) if in_a_list && !items.is_empty() => items.swap_remove(0),
        value => value,
    }
}

/// The document's own type as a full URI (C-A3), or in the form of the published context file (C-A4).
fn other_form_of_type(document: &Value, random: &mut Random) -> Value {
    let name = document["type"].as_str().unwrap_or_default();
    let local = name.strip_prefix("aaep:").unwrap_or(name);
    let namespace = *random.pick(&[
        "https://aaep-protocol.org/types/",
        "https://aaep-protocol.org/types/",
        "https://aaep-protocol.org/vocab/v1#",
    ]);
    json!(format!("{namespace}{local}"))
}

/// Names that are no member of any type, and some that are members of another.
const STRANGERS: &[&str] = &[
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
/// Ends of a name that make it a text in another language (§11.5.1, C-H1).
pub(crate) const VARIANTS: &[&str] = &["yo", "en_us", "zh_hant_tw", "es_419", "x_home", "haw"];
/// Ends that look like it.
const NO_VARIANTS: &[&str] = &["", "YO", "en_US", "en-us", "english", "1", "a_1", "yo_", "_yo", "four"];

fn add_member(document: &mut Value, random: &mut Random) {
    let name = match random.below(4) {
        0 => in_another_language(document, VARIANTS, random),
        1 => in_another_language(document, NO_VARIANTS, random),
        _ => (*random.pick(STRANGERS)).to_owned(),
    };
    let value = if random.below(3) < 2 { values::text(random) } else { values::odd(random) };
    let mut place = Vec::new();
    if random.one_in(4) {
        // Into an object inside, if the place is one.
        place = some_place(document, random);
    }
    place.push(name);
    set(document, &place, value);
}

fn in_another_language(document: &Value, suffixes: &[&str], random: &mut Random) -> String {
    // Not of a name that was made so already: a tag may well be followed by another.
    let made =
        |name: &str| VARIANTS.iter().chain(NO_VARIANTS).any(|suffix| name.ends_with(&format!("_{suffix}")));
    let names: Vec<_> = document
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys())
        .filter(|name| !made(name.as_str()))
        .collect();
    let name = if names.is_empty() { "summary_normal" } else { random.pick(&names).as_str() };
    format!("{name}_{}", random.pick(suffixes))
}

/// Makes some list empty, long, too long, or one with doubled or odd items.
fn change_list(document: &mut Value, random: &mut Random) {
    let mut places = Vec::new();
    gather(document, &mut Vec::new(), 4, &mut places);
    places.retain(|place| document.pointer(&format!("/{}", place.join("/"))).is_some_and(Value::is_array));
    if places.is_empty() {
        return;
    }
    let place = random.pick(&places).clone();
    let name = place.last().cloned().unwrap_or_default();
    let pointer = format!("/{}", place.join("/"));
    let mut items = document.pointer(&pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let limit = values::longest_list(&name);
    match random.below(6) {
        0 => items.clear(),
        1 => items.extend(items.first().cloned()),
        2 => items.push(values::odd(random)),
        3 => items = (0..limit).map(|at| values::item(&name, at)).collect(),
        4 => items = (0..=limit).map(|at| values::item(&name, at)).collect(),
        _ => items.reverse(),
    }
    set(document, &place, Value::Array(items));
}
