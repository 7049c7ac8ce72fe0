//! MessagePack between nodes, if both agreed on it in the invitation.

use asp::Performative;
use serde_json::json;

use crate::proxy::{Fault, Proxy};
use crate::raw_peer::{RawPeer, RawSession, SESSIONS};
use crate::script::{BUYER, PRESS, Script, run_script, verify};
use crate::test_node::{NodeBuilder, TestNode, start_builders, timestamp_in};

const MSGPACK: &str = "application/asp+msgpack";

/// Opens a session whose invitation offers MessagePack, or not.
fn open(peer: &RawPeer, node: &TestNode, offers: bool) -> RawSession {
    let mut session = peer.session(node);
    let mut body = json!({"proposalId": format!("prop_{}", session.id), "type": "session-invitation",
        "subject": "a talk", "terms": {}, "validUntil": timestamp_in(600)});
    if offers {
        body["encodings"] = json!([MSGPACK]);
    }
    let invitation = session.sign(Performative::Propose, &body.to_string());
    assert_eq!(peer.send(node, "POST", SESSIONS, &invitation.text).status, 201);
    session.participant.settle(invitation.message_id);
    node.send(&session.id, "ACCEPT", &json!({"referenceId": format!("prop_{}", session.id)}));
    session.catch_up(peer, node);
    let identity = format!(r#"{{"informType":"identity","card":{}}}"#, peer.card.as_str());
    session.send(peer, node, Performative::Inform, &identity);
    session.catch_up(peer, node);
    session
}

/// Sends a request with a valid proof and a body in MessagePack. Returns the status.
fn post(peer: &RawPeer, node: &TestNode, path: &str, bytes: &[u8]) -> u16 {
    let mut headers = peer.headers(&peer.claims(node, "POST", path));
    *headers.last_mut().unwrap() = format!("Content-Type: {MSGPACK}");
    let (host, headers) = (&node.address, headers.join("\r\n"));
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\nConnection: close\r\n");
    let head = format!("{head}Content-Length: {}\r\n\r\n", bytes.len());
    let response = node.client().send_raw(&[head.as_bytes(), bytes].concat());
    response.split(' ').nth(1).unwrap().parse().unwrap()
}

fn start(builder: NodeBuilder, peer: &RawPeer) -> TestNode {
    let folder = builder.create_folder();
    builder.start(folder, &[peer.card_file()])
}

#[test]
fn message_pack_is_taken_only_after_an_agreement() {
    let peer = RawPeer::new("peer");
    for (accepts, offers) in [(true, true), (true, false), (false, true)] {
        let builder = NodeBuilder::new("press");
        let node = start(if accepts { builder.argument("--msgpack") } else { builder }, &peer);
        let mut session = open(&peer, &node, offers);
        let is_agreed = accepts && offers;
        let view = node.view(&session.id, 0, 0).unwrap();
        assert_eq!(view.0["encoding"] == MSGPACK, is_agreed, "{view:?}");
        let acceptance = &view.messages()[1]["content"]["body"];
        assert_eq!(acceptance.get("encoding"), is_agreed.then(|| json!(MSGPACK)).as_ref());
        let sent = session.sign(Performative::Observe, r#"{"subject":"the weather"}"#);
        let bytes = asp::message_pack::encode(&sent.text).unwrap();
        let status = post(&peer, &node, &session.messages_path(), &bytes);
        assert_eq!(status, if is_agreed { 200 } else { 415 });
        // JSON is always taken, and the same message is stored once.
        let response = peer.send(&node, "POST", &session.messages_path(), &sent.text);
        assert_eq!(response.status, 200, "{response:?}");
        let transcript = node.transcript(&session.id);
        assert_eq!(transcript.lines().last(), Some(&*sent.text));
        assert_eq!(transcript.lines().count(), 5);
    }
}

#[test]
fn a_malformed_message_pack_is_refused() {
    let peer = RawPeer::new("peer");
    let node = start(NodeBuilder::new("press").argument("--msgpack"), &peer);
    let mut session = open(&peer, &node, true);
    let sent = session.sign(Performative::Observe, r#"{"subject":"the weather"}"#);
    let bytes = asp::message_pack::encode(&sent.text).unwrap();
    let path = session.messages_path();
    let duplicate = [0x82, 0xa1, b'a', 0xc0, 0xa1, b'a', 0xc0];
    let too_long = [bytes.clone(), vec![0xc0]].concat();
    for bytes in [&bytes[..bytes.len() - 1], &too_long, &duplicate, &[0xc1], &[]] {
        assert_eq!(post(&peer, &node, &path, bytes), 400, "{bytes:x?}");
    }
    // An invitation is JSON, because nothing is agreed yet.
    let invitation = peer.session(&node).invitation("another talk").text;
    let bytes_of_invitation = asp::message_pack::encode(&invitation).unwrap();
    assert_eq!(post(&peer, &node, SESSIONS, &bytes_of_invitation), 415);
    assert_eq!(post(&peer, &node, &path, &bytes), 200);
}

#[test]
fn nodes_that_agree_send_message_pack() {
    let (listener, address) = Proxy::bind();
    let press = NodeBuilder::new("press").argument("--msgpack").published_at(&address);
    let proxy = Proxy::start(listener, &press.address, |_| Fault::None);
    let pair = start_builders([NodeBuilder::new("buyer").argument("--msgpack"), press]);
    let script = Script::agreed(&pair);
    let session = run_script(pair.each_ref(), &script, |_, _, _| {});
    let transcripts = [BUYER, PRESS].map(|side| {
        let view =
            pair[side].wait_for(&session, "the end", |view| view.is_terminal() && view.is_acknowledged());
        assert_eq!(view.0["encoding"], MSGPACK, "{view:?}");
        pair[side].transcript(&session)
    });
    assert_eq!(transcripts[0], transcripts[1]);
    verify(&transcripts[0], &pair[BUYER].cards(&session));
    let requests = proxy.requests();
    let count = |media_type: &str| {
        let header = format!("content-type: application/{media_type}");
        let has_header =
            |request: &&Vec<u8>| String::from_utf8_lossy(request).to_ascii_lowercase().contains(&header);
        requests.iter().filter(has_header).count()
    };
    // Before the introduction, the buyer sends the invitation, again with a nonce, and its identity.
    let (packed, plain) = (count("asp+msgpack"), count("asp+json"));
    assert!(packed >= 6 && (1..=3).contains(&plain), "{packed} {plain}");
}
