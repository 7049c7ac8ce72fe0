//! Hashes, signatures and DPoP proofs that belong to another message, key or algorithm.

use asp::state_machine::State;
use asp::{AuthenticationError, RejectCode, SessionId};
use seal::dpop::DpopError;
use seal::jws::{JwsError, JwsHeader, JwsSigner, sign};
use seal::{Digest, Jwk, base64url};

use crate::support::bodies::{observe, query};
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, B, HarnessOutcome, RecordHarness, START};
use crate::support::test_agents::{BUYER, CountingRandom, SELLER, STRANGER};
use crate::support::test_signer::{SigningOverrides, sign_envelope, sign_with};

/// Receives a message from the buyer that was signed with these overrides.
fn receive_with_overrides(overrides: &SigningOverrides) -> HarnessOutcome {
    let mut harness = RecordHarness::at(State::Conversing);
    let envelope = harness.next(A, &query("qry_1"));
    let outcome = harness.receive(&sign_with(&envelope, &BUYER.keys, overrides).text);
    if outcome != HarnessOutcome::Accepted {
        assert_eq!(harness.state(), State::Conversing);
        // The same message without the overrides is accepted, so the overrides were the cause.
        harness.assert_accepted(A, &envelope);
    }
    outcome
}

fn invalid_proof(error: DpopError) -> HarnessOutcome {
    HarnessOutcome::Dropped(AuthenticationError::InvalidProof(error))
}

#[test]
fn a_hash_of_another_message_is_dropped() {
    let mut harness = RecordHarness::at(State::Conversing);
    let first = harness.sign_next(A, &query("qry_1"));
    let second = harness.sign_next(A, &query("qry_2"));
    for (hash, expected) in [
        (first.hash.to_string(), AuthenticationError::HashMismatch),
        (Digest::ZERO.to_string(), AuthenticationError::HashMismatch),
        (second.hash.to_string().to_uppercase(), AuthenticationError::HashMismatch),
        (second.hash.to_string().replace("sha256:", ""), AuthenticationError::HashMismatch),
        (second.hash.to_string().replace("sha256:", "sha512:"), AuthenticationError::HashMismatch),
        (format!("{} ", second.hash), AuthenticationError::HashMismatch),
        (String::new(), AuthenticationError::HashMismatch),
    ] {
        assert_eq!(
            receive_with_overrides(&SigningOverrides { hash: Some(hash), ..SigningOverrides::default() }),
            HarnessOutcome::Dropped(expected)
        );
    }
    // Combine the integrity and sender of the first message with the body of the second.
    let first_json = EditableJson::parse(&first.text);
    let mut combined = EditableJson::parse(&second.text);
    for path in ["integrity", "sender"] {
        combined.set(path, first_json.get(path).unwrap().clone());
    }
    assert_eq!(
        harness.receive(&combined.write()),
        HarnessOutcome::Dropped(AuthenticationError::HashMismatch)
    );
}

#[test]
fn a_signature_by_another_key_or_of_another_text_is_dropped() {
    let mut harness = RecordHarness::at(State::Conversing);
    let envelope = harness.next(A, &query("qry_1"));
    let valid = sign_envelope(&envelope, &BUYER.keys);
    for keys in [&SELLER.keys, &STRANGER.keys] {
        let signature = keys.signing.sign(valid.hash.to_string().as_bytes()).to_string();
        let text = EditableJson::parse(&valid.text).with_text("integrity/signature", &signature).write();
        assert_eq!(harness.receive(&text), HarnessOutcome::Dropped(AuthenticationError::InvalidSignature));
    }
    // D14: the signature is over the text of the hash, not over its bytes or the message.
    for signed in [valid.hash.as_bytes().as_slice(), valid.text.as_bytes(), b""] {
        let signature = BUYER.keys.signing.sign(signed).to_string();
        let text = EditableJson::parse(&valid.text).with_text("integrity/signature", &signature).write();
        assert_eq!(harness.receive(&text), HarnessOutcome::Dropped(AuthenticationError::InvalidSignature));
    }
    let signature_text = EditableJson::parse(&valid.text).string("integrity/signature");
    for malformed in [
        signature_text.to_uppercase(),
        signature_text.replace("ed25519:", ""),
        signature_text.replace("ed25519:", "ed448:"),
        signature_text[..signature_text.len() - 2].to_owned(),
        format!("{signature_text}00"),
        String::new(),
    ] {
        let text = EditableJson::parse(&valid.text).with_text("integrity/signature", &malformed).write();
        assert_eq!(
            harness.receive(&text),
            HarnessOutcome::Dropped(AuthenticationError::InvalidMember("integrity.signature")),
            "{malformed}"
        );
    }
    assert_eq!(harness.receive(&valid.text), HarnessOutcome::Accepted);
}

/// Changes one digit of the signature at a time, at many positions.
#[test]
fn a_signature_with_one_changed_digit_is_dropped() {
    let mut harness = RecordHarness::at(State::Conversing);
    let valid = harness.sign_next(A, &query("qry_1"));
    let signature_text = EditableJson::parse(&valid.text).string("integrity/signature");
    for position in (0..128).step_by(5) {
        let mut digits = signature_text.clone().into_bytes();
        let digit = &mut digits["ed25519:".len() + position];
        *digit = if *digit == b'0' { b'1' } else { b'0' };
        let changed = String::from_utf8(digits).unwrap();
        let text = valid.text.replace(&signature_text, &changed);
        assert_eq!(
            harness.receive(&text),
            HarnessOutcome::Dropped(AuthenticationError::InvalidSignature),
            "{position}"
        );
    }
}

#[test]
fn a_proof_must_match_the_performative_session_and_message() {
    let invalid_claim = |name| invalid_proof(DpopError::InvalidClaim(name));
    let other = SessionId::generate(START, &mut CountingRandom(9));
    for htm in ["ACCEPT", "query", "POST", ""] {
        assert_eq!(
            receive_with_overrides(&SigningOverrides {
                htm: Some(htm.to_owned()),
                ..SigningOverrides::default()
            }),
            invalid_claim("htm"),
            "{htm}"
        );
    }
    for htu in [format!("asp:{other}"), other.to_string(), "asp:".to_owned(), String::new()] {
        assert_eq!(
            receive_with_overrides(&SigningOverrides { htu: Some(htu), ..SigningOverrides::default() }),
            invalid_claim("htu")
        );
    }
    for mh in [Digest::ZERO, Digest::of(b"another")] {
        assert_eq!(
            receive_with_overrides(&SigningOverrides { mh: Some(mh), ..SigningOverrides::default() }),
            invalid_claim("mh")
        );
    }
    assert_eq!(
        receive_with_overrides(&SigningOverrides { omits_mh: true, ..SigningOverrides::default() }),
        invalid_claim("mh")
    );
    assert_eq!(
        receive_with_overrides(&SigningOverrides { jti: Some(String::new()), ..SigningOverrides::default() }),
        invalid_claim("jti")
    );
}

#[test]
fn a_proof_made_with_another_key_is_dropped() {
    for keys in [&SELLER.keys, &STRANGER.keys] {
        let overrides = SigningOverrides { dpop_key: Some(keys.dpop.clone()), ..SigningOverrides::default() };
        assert_eq!(
            receive_with_overrides(&overrides),
            invalid_proof(DpopError::InvalidToken(JwsError::InvalidSignature))
        );
    }
}

/// Puts the proof of one message into another message from the same sender.
#[test]
fn a_proof_cannot_be_moved_to_another_message() {
    let mut harness = RecordHarness::at(State::Conversing);
    let first = harness.sign_next(A, &query("qry_1"));
    let stolen = EditableJson::parse(&first.text).string("sender/dpopProof");
    let envelope = harness.next(A, &query("qry_2"));
    let moved = sign_with(
        &envelope,
        &BUYER.keys,
        &SigningOverrides { proof: Some(stolen), ..SigningOverrides::default() },
    );
    assert_eq!(harness.receive(&moved.text), invalid_proof(DpopError::InvalidClaim("mh")));
}

#[test]
fn a_proof_can_be_used_once() {
    let mut harness = RecordHarness::at(State::Conversing);
    let overrides = SigningOverrides { jti: Some("once".to_owned()), ..SigningOverrides::default() };
    let first = harness.next(A, &observe("one"));
    assert_eq!(harness.receive(&sign_with(&first, &BUYER.keys, &overrides).text), HarnessOutcome::Accepted);
    for sender in [A, B] {
        let repeated = harness.next(sender, &observe("two"));
        let keys = &crate::support::record_harness::agent_for(sender).keys;
        assert_eq!(
            harness.receive(&sign_with(&repeated, keys, &overrides).text),
            HarnessOutcome::Refused(RejectCode::Duplicate)
        );
    }
    // D16: a proof is remembered for 600 s.
    harness.now += 600_000;
    let repeated = harness.next(A, &observe("three"));
    assert_eq!(
        harness.receive(&sign_with(&repeated, &BUYER.keys, &overrides).text),
        HarnessOutcome::Refused(RejectCode::Duplicate)
    );
    harness.now += 2000;
    harness.send(B, &observe("time passes"));
    let repeated = harness.next(A, &observe("four"));
    assert_eq!(
        harness.receive(&sign_with(&repeated, &BUYER.keys, &overrides).text),
        HarnessOutcome::Accepted
    );
}

/// The proof of a refused message can be used again once the message is allowed.
#[test]
fn a_refused_message_does_not_use_up_its_proof() {
    let mut harness = RecordHarness::at(State::Introduced);
    let overrides = SigningOverrides { jti: Some("once".to_owned()), ..SigningOverrides::default() };
    let early_message = harness.next(A, &crate::support::bodies::commit("cmt_1"));
    let signed = sign_with(&early_message, &BUYER.keys, &overrides);
    assert_eq!(harness.receive(&signed.text), HarnessOutcome::Refused(RejectCode::InvalidStateTransition));
    harness.send(B, &query("qry_1"));
    let later_message = harness.next(A, &crate::support::bodies::commit("cmt_1"));
    assert_eq!(
        harness.receive(&sign_with(&later_message, &BUYER.keys, &overrides).text),
        HarnessOutcome::Accepted
    );
}

fn token(header: &str, payload: &str, signature: &[u8]) -> String {
    let part = |text: &str| base64url::encode(text.as_bytes());
    format!("{}.{}.{}", part(header), part(payload), base64url::encode(signature))
}

/// The key determines the algorithm, not the token. Tokens that name `none`, HMAC, RSA or another algorithm are dropped.
#[test]
fn proofs_with_other_algorithms_are_dropped() {
    let mut harness = RecordHarness::at(State::Conversing);
    let envelope = harness.next(A, &query("qry_1"));
    let valid = sign_envelope(&envelope, &BUYER.keys);
    let valid_proof = EditableJson::parse(&valid.text).string("sender/dpopProof");
    let payload = base64url::decode(valid_proof.split('.').nth(1).unwrap()).unwrap();
    let payload = std::str::from_utf8(&payload).unwrap();
    let jwk = Jwk::P256(BUYER.keys.dpop.verifying_key().clone()).to_json();
    for alg in ["none", "None", "HS256", "HS512", "RS256", "PS256", "ES384", "EdDSA", "es256", ""] {
        for signature in [&[][..], &[0; 32], &[1; 64], &[2; 256]] {
            let header = format!(r#"{{"alg":"{alg}","jwk":{jwk},"typ":"dpop+jwt"}}"#);
            let proof = token(&header, payload, signature);
            let overrides = SigningOverrides { proof: Some(proof), ..SigningOverrides::default() };
            let text = sign_with(&envelope, &BUYER.keys, &overrides).text;
            let expected = invalid_proof(DpopError::InvalidToken(JwsError::WrongAlgorithm(alg.to_owned())));
            assert_eq!(harness.receive(&text), expected, "{alg}");
        }
    }
    // A valid EdDSA token of the signing key is not a proof of the DPoP key.
    let proof = sign(
        JwsSigner::Ed25519(&BUYER.keys.signing),
        &JwsHeader { typ: Some("dpop+jwt"), kid: None, include_jwk: true },
        payload.as_bytes(),
    );
    let overrides = SigningOverrides { proof: Some(proof.unwrap()), ..SigningOverrides::default() };
    let outcome = harness.receive(&sign_with(&envelope, &BUYER.keys, &overrides).text);
    assert!(
        matches!(
            outcome,
            HarnessOutcome::Dropped(AuthenticationError::InvalidProof(DpopError::InvalidToken(_)))
        ),
        "{outcome:?}"
    );
    assert_eq!(harness.receive(&valid.text), HarnessOutcome::Accepted);
}

#[test]
fn malformed_proofs_are_dropped() {
    let mut harness = RecordHarness::at(State::Conversing);
    let envelope = harness.next(A, &query("qry_1"));
    let valid_proof =
        EditableJson::parse(&sign_envelope(&envelope, &BUYER.keys).text).string("sender/dpopProof");
    let payload = base64url::decode(valid_proof.split('.').nth(1).unwrap()).unwrap();
    let sign_proof =
        |header: &JwsHeader<'_>| sign(JwsSigner::P256(&BUYER.keys.dpop), header, &payload).unwrap();
    let with_type = |typ| sign_proof(&JwsHeader { typ, kid: None, include_jwk: true });
    // Without its last six characters, the signature is still valid base64url, but too short.
    let truncated = &valid_proof[..valid_proof.len() - 6];
    let cases = [
        (with_type(None), DpopError::WrongType),
        (with_type(Some("JWT")), DpopError::WrongType),
        (
            sign_proof(&JwsHeader { typ: Some("dpop+jwt"), kid: None, include_jwk: false }),
            DpopError::WrongKey,
        ),
        ("x".to_owned(), DpopError::InvalidToken(JwsError::Malformed)),
        ("..".to_owned(), DpopError::InvalidToken(JwsError::PayloadPlacement)),
        (valid_proof.replace('.', ".."), DpopError::InvalidToken(JwsError::Malformed)),
        (format!("{valid_proof}="), DpopError::InvalidToken(JwsError::Malformed)),
        (truncated.to_owned(), DpopError::InvalidToken(JwsError::InvalidSignature)),
    ];
    for (proof, expected) in cases {
        let overrides = SigningOverrides { proof: Some(proof.clone()), ..SigningOverrides::default() };
        let outcome = harness.receive(&sign_with(&envelope, &BUYER.keys, &overrides).text);
        assert_eq!(outcome, invalid_proof(expected), "{proof}");
    }
    let overrides = SigningOverrides { proof: Some(String::new()), ..SigningOverrides::default() };
    let outcome = harness.receive(&sign_with(&envelope, &BUYER.keys, &overrides).text);
    assert!(matches!(outcome, HarnessOutcome::Dropped(AuthenticationError::InvalidProof(_))), "{outcome:?}");
}
