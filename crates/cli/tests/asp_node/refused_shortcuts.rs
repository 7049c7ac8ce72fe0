//! Shortcuts that a peer may try: past the node's own checks, past its limits, and past the money that it has.

use std::net::TcpListener;

use asp::Performative;
use serde_json::{Value, json};
use testing::http::TestResponse;

use crate::peer_server::PeerServer;
use crate::raw_peer::{CardServer, RawPeer, SESSIONS, access_token, now, token_hash, uuid};
use crate::test_node::{NodeBuilder, Storage, TestNode, poll, timestamp_in};

const GENEROUS: &str =
    "messages_per_minute = [999, 999, 999, 999, 999]\ninvitations_per_minute = [999, 999, 999, 999, 999]\n";

fn start(policy: &str, peers: &[&RawPeer]) -> TestNode {
    let builder = NodeBuilder::new("press").policy(policy);
    let folder = builder.create_folder();
    builder.start(folder, &peers.iter().map(|peer| peer.card_file()).collect::<Vec<_>>())
}

/// Returns a commitment of `depositor` to pay 100 euros into escrow.
pub(crate) fn commitment(id: &str, party: &str, amount: &str) -> Value {
    json!({"commitmentId": id,
        "terms": {"obligations": [{"party": party, "action": "print", "deadline": timestamp_in(86_400)}]},
        "escrow": {"amount": amount, "currency": "EUR"}})
}

pub(crate) fn deposits(agent: &str, amount: &str) -> String {
    format!(
        "[limits]\n{GENEROUS}retry_delay_ms = 10\nmax_retry_delay_ms = 50\n[circuit_breaker]\nfailure_threshold = 1000000\n[escrow]\nceilings = [\"9999\", \"9999\", \"9999\", \"9999\", \"9999\"]\ndeposits = [{{ agent = \"{agent}\", amount = \"{amount}\", currency = \"EUR\" }}]\n"
    )
}

#[test]
fn catching_up_does_not_pass_an_acceptance_around_the_checks() {
    let server = PeerServer::start(true);
    let peer = server.peer();
    // Nobody has deposited anything.
    let node = start(&deposits("agent://127.0.0.1:1/nobody", "1.00"), &[&peer]);
    let mut session = peer.open_conversation(&node);
    let open = r#"{"proposalId":"prop_1","type":"purchase","subject":"cards","terms":{}}"#;
    session.send(&peer, &node, Performative::Propose, open);
    let agent = peer.card.agent_id().to_string();
    node.send(&session.id, "COMMIT", &commitment("cmt_1", &agent, "100.00"));
    node.wait_for(&session.id, "the delivery", crate::test_node::View::is_acknowledged);
    session.catch_up(&peer, &node);
    // The node has no money for its escrow, so it refuses the acceptance.
    let accept = session.sign(Performative::Accept, r#"{"referenceId":"cmt_1"}"#);
    let response = peer.send(&node, "POST", &session.messages_path(), &accept.text);
    assert_eq!((response.status, response.json_str("code")), (422, "budget_exceeded".to_owned()));
    // The peer keeps it in its own transcript, and goes on as if it had been accepted.
    let result = session.sign(Performative::Inform, r#"{"informType":"result","data":{}}"#);
    server.publish(&session);
    let response = peer.send(&node, "POST", &session.messages_path(), &result.text);
    assert!([409, 422].contains(&response.status), "{response:?}");
    let view = node.view(&session.id, 0, 0).unwrap();
    assert_ne!(view.state(), "EXECUTING");
    let references: Vec<_> =
        view.messages().iter().map(|message| message["content"]["body"]["referenceId"].clone()).collect();
    assert!(!references.contains(&json!("cmt_1")), "{references:?}");
}

#[test]
fn an_acceptance_that_the_node_never_saw_is_not_adopted() {
    let server = PeerServer::start(true);
    let peer = server.peer();
    let node = start(&deposits("agent://127.0.0.1:1/nobody", "1.00"), &[&peer]);
    let mut session = peer.open_conversation(&node);
    let open = r#"{"proposalId":"prop_1","type":"purchase","subject":"cards","terms":{}}"#;
    session.send(&peer, &node, Performative::Propose, open);
    let agent = peer.card.agent_id().to_string();
    node.send(&session.id, "COMMIT", &commitment("cmt_1", &agent, "100.00"));
    node.wait_for(&session.id, "the delivery", crate::test_node::View::is_acknowledged);
    session.catch_up(&peer, &node);
    session.sign(Performative::Accept, r#"{"referenceId":"cmt_1"}"#);
    let result = session.sign(Performative::Inform, r#"{"informType":"result","data":{}}"#);
    server.publish(&session);
    let response = peer.send(&node, "POST", &session.messages_path(), &result.text);
    assert_eq!(response.status, 422, "{response:?}");
    assert_eq!(node.view(&session.id, 0, 0).unwrap().state(), "FAILED");
}

#[test]
fn the_same_money_does_not_cover_two_commitments() {
    let server = PeerServer::start(false);
    let peer = server.peer();
    let node = start(&deposits(peer.card.agent_id().as_str(), "100.00"), &[&peer]);
    let mut sessions = [(); 2].map(|()| peer.open_conversation(&node));
    for session in &mut sessions {
        let open = r#"{"proposalId":"prop_1","type":"purchase","subject":"cards","terms":{}}"#;
        session.send(&peer, &node, Performative::Propose, open);
        let commit = commitment("cmt_1", &node.agent, "100.00").to_string();
        session.send(&peer, &node, Performative::Commit, &commit);
    }
    // The peer has not stored the first acceptance, so its money is not held yet.
    let accept = json!({"referenceId": "cmt_1"});
    node.send(&sessions[0].id, "ACCEPT", &accept);
    let second = node.try_post_message(&sessions[1].id, "ACCEPT", &accept).unwrap();
    assert_eq!((second.status, second.json_str("code")), (422, "budget_exceeded".to_owned()));
    assert!(!node.view(&sessions[0].id, 0, 0).unwrap().is_acknowledged());
}

fn trust_events(node: &TestNode, peer: &RawPeer) -> String {
    node.get(&format!("/agent/v1/asp/trust?agent={}", peer.card.agent_id())).body
}

#[test]
fn the_end_of_a_session_counts_although_its_last_message_was_never_delivered() {
    let server = PeerServer::start(false);
    let peer = server.peer();
    let policy = format!(
        "[limits]\n{GENEROUS}retry_delay_ms = 10\nmax_retry_delay_ms = 50\ndelivery_timeout_seconds = 1\n[circuit_breaker]\nfailure_threshold = 1000000\n"
    );
    let node = start(&policy, &[&peer]);
    let session = peer.open_conversation(&node);
    node.send(&session.id, "CLOSE", &json!({"reason": "done"}));
    assert!(!trust_events(&node, &peer).contains("session_closed"), "the message is on its way");
    poll("the end of the delivery", || trust_events(&node, &peer).contains("session_closed").then_some(()));
}

#[test]
fn a_timeout_counts_once_although_a_message_is_on_its_way() {
    let server = PeerServer::start(false);
    let peer = server.peer();
    let policy = format!(
        "[limits]\n{GENEROUS}retry_delay_ms = 10\nmax_retry_delay_ms = 50\ndelivery_timeout_seconds = 3\n[circuit_breaker]\nfailure_threshold = 1000000\n"
    );
    let node = start(&policy, &[&peer]);
    let session = node.try_invite(peer.card.agent_id().as_str(), "a talk", 1).unwrap().json_str("sessionId");
    node.wait_for(&session, "the timeout", |view| view.state() == "FAILED");
    poll("the effect", || trust_events(&node, &peer).contains("session_abandoned").then_some(()));
    // The delivery is given up, and the session ends in the journal.
    poll("the end", || {
        let list = node.get("/agent/v1/asp/sessions").json();
        list["sessions"].as_array().unwrap().is_empty().then_some(())
    });
    let report: Value = serde_json::from_str(&trust_events(&node, &peer)).unwrap();
    let components = report["components"].as_array().unwrap();
    let events = components.iter().flat_map(|component| component["events"].as_array().unwrap());
    let abandoned = events.filter(|event| event["name"] == "session_abandoned");
    assert_eq!(abandoned.map(|event| event["count"].as_u64().unwrap()).max(), Some(1), "{report}");
}

/// Sends an invitation from a peer whose card the node does not know.
pub(crate) fn meet(peer: &RawPeer, node: &TestNode) -> TestResponse {
    let invitation = peer.session(node).invitation("a talk").text;
    let mut claims = peer.claims(node, "POST", SESSIONS);
    claims.ath = Some(token_hash(&access_token(&peer.keys)));
    claims.claims.iat = now().seconds();
    RawPeer::send_with_headers(node, "POST", SESSIONS, &peer.headers(&claims), &invitation)
}

#[test]
fn the_first_request_of_a_new_peer_counts_against_its_limit() {
    let server = CardServer::start();
    let peer = RawPeer::with_agent(&server.agent());
    server.publish(peer.card.as_str());
    let policy =
        "[limits]\nmessages_per_minute = [1, 1, 1, 1, 1]\ninvitations_per_minute = [1, 1, 1, 1, 1]\n";
    let builder = NodeBuilder::new("press").argument("--trust-on-first-use").policy(policy);
    let folder = builder.create_folder();
    let node = builder.start(folder, &[]);
    assert_eq!(meet(&peer, &node).status, 201);
    assert_eq!(meet(&peer, &node).status, 429);
    // New keys do not start a new count, because the rate limit applies to the agent.
    let successor = peer.rotate();
    server.publish(successor.card.as_str());
    assert_eq!(meet(&successor, &node).status, 429);
}

#[test]
fn few_cards_are_fetched_at_the_same_time() {
    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let policy = format!("[limits]\n{GENEROUS}");
    let builder = NodeBuilder::new("press").argument("--trust-on-first-use").policy(&policy);
    let folder = builder.create_folder();
    let node = builder.start(folder, &[]);
    let answers: Vec<TestResponse> = std::thread::scope(|scope| {
        let requests: Vec<_> = (0..12)
            .map(|number| {
                let peer = RawPeer::with_agent(&format!("agent://{address}/peer{number}"));
                let node = &node;
                scope.spawn(move || meet(&peer, node))
            })
            .collect();
        requests.into_iter().map(|request| request.join().unwrap()).collect()
    });
    let refused = answers.iter().filter(|answer| answer.body.contains("too many cards are being fetched"));
    assert_eq!(refused.count(), 4, "{answers:?}");
}

#[test]
fn requests_over_the_limit_do_not_fill_the_memory_of_proofs() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let policy = "[limits]\nremembered_proofs = 6\nmessages_per_minute = [2, 2, 2, 2, 2]\n";
    let node = start(policy, &[&peer, &other]);
    let path = format!("{SESSIONS}/{}", uuid());
    let statuses: Vec<u16> = (0..12).map(|_| peer.get(&node, &path).status).collect();
    assert_eq!(statuses[..2], [404, 404]);
    assert!(statuses[3..].contains(&429), "{statuses:?}");
    // A slow machine may earn one or two more. The memory still has room for the other peer.
    assert_eq!(other.get(&node, &path).status, 404);
}

#[test]
fn the_effects_of_a_message_are_recorded_even_if_it_was_received_by_catching_up() {
    let server = PeerServer::start(true);
    let peer = server.peer();
    let policy = deposits(peer.card.agent_id().as_str(), "100.00");
    let builder = NodeBuilder::new("press").policy(&policy).storage(Storage::Disk);
    let folder = builder.create_folder();
    let node = builder.start(folder, &[peer.card_file()]);
    let mut session = peer.open_conversation(&node);
    let open = r#"{"proposalId":"prop_1","type":"purchase","subject":"cards","terms":{}}"#;
    session.send(&peer, &node, Performative::Propose, open);
    let commit = commitment("cmt_1", &node.agent, "100.00").to_string();
    session.send(&peer, &node, Performative::Commit, &commit);
    let (node, backup) = node.backup();
    node.send(&session.id, "ACCEPT", &json!({"referenceId": "cmt_1"}));
    node.wait_for(&session.id, "the delivery", crate::test_node::View::is_acknowledged);
    session.catch_up(&peer, &node);
    // The node loses its acceptance with its disk, and gets it back from the peer.
    let node = node.restore(&backup);
    assert_eq!(node.view(&session.id, 0, 0).unwrap().state(), "AGREEING");
    let note = session.sign(Performative::Inform, r#"{"informType":"progress","percent":10}"#);
    server.publish(&session);
    let response = peer.send(&node, "POST", &session.messages_path(), &note.text);
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(node.view(&session.id, 0, 0).unwrap().state(), "EXECUTING");
    // The rules can only decide this dispute if the escrow is known.
    let path = format!("/agent/v1/asp/sessions/{}/disputes", session.id);
    let dispute = json!({"reason": "release-without-fulfillment"}).to_string();
    let dispute = node.try_send("POST", &path, &dispute).unwrap();
    assert_eq!(dispute.status, 201, "{dispute:?}");
    assert_eq!(dispute.json()["resolution"]["explanation"], "the escrow was not paid out");
}
