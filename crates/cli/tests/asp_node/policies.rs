//! What a node enforces by its policy and its cards: the trust threshold, constraints on answers, ceilings for escrow, the token
//! of its hub, its list of peers, and the mode of its keys.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use asp::message::{Body, Constraints, MessageDraft, TrustScore};
use asp::{MessageId, Performative, SessionId};
use seal::SystemRandom;
use serde_json::{Value, json};
use testing::cli::{create_token, run_sayso, write_private_file};
use testing::http::TestResponse;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

use crate::raw_peer::{CardServer, RawPeer, RawSession, SESSIONS, now};
use crate::test_node::{NodeBuilder, Storage, TestNode, View, card_path, poll, start_builders, timestamp_in};

/// Limits that no test reaches.
const RATES: &str = "\
[limits]
messages_per_minute = [100000, 100000, 100000, 100000, 100000]
invitations_per_minute = [100000, 100000, 100000, 100000, 100000]
retry_delay_ms = 20
";

fn start(policy: &str, peers: &[PathBuf]) -> TestNode {
    let builder = NodeBuilder::new("press").policy(&format!("{RATES}{policy}"));
    let folder = builder.create_folder();
    builder.start(folder, peers)
}

/// Waits until the pinned card of a peer counts, and returns its score.
fn score_of(node: &TestNode, agent: &str) -> f64 {
    poll("the pinning", || {
        let report = node.get(&format!("/agent/v1/asp/trust?agent={agent}")).json();
        (report["level"] == 1).then(|| report["score"].as_f64().unwrap())
    })
}

#[track_caller]
fn assert_refused(response: &TestResponse, code: &str) {
    assert_eq!((response.status, response.json_str("code")), (422, code.to_owned()), "{response:?}");
}

/// Opens a session between two nodes, up to the introduction.
pub(crate) fn introduce(pair: &[TestNode; 2]) -> String {
    let [buyer, press] = pair;
    let session = buyer.try_invite(&press.agent, "menus", 600).unwrap().json_str("sessionId");
    press.wait_for(&session, "the invitation", |view| view.state() == "INVITED");
    press.send(&session, "ACCEPT", &json!({"referenceId": format!("prop_{session}")}));
    for node in pair {
        node.wait_for(&session, "the introduction", |view| {
            view.state() == "INTRODUCED" && view.is_acknowledged()
        });
    }
    session
}

/// Sends a message that the other side stores.
pub(crate) fn deliver(pair: &[TestNode; 2], sender: usize, session: &str, performative: &str, body: &Value) {
    pair[sender].send(session, performative, body);
    let sent = pair[sender].wait_for(session, "the delivery", View::is_acknowledged);
    pair[1 - sender].wait_for(session, "the arrival", |view| view.message_count() == sent.message_count());
}

/// Sends a message that the other side refuses with this code.
#[track_caller]
fn deliver_refused(node: &TestNode, session: &str, performative: &str, body: &Value, code: &str) {
    let before = node.view(session, 0, 0).unwrap();
    node.send(session, performative, body);
    let view = node.wait_for(session, "the refusal", |view| {
        view.0["refusals"].as_array().unwrap().len() > before.0["refusals"].as_array().unwrap().len()
    });
    assert_eq!(view.0["refusals"].as_array().unwrap().last().unwrap()["code"], code, "{view:?}");
    assert_eq!((view.message_count(), view.state()), (before.message_count(), before.state()));
}

#[test]
fn an_agent_below_the_trust_threshold_opens_no_session() {
    let peer = RawPeer::new("peer");
    let agent = peer.card.agent_id().to_string();
    for (threshold, is_open) in [("30", true), ("90", false)] {
        let node = start(&format!("[trust]\nthreshold = {threshold}\n"), &[peer.card_file()]);
        let score = score_of(&node, &agent);
        assert!((31.0..89.0).contains(&score), "{score}");
        let mut session = peer.session(&node);
        let invitation = session.invitation("a talk");
        let response = peer.send(&node, "POST", SESSIONS, &invitation.text);
        if is_open {
            assert_eq!(response.status, 201, "{response:?}");
        } else {
            assert_refused(&response, "insufficient_trust_score");
        }
        let sessions = node.get("/agent/v1/asp/sessions").json()["sessions"].as_array().unwrap().len();
        assert_eq!(sessions, usize::from(is_open));
    }
}

#[test]
fn an_invited_agent_below_the_trust_threshold_cannot_accept() {
    let policy = |text: &str| format!("{RATES}{text}[escrow]\n");
    let pair = start_builders([
        NodeBuilder::new("buyer").policy(&policy("[trust]\nthreshold = 90\n")),
        NodeBuilder::new("press").policy(&policy("")),
    ]);
    let [buyer, press] = &pair;
    let session = buyer.try_invite(&press.agent, "menus", 600).unwrap().json_str("sessionId");
    press.wait_for(&session, "the invitation", |view| view.state() == "INVITED");
    let accept = json!({"referenceId": format!("prop_{session}")});
    deliver_refused(press, &session, "ACCEPT", &accept, "insufficient_trust_score");
    assert_eq!(buyer.view(&session, 0, 0).unwrap().state(), "INVITED");
}

/// Posts a message with constraints on its answer.
fn send_with_constraints(node: &TestNode, session: &str, body: &Value, constraints: &Value) {
    let request = json!({"performative": "PROPOSE", "body": body, "constraints": constraints}).to_string();
    let response =
        node.try_send("POST", &format!("/agent/v1/asp/sessions/{session}/messages"), &request).unwrap();
    assert_eq!(response.status, 200, "{response:?}");
}

pub(crate) fn proposal(id: &str) -> Value {
    json!({"proposalId": id, "type": "work", "subject": "menus", "terms": {"price": "480.00 EUR"}})
}

#[test]
fn a_node_does_not_send_an_answer_that_the_constraints_forbid() {
    let pair = start_builders([NodeBuilder::new("buyer"), NodeBuilder::new("press")]);
    let [buyer, press] = &pair;
    for (number, constraints, forbidden, code) in [
        (1, json!({"allowedPerformatives": ["ACCEPT", "REJECT"]}), "no", "policy_violation"),
        (2, json!({"maxTokenBudget": 20}), &*"long ".repeat(100), "budget_exceeded"),
    ] {
        let session = introduce(&pair);
        let id = format!("prop_{number}");
        send_with_constraints(buyer, &session, &proposal(&id), &constraints);
        press.wait_for(&session, "the proposal", |view| view.state() == "CONVERSING");
        let answer = json!({"subject": forbidden});
        let refused = press.try_post_message(&session, "OBSERVE", &answer).unwrap();
        assert_refused(&refused, code);
        deliver(&pair, 1, &session, "ACCEPT", &json!({"referenceId": id}));
        // The constraints bind one answer.
        deliver(&pair, 1, &session, "OBSERVE", &answer);
    }
}

#[test]
fn an_answer_from_an_agent_without_the_required_trust_is_refused() {
    let pair = start_builders([NodeBuilder::new("buyer"), NodeBuilder::new("press")]);
    let [buyer, press] = &pair;
    let session = introduce(&pair);
    send_with_constraints(buyer, &session, &proposal("prop_1"), &json!({"requiredTrustScore": 95}));
    press.wait_for(&session, "the proposal", |view| view.state() == "CONVERSING");
    let accept = json!({"referenceId": "prop_1"});
    deliver_refused(press, &session, "ACCEPT", &accept, "insufficient_trust_score");
    assert_eq!(buyer.view(&session, 0, 0).unwrap().message_count(), 5);
    // Leaving is always allowed.
    deliver(&pair, 1, &session, "CLOSE", &json!({"reason": "not trusted"}));
}

/// Signs a message without any check by the sender, as a hostile peer does.
pub(crate) fn sign_unchecked(
    peer: &RawPeer,
    session: &RawSession,
    node: &TestNode,
    performative: Performative,
    body: &str,
) -> String {
    let record = session.participant.record().unwrap();
    let draft = MessageDraft {
        message_id: MessageId::generate(now(), &mut SystemRandom),
        session_id: SessionId::parse(&session.id).unwrap(),
        sequence_number: record.transcript().next_sequence_number(asp::state_machine::Role::Inviter),
        timestamp: seal::Timestamp::from_unix_millis(now()).unwrap(),
        sender: peer.card.agent_id().clone(),
        org_id: "org:raw".to_owned(),
        trust_score: TrustScore::new(99.0).unwrap(),
        recipient: asp::AgentUri::parse(&node.agent).unwrap(),
        body: Body::parse(performative, body).unwrap(),
        content: asp::message::Content::default(),
        constraints: None::<Constraints>,
        previous_hash: record.transcript().head(),
        other: asp::message::ExtraMembers::default(),
    };
    draft.sign(&peer.keys, &mut SystemRandom).unwrap().text.to_string()
}

#[test]
fn a_hostile_peer_cannot_ignore_the_constraints() {
    let peer = RawPeer::new("peer");
    let node = start("", &[peer.card_file()]);
    let long = format!(r#"{{"subject":"{}"}}"#, "long ".repeat(100));
    for (constraints, body, code) in [
        (json!({"allowedPerformatives": ["ACCEPT"]}), r#"{"subject":"the weather"}"#, "policy_violation"),
        (json!({"maxTokenBudget": 20}), &*long, "budget_exceeded"),
        (json!({"requiredTrustScore": 95}), r#"{"subject":"trust me"}"#, "insufficient_trust_score"),
    ] {
        let mut session = peer.open_conversation(&node);
        send_with_constraints(&node, &session.id, &proposal("prop_1"), &constraints);
        session.catch_up(&peer, &node);
        let before = node.view(&session.id, 0, 0).unwrap().message_count();
        let message = sign_unchecked(&peer, &session, &node, Performative::Observe, body);
        assert_refused(&peer.send(&node, "POST", &session.messages_path(), &message), code);
        assert_eq!(node.view(&session.id, 0, 0).unwrap().message_count(), before);
    }
}

fn commitment(pair: &[TestNode; 2], amount: &str) -> Value {
    json!({
        "commitmentId": "cmt_1",
        "terms": {"obligations": [
            {"party": pair[1].agent, "action": "print 40 menus", "deadline": timestamp_in(3600)},
        ]},
        "escrow": {"amount": amount, "currency": "EUR"},
    })
}

/// Brings a session to a COMMIT of the buyer with this escrow.
fn commit(pair: &[TestNode; 2], amount: &str) -> String {
    let session = introduce(pair);
    deliver(pair, 0, &session, "PROPOSE", &proposal("prop_1"));
    deliver(pair, 0, &session, "COMMIT", &commitment(pair, amount));
    session
}

fn policy_with_ceilings(ceilings: &str) -> String {
    format!("{RATES}[escrow]\nceilings = [{ceilings}]\n")
}

#[test]
fn an_escrow_above_the_ceiling_of_the_trust_level_is_not_accepted() {
    // Both agents are at level 1 for each other.
    let strict = policy_with_ceilings(r#""0", "100", "1000000", "1000000", "1000000""#);
    let generous = policy_with_ceilings(r#""0", "1000000", "1000000", "1000000", "1000000""#);
    let accept = json!({"referenceId": "cmt_1"});
    // The accepting node itself refuses.
    let pair = start_builders([
        NodeBuilder::new("buyer").policy(&generous),
        NodeBuilder::new("press").policy(&strict),
    ]);
    score_of(&pair[1], &pair[0].agent);
    let session = commit(&pair, "100.01");
    assert_refused(&pair[1].try_post_message(&session, "ACCEPT", &accept).unwrap(), "budget_exceeded");
    let session = commit(&pair, "100.00");
    deliver(&pair, 1, &session, "ACCEPT", &accept);
    // The payer's node refuses an acceptance by a node with a more generous policy.
    let pair = start_builders([
        NodeBuilder::new("buyer").policy(&strict),
        NodeBuilder::new("press").policy(&generous),
    ]);
    score_of(&pair[0], &pair[1].agent);
    let session = commit(&pair, "100.01");
    deliver_refused(&pair[1], &session, "ACCEPT", &accept, "budget_exceeded");
    assert_eq!(pair[0].view(&session, 0, 0).unwrap().state(), "AGREEING");
}

#[test]
fn an_escrow_above_the_payers_card_is_not_accepted() {
    let pair = start_builders([
        NodeBuilder::new("buyer").keygen_option(&["--max-transaction-value", "50.00", "--currency", "EUR"]),
        NodeBuilder::new("press"),
    ]);
    let accept = json!({"referenceId": "cmt_1"});
    let session = commit(&pair, "50.01");
    assert_refused(&pair[1].try_post_message(&session, "ACCEPT", &accept).unwrap(), "budget_exceeded");
    let session = commit(&pair, "50.00");
    deliver(&pair, 1, &session, "ACCEPT", &accept);
}

#[test]
fn a_hub_with_tokens_is_asked_with_the_nodes_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let tokens = path("tokens");
    let agent_token = create_token(&tokens, &["--role", "agent", "--agent-id", "buyer", "--name", "buyer"]);
    let listener_token = create_token(&tokens, &["--role", "listener", "--name", "marisol"]);
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &tokens]);
    write_private_file(&PathBuf::from(path("hub-token")), &format!("{agent_token}\n"));
    write_private_file(&PathBuf::from(path("wrong-token")), &listener_token);
    let person = hub.client().with_bearer(&listener_token);
    let subscription = person.subscribe(REPLY_CAPABILITIES);
    let mut stream = person.open_event_stream(&subscription, None);
    let url = format!("http://{}", hub.address);
    for (file, is_asked) in [("hub-token", true), ("wrong-token", false)] {
        let buyer = ["--hub", &url, "--hub-token", &path(file)]
            .iter()
            .fold(NodeBuilder::new("buyer"), |builder, argument| builder.argument(argument));
        let pair = start_builders([buyer, NodeBuilder::new("press")]);
        let session = introduce(&pair);
        deliver(&pair, 0, &session, "PROPOSE", &proposal("prop_1"));
        let response = pair[0].try_post_message(&session, "COMMIT", &commitment(&pair, "10.00")).unwrap();
        if !is_asked {
            assert_refused(&response, "policy_violation");
            assert!(response.body.contains("the person cannot be asked"), "{response:?}");
            continue;
        }
        assert_eq!(response.status, 202, "{response:?}");
        let question = loop {
            let (kind, _, event) = stream.next();
            if kind == "awaiting.confirmation" {
                break event;
            }
        };
        let token = question["reply_token"].as_str().unwrap();
        assert_eq!(person.reply(&subscription, token, "accept").status, 204);
        pair[1].wait_for(&session, "the COMMIT", |view| view.state() == "AGREEING");
    }
}

/// A policy that requires the consent of an agent's person, proven with this hub key.
fn policy_that_requires_consent(agent: &str, key_file: &str) -> String {
    format!(
        "{RATES}[consent]\nrequired_of_peers = true\npeer_hub_keys = [{{ agent = \"{agent}\", file = \"{key_file}\" }}]\n\
         [escrow]\nceilings = [\"1000\", \"1000\", \"1000\", \"1000\", \"1000\"]\n"
    )
}

#[test]
fn a_commitment_of_a_peer_needs_the_consent_of_its_person_if_the_policy_says_so() {
    let hubs = [(); 2].map(|()| HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--open"]));
    let folder = tempfile::tempdir().unwrap();
    let key_files = hubs.each_ref().map(|hub| {
        let key = hub.client().send("GET", "/.well-known/sayso-receipt-key.json", "");
        assert_eq!(key.status, 200, "{key:?}");
        let path = folder.path().join(hub.address.replace(':', "-"));
        std::fs::write(&path, key.body).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let person = hubs[0].client();
    let subscription = person.subscribe(REPLY_CAPABILITIES);
    let mut stream = person.open_event_stream(&subscription, None);
    // The buyer's person listens at the first hub. The press knows the key of that hub, or of another one.
    for (key_file, has_person, is_accepted) in
        [(&key_files[0], true, true), (&key_files[1], true, false), (&key_files[0], false, false)]
    {
        let mut buyer = NodeBuilder::new("buyer");
        if has_person {
            buyer = buyer.argument("--hub").argument(&format!("http://{}", hubs[0].address));
        }
        let policy = policy_that_requires_consent(&buyer.agent(), key_file);
        let pair = start_builders([buyer, NodeBuilder::new("press").policy(&policy)]);
        let [buyer, press] = &pair;
        let session = introduce(&pair);
        deliver(&pair, 0, &session, "PROPOSE", &proposal("prop_1"));
        let before = press.view(&session, 0, 0).unwrap().message_count();
        let request = json!({"performative": "COMMIT", "body": commitment(&pair, "10.00"), "tokensUsed": 77});
        let path = format!("/agent/v1/asp/sessions/{session}/messages");
        let response = buyer.try_send("POST", &path, &request.to_string()).unwrap();
        if has_person {
            assert_eq!(response.status, 202, "{response:?}");
            let question = loop {
                let (kind, _, event) = stream.next();
                if kind == "awaiting.confirmation" {
                    break event;
                }
            };
            let token = question["reply_token"].as_str().unwrap();
            assert_eq!(person.reply(&subscription, token, "accept").status, 204);
        }
        if is_accepted {
            let view = press.wait_for(&session, "the COMMIT", |view| view.state() == "AGREEING");
            assert_eq!(
                view.messages().last().unwrap()["tokensUsed"],
                77,
                "the person's question does not lose it"
            );
            continue;
        }
        let view = buyer.wait_for(&session, "the refusal", |view| view.0["refusals"] != json!([]));
        assert_eq!(view.0["refusals"][0]["code"], "escalation_required", "{view:?}");
        let after = press.view(&session, 0, 0).unwrap();
        assert_eq!((after.state(), after.message_count()), ("CONVERSING", before));
    }
}

#[test]
fn an_acceptance_of_a_peer_needs_the_consent_of_its_person_if_the_policy_says_so() {
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--open"]);
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("hub.jwk");
    let key = hub.client().send("GET", "/.well-known/sayso-receipt-key.json", "").body;
    std::fs::write(&key_file, key).unwrap();
    let press = NodeBuilder::new("press");
    let policy = policy_that_requires_consent(&press.agent(), key_file.to_str().unwrap());
    let pair = start_builders([NodeBuilder::new("buyer").policy(&policy), press]);
    // The buyer's own commitment, and the acceptance of a proposal, need nothing.
    let session = introduce(&pair);
    deliver(&pair, 0, &session, "PROPOSE", &proposal("prop_1"));
    deliver(&pair, 1, &session, "ACCEPT", &json!({"referenceId": "prop_1"}));
    deliver(&pair, 0, &session, "COMMIT", &commitment(&pair, "10.00"));
    deliver_refused(&pair[1], &session, "ACCEPT", &json!({"referenceId": "cmt_1"}), "escalation_required");
    assert_eq!(pair[0].view(&session, 0, 0).unwrap().state(), "AGREEING");
    // It is no violation, because the peer cannot know this policy.
    let report = pair[0].get(&format!("/agent/v1/asp/trust?agent={}", pair[1].agent)).body;
    assert!(!report.contains("protocol_violation"), "{report}");
    // A key that cannot be read stops the node.
    std::fs::write(&key_file, "{}").unwrap();
    let builder = NodeBuilder::new("buyer");
    let own = builder.create_folder();
    let path = |name: &str| own.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("policy.toml"), &policy).unwrap();
    let (identity, policy) = (path("identity"), path("policy.toml"));
    let arguments =
        ["asp", "serve", "--memory", "--open", "--listen", "127.0.0.1:0", "--identity", &identity];
    let output = run_sayso(&[&arguments[..], &["--policy", &policy]].concat(), "");
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("hub.jwk"), "{}", output.stderr);
}

#[test]
fn the_list_of_peers_can_name_addresses_of_cards() {
    let server = CardServer::start();
    let peer = RawPeer::with_agent(&server.agent());
    server.publish(peer.card.as_str());
    let url = format!("http://{}/.well-known/asp-agent-card.json", server.address);
    let node = start("", &[PathBuf::from("# the address of a card"), PathBuf::from(&url)]);
    peer.open_session(&node);

    // A card that cannot be fetched or does not verify stops the node, which names the line.
    let builder = NodeBuilder::new("press");
    let folder = builder.create_folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let unreachable = "http://127.0.0.1:1/card.json".to_owned();
    for (line, card) in [
        (unreachable, peer.card.as_str().to_owned()),
        (url, peer.card.as_str().replace("A raw peer", "A bank")),
    ] {
        server.publish(&card);
        std::fs::write(path("peers"), format!("\n{line}\n")).unwrap();
        let (identity, peers) = (path("identity"), path("peers"));
        let arguments = ["asp", "serve", "--memory", "--open", "--listen", "127.0.0.1:0"];
        let output = run_sayso(&[&arguments[..], &["--identity", &identity, "--peers", &peers]].concat(), "");
        assert_eq!(output.exit_code, 2, "{}", output.stderr);
        assert!(output.stderr.contains("peers:2: "), "{}", output.stderr);
    }
}

#[test]
fn signed_endorsements_in_the_policy_raise_the_score_once() {
    let (peer, stranger) = (RawPeer::new("peer"), RawPeer::new("stranger"));
    let agent = peer.card.agent_id().to_string();
    // Two endorsers with identities of their own, one of which nobody has pinned.
    let endorsers = ["guild", "unknown"].map(NodeBuilder::new);
    let folders = endorsers.each_ref().map(NodeBuilder::create_folder);
    let endorse = |index: usize| {
        let folder: &tempfile::TempDir = &folders[index];
        let identity = folder.path().join("identity");
        let output = run_sayso(&["asp", "endorse", &agent, "--identity", identity.to_str().unwrap()], "");
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        output.stdout
    };
    let files = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let valid = endorse(0);
    let forged = valid.replace(&agent, stranger.card.agent_id().as_str());
    let policy = |names: &[&str]| format!("{RATES}[trust]\nendorsements = {names:?}\n");
    let ignored = [
        write("unknown.json", &endorse(1)),
        write("forged.json", &forged),
        write("card.json", stranger.card.as_str()),
        write("empty.json", ""),
    ];
    let cards = [peer.card_file(), stranger.card_file(), card_path(&folders[0])];
    let builder = NodeBuilder::new("press")
        .storage(Storage::Disk)
        .policy(&policy(&ignored.each_ref().map(String::as_str)));
    let folder = builder.create_folder();
    let node = builder.start(folder, &cards);
    let before = [&agent, stranger.card.agent_id().as_str()].map(|agent| score_of(&node, agent));
    assert!((before[0] - before[1]).abs() < 0.01, "{before:?}");

    let valid = write("valid.json", &valid);
    node.reload(&policy(&[&valid]), &cards);
    let events = |node: &TestNode| {
        let report = node.get(&format!("/agent/v1/asp/trust?agent={agent}")).json();
        let component = report["components"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(component["name"], "peerEndorsements");
        (component["value"].as_f64().unwrap(), component["events"].clone())
    };
    poll("the endorsement", || (events(&node).0 > 1.0).then_some(()));
    let counted = events(&node);
    assert!(score_of(&node, &agent) > before[0]);
    assert!((score_of(&node, stranger.card.agent_id().as_str()) - before[1]).abs() < 0.01);
    // It counts once, although the policy still names it after a restart.
    node.restart();
    score_of(&node, &agent);
    assert_eq!(events(&node).1, counted.1);
    // Nobody endorses itself.
    let own = ["asp", "endorse", &endorsers[0].agent(), "--identity"];
    let identity = folders[0].path().join("identity").to_str().unwrap().to_owned();
    assert_eq!(run_sayso(&[&own[..], &[&identity]].concat(), "").exit_code, 2);
}

#[test]
fn only_the_owner_can_read_the_keys_of_an_identity() {
    let builder = NodeBuilder::new("press");
    let folder = builder.create_folder();
    builder.keygen(folder.path(), &["--rotate"]);
    let path = |name: &str| folder.path().join("identity").join(name);
    for name in ["keys", "keys.1"] {
        let mode = std::fs::metadata(path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    // A node does not start with keys that others can read.
    std::fs::set_permissions(path("keys"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let identity = folder.path().join("identity");
    let output = run_sayso(
        &[
            "asp",
            "serve",
            "--memory",
            "--open",
            "--listen",
            "127.0.0.1:0",
            "--identity",
            identity.to_str().unwrap(),
        ],
        "",
    );
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("keys"), "{}", output.stderr);
}
