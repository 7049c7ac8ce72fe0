//! A node whose disk was lost: it fetches the messages that it has lost from the peer, and adopts only what it may.

use asp::message::TrustScore;
use asp::session::ReceiverChecks;
use asp::{Performative, ReceiveOutcome};
use seal::SystemRandom;
use serde_json::{Value, json};

use crate::peer_server::{DeliveryReply, PageReply, PeerServer};
use crate::policies::{deliver, introduce, proposal, sign_unchecked};
use crate::raw_peer::{RawPeer, RawSession, header, now};
use crate::refused_shortcuts::{commitment, deposits};
use crate::script::verify;
use crate::test_node::{NodeBuilder, Storage, TestNode, View, poll, start_pair, timestamp_in};

/// Starts a node with a journal on disk, in a session with a peer whose messages `server` serves.
fn start(server: &PeerServer, limits: &str) -> (TestNode, RawPeer, RawSession) {
    let peer = server.peer();
    let policy = deposits(peer.card.agent_id().as_str(), "100.00");
    start_with(&policy.replacen("[limits]\n", &format!("[limits]\n{limits}"), 1), peer)
}

fn start_with(policy: &str, peer: RawPeer) -> (TestNode, RawPeer, RawSession) {
    let builder = NodeBuilder::new("press").policy(policy).storage(Storage::Disk);
    let folder = builder.create_folder();
    let node = builder.start(folder, &[peer.card_file()]);
    let session = peer.open_conversation(&node);
    (node, peer, session)
}

fn observe(subject: &str) -> String {
    json!({"subject": subject}).to_string()
}

fn state(node: &TestNode, session: &RawSession) -> (String, usize) {
    let view = node.view(&session.id, 0, 0).unwrap();
    (view.state().to_owned(), view.message_count())
}

#[test]
fn many_and_large_messages_are_fetched_page_by_page() {
    let [buyer, press] = start_pair(|builder| builder.storage(Storage::Disk));
    let pair = [buyer, press];
    let session = introduce(&pair);
    deliver(&pair, 0, &session, "PROPOSE", &proposal("prop_1"));
    let [buyer, press] = pair;
    let (buyer, backup) = buyer.backup();
    // More messages than a page has, and more bytes: each side's largest ones do not fit into a page together.
    for number in 0..210 {
        buyer.send(&session, "OBSERVE", &json!({"subject": format!("number {number}")}));
    }
    for letter in ["a", "b", "c", "d", "e"] {
        buyer.send(&session, "OBSERVE", &json!({"subject": letter.repeat(250_000)}));
    }
    let view = buyer.wait_for(&session, "the delivery", View::is_acknowledged);
    assert_eq!(view.message_count(), 220);
    let pair = [buyer.restore(&backup), press];
    assert_eq!(pair[0].view(&session, 0, 0).unwrap().message_count(), 5);
    deliver(&pair, 1, &session, "ACCEPT", &json!({"referenceId": "prop_1"}));
    deliver(&pair, 0, &session, "CLOSE", &json!({"reason": "done"}));
    let transcripts = pair.each_ref().map(|node| node.transcript(&session));
    assert_eq!(transcripts[0].lines().count(), 222);
    assert!(transcripts[0] == transcripts[1], "both sides have the same transcript");
    verify(&transcripts[0], &pair[0].cards(&session));
}

/// Restores a node from an old backup. Its agent speaks before the other side does.
fn speak_first_after_a_restore(restored: usize) {
    let pair = start_pair(|builder| builder.storage(Storage::Disk));
    let session = introduce(&pair);
    deliver(&pair, 0, &session, "PROPOSE", &proposal("prop_1"));
    let mut pair = pair.map(Some);
    let (node, backup) = pair[restored].take().unwrap().backup();
    pair[restored] = Some(node);
    let pair = pair.map(Option::unwrap);
    for sender in [0, 1, 0, 1] {
        deliver(&pair, sender, &session, "OBSERVE", &json!({"subject": "the paper"}));
    }
    let mut pair = pair.map(Some);
    pair[restored] = Some(pair[restored].take().unwrap().restore(&backup));
    let pair = pair.map(Option::unwrap);
    let node = &pair[restored];
    assert_eq!(node.view(&session, 0, 0).unwrap().message_count(), 5);
    node.send(&session, "OBSERVE", &json!({"subject": "too early"}));
    let view = node.wait_for(&session, "the lost messages", |view| view.message_count() == 9);
    assert_eq!(view.0["refusals"][0]["code"], "stale_head", "{view:?}");
    deliver(&pair, restored, &session, "OBSERVE", &json!({"subject": "in time"}));
    deliver(&pair, 1 - restored, &session, "OBSERVE", &json!({"subject": "the answer"}));
    // What was adopted is still there after a restart.
    node.restart();
    deliver(&pair, restored, &session, "CLOSE", &json!({"reason": "done"}));
    let transcripts = pair.each_ref().map(|node| node.transcript(&session));
    assert_eq!(transcripts[0].lines().count(), 12);
    assert_eq!(transcripts[0], transcripts[1]);
}

#[test]
fn an_inviter_that_speaks_first_after_a_restore_catches_up() {
    speak_first_after_a_restore(0);
}

#[test]
fn an_invited_side_that_speaks_first_after_a_restore_catches_up() {
    speak_first_after_a_restore(1);
}

#[test]
fn a_peer_that_cannot_serve_its_messages_now_is_asked_again() {
    let server = PeerServer::start(true);
    let (node, peer, mut session) = start(&server, "peer_timeout_ms = 300\n");
    let (node, backup) = node.backup();
    for subject in ["the paper", "the ink", "the glue"] {
        session.send(&peer, &node, Performative::Observe, &observe(subject));
    }
    let node = node.restore(&backup);
    let before = state(&node, &session);
    let next = session.sign(Performative::Observe, &observe("the price")).text;
    server.publish(&session);
    let post = || peer.send(&node, "POST", &session.messages_path(), &next);
    for reply in [
        PageReply::Error("429 Too Many Requests", ""),
        PageReply::Error("500 Internal Server Error", ""),
        PageReply::Error("200 OK", "no json"),
        PageReply::Error("200 OK", "{}"),
        PageReply::Silence,
    ] {
        server.answer_pages(reply);
        let response = post();
        assert_eq!((response.status, response.json_str("code")), (503, "capacity_unavailable".to_owned()));
        let seconds: u64 = header(&response, "Retry-After").unwrap().parse().unwrap();
        assert!(seconds > 0, "{response:?}");
        assert_eq!(state(&node, &session), before, "nothing has happened in the session");
    }
    // A page with one message is enough to go on.
    server.answer_pages(PageReply::Page);
    server.set_page_messages(1);
    assert_eq!(post().status, 200);
    assert_eq!(state(&node, &session).1, before.1 + 4);
    session.send(&peer, &node, Performative::Close, r#"{"reason":"done"}"#);
    assert_eq!(state(&node, &session).0, "CLOSED");
}

#[test]
fn a_message_that_nothing_explains_fails_the_session() {
    let server = PeerServer::start(true);
    let (node, peer, mut session) = start(&server, "");
    // The peer hides the message that its next one links to.
    server.publish(&session);
    session.sign(Performative::Observe, &observe("hidden"));
    let next = session.sign(Performative::Observe, &observe("the price")).text;
    let response = peer.send(&node, "POST", &session.messages_path(), &next);
    assert_eq!(response.status, 422, "{response:?}");
    assert_eq!(state(&node, &session).0, "FAILED");
}

/// Brings a session to a COMMIT of the node with an escrow, for which the node has the money.
fn commit(server: &PeerServer) -> (TestNode, RawPeer, RawSession) {
    let peer = server.peer();
    let builder = NodeBuilder::new("press").storage(Storage::Disk);
    let builder = builder.clone().policy(&deposits(&builder.agent(), "100.00"));
    let folder = builder.create_folder();
    let node = builder.start(folder, &[peer.card_file()]);
    let mut session = peer.open_conversation(&node);
    let open = r#"{"proposalId":"prop_1","type":"purchase","subject":"cards","terms":{}}"#;
    session.send(&peer, &node, Performative::Propose, open);
    node.send(&session.id, "COMMIT", &commitment("cmt_1", peer.card.agent_id().as_str(), "100.00"));
    node.wait_for(&session.id, "the delivery", View::is_acknowledged);
    session.catch_up(&peer, &node);
    (node, peer, session)
}

const ACCEPT: &str = r#"{"referenceId":"cmt_1"}"#;
const PROGRESS: &str = r#"{"informType":"progress","percent":10}"#;

/// Removes all escrow from the policy of a node, which is then restored from a backup.
fn restore_without_escrow(mut node: TestNode, backup: &tempfile::TempDir) -> TestNode {
    let policy = deposits(&node.agent, "100.00").replace("\"9999\"", "\"0\"");
    node.builder = node.builder.clone().policy(&policy);
    node.restore(backup)
}

#[test]
fn a_lost_acceptance_is_adopted_if_it_passes_the_checks_now() {
    let server = PeerServer::start(true);
    for has_money in [true, false] {
        let (node, peer, mut session) = commit(&server);
        let (node, backup) = node.backup();
        session.send(&peer, &node, Performative::Accept, ACCEPT);
        assert_eq!(state(&node, &session).0, "EXECUTING");
        let node = if has_money { node.restore(&backup) } else { restore_without_escrow(node, &backup) };
        assert_eq!(state(&node, &session).0, "AGREEING");
        let progress = session.sign(Performative::Inform, PROGRESS).text;
        server.publish(&session);
        let response = peer.send(&node, "POST", &session.messages_path(), &progress);
        let expected = if has_money { (200, "EXECUTING") } else { (422, "FAILED") };
        assert_eq!((response.status, &*state(&node, &session).0), expected, "{response:?}");
        if has_money {
            // The money is in escrow again.
            let path = format!("/agent/v1/asp/sessions/{}/disputes", session.id);
            let dispute = json!({"reason": "release-without-fulfillment"}).to_string();
            let dispute = node.try_send("POST", &path, &dispute).unwrap();
            assert_eq!(dispute.json()["resolution"]["explanation"], "the escrow was not paid out");
        }
    }
}

#[test]
fn a_lost_acceptance_is_adopted_if_a_later_message_of_the_node_confirms_it() {
    let server = PeerServer::start(true);
    for page_messages in [200, 1] {
        server.set_page_messages(page_messages);
        let (node, peer, mut session) = commit(&server);
        let (node, backup) = node.backup();
        session.send(&peer, &node, Performative::Accept, ACCEPT);
        session.send(&peer, &node, Performative::Inform, PROGRESS);
        node.send(&session.id, "INFORM", &json!({"informType": "progress", "percent": 20}));
        node.wait_for(&session.id, "the delivery", View::is_acknowledged);
        session.catch_up(&peer, &node);
        // Now, the node would accept no commitment with an escrow. It has accepted this one, as its own message proves.
        let node = restore_without_escrow(node, &backup);
        let progress = session.sign(Performative::Inform, PROGRESS).text;
        server.publish(&session);
        let response = peer.send(&node, "POST", &session.messages_path(), &progress);
        assert_eq!((response.status, &*state(&node, &session).0), (200, "EXECUTING"), "{response:?}");
    }
}

#[test]
fn a_message_that_was_rolled_back_does_not_come_back() {
    let server = PeerServer::start(true);
    let peer = server.peer();
    let (node, peer, mut session) = start_with(&deposits(peer.card.agent_id().as_str(), "100.00"), peer);
    let open = r#"{"proposalId":"prop_1","type":"purchase","subject":"cards","terms":{}}"#;
    session.send(&peer, &node, Performative::Propose, open);
    server.answer_deliveries(DeliveryReply::Busy);
    let mut commit = commitment("cmt_1", peer.card.agent_id().as_str(), "100.00");
    commit.as_object_mut().unwrap().remove("escrow");
    let sent = node.send(&session.id, "COMMIT", &commit);
    let id = sent["messageId"].as_str().unwrap();
    let text = node.transcript(&session.id).lines().last().unwrap().to_owned();
    // The peer refuses the commitment, and the node tells its agent so.
    let reject = json!({"code": "policy_violation", "reason": "no", "referenceId": id}).to_string();
    let reject = sign_unchecked(&peer, &session, &node, Performative::Reject, &reject);
    server.answer_deliveries(DeliveryReply::Reject(reject));
    node.wait_for(&session.id, "the refusal", |view| view.0["refusals"][0]["performative"] == "COMMIT");
    let before = state(&node, &session);
    // Later, it claims to have accepted it.
    let outcome =
        session.participant.receive(&text, ReceiverChecks::PASSED, now(), &mut SystemRandom).unwrap();
    assert!(matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
    session.sign(Performative::Accept, ACCEPT);
    let progress = session.sign(Performative::Inform, PROGRESS).text;
    server.publish(&session);
    let response = peer.send(&node, "POST", &session.messages_path(), &progress);
    assert_eq!(response.status, 422, "{response:?}");
    assert_eq!(state(&node, &session), ("FAILED".to_owned(), before.1));
}

#[test]
fn a_message_that_the_other_sides_chain_does_not_have_is_rolled_back() {
    let server = PeerServer::start(true);
    let (node, peer, mut session) = start(&server, "");
    let (node, backup) = node.backup();
    session.send(&peer, &node, Performative::Observe, &observe("the paper"));
    let node = node.restore(&backup);
    // Our message does not know the lost one, and waits for its delivery.
    server.answer_deliveries(DeliveryReply::Busy);
    node.send(&session.id, "OBSERVE", &json!({"subject": "too early"}));
    let next = session.sign(Performative::Observe, &observe("the price")).text;
    server.publish(&session);
    let response = peer.send(&node, "POST", &session.messages_path(), &next);
    assert_eq!(response.status, 200, "{response:?}");
    let view = node.view(&session.id, 0, 0).unwrap();
    let subjects: Vec<&Value> =
        view.messages().iter().map(|message| &message["content"]["body"]["subject"]).collect();
    assert_eq!(subjects[4..], [&json!("the paper"), &json!("the price")]);
    assert_eq!(view.0["refusals"][0]["code"], "stale_head");
    session.participant.settle(session.participant.record().unwrap().transcript().last_message_id().unwrap());
    server.answer_deliveries(DeliveryReply::Accept);
    // The session is restored from the stored steps, and goes on.
    node.restart();
    assert_eq!(state(&node, &session).1, 6);
    node.send(&session.id, "OBSERVE", &json!({"subject": "in time"}));
    node.wait_for(&session.id, "the delivery", View::is_acknowledged);
    session.catch_up(&peer, &node);
    session.send(&peer, &node, Performative::Close, r#"{"reason":"done"}"#);
}

#[test]
fn fetched_messages_pass_the_same_checks_as_others() {
    let server = PeerServer::start(true);
    let (node, peer, mut session) = start(&server, "");
    let request = json!({"performative": "PROPOSE", "body": proposal("prop_1"),
        "constraints": {"requiredTrustScore": TrustScore::MAX.get()}});
    let path = format!("/agent/v1/asp/sessions/{}/messages", session.id);
    assert_eq!(node.try_send("POST", &path, &request.to_string()).unwrap().status, 200);
    node.wait_for(&session.id, "the delivery", View::is_acknowledged);
    session.catch_up(&peer, &node);
    let before = state(&node, &session);
    // The peer is not trusted enough to answer. It never sends its answer, and lets the node fetch it.
    session.sign(Performative::Observe, &observe("trust me"));
    let next = session.sign(Performative::Observe, &observe("please")).text;
    server.publish(&session);
    let response = peer.send(&node, "POST", &session.messages_path(), &next);
    assert_eq!(response.status, 422, "{response:?}");
    assert_eq!(state(&node, &session).1, before.1);
}

#[test]
fn an_acceptance_that_is_too_late_now_is_not_adopted() {
    let server = PeerServer::start(true);
    let (node, peer, mut session) = start(&server, "");
    let valid_until = timestamp_in(2);
    let mut offer = proposal("prop_1");
    offer["validUntil"] = valid_until.as_str().into();
    node.send(&session.id, "PROPOSE", &offer);
    node.wait_for(&session.id, "the delivery", View::is_acknowledged);
    session.catch_up(&peer, &node);
    // By its own timestamp, the acceptance is in time. The peer shows it after the offer has expired.
    session.sign(Performative::Accept, r#"{"referenceId":"prop_1"}"#);
    let next = session.sign(Performative::Observe, &observe("the price")).text;
    server.publish(&session);
    poll("the deadline", || (timestamp_in(0) > valid_until).then_some(()));
    let response = peer.send(&node, "POST", &session.messages_path(), &next);
    assert_eq!(response.status, 422, "{response:?}");
    assert_eq!(state(&node, &session), ("FAILED".to_owned(), 5));
}

#[test]
fn a_session_that_began_after_the_backup_is_unknown_to_the_restored_node() {
    let server = PeerServer::start(true);
    let (node, peer, _first) = start(&server, "");
    let (node, backup) = node.backup();
    let mut later = peer.open_conversation(&node);
    let node = node.restore(&backup);
    let message = later.sign(Performative::Observe, &observe("the paper")).text;
    server.publish(&later);
    assert_eq!(peer.send(&node, "POST", &later.messages_path(), &message).status, 404);
    poll("the list", || (node.find_session("a talk").is_some()).then_some(()));
}
