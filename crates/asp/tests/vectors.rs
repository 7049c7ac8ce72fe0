//! `docs/asp-vectors.json`, followed step by step as another implementation would: with hashes and signatures alone, and
//! nothing of this crate but the last look.

use asp::message::{Authenticator, Cards};
use asp::{Card, Limits};
use seal::json::{Tape, Value};
use seal::{Digest, base64url, ed25519, es256};

const VECTORS: &str = include_str!("../../../docs/asp-vectors.json");

#[test]
fn another_implementation_can_follow_every_step() {
    let mut tape = Tape::default();
    let doc = tape.read(VECTORS).unwrap();
    let keys = doc.root().member("keys").unwrap();
    let signing = ed25519::SigningKey::from_seed(&bytes(&text(&keys, "ed25519Seed")));
    let dpop = es256::SigningKey::reproducible(&bytes(&text(&keys, "p256Secret"))).unwrap();
    let messages: Vec<_> = doc.root().member("messages").unwrap().items().collect();
    assert_eq!(messages.len(), 3);
    for message in &messages {
        let get = |name: &str| text(message, name);
        // The hash of the message without its proof stands in the proof.
        assert_eq!(Digest::of(get("mhInput").as_bytes()).to_string(), get("mh"));
        let proof = get("dpopProof");
        let (signed, signature) = proof.rsplit_once('.').unwrap();
        assert_eq!(signed.split_once('.').unwrap().1, base64url::encode(get("dpopClaims").as_bytes()));
        assert!(get("dpopClaims").contains(&get("mh")));
        let signature = base64url::decode(signature).unwrap();
        assert!(dpop.verifying_key().verify(signed.as_bytes(), &signature));
        assert_eq!(dpop.sign(signed.as_bytes()).unwrap().as_slice(), signature, "by RFC 6979");
        // The hash of the message with its proof is signed as text.
        assert!(get("hashInput").contains(&proof) && !get("mhInput").contains("dpopProof"));
        assert_eq!(Digest::of(get("hashInput").as_bytes()).to_string(), get("hash"));
        assert_eq!(signing.sign(get("hash").as_bytes()).to_string(), get("signature"));
        // What was sent carries all of it.
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
fn what_was_sent_authenticates_here() {
    let mut tape = Tape::default();
    let doc = tape.read(VECTORS).unwrap();
    let cards = Cards::new([Card::parse(&text(&doc.root(), "card")).unwrap()]);
    for message in doc.root().member("messages").unwrap().items() {
        let opened =
            Authenticator::default().open(&text(&message, "sent"), &cards, &Limits::default()).unwrap();
        assert_eq!(opened.hash.to_string(), text(&message, "hash"));
    }
}

#[test]
fn canonical_forms_are_as_written() {
    let mut tape = Tape::default();
    let doc = tape.read(VECTORS).unwrap();
    let mut refused = 0;
    for case in doc.root().member("canonical").unwrap().items() {
        let json = text(&case, "json");
        let mut tape = Tape::default();
        let form = seal::canonical(&tape.read(&json).unwrap().root());
        if let Some(wanted) = case.member("form") {
            assert_eq!(form.as_deref(), Ok(wanted.text().unwrap().as_ref()), "{json}");
        } else {
            assert!(form.is_err(), "{json}");
            refused += 1;
        }
    }
    assert_eq!(refused, 4);
}

fn text(value: &Value<'_>, name: &str) -> String {
    value.member(name).and_then(|member| member.text()).unwrap_or_else(|| panic!("no {name}")).into_owned()
}

fn bytes(hex: &str) -> [u8; 32] {
    let read = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    std::array::from_fn(|at| read(at * 2))
}
