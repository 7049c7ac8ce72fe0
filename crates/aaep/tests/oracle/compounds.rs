//! Values that are made of others: contexts, types, extensions, and the records inside events.

use serde_json::{Value, json};

use crate::pools::*;
use testing::random::Random;

pub(crate) fn context(random: &mut Random) -> Value {
    const CORE: &str = "https://aaep-protocol.org/context/v1";
    const OTHER: &str = "https://example.org/medai/context/v1";
    match random.below(15) {
        0 | 1 => json!(CORE),
        2 => json!([CORE]),
        3 => json!([CORE, OTHER]),
        4 => json!([CORE, "urn:sayso:context:v1"]),
        5 => json!([CORE, CORE]),
        6 => json!([OTHER, CORE]),
        7 => json!([]),
        8 => json!(OTHER),
        9 => json!(format!("{CORE}/")),
        10 => json!([CORE, 5]),
        11 => json!([CORE, {"medai": OTHER}]),
        12 => json!({"@vocab": CORE}),
        13 => json!([CORE, "https://example.org/unversioned"]),
        _ => json!([CORE, random.pick(URIS)]),
    }
}

pub(crate) fn event_type(random: &mut Random) -> Value {
    const OTHERS: &[&str] = &[
        "aaep:agent.session.completed",
        "aaep:agent.state.changed",
        "aaep:agent.output.streaming",
        "aaep:agent.awaiting.confirmation",
        "subscription.request",
        "confirmation.reply",
    ];
    if random.one_in(4) { json!(random.pick(OTHERS)) } else { json!(random.pick(TYPES).0) }
}

pub(crate) fn extensions(random: &mut Random) -> Value {
    random
        .pick(&[
            json!({}),
            json!({"medai": {}}),
            json!({"medai": {"phi": [1, {"x": null}]}, "azlearn": {"a": 1}}),
            json!({"m": {"a": 1}}),
            json!({"sayso": {}}),
            json!({"sayso": {"reply_token": "rpl_4f8a", "decision": "accept", "by": "reply"}}),
            json!({"sayso": {"reply_token": "4f8a"}}),
            json!({"sayso": {"decision": "maybe"}}),
            json!({"sayso": {"by": 7}}),
            json!({"sayso": {"parent_session_id": "x"}}),
            json!({"aaep": {}}),
            json!({"xsd": {}, "medai": {}}),
            json!({"@id": {}}),
            json!({"": {}}),
            json!({"not a prefix": {}}),
            json!({"medai": 1}),
            json!({"medai": null}),
            json!({"parent_session_id": "sess_1"}),
            json!({"medai": {"big": 9_007_199_254_740_993_u64}}),
        ])
        .clone()
}

pub(crate) fn progress(random: &mut Random) -> Value {
    random
        .pick(&[
            json!({}),
            json!({"percent": 100}),
            json!({"step": 1}),
            json!({"total_steps": 2}),
            json!({"description": "Adding up"}),
            json!({"step": 3, "total_steps": 3}),
            json!({"step": 4, "total_steps": 3}),
            json!({"progress_percent": 5}),
            json!({"percent": 5, "progress_percent": 5}),
            json!({"description": "Using sk-abc123def456ghi789jkl for it."}),
        ])
        .clone()
}

pub(crate) fn hints(random: &mut Random) -> Value {
    random
        .pick(&[
            json!({}),
            json!({"primary_language": "en"}),
            json!({"text_direction": "rtl"}),
            json!({"primary_language": "ar", "text_direction": "auto"}),
            json!({"primary_language": "yo", "fallback_applied": true}),
            json!({"primary_language": "yo", "available_languages": ["en", "en"]}),
            json!({"primary_language": "yo", "fallback_chain": ["en", "en"]}),
        ])
        .clone()
}

pub(crate) fn choices(random: &mut Random) -> Value {
    let one = |value: &str, label: &str| json!({"value": value, "label": label});
    random
        .pick(&[
            json!([one("a", "A"), one("b", "B")]),
            json!([one("a", "A")]),
            json!([one("a", "A"), one("a", "A")]),
            json!([one("a", "A"), one("a", "Another")]),
            json!([one("a", "A"), {"value": "b"}]),
            json!([one("a", "A"), {"value": "b", "label": "B", "hint": "x"}]),
            json!([one("a", "A"), "b"]),
            json!([one("a", "A"), one("", "B")]),
            json!([one(&"a".repeat(256), "A"), one("b", &"l".repeat(1024))]),
            json!([one(&"a".repeat(257), "A"), one("b", "B")]),
            json!([one("a", "A"), one("b", &"l".repeat(1025))]),
            // Different pairs that are the same when glued together carelessly.
            json!([one("c", "a\u{0}\u{0}value\u{0}\"b"), one("b\u{0}\u{0}value\u{0}\"c", "a")]),
        ])
        .clone()
}
