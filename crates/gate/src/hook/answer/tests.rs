#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use super::*;

/// Events as the harnesses write them, shortened. Those of Claude Code 2.1.325, Codex 0.166.0 and Gemini CLI 0.61.0 follow
/// recordings; those of Cursor and VS Code follow their documentation.
const CLAUDE_REQUEST: &str = r#"{"session_id":"6b91","transcript_path":"/t.jsonl","cwd":"/w","prompt_id":"p","permission_mode":"default","effort":{"level":"medium"},"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"touch m","description":"Make marker"},"permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]}"#;
const CLAUDE_CALL: &str = r#"{"session_id":"6b91","cwd":"/w","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"touch m"},"tool_use_id":"toolu_1"}"#;
const CLAUDE_ELICITATION: &str = r#"{"session_id":"6b91","cwd":"/w","hook_event_name":"Elicitation","mcp_server_name":"fake","message":"Proceed?","mode":"form","requested_schema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}"#;
const CODEX_REQUEST: &str = r#"{"session_id":"01a1","turn_id":"t","cwd":"/w","hook_event_name":"PermissionRequest","model":"m","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"touch m","description":"May I?"}}"#;
const CODEX_CALL: &str = r#"{"session_id":"01a1","turn_id":"t","cwd":"/w","hook_event_name":"PreToolUse","model":"m","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"touch m"},"tool_use_id":"call_1"}"#;
const GEMINI_CALL: &str = r#"{"session_id":"3e76","cwd":"/w","hook_event_name":"BeforeTool","timestamp":"2026-11-16T06:23:58.287Z","tool_name":"run_shell_command","tool_input":{"command":"touch m","description":"Make marker"}}"#;
const CURSOR_SHELL: &str = r#"{"conversation_id":"c1","generation_id":"g1","hook_event_name":"beforeShellExecution","workspace_roots":["/w"],"command":"touch m","cwd":""}"#;
const CURSOR_MCP: &str = r#"{"conversation_id":"c1","generation_id":"g1","hook_event_name":"beforeMCPExecution","workspace_roots":["/w"],"tool_name":"send","tool_input":"{\"to\":\"Ben\"}","command":"server"}"#;
const VSCODE_CALL: &str = r#"{"timestamp":"2026-02-09T10:30:00.000Z","cwd":"/w","sessionId":"s1","hookEventName":"PreToolUse","transcript_path":"/t","tool_name":"editFiles","tool_input":{"files":["src/main.ts"]},"tool_use_id":"tool-123"}"#;
const OPENCODE_CALL: &str = r#"{"hook_event_name":"PreToolUse","session_id":"ses_1","cwd":"/w","tool_name":"bash","tool_input":{"command":"touch m"},"tool_use_id":"call_1"}"#;
const OPENCODE_REQUEST: &str = r#"{"hook_event_name":"PermissionRequest","session_id":"ses_1","cwd":"/w","tool_name":"bash","tool_input":{"command":"touch m"},"tool_use_id":"call_1"}"#;

fn printed(harness: Harness, event: &str, answer: &HookAnswer) -> String {
    let printed = write(&HookEvent::parse(harness, event).unwrap(), answer);
    assert_eq!(printed.exit_code, 0);
    printed.json
}

#[test]
fn answers_are_in_the_dialect_of_the_harness() {
    use Harness::*;
    let request = r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"#;
    let call = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"#;
    let claude_allow = format!(
        r#"{call}"allow","permissionDecisionReason":"A person permitted this call through sayso."}}}}"#
    );
    let claude_deny = format!(r#"{call}"deny","permissionDecisionReason":"No."}}}}"#);
    let claude_ask = format!(r#"{call}"ask","permissionDecisionReason":"No."}}}}"#);
    let request_allow = format!(r#"{request}"allow"}}}}}}"#);
    let request_deny = format!(r#"{request}"deny","message":"No."}}}}}}"#);
    let cursor = |permission: &str| {
        format!(r#"{{"permission":"{permission}","user_message":"No.","agent_message":"No."}}"#)
    };
    // Each row: the event, and the answers for a yes, a no, "nobody could be asked" and no opinion.
    for (harness, event, [allow, deny, own_prompt, no_opinion]) in [
        (Claude, CLAUDE_REQUEST, [request_allow.as_str(), &request_deny, "{}", "{}"]),
        (Claude, CLAUDE_CALL, [&claude_allow, &claude_deny, &claude_ask, "{}"]),
        (Codex, CODEX_REQUEST, [&request_allow, &request_deny, "{}", "{}"]),
        (Codex, CODEX_CALL, ["{}", &claude_deny, &claude_deny, "{}"]),
        (VsCode, VSCODE_CALL, [&claude_allow, &claude_deny, &claude_ask, "{}"]),
        (
            Gemini,
            GEMINI_CALL,
            [
                r#"{"decision":"allow"}"#,
                r#"{"decision":"deny","reason":"No."}"#,
                r#"{"decision":"ask","reason":"No."}"#,
                "{}",
            ],
        ),
        (Cursor, CURSOR_SHELL, [r#"{"permission":"allow"}"#, &cursor("deny"), &cursor("ask"), "{}"]),
        (Cursor, CURSOR_MCP, [r#"{"permission":"allow"}"#, &cursor("deny"), &cursor("ask"), "{}"]),
        (
            OpenCode,
            OPENCODE_CALL,
            [
                r#"{"decision":"allow"}"#,
                r#"{"decision":"deny","reason":"No."}"#,
                r#"{"decision":"deny","reason":"No."}"#,
                r#"{"decision":"none"}"#,
            ],
        ),
        (
            OpenCode,
            OPENCODE_REQUEST,
            [
                r#"{"decision":"allow"}"#,
                r#"{"decision":"deny","reason":"No."}"#,
                r#"{"decision":"none"}"#,
                r#"{"decision":"none"}"#,
            ],
        ),
    ] {
        let own = HookAnswer::OwnPrompt { reason: "No.".to_owned() };
        assert_eq!(printed(harness, event, &HookAnswer::Allow), allow, "{event}");
        assert_eq!(printed(harness, event, &HookAnswer::deny("No.")), deny, "{event}");
        assert_eq!(printed(harness, event, &own), own_prompt, "{event}");
        assert_eq!(printed(harness, event, &HookAnswer::NoOpinion), no_opinion, "{event}");
    }
}

#[test]
fn codex_is_never_told_to_interrupt_because_it_would_ignore_the_answer() {
    let stop = HookAnswer::Deny { reason: "No.".to_owned(), is_stop: true };
    assert!(printed(Harness::Claude, CLAUDE_REQUEST, &stop).contains(r#""interrupt":true"#));
    assert!(!printed(Harness::Codex, CODEX_REQUEST, &stop).contains("interrupt"));
}

#[test]
fn an_elicitation_gets_its_content() {
    let answer = HookAnswer::Elicited { content: r#"{"ok":true}"#.to_owned() };
    assert_eq!(
        printed(Harness::Claude, CLAUDE_ELICITATION, &answer),
        r#"{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{"ok":true}}}"#
    );
    assert_eq!(
        printed(Harness::Claude, CLAUDE_ELICITATION, &HookAnswer::ElicitationDeclined),
        r#"{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"decline"}}"#
    );
}

/// In these modes Claude Code does not ask, so "ask" would not stop the call.
#[test]
fn a_mode_without_prompts_gets_a_no_instead_of_ask() {
    for mode in ["bypassPermissions", "dontAsk", "auto"] {
        let event = CLAUDE_CALL.replace("default", mode);
        let own = HookAnswer::OwnPrompt { reason: "No.".to_owned() };
        assert!(printed(Harness::Claude, &event, &own).contains(r#""permissionDecision":"deny""#), "{mode}");
    }
}

#[test]
fn the_same_command_has_the_same_digest_in_a_call_and_in_a_request() {
    let digest = |harness, event: &str| HookEvent::parse(harness, event).unwrap().call.unwrap().digest;
    assert_eq!(digest(Harness::Codex, CODEX_CALL), digest(Harness::Codex, CODEX_REQUEST));
    assert_eq!(digest(Harness::OpenCode, OPENCODE_CALL), digest(Harness::OpenCode, OPENCODE_REQUEST));
    assert_ne!(
        digest(Harness::Codex, CODEX_CALL),
        digest(Harness::Codex, &CODEX_CALL.replace("touch m", "touch n"))
    );
}

/// A yes to a call must not cover another call, so only a comment may differ.
#[test]
fn a_description_is_a_part_of_the_call_unless_it_only_comments_on_a_shell_command() {
    let digest = |harness, tool: &str, description: &str| {
        let event = CLAUDE_CALL.replace("\"Bash\"", &format!("\"{tool}\"")).replace(
            r#"{"command":"touch m"}"#,
            &format!(r#"{{"command":"send","description":"{description}"}}"#),
        );
        let event =
            if harness == Harness::Gemini { event.replace("PreToolUse", "BeforeTool") } else { event };
        HookEvent::parse(harness, &event).unwrap().call.unwrap().digest
    };
    for (harness, tool, is_comment) in [
        (Harness::Claude, "Bash", true),
        (Harness::Codex, "Bash", true),
        (Harness::Gemini, "run_shell_command", true),
        (Harness::OpenCode, "bash", true),
        (Harness::Claude, "bash", false),
        (Harness::Claude, "mcp__jira__create", false),
        (Harness::Claude, "run_shell_command", false),
        (Harness::Codex, "mcp__jira__create", false),
        (Harness::Gemini, "jira_create", false),
        (Harness::OpenCode, "jira_create", false),
        (Harness::VsCode, "run_in_terminal", false),
    ] {
        let is_same = digest(harness, tool, "a") == digest(harness, tool, "b");
        assert_eq!(is_same, is_comment, "{harness:?} {tool}");
    }
}
