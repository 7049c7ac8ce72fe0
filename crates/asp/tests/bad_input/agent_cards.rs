//! Cards that do not verify, and valid cards that are not the pinned one (D17).

use asp::state_machine::State;
use asp::{AgentCard, AgentCardError, ConformanceLevel, RejectCode};
use seal::jws::{self, JwsError, JwsHeader, JwsSigner};
use seal::{AgentKeys, Digest, Jwk, JwkError, base64url};

use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, B, RecordHarness};
use crate::support::test_agents::{BUYER, SELLER, keys, profile};

fn card() -> EditableJson {
    EditableJson::parse(BUYER.card.as_str())
}

/// Replaces the signature of a card with one made with these keys.
fn sign_card(card: EditableJson, keys: &AgentKeys) -> String {
    let unsigned = card.without("signature");
    let text = unsigned.write();
    let mut tape = seal::json::Tape::default();
    let doc = tape.read(&text).unwrap();
    let canonical = seal::canonicalize(&doc.root()).unwrap();
    let signature =
        jws::sign_detached(JwsSigner::Ed25519(&keys.signing), &JwsHeader::default(), canonical.as_bytes());
    unsigned.with_text("signature", &signature.unwrap()).write()
}

fn card_error(text: &str) -> AgentCardError {
    AgentCard::parse(text).map(|_| ()).unwrap_err()
}

#[test]
fn a_card_with_any_changed_member_does_not_verify() {
    let EditableJson::Object(members) = card() else { panic!("the card is not an object") };
    assert!(members.len() >= 9);
    for (name, value) in &members {
        if name == "signature" {
            continue;
        }
        let changed_value = match value {
            EditableJson::Leaf(text) if name == "conformanceLevel" => text.replace("standard", "full"),
            EditableJson::Leaf(text) => format!("{}x\"", text.trim_end_matches('"')),
            EditableJson::Array(_) => "[]".to_owned(),
            EditableJson::Object(_) if name == "signingPublicKey" => {
                Jwk::Ed25519(SELLER.keys.signing.verifying_key()).to_json()
            }
            EditableJson::Object(_) => Jwk::P256(SELLER.keys.dpop.verifying_key().clone()).to_json(),
        };
        let changed = card().with(name, &changed_value).write();
        assert_eq!(
            card_error(&changed),
            AgentCardError::InvalidSignature(JwsError::InvalidSignature),
            "{name}"
        );
        let error = card_error(&card().without(name).write());
        assert!(
            matches!(error, AgentCardError::InvalidSignature(_) | AgentCardError::InvalidMember(_)),
            "without {name}: {error}"
        );
    }
    let added = card().with("extra", "1").write();
    assert_eq!(card_error(&added), AgentCardError::InvalidSignature(JwsError::InvalidSignature));
    assert_eq!(card_error(&card().without("signature").write()), AgentCardError::InvalidMember("signature"));
}

#[test]
fn a_card_must_be_signed_with_its_own_key() {
    assert_eq!(
        card_error(&sign_card(card(), &SELLER.keys)),
        AgentCardError::InvalidSignature(JwsError::InvalidSignature)
    );
    assert!(AgentCard::parse(&sign_card(card(), &BUYER.keys)).is_ok());
    // A signature with an algorithm that does not match the key is invalid.
    for alg in ["none", "HS256", "ES256"] {
        let header = base64url::encode(format!(r#"{{"alg":"{alg}"}}"#).as_bytes());
        for signature in ["", "AAAA"] {
            let text = card().with_text("signature", &format!("{header}..{signature}")).write();
            assert_eq!(
                card_error(&text),
                AgentCardError::InvalidSignature(JwsError::WrongAlgorithm(alg.to_owned()))
            );
        }
    }
    for signature in ["", "x", "a.b.c", ".."] {
        let text = card().with_text("signature", signature).write();
        assert!(matches!(card_error(&text), AgentCardError::InvalidSignature(_)), "{signature}");
    }
}

#[test]
fn invalid_members_are_refused() {
    for (name, values) in [
        ("agentId", ["null", "1", "[]", "\"\"", "\"https://a.example\""].as_slice()),
        ("conformanceLevel", &["null", "1", "\"\"", "\"Standard\"", "\"expert\""]),
        ("signingPublicKey", &["null", "\"x\"", "{}", "[]"]),
        ("dpopPublicKey", &["null", "\"x\"", "{}", "[]"]),
        ("signature", &["null", "1", "{}"]),
    ] {
        for value in values {
            let card = card().with(name, value);
            // The changed card is signed again, so the error is not an invalid signature.
            let text = if name == "signature" { card.write() } else { sign_card(card, &BUYER.keys) };
            assert!(!matches!(card_error(&text), AgentCardError::InvalidSignature(_)), "{name} = {value}");
        }
        let text = sign_card(card().without(name), &BUYER.keys);
        let text = if name == "signature" { EditableJson::parse(&text).without(name).write() } else { text };
        assert_eq!(card_error(&text), AgentCardError::InvalidMember(name));
    }
    for text in ["", "[]", "null", "\"x\"", "{", "{}x"] {
        assert_eq!(card_error(text), AgentCardError::NotAnObject, "{text}");
    }
    assert!(matches!(
        card_error(&card().write().replacen('{', "{\"name\":\"x\",", 1)),
        AgentCardError::NotCanonical(_)
    ));
}

#[test]
fn keys_of_the_wrong_type_are_refused() {
    let ed = Jwk::Ed25519(BUYER.keys.signing.verifying_key()).to_json();
    let p256 = Jwk::P256(BUYER.keys.dpop.verifying_key().clone()).to_json();
    let swapped = sign_card(card().with("dpopPublicKey", &ed), &BUYER.keys);
    assert_eq!(card_error(&swapped), AgentCardError::InvalidKey("dpopPublicKey", JwkError::UnsupportedType));
    let swapped = sign_card(card().with("signingPublicKey", &p256), &BUYER.keys);
    assert_eq!(
        card_error(&swapped),
        AgentCardError::InvalidKey("signingPublicKey", JwkError::UnsupportedType)
    );
    let rsa = r#"{"kty":"RSA","crv":"x","n":"AQAB","e":"AQAB"}"#;
    assert_eq!(
        card_error(&sign_card(card().with("dpopPublicKey", rsa), &BUYER.keys)),
        AgentCardError::InvalidKey("dpopPublicKey", JwkError::UnsupportedType)
    );
}

/// With a key of small order, anyone can create a valid signature.
#[test]
fn weak_keys_are_refused() {
    let mut order_one = [0; 32];
    order_one[0] = 1;
    let mut order_two = [0xFF; 32];
    (order_two[0], order_two[31]) = (0xEC, 0x7F);
    for bytes in [[0; 32], order_one, order_two] {
        let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, base64url::encode(&bytes));
        let text = sign_card(card().with("signingPublicKey", &jwk), &BUYER.keys);
        assert_eq!(
            card_error(&text),
            AgentCardError::InvalidKey("signingPublicKey", JwkError::InvalidPoint),
            "{bytes:?}"
        );
    }
    let zero = base64url::encode(&[0; 32]);
    let jwk = format!(r#"{{"crv":"P-256","kty":"EC","x":"{zero}","y":"{zero}"}}"#);
    let text = sign_card(card().with("dpopPublicKey", &jwk), &BUYER.keys);
    assert_eq!(card_error(&text), AgentCardError::InvalidKey("dpopPublicKey", JwkError::InvalidPoint));
}

#[test]
fn a_card_with_a_secret_key_is_refused() {
    for name in ["dpopPublicKey", "signingPublicKey"] {
        for secret in ["\"AAAA\"", "\"\"", "null"] {
            let text = sign_card(card().with(&format!("{name}/d"), secret), &BUYER.keys);
            assert_eq!(card_error(&text), AgentCardError::InvalidKey(name, JwkError::ContainsSecret));
        }
    }
}

#[test]
fn a_card_that_is_too_long_is_refused() {
    let unpadded_length = sign_card(card().with("pad", "\"\""), &BUYER.keys).len();
    let padded =
        |bytes: usize| sign_card(card().with_text("pad", &"p".repeat(bytes - unpadded_length)), &BUYER.keys);
    assert!(AgentCard::parse(&padded(AgentCard::MAX_BYTES)).is_ok());
    assert_eq!(card_error(&padded(AgentCard::MAX_BYTES + 1)), AgentCardError::TooLong);
}

fn identity(card: &str) -> String {
    format!(r#"{{"informType":"identity","card":{card}}}"#)
}

/// Returns a session whose invitation was accepted.
fn session_with_accepted_invitation() -> RecordHarness {
    let mut harness = RecordHarness::at(State::Invited);
    harness.send(B, &crate::support::bodies::accept("prop_inv"));
    harness
}

/// A validly signed card that is not the pinned one is refused.
#[test]
fn a_card_in_a_message_must_be_the_pinned_one() {
    let renamed = asp::AgentProfile { name: "Another".to_owned(), ..profile(BUYER.agent().as_str()) };
    let promoted = asp::AgentProfile { level: ConformanceLevel::Full, ..profile(BUYER.agent().as_str()) };
    let other_cards = [
        AgentCard::sign(&renamed, &BUYER.keys).unwrap().as_str().to_owned(),
        AgentCard::sign(&promoted, &BUYER.keys).unwrap().as_str().to_owned(),
        AgentCard::sign(&profile(BUYER.agent().as_str()), &keys(50)).unwrap().as_str().to_owned(),
        SELLER.card.as_str().to_owned(),
        sign_card(card().with("extra", "1"), &BUYER.keys),
        card().without("signature").write(),
        "{}".to_owned(),
    ];
    let mut harness = session_with_accepted_invitation();
    for card in &other_cards {
        let envelope = harness.envelope(A, "INFORM", &identity(card));
        harness.assert_refused(A, &envelope, RejectCode::Unauthorized);
    }
    // The pinned card is accepted with different JSON formatting.
    let EditableJson::Object(mut members) = card() else { panic!("the card is not an object") };
    members.reverse();
    let reformatted =
        EditableJson::Object(members).write().replace(":{", ": {\n").replace("Does", "\\u0044oes");
    assert_ne!(Digest::of(reformatted.as_bytes()), Digest::of(BUYER.card.as_str().as_bytes()));
    let envelope = harness.envelope(A, "INFORM", &identity(&reformatted));
    harness.assert_accepted(A, &envelope);
}

/// The card is also checked later in the session, when INFORM(identity) has no other effect.
#[test]
fn a_card_in_a_later_identity_must_be_the_pinned_one() {
    for state in [State::Introduced, State::Conversing] {
        let mut harness = RecordHarness::at(state);
        let envelope = harness.envelope(A, "INFORM", &identity(SELLER.card.as_str()));
        harness.assert_refused(A, &envelope, RejectCode::Unauthorized);
        let envelope = harness.envelope(A, "INFORM", &identity(BUYER.card.as_str()));
        harness.assert_accepted(A, &envelope);
    }
}

#[test]
fn an_identity_is_accepted_once_and_only_after_the_invitation_was_accepted() {
    let mut harness = RecordHarness::at(State::Invited);
    for sender in [A, B] {
        let envelope = harness.envelope(sender, "INFORM", r#"{"informType":"identity"}"#);
        harness.assert_refused(sender, &envelope, RejectCode::InvalidStateTransition);
    }
    let mut harness = session_with_accepted_invitation();
    harness.send(A, &crate::support::bodies::inform("identity"));
    let envelope = harness.envelope(A, "INFORM", &identity(BUYER.card.as_str()));
    harness.assert_refused(A, &envelope, RejectCode::Duplicate);
}
