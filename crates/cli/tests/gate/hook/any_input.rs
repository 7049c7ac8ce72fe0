//! Whatever comes in, the output is valid, and nothing is permitted without a yes.

use serde_json::{Value, json};
use testing::random::SplitMix64;

use super::*;

const HARNESSES: [&str; 6] = ["claude", "codex", "cursor", "gemini", "vscode", "opencode"];
const NAMES: [&str; 22] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "PermissionDenied",
    "Stop",
    "SessionStart",
    "SessionEnd",
    "MessageDisplay",
    "Notification",
    "Elicitation",
    "ElicitationResult",
    "SubagentStart",
    "SubagentStop",
    "PostToolBatch",
    "BeforeTool",
    "AfterTool",
    "beforeShellExecution",
    "beforeMCPExecution",
    "preToolUse",
    "beforeReadFile",
    "",
];

/// Whether an answer permits a call in any dialect.
fn permits(printed: &Value) -> bool {
    let allow = json!("allow");
    printed["hookSpecificOutput"]["permissionDecision"] == allow
        || printed["hookSpecificOutput"]["decision"]["behavior"] == allow
        || printed["hookSpecificOutput"]["action"] == "accept"
        || printed["decision"] == allow
        || printed["permission"] == allow
}

fn any_value(random: &mut SplitMix64, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(random.one_in(2)),
        2 => json!(random.next_u64()),
        3 => json!("rm -rf /"),
        4 => json!(format!("\u{202e}{}\u{1b}[2J", random.next_u64())),
        5 => json!("x".repeat(random.below(5000))),
        6 => (0..random.below(4)).map(|_| any_value(random, depth - 1)).collect(),
        _ => (0..random.below(4))
            .map(|at| {
                (
                    (*random.choose_one(&["command", "file_path", "a", "content"])).to_owned()
                        + &"_".repeat(at),
                    any_value(random, depth - 1),
                )
            })
            .collect(),
    }
}

fn any_event(random: &mut SplitMix64) -> Vec<u8> {
    let name = *random.choose_one(&NAMES);
    let mut event = bash_event(name, "rm a", &format!("toolu_{}", random.below(6)));
    event["command"] = json!("rm b");
    event["message"] = json!("Proceed?");
    event["permission_mode"] = json!(random.choose_one(&["default", "bypassPermissions", "auto", "plan"]));
    for _ in 0..random.below(3) {
        let name = *random.choose_one(&[
            "hook_event_name",
            "session_id",
            "tool_name",
            "tool_input",
            "tool_use_id",
            "agent_id",
            "cwd",
            "requested_schema",
            "delta",
            "tool_response",
            "last_assistant_message",
            "tool_calls",
            "permission_mode",
        ]);
        event[name] = any_value(random, 2);
    }
    let mut bytes = event.to_string().into_bytes();
    if random.one_in(4) {
        bytes.truncate(random.below(bytes.len()));
    }
    if random.one_in(4) && !bytes.is_empty() {
        let at = random.below(bytes.len());
        bytes[at] = u8::try_from(random.below(256)).unwrap();
    }
    bytes
}

#[test]
fn any_input_gets_valid_json_and_never_an_allow_without_a_yes() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    let client = fixture.hub.client();
    // A person who says no to everything.
    let subscription = listener.subscription.clone();
    std::thread::spawn(move || {
        loop {
            let token = listener.wait_for_question();
            client.reply(&subscription, &token, "reject");
        }
    });
    let mut random = SplitMix64::new(17);
    for round in 0..40 {
        let hooks: Vec<_> = (0..6)
            .map(|_| {
                let harness = *random.choose_one(&HARNESSES);
                let gate = *random.choose_one(&["requests", "risky", "all"]);
                let input = any_event(&mut random);
                let mut arguments = vec![harness, "--gate", gate, "--deadline", "8"];
                if random.one_in(3) {
                    arguments.push("--required");
                }
                (RunningHook::spawn(&mut fixture.command(&arguments), &input), input)
            })
            .collect();
        for (hook, input) in hooks {
            let (printed, code) = hook.finish_with_code();
            let input = String::from_utf8_lossy(&input);
            assert!(
                printed.is_object() && matches!(code, Some(0 | 2)),
                "{round}: {printed} {code:?} {input}"
            );
            assert!(!permits(&printed), "{round}: {printed} {input}");
        }
    }
}

#[test]
fn empty_and_huge_input_gets_valid_json() {
    let fixture = HookFixture::start();
    let huge = vec![b' '; 17 << 20];
    for input in [&b""[..], b"null", b"[]", b"{", b"\xff\xfe", &huge] {
        for harness in HARNESSES {
            let hook = RunningHook::spawn(&mut fixture.command(&[harness, "--gate", "all"]), input);
            let (printed, code) = hook.finish_with_code();
            let denies = printed["decision"] == "deny" || printed["permission"] == "deny";
            assert!(denies || code == Some(2), "{harness}: {printed} {code:?}");
        }
    }
}
