//! Tests JWS with the tokens of RFC 7515 and RFC 8037, and with invalid tokens.

use proptest::prelude::*;
use seal::json::Tape;
use seal::jws::{JwsError, JwsHeader, JwsSigner, sign, sign_detached, verify, verify_detached};
use seal::{Jwk, JwkError, base64url, ed25519, es256};
use testing::property::cases;

/// The payload of RFC 7515 appendices A.1, A.2, A.3 and A.5.
const PAYLOAD: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\
    cGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
/// The header and signature of A.1: HMAC.
const HMAC_PARTS: [&str; 2] =
    ["eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"];
/// The header and signature of A.2: RSA.
const RSA_PARTS: [&str; 2] = [
    "eyJhbGciOiJSUzI1NiJ9",
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7\
     AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4\
     BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K\
     0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqv\
     hJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrB\
     p0igcN_IoypGlUPQGe77Rw",
];
/// The header and signature of A.3 (ES256), then its public and its secret key.
const ES256_PARTS: [&str; 2] = [
    "eyJhbGciOiJFUzI1NiJ9",
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
];
const ES256_KEY: &str = r#"{"kty":"EC","crv":"P-256",
    "x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
const ES256_SECRET: &str = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI";
/// The token and key of A.4, which use P-521.
const ES512_TOKEN: &str = "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA.\
    AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZq\
    wqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8Kp\
    EHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn";
const ES512_KEY: &str = r#"{"kty":"EC","crv":"P-521",
    "x":"AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
    "y":"ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2"}"#;
/// The header of A.5: unsigned.
const UNSIGNED_HEADER: &str = "eyJhbGciOiJub25lIn0";
/// The token and keys of RFC 8037 appendix A: Ed25519.
const EDDSA_TOKEN: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
    hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
const EDDSA_KEY: &str = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
const EDDSA_SECRET: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
const EDDSA_THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

fn read_jwk(jwk: &str) -> Result<Jwk, JwkError> {
    Jwk::read(&Tape::default().read(jwk).unwrap().root())
}

fn p256_signing_key() -> es256::SigningKey {
    let secret = base64url::decode(ES256_SECRET).unwrap();
    es256::SigningKey::from_secret(&secret.try_into().unwrap()).unwrap()
}

fn ed25519_signing_key() -> ed25519::SigningKey {
    ed25519::SigningKey::from_seed(&base64url::decode(EDDSA_SECRET).unwrap().try_into().unwrap())
}

fn p256_jwk() -> Jwk {
    read_jwk(ES256_KEY).unwrap()
}

fn ed25519_jwk() -> Jwk {
    read_jwk(EDDSA_KEY).unwrap()
}

fn es256_token() -> String {
    format!("{}.{PAYLOAD}.{}", ES256_PARTS[0], ES256_PARTS[1])
}

/// Signs a token with any header.
fn sign_raw(signer: JwsSigner<'_>, header: &[u8]) -> String {
    let input = format!("{}.{PAYLOAD}", base64url::encode(header));
    let signature = match signer {
        JwsSigner::Ed25519(key) => key.sign(input.as_bytes()).as_bytes().to_vec(),
        JwsSigner::P256(key) => key.sign(input.as_bytes()).unwrap().to_vec(),
    };
    format!("{input}.{}", base64url::encode(&signature))
}

/// Signs a token with this header and verifies it.
fn verify_header(header: &str) -> Result<seal::jws::VerifiedToken, JwsError> {
    verify(&sign_raw(JwsSigner::P256(&p256_signing_key()), header.as_bytes()), &p256_jwk())
}

#[test]
fn the_rfc_7515_es256_token_verifies() {
    let verified = verify(&es256_token(), &p256_jwk()).unwrap();
    assert_eq!(
        verified.payload,
        b"{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}"
    );
    assert_eq!((verified.typ, verified.kid, verified.jwk), (None, None, None));
    assert_eq!(Jwk::P256(p256_signing_key().verifying_key().clone()), p256_jwk());
}

#[test]
fn the_rfc_8037_eddsa_token_signs_and_verifies() {
    let payload = b"Example of Ed25519 signing";
    assert_eq!(
        sign(JwsSigner::Ed25519(&ed25519_signing_key()), &JwsHeader::default(), payload).unwrap(),
        EDDSA_TOKEN
    );
    assert_eq!(verify(EDDSA_TOKEN, &ed25519_jwk()).unwrap().payload, payload);
    assert_eq!(ed25519_jwk().thumbprint(), EDDSA_THUMBPRINT);
}

#[test]
fn other_curves_are_refused() {
    assert_eq!(read_jwk(ES512_KEY), Err(JwkError::UnsupportedType));
    for key in [p256_jwk(), ed25519_jwk()] {
        let error = verify(ES512_TOKEN, &key).expect_err("ES512");
        assert_eq!(error, JwsError::WrongAlgorithm("ES512".to_owned()));
    }
}

#[test]
fn unsigned_hmac_and_rsa_tokens_are_refused() {
    let unsigned = format!("{UNSIGNED_HEADER}.{PAYLOAD}.");
    let hmac = format!("{}.{PAYLOAD}.{}", HMAC_PARTS[0], HMAC_PARTS[1]);
    let rsa = format!("{}.{PAYLOAD}.{}", RSA_PARTS[0], RSA_PARTS[1]);
    for key in [p256_jwk(), ed25519_jwk()] {
        for (token, algorithm) in [(&unsigned, "none"), (&hmac, "HS256"), (&rsa, "RS256")] {
            let error = verify(token, &key).expect_err(algorithm);
            assert_eq!(error, JwsError::WrongAlgorithm(algorithm.to_owned()));
            let detached = token.replace(PAYLOAD, "");
            let payload = base64url::decode(PAYLOAD).unwrap();
            let error = verify_detached(&detached, &payload, &key).expect_err(algorithm);
            assert_eq!(error, JwsError::WrongAlgorithm(algorithm.to_owned()));
        }
    }
}

#[test]
fn a_signature_that_is_missing_or_has_the_wrong_length_is_refused() {
    for (token, key) in [(es256_token(), p256_jwk()), (EDDSA_TOKEN.to_owned(), ed25519_jwk())] {
        let (input, signature) = token.rsplit_once('.').unwrap();
        assert_eq!(verify(&format!("{input}."), &key).expect_err("no signature"), JwsError::InvalidSignature);
        let error = verify(&format!("{input}.{}", &signature[..84]), &key).expect_err("63 bytes");
        assert_eq!(error, JwsError::InvalidSignature);
        let error = verify(&format!("{input}.AAAA{signature}"), &key).expect_err("67 bytes");
        assert_eq!(error, JwsError::InvalidSignature);
    }
}

#[test]
fn a_header_cannot_choose_the_algorithm() {
    let (p256, ed25519) = (p256_signing_key(), ed25519_signing_key());
    for algorithm in [
        "none",
        "None",
        "NONE",
        "nOnE",
        "",
        "HS256",
        "HS512",
        "RS256",
        "PS256",
        "ES384",
        "ES512",
        "ES256K",
        "es256",
        "eddsa",
        "Ed25519",
        "ES256 ",
        "ES256\\u0000",
    ] {
        let header = format!(r#"{{"alg":"{algorithm}"}}"#);
        for (signer, key) in
            [(JwsSigner::P256(&p256), p256_jwk()), (JwsSigner::Ed25519(&ed25519), ed25519_jwk())]
        {
            let error = verify(&sign_raw(signer, header.as_bytes()), &key).expect_err(algorithm);
            assert!(matches!(error, JwsError::WrongAlgorithm(_)), "{algorithm}: {error:?}");
        }
    }
    // The header names the algorithm of the other key.
    let crossed = sign_raw(JwsSigner::P256(&p256), br#"{"alg":"EdDSA"}"#);
    for key in [p256_jwk(), ed25519_jwk()] {
        assert!(verify(&crossed, &key).is_err());
    }
    let crossed = sign_raw(JwsSigner::Ed25519(&ed25519), br#"{"alg":"ES256"}"#);
    for key in [p256_jwk(), ed25519_jwk()] {
        assert!(verify(&crossed, &key).is_err());
    }
    let error = verify(&es256_token(), &ed25519_jwk()).expect_err("another kind of key");
    assert_eq!(error, JwsError::WrongAlgorithm("ES256".to_owned()));
    let error = verify(EDDSA_TOKEN, &p256_jwk()).expect_err("another kind of key");
    assert_eq!(error, JwsError::WrongAlgorithm("EdDSA".to_owned()));
}

#[test]
fn a_malformed_header_is_refused() {
    for header in [
        "{}",
        r#"{"alg":null}"#,
        r#"{"alg":["ES256"]}"#,
        r#"{"alg":1}"#,
        r#"{"ALG":"ES256"}"#,
        r#"["alg","ES256"]"#,
        r#""ES256""#,
        "null",
        "{",
        "",
        r#"{"alg":"ES256"}{}"#,
        r#"{"alg":"ES256",}"#,
        r#"{"alg":"ES256","typ":1}"#,
        r#"{"alg":"ES256","kid":null}"#,
        "\u{feff}{\"alg\":\"ES256\"}",
    ] {
        assert_eq!(verify_header(header).expect_err(header), JwsError::Malformed, "{header}");
    }
    let not_utf8 = sign_raw(JwsSigner::P256(&p256_signing_key()), b"{\"alg\":\"ES256\",\"kid\":\"\xff\"}");
    assert_eq!(verify(&not_utf8, &p256_jwk()).expect_err("not UTF-8"), JwsError::Malformed);
    assert!(verify_header(" {\"typ\" : \"t\" ,\r\n\"\\u0061lg\":\"ES25\\u0036\",\"unknown\":[1]} ").is_ok());
}

#[test]
fn duplicate_header_names_are_refused() {
    for header in [
        r#"{"alg":"ES256","alg":"ES256"}"#,
        r#"{"alg":"none","alg":"ES256"}"#,
        r#"{"alg":"ES256","alg":"none"}"#,
        r#"{"alg":"ES256","typ":"a","kid":"k","typ":"a"}"#,
        r#"{"alg":"ES256","\u0061lg":"ES256"}"#,
        r#"{"alg":"ES256","x":1,"x":2}"#,
    ] {
        assert_eq!(verify_header(header).expect_err(header), JwsError::Malformed, "{header}");
    }
}

#[test]
fn critical_headers_are_refused() {
    for crit in [r#"["exp"]"#, r#"["b64"],"b64":false"#, "[]", "null", "\"exp\"", r#"["alg"]"#] {
        let header = format!(r#"{{"alg":"ES256","crit":{crit}}}"#);
        assert_eq!(verify_header(&header).expect_err(crit), JwsError::UnsupportedCritical, "{crit}");
    }
    let escaped = verify_header(r#"{"alg":"ES256","cr\u0069t":["exp"]}"#);
    assert_eq!(escaped.expect_err("crit"), JwsError::UnsupportedCritical);
}

#[test]
fn the_key_in_the_header_is_returned_but_not_trusted() {
    let other_key = es256::SigningKey::from_secret(&[9; 32]).unwrap();
    let header = JwsHeader { typ: Some("t"), kid: Some("k"), include_jwk: true };
    let token = sign(JwsSigner::P256(&other_key), &header, b"hello").unwrap();
    assert_eq!(verify(&token, &p256_jwk()).expect_err("signed with another key"), JwsError::InvalidSignature);
    let other_jwk = Jwk::P256(other_key.verifying_key().clone());
    let verified = verify(&token, &other_jwk).unwrap();
    assert_eq!(verified.jwk, Some(other_jwk));
    assert_eq!((verified.typ.as_deref(), verified.kid.as_deref()), (Some("t"), Some("k")));
    assert_eq!(verified.payload, b"hello");
}

#[test]
fn a_jwk_with_a_secret_or_without_a_valid_point_is_refused() {
    let read_changed = |old: &str, new: &str| read_jwk(&ES256_KEY.replace(old, new)).expect_err(new);
    assert_eq!(read_changed("{", &format!(r#"{{"d":"{ES256_SECRET}","#)), JwkError::ContainsSecret);
    assert_eq!(read_changed("{", r#"{"d":null,"#), JwkError::ContainsSecret);
    assert_eq!(read_changed("{", r#"{"\u0064":"","#), JwkError::ContainsSecret);
    assert_eq!(read_changed("a0\"", "a1\""), JwkError::InvalidPoint);
    assert_eq!(read_changed("EU\"", "EU=\""), JwkError::InvalidPoint);
    // A lenient decoder would return the same 32 bytes, because the last two bits are unused.
    assert_eq!(read_changed("EU\"", "EV\""), JwkError::InvalidPoint);
    assert_eq!(read_changed("f83O", ""), JwkError::InvalidPoint);
    assert_eq!(read_changed("f83O", "AAAAf83O"), JwkError::InvalidPoint);
    assert_eq!(read_changed("\"y\"", "\"z\""), JwkError::Malformed);
    assert_eq!(read_changed("\"EC\"", "1"), JwkError::Malformed);
    assert_eq!(read_changed("\"EC\"", "\"OKP\""), JwkError::UnsupportedType);
    assert_eq!(read_changed("\"EC\"", "\"ec\""), JwkError::UnsupportedType);
    assert_eq!(read_changed("P-256", "P-384"), JwkError::UnsupportedType);
    assert_eq!(read_changed("P-256", "secp256k1"), JwkError::UnsupportedType);
    for wrong in ["null", "[]", "{}", "\"\"", r#"{"kty":"oct","k":"AA"}"#] {
        assert_eq!(read_jwk(wrong), Err(JwkError::Malformed), "{wrong}");
    }
    let x25519 = EDDSA_KEY.replace("Ed25519", "X25519");
    assert_eq!(read_jwk(&x25519), Err(JwkError::UnsupportedType));
    let secret = EDDSA_KEY.replace('{', &format!(r#"{{"d":"{EDDSA_SECRET}","#));
    assert_eq!(read_jwk(&secret), Err(JwkError::ContainsSecret));
    let weak = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"}}"#, base64url::encode(&[0; 32]));
    assert_eq!(read_jwk(&weak), Err(JwkError::InvalidPoint));
    let header = format!(r#"{{"alg":"ES256","jwk":{secret}}}"#);
    assert_eq!(verify_header(&header).expect_err("a secret"), JwsError::InvalidKey(JwkError::ContainsSecret));
}

#[test]
fn a_written_jwk_reads_back() {
    for key in [p256_jwk(), ed25519_jwk()] {
        assert_eq!(read_jwk(&key.to_json()), Ok(key));
    }
    let canonical = EDDSA_KEY.replacen(r#""kty":"OKP","crv":"Ed25519""#, r#""crv":"Ed25519","kty":"OKP""#, 1);
    assert_eq!(ed25519_jwk().to_json(), canonical);
}

#[test]
fn every_changed_character_of_a_token_is_detected() {
    let characters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ ";
    // Ed25519 is slow in a test build, so only some characters are tried. All are tried at the last position, where some
    // bits are unused.
    for (token, key, step) in [(es256_token(), p256_jwk(), 1), (EDDSA_TOKEN.to_owned(), ed25519_jwk(), 23)] {
        assert!(verify(&token, &key).is_ok());
        for at in 0..token.len() {
            let step = if at + 1 == token.len() { 1 } else { step };
            for character in characters.iter().skip(at % step).step_by(step) {
                let mut changed = token.clone().into_bytes();
                if changed[at] != *character {
                    changed[at] = *character;
                    let changed = String::from_utf8(changed).unwrap();
                    assert!(verify(&changed, &key).is_err(), "{} at {at}", char::from(*character));
                }
            }
        }
    }
}

#[test]
fn every_removed_or_added_character_of_a_token_is_detected() {
    let (token, key) = (es256_token(), p256_jwk());
    for at in 0..token.len() {
        let mut shorter = token.clone();
        shorter.remove(at);
        assert!(verify(&shorter, &key).is_err(), "without character {at}");
    }
    for at in 0..=token.len() {
        for added in ['A', '.', '=', '\n', ' ', 'é', '\0'] {
            let mut longer = token.clone();
            longer.insert(at, added);
            assert!(verify(&longer, &key).is_err(), "{added:?} at {at}");
        }
    }
    for wrong in ["", ".", "..", "...", "....", "a", "a.b", &format!("{token}.{}", ES256_PARTS[1])] {
        assert!(verify(wrong, &key).is_err(), "{wrong}");
        assert!(verify_detached(wrong, b"", &key).is_err(), "{wrong}");
    }
}

#[test]
fn non_canonical_base64url_is_refused() {
    let (token, key) = (es256_token(), p256_jwk());
    // 64 bytes leave four bits of the last character unused. Q is 010000, and R to f differ from it only in those bits.
    let (input, signature) = token.rsplit_once('.').unwrap();
    let start = signature.strip_suffix('Q').unwrap();
    for last in "RSTUVWXYZabcdef".chars() {
        let error = verify(&format!("{input}.{start}{last}"), &key).expect_err("leftover bits");
        assert_eq!(error, JwsError::Malformed, "{last}");
    }
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!("{token}") };
    let padded = |part: &str| format!("{part}{}", "=".repeat((4 - part.len() % 4) % 4));
    for wrong in [
        format!("{header}.{payload}.{}", padded(signature)),
        format!("{header}.{}.{signature}", padded(payload)),
        token.replace('-', "+"),
        token.replace('_', "/"),
        format!("{token}\n"),
    ] {
        assert!(wrong == token || verify(&wrong, &key).is_err(), "{wrong}");
    }
    // Payloads with padding or leftover bits, each with a valid signature over exactly that text.
    for payload in ["QQ==", "QR", "Q", "Q Q", "QQ+_", "QQ\n", "Q.Q"] {
        let input = format!("{header}.{payload}");
        let signature = base64url::encode(&p256_signing_key().sign(input.as_bytes()).unwrap());
        let error = verify(&format!("{input}.{signature}"), &key).expect_err(payload);
        assert_eq!(error, JwsError::Malformed, "{payload}");
    }
}

#[test]
fn a_detached_token_is_valid_only_for_its_payload() {
    // RFC 7515 appendix F over the example of A.3.
    let token = format!("{}..{}", ES256_PARTS[0], ES256_PARTS[1]);
    let payload = base64url::decode(PAYLOAD).unwrap();
    assert!(verify_detached(&token, &payload, &p256_jwk()).unwrap().payload.is_empty());
    for bit in 0..payload.len() * 8 {
        let mut changed = payload.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let error = verify_detached(&token, &changed, &p256_jwk()).expect_err("another payload");
        assert_eq!(error, JwsError::InvalidSignature, "bit {bit}");
    }
    for wrong in [&payload[1..], &payload[..payload.len() - 1], &[], PAYLOAD.as_bytes()] {
        let error = verify_detached(&token, wrong, &p256_jwk()).expect_err("another payload");
        assert_eq!(error, JwsError::InvalidSignature);
    }
}

#[test]
fn embedded_and_detached_tokens_are_not_interchangeable() {
    let (token, key) = (es256_token(), p256_jwk());
    let payload = base64url::decode(PAYLOAD).unwrap();
    let error = verify_detached(&token, &payload, &key).expect_err("the payload is embedded");
    assert_eq!(error, JwsError::PayloadPlacement);
    let detached = format!("{}..{}", ES256_PARTS[0], ES256_PARTS[1]);
    assert_eq!(verify(&detached, &key).expect_err("the payload is detached"), JwsError::PayloadPlacement);
    // Tokens with the payload in the wrong part.
    for wrong in [
        format!("{}.{PAYLOAD}..{}", ES256_PARTS[0], ES256_PARTS[1]),
        format!("{}..{PAYLOAD}.{}", ES256_PARTS[0], ES256_PARTS[1]),
        format!(".{}.{PAYLOAD}.{}", ES256_PARTS[0], ES256_PARTS[1]),
    ] {
        assert!(verify(&wrong, &key).is_err(), "{wrong}");
        assert!(verify_detached(&wrong, &payload, &key).is_err(), "{wrong}");
        assert!(verify_detached(&wrong, b"", &key).is_err(), "{wrong}");
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn signed_tokens_verify_with_the_same_content(
        payload in proptest::collection::vec(any::<u8>(), 1..90),
        typ in proptest::option::of(any::<String>()),
        kid in proptest::option::of(any::<String>()),
        include_jwk in any::<bool>(),
        other in proptest::collection::vec(any::<u8>(), 0..90),
    ) {
        let (p256, ed25519) = (p256_signing_key(), ed25519_signing_key());
        let header = JwsHeader { typ: typ.as_deref(), kid: kid.as_deref(), include_jwk };
        for (signer, key) in [(JwsSigner::P256(&p256), p256_jwk()), (JwsSigner::Ed25519(&ed25519), ed25519_jwk())] {
            let token = sign(signer, &header, &payload).unwrap();
            let embedded = verify(&token, &key).unwrap();
            prop_assert_eq!(&embedded.payload, &payload);
            let detached = sign_detached(signer, &header, &payload).unwrap();
            let detached_token = verify_detached(&detached, &payload, &key).unwrap();
            prop_assert!(detached_token.payload.is_empty());
            for verified in [embedded, detached_token] {
                prop_assert_eq!(&verified.typ, &typ);
                prop_assert_eq!(&verified.kid, &kid);
                prop_assert_eq!(verified.jwk, include_jwk.then(|| key.clone()));
            }
            prop_assert_eq!(verify_detached(&detached, &other, &key).is_ok(), other == payload);
        }
    }

    #[test]
    fn arbitrary_text_is_refused_without_a_panic(text in r"[A-Za-z0-9_=. é-]{0,40}|[.]{0,4}|\PC*") {
        for key in [p256_jwk(), ed25519_jwk()] {
            prop_assert!(verify(&text, &key).is_err());
            prop_assert!(verify_detached(&text, text.as_bytes(), &key).is_err());
        }
    }
}
