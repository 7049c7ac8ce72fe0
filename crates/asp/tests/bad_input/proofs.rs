//! Hash, signature and DPoP proof: of another message, another key, another kind.

use asp::machine::State;
use asp::{Code, Misbehaviour, SessionId};
use seal::dpop::DpopError;
use seal::jws::{Header, JwsError, Signer, sign};
use seal::{Digest, Jwk, base64url};

use crate::support::bodies::{observe, query};
use crate::support::cast::{BUYER, Dice, SELLER, STRANGER};
use crate::support::forge::{Lie, forge, forge_with};
use crate::support::json::Json;
use crate::support::scene::{A, B, Heard, START, Scene};

/// A message of the buyer with that lie in it.
fn heard(lie: &Lie) -> Heard {
    let mut scene = Scene::at(State::Conversing);
    let envelope = scene.next(A, &query("qry_1"));
    let heard = scene.hear(&forge_with(&envelope, &BUYER.keys, lie).text);
    if heard != Heard::Taken {
        assert_eq!(scene.state(), State::Conversing);
        // The very same without the lie is lawful: it was the lie.
        scene.takes(A, &envelope);
    }
    heard
}

fn wrong_proof(why: DpopError) -> Heard {
    Heard::Dropped(Misbehaviour::Proof(why))
}

#[test]
fn a_hash_that_is_another_messages_is_dropped() {
    let mut scene = Scene::at(State::Conversing);
    let first = scene.forge(A, &query("qry_1"));
    let second = scene.forge(A, &query("qry_2"));
    for (hash, expected) in [
        (first.hash.to_string(), Misbehaviour::Hash),
        (Digest::ZERO.to_string(), Misbehaviour::Hash),
        (second.hash.to_string().to_uppercase(), Misbehaviour::Hash),
        (second.hash.to_string().replace("sha256:", ""), Misbehaviour::Hash),
        (second.hash.to_string().replace("sha256:", "sha512:"), Misbehaviour::Hash),
        (format!("{} ", second.hash), Misbehaviour::Hash),
        (String::new(), Misbehaviour::Hash),
    ] {
        assert_eq!(heard(&Lie { hash: Some(hash), ..Lie::default() }), Heard::Dropped(expected));
    }
    // The first's whole seal on the second's words.
    let seal = Json::parse(&first.text);
    let mut mixed = Json::parse(&second.text);
    for path in ["integrity", "sender"] {
        mixed.set(path, seal.get(path).unwrap().clone());
    }
    assert_eq!(scene.hear(&mixed.write()), Heard::Dropped(Misbehaviour::Hash));
}

#[test]
fn a_signature_that_is_not_the_senders_is_dropped() {
    let mut scene = Scene::at(State::Conversing);
    let envelope = scene.next(A, &query("qry_1"));
    let good = forge(&envelope, &BUYER.keys);
    for keys in [&SELLER.keys, &STRANGER.keys] {
        let signature = keys.signing.sign(good.hash.to_string().as_bytes()).to_string();
        let text = Json::parse(&good.text).with_text("integrity/signature", &signature).write();
        assert_eq!(scene.hear(&text), Heard::Dropped(Misbehaviour::Signature));
    }
    // D14: over the text of the hash, not over its bytes, nor over the message.
    for signed in [good.hash.as_bytes().as_slice(), good.text.as_bytes(), b""] {
        let signature = BUYER.keys.signing.sign(signed).to_string();
        let text = Json::parse(&good.text).with_text("integrity/signature", &signature).write();
        assert_eq!(scene.hear(&text), Heard::Dropped(Misbehaviour::Signature));
    }
    let written = Json::parse(&good.text).string("integrity/signature");
    for form in [
        written.to_uppercase(),
        written.replace("ed25519:", ""),
        written.replace("ed25519:", "ed448:"),
        written[..written.len() - 2].to_owned(),
        format!("{written}00"),
        String::new(),
    ] {
        let text = Json::parse(&good.text).with_text("integrity/signature", &form).write();
        assert_eq!(scene.hear(&text), Heard::Dropped(Misbehaviour::Member("integrity.signature")), "{form}");
    }
    assert_eq!(scene.hear(&good.text), Heard::Taken);
}

/// Digits all over the signature count.
#[test]
fn a_signature_with_one_digit_changed_is_dropped() {
    let mut scene = Scene::at(State::Conversing);
    let good = scene.forge(A, &query("qry_1"));
    let written = Json::parse(&good.text).string("integrity/signature");
    for at in (0..128).step_by(5) {
        let mut digits = written.clone().into_bytes();
        let digit = &mut digits["ed25519:".len() + at];
        *digit = if *digit == b'0' { b'1' } else { b'0' };
        let changed = String::from_utf8(digits).unwrap();
        let text = good.text.replace(&written, &changed);
        assert_eq!(scene.hear(&text), Heard::Dropped(Misbehaviour::Signature), "{at}");
    }
}

#[test]
fn a_proof_is_for_this_performative_session_and_message() {
    let claim = |name| wrong_proof(DpopError::Claim(name));
    let other = SessionId::generate(START, &mut Dice(9));
    for htm in ["ACCEPT", "query", "POST", ""] {
        assert_eq!(heard(&Lie { htm: Some(htm.to_owned()), ..Lie::default() }), claim("htm"), "{htm}");
    }
    for htu in [format!("asp:{other}"), other.to_string(), "asp:".to_owned(), String::new()] {
        assert_eq!(heard(&Lie { htu: Some(htu), ..Lie::default() }), claim("htu"));
    }
    for mh in [Digest::ZERO, Digest::of(b"another")] {
        assert_eq!(heard(&Lie { mh: Some(mh), ..Lie::default() }), claim("mh"));
    }
    assert_eq!(heard(&Lie { without_mh: true, ..Lie::default() }), claim("mh"));
    assert_eq!(heard(&Lie { jti: Some(String::new()), ..Lie::default() }), claim("jti"));
}

#[test]
fn a_proof_of_another_key_is_dropped() {
    for keys in [&SELLER.keys, &STRANGER.keys] {
        let lie = Lie { dpop_key: Some(keys.dpop.clone()), ..Lie::default() };
        assert_eq!(heard(&lie), wrong_proof(DpopError::Token(JwsError::Signature)));
    }
}

/// A proof taken from a message that was lawful, and put into another of the same sender.
#[test]
fn a_proof_cannot_be_moved_to_another_message() {
    let mut scene = Scene::at(State::Conversing);
    let first = scene.forge(A, &query("qry_1"));
    let stolen = Json::parse(&first.text).string("sender/dpopProof");
    let envelope = scene.next(A, &query("qry_2"));
    let moved = forge_with(&envelope, &BUYER.keys, &Lie { proof: Some(stolen), ..Lie::default() });
    assert_eq!(scene.hear(&moved.text), wrong_proof(DpopError::Claim("mh")));
}

#[test]
fn a_proof_is_used_once() {
    let mut scene = Scene::at(State::Conversing);
    let lie = Lie { jti: Some("once".to_owned()), ..Lie::default() };
    let first = scene.next(A, &observe("one"));
    assert_eq!(scene.hear(&forge_with(&first, &BUYER.keys, &lie).text), Heard::Taken);
    for sender in [A, B] {
        let again = scene.next(sender, &observe("two"));
        let keys = &crate::support::scene::actor(sender).keys;
        assert_eq!(scene.hear(&forge_with(&again, keys, &lie).text), Heard::Refused(Code::Duplicate));
    }
    // D16: it is remembered for 600 s.
    scene.now += 600_000;
    let again = scene.next(A, &observe("three"));
    assert_eq!(scene.hear(&forge_with(&again, &BUYER.keys, &lie).text), Heard::Refused(Code::Duplicate));
    scene.now += 2000;
    scene.say(B, &observe("time passes"));
    let again = scene.next(A, &observe("four"));
    assert_eq!(scene.hear(&forge_with(&again, &BUYER.keys, &lie).text), Heard::Taken);
}

/// The proof of a message that was refused is not used up: it may be sent again when it is lawful.
#[test]
fn a_refused_message_uses_up_nothing() {
    let mut scene = Scene::at(State::Introduced);
    let lie = Lie { jti: Some("once".to_owned()), ..Lie::default() };
    let early = scene.next(A, &crate::support::bodies::commit("cmt_1"));
    let forged = forge_with(&early, &BUYER.keys, &lie);
    assert_eq!(scene.hear(&forged.text), Heard::Refused(Code::InvalidStateTransition));
    scene.say(B, &query("qry_1"));
    let later = scene.next(A, &crate::support::bodies::commit("cmt_1"));
    assert_eq!(scene.hear(&forge_with(&later, &BUYER.keys, &lie).text), Heard::Taken);
}

fn token(header: &str, payload: &str, signature: &[u8]) -> String {
    let part = |text: &str| base64url::encode(text.as_bytes());
    format!("{}.{}.{}", part(header), part(payload), base64url::encode(signature))
}

/// `none`, HMAC keyed with what everybody knows, RSA and the rest: the key says which algorithm, never the token.
#[test]
fn proofs_of_other_algorithms_are_dropped() {
    let mut scene = Scene::at(State::Conversing);
    let envelope = scene.next(A, &query("qry_1"));
    let good = forge(&envelope, &BUYER.keys);
    let honest = Json::parse(&good.text).string("sender/dpopProof");
    let payload = base64url::decode(honest.split('.').nth(1).unwrap()).unwrap();
    let payload = std::str::from_utf8(&payload).unwrap();
    let jwk = Jwk::P256(BUYER.keys.dpop.verifying_key().clone()).to_json();
    for alg in ["none", "None", "HS256", "HS512", "RS256", "PS256", "ES384", "EdDSA", "es256", ""] {
        for signature in [&[][..], &[0; 32], &[1; 64], &[2; 256]] {
            let header = format!(r#"{{"alg":"{alg}","jwk":{jwk},"typ":"dpop+jwt"}}"#);
            let proof = token(&header, payload, signature);
            let lie = Lie { proof: Some(proof), ..Lie::default() };
            let text = forge_with(&envelope, &BUYER.keys, &lie).text;
            let expected = wrong_proof(DpopError::Token(JwsError::Algorithm(alg.to_owned())));
            assert_eq!(scene.hear(&text), expected, "{alg}");
        }
    }
    // An honest EdDSA token of the signing key is no proof of the other key either.
    let proof = sign(
        Signer::Ed25519(&BUYER.keys.signing),
        &Header { typ: Some("dpop+jwt"), kid: None, with_key: true },
        payload.as_bytes(),
    );
    let lie = Lie { proof: Some(proof.unwrap()), ..Lie::default() };
    let heard = scene.hear(&forge_with(&envelope, &BUYER.keys, &lie).text);
    assert!(matches!(heard, Heard::Dropped(Misbehaviour::Proof(DpopError::Token(_)))), "{heard:?}");
    assert_eq!(scene.hear(&good.text), Heard::Taken);
}

#[test]
fn proofs_of_another_make_are_dropped() {
    let mut scene = Scene::at(State::Conversing);
    let envelope = scene.next(A, &query("qry_1"));
    let honest = Json::parse(&forge(&envelope, &BUYER.keys).text).string("sender/dpopProof");
    let payload = base64url::decode(honest.split('.').nth(1).unwrap()).unwrap();
    let make = |header: &Header<'_>| sign(Signer::P256(&BUYER.keys.dpop), header, &payload).unwrap();
    let typed = |typ| make(&Header { typ, kid: None, with_key: true });
    // Three bytes fewer: 86 digits of base64url are 64 bytes and four bits of nothing.
    let cut = &honest[..honest.len() - 6];
    let cases = [
        (typed(None), DpopError::Type),
        (typed(Some("JWT")), DpopError::Type),
        (make(&Header { typ: Some("dpop+jwt"), kid: None, with_key: false }), DpopError::Key),
        ("x".to_owned(), DpopError::Token(JwsError::Form)),
        ("..".to_owned(), DpopError::Token(JwsError::Payload)),
        (honest.replace('.', ".."), DpopError::Token(JwsError::Form)),
        (format!("{honest}="), DpopError::Token(JwsError::Form)),
        (cut.to_owned(), DpopError::Token(JwsError::Signature)),
    ];
    for (proof, expected) in cases {
        let lie = Lie { proof: Some(proof.clone()), ..Lie::default() };
        let heard = scene.hear(&forge_with(&envelope, &BUYER.keys, &lie).text);
        assert_eq!(heard, wrong_proof(expected), "{proof}");
    }
    let lie = Lie { proof: Some(String::new()), ..Lie::default() };
    let heard = scene.hear(&forge_with(&envelope, &BUYER.keys, &lie).text);
    assert!(matches!(heard, Heard::Dropped(Misbehaviour::Proof(_))), "{heard:?}");
}
