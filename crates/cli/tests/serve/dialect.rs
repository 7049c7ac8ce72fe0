//! Each limit of the dialect and of the demo's assistant holds at its number, and is counted where it should be.

use std::io::{Read, Write};

use crate::serve::compat::{HELLO, bare, decision, stream};
use testing::http::{Client, EventStream};
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::messages::{reply, request};
use testing::websocket::Socket;

fn compat(limits: &[&str]) -> Hub {
    // Signs of life would keep a test waiting that waits in vain.
    Hub::limited(&[&["--compat", "--http-heartbeat", "1h", "--messages-ping-time", "1h"], limits].concat())
}

/// Asks, and waits until the stream was told.
fn asked(client: &Client, session: &str, ear: &mut EventStream) -> String {
    let token = client.ask(session);
    while ear.next().2["reply_token"] != token.as_str() {}
    token
}

/// Other terms for the stream.
fn terms(client: &Client, ear: &mut EventStream, capabilities: &str) {
    client.post("/messages", &request(capabilities));
    while ear.next_type() != "subscription.accepted" {}
}

fn is_open(client: &Client, session: &str, token: &str) -> bool {
    let told = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}"));
    told.text("status") == "pending"
}

fn metric(client: &Client, name: &str) -> u64 {
    let all = client.get("/metrics").body;
    let line = all.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {all}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn questions_that_are_remembered() {
    for (limit, first_counts) in [("1", false), ("2", true)] {
        let hub = compat(&["--dialect-questions", limit]);
        let client = hub.client();
        let mut ear = stream(&client);
        let (one, other) = (client.start(), client.start());
        let (first, second) = (asked(&client, &one, &mut ear), asked(&client, &other, &mut ear));
        terms(&client, &mut ear, "{}");
        client.post("/messages", &bare(&reply("sub_1", &first, "accept")));
        assert_eq!(is_open(&client, &one, &first), !first_counts, "{limit}");
        client.post("/messages", &bare(&reply("sub_1", &second, "accept")));
        assert_eq!(decision(&client, &other, &second).0, "accept", "{limit}");
    }
}

#[test]
fn events_that_are_remembered_as_told() {
    for (limit, again) in [("1", true), ("256", false)] {
        let hub = compat(&["--dialect-told", limit]);
        let client = hub.client();
        let mut ear = stream(&client);
        let session = client.start();
        let token = asked(&client, &session, &mut ear);
        let other = client.start();
        while ear.next().2["session_id"] != other.as_str() {}
        terms(&client, &mut ear, CAN_REPLY);
        let last = client.start();
        let mut told_again = false;
        loop {
            let event = ear.next().2;
            told_again |= event["reply_token"] == token.as_str();
            if event["session_id"] == last.as_str() {
                break;
            }
        }
        assert_eq!(told_again, again, "{limit}");
    }
}

#[test]
fn earlier_subscriptions_that_are_kept() {
    for (limit, counts) in [("1", false), ("2", true)] {
        let hub = compat(&["--dialect-earlier", limit]);
        let client = hub.client();
        let mut ear = stream(&client);
        let (one, other) = (client.start(), client.start());
        let first = asked(&client, &one, &mut ear);
        terms(&client, &mut ear, CAN_REPLY);
        let second = asked(&client, &other, &mut ear);
        terms(&client, &mut ear, "{}");
        client.post("/messages", &bare(&reply("sub_1", &second, "accept")));
        assert_eq!(is_open(&client, &other, &second), !counts, "{limit}");
        client.post("/messages", &bare(&reply("sub_1", &first, "accept")));
        assert_eq!(decision(&client, &one, &first).0, "accept", "{limit}");
    }
}

/// The request as it goes over the wire, with the connection that it went out on.
fn wish(client: &Client, hub: &Hub) -> std::net::TcpStream {
    let mut early = client.connect();
    let head = format!(
        "POST /messages HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        hub.address,
        HELLO.len()
    );
    early.write_all(format!("{head}{HELLO}").as_bytes()).unwrap();
    early
}

#[test]
fn a_wish_waits_for_a_stream_as_long_as_is_said() {
    const WHOLE: [&str; 6] = [
        "session.started",
        "session.started",
        "state.changed",
        "output.streaming",
        "state.changed",
        "session.completed",
    ];
    // So long that only a stream can end the wait.
    let hub = compat(&["--dialect-patience", "1h"]);
    let client = hub.client();
    let mut early = wish(&client, &hub);
    assert_eq!(metric(&client, "sayso_sessions_started_total"), 0);
    let mut ear = stream(&client);
    assert_eq!(std::array::from_fn(|_| ear.next_type()), WHOLE, "the wish came first");
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(client.post("/messages", HELLO).status, 201);
    assert_eq!(std::array::from_fn(|_| ear.next_type()), WHOLE, "the stream came first");
    // So short that nobody needs to come.
    let hub = compat(&["--dialect-patience", "50ms"]);
    assert_eq!(hub.client().post("/messages", HELLO).status, 201, "nobody ever listens");
}

#[test]
fn streams_and_sockets_of_the_dialect_are_counted_as_listeners() {
    let hub = compat(&[]);
    let client = hub.client();
    let (sse, websocket) = (r#"sayso_listeners{wire="sse"}"#, r#"sayso_listeners{wire="websocket"}"#);
    let mut ear = stream(&client);
    let mut socket = Socket::connect(&hub, &[]).unwrap();
    client.start();
    ear.next();
    socket.next();
    assert_eq!((metric(&client, sse), metric(&client, websocket)), (1, 1));
    let mut plain = client.listen(&client.subscribe("{}"), None);
    client.start();
    plain.next();
    assert_eq!(metric(&client, sse), 2, "beside those that shook hands");
    drop(ear);
    while metric(&client, sse) != 1 {}
}

#[test]
fn sessions_of_the_demo() {
    let hub = Hub::limited(&["--demo-agent", "--demo-sessions", "1", "--http-heartbeat", "1h"]);
    let client = hub.client();
    let subscription = client.subscribe(CAN_REPLY);
    let mut ear = client.listen(&subscription, None);
    let ask = |text: &str| client.post("/demo", &format!(r#"{{"text":"{text}"}}"#));
    assert_eq!(ask("Delete a record").status, 201);
    let token = loop {
        let event = ear.next().2;
        if let Some(token) = event["reply_token"].as_str() {
            break token.to_owned();
        }
    };
    let busy = ask("Hello");
    assert_eq!(busy.status, 503);
    assert!(busy.body.contains("The assistant is busy"), "{busy:?}");
    client.reply(&subscription, &token, "reject");
    while ear.next_type() != "session.completed" {}
    // Its place is free as soon as it has heard that the end was told.
    while ask("Hello").status != 201 {}
}
