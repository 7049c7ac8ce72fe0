//! Checks `docs/asp-vectors.json` step by step, as another implementation would. The first test uses only hashes and
//! signatures. The other tests use the crates `asp` and `seal`.

use asp::message::{Authenticator, PinnedCards};
use asp::{AgentCard, AspLimits};
use seal::json::{JsonValue, Tape};
use seal::{Digest, base64url, ed25519, es256};

const VECTORS: &str = include_str!("../../../docs/asp-vectors.json");

#[test]
fn another_implementation_can_reproduce_every_step() {
    let mut tape = Tape::default();
    let doc = tape.read(VECTORS).unwrap();
    let keys = doc.root().member("keys").unwrap();
    let signing = ed25519::SigningKey::from_seed(&decode_hex(&text(&keys, "ed25519Seed")));
    let dpop = es256::SigningKey::deterministic(&decode_hex(&text(&keys, "p256Secret"))).unwrap();
    let messages: Vec<_> = doc.root().member("messages").unwrap().items().collect();
    assert_eq!(messages.len(), 3);
    for message in &messages {
        let get = |name: &str| text(message, name);
        // The proof contains the hash of the message without the proof.
        assert_eq!(Digest::of(get("mhInput").as_bytes()).to_string(), get("mh"));
        let proof = get("dpopProof");
        let (signed, signature) = proof.rsplit_once('.').unwrap();
        assert_eq!(signed.split_once('.').unwrap().1, base64url::encode(get("dpopClaims").as_bytes()));
        assert!(get("dpopClaims").contains(&get("mh")));
        let signature = base64url::decode(signature).unwrap();
        assert!(dpop.verifying_key().verify(signed.as_bytes(), &signature));
        assert_eq!(dpop.sign(signed.as_bytes()).unwrap().as_slice(), signature, "RFC 6979");
        // The hash of the message with its proof is signed as text.
        assert!(get("hashInput").contains(&proof) && !get("mhInput").contains("dpopProof"));
        assert_eq!(Digest::of(get("hashInput").as_bytes()).to_string(), get("hash"));
        assert_eq!(signing.sign(get("hash").as_bytes()).to_string(), get("signature"));
        // The sent message contains the proof, the hash and the signature.
        for part in ["dpopProof", "hash", "signature"] {
            assert!(get("sent").contains(&get(part)), "{part}");
        }
    }
    for (message, next) in messages.iter().zip(&messages[1..]) {
        let link = format!("\"previousHash\":\"{}\"", text(message, "hash"));
        assert!(text(next, "sent").contains(&link));
    }
}

#[test]
fn the_published_messages_authenticate() {
    let mut tape = Tape::default();
    let doc = tape.read(VECTORS).unwrap();
    let cards = PinnedCards::new([AgentCard::parse(&text(&doc.root(), "card")).unwrap()]);
    for message in doc.root().member("messages").unwrap().items() {
        let authenticated = Authenticator::default()
            .authenticate(&text(&message, "sent"), &cards, &AspLimits::default())
            .unwrap();
        assert_eq!(authenticated.hash.to_string(), text(&message, "hash"));
    }
}

#[test]
fn canonical_forms_match_the_vectors() {
    let mut tape = Tape::default();
    let doc = tape.read(VECTORS).unwrap();
    let mut refused_count = 0;
    for case in doc.root().member("canonical").unwrap().items() {
        let json = text(&case, "json");
        let mut tape = Tape::default();
        let canonical = seal::canonicalize(&tape.read(&json).unwrap().root());
        if let Some(expected) = case.member("form") {
            assert_eq!(canonical.as_deref(), Ok(expected.text().unwrap().as_ref()), "{json}");
        } else {
            assert!(canonical.is_err(), "{json}");
            refused_count += 1;
        }
    }
    assert_eq!(refused_count, 4);
}

fn text(value: &JsonValue<'_>, name: &str) -> String {
    value.member(name).and_then(|member| member.text()).unwrap_or_else(|| panic!("no {name}")).into_owned()
}

fn decode_hex(hex: &str) -> [u8; 32] {
    let byte_at = |index: usize| u8::from_str_radix(&hex[index..index + 2], 16).unwrap();
    std::array::from_fn(|index| byte_at(index * 2))
}
