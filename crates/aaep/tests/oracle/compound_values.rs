//! Random contexts, event types, extensions and inner objects of events. Some of them are invalid.

use serde_json::{Value, json};

use crate::value_pools::*;
use testing::random::SplitMix64;

pub(crate) fn context(random: &mut SplitMix64) -> Value {
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
        _ => json!([CORE, random.choose_one(URIS)]),
    }
}

pub(crate) fn event_type(random: &mut SplitMix64) -> Value {
    const OTHER_TYPES: &[&str] = &[
        "aaep:agent.session.completed",
        "aaep:agent.state.changed",
        "aaep:agent.output.streaming",
        "aaep:agent.awaiting.confirmation",
        "subscription.request",
        "confirmation.reply",
    ];
    if random.one_in(4) { json!(random.choose_one(OTHER_TYPES)) } else { json!(random.choose_one(TYPES).0) }
}

pub(crate) fn extensions(random: &mut SplitMix64) -> Value {
    random
        .choose_one(&[
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

pub(crate) fn progress(random: &mut SplitMix64) -> Value {
    random
        .choose_one(&[
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

pub(crate) fn hints(random: &mut SplitMix64) -> Value {
    random
        .choose_one(&[
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

pub(crate) fn choices(random: &mut SplitMix64) -> Value {
    let choice = |value: &str, label: &str| json!({"value": value, "label": label});
    random
        .choose_one(&[
            json!([choice("a", "A"), choice("b", "B")]),
            json!([choice("a", "A")]),
            json!([choice("a", "A"), choice("a", "A")]),
            json!([choice("a", "A"), choice("a", "Another")]),
            json!([choice("a", "A"), {"value": "b"}]),
            json!([choice("a", "A"), {"value": "b", "label": "B", "hint": "x"}]),
            json!([choice("a", "A"), "b"]),
            json!([choice("a", "A"), choice("", "B")]),
            json!([choice(&"a".repeat(256), "A"), choice("b", &"l".repeat(1024))]),
            json!([choice(&"a".repeat(257), "A"), choice("b", "B")]),
            json!([choice("a", "A"), choice("b", &"l".repeat(1025))]),
            // Different pairs that look equal if value and label are concatenated without escaping.
            json!([choice("c", "a\u{0}\u{0}value\u{0}\"b"), choice("b\u{0}\u{0}value\u{0}\"c", "a")]),
        ])
        .clone()
}
