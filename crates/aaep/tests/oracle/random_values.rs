//! Random values for a member, chosen by its name. They are valid, invalid, or at a limit.

use serde_json::{Value, json};

use crate::compound_values::{choices, context, event_type, extensions, hints, progress};
use crate::value_pools::*;
use testing::random::SplitMix64;

/// Returns a value that an agent could send for the member `name`. Some values are invalid.
pub(crate) fn plausible_value(name: &str, random: &mut SplitMix64) -> Value {
    match name {
        "@context" => context(random),
        "type" => event_type(random),
        "event_id" => id("evt_", random),
        "session_id" => id("sess_", random),
        "reply_token" => id("rpl_", random),
        "subscription_id" => id("sub_", random),
        "tool_call_id" => id("call_", random),
        "output_id" => id("out_", random),
        "timestamp" => json!(random.choose_one(TIMES).0),
        "aaep_version" => pick_value(&["1.0.0", "0.1.0-draft"], OTHER_VERSIONS, random),
        "sequence_number" | "tool_invocations_count" | "position" => integer(0, 1 << 53, random),
        "step" | "total_steps" | "max_concurrent_subscriptions" => integer(1, 1 << 53, random),
        "expected_duration_ms" | "duration_ms" | "eta_ms" => integer(0, 86_400_000, random),
        "timeout_seconds" => integer(1, 86_400, random),
        "retry_after_seconds" => integer(0, 86_400, random),
        "seconds" => integer(1, 864_000, random),
        "max_events_per_second" => integer(1, 100_000, random),
        "pace_wpm" => integer(50, 1000, random),
        "percent" => number(100.0, random),
        "confidence" => number(1.0, random),
        "response" => response(random),
        "chunk" if random.one_in(3) => json!(random.choose_one(FRAGMENTS)),
        "agent_id" => pick_value(&["planner", "com.example.2fa", "gpt4-helper"], VERSIONED_AGENTS, random),
        "producer" => random
            .choose_one(&[
                json!({}),
                json!({"agent_id": "planner"}),
                json!({"agent_id": ""}),
                json!({"agent_name": "Planner"}),
                json!({"agent_id": "planner", "extra": 1}),
                json!({"agent_id": "planner", "model": ""}),
            ])
            .clone(),
        "primary_language" | "language" => tag(random),
        "languages" | "available_languages" | "fallback_chain" | "languages_supported" => {
            json!([tag(random), tag(random)])
        }
        "tool" => pick_value(&["fetch_balance", "_x.y-z", "A"], INVALID_TOOL_NAMES, random),
        "error_code" => pick_value(&["AUTH_FAILED", "A1", "E_"], INVALID_CODES, random),
        "cancellation_reason" | "reason_code" => pick_value(REASON_CODES, INVALID_CODES, random),
        "content_type" => {
            pick_value(&["text/plain", "application/ld+json", "x/y"], INVALID_MEDIA_TYPES, random)
        }
        "script" => pick_value(&["Latn", "Arab"], &["latn", "LATN", "Lat", "Latin", "L4tn", ""], random),
        "signed_manifest" => {
            pick_value(&["a.b.c", "a_-.b.c"], &["a.b", "a.b.", "a.b.c.d", "a.b.c=", ""], random)
        }
        "extensions" => extensions(random),
        "extra_context" | "packaged_context" | "modified_action" => random
            .choose_one(&[json!({}), json!({"deep": {"er": [1, {"x": null}]}}), json!([]), json!("x")])
            .clone(),
        "progress" => progress(random),
        "localization_hints" => hints(random),
        "choices" => choices(random),
        "allowed_replies" => random
            .choose_one(&[
                json!(["accept", "reject"]),
                json!(["reject"]),
                json!(["accept"]),
                json!(["accept", "defer", "reject"]),
                json!(["reject", ""]),
                json!(["reject", "reject"]),
            ])
            .clone(),
        "event_filters" => random
            .choose_one(&[
                json!({}),
                json!({"include": []}),
                json!({"include": ["*"], "exclude": ["aaep:agent.tool.*"]}),
                json!({"include": ["aaep:*.completed"]}),
                json!({"exclude": ["**"]}),
                json!({"include": ["a*b*"], "exclude": []}),
                json!({"include": [""]}),
                json!({"include": ["aaep:agent.*", "aaep:agent.*"]}),
                json!({"only": []}),
            ])
            .clone(),
        "supported_conformance_levels" | "conformance_levels_supported" => random
            .choose_one(&[
                json!([1]),
                json!([1, 2, 3]),
                json!([3]),
                json!([0]),
                json!([4]),
                json!([1.0]),
                json!([1, 1.0]),
                json!([]),
                json!(["1"]),
            ])
            .clone(),
        "aaep_versions_supported" => {
            random.choose_one(&[json!(["1.0.0", "0.1.0-draft"]), json!(["1.0"]), json!([])]).clone()
        }
        _ => value_by_kind(name, random),
    }
}

/// Returns a value that is valid on its own, for a member that other members depend on.
pub(crate) fn valid_value(name: &str, random: &mut SplitMix64) -> Option<Value> {
    let values: &[&str] = match name {
        "irreversible" | "complete" => return Some(json!(random.one_in(2))),
        "reversibility" => &["reversible", "reversible_with_effort", "irreversible"],
        "risk_level" => &["low", "medium", "high"],
        "default_decision" => &["accept", "reject"],
        "coalesce_hint" => &["none", "sentence", "completion"],
        "chunk" => FRAGMENTS,
        "step" | "total_steps" => return Some(json!(random.below(5) + 1)),
        _ => return None,
    };
    Some(json!(random.choose_one(values)))
}

/// Returns any JSON value. Most members do not accept it.
pub(crate) fn arbitrary_value(random: &mut SplitMix64) -> Value {
    random
        .choose_one(&[
            json!(null),
            json!(true),
            json!(false),
            json!(0),
            json!(-1),
            json!(1.5),
            json!(9_007_199_254_740_993_u64),
            json!(u64::MAX),
            json!(-1e300),
            json!(""),
            json!("true"),
            json!("odd"),
            json!([]),
            json!([null]),
            json!([1, "a", {}]),
            json!({}),
            json!({"": ""}),
            json!({"a": {"b": [0]}}),
        ])
        .clone()
}

/// Returns item `at` of a long list for the member `name`, unique where that is possible.
pub(crate) fn item(name: &str, at: usize) -> Value {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap_or(0));
    match name {
        "languages" | "available_languages" | "fallback_chain" | "languages_supported" => {
            json!(format!("{}{}", letter(at / 26), letter(at)))
        }
        "supported_extensions" | "extensions_supported" | "@context" => {
            json!(format!("https://e.example/v1/{at}"))
        }
        "choices" => json!({"value": at.to_string(), "label": "one of many"}),
        "coalesce_boundaries" => {
            json!(["none", "word", "sentence", "paragraph", "completion"][at % 5])
        }
        "accepted_response_kinds" => json!(["freetext", "yes_no", "multiple_choice", "numeric"][at % 4]),
        "supported_conformance_levels" | "conformance_levels_supported" => json!(at % 4),
        "aaep_versions_supported" => json!(format!("1.{at}.0")),
        _ => json!(format!("item_{at}")),
    }
}

/// Returns the maximum number of items of a list. Where there is no limit, returns a number above all limits.
pub(crate) fn max_list_length(name: &str) -> usize {
    match name {
        "available_languages" | "languages" | "allowed_replies" | "choices" => 32,
        "fallback_chain" => 16,
        "accepted_response_kinds" => 4,
        "coalesce_boundaries" => 5,
        "supported_conformance_levels" | "conformance_levels_supported" => 3,
        "supported_extensions" => 64,
        _ => 256,
    }
}

const OTHER_VERSIONS: &[&str] = &[
    "9.9.9",
    "1.0.1",
    "1.0.0-rc.1",
    "01.0.0",
    "1.0",
    "1.0.0+build",
    "1.0.0-",
    "v1.0.0",
    "1.0.0.0",
    "1.0.0\n",
    "",
];
/// Agent ids that contain a version (§3.2.6.1), and the empty id.
pub(crate) const VERSIONED_AGENTS: &[&str] = &["planner-1.4.2", "planner_v2", "planner@3.0", "1.2.3", ""];
const INVALID_TOOL_NAMES: &[&str] = &["", "1tool", "a b", "-x", "tool\n", "outil\u{e9}", "a/b", "a:b"];
const INVALID_CODES: &[&str] =
    &["A", "a", "auth_failed", "1A", "A-B", "User", "a-b", "_a", "", "AUTH_FAILED\n", "a\n"];
const REASON_CODES: &[&str] =
    &["user_pressed_escape", "u1", "rate_limit", "unknown", "version_unsupported", "new_code"];
const INVALID_MEDIA_TYPES: &[&str] = &[
    "text/plain; charset=utf-8",
    "text/3d",
    "text",
    "text/",
    "/plain",
    "a/b/c",
    "te xt/plain",
    "text/plain\n",
    "",
    "*/*",
];

/// Minimum and maximum lengths of texts, and lengths just above a maximum.
const LENGTHS: &[usize] = &[1, 64, 65, 256, 257, 1024, 1025, 4096, 4097, 16_384, 16_385];

/// Returns a text for people.
pub(crate) fn text(random: &mut SplitMix64) -> Value {
    match random.below(12) {
        0..=5 => json!(random.choose_one(TEXTS)),
        6 => json!(random.choose_one(FRAGMENTS)),
        7 => json!(random.choose_one(SECRETS)),
        8 => json!(random.choose_one(MIXED_DIRECTION_TEXTS)),
        9 => json!(""),
        _ => long_text(random),
    }
}

/// Returns a text near a length limit, made of characters of one to four bytes. Limits count code points
/// (C-A14).
fn long_text(random: &mut SplitMix64) -> Value {
    let length = *random.choose_one(LENGTHS);
    let character = *random.choose_one(&["a", "é", "好", "👍", "\n"]);
    json!(character.repeat(length - 1) + ".")
}

fn value_by_kind(name: &str, random: &mut SplitMix64) -> Value {
    if name.ends_with("_uri") {
        return json!(random.choose_one(URIS));
    }
    let values: &[&str] = match name {
        "verbosity" | "preferred_verbosity" | "default_verbosity" => &["terse", "normal", "detailed"],
        "urgency" => &["background", "normal", "critical", "critical"],
        "text_direction" => &["ltr", "rtl", "auto"],
        "error_category" => &["transient", "permanent", "requires_user", "unknown"],
        "cancelled_by" => &["user", "producer", "timeout", "system"],
        "risk_level" | "urgency_for_handoff" | "cognitive_load" => &["low", "medium", "high"],
        "status" => &["success", "error", "timeout"],
        "coalesce_hint" | "coalesce_boundaries" => &["none", "word", "sentence", "paragraph", "completion"],
        "default_decision" | "decision" => &["accept", "reject"],
        "reversibility" => &["reversible", "reversible_with_effort", "irreversible"],
        "target_kind" => &["human", "specialist_agent", "escalation_queue"],
        "irreversible" | "complete" | "recoverable" => return flag(random),
        _ if name.starts_with("supports_") || name.starts_with("accept_") => return flag(random),
        _ => return text(random),
    };
    pick_value(
        values,
        &["", "NORMAL", "Accept", "reversible_easy", "normal ", "none\n", "unknown_word"],
        random,
    )
}

fn flag(random: &mut SplitMix64) -> Value {
    random
        .choose_one(&[json!(true), json!(false), json!(true), json!(false), json!("true"), json!(1)])
        .clone()
}

fn pick_value(valid: &[&str], invalid: &[&str], random: &mut SplitMix64) -> Value {
    let values = if random.below(5) < 3 { valid } else { invalid };
    json!(random.choose_one(values))
}

fn id(prefix: &str, random: &mut SplitMix64) -> Value {
    json!(match random.below(12) {
        0 => format!("{prefix}8a3f5b22c91e4d7a"),
        1 => format!("{prefix}A"),
        2 => format!("{prefix}{}", "z9".repeat(32)),
        3 => format!("{prefix}{}", "Z".repeat(65)),
        4 => prefix.to_owned(),
        5 => prefix.to_uppercase() + "a1",
        6 => format!("{prefix}a\n"),
        7 => format!(" {prefix}a"),
        8 => format!("{prefix}a-b"),
        9 => format!("{prefix}\u{e9}\u{661}"),
        10 => "x".to_owned() + prefix + "a",
        _ => format!("{prefix}a_b"),
    })
}

fn integer(min: i64, max: i64, random: &mut SplitMix64) -> Value {
    match random.below(14) {
        0 => json!(min),
        1 => json!(max),
        2 => json!(min - 1),
        3 => json!(max + 1),
        4 => json!(min + 1),
        5 => json!(2.0),
        6 => json!(60.0),
        7 => json!(60.5),
        8 => json!(-0.0),
        9 => json!(1e300),
        10 => json!(u64::MAX),
        11 => json!(min.to_string()),
        12 => json!(i64::MIN),
        _ => json!(60),
    }
}

fn number(max: f64, random: &mut SplitMix64) -> Value {
    random
        .choose_one(&[
            json!(0),
            json!(1),
            json!(0.5),
            json!(max),
            json!(0.0),
            json!(-0.0),
            json!(max + 0.001),
            json!(max + 1.0),
            json!(-0.1),
            json!(1e300),
            json!("0.5"),
        ])
        .clone()
}

fn response(random: &mut SplitMix64) -> Value {
    match random.below(8) {
        0 => json!(true),
        1 => json!(-12.5),
        2 => json!(0),
        3 => json!(9_007_199_254_740_992_u64),
        4 => json!(9_007_199_254_740_993_u64),
        5 => arbitrary_value(random),
        _ => text(random),
    }
}

fn tag(random: &mut SplitMix64) -> Value {
    match random.below(4) {
        0 | 1 => json!(random.choose_one(TAGS)),
        2 => json!(random.choose_one(SCHEMA_ONLY_TAGS)),
        _ => json!(random.choose_one(INVALID_TAGS)),
    }
}
