//! DPoP proofs: the examples of RFC 9449, invalid proofs, and the replay cache.

use proptest::prelude::*;
use seal::dpop::{Claims, DpopError, ReplayCache, ReplayError, create_proof, verify};
use seal::es256::{SigningKey, VerifyingKey};
use seal::jws::JwsError;
use seal::{Digest, Jwk, JwkError, base64url};
use testing::property::cases;

/// RFC 9449 §4.1, figure 2.
const TOKEN_REQUEST_PROOF: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwi\
    eCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5\
    IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNy\
    diI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCI\
    sImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTY\
    yMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiO\
    SsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
/// RFC 9449 §7.1: a proof with the claim `ath`, which this crate ignores.
const RESOURCE_REQUEST_PROOF: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwi\
    eCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5\
    IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNy\
    diI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiw\
    iaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJ\
    jZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHh\
    XWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA\
    1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA";

fn published_key() -> VerifyingKey {
    VerifyingKey::from_coordinates(
        &base64url::decode("l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs").unwrap(),
        &base64url::decode("9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA").unwrap(),
    )
    .unwrap()
}

fn key() -> SigningKey {
    SigningKey::from_secret(&[7; 32]).unwrap()
}

fn claims() -> Claims {
    Claims {
        jti: "n-1".to_owned(),
        htm: "inform".to_owned(),
        htu: "asp:session".to_owned(),
        iat: 1_700_000_000,
        mh: Some(Digest::of(b"message")),
    }
}

/// Signs a proof with any header and any claims.
fn sign_raw(key: &SigningKey, header: &str, claims: &[u8]) -> String {
    let input = format!("{}.{}", base64url::encode(header.as_bytes()), base64url::encode(claims));
    let signature = base64url::encode(&key.sign(input.as_bytes()).unwrap());
    format!("{input}.{signature}")
}

fn jwk_json(key: &SigningKey) -> String {
    Jwk::P256(key.verifying_key().clone()).to_json()
}

/// Signs a proof with these claims and verifies it.
fn verify_claims(claims: &[u8]) -> Result<Claims, DpopError> {
    let header = format!(r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{}}}"#, jwk_json(&key()));
    verify(&sign_raw(&key(), &header, claims), key().verifying_key())
}

/// Signs a proof with this header and verifies it.
fn verify_header(header: &str) -> Result<Claims, DpopError> {
    let claims = br#"{"htm":"m","htu":"u","iat":1,"jti":"j"}"#;
    verify(&sign_raw(&key(), header, claims), key().verifying_key())
}

#[test]
fn the_rfc_9449_proofs_verify_with_their_key() {
    let expected = Claims {
        jti: "-BwC3ESc6acc2lTc".to_owned(),
        htm: "POST".to_owned(),
        htu: "https://server.example.com/token".to_owned(),
        iat: 1_562_262_616,
        mh: None,
    };
    assert_eq!(verify(TOKEN_REQUEST_PROOF, &published_key()), Ok(expected));
    let expected = Claims {
        jti: "e1j3V_bKic8-LAEB".to_owned(),
        htm: "GET".to_owned(),
        htu: "https://resource.example.org/protectedresource".to_owned(),
        iat: 1_562_262_618,
        mh: None,
    };
    assert_eq!(verify(RESOURCE_REQUEST_PROOF, &published_key()), Ok(expected));
    // RFC 9449 §6.1 binds a token to this key by its thumbprint.
    let thumbprint = Jwk::P256(published_key()).thumbprint();
    assert_eq!(thumbprint, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
}

#[test]
fn a_created_proof_verifies_with_its_claims() {
    for mh in [None, Some(Digest::of(b"m"))] {
        let claims = Claims { jti: "\"\\\n\u{1}é😀".to_owned(), iat: -5, mh, ..claims() };
        let proof = create_proof(&key(), &claims).unwrap();
        assert_eq!(verify(&proof, key().verifying_key()), Ok(claims));
    }
}

#[test]
fn every_changed_character_is_detected() {
    let key = published_key();
    let token = TOKEN_REQUEST_PROOF.as_bytes();
    for at in 0..token.len() {
        for other in *b"AQgw9-_.=" {
            if other != token[at] {
                let mut changed = token.to_vec();
                changed[at] = other;
                let changed = String::from_utf8(changed).unwrap();
                assert!(verify(&changed, &key).is_err(), "{} at {at}", char::from(other));
            }
        }
    }
}

#[test]
fn a_proof_made_with_another_key_is_refused() {
    let other_key = SigningKey::from_secret(&[8; 32]).unwrap();
    let proof = create_proof(&other_key, &claims()).unwrap();
    assert_eq!(
        verify(&proof, key().verifying_key()),
        Err(DpopError::InvalidToken(JwsError::InvalidSignature))
    );
    assert_eq!(
        verify(TOKEN_REQUEST_PROOF, key().verifying_key()),
        Err(DpopError::InvalidToken(JwsError::InvalidSignature))
    );
    // The proof is signed with the known key but contains another key, so it proves nothing.
    let header = format!(r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{}}}"#, jwk_json(&other_key));
    assert_eq!(verify_header(&header), Err(DpopError::WrongKey));
}

#[test]
fn a_proof_must_contain_its_key() {
    assert_eq!(verify_header(r#"{"typ":"dpop+jwt","alg":"ES256"}"#), Err(DpopError::WrongKey));
    for jwk in ["null", "[]", "\"key\"", "{}"] {
        let header = format!(r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{jwk}}}"#);
        assert_eq!(
            verify_header(&header),
            Err(DpopError::InvalidToken(JwsError::InvalidKey(JwkError::Malformed))),
            "{jwk}"
        );
    }
}

#[test]
fn a_proof_that_contains_a_secret_key_is_refused() {
    let secret = jwk_json(&key()).replacen('{', r#"{"d":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc","#, 1);
    let header = format!(r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{secret}}}"#);
    assert_eq!(
        verify_header(&header),
        Err(DpopError::InvalidToken(JwsError::InvalidKey(JwkError::ContainsSecret)))
    );
}

#[test]
fn a_wrong_type_is_refused() {
    let header = |typ: &str| format!(r#"{{{typ}"alg":"ES256","jwk":{}}}"#, jwk_json(&key()));
    assert!(verify_header(&header(r#""typ":"dpop+jwt","#)).is_ok());
    for typ in ["", r#""typ":"","#, r#""typ":"JWT","#, r#""typ":"dpop","#, r#""typ":"at+jwt","#] {
        assert_eq!(verify_header(&header(typ)), Err(DpopError::WrongType), "{typ}");
    }
    for typ in [r#""typ":null,"#, r#""typ":["dpop+jwt"],"#, r#""typ":"dpop+jwt","typ":"dpop+jwt","#] {
        assert_eq!(verify_header(&header(typ)), Err(DpopError::InvalidToken(JwsError::Malformed)), "{typ}");
    }
}

#[test]
fn every_claim_must_be_present_once_and_valid() {
    let valid_claims = [("htm", "\"m\""), ("htu", "\"u\""), ("iat", "1"), ("jti", "\"j\"")];
    let to_json = |members: &[(&str, &str)]| {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(verify_claims(to_json(&valid_claims).as_bytes()).is_ok());
    for (index, (name, value)) in valid_claims.into_iter().enumerate() {
        let mut missing = valid_claims.to_vec();
        missing.remove(index);
        assert_eq!(
            verify_claims(to_json(&missing).as_bytes()),
            Err(DpopError::InvalidClaim(name)),
            "no {name}"
        );
        let escaped = format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]);
        for repeated in [name, &escaped] {
            let mut duplicated = valid_claims.to_vec();
            duplicated.push((repeated, value));
            assert_eq!(
                verify_claims(to_json(&duplicated).as_bytes()),
                Err(DpopError::InvalidClaim(name)),
                "two {repeated}"
            );
        }
        for wrong in ["null", "true", "\"\"", "[]", "{}", "[1]", "1.5", "1e30", "99999999999999999999"] {
            let mut changed = valid_claims.to_vec();
            changed[index].1 = wrong;
            assert_eq!(
                verify_claims(to_json(&changed).as_bytes()),
                Err(DpopError::InvalidClaim(name)),
                "{name} {wrong}"
            );
        }
    }
    let mut changed = valid_claims.to_vec();
    changed[2].1 = "\"1\"";
    assert_eq!(verify_claims(to_json(&changed).as_bytes()), Err(DpopError::InvalidClaim("iat")));
}

#[test]
fn the_hash_of_the_message_is_a_digest_or_absent() {
    let verify_with_mh =
        |mh: &str| verify_claims(format!(r#"{{"htm":"m","htu":"u","iat":1,"jti":"j"{mh}}}"#).as_bytes());
    let digest = Digest::of(b"m");
    assert_eq!(verify_with_mh("").unwrap().mh, None);
    assert_eq!(verify_with_mh(&format!(r#","mh":"{digest}""#)).unwrap().mh, Some(digest));
    let upper_case_digits = digest.to_string().replace("sha256:", "").to_uppercase();
    for wrong in [
        r#","mh":null"#.to_owned(),
        r#","mh":"""#.to_owned(),
        r#","mh":1"#.to_owned(),
        format!(r#","mh":"sha256:{upper_case_digits}""#),
        format!(r#","mh":"{digest}0""#),
        format!(r#","mh":"{digest}","mh":"{digest}""#),
        format!(r#","mh":"{digest}","m\u0068":"{digest}""#),
    ] {
        assert_eq!(verify_with_mh(&wrong), Err(DpopError::InvalidClaim("mh")), "{wrong}");
    }
}

#[test]
fn claims_must_be_an_object() {
    for claims in [&b"null"[..], b"[]", b"\"jti\"", b"{", b"{} {}", b"\xff", b" "] {
        assert_eq!(verify_claims(claims), Err(DpopError::InvalidClaimSet), "{claims:?}");
    }
}

#[test]
fn an_id_is_accepted_once_within_the_window() {
    let mut cache = ReplayCache::new(60, 10);
    assert!(cache.is_empty() && !cache.contains("a"));
    assert_eq!(cache.insert("a", 1000), Ok(()));
    assert!(cache.contains("a") && !cache.contains("b"));
    for now in [1000, 1001, 1059, 1060] {
        assert_eq!(cache.insert("a", now), Err(ReplayError::Replayed), "{now}");
    }
    assert_eq!(cache.insert("a", 1061), Ok(()));
    assert_eq!(cache.insert("a", 1061), Err(ReplayError::Replayed));
    assert_eq!(cache.len(), 1);
}

#[test]
fn a_full_cache_refuses_new_ids_and_keeps_old_ones() {
    let mut cache = ReplayCache::new(60, 2);
    assert_eq!(cache.insert("a", 0), Ok(()));
    assert_eq!(cache.insert("b", 30), Ok(()));
    assert_eq!(cache.insert("c", 31), Err(ReplayError::Full));
    assert_eq!(cache.insert("a", 31), Err(ReplayError::Replayed));
    assert_eq!(cache.insert("b", 31), Err(ReplayError::Replayed));
    // A rejected id is not remembered.
    assert!(!cache.contains("c"));
    assert_eq!(cache.insert("c", 61), Ok(()));
    assert_eq!(cache.insert("b", 61), Err(ReplayError::Replayed));
    assert_eq!(ReplayCache::new(60, 0).insert("a", 0), Err(ReplayError::Full));
}

#[test]
fn a_clock_that_goes_back_does_not_expire_ids_early() {
    let mut cache = ReplayCache::new(60, 10);
    assert_eq!(cache.insert("late", 1000), Ok(()));
    // This id is inserted after the clock went back. It is remembered for a whole window after the latest time.
    assert_eq!(cache.insert("early", 500), Ok(()));
    for now in [500, 561, 1000, 1060, 0] {
        assert_eq!(cache.insert("early", now), Err(ReplayError::Replayed), "{now}");
        assert_eq!(cache.insert("late", now), Err(ReplayError::Replayed), "{now}");
    }
    assert_eq!(cache.insert("early", 1061), Ok(()));
}

#[test]
fn extreme_times_do_not_overflow() {
    let mut cache = ReplayCache::new(i64::MAX, 3);
    for (name, now) in [("a", i64::MIN), ("b", 0), ("c", i64::MAX)] {
        assert_eq!(cache.insert(name, now), Ok(()));
        assert_eq!(cache.insert(name, now), Err(ReplayError::Replayed));
    }
}

#[test]
fn long_and_similar_ids_are_distinguished() {
    let mut cache = ReplayCache::new(60, 10);
    let long = "x".repeat(100_000);
    for name in [&long[..], &long[1..], "", "a", "A", "a ", "a\0"] {
        assert_eq!(cache.insert(name, 0), Ok(()), "{} characters", name.len());
        assert_eq!(cache.insert(name, 0), Err(ReplayError::Replayed), "{} characters", name.len());
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn the_cache_behaves_like_a_list_of_accepted_ids(
        window in 0_i64..8,
        capacity in 0_usize..6,
        steps in proptest::collection::vec((0_u8..8, -3_i64..6), 0..80),
    ) {
        let mut cache = ReplayCache::new(window, capacity);
        let mut accepted: Vec<(u8, i64)> = Vec::new();
        let (mut clock, mut latest) = (0, i64::MIN);
        for (name, step) in steps {
            clock += step;
            latest = latest.max(clock);
            let remembered: Vec<u8> =
                accepted.iter().filter(|(_, when)| when + window >= latest).map(|(name, _)| *name).collect();
            prop_assert_eq!(cache.is_full(clock), remembered.len() >= capacity);
            let expected = if remembered.contains(&name) {
                Err(ReplayError::Replayed)
            } else if remembered.len() >= capacity {
                Err(ReplayError::Full)
            } else {
                accepted.push((name, latest));
                Ok(())
            };
            prop_assert_eq!(cache.insert(&name.to_string(), clock), expected);
            prop_assert_eq!(cache.len(), remembered.len() + usize::from(expected.is_ok()));
            prop_assert!(cache.len() <= capacity);
            prop_assert_eq!(cache.is_empty(), remembered.is_empty() && expected.is_err());
            for name in 0..8 {
                let is_remembered = remembered.contains(&name) || accepted.last() == Some(&(name, latest));
                prop_assert_eq!(cache.contains(&name.to_string()), is_remembered, "{}", name);
            }
        }
    }
}

#[test]
fn the_error_chain_leads_to_the_cause() {
    let error = DpopError::InvalidToken(JwsError::InvalidKey(JwkError::ContainsSecret));
    let first: &dyn std::error::Error = &error;
    let chain: Vec<_> =
        std::iter::successors(Some(first), |error| error.source()).map(ToString::to_string).collect();
    let secret = "contains a secret key (d); publish only the public key";
    let key = format!("has a key (jwk) that {secret}");
    assert_eq!(chain, [format!("the DPoP proof {key}"), key, secret.to_owned()]);
}
