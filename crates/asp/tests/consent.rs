//! A person's consent in COMMIT and ACCEPT (D24).

use asp::consent::{self, ConsentError};
use asp::message::{Body, Commit, Consent};
use asp::{Performative, SessionId};
use seal::json::RawJson;
use seal::jws::{self, JwsError, JwsHeader, JwsSigner};
use seal::{CanonicalError, UnixMillis, es256};

use crate::support::bodies::{accept, body, close, commit, propose};
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, RecordHarness};

const SESSION: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn session() -> SessionId {
    SessionId::parse(SESSION).unwrap()
}

fn hub_key(seed: u8) -> es256::SigningKey {
    es256::SigningKey::from_secret(&[seed; 32]).unwrap()
}

/// A COMMIT without a consent.
fn plain_commit() -> Commit {
    let text = r#"{"commitmentId":"cmt_1","terms":{"obligations":[
        {"party":"agent://b.example/seller","action":"print","deadline":"2026-01-05T00:00:00.50Z"}]},
        "escrow":{"amount":"10.50","currency":"USD"},"x-note":{"b":1.50,"a":"\u00e9"}}"#;
    match body(Performative::Commit, text) {
        Body::Commit(commit) => commit,
        other => panic!("{other:?}"),
    }
}

fn receipt(digest: &str) -> EditableJson {
    EditableJson::parse(&format!(
        r#"{{"action_digest":"{digest}","agent_id":"buyer","asked_at":"2026-01-02T03:00:00.000Z",
        "by":"reply","deadline":"2026-01-02T03:10:00.000Z","decided_by":"Marisol","decision":"accept",
        "event_id":"evt_1","expires_at":"2026-01-02T03:06:00.000Z","principal":"phone",
        "reply_token":"rpl_0123456789abcdef0123456789abcdef",
        "resolved_at":"2026-01-02T03:01:00.000Z","session_id":"s","type":"sayso:receipt"}}"#
    ))
}

fn sign(receipt: &EditableJson, key: &es256::SigningKey) -> Consent {
    let text = receipt.write();
    let mut tape = seal::json::Tape::default();
    let canonical = seal::canonicalize(&tape.read(&text).unwrap().root()).unwrap();
    let header = JwsHeader { kid: Some("hub"), ..JwsHeader::default() };
    let signature = jws::sign_detached(JwsSigner::P256(key), &header, canonical.as_bytes()).unwrap();
    Consent::new(RawJson::parse(&text).unwrap(), signature)
}

/// Adds a consent to a message, as a node does after a person said yes.
fn agreed(body: Body, commitment: Option<&Commit>) -> Body {
    let digest = consent::action_digest(session(), &body, commitment).unwrap();
    consent::attach(body, sign(&receipt(&digest.to_string()), &hub_key(1)))
}

fn verify(body: &Body, commitment: Option<&Commit>) -> Result<consent::VerifiedConsent, ConsentError> {
    consent::verify(session(), body, commitment, hub_key(1).verifying_key())
}

#[test]
fn the_arguments_are_the_exact_body_in_canonical_form() {
    let commit = plain_commit();
    let commit_json = r#"{"commitmentId":"cmt_1","escrow":{"amount":"10.50","currency":"USD"},"terms":{"obligations":[{"action":"print","deadline":"2026-01-05T00:00:00.50Z","party":"agent://b.example/seller"}]},"x-note":{"a":"é","b":1.5}}"#;
    assert_eq!(
        consent::arguments(session(), &commit.clone().into(), None).unwrap(),
        format!(r#"{{"body":{commit_json},"sessionId":"{SESSION}"}}"#)
    );
    let acceptance = body(Performative::Accept, r#"{"referenceId":"cmt_1","note":"gladly"}"#);
    let arguments = consent::arguments(session(), &acceptance, Some(&commit)).unwrap();
    assert_eq!(
        arguments,
        format!(
            r#"{{"body":{{"note":"gladly","referenceId":"cmt_1"}},"commitment":{commit_json},"sessionId":"{SESSION}"}}"#
        )
    );
    assert_eq!(
        consent::action_digest(session(), &acceptance, Some(&commit)),
        Ok(seal::action_digest("asp.accept", &arguments).unwrap())
    );
    // The consents themselves are not part of what the person agrees to.
    let Body::Commit(agreed_commit) = agreed(commit.clone().into(), None) else { panic!("not a COMMIT") };
    let agreed_acceptance = agreed(acceptance, Some(&commit));
    assert_eq!(consent::arguments(session(), &agreed_acceptance, Some(&agreed_commit)).unwrap(), arguments);
}

#[test]
fn a_consent_is_verified_with_the_hubs_key() {
    let message = agreed(plain_commit().into(), None);
    let verified = verify(&message, None).unwrap();
    assert_eq!(verified.commitment.as_str(), "cmt_1");
    assert_eq!(verified.resolved_at.to_string(), "2026-01-02T03:01:00.000Z");
    assert_eq!(verified.decided_by.as_deref(), Some("Marisol"));
    // The message is still valid after it was written and read.
    let read_again = body(Performative::Commit, &message.to_json());
    assert_eq!(verify(&read_again, None), Ok(verified));

    let acceptance = agreed(accept("cmt_1"), Some(&plain_commit()));
    assert_eq!(verify(&acceptance, Some(&plain_commit())).unwrap().commitment.as_str(), "cmt_1");

    let other_hub = consent::verify(session(), &message, None, hub_key(2).verifying_key());
    assert_eq!(other_hub, Err(ConsentError::InvalidSignature(JwsError::InvalidSignature)));
    assert_eq!(verify(&plain_commit().into(), None), Err(ConsentError::Missing));
    assert_eq!(verify(&accept("cmt_1"), Some(&plain_commit())), Err(ConsentError::Missing));
}

/// A consent to one message cannot be used for another.
#[test]
fn a_consent_covers_exactly_one_message() {
    let message = agreed(plain_commit().into(), None);
    let other_session = SessionId::parse("01890a5d-ac96-774b-bcce-b302099a8058").unwrap();
    let moved = consent::verify(other_session, &message, None, hub_key(1).verifying_key());
    assert_eq!(moved, Err(ConsentError::OtherAction));

    let json = EditableJson::parse(&message.to_json());
    for (path, value) in [
        ("commitmentId", "\"cmt_2\""),
        ("terms/obligations/0/action", "\"print twice\""),
        ("terms/obligations/0/party", "\"agent://a.example/buyer\""),
        ("terms/obligations/0/deadline", "\"2026-01-05T00:00:00.5Z\""),
        ("escrow/amount", "\"10.5\""),
        ("escrow/currency", "\"EUR\""),
        ("deadline", "\"2026-01-05T00:00:00Z\""),
        ("x-note/a", "\"e\""),
        ("x-new", "1"),
    ] {
        let changed = body(Performative::Commit, &json.clone().with(path, value).write());
        assert_eq!(verify(&changed, None), Err(ConsentError::OtherAction), "{path}");
    }

    let acceptance = agreed(accept("cmt_1"), Some(&plain_commit()));
    let mut other_terms = plain_commit();
    other_terms.escrow = None;
    assert_eq!(verify(&acceptance, Some(&other_terms)), Err(ConsentError::OtherAction));
    // Consent to sending a COMMIT is not consent to accepting it.
    let consent = consent::read(&message).unwrap().clone();
    let reused = consent::attach(accept("cmt_1"), consent);
    assert_eq!(verify(&reused, Some(&plain_commit())), Err(ConsentError::OtherAction));
    // The accepted commitment must be the one that the ACCEPT names.
    let other_reference = consent::attach(accept("cmt_9"), consent::read(&acceptance).unwrap().clone());
    assert_eq!(verify(&other_reference, Some(&plain_commit())), Err(ConsentError::NotApplicable));
    assert_eq!(verify(&acceptance, None), Err(ConsentError::NotApplicable));
    for other in [close("enough"), propose("prop_1"), accept("prop_1")] {
        assert_eq!(consent::tool(&other), None);
        assert_eq!(verify(&other, None), Err(ConsentError::NotApplicable));
    }
}

#[test]
fn only_a_persons_yes_counts() {
    let digest = consent::action_digest(session(), &plain_commit().into(), None).unwrap().to_string();
    let check = |receipt: &EditableJson| {
        let consent = sign(receipt, &hub_key(1));
        verify(&consent::attach(plain_commit().into(), consent), None)
    };
    assert!(check(&receipt(&digest)).is_ok());
    for (name, values) in [
        ("decision", ["\"reject\"", "\"defer\"", "null", "true"].as_slice()),
        ("by", &["\"timeout\"", "\"closure\"", "\"unreachable\"", "\"cancelled\"", "\"stopped\"", "null"]),
        ("type", &["\"aaep:receipt\"", "1"]),
        ("modified", &["true", "1", "null"]),
        ("action_digest", &["null", "\"sha256:00\""]),
        ("resolved_at", &["null", "\"yesterday\""]),
        ("expires_at", &["null", "\"never\""]),
        ("agent_id", &["null"]),
    ] {
        for value in values {
            let result = check(&receipt(&digest).with(name, value));
            assert_eq!(result, Err(ConsentError::InvalidReceipt(name)), "{name} = {value}");
        }
        if !["modified", "expires_at"].contains(&name) {
            let result = check(&receipt(&digest).without(name));
            assert_eq!(result, Err(ConsentError::InvalidReceipt(name)), "without {name}");
        }
    }
    for name in ["modified", "expires_at", "decided_by", "principal"] {
        assert!(check(&receipt(&digest).without(name)).is_ok(), "{name}");
    }
}

#[test]
fn a_changed_receipt_does_not_verify() {
    let message = agreed(plain_commit().into(), None);
    let consent = consent::read(&message).unwrap();
    let invalid = Err(ConsentError::InvalidSignature(JwsError::InvalidSignature));
    let with_receipt = |text: &str| {
        let changed = Consent::new(RawJson::parse(text).unwrap(), consent.signature.clone());
        verify(&consent::attach(plain_commit().into(), changed), None)
    };
    let original = EditableJson::parse(consent.receipt.as_str());
    assert!(
        with_receipt(&original.write().replace("\":", "\" : ")).is_ok(),
        "only the canonical form is signed"
    );
    assert_eq!(with_receipt(&original.clone().with_text("decided_by", "Ben").write()), invalid);
    assert_eq!(with_receipt(&original.clone().without("decided_by").write()), invalid);
    assert_eq!(with_receipt(&original.clone().with("extra", "1").write()), invalid);
    assert_eq!(
        with_receipt(r#"{"by":"reply","by":"reply"}"#),
        Err(ConsentError::NonCanonicalReceipt(CanonicalError::DuplicateKey("by".to_owned())))
    );
    for signature in ["", "..", "a.b.c", "eyJhbGciOiJub25lIn0..", &consent.signature[1..]] {
        let changed = Consent::new(consent.receipt.clone(), signature);
        let result = verify(&consent::attach(plain_commit().into(), changed), None);
        assert!(matches!(result, Err(ConsentError::InvalidSignature(_))), "{signature}: {result:?}");
    }
}

#[test]
fn a_body_without_an_exact_form_cannot_be_agreed_to() {
    let text = plain_commit_json().replace("1.50", "9007199254740993.0");
    let result = consent::arguments(session(), &body(Performative::Commit, &text), None);
    assert!(matches!(result, Err(ConsentError::InvalidAction(_))), "{result:?}");
}

fn plain_commit_json() -> String {
    Body::from(plain_commit()).to_json()
}

/// The message must be sent between the answer and the end of its validity, with a tolerance of 300 s.
#[test]
fn a_consent_covers_only_messages_sent_in_time() {
    let mut harness = RecordHarness::at(asp::state_machine::State::Conversing);
    let session_id = harness.record.session_id();
    let plain = Body::from(plain_commit());
    let digest = consent::action_digest(session_id, &plain, None).unwrap().to_string();
    let message = consent::attach(plain, sign(&receipt(&digest), &hub_key(1)));
    let keys = [hub_key(2), hub_key(1)].map(|key| key.verifying_key().clone());
    let answered_at = 1_767_322_860_000;
    for (sent_at, expected) in [
        (answered_at - 300_001, Err(ConsentError::NotInTime)),
        (answered_at - 300_000, Ok(())),
        (answered_at, Ok(())),
        (answered_at + 600_000, Ok(())),
        (answered_at + 600_001, Err(ConsentError::NotInTime)),
    ] {
        harness.now = UnixMillis::new(sent_at);
        let text = harness.sign_next(A, &message).text;
        let authenticated = harness.authenticate(&text).unwrap();
        let result = consent::verify_message(&authenticated.envelope, None, &keys).map(|_| ());
        assert_eq!(result, expected, "{sent_at}");
        let no_keys = consent::verify_message(&authenticated.envelope, None, &[]);
        assert!(matches!(no_keys, Err(ConsentError::InvalidSignature(_))));
    }
    // A session accepts messages with and without a consent; whether one is required is a policy of the receiver.
    harness.now = UnixMillis::new(answered_at);
    harness.send(A, &commit("cmt_2"));
}
