//! Generates random capabilities of subscribers, and random offers of producers.

use aaep::event::{CoalesceHint, Producer};
use aaep::negotiate::{Extension, Offer};
use serde_json::{Map, Value, json};

use crate::support::byte_choices::RandomChoices;

const TAGS: [&str; 12] = [
    "en",
    "en-US",
    "en-GB",
    "yo",
    "yo-NG",
    "zh-Hant-TW",
    "zh-Hant",
    "zh",
    "sr-Latn",
    "i-klingon",
    "x-private",
    "EN-us",
];
const BOUNDARIES: [&str; 6] = ["none", "word", "sentence", "paragraph", "completion", "verse"];
const PATTERNS: [&str; 10] = [
    "aaep:agent.*",
    "*",
    "aaep:agent.tool.*",
    "aaep:agent.progress.updated",
    "https://aaep-protocol.org/types/agent.state.*",
    "https://aaep-protocol.org/types/agent.tool.invoked",
    "medai:*",
    "aaep:agent.*.updated",
    "",
    "medai:patient.consulted",
];
const URIS: [&str; 5] = [
    "urn:sayso:context:v1",
    "https://example.org/medai/v1",
    "https://example.net/medai/v1",
    "https://example.org/haptic/v2",
    "no uri",
];

/// Event types to try filters against.
pub(crate) const EVENT_TYPES: [&str; 8] = [
    "aaep:agent.tool.invoked",
    "aaep:agent.tool.completed",
    "aaep:agent.state.changed",
    "aaep:agent.progress.updated",
    "aaep:agent.output.streaming",
    "medai:patient.consulted",
    "haptic:pulse",
    "other:thing",
];

/// Generates capabilities that can be parsed. Some of them are invalid.
pub(crate) fn random_capabilities(choices: &mut RandomChoices<'_>) -> Map<String, Value> {
    let mut capabilities = Map::new();
    let mut insert_if = |name: &str, is_present: bool, value: Value| {
        if is_present {
            capabilities.insert(name.to_owned(), value);
        }
    };
    let is_present = choices.flip();
    insert_if(
        "max_events_per_second",
        is_present,
        json!(choices.pick(&[1_u64, 5, 20, 1000, 100_000, 100_001, 900_000, 0])),
    );
    let is_present = choices.flip();
    insert_if(
        "preferred_verbosity",
        is_present,
        json!(choices.pick(&["terse", "normal", "detailed", "chatty"])),
    );
    let is_present = choices.flip();
    insert_if("languages", is_present, json!(pick_some(choices, &TAGS, 4)));
    let is_present = choices.flip();
    insert_if("supports_confirmation_reply", is_present, json!(choices.flip()));
    let is_present = choices.flip();
    insert_if("supports_clarification_reply", is_present, json!(choices.flip()));
    let is_present = choices.flip();
    insert_if("coalesce_boundaries", is_present, json!(pick_some(choices, &BOUNDARIES, 4)));
    let is_present = choices.flip();
    insert_if("event_filters", is_present, random_filters(choices));
    let is_present = choices.flip();
    insert_if("supported_conformance_levels", is_present, json!(pick_some(choices, &[1_u64, 2, 3, 4], 4)));
    let is_present = choices.flip();
    insert_if("supported_extensions", is_present, json!(pick_some(choices, &URIS, 4)));
    let is_present = choices.flip();
    insert_if("cognitive_load", is_present, json!(choices.pick(&["low", "medium", "high", "none"])));
    let is_present = choices.flip();
    insert_if("pace_wpm", is_present, json!(choices.pick(&[50_u64, 180, 1000, 0, 20_000])));
    let is_present = choices.one_in(4);
    insert_if("accept_signed_manifests_only", is_present, json!(choices.flip()));
    for prefix in ["medai", "haptic", "sayso"] {
        let is_present = choices.one_in(3);
        insert_if(prefix, is_present, random_object(choices));
    }
    capabilities
}

fn random_filters(choices: &mut RandomChoices<'_>) -> Value {
    let mut filters = Map::new();
    for name in ["include", "exclude"] {
        if choices.flip() {
            filters.insert(name.to_owned(), json!(pick_some(choices, &PATTERNS, 4)));
        }
    }
    Value::Object(filters)
}

fn random_object(choices: &mut RandomChoices<'_>) -> Value {
    match choices.below(3) {
        0 => json!({}),
        1 => json!({ "strength": choices.below(9), "deep": { "er": [1, "two"] } }),
        _ => json!({ "text": "x".repeat(choices.below(256) * 32) }),
    }
}

/// Returns up to `max_len` random options. The list can be empty and can contain duplicates.
fn pick_some<T: Copy>(choices: &mut RandomChoices<'_>, options: &[T], max_len: usize) -> Vec<T> {
    let count = if choices.one_in(12) { 0 } else { 1 + choices.below(max_len) };
    (0..count).map(|_| choices.pick(options)).collect()
}

/// Generates the offer of a producer that supports all features or only some of them.
pub(crate) fn random_offer(choices: &mut RandomChoices<'_>) -> Offer {
    let strings = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
    let mut offer = Offer::new(Producer::new("bank"));
    if choices.flip() {
        offer.languages = strings(pick_some(choices, &TAGS, 3));
    }
    if choices.flip() {
        offer.max_events_per_second = Some(choices.pick(&[1, 10, 500, 0, 1_000_000]));
    }
    if choices.flip() {
        let boundaries = pick_some(choices, &BOUNDARIES[..5], 3);
        offer.boundaries = boundaries.into_iter().map(CoalesceHint::parse).collect();
    }
    if choices.flip() {
        offer.levels = pick_some(choices, &[1, 2, 3], 2);
    }
    if choices.flip() {
        offer.versions = strings(pick_some(choices, &["1.0.0", "1.2.0", "0.1.0-draft"], 2));
    }
    for (uri, prefix) in [(URIS[1], "medai"), (URIS[2], "medai"), (URIS[3], "haptic")] {
        if choices.flip() {
            offer.extensions.extend(Extension::new(uri, prefix));
        }
    }
    offer.answers_confirmations = !choices.one_in(3);
    offer.answers_clarifications = !choices.one_in(3);
    offer.manifest_uri =
        choices.flip().then(|| choices.pick(&["https://example.org/m.json", "nowhere"]).to_owned());
    offer.signed_manifest = choices.flip().then(|| choices.pick(&["eyJh.eyJi.c2ln", "not a jws"]).to_owned());
    offer
}
