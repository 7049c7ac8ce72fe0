//! A producer that tries to control the terminal, to forge lines or to flood the listener.

use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

/// Texts that try to control the terminal, hide themselves or imitate another line.
const HOSTILE_TEXTS: [&str; 14] = [
    "\u{1b}[2J\u{1b}[1;1Hask: Question 1 from Bank.",
    "\u{1b}]0;pwned\u{7}",
    "\u{9b}2J\u{9d}0;x\u{9c}",
    "a\rask: Type yes.",
    "a\nask: Type yes.\nerror: b",
    "a\u{85}ask: b\u{2028}ask: c\u{2029}ask: d",
    "a\u{b}ask: b\u{c}ask: c",
    "\u{202e}.neppah rever lliw sihT\u{202c}",
    "\u{2066}\u{2067}\u{2068}x\u{2069}\u{200f}",
    "\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}ask: x",
    "x                                                                               ask: Type yes.",
    "ask\u{200b}\u{ff1a} Type yes. ASK: now. \u{e0061}\u{e0073}",
    "\u{1b}P+q\u{1b}\\\u{1b}_x\u{1b}\\\u{1b}^y\u{1b}\\",
    "<script>alert(1)</script> & \u{0}",
];

#[test]
fn producer_text_cannot_control_the_terminal_or_forge_lines() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &["--verbosity", "detailed"]);
    let agent = AgentSession::start(hub.client());
    for (number, text) in HOSTILE_TEXTS.iter().enumerate() {
        let text = serde_json::Value::from(*text).to_string();
        agent.publish(&format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","summary_normal":{text}}}"#
        ));
        agent.publish(&format!(
            r#"{{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_{number}","status":"error","error_message":{text}}}"#
        ));
        agent.publish(&format!(
            r#"{{"type":"aaep:agent.output.streaming","chunk":{text},"position":0,"complete":true,"output_id":"out_{number}"}}"#
        ));
        let question = format!(
            r#"{{"action":{text},"consequence":{text},"timeout_seconds":120,"default_decision":"reject","summary_normal":{text}}}"#
        );
        let response =
            agent.client.post(&format!("/agent/v1/sessions/{}/confirmations", agent.session_id), &question);
        assert_eq!(response.status, 201, "{response:?}");
    }
    agent.publish(
        r#"{"type":"aaep:agent.session.cancelled","cancelled_by":"producer","summary_normal":"Done."}"#,
    );
    person.read_until("session: local stopped by itself.");
    let screen = String::from_utf8(person.raw_output.clone()).unwrap();
    let is_active = |c: &char| {
        c.is_control() && !matches!(c, '\r' | '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
    };
    assert_eq!(screen.chars().find(is_active), None);
    let mut questions = 0;
    for line in screen.lines() {
        let (label, rest) =
            line.split_once(": ").unwrap_or_else(|| panic!("no label at the start of {line:?}"));
        assert!(
            ["notice", "session", "agent", "tool", "ask", "answer", "error", "progress"].contains(&label),
            "{line:?}"
        );
        // Only questions have the label `ask`, and no line contains text that looks like the start of another line.
        assert!(!rest.to_lowercase().contains("ask:"), "{line:?}");
        assert!(!rest.contains("  "), "{line:?}");
        questions += usize::from(label == "ask" && rest.starts_with("Question "));
    }
    // The first question has no number, because no other is open.
    assert_eq!(questions, HOSTILE_TEXTS.len() - 1);
    assert!(screen.contains("<script>alert(1)</script> & \\u{0}"));
}

#[test]
fn a_question_amid_a_flood_of_events_is_asked_and_answered() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let publish_batch = |from: u32| {
        let calls: Vec<_> = (from..from + 100)
            .flat_map(|number| {
                [
                    format!(r#"{{"type":"aaep:agent.tool.invoked","tool":"t","tool_call_id":"call_{number}","summary_normal":"Call {number} begins."}}"#),
                    format!(r#"{{"type":"aaep:agent.tool.completed","tool":"t","tool_call_id":"call_{number}","status":"success","summary_normal":"Call {number} ends."}}"#),
                ]
            })
            .collect();
        let path = format!("/agent/v1/sessions/{}/events", agent.session_id);
        let response =
            agent.client.with_header("Content-Type: application/x-ndjson").post(&path, &calls.join("\n"));
        assert_eq!(response.status, 200, "{response:?}");
    };
    (0..20).for_each(|at| publish_batch(at * 100));
    let token = agent.ask_confirmation();
    (20..40).for_each(|at| publish_batch(at * 100));
    let mut lines = person.read_until("ask: Yes or no?");
    person.type_line("reject");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"reject","by":"reply""#));
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    lines.extend(person.read_until("session: local has finished."));
    let tool_lines: Vec<_> = lines.iter().filter(|line| line.starts_with("tool: ")).collect();
    let expected: Vec<_> = (0..4000)
        .flat_map(|number| [format!("tool: Call {number} begins."), format!("tool: Call {number} ends.")])
        .collect();
    assert_eq!(tool_lines.len(), expected.len());
    assert!(tool_lines.into_iter().eq(expected.iter()));
}
