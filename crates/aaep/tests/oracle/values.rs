//! Values for a member, by its name: right ones, wrong ones, and those at the edge.

use serde_json::{Value, json};

use crate::compounds::{choices, context, event_type, extensions, hints, progress};
use crate::pools::*;
use testing::random::Random;

/// A value that somebody could mean for the member `name`.
pub(crate) fn meant(name: &str, random: &mut Random) -> Value {
    match name {
        "@context" => context(random),
        "type" => event_type(random),
        "event_id" => id("evt_", random),
        "session_id" => id("sess_", random),
        "reply_token" => id("rpl_", random),
        "subscription_id" => id("sub_", random),
        "tool_call_id" => id("call_", random),
        "output_id" => id("out_", random),
        "timestamp" => json!(random.pick(TIMES).0),
        "aaep_version" => word(&["1.0.0", "0.1.0-draft"], VERSIONS, random),
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
        "chunk" if random.one_in(3) => json!(random.pick(FRAGMENTS)),
        "agent_id" => word(&["planner", "com.example.2fa", "gpt4-helper"], VERSIONED_AGENTS, random),
        "producer" => random
            .pick(&[
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
        "tool" => word(&["fetch_balance", "_x.y-z", "A"], TOOL_NAMES, random),
        "error_code" => word(&["AUTH_FAILED", "A1", "E_"], CODES, random),
        "cancellation_reason" | "reason_code" => word(REASONS, CODES, random),
        "content_type" => word(&["text/plain", "application/ld+json", "x/y"], MEDIA_TYPES, random),
        "script" => word(&["Latn", "Arab"], &["latn", "LATN", "Lat", "Latin", "L4tn", ""], random),
        "signed_manifest" => word(&["a.b.c", "a_-.b.c"], &["a.b", "a.b.", "a.b.c.d", "a.b.c=", ""], random),
        "extensions" => extensions(random),
        "extra_context" | "packaged_context" | "modified_action" => random
            .pick(&[json!({}), json!({"deep": {"er": [1, {"x": null}]}}), json!([]), json!("x")])
            .clone(),
        "progress" => progress(random),
        "localization_hints" => hints(random),
        "choices" => choices(random),
        "allowed_replies" => random
            .pick(&[
                json!(["accept", "reject"]),
                json!(["reject"]),
                json!(["accept"]),
                json!(["accept", "defer", "reject"]),
                json!(["reject", ""]),
                json!(["reject", "reject"]),
            ])
            .clone(),
        "event_filters" => random
            .pick(&[
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
            .pick(&[
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
            random.pick(&[json!(["1.0.0", "0.1.0-draft"]), json!(["1.0"]), json!([])]).clone()
        }
        _ => by_kind(name, random),
    }
}

/// A value that is right on its own for a member that means something for others.
pub(crate) fn right(name: &str, random: &mut Random) -> Option<Value> {
    let words: &[&str] = match name {
        "irreversible" | "complete" => return Some(json!(random.one_in(2))),
        "reversibility" => &["reversible", "reversible_with_effort", "irreversible"],
        "risk_level" => &["low", "medium", "high"],
        "default_decision" => &["accept", "reject"],
        "coalesce_hint" => &["none", "sentence", "completion"],
        "chunk" => FRAGMENTS,
        "step" | "total_steps" => return Some(json!(random.below(5) + 1)),
        _ => return None,
    };
    Some(json!(random.pick(words)))
}

/// A value that nobody means.
pub(crate) fn odd(random: &mut Random) -> Value {
    random
        .pick(&[
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

/// The item `at` of a long list for the member `name`, different from all others where that is possible.
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

/// How many items a list may have; where there is no limit, a number beyond all others.
pub(crate) fn longest_list(name: &str) -> usize {
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

const VERSIONS: &[&str] = &[
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
/// Names of agents with a version inside (§3.2.6.1), and the empty one.
pub(crate) const VERSIONED_AGENTS: &[&str] = &["planner-1.4.2", "planner_v2", "planner@3.0", "1.2.3", ""];
const TOOL_NAMES: &[&str] = &["", "1tool", "a b", "-x", "tool\n", "outil\u{e9}", "a/b", "a:b"];
const CODES: &[&str] =
    &["A", "a", "auth_failed", "1A", "A-B", "User", "a-b", "_a", "", "AUTH_FAILED\n", "a\n"];
const REASONS: &[&str] =
    &["user_pressed_escape", "u1", "rate_limit", "unknown", "version_unsupported", "new_code"];
const MEDIA_TYPES: &[&str] = &[
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

/// Lengths at which some text changes from lawful to not.
const LENGTHS: &[usize] = &[1, 64, 65, 256, 257, 1024, 1025, 4096, 4097, 16_384, 16_385];

/// A text for people.
pub(crate) fn text(random: &mut Random) -> Value {
    match random.below(12) {
        0..=5 => json!(random.pick(TEXTS)),
        6 => json!(random.pick(FRAGMENTS)),
        7 => json!(random.pick(SECRETS)),
        8 => json!(random.pick(BOTH_WAYS)),
        9 => json!(""),
        _ => long(random),
    }
}

/// A text at a limit, of characters of one to four bytes: limits count code points (C-A14).
fn long(random: &mut Random) -> Value {
    let length = *random.pick(LENGTHS);
    let letter = *random.pick(&["a", "é", "好", "👍", "\n"]);
    json!(letter.repeat(length - 1) + ".")
}

fn by_kind(name: &str, random: &mut Random) -> Value {
    if name.ends_with("_uri") {
        return json!(random.pick(URIS));
    }
    let words: &[&str] = match name {
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
    word(words, &["", "NORMAL", "Accept", "reversible_easy", "normal ", "none\n", "unknown_word"], random)
}

fn flag(random: &mut Random) -> Value {
    random.pick(&[json!(true), json!(false), json!(true), json!(false), json!("true"), json!(1)]).clone()
}

fn word(right: &[&str], wrong: &[&str], random: &mut Random) -> Value {
    let words = if random.below(5) < 3 { right } else { wrong };
    json!(random.pick(words))
}

fn id(prefix: &str, random: &mut Random) -> Value {
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

fn integer(min: i64, max: i64, random: &mut Random) -> Value {
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

fn number(max: f64, random: &mut Random) -> Value {
    random
        .pick(&[
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

fn response(random: &mut Random) -> Value {
    match random.below(8) {
        0 => json!(true),
        1 => json!(-12.5),
        2 => json!(0),
        3 => json!(9_007_199_254_740_992_u64),
        4 => json!(9_007_199_254_740_993_u64),
        5 => odd(random),
        _ => text(random),
    }
}

fn tag(random: &mut Random) -> Value {
    match random.below(4) {
        0 | 1 => json!(random.pick(TAGS)),
        2 => json!(random.pick(LOOSE_TAGS)),
        _ => json!(random.pick(BAD_TAGS)),
    }
}
