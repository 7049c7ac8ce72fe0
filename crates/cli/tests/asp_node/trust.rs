//! The events from which a node computes its trust in a peer: each is recorded once, also after restarts and repeated deliveries, and
//! a hostile peer cannot make the node record many.

use asp::message::{Body, MessageDraft, Propose, TrustScore};
use asp::{MessageId, Performative, SessionId};
use seal::SystemRandom;
use seal::json::RawJson;
use serde_json::{Value, json};
use testing::cli::run_sayso;
use testing::hub::HubProcess;

use crate::policies::{deliver, introduce, proposal};
use crate::raw_peer::{RawPeer, RawSession, now};
use crate::test_node::{NodeBuilder, Storage, TestNode, View, poll, start_builders, timestamp_in};

/// Rates that no test reaches. A test appends its own limits.
const RATES: &str = "\
[limits]
messages_per_minute = [100000, 100000, 100000, 100000, 100000]
invitations_per_minute = [100000, 100000, 100000, 100000, 100000]
retry_delay_ms = 20
";
const CEILINGS: &str =
    "[escrow]\nceilings = [\"2000000\", \"2000000\", \"2000000\", \"2000000\", \"2000000\"]\n";

/// A component of a node's trust in an agent.
fn component(node: &TestNode, agent: &str, name: &str) -> Value {
    let report = node.get(&format!("/agent/v1/asp/trust?agent={agent}")).json();
    let components = report["components"].as_array().unwrap();
    components.iter().find(|component| component["name"] == name).unwrap().clone()
}

fn value(node: &TestNode, agent: &str, name: &str) -> f64 {
    component(node, agent, name)["value"].as_f64().unwrap()
}

/// Returns how often an event that changes this component happened.
fn count(node: &TestNode, agent: &str, name: &str, event: &str) -> u64 {
    let events = component(node, agent, name)["events"].as_array().unwrap().clone();
    let found = events.into_iter().find(|entry| entry["name"] == event);
    found.map_or(0, |entry| entry["count"].as_u64().unwrap())
}

/// Waits until an event was recorded this often, and returns the value of the component then.
#[track_caller]
fn wait_for_count(node: &TestNode, agent: &str, name: &str, event: &str, expected: u64) -> f64 {
    poll(event, || (count(node, agent, name, event) == expected).then_some(()));
    value(node, agent, name)
}

/// Returns the lines of `sayso asp trust`.
fn printed(node: &TestNode, agent: &str) -> String {
    let output = run_sayso(&["asp", "trust", agent, "--node", &format!("http://{}", node.address)], "");
    assert_eq!(output.exit_code, 0, "{}", output.stderr);
    output.stdout
}

/// Sends a QUERY that must be answered within this time.
fn ask(node: &TestNode, session: &str, id: &str, max_response_time_ms: u64) {
    let request = json!({
        "performative": "QUERY",
        "body": {"queryId": id, "queryType": "question", "subject": "when?"},
        "constraints": {"maxResponseTimeMs": max_response_time_ms},
    });
    let path = format!("/agent/v1/asp/sessions/{session}/messages");
    let response = node.try_send("POST", &path, &request.to_string()).unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    node.wait_for(session, "the delivery", View::is_acknowledged);
}

fn wait_until_overdue(node: &TestNode, session: &str, from: &str) -> View {
    node.wait_for(session, "the overdue response", |view| {
        view.0["awaitedResponse"]["isOverdue"] == true && view.0["awaitedResponse"]["from"] == from
    })
}

#[test]
fn answers_in_time_late_and_never_change_the_response_quality() {
    let pair = start_builders(["buyer", "press"].map(|name| NodeBuilder::new(name).storage(Storage::Disk)));
    let [buyer, press] = &pair;
    let quality = |event, expected| wait_for_count(buyer, &press.agent, "responseQuality", event, expected);
    let session = introduce(&pair);
    let answer = json!({"subject": "tomorrow"});
    let before = value(buyer, &press.agent, "responseQuality");

    ask(buyer, &session, "qry_1", 600_000);
    let waiting = buyer.view(&session, 0, 0).unwrap();
    assert_eq!(waiting.0["awaitedResponse"]["from"], "peer", "{waiting:?}");
    assert_eq!(waiting.0["awaitedResponse"]["isOverdue"], false, "{waiting:?}");
    deliver(&pair, 1, &session, "OBSERVE", &answer);
    let in_time = quality("message_answered", 1);
    assert!(in_time > before, "{before} {in_time}");
    assert!(buyer.view(&session, 0, 0).unwrap().0.get("awaitedResponse").is_none());

    ask(buyer, &session, "qry_2", 1);
    let overdue = wait_until_overdue(buyer, &session, "peer");
    let messages = overdue.messages();
    assert_eq!(overdue.0["awaitedResponse"]["messageId"], messages.last().unwrap()["messageId"]);
    wait_until_overdue(press, &session, "you");
    let shown = run_sayso(&["asp", "show", &session, "--node", &format!("http://{}", buyer.address)], "");
    assert!(shown.stdout.contains("The other side has not answered message"), "{}", shown.stdout);
    deliver(&pair, 1, &session, "OBSERVE", &answer);
    let late = quality("message_answered_late", 1);
    assert!(late < in_time, "{late} {in_time}");

    // A restart neither forgets nor repeats an overdue response.
    ask(buyer, &session, "qry_3", 1);
    wait_until_overdue(buyer, &session, "peer");
    buyer.restart();
    wait_until_overdue(buyer, &session, "peer");
    deliver(&pair, 0, &session, "CLOSE", &json!({"reason": "too slow"}));
    let missed = quality("response_missed", 1);
    assert!(missed < late, "{missed} {late}");
    buyer.restart();
    assert_eq!((quality("message_answered", 1), quality("response_missed", 1)), (missed, missed));
    let text = printed(buyer, &press.agent);
    for line in [
        "messages that it answered in time: 1",
        "messages that it answered late: 1",
        "messages that it never answered: 1",
    ] {
        assert!(text.contains(line), "{text}");
    }
    // The side that had to answer records nothing about the other one.
    assert_eq!(component(press, &buyer.agent, "responseQuality")["events"], json!([]));
}

/// Starts a node that pins a raw peer.
fn start_with(peer: &RawPeer, limits: &str) -> TestNode {
    let builder = NodeBuilder::new("press").storage(Storage::Disk).policy(&format!("{RATES}{limits}"));
    let folder = builder.create_folder();
    let node = builder.start(folder, &[peer.card_file()]);
    let agent = peer.card.agent_id().as_str();
    wait_for_count(&node, agent, "identityVerification", "card_pinned", 1);
    node
}

/// Signs a message without any check by the sender, as a hostile peer does.
fn forge(peer: &RawPeer, session: &RawSession, node: &TestNode, body: Body) -> String {
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
        body,
        content: asp::message::Content::default(),
        constraints: None,
        previous_hash: record.transcript().head(),
        other: asp::message::ExtraMembers::default(),
    };
    draft.sign(&peer.keys, &mut SystemRandom).unwrap().text.to_string()
}

/// A message that the state machine does not allow.
fn disallowed() -> Body {
    Body::parse(Performative::Accept, r#"{"referenceId":"prop_unknown"}"#).unwrap()
}

/// A body that every receiver refuses as malformed.
fn malformed() -> Body {
    let terms = RawJson::parse(r#"{"proposedDuration":"soon"}"#).unwrap();
    let id = asp::ProposalId::parse("prop_malformed").unwrap();
    Propose::new(id, Propose::INVITATION_TYPE, "a talk", terms).into()
}

#[test]
fn a_violation_counts_once_however_often_it_arrives() {
    let peer = RawPeer::new("peer");
    let agent = peer.card.agent_id().as_str();
    let node = start_with(&peer, "violations_per_minute = 100\nviolations_per_day = 1000\n");
    let session = peer.open_conversation(&node);
    let send = |text: &str| peer.send(&node, "POST", &session.messages_path(), text);
    let before = value(&node, agent, "securityPosture");
    for (expected, body, code) in
        [(1, disallowed(), "invalid_state_transition"), (2, malformed(), "schema_unsupported")]
    {
        let text = forge(&peer, &session, &node, body);
        let refused = send(&text);
        assert_eq!((refused.status, &*refused.json_str("code")), (422, code), "{refused:?}");
        assert!([409, 422].contains(&send(&text).status));
        node.restart();
        assert!([409, 422].contains(&send(&text).status));
        assert_eq!(count(&node, agent, "securityPosture", "protocol_violation"), expected, "{code}");
    }
    let after_violations = value(&node, agent, "securityPosture");
    assert!(after_violations < before);
    // A card of other keys is worse, and changes the identity, too.
    let other = RawPeer::with_agent(agent);
    let identity = format!(r#"{{"informType":"identity","card":{}}}"#, other.card.as_str());
    let text = forge(&peer, &session, &node, Body::parse(Performative::Inform, &identity).unwrap());
    assert_eq!((send(&text).status, send(&text).status), (422, 409));
    assert_eq!(count(&node, agent, "identityVerification", "card_mismatched"), 1);
    assert_eq!(count(&node, agent, "securityPosture", "protocol_violation"), 2);
    assert!(value(&node, agent, "securityPosture") < after_violations);
    assert!(value(&node, agent, "identityVerification") < 51.0);
    let text = printed(&node, agent);
    assert!(text.contains("messages that were not allowed: 2"), "{text}");
    assert!(text.contains("messages with a card other than the pinned one: 1"), "{text}");
}

#[test]
fn what_is_not_the_peers_fault_is_no_violation() {
    let peer = RawPeer::new("peer");
    let agent = peer.card.agent_id().as_str();
    let node = start_with(&peer, "violations_per_minute = 100\nviolations_per_day = 1000\n");
    let mut session = peer.open_conversation(&node);
    let send = |session: &RawSession, text: &str| peer.send(&node, "POST", &session.messages_path(), text);
    // A message that lost a race, and a repeated one.
    let stale =
        forge(&peer, &session, &node, Body::parse(Performative::Observe, r#"{"subject":"x"}"#).unwrap());
    session.send(&peer, &node, Performative::Observe, r#"{"subject":"the weather"}"#);
    assert_eq!(send(&session, &stale).status, 409);
    // A message that comes after the session has timed out here, which the peer does not know yet.
    let escalation = r#"{"reason":"may I?","urgency":"low","timeout":1}"#;
    session.send(&peer, &node, Performative::Escalate, escalation);
    node.wait_for(&session.id, "the timeout", View::is_terminal);
    let withdrawal = Body::parse(Performative::Withdraw, r#"{"reason":"no decision"}"#).unwrap();
    let late = forge(&peer, &session, &node, withdrawal);
    assert_eq!(send(&session, &late).status, 422);
    assert_eq!(component(&node, agent, "securityPosture")["events"], json!([]));
}

#[test]
fn a_peer_cannot_fill_the_store_with_violations() {
    let peer = RawPeer::new("peer");
    let agent = peer.card.agent_id().as_str();
    let node = start_with(&peer, "violations_per_minute = 1000\nviolations_per_day = 2\n");
    let session = peer.open_conversation(&node);
    let violate = |body: &dyn Fn() -> Body| {
        for _ in 0..4 {
            let text = forge(&peer, &session, &node, body());
            assert_eq!(peer.send(&node, "POST", &session.messages_path(), &text).status, 422);
        }
    };
    violate(&disallowed);
    assert_eq!(count(&node, agent, "securityPosture", "protocol_violation"), 2);
    violate(&malformed);
    assert_eq!(count(&node, agent, "securityPosture", "protocol_violation"), 2);
    // A severe violation has a limit of its own, so mild ones do not hide it.
    let other = RawPeer::with_agent(agent);
    let identity = format!(r#"{{"informType":"identity","card":{}}}"#, other.card.as_str());
    violate(&|| Body::parse(Performative::Inform, &identity).unwrap());
    assert_eq!(count(&node, agent, "securityPosture", "card_mismatched"), 2);
}

#[test]
fn a_revoked_card_counts_until_it_is_pinned_again() {
    let peer = RawPeer::new("peer");
    let agent = peer.card.agent_id().as_str();
    let node = start_with(&peer, "");
    let pinned = value(&node, agent, "identityVerification");
    let cards = [peer.card_file()];
    let revoked = format!("{RATES}[cards]\nrevoked = [\"{agent}\"]\n");
    node.reload(&revoked, &cards);
    let value_when_revoked = wait_for_count(&node, agent, "identityVerification", "card_revoked", 1);
    assert!(value_when_revoked < pinned, "{value_when_revoked}");
    assert!(value(&node, agent, "securityPosture") < 50.0);
    // It is recorded once, although the policy still names it.
    node.reload(&revoked, &cards);
    node.restart();
    wait_for_count(&node, agent, "identityVerification", "card_revoked", 1);
    assert!(printed(&node, agent).contains("its card was revoked: 1"));
    node.reload(RATES, &cards);
    let again = wait_for_count(&node, agent, "identityVerification", "card_pinned", 2);
    assert_eq!(again, pinned);
    assert_eq!(count(&node, agent, "identityVerification", "card_revoked"), 1);
}

/// Brings a session to a COMMIT of the buyer with this escrow, in which only the press has something to do.
fn commit(pair: &[TestNode; 2], amount: &str) -> String {
    let session = introduce(pair);
    deliver(pair, 0, &session, "PROPOSE", &proposal("prop_1"));
    let commitment = json!({
        "commitmentId": "cmt_1",
        "terms": {"obligations": [
            {"party": pair[1].agent, "action": "print 40 menus", "deadline": timestamp_in(3600)},
        ]},
        "escrow": {"amount": amount, "currency": "EUR"},
    });
    deliver(pair, 0, &session, "COMMIT", &commitment);
    session
}

#[test]
fn a_paid_and_a_lost_escrow_change_the_economic_reliability() {
    let policy = format!("{RATES}{CEILINGS}");
    let pair = start_builders(
        ["buyer", "press"].map(|name| NodeBuilder::new(name).storage(Storage::Disk).policy(&policy)),
    );
    let [buyer, press] = &pair;
    let reliability =
        |event, expected| wait_for_count(press, &buyer.agent, "economicReliability", event, expected);
    let before = value(press, &buyer.agent, "economicReliability");
    let accept = json!({"referenceId": "cmt_1"});
    let session = commit(&pair, "100.00");
    deliver(&pair, 1, &session, "ACCEPT", &accept);
    let funded = reliability("escrow_funded", 1);
    assert!(funded > before, "{before} {funded}");
    // The payer itself records nothing about the other side.
    assert_eq!(component(buyer, &press.agent, "economicReliability")["events"], json!([]));
    // The press is paid for its work, so the buyer loses nothing.
    deliver(&pair, 1, &session, "INFORM", &json!({"informType": "result"}));
    let result = press.view(&session, 0, 0).unwrap().messages().last().unwrap()["messageId"].clone();
    deliver(&pair, 0, &session, "INFORM", &json!({"informType": "answer", "inReplyTo": result}));
    deliver(&pair, 1, &session, "CLOSE", &json!({"reason": "done"}));
    deliver(&pair, 0, &session, "CLOSE", &json!({"reason": "done"}));
    press.wait_for(&session, "the end", View::is_terminal);
    // In the next session, the buyer leaves.
    let session = commit(&pair, "100.00");
    deliver(&pair, 1, &session, "ACCEPT", &accept);
    reliability("escrow_funded", 2);
    deliver(&pair, 0, &session, "WITHDRAW", &json!({"reason": "changed my mind"}));
    let forfeited = reliability("escrow_forfeited", 1);
    assert!(forfeited < funded, "{forfeited} {funded}");
    press.restart();
    assert_eq!((reliability("escrow_funded", 2), reliability("escrow_forfeited", 1)), (forfeited, forfeited));
    let text = printed(press, &buyer.agent);
    assert!(text.contains("escrows that it funded: 2"), "{text}");
    assert!(text.contains("escrows that it lost: 1"), "{text}");
}

#[test]
fn an_escrow_without_money_counts_once_for_each_commitment() {
    let policy = format!("{RATES}{CEILINGS}");
    let pair = start_builders(
        ["buyer", "press"].map(|name| NodeBuilder::new(name).storage(Storage::Disk).policy(&policy)),
    );
    let [buyer, press] = &pair;
    let before = value(press, &buyer.agent, "economicReliability");
    // The buyer has deposited 1000000.
    let session = commit(&pair, "1000000.01");
    for _ in 0..2 {
        let refused = press.try_post_message(&session, "ACCEPT", &json!({"referenceId": "cmt_1"})).unwrap();
        assert_eq!((refused.status, refused.json_str("code")), (422, "budget_exceeded".to_owned()));
        press.restart();
        let after = wait_for_count(press, &buyer.agent, "economicReliability", "escrow_unfunded", 1);
        assert!(after < before, "{after} {before}");
    }
    assert!(printed(press, &buyer.agent).contains("escrows that it promised but could not cover: 1"));
    // An escrow above this node's own ceiling says nothing about the peer's money.
    let strict = policy.replace("2000000", "10");
    let pair = start_builders([
        NodeBuilder::new("buyer").policy(&policy),
        NodeBuilder::new("press").policy(&strict),
    ]);
    let session = commit(&pair, "11.00");
    let refused = pair[1].try_post_message(&session, "ACCEPT", &json!({"referenceId": "cmt_1"})).unwrap();
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(component(&pair[1], &pair[0].agent, "economicReliability")["events"], json!([]));
}

#[test]
fn the_person_hears_once_in_their_language_that_an_answer_is_overdue() {
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--open"]);
    let person = hub.client();
    let streams = [
        ("en", "press has not answered in time."),
        ("es", "press no ha respondido a tiempo."),
        ("yo", "press kò tíì dáhùn, àkókò rẹ̀ sì ti kọjá."),
    ]
    .map(|(language, text)| {
        let subscription = person.subscribe(&json!({"languages": [language]}).to_string());
        (person.open_event_stream(&subscription, None), text)
    });
    let buyer = NodeBuilder::new("buyer").storage(Storage::Disk);
    let buyer = buyer.argument("--hub").argument(&format!("http://{}", hub.address));
    let pair = start_builders([buyer, NodeBuilder::new("press")]);
    let session = introduce(&pair);
    ask(&pair[0], &session, "qry_1", 1);
    wait_until_overdue(&pair[0], &session, "peer");
    let mut streams = streams.map(|(mut stream, text)| {
        while stream.next().2["summary_normal"] != text {}
        (stream, text)
    });
    pair[0].restart();
    wait_until_overdue(&pair[0], &session, "peer");
    deliver(&pair, 0, &session, "CLOSE", &json!({"reason": "too slow"}));
    for (stream, text) in &mut streams {
        loop {
            let (kind, _, event) = stream.next();
            assert_ne!(event["summary_normal"], *text);
            if kind == "session.completed" {
                break;
            }
        }
    }
}
