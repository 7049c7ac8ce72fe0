//! `sayso replay` in the terminal.

use crate::replay::capture_process::{CaptureProcess, repository_recording};
use testing::cli::run_sayso;
use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

#[test]
fn a_replay_prints_what_the_listener_heard() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let hub = HubProcess::start_in_memory();
    let recorder = CaptureProcess::start_connected(
        &format!("http://{}", hub.address),
        &file,
        &["--verbosity", "normal"],
    );
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    agent.publish(r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#);
    agent.publish(
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":50},"summary_normal":"Half of it."}"#,
    );
    agent.publish(
        r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_1","status":"success"}"#,
    );
    for chunk in ["There are ", "three things. The la", "st one is ", "new"] {
        agent.write_output(chunk, false);
    }
    agent.write_output(".", true);
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("no");
    assert!(agent.wait_for_reply(&token, 30).contains("reject"));
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    person.read_until("has finished. Done.");
    let printed = String::from_utf8(person.raw_output.clone()).unwrap();
    let mut live = vec!["session: local has started. Moving money.".to_owned()];
    live.extend(printed.lines().skip_while(|line| !line.contains("has started")).skip(1).map(str::to_owned));
    recorder.wait_for_occurrences("session.completed", 1);
    assert_eq!(recorder.stop("-TERM").0, Some(0));

    let replayed = run_sayso(&["replay", "--speed", "max", file.to_str().unwrap()], "");
    assert_eq!(replayed.exit_code, 0, "{}", replayed.stderr);
    let replayed: Vec<_> = replayed.stdout.lines().skip(1).map(str::to_owned).collect();
    // A replay words these lines differently, because nobody can answer.
    let as_replayed = |line: String| match line.trim_end() {
        "ask: You have 2 minutes." => {
            Some("ask: The time limit was 2 minutes. Without an answer, it will not be done.".to_owned())
        }
        "ask: local: Send 5 euros to Ben." => {
            Some("ask: Question 1 from local: Send 5 euros to Ben.".to_owned())
        }
        "ask: Yes or no?" => Some("ask: This is a recording, so you cannot answer.".to_owned()),
        "answer: Rejected." => Some("answer: Question 1 was answered: rejected.".to_owned()),
        "answer: Question 1: no." => None,
        line => Some(line.to_owned()),
    };
    let live: Vec<_> = live.into_iter().filter_map(as_replayed).collect();
    assert_eq!(replayed, live);
}

#[test]
fn a_recorded_session_is_printed_completely() {
    let output =
        run_sayso(&["replay", "--speed", "max", repository_recording("section-4-6").to_str().unwrap()], "");
    assert_eq!(output.exit_code, 0);
    assert_eq!(
        output.stdout.lines().skip(1).collect::<Vec<_>>(),
        [
            "session: Banking Assistant has started. I will check your balance and move 500 dollars to savings.",
            "tool: Using the tool fetch balance.",
            "tool: The tool fetch balance has finished.",
            "ask: Question 1 from Banking Assistant: Transfer $500.00 from checking to savings.",
            "ask: The money moves at once. To undo it, the bank has to step in.",
            "ask: This cannot be undone. Your answer is not tied to one exact call.",
            "ask: The time limit was 1 minute. Without an answer, it will not be done.",
            "ask: This is a recording, so you cannot answer.",
            "answer: Question 1 was answered: accepted.",
            "tool: Using the tool transfer funds. This cannot be undone.",
            "tool: The tool transfer funds has finished.",
            "agent: Transferred $500 successfully.",
            "agent: New balance: $12,000.",
            "session: Banking Assistant has finished. Everything that you asked for is done.",
        ]
    );
    let first = output.stdout.lines().next().unwrap();
    assert!(first.starts_with("notice: This is a recording: "), "{first}");
    assert!(first.ends_with("Its questions cannot be answered."), "{first}");
}

#[test]
fn a_long_state_is_announced_at_any_speed() {
    // The replay uses the timestamps of the recording as its clock, so this test does not take 60 seconds.
    let event = |number: u32, at: &str, kind: &str, members: &str| {
        format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{number:032}","session_id":"sess_00000000000000000000000000000001","timestamp":"2026-05-24T14:{at}Z","producer":{{"agent_id":"bank"}},"urgency":"normal",{members}}}"#
        )
    };
    let text = [
        event(1, "22:00.000", "session.started", r#""summary_normal":"Off we go.""#),
        event(2, "22:01.000", "state.changed", r#""from_state":"idle","to_state":"thinking""#),
        event(3, "23:01.000", "session.completed", r#""summary_normal":"There we are.""#),
    ]
    .join("\n");
    for speed in ["max", "1000"] {
        let output = run_sayso(&["replay", "-", "--speed", speed], &text);
        assert_eq!(output.exit_code, 0);
        assert_eq!(
            output.stdout.lines().skip(1).collect::<Vec<_>>(),
            [
                "session: bank has started. Off we go.",
                "agent: bank is thinking.",
                "session: bank has finished. There we are."
            ]
        );
    }
    assert_eq!(run_sayso(&["replay", "-", "--speed", "0"], &text).exit_code, 2);
}
