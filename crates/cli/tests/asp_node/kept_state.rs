//! What a node keeps: how much a peer can make it store, ended sessions, and sessions that it cannot restore.

use asp::Performative;
use journal::{Journal, JournalEntry, SqliteJournal, SqliteSettings};
use seal::UnixMillis;
use serde_json::json;
use testing::http::TestResponse;

use crate::metrics::metrics;
use crate::peer_server::PeerServer;
use crate::policies::sign_unchecked;
use crate::raw_peer::{RawPeer, SESSIONS, header, now, uuid};
use crate::routes::{authenticate, next_frame};
use crate::test_node::{NodeBuilder, Storage, TestNode, View};

const GENEROUS: &str =
    "messages_per_minute = [999, 999, 999, 999, 999]\ninvitations_per_minute = [999, 999, 999, 999, 999]\n";

fn start(name: &str, limits: &str, peers: &[&RawPeer]) -> TestNode {
    let policy = format!("[limits]\n{GENEROUS}{limits}");
    let builder = NodeBuilder::new(name).storage(Storage::Disk).policy(&policy);
    let folder = builder.create_folder();
    builder.start(folder, &peers.iter().map(|peer| peer.card_file()).collect::<Vec<_>>())
}

fn code(response: &TestResponse) -> (u16, String) {
    (response.status, response.json_str("code"))
}

#[test]
fn the_recorded_refusals_of_a_session_are_limited() {
    let peer = RawPeer::new("peer");
    let node = start("press", "refusals_per_session = 3\n", &[&peer]);
    let mut session = peer.open_conversation(&node);
    let path = session.messages_path();
    for number in 0..3 {
        // The invitation of another session does not belong here.
        let other = peer.session(&node).invitation(&format!("talk {number}")).text;
        let response = peer.send(&node, "POST", &path, &other);
        assert_eq!(code(&response), (422, "invalid_state_transition".to_owned()));
        assert!(response.json()["reject"].is_string());
    }
    let next = session.sign(Performative::Observe, r#"{"subject":"the weather"}"#).text;
    for _ in 0..2 {
        let response = peer.send(&node, "POST", &path, &next);
        assert_eq!(code(&response), (422, "capacity_unavailable".to_owned()));
        assert!(response.json().get("reject").is_none(), "{response:?}");
        node.restart();
    }
    assert_eq!(node.view(&session.id, 0, 0).unwrap().message_count(), 4);
    // Other sessions of the peer go on.
    let mut other = peer.open_conversation(&node);
    other.send(&peer, &node, Performative::Observe, r#"{"subject":"the weather"}"#);
}

#[test]
fn messages_that_are_not_authentic_leave_few_records_a_day() {
    let peer = RawPeer::new("peer");
    let node = start("press", "violations_per_minute = 1000\nviolations_per_day = 2\n", &[&peer]);
    let forged = peer.session(&node).invitation("a talk").text.replace("a talk", "a walk");
    let events = || {
        let report = node.get(&format!("/agent/v1/asp/trust?agent={}", peer.card.agent_id())).json();
        let components = report["components"].as_array().unwrap().clone();
        let all = components.iter().flat_map(|component| component["events"].as_array().unwrap().clone());
        let counts = all.filter(|event| event["name"] == "authentication_failed");
        counts.map(|event| event["count"].as_u64().unwrap()).max().unwrap_or(0)
    };
    for expected in [1, 2, 2, 2] {
        assert_eq!(peer.send(&node, "POST", SESSIONS, &forged).status, 400);
        assert_eq!(events(), expected);
    }
}

#[test]
fn the_size_of_each_sides_messages_is_limited_and_both_can_leave() {
    let server = PeerServer::start(true);
    let peer = server.peer();
    let node = start("press", "message_bytes = 60000\nsession_bytes = 60000\n", &[&peer]);
    let mut session = peer.open_conversation(&node);
    let observe = |letter: &str| json!({"subject": letter.repeat(20_000)});
    for letter in ["a", "b"] {
        session.send(&peer, &node, Performative::Observe, &observe(letter).to_string());
    }
    // The peer has used up its share. The session goes on without the refused message.
    let text = sign_unchecked(&peer, &session, &node, Performative::Observe, &observe("c").to_string());
    let response = peer.send(&node, "POST", &session.messages_path(), &text);
    assert_eq!(code(&response), (422, "capacity_unavailable".to_owned()));
    assert!(
        response.json_str("reason").contains("it can only leave") && response.json()["reject"].is_string()
    );
    // The node's agent has its own share, and learns when it is used up.
    for letter in ["d", "e"] {
        node.send(&session.id, "OBSERVE", &observe(letter));
    }
    let refused = node.try_post_message(&session.id, "OBSERVE", &observe("f")).unwrap();
    assert_eq!(code(&refused), (422, "capacity_unavailable".to_owned()));
    node.wait_for(&session.id, "the delivery", View::is_acknowledged);
    session.catch_up(&peer, &node);
    // After a restart, the limit still holds, and both sides can leave.
    node.restart();
    let text = sign_unchecked(&peer, &session, &node, Performative::Observe, &observe("g").to_string());
    assert_eq!(peer.send(&node, "POST", &session.messages_path(), &text).status, 422);
    let close = json!({"reason": "z".repeat(20_000)}).to_string();
    session.send(&peer, &node, Performative::Close, &close);
    assert_eq!(node.view(&session.id, 0, 0).unwrap().state(), "CLOSED");
}

#[test]
fn the_bytes_that_a_peer_sends_per_minute_are_limited() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let limit = "bytes_per_minute = [40000, 40000, 40000, 40000, 40000]\n";
    let node = start("press", limit, &[&peer, &other]);
    let mut session = peer.open_conversation(&node);
    let long = json!({"subject": "x".repeat(30_000)}).to_string();
    session.send(&peer, &node, Performative::Observe, &long);
    let next = session.sign(Performative::Observe, &long).text;
    let response = peer.send(&node, "POST", &session.messages_path(), &next);
    assert_eq!(code(&response), (429, "capacity_unavailable".to_owned()));
    let seconds: u64 = header(&response, "Retry-After").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{response:?}");
    let (mut socket, answer) = authenticate(&peer, &node, &session.id, 1000);
    assert_eq!(answer["type"], "auth_ok");
    socket.send(&format!(r#"{{"type":"send","envelope":{next}}}"#));
    let error = next_frame(&mut socket, "error");
    assert_eq!(error["code"], "capacity_unavailable");
    assert!(error["retryAfterMs"].as_u64().unwrap() > 0, "{error}");
    assert_eq!(node.view(&session.id, 0, 0).unwrap().message_count(), 5);
    // Other peers are not affected.
    let mut other_session = other.open_conversation(&node);
    other_session.send(&other, &node, Performative::Observe, &long);
}

#[test]
fn a_page_has_a_limited_size() {
    let peer = RawPeer::new("peer");
    let node = start("press", "", &[&peer]);
    let mut session = peer.open_conversation(&node);
    let long = json!({"subject": "x".repeat(250_000)}).to_string();
    for _ in 0..4 {
        session.send(&peer, &node, Performative::Observe, &long);
    }
    let mut positions = vec![0];
    loop {
        let path = format!("{}?limit=200&cursor={}", session.messages_path(), positions.last().unwrap());
        let page = peer.get(&node, &path).json();
        let bytes: usize =
            page["messages"].as_array().unwrap().iter().map(|message| message.to_string().len()).sum();
        assert!(bytes <= 512 * 1024, "{bytes}");
        let Some(cursor) = page["cursor"].as_str() else { break };
        positions.push(cursor.parse().unwrap());
    }
    // Four short messages and two long ones, then the other two.
    assert_eq!(positions, [0, 6]);
}

#[test]
fn registrations_are_limited_by_address() {
    let builder = NodeBuilder::new("registry")
        .argument("--registry")
        .policy("[limits]\nregistrations_per_minute = 2\n");
    let folder = builder.create_folder();
    let node = builder.start(folder, &[]);
    let peer = RawPeer::new("peer");
    let put = || peer.send(&node, "PUT", "/v1/asp/agents/peer/card", peer.card.as_str()).status;
    // A request without a proof counts, too.
    assert_eq!(node.client().send("PUT", "/v1/asp/agents/peer/card", peer.card.as_str()).status, 401);
    assert_eq!([put(), put(), put()], [204, 429, 429]);
    assert_eq!(node.get("/v1/asp/agents/peer/card").status, 200, "reading is not limited");
}

#[test]
fn an_ended_session_is_rebuilt_once() {
    let peer = RawPeer::new("peer");
    let node = start("press", "kept_ended_sessions = 1\n", &[&peer]);
    let sessions = [(); 2].map(|()| {
        let mut session = peer.open_conversation(&node);
        session.send(&peer, &node, Performative::Close, r#"{"reason":"done"}"#);
        session
    });
    let [first, second] = &sessions;
    let read = |id: &str| {
        for path in [format!("{SESSIONS}/{id}"), format!("{SESSIONS}/{id}/messages")] {
            assert_eq!(peer.get(&node, &path).status, 200);
        }
        node.view(id, 0, 0).map(|view| (view.state().to_owned(), view.message_count()))
    };
    let rebuilt = || metrics(&node)["sayso_asp_sessions_rebuilt_total"];
    let closed = Some(("CLOSED".to_owned(), 5));
    assert_eq!((read(&second.id), rebuilt()), (closed.clone(), 0.0));
    // Only one is kept.
    assert_eq!((read(&first.id), rebuilt()), (closed.clone(), 1.0));
    assert_eq!((read(&first.id), rebuilt()), (closed.clone(), 1.0));
    assert_eq!((read(&second.id), rebuilt()), (closed.clone(), 2.0));
    node.restart();
    assert_eq!((read(&second.id), rebuilt()), (closed, 1.0));
}

#[test]
fn an_ended_session_refuses_messages_and_stores_nothing() {
    let peer = RawPeer::new("peer");
    let node = start("press", "", &[&peer]);
    let mut session = peer.open_conversation(&node);
    session.send(&peer, &node, Performative::Close, r#"{"reason":"done"}"#);
    let transcript = node.transcript(&session.id);
    let late = peer.session(&node).invitation("another talk");
    for _ in 0..3 {
        let response = peer.send(&node, "POST", &session.messages_path(), &late.text);
        assert_eq!(response.status, 422, "{response:?}");
        assert_eq!(node.transcript(&session.id), transcript);
        node.restart();
    }
}

#[test]
fn a_session_that_cannot_be_restored_is_left_alone() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let node = start("press", "", &[&peer, &other]);
    let mut damaged = peer.open_conversation(&node);
    // The node loses the keys with which the session began.
    let node = node.restart_with_new_keys();
    let list = node.get("/agent/v1/asp/sessions").json();
    assert_eq!(list["sessions"], json!([]));
    assert_eq!(list["quarantined"][0]["sessionId"], damaged.id.as_str(), "{list}");
    let reason = list["quarantined"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("keys with which it began"), "{reason}");
    assert_eq!(metrics(&node)["sayso_asp_sessions_quarantined"], 1.0);
    // Nothing happens in it, and nothing is accepted.
    let path = damaged.messages_path();
    let commit = damaged.sign(Performative::Observe, r#"{"subject":"the weather"}"#).text;
    assert_eq!(peer.send(&node, "POST", &path, &commit).status, 500);
    let response = node.try_post_message(&damaged.id, "CLOSE", &json!({"reason": "done"})).unwrap();
    assert_eq!(response.status, 500, "{response:?}");
    // Not even the same invitation begins it again.
    let record = damaged.participant.record().unwrap();
    let invitation = record.transcript().messages().next().unwrap().to_owned();
    assert_eq!(peer.send(&node, "POST", SESSIONS, &invitation).status, 500);
    // Other sessions work.
    let mut session = other.open_conversation(&node);
    session.send(&other, &node, Performative::Close, r#"{"reason":"done"}"#);
}

#[test]
fn malformed_rows_of_a_session_affect_only_this_session() {
    let peer = RawPeer::new("peer");
    let node = start("press", "", &[&peer]);
    let mut sessions = [(); 5].map(|()| peer.open_conversation(&node));
    let ids = sessions.each_ref().map(|session| session.id.clone());
    let node = node.restart_with_data(|data| {
        let path = data.join("journal.sqlite");
        let mut journal = SqliteJournal::open(&path, &SqliteSettings::default()).unwrap();
        let mut position = journal.restore().unwrap().last_position;
        // Text that is not JSON, an unknown record, bytes that are not UTF-8, and a session without its cards.
        for (session, body) in ids.iter().zip([&b"{"[..], br#"{"unheard_of":1}"#, b"\xff"]) {
            position = position.next();
            let event = JournalEntry::Event {
                position,
                session,
                event_id: &uuid(),
                at: now(),
                is_critical: false,
                body,
            };
            journal.commit(&[event]).unwrap();
        }
        let expires = UnixMillis::MAX;
        let touched =
            JournalEntry::SessionTouched { id: &ids[3], lease_expires_at: expires, record: Some(b"{}") };
        journal.commit(&[touched]).unwrap();
    });
    let list = node.get("/agent/v1/asp/sessions").json();
    let mut quarantined: Vec<_> = list["quarantined"].as_array().unwrap().iter().collect();
    quarantined.sort_unstable_by_key(|entry| entry["sessionId"].as_str());
    let mut expected = ids[..4].to_vec();
    expected.sort_unstable();
    assert_eq!(
        quarantined.iter().map(|entry| &entry["sessionId"]).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert!(
        quarantined.iter().all(|entry| entry["reason"].as_str().unwrap().contains("malformed")),
        "{list}"
    );
    assert_eq!(metrics(&node)["sayso_asp_sessions_quarantined"], 4.0);
    for session in &mut sessions[..4] {
        let message = session.sign(Performative::Observe, r#"{"subject":"the weather"}"#).text;
        assert_eq!(peer.send(&node, "POST", &session.messages_path(), &message).status, 500);
    }
    sessions[4].send(&peer, &node, Performative::Close, r#"{"reason":"done"}"#);
    assert_eq!(node.view(&ids[4], 0, 0).unwrap().state(), "CLOSED");
}

#[test]
fn a_long_subject_is_shortened() {
    let peer = RawPeer::new("peer");
    let node = start("press", "", &[&peer]);
    let mut session = peer.session(&node);
    let invitation = session.invitation(&"long ".repeat(20_000)).text;
    assert_eq!(peer.send(&node, "POST", SESSIONS, &invitation).status, 201);
    let list = node.get("/agent/v1/asp/sessions").json();
    let subject = list["sessions"][0]["subject"].as_str().unwrap();
    assert_eq!(subject.chars().count(), 500);
    // The message itself is unchanged.
    assert_eq!(node.transcript(&session.id).lines().next(), Some(&*invitation));
}
