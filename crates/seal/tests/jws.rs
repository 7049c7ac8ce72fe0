//! JWS: the tokens of RFC 7515 and RFC 8037, and the many ways to pass off something else as one.

use proptest::prelude::*;
use seal::json::Tape;
use seal::jws::{Header, JwsError, Signer, sign, sign_detached, verify, verify_detached};
use seal::{Jwk, JwkError, base64url, ed25519, es256};
use testing::property::cases;

/// The payload of RFC 7515 appendices A.1, A.2, A.3 and A.5.
const PAYLOAD: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\
    cGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
/// The other parts of A.1: HMAC.
const HMAC: [&str; 2] =
    ["eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"];
/// A.2: RSA.
const RSA: [&str; 2] = [
    "eyJhbGciOiJSUzI1NiJ9",
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7\
     AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4\
     BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K\
     0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqv\
     hJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrB\
     p0igcN_IoypGlUPQGe77Rw",
];
/// A.3: ES256, its token, public and secret key.
const ES256: [&str; 2] = [
    "eyJhbGciOiJFUzI1NiJ9",
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
];
const ES256_KEY: &str = r#"{"kty":"EC","crv":"P-256",
    "x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
const ES256_SECRET: &str = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI";
/// A.4: the same with P-521.
const ES512_TOKEN: &str = "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA.\
    AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZq\
    wqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8Kp\
    EHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn";
const ES512_KEY: &str = r#"{"kty":"EC","crv":"P-521",
    "x":"AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
    "y":"ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2"}"#;
/// A.5: unsigned.
const NONE: &str = "eyJhbGciOiJub25lIn0";
/// RFC 8037 appendix A: Ed25519.
const EDDSA_TOKEN: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
    hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
const EDDSA_KEY: &str = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
const EDDSA_SECRET: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
const EDDSA_THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

fn read(jwk: &str) -> Result<Jwk, JwkError> {
    Jwk::read(&Tape::default().read(jwk).unwrap().root())
}

fn p256() -> es256::SigningKey {
    let secret = base64url::decode(ES256_SECRET).unwrap();
    es256::SigningKey::from_secret(&secret.try_into().unwrap()).unwrap()
}

fn ed25519() -> ed25519::SigningKey {
    ed25519::SigningKey::from_seed(&base64url::decode(EDDSA_SECRET).unwrap().try_into().unwrap())
}

fn p256_key() -> Jwk {
    read(ES256_KEY).unwrap()
}

fn ed25519_key() -> Jwk {
    read(EDDSA_KEY).unwrap()
}

fn es256_token() -> String {
    format!("{}.{PAYLOAD}.{}", ES256[0], ES256[1])
}

/// A token with any header, signed well with one of the two keys.
fn signed(signer: Signer<'_>, header: &[u8]) -> String {
    let input = format!("{}.{PAYLOAD}", base64url::encode(header));
    let signature = match signer {
        Signer::Ed25519(key) => key.sign(input.as_bytes()).as_bytes().to_vec(),
        Signer::P256(key) => key.sign(input.as_bytes()).unwrap().to_vec(),
    };
    format!("{input}.{}", base64url::encode(&signature))
}

fn with_header(header: &str) -> Result<seal::jws::Verified, JwsError> {
    verify(&signed(Signer::P256(&p256()), header.as_bytes()), &p256_key())
}

#[test]
fn the_es256_token_of_rfc_7515_verifies() {
    let verified = verify(&es256_token(), &p256_key()).unwrap();
    assert_eq!(
        verified.payload,
        b"{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}"
    );
    assert_eq!((verified.typ, verified.kid, verified.jwk), (None, None, None));
    assert_eq!(Jwk::P256(p256().verifying_key().clone()), p256_key());
}

#[test]
fn the_eddsa_token_of_rfc_8037_is_signed_and_verified() {
    let payload = b"Example of Ed25519 signing";
    assert_eq!(sign(Signer::Ed25519(&ed25519()), &Header::default(), payload).unwrap(), EDDSA_TOKEN);
    assert_eq!(verify(EDDSA_TOKEN, &ed25519_key()).unwrap().payload, payload);
    assert_eq!(ed25519_key().thumbprint(), EDDSA_THUMBPRINT);
}

#[test]
fn other_curves_are_refused() {
    assert_eq!(read(ES512_KEY), Err(JwkError::Kind));
    for key in [p256_key(), ed25519_key()] {
        let refused = verify(ES512_TOKEN, &key).expect_err("ES512");
        assert_eq!(refused, JwsError::Algorithm("ES512".to_owned()));
    }
}

#[test]
fn unsigned_hmac_and_rsa_tokens_are_refused() {
    let unsigned = format!("{NONE}.{PAYLOAD}.");
    let hmac = format!("{}.{PAYLOAD}.{}", HMAC[0], HMAC[1]);
    let rsa = format!("{}.{PAYLOAD}.{}", RSA[0], RSA[1]);
    for key in [p256_key(), ed25519_key()] {
        for (token, algorithm) in [(&unsigned, "none"), (&hmac, "HS256"), (&rsa, "RS256")] {
            let refused = verify(token, &key).expect_err(algorithm);
            assert_eq!(refused, JwsError::Algorithm(algorithm.to_owned()));
            let detached = token.replace(PAYLOAD, "");
            let payload = base64url::decode(PAYLOAD).unwrap();
            let refused = verify_detached(&detached, &payload, &key).expect_err(algorithm);
            assert_eq!(refused, JwsError::Algorithm(algorithm.to_owned()));
        }
    }
}

#[test]
fn a_missing_signature_is_no_signature() {
    for (token, key) in [(es256_token(), p256_key()), (EDDSA_TOKEN.to_owned(), ed25519_key())] {
        let (input, signature) = token.rsplit_once('.').unwrap();
        assert_eq!(verify(&format!("{input}."), &key).expect_err("none"), JwsError::Signature);
        let refused = verify(&format!("{input}.{}", &signature[..84]), &key).expect_err("63 bytes");
        assert_eq!(refused, JwsError::Signature);
        let refused = verify(&format!("{input}.AAAA{signature}"), &key).expect_err("67 bytes");
        assert_eq!(refused, JwsError::Signature);
    }
}

#[test]
fn a_header_cannot_choose_the_algorithm() {
    let (p256, ed25519) = (p256(), ed25519());
    for named in [
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
        let header = format!(r#"{{"alg":"{named}"}}"#);
        for (signer, key) in [(Signer::P256(&p256), p256_key()), (Signer::Ed25519(&ed25519), ed25519_key())] {
            let refused = verify(&signed(signer, header.as_bytes()), &key).expect_err(named);
            assert!(matches!(refused, JwsError::Algorithm(_)), "{named}: {refused:?}");
        }
    }
    // Well signed with one key, but named as the algorithm of the other.
    let crossed = signed(Signer::P256(&p256), br#"{"alg":"EdDSA"}"#);
    for key in [p256_key(), ed25519_key()] {
        assert!(verify(&crossed, &key).is_err());
    }
    let crossed = signed(Signer::Ed25519(&ed25519), br#"{"alg":"ES256"}"#);
    for key in [p256_key(), ed25519_key()] {
        assert!(verify(&crossed, &key).is_err());
    }
    let refused = verify(&es256_token(), &ed25519_key()).expect_err("another kind of key");
    assert_eq!(refused, JwsError::Algorithm("ES256".to_owned()));
    let refused = verify(EDDSA_TOKEN, &p256_key()).expect_err("another kind of key");
    assert_eq!(refused, JwsError::Algorithm("EdDSA".to_owned()));
}

#[test]
fn a_header_without_a_usable_algorithm_is_refused() {
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
        assert_eq!(with_header(header).expect_err(header), JwsError::Form, "{header}");
    }
    let not_utf8 = signed(Signer::P256(&p256()), b"{\"alg\":\"ES256\",\"kid\":\"\xff\"}");
    assert_eq!(verify(&not_utf8, &p256_key()).expect_err("not UTF-8"), JwsError::Form);
    assert!(with_header(" {\"typ\" : \"t\" ,\r\n\"\\u0061lg\":\"ES25\\u0036\",\"unknown\":[1]} ").is_ok());
}

#[test]
fn doubled_header_names_are_refused() {
    for header in [
        r#"{"alg":"ES256","alg":"ES256"}"#,
        r#"{"alg":"none","alg":"ES256"}"#,
        r#"{"alg":"ES256","alg":"none"}"#,
        r#"{"alg":"ES256","typ":"a","kid":"k","typ":"a"}"#,
        r#"{"alg":"ES256","\u0061lg":"ES256"}"#,
        r#"{"alg":"ES256","x":1,"x":2}"#,
    ] {
        assert_eq!(with_header(header).expect_err(header), JwsError::Form, "{header}");
    }
}

#[test]
fn what_is_critical_is_not_understood() {
    for crit in [r#"["exp"]"#, r#"["b64"],"b64":false"#, "[]", "null", "\"exp\"", r#"["alg"]"#] {
        let header = format!(r#"{{"alg":"ES256","crit":{crit}}}"#);
        assert_eq!(with_header(&header).expect_err(crit), JwsError::Critical, "{crit}");
    }
    let escaped = with_header(r#"{"alg":"ES256","cr\u0069t":["exp"]}"#);
    assert_eq!(escaped.expect_err("crit"), JwsError::Critical);
}

#[test]
fn the_key_in_the_header_is_read_and_never_trusted() {
    let stranger = es256::SigningKey::from_secret(&[9; 32]).unwrap();
    let header = Header { typ: Some("t"), kid: Some("k"), with_key: true };
    let token = sign(Signer::P256(&stranger), &header, b"hello").unwrap();
    assert_eq!(verify(&token, &p256_key()).expect_err("a stranger's"), JwsError::Signature);
    let own = Jwk::P256(stranger.verifying_key().clone());
    let verified = verify(&token, &own).unwrap();
    assert_eq!(verified.jwk, Some(own));
    assert_eq!((verified.typ.as_deref(), verified.kid.as_deref()), (Some("t"), Some("k")));
    assert_eq!(verified.payload, b"hello");
}

#[test]
fn a_key_with_a_secret_or_no_point_is_refused() {
    let with = |old: &str, new: &str| read(&ES256_KEY.replace(old, new)).expect_err(new);
    assert_eq!(with("{", &format!(r#"{{"d":"{ES256_SECRET}","#)), JwkError::Secret);
    assert_eq!(with("{", r#"{"d":null,"#), JwkError::Secret);
    assert_eq!(with("{", r#"{"\u0064":"","#), JwkError::Secret);
    assert_eq!(with("a0\"", "a1\""), JwkError::Point);
    assert_eq!(with("EU\"", "EU=\""), JwkError::Point);
    // The same 32 bytes to a lenient reader: the last two bits carry nothing.
    assert_eq!(with("EU\"", "EV\""), JwkError::Point);
    assert_eq!(with("f83O", ""), JwkError::Point);
    assert_eq!(with("f83O", "AAAAf83O"), JwkError::Point);
    assert_eq!(with("\"y\"", "\"z\""), JwkError::Form);
    assert_eq!(with("\"EC\"", "1"), JwkError::Form);
    assert_eq!(with("\"EC\"", "\"OKP\""), JwkError::Kind);
    assert_eq!(with("\"EC\"", "\"ec\""), JwkError::Kind);
    assert_eq!(with("P-256", "P-384"), JwkError::Kind);
    assert_eq!(with("P-256", "secp256k1"), JwkError::Kind);
    for wrong in ["null", "[]", "{}", "\"\"", r#"{"kty":"oct","k":"AA"}"#] {
        assert_eq!(read(wrong), Err(JwkError::Form), "{wrong}");
    }
    let x25519 = EDDSA_KEY.replace("Ed25519", "X25519");
    assert_eq!(read(&x25519), Err(JwkError::Kind));
    let secret = EDDSA_KEY.replace('{', &format!(r#"{{"d":"{EDDSA_SECRET}","#));
    assert_eq!(read(&secret), Err(JwkError::Secret));
    let weak = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"}}"#, base64url::encode(&[0; 32]));
    assert_eq!(read(&weak), Err(JwkError::Point));
    let header = format!(r#"{{"alg":"ES256","jwk":{secret}}}"#);
    assert_eq!(with_header(&header).expect_err("a secret"), JwsError::Key(JwkError::Secret));
}

#[test]
fn a_key_is_written_as_it_is_read() {
    for key in [p256_key(), ed25519_key()] {
        assert_eq!(read(&key.to_json()), Ok(key));
    }
    let canonical = EDDSA_KEY.replacen(r#""kty":"OKP","crv":"Ed25519""#, r#""crv":"Ed25519","kty":"OKP""#, 1);
    assert_eq!(ed25519_key().to_json(), canonical);
}

#[test]
fn every_changed_character_of_a_token_is_noticed() {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ ";
    // Ed25519 is slow in a test build; every letter is tried on the last place, where some bits carry nothing.
    for (token, key, step) in [(es256_token(), p256_key(), 1), (EDDSA_TOKEN.to_owned(), ed25519_key(), 23)] {
        assert!(verify(&token, &key).is_ok());
        for at in 0..token.len() {
            let step = if at + 1 == token.len() { 1 } else { step };
            for letter in letters.iter().skip(at % step).step_by(step) {
                let mut changed = token.clone().into_bytes();
                if changed[at] != *letter {
                    changed[at] = *letter;
                    let changed = String::from_utf8(changed).unwrap();
                    assert!(verify(&changed, &key).is_err(), "{} at {at}", char::from(*letter));
                }
            }
        }
    }
}

#[test]
fn every_lost_or_added_character_of_a_token_is_noticed() {
    let (token, key) = (es256_token(), p256_key());
    for at in 0..token.len() {
        let mut shorter = token.clone();
        shorter.remove(at);
        assert!(verify(&shorter, &key).is_err(), "without {at}");
    }
    for at in 0..=token.len() {
        for added in ['A', '.', '=', '\n', ' ', 'é', '\0'] {
            let mut longer = token.clone();
            longer.insert(at, added);
            assert!(verify(&longer, &key).is_err(), "{added:?} at {at}");
        }
    }
    for wrong in ["", ".", "..", "...", "....", "a", "a.b", &format!("{token}.{}", ES256[1])] {
        assert!(verify(wrong, &key).is_err(), "{wrong}");
        assert!(verify_detached(wrong, b"", &key).is_err(), "{wrong}");
    }
}

#[test]
fn base64url_has_one_text_for_the_same_bytes() {
    let (token, key) = (es256_token(), p256_key());
    // 64 bytes leave four bits of the last letter unused: Q is 010000, and R to f differ in those four only.
    let (input, signature) = token.rsplit_once('.').unwrap();
    let start = signature.strip_suffix('Q').unwrap();
    for last in "RSTUVWXYZabcdef".chars() {
        let refused = verify(&format!("{input}.{start}{last}"), &key).expect_err("leftover bits");
        assert_eq!(refused, JwsError::Form, "{last}");
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
    // A payload with padding or leftover bits, and a signature that holds over that very text.
    for payload in ["QQ==", "QR", "Q", "Q Q", "QQ+_", "QQ\n", "Q.Q"] {
        let input = format!("{header}.{payload}");
        let signature = base64url::encode(&p256().sign(input.as_bytes()).unwrap());
        let refused = verify(&format!("{input}.{signature}"), &key).expect_err(payload);
        assert_eq!(refused, JwsError::Form, "{payload}");
    }
}

#[test]
fn a_detached_token_holds_for_its_payload_only() {
    // RFC 7515 appendix F over the example of A.3.
    let token = format!("{}..{}", ES256[0], ES256[1]);
    let payload = base64url::decode(PAYLOAD).unwrap();
    assert!(verify_detached(&token, &payload, &p256_key()).unwrap().payload.is_empty());
    for bit in 0..payload.len() * 8 {
        let mut changed = payload.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let refused = verify_detached(&token, &changed, &p256_key()).expect_err("another payload");
        assert_eq!(refused, JwsError::Signature, "bit {bit}");
    }
    for wrong in [&payload[1..], &payload[..payload.len() - 1], &[], PAYLOAD.as_bytes()] {
        let refused = verify_detached(&token, wrong, &p256_key()).expect_err("another payload");
        assert_eq!(refused, JwsError::Signature);
    }
}

#[test]
fn inside_and_detached_are_not_mixed_up() {
    let (token, key) = (es256_token(), p256_key());
    let payload = base64url::decode(PAYLOAD).unwrap();
    let refused = verify_detached(&token, &payload, &key).expect_err("it is inside");
    assert_eq!(refused, JwsError::Payload);
    let detached = format!("{}..{}", ES256[0], ES256[1]);
    assert_eq!(verify(&detached, &key).expect_err("it is detached"), JwsError::Payload);
    // What would move the payload into another part.
    for wrong in [
        format!("{}.{PAYLOAD}..{}", ES256[0], ES256[1]),
        format!("{}..{PAYLOAD}.{}", ES256[0], ES256[1]),
        format!(".{}.{PAYLOAD}.{}", ES256[0], ES256[1]),
    ] {
        assert!(verify(&wrong, &key).is_err(), "{wrong}");
        assert!(verify_detached(&wrong, &payload, &key).is_err(), "{wrong}");
        assert!(verify_detached(&wrong, b"", &key).is_err(), "{wrong}");
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn what_is_signed_verifies_and_says_the_same(
        payload in proptest::collection::vec(any::<u8>(), 1..90),
        typ in proptest::option::of(any::<String>()),
        kid in proptest::option::of(any::<String>()),
        with_key in any::<bool>(),
        other in proptest::collection::vec(any::<u8>(), 0..90),
    ) {
        let (p256, ed25519) = (p256(), ed25519());
        let header = Header { typ: typ.as_deref(), kid: kid.as_deref(), with_key };
        for (signer, key) in [(Signer::P256(&p256), p256_key()), (Signer::Ed25519(&ed25519), ed25519_key())] {
            let token = sign(signer, &header, &payload).unwrap();
            let inside = verify(&token, &key).unwrap();
            prop_assert_eq!(&inside.payload, &payload);
            let detached = sign_detached(signer, &header, &payload).unwrap();
            let beside = verify_detached(&detached, &payload, &key).unwrap();
            prop_assert!(beside.payload.is_empty());
            for verified in [inside, beside] {
                prop_assert_eq!(&verified.typ, &typ);
                prop_assert_eq!(&verified.kid, &kid);
                prop_assert_eq!(verified.jwk, with_key.then(|| key.clone()));
            }
            prop_assert_eq!(verify_detached(&detached, &other, &key).is_ok(), other == payload);
        }
    }

    #[test]
    fn no_text_makes_a_verifier_panic(text in r"[A-Za-z0-9_=. é-]{0,40}|[.]{0,4}|\PC*") {
        for key in [p256_key(), ed25519_key()] {
            prop_assert!(verify(&text, &key).is_err());
            prop_assert!(verify_detached(&text, text.as_bytes(), &key).is_err());
        }
    }
}
