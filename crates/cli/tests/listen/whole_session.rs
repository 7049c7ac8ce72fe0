//! The complete output of a session.

use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

#[test]
fn a_session_is_printed_line_by_line() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start(&hub.address, &["--verbosity", "detailed"]);
    assert_eq!(
        person.next_line().unwrap(),
        "notice: The hub calls itself sayso-hub; there is no key to check that."
    );
    assert_eq!(
        person.next_line().unwrap(),
        format!("notice: Listening to http://{}. Type help for the commands.", hub.address)
    );
    let agent = AgentSession::start(hub.client());
    agent.publish(r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#);
    agent.publish(r#"{"type":"aaep:agent.state.changed","to_state":"writing_output"}"#);
    for chunk in [
        "Your ",
        "balance",
        " is $3",
        ".",
        "50 to",
        "day. ",
        "You owe Ben",
        " 5 euros",
        ".\n\n",
        "Shall I pay?",
    ] {
        agent.write_output(chunk, false);
    }
    agent.write_output("", true);
    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    person.type_line("yes");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept""#));
    agent.publish(r#"{"type":"aaep:agent.tool.invoked","tool":"send","irreversible":true,"risk_level":"high","arguments":{"amount":"5.00"},"summary_normal":"Sending 5 euros to Ben.","tool_call_id":"call_1"}"#);
    agent.publish(r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2}}"#);
    agent.publish(
        r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_1","status":"success"}"#,
    );
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Ben has his money."}"#);
    person.read_until("session: local has finished.");
    person.type_line("quit");
    let screen = String::from_utf8(person.raw_output.clone()).unwrap();
    let (rest, code) = person.wait_for_exit();
    assert_eq!((rest, code), (vec!["notice: You are no longer listening.".to_owned()], 0));
    let lines: Vec<_> = screen.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "session: local has started. Moving money.",
            "agent: local is thinking.",
            "agent: local is writing.",
            "agent: Your balance is $3.50 today.",
            "agent: You owe Ben 5 euros.",
            "agent: Shall I pay?",
            "agent: local is thinking.",
            "ask: local: Send 5 euros to Ben.",
            "ask: It cannot be undone.",
            "ask: The exact call: send, amount 5.00.",
            "ask: You have 2 minutes.",
            "ask: Yes or no?",
            "answer: Question 1: yes.",
            "answer: Accepted.",
            "agent: local is thinking.",
            "agent: local is using a tool.",
            "tool: Sending 5 euros to Ben.",
            "progress: Step 1 of 2.",
            "tool: The tool send has finished.",
            "agent: local is thinking.",
            "session: local has finished. Ben has his money.",
        ]
    );
}

#[test]
fn fast_token_output_is_announced_in_sentences() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &["--rate", "5"]);
    let agent = AgentSession::start(hub.client());
    let text =
        "The first sentence is short. The second is a bit longer than that! Is the third one a question? ";
    for chunk in text.repeat(3).split_inclusive(' ') {
        agent.write_output(chunk, false);
    }
    agent.write_output("", true);
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#);
    let output = person.read_until("has finished");
    let sentences: Vec<_> = output.iter().filter_map(|line| line.strip_prefix("agent: ")).collect();
    assert_eq!(sentences.join(" "), text.repeat(3).trim());
    assert!(sentences.iter().all(|line| line.ends_with(['.', '!', '?'])), "{sentences:#?}");
}
