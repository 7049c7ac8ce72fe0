//! A recording in the terminal.

use crate::replay::recorder::{Recorder, recording};
use testing::cli::sayso;
use testing::hub::Hub;
use testing::terminal::{Agent, Person};

#[test]
fn a_replay_says_what_the_listener_heard() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = Hub::open();
    let recorder = Recorder::starts(&format!("http://{}", hub.address), &file, &["--verbosity", "normal"]);
    let mut person = Person::is_there(&hub.address, &[]);
    let agent = Agent::starts(hub.client());
    agent.says(r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#);
    agent.says(
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":50},"summary_normal":"Half of it."}"#,
    );
    agent.says(
        r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_1","status":"success"}"#,
    );
    for piece in ["There are ", "three things. The la", "st one is ", "new"] {
        agent.writes(piece, false);
    }
    agent.writes(".", true);
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("no");
    assert!(agent.waits(&token, 30).contains("reject"));
    agent.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    let mut heard = vec!["session: local has begun. Moving money.".to_owned()];
    let screen = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    person.hears("is done. Done.");
    heard.extend(
        screen(&person.bytes)
            .lines()
            .skip_while(|line| !line.contains("has begun"))
            .skip(1)
            .map(str::to_owned),
    );
    recorder.has("session.completed", 1);
    assert_eq!(recorder.stop("-TERM").0, Some(0));

    let told = sayso(&["replay", "--speed", "max", file.to_str().unwrap()], "");
    assert_eq!(told.code, 0, "{}", told.err);
    let told: Vec<_> = told.out.lines().skip(1).map(str::to_owned).collect();
    // What was for the one who could answer then is told as it was.
    let as_told = |line: String| match line.trim_end() {
        "ask: You have 2 minutes. Without an answer it is not done." => {
            Some("ask: There were 2 minutes to answer. Without an answer it is not done.".to_owned())
        }
        "ask: Type the whole word accept or yes to allow it, or reject or no to refuse it." => {
            Some("ask: This is a recording: it cannot be answered now.".to_owned())
        }
        "answer: Your answer to question 1 counts: it is not done." => {
            Some("answer: The answer to question 1 counted: it is not done.".to_owned())
        }
        line if line.starts_with("answer: You say") => None,
        line => Some(line.to_owned()),
    };
    let heard: Vec<_> = heard.into_iter().filter_map(as_told).collect();
    assert_eq!(told, heard);
}

#[test]
fn a_recorded_session_is_told_whole() {
    let told = sayso(&["replay", "--speed", "max", recording("section-4-6").to_str().unwrap()], "");
    assert_eq!(told.code, 0);
    assert_eq!(
        told.out.lines().skip(1).collect::<Vec<_>>(),
        [
            "session: Banking Assistant has begun. I will check your balance and move 500 dollars to savings.",
            "tool: Using the tool fetch balance.",
            "tool: The tool fetch balance has answered.",
            "ask: Question 1, from Banking Assistant: Please confirm: transfer 500 dollars from checking to savings. It cannot be undone.",
            "ask: What it would do: Transfer $500.00 from checking to savings.",
            "ask: What follows from it: The money moves at once. To undo it, the bank has to step in.",
            "ask: The risk is high, and it can never be undone.",
            "ask: There were 60 seconds to answer. Without an answer it is not done.",
            "ask: This is a recording: it cannot be answered now.",
            "answer: Question 1 was answered: accept.",
            "tool: Using the tool transfer funds. This can never be undone.",
            "tool: The tool transfer funds has answered.",
            "agent: Transferred $500 successfully.",
            "agent: New balance: $12,000.",
            "session: Banking Assistant is done. Everything that you asked for is done.",
        ]
    );
    let first = told.out.lines().next().unwrap();
    assert!(first.starts_with("notice: This is a recording, "), "{first}");
    assert!(first.ends_with("Its questions are history: they cannot be answered."), "{first}");
}

#[test]
fn a_state_that_lasted_is_told_whatever_the_speed() {
    // The clock of the recording decides, not the one on the wall: nothing here takes 60 seconds.
    let event = |number: u32, at: &str, kind: &str, more: &str| {
        format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{number:032}","session_id":"sess_00000000000000000000000000000001","timestamp":"2026-05-24T14:{at}Z","producer":{{"agent_id":"bank"}},"urgency":"normal",{more}}}"#
        )
    };
    let text = [
        event(1, "22:00.000", "session.started", r#""summary_normal":"Off we go.""#),
        event(2, "22:01.000", "state.changed", r#""from_state":"idle","to_state":"thinking""#),
        event(3, "23:01.000", "session.completed", r#""summary_normal":"There we are.""#),
    ]
    .join("\n");
    for speed in ["max", "1000"] {
        let told = sayso(&["replay", "-", "--speed", speed], &text);
        assert_eq!(told.code, 0);
        assert_eq!(
            told.out.lines().skip(1).collect::<Vec<_>>(),
            [
                "session: bank has begun. Off we go.",
                "agent: bank is thinking.",
                "session: bank is done. There we are."
            ]
        );
    }
    assert_eq!(sayso(&["replay", "-", "--speed", "0"], &text).code, 2);
}
