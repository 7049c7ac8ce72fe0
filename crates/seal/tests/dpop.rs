//! DPoP proofs: those of RFC 9449, what is no proof, and the memory against replays.

use proptest::prelude::*;
use seal::dpop::{Claims, DpopError, ReplayError, Replays, prove, verify};
use seal::es256::{SigningKey, VerifyingKey};
use seal::jws::JwsError;
use seal::{Digest, Jwk, JwkError, base64url};
use testing::property::cases;

/// RFC 9449 §4.1, figure 2.
const FOR_A_TOKEN: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwi\
    eCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5\
    IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNy\
    diI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCI\
    sImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTY\
    yMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiO\
    SsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
/// RFC 9449 §7.1: with the claim `ath`, which means nothing here.
const FOR_A_RESOURCE: &str = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwi\
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

/// A proof with any header and any claims, signed well.
fn signed(key: &SigningKey, header: &str, claims: &[u8]) -> String {
    let input = format!("{}.{}", base64url::encode(header.as_bytes()), base64url::encode(claims));
    let signature = base64url::encode(&key.sign(input.as_bytes()).unwrap());
    format!("{input}.{signature}")
}

fn jwk(key: &SigningKey) -> String {
    Jwk::P256(key.verifying_key().clone()).to_json()
}

fn with_claims(claims: &[u8]) -> Result<Claims, DpopError> {
    let header = format!(r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{}}}"#, jwk(&key()));
    verify(&signed(&key(), &header, claims), key().verifying_key())
}

fn with_header(header: &str) -> Result<Claims, DpopError> {
    let claims = br#"{"htm":"m","htu":"u","iat":1,"jti":"j"}"#;
    verify(&signed(&key(), header, claims), key().verifying_key())
}

#[test]
fn the_proofs_of_rfc_9449_verify_with_their_own_key() {
    let expected = Claims {
        jti: "-BwC3ESc6acc2lTc".to_owned(),
        htm: "POST".to_owned(),
        htu: "https://server.example.com/token".to_owned(),
        iat: 1_562_262_616,
        mh: None,
    };
    assert_eq!(verify(FOR_A_TOKEN, &published_key()), Ok(expected));
    let expected = Claims {
        jti: "e1j3V_bKic8-LAEB".to_owned(),
        htm: "GET".to_owned(),
        htu: "https://resource.example.org/protectedresource".to_owned(),
        iat: 1_562_262_618,
        mh: None,
    };
    assert_eq!(verify(FOR_A_RESOURCE, &published_key()), Ok(expected));
    // §6.1 binds a token to this key by its thumbprint.
    let thumbprint = Jwk::P256(published_key()).thumbprint();
    assert_eq!(thumbprint, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
}

#[test]
fn a_proof_that_is_made_verifies_with_its_claims() {
    for mh in [None, Some(Digest::of(b"m"))] {
        let claims = Claims { jti: "\"\\\n\u{1}é😀".to_owned(), iat: -5, mh, ..claims() };
        let proof = prove(&key(), &claims).unwrap();
        assert_eq!(verify(&proof, key().verifying_key()), Ok(claims));
    }
}

#[test]
fn every_changed_character_is_noticed() {
    let key = published_key();
    let token = FOR_A_TOKEN.as_bytes();
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
fn a_proof_of_another_key_is_refused() {
    let stranger = SigningKey::from_secret(&[8; 32]).unwrap();
    let proof = prove(&stranger, &claims()).unwrap();
    assert_eq!(verify(&proof, key().verifying_key()), Err(DpopError::Token(JwsError::Signature)));
    assert_eq!(verify(FOR_A_TOKEN, key().verifying_key()), Err(DpopError::Token(JwsError::Signature)));
    // The known key signs, but the proof speaks of another: it shows possession of nothing.
    let header = format!(r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{}}}"#, jwk(&stranger));
    assert_eq!(with_header(&header), Err(DpopError::Key));
}

#[test]
fn a_proof_must_carry_its_key() {
    assert_eq!(with_header(r#"{"typ":"dpop+jwt","alg":"ES256"}"#), Err(DpopError::Key));
    for jwk in ["null", "[]", "\"key\"", "{}"] {
        let header = format!(r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{jwk}}}"#);
        assert_eq!(with_header(&header), Err(DpopError::Token(JwsError::Key(JwkError::Form))), "{jwk}");
    }
}

#[test]
fn a_proof_that_gives_its_secret_away_is_refused() {
    let secret = jwk(&key()).replacen('{', r#"{"d":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc","#, 1);
    let header = format!(r#"{{"typ":"dpop+jwt","alg":"ES256","jwk":{secret}}}"#);
    assert_eq!(with_header(&header), Err(DpopError::Token(JwsError::Key(JwkError::Secret))));
}

#[test]
fn another_type_is_refused() {
    let header = |typ: &str| format!(r#"{{{typ}"alg":"ES256","jwk":{}}}"#, jwk(&key()));
    assert!(with_header(&header(r#""typ":"dpop+jwt","#)).is_ok());
    for typ in ["", r#""typ":"","#, r#""typ":"JWT","#, r#""typ":"dpop","#, r#""typ":"at+jwt","#] {
        assert_eq!(with_header(&header(typ)), Err(DpopError::Type), "{typ}");
    }
    for typ in [r#""typ":null,"#, r#""typ":["dpop+jwt"],"#, r#""typ":"dpop+jwt","typ":"dpop+jwt","#] {
        assert_eq!(with_header(&header(typ)), Err(DpopError::Token(JwsError::Form)), "{typ}");
    }
}

#[test]
fn every_claim_must_be_there_once_and_be_what_it_should() {
    let all = [("htm", "\"m\""), ("htu", "\"u\""), ("iat", "1"), ("jti", "\"j\"")];
    let text = |members: &[(&str, &str)]| {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    };
    assert!(with_claims(text(&all).as_bytes()).is_ok());
    for (at, (name, value)) in all.into_iter().enumerate() {
        let mut missing = all.to_vec();
        missing.remove(at);
        assert_eq!(with_claims(text(&missing).as_bytes()), Err(DpopError::Claim(name)), "no {name}");
        let escaped = format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]);
        for again in [name, &escaped] {
            let mut doubled = all.to_vec();
            doubled.push((again, value));
            assert_eq!(with_claims(text(&doubled).as_bytes()), Err(DpopError::Claim(name)), "two {again}");
        }
        for wrong in ["null", "true", "\"\"", "[]", "{}", "[1]", "1.5", "1e30", "99999999999999999999"] {
            let mut other = all.to_vec();
            other[at].1 = wrong;
            assert_eq!(with_claims(text(&other).as_bytes()), Err(DpopError::Claim(name)), "{name} {wrong}");
        }
    }
    let mut other = all.to_vec();
    other[2].1 = "\"1\"";
    assert_eq!(with_claims(text(&other).as_bytes()), Err(DpopError::Claim("iat")));
}

#[test]
fn the_hash_of_the_message_is_a_digest_or_absent() {
    let with = |mh: &str| with_claims(format!(r#"{{"htm":"m","htu":"u","iat":1,"jti":"j"{mh}}}"#).as_bytes());
    let digest = Digest::of(b"m");
    assert_eq!(with("").unwrap().mh, None);
    assert_eq!(with(&format!(r#","mh":"{digest}""#)).unwrap().mh, Some(digest));
    let capital = digest.to_string().replace("sha256:", "").to_uppercase();
    for wrong in [
        r#","mh":null"#.to_owned(),
        r#","mh":"""#.to_owned(),
        r#","mh":1"#.to_owned(),
        format!(r#","mh":"sha256:{capital}""#),
        format!(r#","mh":"{digest}0""#),
        format!(r#","mh":"{digest}","mh":"{digest}""#),
        format!(r#","mh":"{digest}","m\u0068":"{digest}""#),
    ] {
        assert_eq!(with(&wrong), Err(DpopError::Claim("mh")), "{wrong}");
    }
}

#[test]
fn claims_that_are_no_object_are_refused() {
    for claims in [&b"null"[..], b"[]", b"\"jti\"", b"{", b"{} {}", b"\xff", b" "] {
        assert_eq!(with_claims(claims), Err(DpopError::Claim("set")), "{claims:?}");
    }
}

#[test]
fn a_name_is_taken_once_within_the_window() {
    let mut replays = Replays::new(60, 10);
    assert!(replays.is_empty() && !replays.has("a"));
    assert_eq!(replays.take("a", 1000), Ok(()));
    assert!(replays.has("a") && !replays.has("b"));
    for now in [1000, 1001, 1059, 1060] {
        assert_eq!(replays.take("a", now), Err(ReplayError::Replayed), "{now}");
    }
    assert_eq!(replays.take("a", 1061), Ok(()));
    assert_eq!(replays.take("a", 1061), Err(ReplayError::Replayed));
    assert_eq!(replays.len(), 1);
}

#[test]
fn a_full_memory_refuses_the_new_and_keeps_the_old() {
    let mut replays = Replays::new(60, 2);
    assert_eq!(replays.take("a", 0), Ok(()));
    assert_eq!(replays.take("b", 30), Ok(()));
    assert_eq!(replays.take("c", 31), Err(ReplayError::Full));
    assert_eq!(replays.take("a", 31), Err(ReplayError::Replayed));
    assert_eq!(replays.take("b", 31), Err(ReplayError::Replayed));
    // A name that was refused was not taken.
    assert!(!replays.has("c"));
    assert_eq!(replays.take("c", 61), Ok(()));
    assert_eq!(replays.take("b", 61), Err(ReplayError::Replayed));
    assert_eq!(Replays::new(60, 0).take("a", 0), Err(ReplayError::Full));
}

#[test]
fn time_that_goes_back_brings_no_name_back() {
    let mut replays = Replays::new(60, 10);
    assert_eq!(replays.take("late", 1000), Ok(()));
    // The clock was set back: what is taken now is still kept for a whole window after it catches up.
    assert_eq!(replays.take("early", 500), Ok(()));
    for now in [500, 561, 1000, 1060, 0] {
        assert_eq!(replays.take("early", now), Err(ReplayError::Replayed), "{now}");
        assert_eq!(replays.take("late", now), Err(ReplayError::Replayed), "{now}");
    }
    assert_eq!(replays.take("early", 1061), Ok(()));
}

#[test]
fn no_time_is_too_far_away() {
    let mut replays = Replays::new(i64::MAX, 3);
    for (name, now) in [("a", i64::MIN), ("b", 0), ("c", i64::MAX)] {
        assert_eq!(replays.take(name, now), Ok(()));
        assert_eq!(replays.take(name, now), Err(ReplayError::Replayed));
    }
}

#[test]
fn long_and_similar_names_are_told_apart() {
    let mut replays = Replays::new(60, 10);
    let long = "x".repeat(100_000);
    for name in [&long[..], &long[1..], "", "a", "A", "a ", "a\0"] {
        assert_eq!(replays.take(name, 0), Ok(()), "{} characters", name.len());
        assert_eq!(replays.take(name, 0), Err(ReplayError::Replayed), "{} characters", name.len());
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn replays_do_what_a_list_of_all_that_was_taken_would(
        window in 0_i64..8,
        limit in 0_usize..6,
        steps in proptest::collection::vec((0_u8..8, -3_i64..6), 0..80),
    ) {
        let mut replays = Replays::new(window, limit);
        let mut taken: Vec<(u8, i64)> = Vec::new();
        let (mut clock, mut latest) = (0, i64::MIN);
        for (name, step) in steps {
            clock += step;
            latest = latest.max(clock);
            let kept: Vec<u8> =
                taken.iter().filter(|(_, when)| when + window >= latest).map(|(name, _)| *name).collect();
            prop_assert_eq!(replays.is_full(clock), kept.len() >= limit);
            let expected = if kept.contains(&name) {
                Err(ReplayError::Replayed)
            } else if kept.len() >= limit {
                Err(ReplayError::Full)
            } else {
                taken.push((name, latest));
                Ok(())
            };
            prop_assert_eq!(replays.take(&name.to_string(), clock), expected);
            prop_assert_eq!(replays.len(), kept.len() + usize::from(expected.is_ok()));
            prop_assert!(replays.len() <= limit);
            prop_assert_eq!(replays.is_empty(), kept.is_empty() && expected.is_err());
            for name in 0..8 {
                let remembered = kept.contains(&name) || taken.last() == Some(&(name, latest));
                prop_assert_eq!(replays.has(&name.to_string()), remembered, "{}", name);
            }
        }
    }
}

#[test]
fn a_refusal_leads_back_to_what_was_wrong() {
    let refused = DpopError::Token(JwsError::Key(JwkError::Secret));
    let first: &dyn std::error::Error = &refused;
    let chain: Vec<_> =
        std::iter::successors(Some(first), |error| error.source()).map(ToString::to_string).collect();
    let secret = "holds a secret key (d); publish the public half only";
    let key = format!("has a key (jwk) that {secret}");
    assert_eq!(chain, [format!("the DPoP proof {key}"), key, secret.to_owned()]);
}
