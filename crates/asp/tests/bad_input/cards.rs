//! Cards that do not verify, and cards that do but are not the pinned one (D17).

use asp::machine::State;
use asp::{Card, CardError, Code, Level};
use seal::jws::{self, Header, JwsError, Signer};
use seal::{Digest, Jwk, JwkError, Keys, base64url};

use crate::support::cast::{BUYER, SELLER, keys, profile};
use crate::support::json::Json;
use crate::support::scene::{A, B, Scene};

fn card() -> Json {
    Json::parse(BUYER.card.as_str())
}

/// Signs a card anew.
fn signed(card: Json, keys: &Keys) -> String {
    let bare = card.without("signature");
    let text = bare.write();
    let mut tape = seal::json::Tape::default();
    let doc = tape.read(&text).unwrap();
    let form = seal::canonical(&doc.root()).unwrap();
    let signature = jws::sign_detached(Signer::Ed25519(&keys.signing), &Header::default(), form.as_bytes());
    bare.with_text("signature", &signature.unwrap()).write()
}

fn wrong(text: &str) -> CardError {
    Card::parse(text).map(|_| ()).unwrap_err()
}

#[test]
fn a_card_with_any_member_changed_does_not_verify() {
    let Json::Object(members) = card() else { panic!("an object") };
    assert!(members.len() >= 9);
    for (name, value) in &members {
        if name == "signature" {
            continue;
        }
        let other = match value {
            Json::Leaf(text) if name == "conformanceLevel" => text.replace("standard", "full"),
            Json::Leaf(text) => format!("{}x\"", text.trim_end_matches('"')),
            Json::Array(_) => "[]".to_owned(),
            Json::Object(_) if name == "signingPublicKey" => {
                Jwk::Ed25519(SELLER.keys.signing.verifying_key()).to_json()
            }
            Json::Object(_) => Jwk::P256(SELLER.keys.dpop.verifying_key().clone()).to_json(),
        };
        let changed = card().with(name, &other).write();
        assert_eq!(wrong(&changed), CardError::Signature(JwsError::Signature), "{name}");
        let without = wrong(&card().without(name).write());
        assert!(matches!(without, CardError::Signature(_) | CardError::Member(_)), "{name}: {without}");
    }
    let added = card().with("extra", "1").write();
    assert_eq!(wrong(&added), CardError::Signature(JwsError::Signature));
    assert_eq!(wrong(&card().without("signature").write()), CardError::Member("signature"));
}

#[test]
fn a_card_is_signed_by_its_own_key() {
    assert_eq!(wrong(&signed(card(), &SELLER.keys)), CardError::Signature(JwsError::Signature));
    assert!(Card::parse(&signed(card(), &BUYER.keys)).is_ok());
    // With an algorithm that the key is not of.
    for alg in ["none", "HS256", "ES256"] {
        let header = base64url::encode(format!(r#"{{"alg":"{alg}"}}"#).as_bytes());
        for signature in ["", "AAAA"] {
            let text = card().with_text("signature", &format!("{header}..{signature}")).write();
            assert_eq!(wrong(&text), CardError::Signature(JwsError::Algorithm(alg.to_owned())));
        }
    }
    for signature in ["", "x", "a.b.c", ".."] {
        let text = card().with_text("signature", signature).write();
        assert!(matches!(wrong(&text), CardError::Signature(_)), "{signature}");
    }
}

#[test]
fn members_of_another_type_are_no_card() {
    for (name, values) in [
        ("agentId", ["null", "1", "[]", "\"\"", "\"https://a.example\""].as_slice()),
        ("conformanceLevel", &["null", "1", "\"\"", "\"Standard\"", "\"expert\""]),
        ("signingPublicKey", &["null", "\"x\"", "{}", "[]"]),
        ("dpopPublicKey", &["null", "\"x\"", "{}", "[]"]),
        ("signature", &["null", "1", "{}"]),
    ] {
        for value in values {
            let card = card().with(name, value);
            // Rightly signed, so that it is not the signature that is wrong.
            let text = if name == "signature" { card.write() } else { signed(card, &BUYER.keys) };
            assert!(!matches!(wrong(&text), CardError::Signature(_)), "{name} = {value}");
        }
        let text = signed(card().without(name), &BUYER.keys);
        let text = if name == "signature" { Json::parse(&text).without(name).write() } else { text };
        assert_eq!(wrong(&text), CardError::Member(name));
    }
    for text in ["", "[]", "null", "\"x\"", "{", "{}x"] {
        assert_eq!(wrong(text), CardError::NotJson, "{text}");
    }
    assert!(matches!(
        wrong(&card().write().replacen('{', "{\"name\":\"x\",", 1)),
        CardError::NotCanonical(_)
    ));
}

#[test]
fn keys_of_the_wrong_kind_are_no_card() {
    let ed = Jwk::Ed25519(BUYER.keys.signing.verifying_key()).to_json();
    let p256 = Jwk::P256(BUYER.keys.dpop.verifying_key().clone()).to_json();
    let swapped = signed(card().with("dpopPublicKey", &ed), &BUYER.keys);
    assert_eq!(wrong(&swapped), CardError::Key("dpopPublicKey", JwkError::Kind));
    let swapped = signed(card().with("signingPublicKey", &p256), &BUYER.keys);
    assert_eq!(wrong(&swapped), CardError::Key("signingPublicKey", JwkError::Kind));
    let rsa = r#"{"kty":"RSA","crv":"x","n":"AQAB","e":"AQAB"}"#;
    assert_eq!(
        wrong(&signed(card().with("dpopPublicKey", rsa), &BUYER.keys)),
        CardError::Key("dpopPublicKey", JwkError::Kind)
    );
}

/// Under a key of small order, anybody can make a signature that holds.
#[test]
fn weak_keys_are_no_card() {
    let mut one = [0; 32];
    one[0] = 1;
    let mut minus = [0xFF; 32];
    (minus[0], minus[31]) = (0xEC, 0x7F);
    for bytes in [[0; 32], one, minus] {
        let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, base64url::encode(&bytes));
        let text = signed(card().with("signingPublicKey", &jwk), &BUYER.keys);
        assert_eq!(wrong(&text), CardError::Key("signingPublicKey", JwkError::Point), "{bytes:?}");
    }
    let zero = base64url::encode(&[0; 32]);
    let jwk = format!(r#"{{"crv":"P-256","kty":"EC","x":"{zero}","y":"{zero}"}}"#);
    let text = signed(card().with("dpopPublicKey", &jwk), &BUYER.keys);
    assert_eq!(wrong(&text), CardError::Key("dpopPublicKey", JwkError::Point));
}

#[test]
fn a_secret_key_is_not_published() {
    for name in ["dpopPublicKey", "signingPublicKey"] {
        for secret in ["\"AAAA\"", "\"\"", "null"] {
            let text = signed(card().with(&format!("{name}/d"), secret), &BUYER.keys);
            assert_eq!(wrong(&text), CardError::Key(name, JwkError::Secret));
        }
    }
}

#[test]
fn a_card_is_not_too_long() {
    let least = signed(card().with("pad", "\"\""), &BUYER.keys).len();
    let padded = |bytes: usize| signed(card().with_text("pad", &"p".repeat(bytes - least)), &BUYER.keys);
    assert!(Card::parse(&padded(Card::LONGEST)).is_ok());
    assert_eq!(wrong(&padded(Card::LONGEST + 1)), CardError::TooLong);
}

fn identity(card: &str) -> String {
    format!(r#"{{"informType":"identity","card":{card}}}"#)
}

/// A scene in which the invitation was accepted.
fn identifying() -> Scene {
    let mut scene = Scene::at(State::Invited);
    scene.say(B, &crate::support::bodies::accept("prop_inv"));
    scene
}

/// A card that is validly signed, but is not the one that is known: its signature alone proves nothing.
#[test]
fn a_card_in_a_message_is_the_pinned_one() {
    let renamed = asp::Profile { name: "Another".to_owned(), ..profile(BUYER.agent().as_str()) };
    let promoted = asp::Profile { level: Level::Full, ..profile(BUYER.agent().as_str()) };
    let others = [
        Card::issue(&renamed, &BUYER.keys).unwrap().as_str().to_owned(),
        Card::issue(&promoted, &BUYER.keys).unwrap().as_str().to_owned(),
        Card::issue(&profile(BUYER.agent().as_str()), &keys(50)).unwrap().as_str().to_owned(),
        SELLER.card.as_str().to_owned(),
        signed(card().with("extra", "1"), &BUYER.keys),
        card().without("signature").write(),
        "{}".to_owned(),
    ];
    let mut scene = identifying();
    for other in &others {
        let envelope = scene.envelope(A, "INFORM", &identity(other));
        scene.refuses(A, &envelope, Code::Unauthorized);
    }
    // The pinned one in another spelling is the pinned one.
    let Json::Object(mut members) = card() else { panic!("an object") };
    members.reverse();
    let spelled = Json::Object(members).write().replace(":{", ": {\n").replace("Does", "\\u0044oes");
    assert_ne!(Digest::of(spelled.as_bytes()), Digest::of(BUYER.card.as_str().as_bytes()));
    let envelope = scene.envelope(A, "INFORM", &identity(&spelled));
    scene.takes(A, &envelope);
}

/// Also later in the session, where an identity changes nothing.
#[test]
fn a_later_identity_is_the_pinned_one_too() {
    for state in [State::Introduced, State::Conversing] {
        let mut scene = Scene::at(state);
        let envelope = scene.envelope(A, "INFORM", &identity(SELLER.card.as_str()));
        scene.refuses(A, &envelope, Code::Unauthorized);
        let envelope = scene.envelope(A, "INFORM", &identity(BUYER.card.as_str()));
        scene.takes(A, &envelope);
    }
}

#[test]
fn an_identity_is_given_once_and_after_the_answer() {
    let mut scene = Scene::at(State::Invited);
    for sender in [A, B] {
        let envelope = scene.envelope(sender, "INFORM", r#"{"informType":"identity"}"#);
        scene.refuses(sender, &envelope, Code::InvalidStateTransition);
    }
    let mut scene = identifying();
    scene.say(A, &crate::support::bodies::inform("identity"));
    let envelope = scene.envelope(A, "INFORM", &identity(BUYER.card.as_str()));
    scene.refuses(A, &envelope, Code::Duplicate);
}
