//! Random wishes of subscribers, and random offers.

use aaep::event::{CoalesceHint, Producer};
use aaep::negotiate::{Extension, Offer};
use serde_json::{Map, Value, json};

use crate::support::choices::Choices;

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

/// Types against which filters are tried.
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

/// Capabilities that can be read, lawful or not.
pub(crate) fn wish(choices: &mut Choices<'_>) -> Map<String, Value> {
    let mut wish = Map::new();
    let mut say = |name: &str, said: bool, value: Value| {
        if said {
            wish.insert(name.to_owned(), value);
        }
    };
    let said = choices.flip();
    say(
        "max_events_per_second",
        said,
        json!(choices.of(&[1_u64, 5, 20, 1000, 100_000, 100_001, 900_000, 0])),
    );
    let said = choices.flip();
    say("preferred_verbosity", said, json!(choices.of(&["terse", "normal", "detailed", "chatty"])));
    let said = choices.flip();
    say("languages", said, json!(some(choices, &TAGS, 4)));
    let said = choices.flip();
    say("supports_confirmation_reply", said, json!(choices.flip()));
    let said = choices.flip();
    say("supports_clarification_reply", said, json!(choices.flip()));
    let said = choices.flip();
    say("coalesce_boundaries", said, json!(some(choices, &BOUNDARIES, 4)));
    let said = choices.flip();
    say("event_filters", said, filters(choices));
    let said = choices.flip();
    say("supported_conformance_levels", said, json!(some(choices, &[1_u64, 2, 3, 4], 4)));
    let said = choices.flip();
    say("supported_extensions", said, json!(some(choices, &URIS, 4)));
    let said = choices.flip();
    say("cognitive_load", said, json!(choices.of(&["low", "medium", "high", "none"])));
    let said = choices.flip();
    say("pace_wpm", said, json!(choices.of(&[50_u64, 180, 1000, 0, 20_000])));
    let said = choices.rarely(4);
    say("accept_signed_manifests_only", said, json!(choices.flip()));
    for prefix in ["medai", "haptic", "sayso"] {
        let said = choices.rarely(3);
        say(prefix, said, choices_object(choices));
    }
    wish
}

fn filters(choices: &mut Choices<'_>) -> Value {
    let mut filters = Map::new();
    for name in ["include", "exclude"] {
        if choices.flip() {
            filters.insert(name.to_owned(), json!(some(choices, &PATTERNS, 4)));
        }
    }
    Value::Object(filters)
}

fn choices_object(choices: &mut Choices<'_>) -> Value {
    match choices.below(3) {
        0 => json!({}),
        1 => json!({ "strength": choices.below(9), "deep": { "er": [1, "zwei"] } }),
        _ => json!({ "text": "x".repeat(choices.below(256) * 32) }),
    }
}

/// So many of them at most, now and then one twice or none at all.
fn some<T: Copy>(choices: &mut Choices<'_>, from: &[T], most: usize) -> Vec<T> {
    let count = if choices.rarely(12) { 0 } else { 1 + choices.below(most) };
    (0..count).map(|_| choices.of(from)).collect()
}

/// What a producer can give: all of it, or less of anything.
pub(crate) fn offer(choices: &mut Choices<'_>) -> Offer {
    let strings = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
    let mut offer = Offer::new(Producer::new("bank"));
    if choices.flip() {
        offer.languages = strings(some(choices, &TAGS, 3));
    }
    if choices.flip() {
        offer.max_events_per_second = Some(choices.of(&[1, 10, 500, 0, 1_000_000]));
    }
    if choices.flip() {
        let words = some(choices, &BOUNDARIES[..5], 3);
        offer.boundaries = words.into_iter().map(CoalesceHint::of).collect();
    }
    if choices.flip() {
        offer.levels = some(choices, &[1, 2, 3], 2);
    }
    if choices.flip() {
        offer.versions = strings(some(choices, &["1.0.0", "1.2.0", "0.1.0-draft"], 2));
    }
    for (uri, prefix) in [(URIS[1], "medai"), (URIS[2], "medai"), (URIS[3], "haptic")] {
        if choices.flip() {
            offer.extensions.extend(Extension::new(uri, prefix));
        }
    }
    offer.confirmation_reply = !choices.rarely(3);
    offer.clarification_reply = !choices.rarely(3);
    offer.manifest_uri =
        choices.flip().then(|| choices.of(&["https://example.org/m.json", "nowhere"]).to_owned());
    offer.signed_manifest = choices.flip().then(|| choices.of(&["eyJh.eyJi.c2ln", "not a jws"]).to_owned());
    offer
}
