//! Receipts. Each one records how a question was resolved, in canonical form (decision 6).

use aaep::consent::{BoundAction, Receipt};
use seal::{Digest, canonicalize, ed25519, json::Tape};
use serde_json::{Value, json};

use super::consent_hub::*;

const BEN_ARGUMENTS: &str = r#"{"to":"Ben"}"#;

/// Asks the question and returns its receipt after this message, or after the timeout.
fn receipt(event: &Value, message: Option<String>) -> Receipt {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(event, &["ada"]);
    let outcomes = match message {
        Some(text) => hub.send("ada", &text, T0 + 2000).unwrap(),
        None => hub.wake(T0 + 180_000),
    };
    resolution(&outcomes).receipt()
}

fn all_receipts() -> Vec<Receipt> {
    let acceptance = reply_with(1, "ada", "accept", T0 + 1000, &json!({"decided_by": "Ada \u{e9} \"A\"\n"}));
    let modified = reply_with(1, "ada", "accept", T0 + 1000, &json!({"modified_action": {}}));
    let any_kind =
        with(clarification(1), &json!({"accepted_response_kinds": ["numeric", "yes_no", "freetext"]}));
    let response_message = |value| Some(response(1, "ada", &value, T0 + 1000));
    vec![
        receipt(&bound(confirmation(1), "transfer", BEN_ARGUMENTS), Some(acceptance)),
        receipt(&confirmation(1), Some(modified)),
        receipt(&confirmation(1), None),
        receipt(&harmless_confirmation(1), None),
        receipt(&clarification(1), None),
        receipt(&any_kind, response_message(json!(1e-7))),
        receipt(&any_kind, response_message(json!(true))),
        receipt(&any_kind, response_message(json!("To Ben."))),
        receipt(&confirmation(1), Some(stop_request("ada", T0 + 1000))),
    ]
}

#[test]
fn a_receipt_contains_the_question_the_action_the_answer_and_the_person() {
    let receipt = &all_receipts()[0];
    let value: Value = serde_json::from_str(receipt.to_json()).unwrap();
    assert_eq!(
        value,
        json!({
            "type": "sayso:receipt", "reply_token": token(1).as_str(), "session_id": SESSION, "agent_id": "bank",
            "event_id": "evt_8a3f5b22c91e4d01", "by": "reply", "decision": "accept",
            "action_digest": BoundAction::new("transfer", BEN_ARGUMENTS).unwrap().digest().to_string(),
            "asked_at": "2026-05-24T14:22:11.000Z", "deadline": "2026-05-24T14:25:11.000Z",
            "replied_at": "2026-05-24T14:22:12.000Z", "resolved_at": "2026-05-24T14:22:13.000Z",
            "expires_at": "2026-05-24T14:32:13.000Z",
            "subscription_id": "sub_ada", "principal": "ada", "decided_by": "Ada \u{e9} \"A\"\n",
        })
    );
}

#[test]
fn a_receipt_is_canonical_and_round_trips() {
    for receipt in all_receipts() {
        let text = receipt.to_json();
        let mut tape = Tape::default();
        assert_eq!(canonicalize(&tape.read(text).unwrap().root()).unwrap(), text);
        assert_eq!(receipt.digest(), Digest::of(text.as_bytes()));
        let parsed = Receipt::parse(text).expect(text);
        assert_eq!(parsed, receipt);
        assert_eq!(parsed.resolution().receipt(), receipt);
    }
}

#[test]
fn a_changed_receipt_is_invalid_or_has_a_different_digest() {
    let text = all_receipts()[0].to_json().to_owned();
    for (from, to) in [
        ("{", "{ "),
        ("{", "[{"),
        ("sayso:receipt", "sayso:recept"),
        ("\"by\":", "\"and\":1,\"by\":"),
        ("\"by\":\"reply\"", "\"by\":\"magic\""),
        ("sha256:", "sha256:0"),
        ("\"principal\":\"ada\"", "\"principal\":7"),
        ("rpl_", "rpl-"),
    ] {
        assert_eq!(Receipt::parse(&text.replacen(from, to, 1)), None, "{from} -> {to}");
    }
    let altered = Receipt::parse(&text.replace("\"accept\"", "\"reject\"")).unwrap();
    assert_ne!(altered.digest(), all_receipts()[0].digest());
}

#[test]
fn the_receipt_for_the_agent_names_no_subscription() {
    for receipt in all_receipts() {
        let for_agent = receipt.clone().without_subscription();
        let mut expected: Value = serde_json::from_str(receipt.to_json()).unwrap();
        expected.as_object_mut().unwrap().remove("subscription_id");
        assert_eq!(for_agent.to_json(), expected.to_string());
        assert_eq!(for_agent.resolution().subscription_id, None);
    }
}

#[test]
fn only_a_persons_yes_has_an_expiry() {
    let [accepted, others @ ..] = &all_receipts()[..] else { panic!("no receipts") };
    let resolution = accepted.resolution();
    assert_eq!(resolution.expires_at.unwrap().millis_since(resolution.resolved_at), MAX_CONSENT_AGE_MS);
    for receipt in others {
        assert_eq!(receipt.resolution().expires_at, None, "{}", receipt.to_json());
    }
}

#[test]
fn a_receipt_without_an_expiry_from_an_earlier_version_is_still_read() {
    let text = all_receipts()[0].to_json().replace(r#""expires_at":"2026-05-24T14:32:13.000Z","#, "");
    assert_eq!(Receipt::parse(&text).unwrap().resolution().expires_at, None);
}

#[test]
fn a_receipt_can_be_signed() {
    let key = ed25519::SigningKey::generate(&mut |bytes: &mut [u8]| bytes.fill(7));
    let receipt = &all_receipts()[0];
    let signature = key.sign(receipt.to_json().as_bytes());
    assert!(key.verifying_key().verify(receipt.to_json().as_bytes(), &signature));
    assert!(!key.verifying_key().verify(all_receipts()[1].to_json().as_bytes(), &signature));
}
