//! `--compat`: the compatibility mode for the published AAEP packages, which is off by default.

use std::process::Command;

use serde_json::Value;

use testing::cli::create_token;
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::messages::{confirmation_reply, short_type, subscription_renegotiate, subscription_request};
use testing::websocket::WebSocketClient;

pub(crate) const HELLO: &str = r#"{"kind":"user_input","text":"Hello"}"#;

fn start_compat_hub() -> HubProcess {
    // Heartbeats are off. Otherwise, a test that waits for a missing event would never time out.
    HubProcess::start_in_memory_with(&[
        "--compat",
        "--http-heartbeat",
        "1h",
        "--messages-ping-interval",
        "1h",
    ])
}

/// Opens a stream in compatibility mode, without a subscription.
pub(crate) fn open_compat_stream(client: &TestClient) -> EventStream {
    client.open_stream("/events")
}

pub(crate) fn wait_for_decision(client: &TestClient, session: &str, token: &str) -> (String, String) {
    let response = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=40"));
    (response.json_str("decision"), response.json_str("by"))
}

/// Removes the subscription id from a reply. `aaep-cli-debug` sends replies without one.
pub(crate) fn without_subscription(reply: &str) -> String {
    let mut value: Value = serde_json::from_str(reply).unwrap();
    value.as_object_mut().unwrap().remove("subscription_id");
    value.to_string()
}

#[test]
fn without_the_flag_there_is_no_compatibility_mode() {
    let hub = HubProcess::start_in_memory_with(&["--http-heartbeat", "1h", "--messages-ping-interval", "1h"]);
    let client = hub.client();
    assert_eq!(client.get("/events").status, 404);
    for path in ["/messages", "/sessions", "/demo"] {
        for body in [HELLO, r#"{"user_message":"Hello","text":"Hello"}"#, &subscription_request("{}")] {
            assert_eq!(client.post(path, body).status, 404, "{path}");
        }
    }
    assert_eq!(WebSocketClient::try_connect(&hub, &[]).err(), Some(400), "without a subprotocol");
    // On a standard WebSocket, the first message must be a handshake and not a user request.
    let mut socket = WebSocketClient::connect(&hub);
    socket.send(HELLO);
    assert_eq!(socket.into_close_code(), 4004);
}

#[test]
fn without_the_flag_a_reply_needs_a_valid_subscription_id() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _events = client.open_event_stream(&subscription, None);
    let (mut socket, socket_subscription) = WebSocketClient::connect_and_subscribe(&hub, REPLY_CAPABILITIES);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let with_unknown_subscription = confirmation_reply("sub_0123456789abcdef", &token, "accept");
    for text in [&with_unknown_subscription, &without_subscription(&with_unknown_subscription)] {
        assert_eq!(client.post("/aaep/v1/replies", text).status, 204);
        socket.send(text);
    }
    // When the hub responds to the renegotiation, it has processed the earlier messages of the socket.
    socket.send(&subscription_renegotiate(&socket_subscription, REPLY_CAPABILITIES));
    while short_type(&socket.next()) != "subscription.accepted" {}
    let question = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    assert_eq!(question.json_str("status"), "pending");
    client.reply(&subscription, &token, "reject");
    assert_eq!(wait_for_decision(&client, &session, &token), ("reject".to_owned(), "reply".to_owned()));
}

#[test]
fn compat_is_for_loopback_only_and_prints_a_warning() {
    let refused = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["serve", "--compat", "--memory", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--compat accepts answers"));
    assert!(start_compat_hub().startup_lines.iter().any(|line| line.starts_with("warning: --compat")));
}

#[test]
fn a_stream_needs_no_subscription_and_gets_each_start_twice() {
    let hub = start_compat_hub();
    let client = hub.client();
    let mut events = open_compat_stream(&client);
    let session = client.start_session();
    let mut next_line = || loop {
        // Lines that start with a colon are comments.
        let line = events.next_line();
        if !line.is_empty() && !line.starts_with(':') {
            return line;
        }
    };
    let first = next_line();
    assert!(first.starts_with("data: {"), "expected no event name and no id: {first}");
    assert_eq!(
        next_line(),
        first,
        "the start is sent twice, because the published conformance suite discards the first message"
    );
    client.post(
        &format!("/agent/v1/sessions/{session}/events"),
        r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#,
    );
    assert_eq!(events.next_type(), "session.completed");
}

#[test]
fn a_late_stream_receives_the_running_session_from_its_start() {
    let hub = start_compat_hub();
    let client = hub.client();
    let ended_session = client.start_session();
    let path = |session: &str| format!("/agent/v1/sessions/{session}/events");
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let session = client.start_session();
    assert_eq!(client.post(&path(&ended_session), end).status, 200);
    let state = r#"{"type":"aaep:agent.state.changed","to_state":"thinking","summary_normal":"Thinking."}"#;
    assert_eq!(client.post(&path(&session), state).status, 200);
    let mut events = open_compat_stream(&client);
    let received: Vec<_> = (0..3).map(|_| events.next().2).collect();
    assert!(received.iter().all(|event| event["session_id"] == session.as_str()), "{received:?}");
    assert_eq!(
        received.iter().map(short_type).collect::<Vec<_>>(),
        ["session.started", "session.started", "state.changed"]
    );
    assert_eq!(received[2]["summary_normal"], "Thinking.", "unchanged");
    assert_eq!(client.post(&path(&session), end).status, 200);
    assert_eq!(events.next_type(), "session.completed");
}

#[test]
fn replies_need_no_subscription_and_count_for_the_stream_that_was_asked() {
    let hub = start_compat_hub();
    let client = hub.client();
    let mut events = open_compat_stream(&client);
    let session = client.start_session();
    for (decision, edit_reply) in
        [("accept", without_subscription as fn(&str) -> String), ("reject", str::to_owned)]
    {
        let token = client.ask_confirmation(&session);
        while events.next().2["reply_token"] != token.as_str() {}
        let reply = edit_reply(&confirmation_reply("sub_0123456789abcdef", &token, decision));
        assert_eq!(client.post("/messages", &reply).status, 200, "{reply}");
        assert_eq!(wait_for_decision(&client, &session, &token), (decision.to_owned(), "reply".to_owned()));
        assert_eq!(client.post("/messages", &reply).status, 200, "a second reply has no effect");
    }
    for message in ["[]", "1", "{}", r#"{"type":"confirmation.reply"}"#] {
        assert_eq!(client.post("/messages", message).status, 200, "{message}");
    }
    assert_eq!(client.post("/messages", "{").status, 400);
}

#[test]
fn a_reply_has_no_effect_if_no_compat_stream_was_asked() {
    let hub = start_compat_hub();
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _events = client.open_event_stream(&subscription, None);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let reply = without_subscription(&confirmation_reply("sub_1", &token, "accept"));
    assert_eq!(client.post("/messages", &reply).status, 200);
    let question = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    assert_eq!(
        question.json_str("status"),
        "pending",
        "a listener with a subscription was asked, but no compatibility stream"
    );
}

#[test]
fn the_compatibility_mode_needs_tokens_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let observer = create_token(&file, &["--role", "observer", "--name", "onlooker"]);
    let agent = create_token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let listener = create_token(&file, &["--role", "listener", "--name", "marisol"]);
    let hub = HubProcess::start(&["--memory", "--tokens", &file, "--compat", "--listen", "127.0.0.1:0"]);
    let anonymous = hub.client();
    for (method, path) in [("GET", "/events"), ("POST", "/messages"), ("POST", "/sessions")] {
        assert_eq!(anonymous.send(method, path, "{}").status, 401, "{path}");
    }
    let (observer, agent) = (anonymous.with_bearer(&observer), anonymous.with_bearer(&agent));
    let mut listener_events = open_compat_stream(&anonymous.with_bearer(&listener));
    let mut observer_events = open_compat_stream(&observer);
    let session = agent.start_session();
    let token = agent.ask_confirmation(&session);
    while listener_events.next().2["reply_token"] != token.as_str() {}
    assert_eq!(observer_events.next_type(), "session.started");
    observer.post("/messages", &without_subscription(&confirmation_reply("sub_1", &token, "accept")));
    agent.post("/messages", &without_subscription(&confirmation_reply("sub_1", &token, "accept")));
    assert_eq!(observer.post("/messages", HELLO).status, 403);
    let question = agent.get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    assert_eq!(question.json_str("status"), "pending");
}

#[test]
fn closing_the_stream_resolves_its_questions() {
    let hub = start_compat_hub();
    let client = hub.client();
    let mut events = open_compat_stream(&client);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    while events.next().2["reply_token"] != token.as_str() {}
    drop(events);
    assert_eq!(wait_for_decision(&client, &session, &token).0, "reject");
}

#[test]
fn a_handshake_changes_the_capabilities_of_a_stream() {
    let hub = start_compat_hub();
    let client = hub.client();
    let mut events = open_compat_stream(&client);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    while events.next().2["reply_token"] != token.as_str() {}
    let filters =
        r#"{"supports_confirmation_reply":true,"event_filters":{"exclude":["aaep:agent.state.*"]}}"#;
    assert_eq!(client.post("/messages", &subscription_request(filters)).status, 200);
    let (kind, _, accepted) = events.next();
    assert_eq!(kind, "subscription.accepted", "the response must be the very next message");
    assert_eq!(accepted["honored_capabilities"]["supports_confirmation_reply"], true);
    assert_eq!(client.post("/messages", testing::messages::UNSUPPORTED_VERSION_REQUEST).status, 200);
    let (kind, _, rejected) = events.next();
    assert_eq!(
        (kind.as_str(), &rejected["reason_code"]),
        ("subscription.rejected", &"version_unsupported".into())
    );
    // The question stays answerable, and later events follow the new capabilities.
    client.post("/messages", &without_subscription(&confirmation_reply("sub_1", &token, "accept")));
    assert_eq!(wait_for_decision(&client, &session, &token).0, "accept");
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_eq!(client.post(&format!("/agent/v1/sessions/{session}/events"), end).status, 200);
    assert_eq!(events.next_type(), "session.completed", "state changes are filtered out");
    client.start_session();
    assert_eq!(events.next_type(), "session.started");
    let other_session = client.start_session();
    assert_eq!(
        events.next().2["session_id"],
        other_session.as_str(),
        "after a handshake a start is sent once"
    );
}

#[test]
fn a_stream_that_was_asked_can_reply_after_changing_its_capabilities() {
    let hub = start_compat_hub();
    let client = hub.client();
    let mut events = open_compat_stream(&client);
    let mut socket = WebSocketClient::try_connect(&hub, &[]).unwrap();
    for replies_over_http in [true, false] {
        let session = client.start_session();
        let token = client.ask_confirmation(&session);
        while events.next().2["reply_token"] != token.as_str() {}
        while socket.next()["reply_token"] != token.as_str() {}
        let reply = without_subscription(&confirmation_reply("sub_1", &token, "accept"));
        // Capabilities that allow no replies.
        client.post("/messages", &subscription_request("{}"));
        while events.next_type() != "subscription.accepted" {}
        socket.send(&subscription_request("{}"));
        while short_type(&socket.next()) != "subscription.accepted" {}
        if replies_over_http {
            client.post("/messages", &reply);
        } else {
            socket.send(&reply);
        }
        assert_eq!(wait_for_decision(&client, &session, &token), ("accept".to_owned(), "reply".to_owned()));
        // No listener can reply any more. The hub may notice this only after it has asked the next question.
        let mut by = String::new();
        while by != "unreachable" {
            let token = client.ask_confirmation(&session);
            by = wait_for_decision(&client, &session, &token).1;
            assert!(["unreachable", "closure"].contains(&by.as_str()), "{by}");
        }
        events = open_compat_stream(&client);
        socket = WebSocketClient::try_connect(&hub, &[]).unwrap();
    }
}

#[test]
fn pages_of_another_origin_are_refused() {
    let hub = start_compat_hub();
    let page = hub.client().with_header("Origin: http://pages.example");
    for (method, path) in [("GET", "/events"), ("POST", "/messages"), ("POST", "/sessions")] {
        assert_eq!(page.send(method, path, HELLO).status, 403, "{path}");
    }
    assert_eq!(WebSocketClient::try_connect(&hub, &[("Origin", "http://pages.example")]).err(), Some(403));
}

#[test]
fn a_stopping_hub_sends_a_close() {
    let mut hub = start_compat_hub();
    let mut events = open_compat_stream(&hub.client());
    assert_eq!(hub.stop(), 0);
    let (kind, _, last) = events.next();
    assert_eq!((kind.as_str(), &last["reason_code"]), ("subscription.close", &"producer_shutdown".into()));
    assert!(events.is_closed());
}

#[test]
fn a_socket_without_a_subprotocol_uses_the_compatibility_mode() {
    let hub = start_compat_hub();
    let client = hub.client();
    let mut socket = WebSocketClient::try_connect(&hub, &[]).unwrap();
    socket.send(r#"{"kind":"user_input","text":"Transfer it"}"#);
    let first = socket.next();
    assert_eq!((short_type(&first), &socket.next()), ("session.started", &first));
    let token = loop {
        let event = socket.next();
        if short_type(&event) == "awaiting.confirmation" {
            break event["reply_token"].as_str().unwrap().to_owned();
        }
    };
    socket.send(&without_subscription(&confirmation_reply("sub_1", &token, "accept")));
    let mut types = Vec::new();
    while types.last().is_none_or(|last| last != "session.completed") {
        types.push(short_type(&socket.next()).to_owned());
    }
    assert!(types.contains(&"tool.invoked".to_owned()), "{types:?}");
    socket.send(&subscription_request(r#"{"max_events_per_second":5}"#));
    assert_eq!(short_type(&socket.next()), "subscription.accepted");
    client.start_session();
    assert_eq!(short_type(&socket.next()), "session.started");
    // A client that requests the subprotocol gets the standard behaviour.
    let (_standard_socket, _) = WebSocketClient::connect_and_subscribe(&hub, "{}");
}

#[test]
fn a_user_request_starts_a_session_for_its_user() {
    let hub = start_compat_hub();
    let client = hub.client();
    let mut events = open_compat_stream(&client);
    assert_eq!(client.post("/sessions", r#"{"user_message":""}"#).status, 400);
    let session = client.post("/sessions", r#"{"user_message":"Hello","user_id":"marisol"}"#);
    let started = events.next().2;
    assert_eq!(
        (session.status, started["session_id"].as_str()),
        (201, Some(&*session.json_str("session_id")))
    );
    assert_eq!(started["requested_by"], "user:marisol");
}
