//! The test signer is a second implementation of D13 to D16. These tests show that it agrees with the crate's own
//! implementation.

use asp::Performative;
use asp::message::{Content, ExtraMembers, MessageDraft, TrustScore};
use asp::state_machine::State;
use asp::{AgentUri, MessageId, SessionId};
use seal::json::RawJson;
use seal::{AgentKeys, Digest, Random, base64url, es256};

use crate::support::bodies::{body, full_body};
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, B, HarnessOutcome, RecordHarness, START, time};
use crate::support::test_agents::{BUYER, CountingRandom, SELLER, keys};
use crate::support::test_signer::{SigningOverrides, sign_envelope, sign_with};

#[test]
fn messages_of_the_test_signer_are_accepted() {
    let harness = RecordHarness::at(State::Executing);
    assert_eq!(harness.record.transcript().len(), 8);
    for performative in Performative::ALL {
        let mut harness = RecordHarness::at(State::Conversing);
        let body = full_body(performative).replace("prop_0", "prop_a");
        let envelope = harness.envelope(B, performative.as_str(), &body);
        harness.assert_accepted(B, &envelope);
    }
}

/// Both use deterministic signatures (RFC 6979), so even the proofs are equal.
#[test]
fn the_test_signer_and_the_crate_sign_identically() {
    let keys = AgentKeys { dpop: es256::SigningKey::deterministic(&[9; 32]).unwrap(), ..keys(1) };
    for (number, performative) in Performative::ALL.into_iter().enumerate() {
        let mut other = ExtraMembers::default();
        other.set("x-é", RawJson::parse(r#"{"b":[1.50,1E2,-0],"a":"\u00e9\n\/"}"#).unwrap());
        let draft = MessageDraft {
            message_id: MessageId::generate(START, &mut CountingRandom(number as u64)),
            session_id: SessionId::generate(START, &mut CountingRandom(99)),
            sequence_number: 7,
            timestamp: time(START + 1),
            sender: BUYER.agent().clone(),
            org_id: "org \"quoted\"".to_owned(),
            trust_score: TrustScore::new(12.5).unwrap(),
            recipient: AgentUri::parse(SELLER.agent().as_str()).unwrap(),
            body: body(performative, full_body(performative)),
            content: Content::default(),
            constraints: None,
            previous_hash: Digest::of(b"before"),
            other,
        };
        let mut random = CountingRandom(5);
        let by_crate = draft.sign(&keys, &mut random).unwrap();
        let mut jti = [0; 16];
        CountingRandom(5).fill(&mut jti);
        let overrides =
            SigningOverrides { jti: Some(base64url::encode(&jti)), ..SigningOverrides::default() };
        let unsigned = EditableJson::parse(&by_crate.text)
            .with_text("sender/dpopProof", "")
            .with_text("integrity/hash", "")
            .with_text("integrity/signature", "");
        let by_test_signer = sign_with(&unsigned, &keys, &overrides);
        assert_eq!(by_test_signer.hash, by_crate.hash, "{performative}");
        let signed_members = |text: &str| {
            let json = EditableJson::parse(text);
            ["sender/dpopProof", "integrity/hash", "integrity/signature"].map(|path| json.string(path))
        };
        assert_eq!(signed_members(&by_test_signer.text), signed_members(&by_crate.text), "{performative}");
        assert_eq!(by_test_signer.jti, by_crate.jti);
    }
}

#[test]
fn json_formatting_affects_neither_hash_nor_proof() {
    let mut harness = RecordHarness::at(State::Introduced);
    let signed = harness.sign_next(A, &crate::support::bodies::query("qry_1"));
    let json = EditableJson::parse(&signed.text);
    let EditableJson::Object(mut members) = json else { panic!("the message is not an object") };
    members.reverse();
    let text = EditableJson::Object(members).write().replace(":{", " : \n{").replace("menus", "\\u006denus");
    assert_ne!(text, signed.text);
    assert_eq!(harness.receive(&text), HarnessOutcome::Accepted);
    assert_eq!(harness.record.transcript().head(), signed.hash);
    assert_eq!(
        harness.record.transcript().messages().last(),
        Some(&*text),
        "the received bytes are unchanged"
    );
}

#[test]
fn the_test_signer_can_sign_incorrectly() {
    let mut harness = RecordHarness::at(State::Introduced);
    let envelope = harness.next(A, &crate::support::bodies::query("qry_1"));
    let correct = sign_envelope(&envelope, &BUYER.keys);
    let overrides = SigningOverrides { hash: Some(Digest::ZERO.to_string()), ..SigningOverrides::default() };
    let incorrect = sign_with(&envelope, &BUYER.keys, &overrides);
    assert_ne!(correct.text, incorrect.text);
}
