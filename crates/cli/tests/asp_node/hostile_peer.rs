//! A hostile peer: stolen proofs, forged cards, other agents' sessions, floods, and messages that break the rules.

use std::io::{Read, Write};

use asp::Performative;
use serde_json::{Value, json};
use testing::http::TestResponse;

use crate::peer_server::PeerServer;
use crate::raw_peer::{ASP_JSON, CardServer, RawPeer, SESSIONS, access_token, header, now, token_hash, uuid};
use crate::test_node::{NodeBuilder, Storage, TestNode, poll};

/// Starts a node that has pinned these peers.
fn start_node(builder: NodeBuilder, peers: &[&RawPeer]) -> TestNode {
    let folder = builder.create_folder();
    builder.start(folder, &peers.iter().map(|peer| peer.card_file()).collect::<Vec<_>>())
}

fn start(peers: &[&RawPeer]) -> TestNode {
    start_node(NodeBuilder::new("press"), peers)
}

#[track_caller]
fn assert_status(response: &TestResponse, status: u16, part: &str) {
    assert_eq!(response.status, status, "{response:?}");
    assert!(response.body.contains(part), "expected {part:?}: {response:?}");
}

fn open_sessions(node: &TestNode) -> usize {
    node.get("/agent/v1/asp/sessions").json()["sessions"].as_array().unwrap().len()
}

fn state(node: &TestNode, session: &str) -> (String, usize) {
    let view = node.view(session, 0, 0).unwrap();
    (view.state().to_owned(), view.message_count())
}

#[test]
fn an_unknown_sender_is_refused() {
    let stranger = RawPeer::new("stranger");
    let node = start(&[]);
    let invitation = stranger.session(&node).invitation("let me in").text;
    for path in [SESSIONS.to_owned(), format!("{SESSIONS}/{}/messages", uuid())] {
        let headers = [stranger.authorization(), ASP_JSON.to_owned()];
        let response = RawPeer::send_with_headers(&node, "POST", &path, &headers, &invitation);
        assert_status(&response, 403, "the card of this agent is not pinned");
    }
    assert_eq!(open_sessions(&node), 0);
}

#[test]
fn a_request_without_its_own_fresh_proof_is_refused() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let node = start(&[&peer, &other]);
    let invitation = peer.session(&node).invitation("a talk").text;
    let post = |headers: &[String]| RawPeer::send_with_headers(&node, "POST", SESSIONS, headers, &invitation);
    let valid = || peer.claims(&node, "POST", SESSIONS);
    let refused = |claims: seal::dpop::HttpClaims, part: &str| {
        let response = post(&peer.headers(&claims));
        assert_status(&response, 401, part);
        assert!(header(&response, "WWW-Authenticate").unwrap().starts_with("DPoP error="));
    };

    let mut claims = valid();
    claims.claims.htu = format!("http://{}/v1/asp/sessions/x", node.address);
    refused(claims, "htu");
    let mut claims = valid();
    claims.claims.htu = format!("https://{}{SESSIONS}", node.address);
    refused(claims, "htu");
    let mut claims = valid();
    claims.claims.htm = "GET".to_owned();
    refused(claims, "htm");
    for age in [-301, 301] {
        let mut claims = valid();
        claims.claims.iat += age;
        refused(claims, "iat");
    }
    let mut claims = valid();
    claims.ath = None;
    refused(claims, "ath");
    let mut claims = valid();
    claims.ath = Some(token_hash(&access_token(&other.keys)));
    refused(claims, "ath");
    for nonce in [None, Some("AAAAAAAAAAAAAAAAAAAAAA".to_owned())] {
        let mut claims = valid();
        claims.nonce = nonce;
        refused(claims, "needs the current nonce");
    }

    // The peer's token with a proof made with another key.
    let mut headers = other.headers(&other.claims(&node, "POST", SESSIONS));
    headers[0] = peer.authorization();
    assert_status(&post(&headers), 401, "");
    for headers in [
        vec![ASP_JSON.to_owned()],
        vec![peer.authorization(), ASP_JSON.to_owned()],
        vec![peer.authorization(), "DPoP: not.a.proof".to_owned(), ASP_JSON.to_owned()],
        vec![format!("Authorization: Bearer {}", access_token(&peer.keys)), ASP_JSON.to_owned()],
    ] {
        assert_status(&post(&headers), 401, "");
    }
    assert_eq!(open_sessions(&node), 0);

    // The same proof is valid once, and never after a restart.
    let claims = valid();
    assert_status(&post(&peer.headers(&claims)), 201, "INVITED");
    refused(claims, "");
    let claims = valid();
    node.restart();
    refused(claims, "needs the current nonce");
}

#[test]
fn a_message_in_another_peers_name_is_dropped() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let node = start(&[&peer, &other]);
    // `other` sends an invitation from `peer` on its own connection.
    let invitation = peer.session(&node).invitation("a talk").text;
    assert_status(&other.send(&node, "POST", SESSIONS, &invitation), 400, "unauthorized");
    // Another agent's key signs in the name of `peer`.
    let impostor = RawPeer::with_agent(peer.card.agent_id().as_str());
    let forged = impostor.session(&node).invitation("a talk").text;
    assert_status(&peer.send(&node, "POST", SESSIONS, &forged), 400, "unauthorized");
    // One changed letter breaks the signature.
    let changed = invitation.replace("a talk", "a walk");
    assert_status(&peer.send(&node, "POST", SESSIONS, &changed), 400, "unauthorized");
    assert_eq!(open_sessions(&node), 0);
    assert_status(&peer.send(&node, "POST", SESSIONS, &invitation), 201, "INVITED");
}

#[test]
fn the_session_of_another_peer_does_not_exist() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    let node = start(&[&peer, &other]);
    let mut session = peer.open_conversation(&node);
    let before = state(&node, &session.id);
    let (base, messages) = (format!("{SESSIONS}/{}", session.id), session.messages_path());
    let message_id =
        node.view(&session.id, 0, 0).unwrap().messages()[0]["messageId"].as_str().unwrap().to_owned();
    for path in [&base, &messages, &format!("{messages}/{message_id}"), &format!("{base}/events")] {
        assert_status(&other.get(&node, path), 404, "");
    }
    let close = session.sign(Performative::Close, r#"{"reason":"done"}"#).text;
    assert_status(&other.send(&node, "POST", &messages, &close), 404, "");
    assert_status(&other.send(&node, "DELETE", &base, &close), 404, "");
    // It is refused even as an invitation with the id of the session.
    assert_status(&other.send(&node, "POST", SESSIONS, &close), 404, "");
    assert_eq!(state(&node, &session.id), before);
}

#[test]
fn a_message_from_one_session_has_no_effect_in_another() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let (mut first, second) = (peer.open_conversation(&node), peer.open_conversation(&node));
    let before = [&first, &second].map(|session| state(&node, &session.id));
    let close = first.sign(Performative::Close, r#"{"reason":"done"}"#).text;
    let response = peer.send(&node, "POST", &second.messages_path(), &close);
    assert!([400, 409, 422].contains(&response.status), "{response:?}");
    assert_eq!([&first, &second].map(|session| state(&node, &session.id)), before);
    assert_status(&peer.send(&node, "POST", &first.messages_path(), &close), 200, "CLOSED");
}

#[test]
fn a_repeated_message_gets_the_same_answer_and_is_stored_once() {
    let peer = RawPeer::new("peer");
    let node = start_node(NodeBuilder::new("press").storage(Storage::Disk), &[&peer]);
    let mut session = peer.session(&node);
    let invitation = session.invitation("a talk").text;
    let answer = peer.send(&node, "POST", SESSIONS, &invitation);
    assert_status(&answer, 201, "INVITED");
    for _ in 0..2 {
        let again = peer.send(&node, "POST", SESSIONS, &invitation);
        assert_eq!((again.status, &again.body), (201, &answer.body));
        // It is refused as a message of the session, too.
        let again = peer.send(&node, "POST", &session.messages_path(), &invitation);
        assert_eq!((again.status, &again.body), (200, &answer.body));
        node.restart();
    }
    assert_eq!((open_sessions(&node), state(&node, &session.id).1), (1, 1));
}

#[test]
fn giant_and_malformed_messages_are_refused() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let session = peer.open_conversation(&node);
    let before = state(&node, &session.id);
    let giant = "x".repeat(256 * 1024 + 1);
    assert_status(&peer.send(&node, "POST", &session.messages_path(), &giant), 413, "");
    let deep = "[".repeat(100_000);
    for body in ["", "{", "null", "[]", "{}", "\"x\"", &deep, r#"{"sessionId":1}"#, r#"{"sessionId":"x"}"#] {
        for path in [SESSIONS, &session.messages_path()] {
            let response = peer.send(&node, "POST", path, body);
            assert!([400, 422].contains(&response.status), "{body}: {response:?}");
        }
    }
    let headers = peer.headers(&peer.claims(&node, "POST", SESSIONS));
    let client = headers.iter().fold(node.client(), |client, header| client.with_header(header));
    let mut stream = client.connect();
    let mut request = format!("POST {SESSIONS} HTTP/1.1\r\nHost: {}\r\n", node.address).into_bytes();
    for header in &headers {
        request.extend(format!("{header}\r\n").into_bytes());
    }
    request.extend(b"Connection: close\r\nContent-Length: 2\r\n\r\n\xff\xfe");
    stream.write_all(&request).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert_eq!((state(&node, &session.id), open_sessions(&node)), (before, 1));
}

#[test]
fn a_token_that_is_not_the_senders_own_is_refused() {
    let server = CardServer::start();
    let peer = RawPeer::with_agent(&server.agent());
    server.publish(peer.card.as_str());
    let node = start(&[&peer]);
    let invitation = peer.session(&node).invitation("a talk").text;
    let mut headers = peer.headers(&peer.claims(&node, "POST", SESSIONS));
    "Authorization: DPoP wrong".clone_into(&mut headers[0]);
    let response = RawPeer::send_with_headers(&node, "POST", SESSIONS, &headers, &invitation);
    assert_status(&response, 401, "the token was not issued for the card's key");
}

#[test]
fn a_message_with_a_broken_link_fails_the_session() {
    let server = PeerServer::start(true);
    let peer = server.peer();
    let node = start_node(NodeBuilder::new("press").storage(Storage::Disk), &[&peer]);
    let mut session = peer.open_conversation(&node);
    // The node has not seen the message to which the next one links, and the peer does not show it.
    server.publish(&session);
    session.sign(Performative::Observe, r#"{"subject":"the weather"}"#);
    let next = session.sign(Performative::Observe, r#"{"subject":"the wind"}"#).text;
    let response = peer.send(&node, "POST", &session.messages_path(), &next);
    assert_status(&response, 422, "links to an unknown hash");
    let failed = state(&node, &session.id);
    assert_eq!(failed.0, "FAILED");
    node.restart();
    assert_eq!(state(&node, &session.id), failed);
    let trust = trust(&node, &peer).to_string();
    assert!(trust.contains("chain_broken"), "{trust}");
}

#[test]
fn a_slow_body_holds_nobody_else_up_and_is_cut() {
    let peer = RawPeer::new("peer");
    let node = start(&[&peer]);
    let mut slow: Vec<_> = (0..20)
        .map(|_| {
            let headers = peer.headers(&peer.claims(&node, "POST", SESSIONS)).join("\r\n");
            let mut stream = node.client().connect();
            write!(
                stream,
                "POST {SESSIONS} HTTP/1.1\r\nHost: {}\r\n{headers}\r\nContent-Length: 1000\r\n\r\n{{",
                node.address
            )
            .unwrap();
            stream
        })
        .collect();
    peer.open_conversation(&node);
    for stream in &mut slow {
        // The node answers or closes the connection within the timeout of the test.
        let mut response = String::new();
        let result = stream.read_to_string(&mut response);
        assert!(result.is_ok() && !response.starts_with("HTTP/1.1 2"), "{result:?} {response}");
    }
    assert_eq!(open_sessions(&node), 1);
}

/// Sends requests until one is refused with status 429, and returns how many were not.
fn requests_until_limited(mut send: impl FnMut() -> TestResponse) -> usize {
    let mut answered = 0;
    loop {
        let response = send();
        if response.status == 429 {
            assert_status(&response, 429, "capacity_unavailable");
            assert!(header(&response, "Retry-After").unwrap().parse::<u32>().unwrap() > 0);
            return answered;
        }
        answered += 1;
        assert!(answered < 100, "no limit after {answered} requests");
    }
}

#[test]
fn a_flood_is_limited_by_the_trust_level_of_its_sender() {
    let (peer, other) = (RawPeer::new("peer"), RawPeer::new("other"));
    // A pinned peer without history is at level 1.
    let policy = "[limits]\nmessages_per_minute = [1, 9, 1000, 1000, 1000]\ninvitations_per_minute = [1, 3, 1000, 1000, 1000]\n";
    let node = start_node(NodeBuilder::new("press").policy(policy), &[&peer, &other]);
    poll("the pinning", || {
        let trust = [&peer, &other].map(|peer| trust(&node, peer));
        trust.iter().all(|report| report["level"] == 1).then_some(())
    });
    let invitations = requests_until_limited(|| {
        let invitation = peer.session(&node).invitation("one more").text;
        peer.send(&node, "POST", SESSIONS, &invitation)
    });
    // While the test runs, a slow machine may earn a few more.
    assert!((3..50).contains(&invitations), "{invitations}");
    assert_eq!(open_sessions(&node), invitations);
    // Invitations count as messages, too.
    let path = format!("{SESSIONS}/{}", uuid());
    let requests = requests_until_limited(|| peer.get(&node, &path));
    assert!((5..50).contains(&requests), "{requests}");
    // Another peer is not affected.
    other.open_session(&node);
}

fn trust(node: &TestNode, peer: &RawPeer) -> Value {
    node.get(&format!("/agent/v1/asp/trust?agent={}", peer.card.agent_id())).json()
}

#[test]
fn messages_that_are_not_authentic_leave_few_records() {
    let peer = RawPeer::new("peer");
    let policy = "[limits]\nmessages_per_minute = [999, 999, 999, 999, 999]\ninvitations_per_minute = [999, 999, 999, 999, 999]\n";
    let node = start_node(NodeBuilder::new("press").policy(policy), &[&peer]);
    let forged = peer.session(&node).invitation("a talk").text.replace("a talk", "a walk");
    let send = || assert_status(&peer.send(&node, "POST", SESSIONS, &forged), 400, "unauthorized");
    let penalty = || {
        let report = trust(&node, &peer);
        let components = report["components"].as_array().unwrap();
        components.iter().map(|component| component["penalty"].as_f64().unwrap()).sum::<f64>()
    };
    send();
    let first = penalty();
    assert!(first > 0.0);
    (0..20).for_each(|_| send());
    // A slow machine may earn one more record.
    assert!(penalty() < 2.5 * first, "{} after {first}", penalty());
}

#[test]
fn the_number_of_sessions_is_limited_in_all_and_for_each_peer() {
    let peers = ["first", "second", "third"].map(RawPeer::new);
    let many = "[1000, 1000, 1000, 1000, 1000]";
    let policy = format!(
        "[limits]\nsessions = 3\nsessions_per_peer = 2\nmessages_per_minute = {many}\ninvitations_per_minute = {many}\n"
    );
    let node = start_node(NodeBuilder::new("press").policy(&policy), &peers.each_ref());
    let refuse = |peer: &RawPeer, part: &str| {
        let invitation = peer.session(&node).invitation("one more").text;
        let response = peer.send(&node, "POST", SESSIONS, &invitation);
        assert_status(&response, 429, part);
        assert!(header(&response, "Retry-After").is_some());
    };
    let mut session = peers[0].open_conversation(&node);
    peers[0].open_session(&node);
    refuse(&peers[0], "too many open sessions with this agent");
    peers[1].open_session(&node);
    refuse(&peers[2], "the node has too many open sessions");
    let invite = json!({"peer": peers[2].card.agent_id().as_str(), "subject": "x"}).to_string();
    assert_status(&node.try_send("POST", "/agent/v1/asp/sessions", &invite).unwrap(), 429, "too many");
    // An ended session makes room.
    session.send(&peers[0], &node, Performative::Close, r#"{"reason":"done"}"#);
    peers[2].open_session(&node);
    assert_eq!(open_sessions(&node), 3);
}

#[test]
fn the_memory_of_proofs_is_limited() {
    let peer = RawPeer::new("peer");
    let many = "[1000, 1000, 1000, 1000, 1000]";
    let policy = format!("[limits]\nremembered_proofs = 3\nmessages_per_minute = {many}\n");
    let node = start_node(NodeBuilder::new("press").policy(&policy), &[&peer]);
    let path = format!("{SESSIONS}/{}", uuid());
    for status in [404, 404, 404, 429, 429] {
        assert_eq!(peer.get(&node, &path).status, status);
    }
}

#[test]
fn a_session_that_is_too_long_is_refused() {
    let peer = RawPeer::new("peer");
    let policy = "[limits]\nmessages_per_session = 6\nmessages_per_minute = [1000, 1000, 1000, 1000, 1000]\n";
    let node = start_node(NodeBuilder::new("press").policy(policy), &[&peer]);
    let mut session = peer.open_conversation(&node);
    for number in 0..2 {
        session.send(&peer, &node, Performative::Observe, &format!(r#"{{"subject":"{number}"}}"#));
    }
    let next = session.sign(Performative::Observe, r#"{"subject":"too much"}"#).text;
    let response = peer.send(&node, "POST", &session.messages_path(), &next);
    assert_eq!(response.status, 422, "{response:?}");
    assert_eq!(state(&node, &session.id).1, 6);
}

#[test]
fn trust_on_first_use_pins_a_card_once() {
    let server = CardServer::start();
    let node =
        start_node(NodeBuilder::new("press").storage(Storage::Disk).argument("--trust-on-first-use"), &[]);
    let peer = RawPeer::with_agent(&server.agent());
    // The node has never seen the peer, so the peer learns the nonce from its first request.
    let meet = |peer: &RawPeer| -> TestResponse {
        let invitation = peer.session(&node).invitation("a talk").text;
        let mut claims = seal::dpop::HttpClaims {
            claims: seal::dpop::Claims {
                jti: uuid(),
                htm: "POST".to_owned(),
                htu: format!("http://{}{SESSIONS}", node.address),
                iat: now().seconds(),
                mh: None,
            },
            nonce: None,
            ath: Some(token_hash(&access_token(&peer.keys))),
        };
        let response =
            RawPeer::send_with_headers(&node, "POST", SESSIONS, &peer.headers(&claims), &invitation);
        let Some(nonce) = header(&response, "DPoP-Nonce") else { return response };
        claims.nonce = Some(nonce);
        claims.claims.jti = uuid();
        RawPeer::send_with_headers(&node, "POST", SESSIONS, &peer.headers(&claims), &invitation)
    };

    // No card, a card with a broken signature, and the card of another agent.
    assert_status(&meet(&peer), 403, "unauthorized");
    server.publish(&peer.card.as_str().replace("A raw peer", "A bank"));
    assert_status(&meet(&peer), 403, "unauthorized");
    server.publish(RawPeer::new("somebody").card.as_str());
    assert_status(&meet(&peer), 403, "unauthorized");
    // A caller that has not proven anything cannot make the node pin a card.
    server.publish(peer.card.as_str());
    let thief = RawPeer::with_agent(&server.agent());
    assert_status(&meet(&thief), 401, "");
    let known = |agent: &str| node.get(&format!("/agent/v1/asp/trust?agent={agent}")).body;
    assert!(!known(&server.agent()).contains("card_trusted_on_first_use"), "{}", known(&server.agent()));

    assert_status(&meet(&peer), 201, "INVITED");
    node.restart();
    peer.open_session(&node);
    // Other keys for the same agent are refused, even after a restart.
    let impostor = RawPeer::with_agent(&server.agent());
    server.publish(impostor.card.as_str());
    assert_status(&meet(&impostor), 403, "the old key did not sign it");
    // A successor that the old key signed is accepted, and the old keys are no longer accepted.
    let successor = peer.rotate();
    server.publish(successor.card.as_str());
    assert_status(&meet(&successor), 201, "INVITED");
    assert_ne!(meet(&peer).status, 201);
    node.restart();
    successor.open_session(&node);
    assert_eq!(open_sessions(&node), 4);
}

#[test]
fn a_revoked_agent_is_refused_although_it_is_pinned() {
    let peer = RawPeer::new("peer");
    let node = start_node(NodeBuilder::new("press").storage(Storage::Disk), &[&peer]);
    let mut session = peer.open_conversation(&node);
    let agent = peer.card.agent_id().to_string();
    let node = node.restart_with(|builder| builder.policy(&format!("[cards]\nrevoked = [\"{agent}\"]\n")));
    let message = session.sign(Performative::Observe, r#"{"subject":"the weather"}"#).text;
    for (path, message) in [
        (session.messages_path(), message),
        (SESSIONS.to_owned(), peer.session(&node).invitation("again").text),
    ] {
        let headers = [peer.authorization(), format!("Asp-Agent-Id: {agent}"), ASP_JSON.to_owned()];
        let response = RawPeer::send_with_headers(&node, "POST", &path, &headers, &message);
        assert_status(&response, 403, "unauthorized");
    }
    let invite = json!({"peer": agent, "subject": "x"}).to_string();
    assert_status(&node.try_send("POST", "/agent/v1/asp/sessions", &invite).unwrap(), 422, "is revoked");
    assert_eq!(state(&node, &session.id).1, 4);
}

#[test]
fn the_agents_own_api_is_not_for_peers() {
    let peer = RawPeer::new("peer");
    let builder = NodeBuilder::new("press");
    let folder = builder.create_folder();
    let tokens = folder.path().join("tokens");
    let token = testing::cli::create_token(
        tokens.to_str().unwrap(),
        &["--role", "agent", "--agent-id", "press", "--name", "press"],
    );
    let node = builder
        .without_open()
        .argument("--tokens")
        .argument(tokens.to_str().unwrap())
        .start(folder, &[peer.card_file()]);
    let path = "/agent/v1/asp/sessions";
    assert_eq!(peer.get(&node, path).status, 401);
    assert_eq!(node.client().get(path).status, 401);
    let response = node.client().with_bearer(&token).get(path);
    assert_eq!((response.status, response.json()), (200, json!({"sessions": []}) as Value));
}
