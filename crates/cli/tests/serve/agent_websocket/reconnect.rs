//! Agents that disconnect and reconnect.

use serde_json::{Value, json};

use super::{
    AgentWebSocket, TOOL_INVOKED, event_params, question_params, start_params, stop_session, with_key,
};
use testing::hub::HubProcess;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

#[test]
fn no_notification_is_lost_between_two_connections() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let first_token = agent.ask(&session);
    let second_question = CONFIRMATION_BODY.replace("Ben", "Cleo").replace("5.00", "6.00");
    let mut second_question: Value = serde_json::from_str(&second_question).unwrap();
    second_question["session_id"] = session.as_str().into();
    let second_token = agent.call_ok("session.ask", &second_question)["reply_token"].clone();
    drop(agent);
    client.reply(&subscription, &first_token, "accept");
    let mut agent = AgentWebSocket::open(&hub);
    agent.call_ok("session.follow", &json!({"session_id": session}));
    let notification = agent.next_notification();
    assert_eq!(
        (&notification["params"]["reply_token"], &notification["params"]["decision"]),
        (&json!(first_token), &json!("accept")),
        "the reply arrived while the agent was disconnected"
    );
    client.reply(&subscription, second_token.as_str().unwrap(), "reject");
    assert_eq!(
        agent.next_notification()["params"]["reply_token"],
        second_token,
        "the reply arrived while the agent was connected"
    );
    drop(agent);
    stop_session(&client, &subscription, &session);
    let mut agent = AgentWebSocket::open(&hub);
    assert_eq!(agent.call_err("session.follow", &json!({"session_id": session}))["code"], -32004);
    assert_eq!(agent.next_notification()["params"], json!({"session_id": session, "reason": "user"}));
}

#[test]
fn an_idempotency_key_holds_across_connections_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = HubProcess::start_on_disk(folder.path());
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let started = agent.call_ok("session.start", &with_key(start_params(), "start"));
    let session = started["session_id"].as_str().unwrap().to_owned();
    let ask = with_key(question_params(&session), "ask");
    let asked = agent.call_ok("session.ask", &ask);
    let token = asked["reply_token"].as_str().unwrap().to_owned();
    drop(agent);
    let mut agent = AgentWebSocket::open(&hub);
    assert_eq!(agent.call_ok("session.start", &with_key(start_params(), "start")), started);
    assert_eq!(agent.call_ok("session.ask", &ask), asked);
    assert!(agent.notifications.is_empty(), "{:?}", agent.notifications);
    client.reply(&subscription, &token, "accept");
    assert_eq!(agent.next_notification()["params"]["decision"], "accept");
    let mut changed = ask.clone();
    changed["timeout_seconds"] = 90.into();
    assert_eq!(agent.call_err("session.ask", &changed)["code"], -32009);
    hub.kill();
    drop(agent);

    let hub = HubProcess::start_on_disk(folder.path());
    let mut agent = AgentWebSocket::open(&hub);
    assert_eq!(agent.call_ok("session.start", &with_key(start_params(), "start")), started);
    assert_eq!(
        agent.next_notification()["params"]["reply_token"],
        json!(token),
        "a repeated `session.start` makes the new connection follow the session"
    );
    assert_eq!(agent.call_ok("session.ask", &ask), asked);
    assert_eq!(
        agent.next_notification()["params"]["decision"],
        "accept",
        "a repeated question gets its resolution again"
    );
    agent.call_ok("session.event", &with_key(event_params(&session, TOOL_INVOKED), "call"));
    agent.call_ok("session.event", &with_key(event_params(&session, TOOL_INVOKED), "call"));
    let second_call =
        agent.call_err("session.event", &event_params(&session, &TOOL_INVOKED.replace("call_1", "call_2")));
    assert_eq!(second_call["code"], -32022, "an acceptance can be used only once");
}

#[test]
fn a_closed_connection_no_longer_waits() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    // More waiting requests than one principal may have open at the same time.
    for _ in 0..1_100 {
        use std::io::Write;
        let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=300");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", hub.address);
        client.connect().write_all(request.as_bytes()).unwrap();
    }
    let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=1");
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(2);
    while client.get(&path).status == 429 {
        assert!(std::time::Instant::now() < deadline, "the closed connections still count");
    }
}
