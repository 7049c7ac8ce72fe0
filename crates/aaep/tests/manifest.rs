//! Signed manifests: which producer they belong to, and which signatures are rejected.

use aaep::event::InvalidStates;
use aaep::manifest::{
    ManifestDocument, ManifestError, ManifestExtensionError, MultiAgentPattern, OfferMismatch, TrustedKeys,
    TrustedKeysError, check_offer, parse, sign, verify,
};
use aaep::message::{Message, SubscriptionAccepted};
use aaep::rule::ValidationMode;
use seal::es256::SigningKey;
use seal::jws::{self, JwsError, JwsHeader, JwsSigner};
use seal::{Jwk, SystemRandom, base64url, ed25519};

const BANK_MANIFEST: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"]}"#;

fn generate_key() -> SigningKey {
    SigningKey::generate(&mut SystemRandom)
}

fn public_jwk(key: &SigningKey) -> Jwk {
    Jwk::P256(key.verifying_key().clone())
}

fn trusted_keys(key: &SigningKey) -> TrustedKeys {
    TrustedKeys::from_key(public_jwk(key))
}

/// Returns a token with this header, payload and signature.
fn assemble_token(header: &str, payload: &str, signature: &[u8]) -> String {
    [header.as_bytes(), payload.as_bytes(), signature].map(base64url::encode).join(".")
}

/// Returns a correctly signed token with any header.
fn sign_with_header(header: &str, payload: &str, key: &SigningKey) -> String {
    let input = [header, payload].map(|part| base64url::encode(part.as_bytes())).join(".");
    let signature = base64url::encode(&key.sign(input.as_bytes()).unwrap());
    format!("{input}.{signature}")
}

#[test]
fn the_payload_is_the_exact_manifest_and_the_header_names_the_key() {
    let key = generate_key();
    let with_spaces =
        BANK_MANIFEST.replace(':', " : ").replace(" : //", "://").replace("aaep : producer", "aaep:producer");
    for text in [BANK_MANIFEST, &with_spaces] {
        let token = sign(text, &key).unwrap();
        let parts: Vec<_> = token
            .split('.')
            .map(|part| String::from_utf8_lossy(&base64url::decode(part).unwrap()).into_owned())
            .collect();
        assert_eq!(parts[0], format!(r#"{{"alg":"ES256","kid":"{}"}}"#, public_jwk(&key).thumbprint()));
        assert_eq!(parts[1], text);
        assert_eq!(verify(&token, &trusted_keys(&key)).unwrap().agent_id, "bank");
    }
}

#[test]
fn a_manifest_that_breaks_a_rule_is_neither_signed_nor_accepted() {
    let key = generate_key();
    for (text, rule) in [
        (BANK_MANIFEST.replace(r#""agent_id":"bank","#, ""), "AAEP-5.10.1-1"),
        (BANK_MANIFEST.replace(r#"["1.0.0"]"#, "[]"), "AAEP-12.5.3-1"),
        (BANK_MANIFEST.replace(r#""sse""#, r#""sse","sse""#), "AAEP-5.10.1-1"),
    ] {
        let refused = [
            sign(&text, &key).unwrap_err(),
            verify(&sign_with_header(r#"{"alg":"ES256"}"#, &text, &key), &trusted_keys(&key)).unwrap_err(),
        ];
        for error in refused {
            let ManifestError::RuleViolations(findings) = &error else { panic!("{error:?}") };
            assert_eq!(findings[0].rule.id(), rule, "{text}");
        }
    }
    // Other documents cannot be signed as manifests.
    for text in
        ["", "[]", r#"{"type":"subscription.close","subscription_id":"sub_1"}"#, r#"{"agent_id":"bank"}"#]
    {
        assert!(matches!(sign(text, &key), Err(ManifestError::RuleViolations(_))), "{text}");
    }
}

#[test]
fn any_change_to_a_signed_manifest_is_detected() {
    let key = generate_key();
    let token = sign(BANK_MANIFEST, &key).unwrap();
    let (rest, signature) = token.rsplit_once('.').unwrap();
    let changed_manifest = BANK_MANIFEST.replace("bank", "bunk");
    let header = rest.split_once('.').unwrap().0;
    let tampered = format!("{header}.{}.{signature}", base64url::encode(changed_manifest.as_bytes()));
    assert_eq!(verify(&tampered, &trusted_keys(&key)), Err(ManifestError::Jws(JwsError::InvalidSignature)));
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        assert!(verify(&String::from_utf8(bytes).unwrap(), &trusted_keys(&key)).is_err(), "byte {at}");
    }
}

#[test]
fn a_manifest_signed_with_another_key_is_rejected() {
    let (bank, eve) = (generate_key(), generate_key());
    let token = sign(BANK_MANIFEST, &eve).unwrap();
    assert_eq!(verify(&token, &trusted_keys(&bank)), Err(ManifestError::Jws(JwsError::InvalidSignature)));
}

#[test]
fn the_key_determines_the_algorithm_not_the_header() {
    let key = generate_key();
    for (alg, signature) in
        [("none", &b""[..]), ("None", b""), ("HS256", &[0; 32]), ("RS256", &[0; 256]), ("ES384", &[0; 96])]
    {
        let token = assemble_token(&format!(r#"{{"alg":"{alg}"}}"#), BANK_MANIFEST, signature);
        let refused = verify(&token, &trusted_keys(&key)).unwrap_err();
        assert_eq!(refused, ManifestError::Jws(JwsError::WrongAlgorithm(alg.to_owned())));
    }
    // A valid signature under a wrong algorithm name, as in the HMAC-with-public-key attack.
    let token = sign_with_header(r#"{"alg":"HS256"}"#, BANK_MANIFEST, &key);
    assert_eq!(
        verify(&token, &trusted_keys(&key)),
        Err(ManifestError::Jws(JwsError::WrongAlgorithm("HS256".into())))
    );
    let ed25519_key = ed25519::SigningKey::generate(&mut SystemRandom);
    let token =
        jws::sign(JwsSigner::Ed25519(&ed25519_key), &JwsHeader::default(), BANK_MANIFEST.as_bytes()).unwrap();
    assert_eq!(
        verify(&token, &trusted_keys(&key)),
        Err(ManifestError::Jws(JwsError::WrongAlgorithm("EdDSA".into())))
    );
    let trusted_ed25519_key = TrustedKeys::from_key(Jwk::Ed25519(ed25519_key.verifying_key()));
    assert_eq!(
        verify(&token, &trusted_ed25519_key).unwrap().agent_id,
        "bank",
        "EdDSA is accepted from a trusted Ed25519 key (§10.4.1)"
    );
}

#[test]
fn a_key_embedded_in_the_header_is_not_trusted() {
    let (bank, eve) = (generate_key(), generate_key());
    let embedded_key = public_jwk(&eve).to_json();
    let self_signed =
        sign_with_header(&format!(r#"{{"alg":"ES256","jwk":{embedded_key}}}"#), BANK_MANIFEST, &eve);
    assert_eq!(
        verify(&self_signed, &trusted_keys(&bank)),
        Err(ManifestError::Jws(JwsError::InvalidSignature))
    );
    for header in [
        format!(r#"{{"alg":"ES256","jwk":{embedded_key}}}"#),
        r#"{"alg":"ES256","x5c":["MIIB"]}"#.to_owned(),
        r#"{"alg":"ES256","jku":"https://example.org/keys"}"#.to_owned(),
        r#"{"alg":"ES256","x5u":"https://example.org/cert"}"#.to_owned(),
    ] {
        assert_eq!(
            verify(&sign_with_header(&header, BANK_MANIFEST, &bank), &trusted_keys(&bank)),
            Err(ManifestError::EmbeddedKey),
            "{header}"
        );
    }
    let with_trusted_key = format!(r#"{{"alg":"ES256","jwk":{}}}"#, public_jwk(&bank).to_json());
    assert!(
        verify(&sign_with_header(&with_trusted_key, BANK_MANIFEST, &bank), &trusted_keys(&bank)).is_ok(),
        "an embedded key that is trusted anyway is allowed"
    );
    // A header that is marked as critical must be supported.
    let critical = sign_with_header(r#"{"alg":"ES256","crit":["exp"],"exp":1}"#, BANK_MANIFEST, &bank);
    assert_eq!(
        verify(&critical, &trusted_keys(&bank)),
        Err(ManifestError::Jws(JwsError::UnsupportedCritical))
    );
}

#[test]
fn a_key_is_found_by_its_id() {
    let (bank, shop) = (generate_key(), generate_key());
    let with_kid = |kid: &str, key: &SigningKey| {
        public_jwk(key).to_json().replacen('{', &format!(r#"{{"kid":"{kid}","#), 1)
    };
    let set = format!(r#"{{"keys":[{},{}]}}"#, with_kid("shop", &shop), with_kid("bank", &bank));
    let trusted_keys = TrustedKeys::read(&set).unwrap();
    let token = |kid: &str, key: &SigningKey| {
        sign_with_header(&format!(r#"{{"alg":"ES256","kid":"{kid}"}}"#), BANK_MANIFEST, key)
    };
    assert!(verify(&token("bank", &bank), &trusted_keys).is_ok());
    assert!(
        verify(&sign(BANK_MANIFEST, &bank).unwrap(), &trusted_keys).is_ok(),
        "a key is also found by its thumbprint"
    );
    assert_eq!(verify(&token("shop", &bank), &trusted_keys), Err(ManifestError::UnknownKey("shop".into())));
    assert_eq!(
        verify(&token("bank", &shop), &trusted_keys).unwrap_err(),
        ManifestError::Jws(JwsError::InvalidSignature)
    );
}

#[test]
fn an_invalid_key_is_not_trusted() {
    let private_key = r#"{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"c"}"#;
    for (text, error) in [
        ("", TrustedKeysError::Malformed),
        ("[]", TrustedKeysError::Malformed),
        (r#"{"keys":1}"#, TrustedKeysError::Malformed),
        (r#"{"keys":[]}"#, TrustedKeysError::Count),
        (private_key, TrustedKeysError::Key(seal::JwkError::ContainsSecret)),
        (r#"{"kty":"oct","crv":"none","k":"AAAA"}"#, TrustedKeysError::Key(seal::JwkError::UnsupportedType)),
    ] {
        assert_eq!(TrustedKeys::read(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn a_malformed_jws_is_reported() {
    let key = generate_key();
    assert_eq!(verify(BANK_MANIFEST, &trusted_keys(&key)), Err(ManifestError::Unsigned));
    for token in ["", ".", "..", "a.b", "a.b.c.d"] {
        assert!(matches!(verify(token, &trusted_keys(&key)), Err(ManifestError::Jws(_))), "{token:?}");
    }
    let long = "a".repeat(aaep::manifest::MAX_SIGNED_BYTES + 1);
    assert_eq!(verify(&long, &trusted_keys(&key)), Err(ManifestError::TooLong));
}

fn accepted(agent: &str, honored: &str) -> SubscriptionAccepted {
    let text = format!(
        r#"{{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{{"agent_id":"{agent}"}},"honored_capabilities":{honored}}}"#
    );
    match Message::parse(&text) {
        Some(Message::SubscriptionAccepted(accepted)) => accepted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_document_is_json_or_a_jws_with_the_same_content() {
    let unsigned = ManifestDocument::parse(&format!(" {BANK_MANIFEST}\n")).unwrap();
    assert_eq!((unsigned.json.as_str(), &unsigned.signed), (BANK_MANIFEST, &None));
    let token = sign(BANK_MANIFEST, &generate_key()).unwrap();
    let signed = ManifestDocument::parse(&token).unwrap();
    assert_eq!((&signed.json, &signed.manifest), (&unsigned.json, &unsigned.manifest));
    assert_eq!(signed.signed, Some(token));
    for (invalid, error) in [
        ("", JwsError::Malformed),
        ("a.b", JwsError::Malformed),
        ("a.b.c.d", JwsError::Malformed),
        ("a.***.c", JwsError::Malformed),
    ] {
        assert_eq!(ManifestDocument::parse(invalid), Err(ManifestError::Jws(error)), "{invalid}");
    }
    assert_eq!(
        ManifestDocument::parse(&format!("a.{}.c", base64url::encode(&[0xff]))),
        Err(ManifestError::NotUtf8)
    );
    assert!(matches!(ManifestDocument::parse("{}"), Err(ManifestError::RuleViolations(_))));
    assert_eq!(ManifestDocument::parse(&"x".repeat(64 * 1024 + 1)), Err(ManifestError::TooLong));
}

#[test]
fn states_and_the_multi_agent_pattern_are_checked() {
    let parse_with = |sayso: &str| {
        let extension = format!(r#","extensions":{{"sayso":{sayso}}}}}"#);
        let text = format!("{}{extension}", BANK_MANIFEST.strip_suffix('}').unwrap());
        ManifestDocument::parse(&text).map(|document| document.extension)
    };
    let states = r#"{"states":[{"state":"auditing","words":{"en":"Checking."}}],"other":1}"#;
    assert_eq!(parse_with(states).unwrap().states[0].state, "auditing");
    let patterns = parse_with(r#"{"multi_agent":["shared_session","linked_sessions"]}"#).unwrap().multi_agent;
    assert_eq!(patterns, [MultiAgentPattern::SharedSession, MultiAgentPattern::LinkedSessions]);
    for (sayso, error) in [
        (r#"{"states":{}}"#, ManifestExtensionError::States(InvalidStates::Malformed)),
        (
            r#"{"states":[{"state":"","words":{"en":"Checking."}}]}"#,
            ManifestExtensionError::States(InvalidStates::NameLength),
        ),
        (r#"{"multi_agent":["swarm"]}"#, ManifestExtensionError::Malformed("multi_agent")),
        (r#"{"multi_agent":"linked_sessions"}"#, ManifestExtensionError::Malformed("multi_agent")),
    ] {
        assert_eq!(parse_with(sayso), Err(ManifestError::Extension(error)), "{sayso}");
    }
}

#[test]
fn the_manifest_must_name_the_agent_that_accepts_the_subscription() {
    let bank = parse(BANK_MANIFEST, ValidationMode::Receive).unwrap();
    assert_eq!(check_offer(&bank, &accepted("bank", "{}"), "sse"), Ok(()));
    for other in ["evil", "Bank", "bank ", "bank2"] {
        let mismatch = check_offer(&bank, &accepted(other, "{}"), "sse").unwrap_err();
        assert_eq!(mismatch, OfferMismatch::Agent { manifest: "bank".to_owned(), offer: other.to_owned() });
        assert_eq!(
            mismatch.to_string(),
            format!("is the manifest of bank, but {other} accepted the subscription")
        );
    }
}

#[test]
fn the_offer_must_match_the_claims_of_the_manifest() {
    let claims = r#""conformance_levels_supported":[1,2],"transports_supported":["HTTP+SSE"],"languages_supported":["en-GB","yo"],"extensions_supported":["urn:a"]"#;
    let text = BANK_MANIFEST
        .replace(r#""conformance_levels_supported":[1,2,3],"transports_supported":["sse"]"#, claims);
    let bank = parse(&text, ValidationMode::Receive).unwrap();
    for honored in [
        "{}",
        r#"{"supported_conformance_levels":[1,2],"languages":["en","YO-NG"],"supported_extensions":["urn:a"]}"#,
        r#"{"languages":[],"supported_extensions":[]}"#,
    ] {
        assert_eq!(check_offer(&bank, &accepted("bank", honored), "sse"), Ok(()), "{honored}");
    }
    for (honored, transport, mismatch) in [
        (r#"{"supported_conformance_levels":[1,2,3]}"#, "sse", OfferMismatch::Level(3)),
        ("{}", "websocket", OfferMismatch::Transport("websocket".to_owned())),
        (r#"{"languages":["yo","es"]}"#, "sse", OfferMismatch::Language("es".to_owned())),
        (
            r#"{"supported_extensions":["urn:a","urn:b"]}"#,
            "sse",
            OfferMismatch::Extension("urn:b".to_owned()),
        ),
    ] {
        assert_eq!(check_offer(&bank, &accepted("bank", honored), transport), Err(mismatch), "{honored}");
    }
    let mut newer_offer = accepted("bank", "{}");
    newer_offer.aaep_version = "1.1.0".to_owned();
    assert_eq!(check_offer(&bank, &newer_offer, "sse"), Err(OfferMismatch::Version("1.1.0".to_owned())));
    // This manifest makes no claims about languages and extensions, so they are not checked.
    let without_claims = parse(BANK_MANIFEST, ValidationMode::Receive).unwrap();
    let honored =
        r#"{"supported_conformance_levels":[3],"languages":["es"],"supported_extensions":["urn:b"]}"#;
    assert_eq!(check_offer(&without_claims, &accepted("bank", honored), "sse"), Ok(()));
}
