//! A producer that means harm.

use testing::hub::Hub;
use testing::terminal::{Agent, Person};

/// Texts that would act on a terminal, hide, or pass for something else.
const TEXTS: [&str; 14] = [
    "\u{1b}[2J\u{1b}[1;1Hask: Question 1, from Bank.",
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
fn nothing_that_a_producer_says_acts_on_the_terminal_or_passes_for_a_line_of_ours() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &["--verbosity", "detailed"]);
    let agent = Agent::starts(hub.client());
    for (number, text) in TEXTS.iter().enumerate() {
        let text = serde_json::Value::from(*text).to_string();
        agent.says(&format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_{number}","summary_normal":{text}}}"#
        ));
        agent.says(&format!(
            r#"{{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_{number}","status":"error","error_message":{text}}}"#
        ));
        agent.says(&format!(
            r#"{{"type":"aaep:agent.output.streaming","chunk":{text},"position":0,"complete":true,"output_id":"out_{number}"}}"#
        ));
        let question = format!(
            r#"{{"action":{text},"consequence":{text},"timeout_seconds":120,"default_decision":"reject","summary_normal":{text}}}"#
        );
        let asked =
            agent.client.post(&format!("/agent/v1/sessions/{}/confirmations", agent.session), &question);
        assert_eq!(asked.status, 201, "{asked:?}");
    }
    agent.says(
        r#"{"type":"aaep:agent.session.cancelled","cancelled_by":"producer","summary_normal":"Done."}"#,
    );
    person.hears("session: local has stopped by itself.");
    let screen = String::from_utf8(person.bytes.clone()).unwrap();
    let acting = |c: &char| {
        c.is_control() && !matches!(c, '\r' | '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
    };
    assert_eq!(screen.chars().find(acting), None);
    let mut asked = 0;
    for line in screen.lines() {
        let (word, rest) = line.split_once(": ").unwrap_or_else(|| panic!("no word in front of {line:?}"));
        assert!(
            ["notice", "session", "agent", "tool", "ask", "answer", "error", "progress"].contains(&word),
            "{line:?}"
        );
        // Only what is asked says so, and nowhere in a line does another seem to begin.
        assert!(!rest.to_lowercase().contains("ask:"), "{line:?}");
        assert!(!rest.contains("  "), "{line:?}");
        asked += usize::from(word == "ask" && rest.starts_with("Question "));
    }
    assert_eq!(asked, TEXTS.len());
    assert!(screen.contains("<script>alert(1)</script> & \\u{0}"));
}

#[test]
fn a_question_in_the_middle_of_a_flood_is_asked_and_answered() {
    let hub = Hub::open();
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    let batch = |from: u32| {
        let calls: Vec<_> = (from..from + 100)
            .flat_map(|number| {
                [
                    format!(r#"{{"type":"aaep:agent.tool.invoked","tool":"t","tool_call_id":"call_{number}","summary_normal":"Call {number} begins."}}"#),
                    format!(r#"{{"type":"aaep:agent.tool.completed","tool":"t","tool_call_id":"call_{number}","status":"success","summary_normal":"Call {number} ends."}}"#),
                ]
            })
            .collect();
        let path = format!("/agent/v1/sessions/{}/events", agent.session);
        let answer = agent.client.with("Content-Type: application/x-ndjson").post(&path, &calls.join("\n"));
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    (0..20).for_each(|at| batch(at * 100));
    let token = agent.asks();
    (20..40).for_each(|at| batch(at * 100));
    let mut heard = person.hears("ask: Type the whole word");
    person.types("reject");
    assert!(agent.waits(&token, 30).contains(r#""decision":"reject","by":"reply""#));
    agent.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"Told."}"#);
    heard.extend(person.hears("session: local is done."));
    let told: Vec<_> = heard.iter().filter(|line| line.starts_with("tool: ")).collect();
    let expected: Vec<_> = (0..4000)
        .flat_map(|number| [format!("tool: Call {number} begins."), format!("tool: Call {number} ends.")])
        .collect();
    assert_eq!(told.len(), expected.len());
    assert!(told.into_iter().eq(expected.iter()));
}
