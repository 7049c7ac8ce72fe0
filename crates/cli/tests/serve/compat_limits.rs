//! Each limit of the compatibility mode and of the demo agent holds at its exact value. Compatibility streams
//! count as listeners.

use std::io::{Read, Write};

use crate::serve::compat::{HELLO, open_compat_stream, wait_for_decision, without_subscription};
use testing::http::{EventStream, TestClient};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;
use testing::messages::{confirmation_reply, subscription_request};
use testing::websocket::WebSocketClient;

fn start_compat_hub(limits: &[&str]) -> HubProcess {
    // Heartbeats are off. Otherwise, a test that waits for a missing event would never time out.
    HubProcess::start_in_memory_with(
        &[&["--compat", "--http-heartbeat", "1h", "--messages-ping-interval", "1h"], limits].concat(),
    )
}

/// Asks a question and waits until the stream has received it.
fn ask_and_wait(client: &TestClient, session: &str, events: &mut EventStream) -> String {
    let token = client.ask_confirmation(session);
    while events.next().2["reply_token"] != token.as_str() {}
    token
}

/// Changes the capabilities of the stream.
fn renegotiate(client: &TestClient, events: &mut EventStream, capabilities: &str) {
    client.post("/messages", &subscription_request(capabilities));
    while events.next_type() != "subscription.accepted" {}
}

fn is_open(client: &TestClient, session: &str, token: &str) -> bool {
    let question = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    question.json_str("status") == "pending"
}

fn metric(client: &TestClient, name: &str) -> u64 {
    let page = client.get("/metrics").body;
    let line =
        page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_limit_of_remembered_questions_holds() {
    for (limit, is_first_reply_used) in [("1", false), ("2", true)] {
        let hub = start_compat_hub(&["--compat-limits-remembered-questions", limit]);
        let client = hub.client();
        let mut events = open_compat_stream(&client);
        let (first_session, second_session) = (client.start_session(), client.start_session());
        let (first_token, second_token) = (
            ask_and_wait(&client, &first_session, &mut events),
            ask_and_wait(&client, &second_session, &mut events),
        );
        renegotiate(&client, &mut events, "{}");
        client.post("/messages", &without_subscription(&confirmation_reply("sub_1", &first_token, "accept")));
        assert_eq!(is_open(&client, &first_session, &first_token), !is_first_reply_used, "{limit}");
        client
            .post("/messages", &without_subscription(&confirmation_reply("sub_1", &second_token, "accept")));
        assert_eq!(wait_for_decision(&client, &second_session, &second_token).0, "accept", "{limit}");
    }
}

#[test]
fn the_limit_of_remembered_events_holds() {
    for (limit, expects_repeat) in [("1", true), ("256", false)] {
        let hub = start_compat_hub(&["--compat-limits-remembered-events", limit]);
        let client = hub.client();
        let mut events = open_compat_stream(&client);
        let session = client.start_session();
        let token = ask_and_wait(&client, &session, &mut events);
        let other_session = client.start_session();
        while events.next().2["session_id"] != other_session.as_str() {}
        renegotiate(&client, &mut events, REPLY_CAPABILITIES);
        let last_session = client.start_session();
        let mut is_repeated = false;
        loop {
            let event = events.next().2;
            is_repeated |= event["reply_token"] == token.as_str();
            if event["session_id"] == last_session.as_str() {
                break;
            }
        }
        assert_eq!(is_repeated, expects_repeat, "{limit}");
    }
}

#[test]
fn the_limit_of_superseded_subscriptions_holds() {
    for (limit, is_second_reply_used) in [("1", false), ("2", true)] {
        let hub = start_compat_hub(&["--compat-limits-superseded-subscriptions", limit]);
        let client = hub.client();
        let mut events = open_compat_stream(&client);
        let (first_session, second_session) = (client.start_session(), client.start_session());
        let first_token = ask_and_wait(&client, &first_session, &mut events);
        renegotiate(&client, &mut events, REPLY_CAPABILITIES);
        let second_token = ask_and_wait(&client, &second_session, &mut events);
        renegotiate(&client, &mut events, "{}");
        client
            .post("/messages", &without_subscription(&confirmation_reply("sub_1", &second_token, "accept")));
        assert_eq!(is_open(&client, &second_session, &second_token), !is_second_reply_used, "{limit}");
        client.post("/messages", &without_subscription(&confirmation_reply("sub_1", &first_token, "accept")));
        assert_eq!(wait_for_decision(&client, &first_session, &first_token).0, "accept", "{limit}");
    }
}

/// Sends a demo request and returns its connection without waiting for the response.
fn send_demo_request(client: &TestClient, hub: &HubProcess) -> std::net::TcpStream {
    let mut connection = client.connect();
    let head = format!(
        "POST /messages HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        hub.address,
        HELLO.len()
    );
    connection.write_all(format!("{head}{HELLO}").as_bytes()).unwrap();
    connection
}

#[test]
fn a_request_waits_for_a_stream_up_to_the_limit() {
    const SESSION_EVENTS: [&str; 6] = [
        "session.started",
        "session.started",
        "state.changed",
        "output.streaming",
        "state.changed",
        "session.completed",
    ];
    // The wait is so long that only a stream can end it.
    let hub = start_compat_hub(&["--compat-limits-stream-wait", "1h"]);
    let client = hub.client();
    let mut connection = send_demo_request(&client, &hub);
    assert_eq!(metric(&client, "sayso_sessions_started_total"), 0);
    let mut events = open_compat_stream(&client);
    assert_eq!(
        std::array::from_fn(|_| events.next_type()),
        SESSION_EVENTS,
        "the request arrives before the stream"
    );
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 201"), "{response}");
    assert_eq!(client.post("/messages", HELLO).status, 201);
    assert_eq!(
        std::array::from_fn(|_| events.next_type()),
        SESSION_EVENTS,
        "the stream is open before the request arrives"
    );
    // The wait is so short that it ends without a stream.
    let hub = start_compat_hub(&["--compat-limits-stream-wait", "50ms"]);
    assert_eq!(
        hub.client().post("/messages", HELLO).status,
        201,
        "the request succeeds even if no stream opens"
    );
}

#[test]
fn compatibility_streams_and_sockets_count_as_listeners() {
    let hub = start_compat_hub(&[]);
    let client = hub.client();
    let (sse, websocket) =
        (r#"sayso_listeners{transport="sse"}"#, r#"sayso_listeners{transport="websocket"}"#);
    let mut events = open_compat_stream(&client);
    let mut socket = WebSocketClient::try_connect(&hub, &[]).unwrap();
    client.start_session();
    events.next();
    socket.next();
    assert_eq!((metric(&client, sse), metric(&client, websocket)), (1, 1));
    let mut standard_events = client.open_event_stream(&client.subscribe("{}"), None);
    client.start_session();
    standard_events.next();
    assert_eq!(metric(&client, sse), 2, "compatibility streams and standard streams are both counted");
    drop(events);
    while metric(&client, sse) != 1 {}
}

#[test]
fn the_limit_of_demo_sessions_holds() {
    let hub =
        HubProcess::start_in_memory_with(&["--demo-agent", "--demo-sessions", "1", "--http-heartbeat", "1h"]);
    let client = hub.client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut events = client.open_event_stream(&subscription, None);
    let request_demo = |text: &str| client.post("/demo", &format!(r#"{{"text":"{text}"}}"#));
    assert_eq!(request_demo("Delete a record").status, 201);
    let token = loop {
        let event = events.next().2;
        if let Some(token) = event["reply_token"].as_str() {
            break token.to_owned();
        }
    };
    let busy = request_demo("Hello");
    assert_eq!(busy.status, 503);
    assert!(busy.body.contains("The assistant is busy"), "{busy:?}");
    client.reply(&subscription, &token, "reject");
    while events.next_type() != "session.completed" {}
    // The first session may occupy its slot for a short time after its end was delivered.
    while request_demo("Hello").status != 201 {}
}
