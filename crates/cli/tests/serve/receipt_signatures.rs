//! The hub signs the receipts of resolved questions, so that an agent can prove to others how a person answered.

use seal::jws::{VerifiedToken, verify_detached};
use seal::{Jwk, Timestamp, canonicalize};
use serde_json::{Value, json};

use crate::serve::agent_websocket::AgentWebSocket;
use testing::http::TestClient;
use testing::hub::{HubProcess, reserved_address};
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};

const KEY_PATH: &str = "/.well-known/sayso-receipt-key.json";

fn read_key(text: &str) -> Jwk {
    Jwk::read(&aaep::json::OwnedDoc::read(text).unwrap().doc().root()).unwrap()
}

fn canonical_text(receipt: &Value) -> String {
    canonicalize(&aaep::json::OwnedDoc::read(&receipt.to_string()).unwrap().doc().root()).unwrap()
}

/// Verifies the receipt of an outcome, as somebody would who sees only the receipt, the signature and the key.
fn verify(outcome: &Value, key: &Jwk) -> Option<VerifiedToken> {
    let signature = outcome["receipt_signature"].as_str().unwrap_or_else(|| panic!("{outcome}"));
    verify_detached(signature, canonical_text(&outcome["receipt"]).as_bytes(), key).ok()
}

/// Waits until a question is resolved and returns its outcome.
fn wait_for_outcome(client: &TestClient, session: &str, token: &str) -> Value {
    client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=60")).json()
}

/// Asks in a session of its own, with these members instead of those of the standard question. Returns the session and
/// the reply token.
fn ask_with(client: &TestClient, members: &Value) -> (String, String) {
    let session = client.start_session();
    let mut body: Value = serde_json::from_str(CONFIRMATION_BODY).unwrap();
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    let path = format!("/agent/v1/sessions/{session}/confirmations");
    let token = client.post(&path, &body.to_string()).json_str("reply_token");
    (session, token)
}

/// Resolves one question in each way: a yes, a no, silence, silence that counts as a yes, a withdrawal, an answer to a
/// clarification, and nobody to ask. Returns their paths and outcomes.
fn resolve_questions(hub: &HubProcess) -> Vec<(String, Value)> {
    let client = hub.client();
    let unreachable = ask_with(&client, &json!({}));
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let [accepted, rejected, withdrawn] = [0; 3].map(|_| ask_with(&client, &json!({})));
    let timed_out = ask_with(&client, &json!({"timeout_seconds": 1}));
    let harmless = json!({"timeout_seconds": 1, "default_decision": "accept", "irreversible": false, "risk_level": "low"});
    let defaulted = ask_with(&client, &harmless);
    let session = client.start_session();
    let clarification =
        json!({"question": "Which Ben?", "timeout_seconds": 60, "summary_normal": "Which Ben?"});
    let path = format!("/agent/v1/sessions/{session}/clarifications");
    let clarified = (session, client.post(&path, &clarification.to_string()).json_str("reply_token"));
    client.reply(&subscription, &accepted.1, "accept");
    client.reply(&subscription, &rejected.1, "reject");
    let now = Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
    let response = json!({"type": "clarification.reply", "reply_token": clarified.1, "subscription_id": subscription,
        "timestamp": now.to_string(), "response": "Ben Çelik \u{1f600}"});
    client.post("/aaep/v1/replies", &response.to_string());
    client.send("DELETE", &format!("/agent/v1/sessions/{}/replies/{}", withdrawn.0, withdrawn.1), "");
    [accepted, rejected, timed_out, defaulted, withdrawn, clarified, unreachable]
        .into_iter()
        .map(|(session, token)| {
            let outcome = wait_for_outcome(&client, &session, &token);
            (format!("/agent/v1/sessions/{session}/replies/{token}"), outcome)
        })
        .collect()
}

#[test]
fn every_receipt_verifies_with_the_hubs_key_even_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (data, address) = (folder.path().to_str().unwrap(), reserved_address());
    let start_hub = || HubProcess::start(&["--open", "--listen", &address, "--data", data]);
    let mut hub = start_hub();
    let key_file = std::fs::read_to_string(folder.path().join("manifest.jwk")).unwrap();
    let key = read_key(&key_file);
    assert_eq!(hub.client().get(KEY_PATH).body, key_file.trim_end(), "the served key is the one in the file");
    let outcomes = resolve_questions(&hub);
    let by: Vec<_> = outcomes.iter().map(|(_, outcome)| outcome["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["reply", "reply", "timeout", "timeout", "cancelled", "reply", "unreachable"]);
    for (path, outcome) in &outcomes {
        let verified = verify(outcome, &key).unwrap_or_else(|| panic!("{outcome}"));
        assert_eq!(
            (verified.kid, verified.jwk, verified.payload),
            (Some(key.thumbprint()), None, Vec::new())
        );
        let again = hub.client().get(path).json();
        assert_eq!(again, *outcome, "a receipt is signed once, not per request");
    }
    hub.kill();
    let restarted = start_hub();
    for (path, outcome) in &outcomes {
        let after_restart = restarted.client().get(path).json();
        assert_eq!(after_restart["receipt"], outcome["receipt"]);
        assert!(verify(&after_restart, &key).is_some(), "{after_restart}");
    }
}

#[test]
fn a_changed_receipt_or_another_key_does_not_verify() {
    let hub = HubProcess::start_in_memory();
    let key = read_key(&hub.client().get(KEY_PATH).body);
    let outcomes = resolve_questions(&hub);
    let [(_, accepted), (_, rejected), ..] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert!(verify(accepted, &key).is_some() && verify(rejected, &key).is_some());
    for (member, value) in [
        ("decision", json!("accept")),
        ("by", json!("timeout")),
        ("principal", json!("eve")),
        ("agent_id", json!("eve")),
        ("action_digest", json!(format!("sha256:{}", "0".repeat(64)))),
        ("resolved_at", json!("2031-01-01T00:00:00.000Z")),
        ("expires_at", json!("2031-01-01T00:00:00.000Z")),
        ("subscription_id", json!("sub_1")),
        ("modified", json!(true)),
    ] {
        let mut changed = rejected.clone();
        changed["receipt"][member] = value;
        assert!(verify(&changed, &key).is_none(), "{member}");
    }
    let mut swapped = rejected.clone();
    swapped["receipt_signature"] = accepted["receipt_signature"].clone();
    assert!(verify(&swapped, &key).is_none(), "the signature of a yes fits no other receipt");
    let other_key = read_key(&HubProcess::start_in_memory().client().get(KEY_PATH).body);
    assert!(verify(accepted, &other_key).is_none(), "another hub has another key");
}

/// Somebody who sees only the receipt recognizes a person's yes, and knows when it expires.
#[test]
fn only_a_persons_yes_looks_like_one() {
    let hub = HubProcess::start_in_memory_with(&["--questions-consent-lifetime", "7s"]);
    let outcomes = resolve_questions(&hub);
    let is_yes = |receipt: &Value| {
        receipt["type"] == "sayso:receipt" && receipt["decision"] == "accept" && receipt["by"] == "reply"
    };
    let millis = |value: &Value| Timestamp::parse(value.as_str().unwrap()).unwrap().unix_millis();
    let (_, accepted) = &outcomes[0];
    let receipt = &accepted["receipt"];
    assert!(is_yes(receipt), "{receipt}");
    assert_eq!(millis(&receipt["expires_at"]).millis_since(millis(&receipt["resolved_at"])), 7_000);
    for (_, outcome) in &outcomes[1..] {
        let receipt = &outcome["receipt"];
        assert!(!is_yes(receipt) && receipt["expires_at"].is_null(), "{receipt}");
    }
    assert_eq!(outcomes[3].1["decision"], "accept", "silence counted as a yes to a harmless question");
}

#[test]
fn http_and_websocket_have_the_same_receipt_and_signature() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let key = read_key(&client.get(KEY_PATH).body);
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&subscription, None);
    let mut agent = AgentWebSocket::open(&hub);
    let session = agent.start_session();
    let accepted = agent.ask(&session);
    client.reply(&subscription, &accepted, "accept");
    let notification = agent.next_notification();
    assert_eq!(notification["params"]["reply_token"], accepted.as_str());
    let withdrawn = agent.ask(&session);
    let response =
        agent.call_ok("session.withdraw", &json!({"session_id": session, "reply_token": withdrawn}));
    for (token, over_websocket) in [
        (&accepted, &notification["params"]),
        (&withdrawn, &response),
        (&withdrawn, &agent.next_notification()["params"]),
    ] {
        let over_http = wait_for_outcome(&client, &session, token);
        for member in ["receipt", "receipt_signature"] {
            assert_eq!(over_http[member], over_websocket[member], "{member}");
        }
        assert!(verify(over_websocket, &key).is_some(), "{over_websocket}");
    }
    // A connection that follows the session later receives the notice again, with a signature.
    let mut other = AgentWebSocket::open(&hub);
    other.call_ok("session.follow", &json!({"session_id": session}));
    let repeated = other.next_notification();
    assert!(verify(&repeated["params"], &key).is_some(), "{repeated}");
    // A hand-off has no receipt, so it has no signature.
    let hand_off = json!({"session_id": session, "reason": "The refund needs a person.", "target_kind": "human",
        "summary_normal": "I need a person.", "urgency_for_handoff": "high"});
    let token = agent.call_ok("session.hand_off", &hand_off)["reply_token"].as_str().unwrap().to_owned();
    agent.call_ok("session.withdraw", &json!({"session_id": session, "reply_token": token}));
    let outcome = wait_for_outcome(&client, &session, &token);
    assert_eq!((&outcome["receipt"], &outcome["receipt_signature"]), (&Value::Null, &Value::Null));
}

#[test]
fn everybody_may_read_the_key_and_nobody_may_change_it() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens").to_str().unwrap().to_owned();
    testing::cli::create_token(&tokens, &["--role", "listener", "--name", "ada"]);
    let hub = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &tokens]);
    let response = hub.client().get(KEY_PATH);
    assert_eq!(response.status, 200);
    let members: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!(members.as_object().unwrap().keys().collect::<Vec<_>>(), ["crv", "kty", "x", "y"]);
    assert_eq!(hub.client().get(&format!("{KEY_PATH}?a=1")).status, 400);
    assert!(matches!(hub.client().post(KEY_PATH, "{}").status, 401 | 405));
}

/// The crate `sayso` gives an agent the receipt and the signature exactly as the hub created them.
#[test]
fn the_crate_exposes_the_signed_receipt() {
    let hub = HubProcess::start_in_memory();
    let key = read_key(&hub.client().get(KEY_PATH).body);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let agent = sayso::Hub::connect(format!("http://{}", hub.address)).open().await.unwrap();
        let session = agent.session("Pay Ben.").start().await.unwrap();
        let action =
            sayso::Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euros.").consequence("They are gone.");
        let answer = session.ask(action).await.unwrap();
        let (receipt, signature) = (answer.receipt().unwrap(), answer.receipt_signature().unwrap());
        assert!(receipt.contains(r#""by":"unreachable""#), "{receipt}");
        assert!(verify_detached(signature, receipt.as_bytes(), &key).is_ok(), "{receipt} {signature}");
        session.cancel("Nothing was sent.").await.unwrap();
    });
}
