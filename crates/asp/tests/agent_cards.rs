//! Optional members of agent cards, and cards with new keys (D17).

use asp::{AgentCard, AgentCardError, AgentEndpoints, AgentProfile, Amount, Currency};
use seal::jws::{self, JwsError, JwsHeader, JwsSigner};
use seal::{AgentKeys, Jwk};

use crate::support::editable_json::EditableJson;
use crate::support::test_agents::{BUYER, SELLER, keys, profile};

fn signed(profile: &AgentProfile) -> AgentCard {
    AgentCard::sign(profile, &BUYER.keys).unwrap()
}

/// Signs a card without checking it, even if its members are invalid.
fn sign(card: EditableJson, keys: &AgentKeys) -> String {
    let unsigned = card.without("signature");
    unsigned.clone().with_text("signature", &signature(&unsigned, keys)).write()
}

fn signature(card: &EditableJson, keys: &AgentKeys) -> String {
    let text = card.write();
    let mut tape = seal::json::Tape::default();
    let canonical = seal::canonicalize(&tape.read(&text).unwrap().root()).unwrap();
    jws::sign_detached(JwsSigner::Ed25519(&keys.signing), &JwsHeader::default(), canonical.as_bytes())
        .unwrap()
}

fn parse_error(text: &str) -> AgentCardError {
    AgentCard::parse(text).map(|_| ()).unwrap_err()
}

#[test]
fn optional_members_are_written_and_read() {
    let plain = signed(&profile("agent://a.example/buyer"));
    assert_eq!(plain.organization(), "org:test");
    assert_eq!(plain.capabilities().collect::<Vec<_>>(), ["test.anything"]);
    assert_eq!((plain.max_transaction_value(), plain.currency()), (None, None));
    for name in ["endpoints", "maxTransactionValue", "currency", "previousSignature"] {
        assert!(!plain.as_str().contains(name), "{name}");
    }

    let full = signed(&AgentProfile {
        endpoints: AgentEndpoints { asp: Some("https://nodes.example:8443/a/".to_owned()) },
        max_transaction_value: Some(Amount::parse("5000.00").unwrap()),
        currency: Some(Currency::parse("EUR").unwrap()),
        ..profile("agent://a.example/buyer")
    });
    assert_eq!(full.endpoint(), "https://nodes.example:8443/a");
    assert_eq!(full.max_transaction_value().unwrap().as_str(), "5000.00");
    assert_eq!(full.currency().unwrap().as_str(), "EUR");
    let EditableJson::Object(_) = EditableJson::parse(full.as_str()) else { panic!("not an object") };

    // The published example writes the value as a number.
    let number = EditableJson::parse(full.as_str()).with("maxTransactionValue", "5000.5");
    let card = AgentCard::parse(&sign(number, &BUYER.keys)).unwrap();
    assert_eq!(card.max_transaction_value().unwrap().billionths(), 5_000_500_000_000);
}

/// A limit that cannot be read must not count as no limit.
#[test]
fn malformed_optional_members_are_refused() {
    for (name, member, values) in [
        ("endpoints", "endpoints", ["null", "\"https://a.example\"", "[]"].as_slice()),
        (
            "endpoints.asp",
            "endpoints",
            &[
                r#"{"asp":1}"#,
                r#"{"asp":""}"#,
                r#"{"asp":"ftp://a.example"}"#,
                r#"{"asp":"https://"}"#,
                r#"{"asp":"https:///path"}"#,
                r#"{"asp":"https://user@a.example"}"#,
                r#"{"asp":"https://a.example?x"}"#,
                r#"{"asp":"https://a.example#x"}"#,
                r#"{"asp":"https://a.example/a b"}"#,
            ],
        ),
        ("maxTransactionValue", "maxTransactionValue", &["null", "-1", "0", "1e3", "\"much\"", "{}"]),
        ("currency", "currency", &["null", "1", "\"euro\"", "\"\""]),
    ] {
        for value in values {
            let card = EditableJson::parse(BUYER.card.as_str()).with(member, value);
            let error = parse_error(&sign(card, &BUYER.keys));
            assert_eq!(error, AgentCardError::InvalidMember(name), "{value}");
        }
    }
    let other_endpoint = EditableJson::parse(BUYER.card.as_str()).with("endpoints", r#"{"card":"x"}"#);
    assert!(AgentCard::parse(&sign(other_endpoint, &BUYER.keys)).is_ok());
}

#[test]
fn without_an_endpoint_the_url_comes_from_the_agent_uri() {
    for (agent, endpoint) in [
        ("agent://a.example/buyer", "https://a.example"),
        ("agent://a.example", "https://a.example"),
        ("agent://a.example:8443/x/y", "https://a.example:8443"),
        ("agent://localhost:7300/buyer", "http://localhost:7300"),
        ("agent://LocalHost/buyer", "http://LocalHost"),
        ("agent://127.0.0.1:7300/buyer", "http://127.0.0.1:7300"),
        ("agent://127.9.8.7/buyer", "http://127.9.8.7"),
        ("agent://[::1]:7300/buyer", "http://[::1]:7300"),
        ("agent://[::1]/buyer", "http://[::1]"),
        ("agent://10.0.0.1:7300/buyer", "https://10.0.0.1:7300"),
        ("agent://127.0.0.1.example/buyer", "https://127.0.0.1.example"),
        ("agent://localhost.example/buyer", "https://localhost.example"),
        ("agent://localhost@a.example/buyer", "https://a.example"),
        ("agent://a.example?localhost/buyer", "https://a.example"),
        ("agent://a.example#@localhost/buyer", "https://a.example"),
    ] {
        assert_eq!(signed(&profile(agent)).endpoint(), endpoint, "{agent}");
    }
}

#[test]
fn a_rotated_card_is_signed_by_the_old_and_the_new_key() {
    let (old, new_keys) = (&BUYER.card, keys(20));
    let profile = profile(BUYER.agent().as_str());
    let rotated = AgentCard::rotate(&profile, &BUYER.keys, &new_keys).unwrap();
    assert!(rotated.is_successor_of(old));
    assert_eq!(*rotated.signing_key(), new_keys.signing.verifying_key());
    assert_eq!(rotated.dpop_key(), new_keys.dpop.verifying_key());
    let parsed = AgentCard::parse(rotated.as_str()).unwrap();
    assert!(parsed.is_successor_of(old) && !old.is_successor_of(&parsed));

    // Only a card of the same agent that the pinned key signed is a successor.
    assert!(!rotated.is_successor_of(&rotated) && !old.is_successor_of(old));
    assert!(!rotated.is_successor_of(&SELLER.card));
    let unrelated = AgentCard::sign(&profile, &new_keys).unwrap();
    assert!(!unrelated.is_successor_of(old));
    let stolen_name = AgentCard::rotate(&profile, &SELLER.keys, &new_keys).unwrap();
    assert!(!stolen_name.is_successor_of(old));
    let other_agent =
        AgentCard::rotate(&crate::support::test_agents::profile("agent://x.example"), &BUYER.keys, &new_keys);
    assert!(!other_agent.unwrap().is_successor_of(old));
    // A receiver follows a chain of rotations card by card.
    let third = AgentCard::rotate(&profile, &new_keys, &keys(21)).unwrap();
    assert!(third.is_successor_of(&rotated) && !third.is_successor_of(old));
}

#[test]
fn a_forged_rotation_is_refused() {
    let (new_keys, profile) = (keys(20), profile(BUYER.agent().as_str()));
    let rotated = AgentCard::rotate(&profile, &BUYER.keys, &new_keys).unwrap();
    let card = || EditableJson::parse(rotated.as_str());
    assert!(AgentCard::parse(&sign(card(), &new_keys)).is_ok(), "the test signs like the crate");

    // The new key alone cannot claim to replace another key, change what the old key signed, or use its signature again.
    let invalid = AgentCardError::InvalidPreviousSignature(JwsError::InvalidSignature);
    let unsigned = card().without("signature").without("previousSignature");
    let self_signed = card().with_text("previousSignature", &signature(&unsigned, &new_keys));
    assert_eq!(parse_error(&sign(self_signed, &new_keys)), invalid);
    assert_eq!(parse_error(&sign(card().with_text("name", "Another"), &new_keys)), invalid);
    let other_key = Jwk::Ed25519(keys(30).signing.verifying_key()).to_json();
    assert_eq!(parse_error(&sign(card().with("signingPublicKey", &other_key), &keys(30))), invalid);
    let seller_key = Jwk::Ed25519(SELLER.keys.signing.verifying_key()).to_json();
    assert_eq!(parse_error(&sign(card().with("previousSigningPublicKey", &seller_key), &new_keys)), invalid);

    // A card has both members or neither.
    for name in ["previousSignature", "previousSigningPublicKey"] {
        assert_eq!(parse_error(&sign(card().without(name), &new_keys)), AgentCardError::InvalidMember(name));
    }
    // The new key's signature covers the old key's signature.
    let removed = card().without("previousSignature").without("previousSigningPublicKey").write();
    assert_eq!(parse_error(&removed), AgentCardError::InvalidSignature(JwsError::InvalidSignature));
    // A card cannot succeed itself.
    let same = AgentCard::rotate(&profile, &BUYER.keys, &BUYER.keys);
    assert!(matches!(same, Err(AgentCardError::InvalidMember(_))));
}
