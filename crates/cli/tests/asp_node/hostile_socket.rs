//! A hostile peer on a WebSocket: floods, giant frames, messages of other sessions, and repeated traffic.

use asp::Performative;
use serde_json::{Value, json};
use testing::websocket::{WebSocketClient, read_close_code};
use tungstenite::Message;

use crate::raw_peer::{RawPeer, RawSession};
use crate::routes::{authenticate, next_frame};
use crate::test_node::{NodeBuilder, TestNode};

const RATES: &str = "\
[limits]
messages_per_minute = [100000, 100000, 100000, 100000, 100000]
invitations_per_minute = [100000, 100000, 100000, 100000, 100000]
";

fn start(policy: &str, peers: &[&RawPeer]) -> TestNode {
    let builder = NodeBuilder::new("press").policy(policy);
    let folder = builder.create_folder();
    builder.start(folder, &peers.iter().map(|peer| peer.card_file()).collect::<Vec<_>>())
}

fn connect(peer: &RawPeer, node: &TestNode, session: &RawSession) -> WebSocketClient {
    let (socket, answer) = authenticate(peer, node, &session.id, 1000);
    assert_eq!(answer["type"], "auth_ok", "{answer}");
    socket
}

fn send_frame(envelope: &str) -> String {
    format!(r#"{{"type":"send","envelope":{envelope}}}"#)
}

fn count(node: &TestNode, session: &RawSession) -> usize {
    node.view(&session.id, 0, 0).unwrap().message_count()
}

/// Sends the same frame until the node closes the connection. Returns the number of answers and the close code.
fn flood(socket: &mut WebSocketClient, frame: &str) -> (usize, u16) {
    for _ in 0..1000 {
        if socket.0.send(Message::text(frame)).is_err() {
            break;
        }
    }
    let mut errors = 0;
    loop {
        match socket.0.read().unwrap() {
            Message::Text(text) => {
                let frame: Value = serde_json::from_str(&text).unwrap();
                errors += usize::from(frame["type"] == "error");
            }
            Message::Close(frame) => return (errors, frame.unwrap().code.into()),
            _ => {}
        }
    }
}

#[test]
fn a_socket_is_closed_after_too_many_faulty_frames() {
    let peer = RawPeer::new("peer");
    let node = start(RATES, &[&peer]);
    let session = peer.open_conversation(&node);
    let forged = r#"{"type":"send","envelope":{"sessionId":1}}"#;
    for frame in ["x", "{}", forged] {
        let mut socket = connect(&peer, &node, &session);
        let (errors, code) = flood(&mut socket, frame);
        assert_eq!((errors, code), (33, 1008), "{frame}");
    }
    // Each heartbeat permits one pong.
    let mut socket = connect(&peer, &node, &session);
    assert_eq!(flood(&mut socket, r#"{"type":"pong"}"#), (0, 1008));
    assert_eq!(count(&node, &session), 4);
}

#[test]
fn a_flood_on_a_socket_is_limited_by_the_senders_rate() {
    let peer = RawPeer::new("peer");
    let policy = "[limits]\nmessages_per_minute = [20, 20, 20, 20, 20]\n";
    let node = start(policy, &[&peer]);
    let mut session = peer.open_conversation(&node);
    let mut socket = connect(&peer, &node, &session);
    let message = session.sign(Performative::Observe, r#"{"subject":"the weather"}"#).text;
    socket.send(&send_frame(&message));
    next_frame(&mut socket, "ack");
    // A repeated message counts against the rate, although it is acknowledged each time.
    let limited = loop {
        socket.send(&send_frame(&message));
        let answer = socket.next();
        match answer["type"].as_str() {
            Some("error") => break answer,
            Some("ack" | "message" | "heartbeat" | "session_state") => {}
            _ => panic!("{answer}"),
        }
    };
    assert_eq!(limited["code"], "capacity_unavailable", "{limited}");
    assert!(limited["retryAfterMs"].as_i64().unwrap() > 0, "{limited}");
    assert_eq!(flood(&mut socket, &send_frame(&message)).1, 1008);
    assert_eq!(count(&node, &session), 5);
}

#[test]
fn giant_frames_and_messages_are_refused() {
    let peer = RawPeer::new("peer");
    let node = start(RATES, &[&peer]);
    let mut session = peer.open_conversation(&node);
    // A message above the limit on messages, in a frame below the limit on frames.
    let mut socket = connect(&peer, &node, &session);
    let body = format!(r#"{{"subject":"{}"}}"#, "x".repeat(256 * 1024));
    let giant = session.sign(Performative::Observe, &body).text;
    socket.send(&send_frame(&giant));
    let answer = next_frame(&mut socket, "error");
    assert!(answer["message"].as_str().unwrap().contains("bytes"), "{answer}");
    // A frame above the limit. The node may close the connection before it has read all of it.
    let mut socket = connect(&peer, &node, &session);
    let _ = socket.0.send(Message::text(send_frame(&format!(r#""{}""#, "x".repeat(1 << 21)))));
    assert_eq!(read_close_code(&mut socket.0), 1009);
    let mut socket = connect(&peer, &node, &session);
    socket.0.send(Message::binary(vec![0; 10])).unwrap();
    assert_eq!(read_close_code(&mut socket.0), 1003);
    assert_eq!(count(&node, &session), 4);
}

#[test]
fn a_message_of_another_session_has_no_effect_on_a_socket() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let node = start(RATES, &[&peer, &other]);
    let (mut first, second) = (peer.open_conversation(&node), peer.open_conversation(&node));
    let mut foreign = other.open_conversation(&node);
    let mut socket = connect(&peer, &node, &second);
    let close = first.sign(Performative::Close, r#"{"reason":"done"}"#).text;
    let foreign_close = foreign.sign(Performative::Close, r#"{"reason":"done"}"#).text;
    for text in [&close, &foreign_close] {
        socket.send(&send_frame(text));
        assert!(next_frame(&mut socket, "error")["code"].is_string());
    }
    assert_eq!([&first, &second, &foreign].map(|session| count(&node, session)), [4, 4, 4]);
    // In its own session, the same message is accepted.
    let mut socket = connect(&peer, &node, &first);
    socket.send(&send_frame(&close));
    next_frame(&mut socket, "ack");
}

#[test]
fn recorded_frames_of_a_session_change_nothing_when_they_are_repeated() {
    let peer = RawPeer::new("peer");
    let node = start(RATES, &[&peer]);
    let mut session = peer.open_conversation(&node);
    let mut socket = connect(&peer, &node, &session);
    let frames: Vec<String> = ["sun", "rain", "wind"]
        .map(|subject| session.sign(Performative::Observe, &json!({"subject": subject}).to_string()).text)
        .iter()
        .map(|text| send_frame(text))
        .collect();
    let acks: Vec<Value> = frames
        .iter()
        .map(|frame| {
            socket.send(frame);
            next_frame(&mut socket, "ack")
        })
        .collect();
    // On the same connection and on another one, in any order, each frame gets the answer that it got first.
    let mut another = connect(&peer, &node, &session);
    for index in [2, 0, 1, 1] {
        for socket in [&mut socket, &mut another] {
            socket.send(&frames[index]);
            assert_eq!(next_frame(socket, "ack"), acks[index]);
        }
    }
    assert_eq!(count(&node, &session), 7);
}

#[test]
fn a_socket_carries_only_the_documented_frames() {
    let peer = RawPeer::new("peer");
    let node = start(RATES, &[&peer]);
    let mut session = peer.open_conversation(&node);
    let (mut socket, answer) = authenticate(&peer, &node, &session.id, 0);
    let mut kinds = std::collections::BTreeSet::from([answer["type"].as_str().unwrap().to_owned()]);
    let score = |node: &TestNode| {
        let agent = peer.card.agent_id();
        node.get(&format!("/agent/v1/asp/trust?agent={agent}")).json()["score"].as_f64().unwrap()
    };
    let before = score(&node);
    for (performative, body) in [
        (Performative::Observe, r#"{"subject":"the weather"}"#),
        (Performative::Close, r#"{"reason":"done"}"#),
    ] {
        socket.send(&send_frame(&session.sign(performative, body).text));
    }
    socket.send("x");
    loop {
        match socket.0.read().unwrap() {
            Message::Text(text) => {
                let frame: Value = serde_json::from_str(&text).unwrap();
                kinds.insert(frame["type"].as_str().unwrap().to_owned());
            }
            Message::Close(_) => break,
            _ => {}
        }
    }
    // The end of the session changed our trust in the peer, which is not told to the peer (D35).
    assert!((score(&node) - before).abs() > 0.0);
    let expected = ["ack", "auth_ok", "error", "heartbeat", "message", "session_state"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
    // The table in docs/asp.md names these frames and those of the client.
    let page = include_str!("../../../../docs/asp.md");
    let section = page.split("### The frames of the WebSocket").nth(1).unwrap();
    let section = section.split("\n### ").next().unwrap();
    for kind in expected.iter().chain(&["auth", "send", "pong"]) {
        assert!(section.contains(&format!("| `{kind}` |")), "{kind} is not documented");
    }
}
