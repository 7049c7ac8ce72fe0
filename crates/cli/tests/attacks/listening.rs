//! Attacks on the person who listens: a question that hides its call, a question that catches an answer, a false name.

use serde_json::Value;

use crate::listen::fake_hub::{FakeHub, accepted_message};
use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

const DANGEROUS: &str = r#""action":"Send 5 euro to Ben.","consequence":"It is gone.","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true"#;

/// Asks for permission with additional members, each after a comma.
fn ask(agent: &AgentSession, members: &str) -> String {
    let path = format!("/agent/v1/sessions/{}/confirmations", agent.session_id);
    agent.client.post(&path, &format!("{{{DANGEROUS}{members}}}")).json_str("reply_token")
}

#[test]
fn the_person_hears_the_call_that_the_answer_is_bound_to() {
    for (language, expected) in
        [("en", "ask: Exactly: "), ("es", "ask: Exactamente: "), ("yo", "ask: Ní pàtó: ")]
    {
        let hub = HubProcess::start_in_memory();
        let mut person = ListenProcess::start(&hub.address, &["--lang", language]);
        person.read_until(&hub.address);
        let agent = AgentSession::start(hub.client());
        ask(&agent, r#","tool":"transfer","arguments":{"amount":5000000,"to":"Ben"}"#);
        assert_eq!(
            person.read_until(expected).pop().unwrap(),
            format!("{expected}transfer, amount 5000000, to Ben.")
        );
    }
}

#[test]
fn details_read_every_argument_of_a_long_call() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let note = "x".repeat(200);
    ask(&agent, &format!(r#","tool":"transfer","arguments":{{"note":"{note}","amount":5000000}}"#));
    person.read_until("ask: Type details to hear the exact call.");
    person.read_until("ask: Type the whole word");
    person.type_line("details");
    let line = person.read_until("ask: Exactly: ").pop().unwrap();
    assert_eq!(line, format!("ask: Exactly: transfer, note {note}, amount 5000000."));
}

#[test]
fn the_person_hears_that_the_answer_to_a_dangerous_question_is_not_bound() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let mut stream = hub.next_stream();
    stream.send_event(1, "awaiting.confirmation", &format!(r#""reply_token":"rpl_1",{DANGEROUS}"#));
    let lines = person.read_until("ask: Type the whole word");
    assert!(lines.contains(&"ask: Your answer is not tied to one exact call.".to_owned()), "{lines:#?}");
}

#[test]
fn a_bare_yes_never_answers_a_question_that_has_just_appeared() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &["--answer-grace", "3600"]);
    let mut stream = hub.next_stream();
    stream.send_event(1, "awaiting.confirmation", &format!(r#""reply_token":"rpl_1",{DANGEROUS}"#));
    person.read_until("ask: Type the whole word");
    for answer in ["yes", "no", "answer yes", "2"] {
        person.type_line(answer);
        let lines = person.read_until("ask: Type the whole word");
        assert!(
            lines[0].starts_with("error: Question 1 has only just appeared, so nothing was sent."),
            "{lines:#?}"
        );
        assert!(lines.iter().any(|line| line.contains("Send 5 euro to Ben.")), "{lines:#?}");
    }
    // An answer that names the question is the first one that is sent.
    person.type_line("yes 1");
    let reply = hub.next_request("POST /aaep/v1/replies");
    assert_eq!((&reply["reply_token"], &reply["decision"]), (&Value::from("rpl_1"), &Value::from("accept")));
}

#[test]
fn an_unverified_name_is_announced_with_the_agent_id() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let mut stream = hub.next_stream();
    let mut send = |number: u32, session: u32, name: &str, kind: &str, rest: &str| {
        stream.send_raw(&format!(
            "event: aaep.event\nid: evt_{number}\ndata: {{\"@context\":\"https://aaep-protocol.org/context/v1\",\"type\":\"aaep:agent.{kind}\",\"event_id\":\"evt_{number}\",\"session_id\":\"sess_{session}\",\"timestamp\":\"2026-05-24T14:00:00.000Z\",\"producer\":{{\"agent_id\":\"evil\",\"agent_name\":\"{name}\"}},{rest}}}\n\n"
        ));
    };
    let begun = r#""summary_normal":"Begun.""#;
    send(1, 1, "Ada's Bank", "session.started", begun);
    person.read_until("session: Ada's Bank (agent id evil) has started.");
    send(2, 1, "Ada's Bank", "awaiting.confirmation", &format!(r#""reply_token":"rpl_1",{DANGEROUS}"#));
    person.read_until("ask: Question 1 from Ada's Bank (agent id evil): ");
    person.read_until("ask: Type the whole word");
    for (command, line) in [
        ("status", "status: Session 1, Ada's Bank (agent id evil)."),
        ("details", "ask: Question 1 from Ada's Bank (agent id evil): "),
    ] {
        person.type_line(command);
        person.read_until(line);
    }
    send(3, 1, "Ada's Bank", "session.completed", begun);
    person.read_until("has finished");
    // A name that the hub confirms is announced alone, and details still say who it is.
    let verified = format!(r#"{begun},"extensions":{{"sayso":{{"verified_name":true}}}}"#);
    send(4, 2, "Ada's Bank", "session.started", &verified);
    person.read_until("session: Ada's Bank has started.");
    send(5, 2, "Ada's Bank", "awaiting.confirmation", &format!(r#""reply_token":"rpl_2",{DANGEROUS}"#));
    person.read_until("ask: Question 2 from Ada's Bank: ");
    person.type_line("details");
    person.read_until("ask: The agent's id is evil.");
    // The confirmation covers that name only.
    send(6, 2, "Police", "awaiting.confirmation", &format!(r#""reply_token":"rpl_3",{DANGEROUS}"#));
    person.read_until("Question 3 from Police (agent id evil): ");
}
