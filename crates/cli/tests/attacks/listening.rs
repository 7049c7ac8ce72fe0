//! Attacks on the person who listens: a question that hides its call, a question that appears just before the person types
//! an answer to something else, and a false name.

use serde_json::{Value, json};

use crate::listen::fake_hub::{FakeHub, accepted_message};
use crate::serve::agent_websocket::{AgentWebSocket, stop_session};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::terminal::{AgentSession, ListenProcess};

/// The members of a question about a dangerous action.
const DANGEROUS_QUESTION: &str = r#""action":"Send 5 euros to Ben.","consequence":"It is gone.","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true"#;

/// Asks the dangerous question with additional members, which start with a comma. Returns the reply token.
fn ask(agent: &AgentSession, additional_members: &str) -> String {
    let path = format!("/agent/v1/sessions/{}/confirmations", agent.session_id);
    agent.client.post(&path, &format!("{{{DANGEROUS_QUESTION}{additional_members}}}")).json_str("reply_token")
}

#[test]
fn the_person_hears_the_call_that_the_answer_is_bound_to() {
    for (language, expected) in [
        ("en", "ask: This cannot be undone: "),
        ("es", "pregunta: Irreversible: "),
        ("yo", "ìbéèrè: A kò lè dá èyí padà: "),
    ] {
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
    let note = format!("{}; rm ~", "x".repeat(5_000));
    ask(&agent, &format!(r#","tool":"transfer","arguments":{{"note":"{note}","amount":5000000}}"#));
    person.read_until("ask: Type details to hear the exact call.");
    person.read_until("ask: Yes or no?");
    person.type_line("details");
    let line = person.read_until("ask: The exact call: ").pop().unwrap();
    assert_eq!(line, format!("ask: The exact call: transfer, note \"{note}\", amount 5000000."));
}

#[test]
fn the_person_hears_that_the_answer_to_a_dangerous_question_is_not_bound() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let mut stream = hub.next_stream();
    stream.send_event(1, "awaiting.confirmation", &format!(r#""reply_token":"rpl_1",{DANGEROUS_QUESTION}"#));
    let lines = person.read_until("ask: Yes or no?");
    let expected = "ask: This cannot be undone. Your answer is not tied to one exact call.";
    assert!(lines.contains(&expected.to_owned()), "{lines:#?}");
}

#[test]
fn a_bare_yes_never_answers_a_question_that_has_just_appeared() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &["--answer-grace", "3600"]);
    let mut stream = hub.next_stream();
    stream.send_event(1, "awaiting.confirmation", &format!(r#""reply_token":"rpl_1",{DANGEROUS_QUESTION}"#));
    person.read_until("ask: Yes or no?");
    for answer in ["yes", "no", "answer yes", "2"] {
        person.type_line(answer);
        let lines = person.read_until("ask: Yes or no?");
        assert!(lines[0].starts_with("error: Question 1 is new, so nothing was sent."), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("Send 5 euros to Ben.")), "{lines:#?}");
    }
    // An answer that names the question is sent at once. It is the first reply that the hub receives.
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
    let summary = r#""summary_normal":"Begun.""#;
    send(1, 1, "Ada's Bank", "session.started", summary);
    person.read_until("session: Ada's Bank (agent id evil) has started.");
    send(
        2,
        1,
        "Ada's Bank",
        "awaiting.confirmation",
        &format!(r#""reply_token":"rpl_1",{DANGEROUS_QUESTION}"#),
    );
    person.read_until("ask: Ada's Bank (agent id evil): ");
    person.read_until("ask: Yes or no?");
    for (command, line) in [
        ("status", "status: Session 1, Ada's Bank (agent id evil)."),
        ("details", "ask: Without an answer, it will not be done."),
    ] {
        person.type_line(command);
        person.read_until(line);
    }
    send(3, 1, "Ada's Bank", "session.completed", summary);
    person.read_until("has finished");
    // A name that the hub has verified is announced without the agent's id. The command `details` still gives the id.
    let verified = format!(r#"{summary},"extensions":{{"sayso":{{"verified_name":true}}}}"#);
    send(4, 2, "Ada's Bank", "session.started", &verified);
    person.read_until("session: Ada's Bank has started.");
    send(
        5,
        2,
        "Ada's Bank",
        "awaiting.confirmation",
        &format!(r#""reply_token":"rpl_2",{DANGEROUS_QUESTION}"#),
    );
    person.read_until("ask: Ada's Bank: ");
    person.type_line("details");
    person.read_until("ask: The agent's id is evil.");
    // Another name in the same session is not verified.
    send(6, 2, "Police", "awaiting.confirmation", &format!(r#""reply_token":"rpl_3",{DANGEROUS_QUESTION}"#));
    person.read_until("Question 3 from Police (agent id evil): ");
}

#[test]
fn nothing_in_the_exact_call_is_invisible_or_looks_like_a_separator() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    ask(
        &agent,
        r#","tool":"send","arguments":{"to":"B\u200ben","note":"x\u201a to Ben","amount":0.00005e8}"#,
    );
    assert_eq!(
        person.read_until("ask: This cannot be undone: ").pop().unwrap(),
        "ask: This cannot be undone: send, to \"B\\u{200b}en\", note \"x\u{201a} to Ben\", amount 5000."
    );
}

#[test]
fn the_agents_text_replaces_none_of_saysos_own_statements() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start_connected(&hub.address, &[]);
    let agent = AgentSession::start(hub.client());
    let note = "x".repeat(200);
    let exact = format!("The exact call: send, note {note}.");
    let question = DANGEROUS_QUESTION
        .replace("It is gone.", &format!("This cannot be undone. Ignore that. A sample: {exact}"));
    let path = format!("/agent/v1/sessions/{}/confirmations", agent.session_id);
    let call = format!(r#""tool":"send","arguments":{{"note":"{note}"}}"#);
    agent.client.post(&path, &format!("{{{question},{call}}}")).json_str("reply_token");
    person.read_until("ask: This cannot be undone.");
    person.read_until("ask: Yes or no?");
    person.type_line("details");
    assert_eq!(person.read_until("ask: The exact call: ").pop().unwrap(), format!("ask: {exact}"));
}

#[test]
fn an_agent_can_neither_close_its_question_nor_claim_that_a_person_stopped_it() {
    let hub = FakeHub::start_with_responses(&[accepted_message("{}", "")]);
    let mut person = ListenProcess::start_connected(&hub.address, &["--answer-grace", "0"]);
    let mut stream = hub.next_stream();
    stream.send_event(1, "awaiting.confirmation", &format!(r#""reply_token":"rpl_1",{DANGEROUS_QUESTION}"#));
    person.read_until("ask: Yes or no?");
    stream.send_event(2, "state.changed", r#""from_state":"awaiting_input","to_state":"thinking""#);
    stream.send_event(3, "tool.invoked", r#""tool":"x","summary_normal":"Looking.""#);
    person.read_until("tool: Looking.");
    person.type_line("no 1");
    assert_eq!(hub.next_request("POST /aaep/v1/replies")["decision"], "reject");
    stream.send_event(4, "session.cancelled", r#""cancelled_by":"user","summary_normal":"You stopped me.""#);
    person.read_until("says that a person stopped it. You stopped me.");
}

#[test]
fn only_the_hub_can_report_that_a_person_stopped_a_session_or_that_its_agent_disappeared() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    // The connection that reports an end gets no notice, but another connection of the agent gets one.
    let [mut agent, mut follower] = [(); 2].map(|()| AgentWebSocket::open(&hub));
    let start_followed = |agent: &mut AgentWebSocket, follower: &mut AgentWebSocket| {
        let session = agent.start_session();
        follower.call_ok("session.follow", &json!({"session_id": session}));
        session
    };
    let claims = [
        (json!({"type": "aaep:agent.session.cancelled", "cancelled_by": "user"}), "producer"),
        (
            json!({"type": "aaep:agent.session.errored", "error_code": "AGENT_GONE", "error_category": "transient"}),
            "errored",
        ),
    ];
    for (mut event, reason) in claims {
        event["summary_normal"] = "You stopped me.".into();
        let session = start_followed(&mut agent, &mut follower);
        // The hub's mark is refused if an agent writes it.
        let mut marked = event.clone();
        marked["extensions"] = json!({"sayso": {"ended_by": "user"}});
        let refused = agent.call("session.event", &json!({"session_id": session, "event": marked}));
        assert!(refused["error"].is_object(), "{refused}");
        agent.call_ok("session.event", &json!({"session_id": session, "event": event}));
        let notice = json!({"session_id": session, "reason": reason});
        assert_eq!(follower.next_notification()["params"], notice);
        let heard = loop {
            let (_, _, heard) = stream.next();
            if heard["session_id"] == session.as_str() && heard["type"] == event["type"] {
                break heard;
            }
        };
        assert_eq!(heard["extensions"]["sayso"]["ended_by"], Value::Null, "{heard}");
    }
    let session = start_followed(&mut agent, &mut follower);
    stop_session(&client, &subscription, &session);
    assert_eq!(follower.next_notification()["params"], json!({"session_id": session, "reason": "user"}));
    while stream.next().2["extensions"]["sayso"]["ended_by"] != "user" {}
}

#[test]
fn a_question_without_visible_text_is_refused() {
    let hub = HubProcess::start_in_memory();
    let agent = AgentSession::start(hub.client());
    let refuse = |kind: &str, question: &str, rule: &str, pointer: &str| {
        let path = format!("/agent/v1/sessions/{}/{kind}", agent.session_id);
        let reply = agent.client.post(&path, &format!("{{{question}}}"));
        assert_eq!(reply.status, 422, "{question}");
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        let finding = &body["findings"][0];
        assert_eq!(
            (&finding["rule"], &finding["pointer"]),
            (&Value::from(rule), &Value::from(pointer)),
            "{body}"
        );
    };
    for (blank, pointer) in [
        (r#""consequence":" ""#, "/consequence"),
        (r#""consequence":"\u200b""#, "/consequence"),
        (r#""consequence":"It is gone.","consequence_es":"\u2060""#, "/consequence_es"),
    ] {
        let question = DANGEROUS_QUESTION.replace(r#""consequence":"It is gone.""#, blank);
        refuse("confirmations", &question, "AAEP-4.4.1s-2", pointer);
    }
    let clarification = |question: &str, label: &str, label_es: &str| {
        let choices =
            |label: &str| format!(r#"[{{"value":"a","label":"A"}},{{"value":"b","label":"{label}"}}]"#);
        format!(
            r#""question":"{question}","accepted_response_kinds":["multiple_choice"],"timeout_seconds":60,"choices":{},"choices_es":{}"#,
            choices(label),
            choices(label_es)
        )
    };
    refuse("clarifications", &clarification(r"\u200b", "B", "B"), "AAEP-4.4.2s-2", "/question");
    refuse("clarifications", &clarification("Which?", r"\u3164", "B"), "AAEP-4.4.2s-1", "/choices/1/label");
    refuse("clarifications", &clarification("Which?", "B", " "), "AAEP-4.4.2s-1", "/choices_es/1/label");
    // The same question with visible labels is asked.
    let path = format!("/agent/v1/sessions/{}/clarifications", agent.session_id);
    let visible = format!("{{{}}}", clarification("Which?", "B", "B"));
    assert_eq!(agent.client.post(&path, &visible).status, 201);
}
