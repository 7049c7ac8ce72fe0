//! Signed manifests: whose they are, and what is no signature.

use aaep::manifest::{ManifestError, Misfit, NoKeys, Trusted, compare, read, sign, verify};
use aaep::message::{Message, SubscriptionAccepted};
use aaep::rule::Face;
use seal::es256::SigningKey;
use seal::jws::{self, Header, JwsError, Signer};
use seal::{Jwk, SystemRandom, base64url, ed25519};

const BANK: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"]}"#;

fn key() -> SigningKey {
    SigningKey::generate(&mut SystemRandom)
}

fn public(key: &SigningKey) -> Jwk {
    Jwk::P256(key.verifying_key().clone())
}

fn trusted(key: &SigningKey) -> Trusted {
    Trusted::key(public(key))
}

/// A token with this header, its payload and signature as given.
fn forged(header: &str, payload: &str, signature: &[u8]) -> String {
    [header.as_bytes(), payload.as_bytes(), signature].map(base64url::encode).join(".")
}

/// Correctly signed, with any header.
fn signed(header: &str, payload: &str, key: &SigningKey) -> String {
    let input = [header, payload].map(|part| base64url::encode(part.as_bytes())).join(".");
    let signature = base64url::encode(&key.sign(input.as_bytes()).unwrap());
    format!("{input}.{signature}")
}

#[test]
fn the_payload_is_the_manifest_byte_for_byte_and_the_key_is_named() {
    let key = key();
    let spaced = BANK.replace(':', " : ").replace(" : //", "://").replace("aaep : producer", "aaep:producer");
    for text in [BANK, &spaced] {
        let token = sign(text, &key).unwrap();
        let parts: Vec<_> = token
            .split('.')
            .map(|part| String::from_utf8_lossy(&base64url::decode(part).unwrap()).into_owned())
            .collect();
        assert_eq!(parts[0], format!(r#"{{"alg":"ES256","kid":"{}"}}"#, public(&key).thumbprint()));
        assert_eq!(parts[1], text);
        assert_eq!(verify(&token, &trusted(&key)).unwrap().agent_id, "bank");
    }
}

#[test]
fn what_breaks_the_rules_is_neither_signed_nor_believed() {
    let key = key();
    for (text, rule) in [
        (BANK.replace(r#""agent_id":"bank","#, ""), "AAEP-5.10.1-1"),
        (BANK.replace(r#"["1.0.0"]"#, "[]"), "AAEP-12.5.3-1"),
        (BANK.replace(r#""sse""#, r#""sse","sse""#), "AAEP-5.10.1-1"),
    ] {
        let refused = [
            sign(&text, &key).unwrap_err(),
            verify(&signed(r#"{"alg":"ES256"}"#, &text, &key), &trusted(&key)).unwrap_err(),
        ];
        for why in refused {
            let ManifestError::Unlawful(findings) = &why else { panic!("{why:?}") };
            assert_eq!(findings[0].rule.id(), rule, "{text}");
        }
    }
    // Something else that the same key has signed is no manifest.
    for text in
        ["", "[]", r#"{"type":"subscription.close","subscription_id":"sub_1"}"#, r#"{"agent_id":"bank"}"#]
    {
        assert!(matches!(sign(text, &key), Err(ManifestError::Unlawful(_))), "{text}");
    }
}

#[test]
fn nothing_in_it_can_be_changed() {
    let key = key();
    let token = sign(BANK, &key).unwrap();
    let (rest, signature) = token.rsplit_once('.').unwrap();
    let other = BANK.replace("bank", "bunk");
    let head = rest.split_once('.').unwrap().0;
    let moved = format!("{head}.{}.{signature}", base64url::encode(other.as_bytes()));
    assert_eq!(verify(&moved, &trusted(&key)), Err(ManifestError::Jws(JwsError::Signature)));
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        assert!(verify(&String::from_utf8(bytes).unwrap(), &trusted(&key)).is_err(), "byte {at}");
    }
}

#[test]
fn another_key_is_another_producer() {
    let (bank, eve) = (key(), key());
    let token = sign(BANK, &eve).unwrap();
    assert_eq!(verify(&token, &trusted(&bank)), Err(ManifestError::Jws(JwsError::Signature)));
}

#[test]
fn the_algorithm_is_the_keys_and_never_the_headers() {
    let key = key();
    for (alg, signature) in
        [("none", &b""[..]), ("None", b""), ("HS256", &[0; 32]), ("RS256", &[0; 256]), ("ES384", &[0; 96])]
    {
        let token = forged(&format!(r#"{{"alg":"{alg}"}}"#), BANK, signature);
        let refused = verify(&token, &trusted(&key)).unwrap_err();
        assert_eq!(refused, ManifestError::Jws(JwsError::Algorithm(alg.to_owned())));
    }
    // HMAC over the public key, as the textbook attack has it, and a good signature under a false name.
    let token = signed(r#"{"alg":"HS256"}"#, BANK, &key);
    assert_eq!(verify(&token, &trusted(&key)), Err(ManifestError::Jws(JwsError::Algorithm("HS256".into()))));
    let edwards = ed25519::SigningKey::generate(&mut SystemRandom);
    let token = jws::sign(Signer::Ed25519(&edwards), &Header::default(), BANK.as_bytes()).unwrap();
    assert_eq!(verify(&token, &trusted(&key)), Err(ManifestError::Jws(JwsError::Algorithm("EdDSA".into()))));
    let trusts_edwards = Trusted::key(Jwk::Ed25519(edwards.verifying_key()));
    assert_eq!(
        verify(&token, &trusts_edwards).unwrap().agent_id,
        "bank",
        "other algorithms are allowed (§10.4.1)"
    );
}

#[test]
fn a_key_that_the_header_brings_counts_for_nothing() {
    let (bank, eve) = (key(), key());
    let brought = public(&eve).to_json();
    let own = signed(&format!(r#"{{"alg":"ES256","jwk":{brought}}}"#), BANK, &eve);
    assert_eq!(verify(&own, &trusted(&bank)), Err(ManifestError::Jws(JwsError::Signature)));
    for header in [
        format!(r#"{{"alg":"ES256","jwk":{brought}}}"#),
        r#"{"alg":"ES256","x5c":["MIIB"]}"#.to_owned(),
        r#"{"alg":"ES256","jku":"https://example.org/keys"}"#.to_owned(),
        r#"{"alg":"ES256","x5u":"https://example.org/cert"}"#.to_owned(),
    ] {
        assert_eq!(
            verify(&signed(&header, BANK, &bank), &trusted(&bank)),
            Err(ManifestError::BringsKey),
            "{header}"
        );
    }
    let same = format!(r#"{{"alg":"ES256","jwk":{}}}"#, public(&bank).to_json());
    assert!(
        verify(&signed(&same, BANK, &bank), &trusted(&bank)).is_ok(),
        "one that is trusted anyway may stand there"
    );
    let critical = signed(r#"{"alg":"ES256","crit":["exp"],"exp":1}"#, BANK, &bank);
    assert_eq!(verify(&critical, &trusted(&bank)), Err(ManifestError::Jws(JwsError::Critical)));
}

#[test]
fn a_key_is_found_by_its_name() {
    let (bank, post) = (key(), key());
    let named =
        |kid: &str, key: &SigningKey| public(key).to_json().replacen('{', &format!(r#"{{"kid":"{kid}","#), 1);
    let set = format!(r#"{{"keys":[{},{}]}}"#, named("post", &post), named("bank", &bank));
    let trusted = Trusted::read(&set).unwrap();
    let token =
        |kid: &str, key: &SigningKey| signed(&format!(r#"{{"alg":"ES256","kid":"{kid}"}}"#), BANK, key);
    assert!(verify(&token("bank", &bank), &trusted).is_ok());
    assert!(verify(&sign(BANK, &bank).unwrap(), &trusted).is_ok(), "its thumbprint names it too");
    assert_eq!(verify(&token("post", &bank), &trusted), Err(ManifestError::UnknownKey("post".into())));
    assert_eq!(verify(&token("bank", &post), &trusted).unwrap_err(), ManifestError::Jws(JwsError::Signature));
}

#[test]
fn what_is_no_key_is_not_trusted() {
    let secret = r#"{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"c"}"#;
    for (text, why) in [
        ("", NoKeys::Form),
        ("[]", NoKeys::Form),
        (r#"{"keys":1}"#, NoKeys::Form),
        (r#"{"keys":[]}"#, NoKeys::Count),
        (secret, NoKeys::Key(seal::JwkError::Secret)),
        (r#"{"kty":"oct","crv":"none","k":"AAAA"}"#, NoKeys::Key(seal::JwkError::Kind)),
    ] {
        assert_eq!(Trusted::read(text).unwrap_err(), why, "{text}");
    }
}

#[test]
fn what_is_no_jws_is_told_as_such() {
    let key = key();
    assert_eq!(verify(BANK, &trusted(&key)), Err(ManifestError::Unsigned));
    for token in ["", ".", "..", "a.b", "a.b.c.d"] {
        assert!(matches!(verify(token, &trusted(&key)), Err(ManifestError::Jws(_))), "{token:?}");
    }
    let long = "a".repeat(aaep::manifest::LONGEST + 1);
    assert_eq!(verify(&long, &trusted(&key)), Err(ManifestError::TooLong));
}

fn offer(agent: &str, honored: &str) -> SubscriptionAccepted {
    let text = format!(
        r#"{{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{{"agent_id":"{agent}"}},"honored_capabilities":{honored}}}"#
    );
    match Message::parse(&text) {
        Some(Message::SubscriptionAccepted(accepted)) => accepted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_manifest_is_of_who_makes_the_offer() {
    let bank = read(BANK, Face::Receive).unwrap();
    assert_eq!(compare(&bank, &offer("bank", "{}"), "sse"), Ok(()));
    for other in ["evil", "Bank", "bank ", "bank2"] {
        let misfit = compare(&bank, &offer(other, "{}"), "sse").unwrap_err();
        assert_eq!(misfit, Misfit::Agent { manifest: "bank".to_owned(), offer: other.to_owned() });
        assert_eq!(misfit.to_string(), format!("is the manifest of bank, but {other} is who answers"));
    }
}

#[test]
fn what_a_manifest_claims_fits_what_is_offered() {
    let claims = r#""conformance_levels_supported":[1,2],"transports_supported":["HTTP+SSE"],"languages_supported":["en-GB","yo"],"extensions_supported":["urn:a"]"#;
    let text =
        BANK.replace(r#""conformance_levels_supported":[1,2,3],"transports_supported":["sse"]"#, claims);
    let bank = read(&text, Face::Receive).unwrap();
    for honored in [
        "{}",
        r#"{"supported_conformance_levels":[1,2],"languages":["en","YO-NG"],"supported_extensions":["urn:a"]}"#,
        r#"{"languages":[],"supported_extensions":[]}"#,
    ] {
        assert_eq!(compare(&bank, &offer("bank", honored), "sse"), Ok(()), "{honored}");
    }
    for (honored, transport, misfit) in [
        (r#"{"supported_conformance_levels":[1,2,3]}"#, "sse", Misfit::Level(3)),
        ("{}", "websocket", Misfit::Transport("websocket".to_owned())),
        (r#"{"languages":["yo","es"]}"#, "sse", Misfit::Language("es".to_owned())),
        (r#"{"supported_extensions":["urn:a","urn:b"]}"#, "sse", Misfit::Extension("urn:b".to_owned())),
    ] {
        assert_eq!(compare(&bank, &offer("bank", honored), transport), Err(misfit), "{honored}");
    }
    let mut later = offer("bank", "{}");
    later.aaep_version = "1.1.0".to_owned();
    assert_eq!(compare(&bank, &later, "sse"), Err(Misfit::Version("1.1.0".to_owned())));
    // What it leaves out, it does not deny.
    let silent = read(BANK, Face::Receive).unwrap();
    let honored =
        r#"{"supported_conformance_levels":[3],"languages":["es"],"supported_extensions":["urn:b"]}"#;
    assert_eq!(compare(&silent, &offer("bank", honored), "sse"), Ok(()));
}
