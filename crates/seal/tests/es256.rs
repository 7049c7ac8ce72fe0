//! Tests ES256 with the vectors of RFC 6979, and with invalid keys and signatures.

use seal::es256::{SigningKey, VerifyingKey};
use testing::hex;

/// RFC 6979 appendix A.2.5.
const SECRET: &str = "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721";
const X: &str = "60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6";
const Y: &str = "7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299";
/// The signatures with SHA-256.
const SIGNATURES: [(&str, &str); 2] = [
    (
        "sample",
        "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716\
         F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
    ),
    (
        "test",
        "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367\
         019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083",
    ),
];
/// The order of the base point (the q of the same appendix).
const ORDER: &str = "FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551";
/// The prime of the field (SEC 2 §2.4.2).
const PRIME: &str = "FFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF";

fn randomized_key() -> SigningKey {
    SigningKey::from_secret(&hex::decode_array(SECRET)).unwrap()
}

fn deterministic_key() -> SigningKey {
    SigningKey::deterministic(&hex::decode_array(SECRET)).unwrap()
}

#[test]
fn deterministic_signatures_match_rfc_6979() {
    for key in [randomized_key(), deterministic_key()] {
        assert_eq!(key.verifying_key().coordinates(), (&hex::decode(X)[..], &hex::decode(Y)[..]));
    }
    for (message, signature) in SIGNATURES {
        let expected: [u8; 64] = hex::decode_array(signature);
        assert_eq!(deterministic_key().sign(message.as_bytes()), Some(expected), "{message}");
        let public = VerifyingKey::from_coordinates(&hex::decode(X), &hex::decode(Y)).unwrap();
        assert!(public.verify(message.as_bytes(), &expected), "{message}");
    }
}

#[test]
fn both_key_kinds_verify_each_others_signatures() {
    let (randomized, deterministic) = (randomized_key(), deterministic_key());
    assert_eq!(randomized.verifying_key(), deterministic.verifying_key());
    for message in [&b""[..], b"sample", &[0xff; 3000]] {
        for signer in [&randomized, &deterministic] {
            let signature = signer.sign(message).unwrap();
            assert!(randomized.verifying_key().verify(message, &signature));
            assert!(deterministic.verifying_key().verify(message, &signature));
        }
    }
}

#[test]
fn only_a_deterministic_key_repeats_a_signature() {
    assert_eq!(deterministic_key().sign(b"m"), deterministic_key().sign(b"m"));
    assert_ne!(deterministic_key().sign(b"m"), deterministic_key().sign(b"n"));
    assert_ne!(randomized_key().sign(b"m"), randomized_key().sign(b"m"));
}

#[test]
fn a_secret_must_be_above_zero_and_below_the_order() {
    let mut greatest: [u8; 32] = hex::decode_array(ORDER);
    greatest[31] -= 1;
    let mut above: [u8; 32] = hex::decode_array(ORDER);
    above[31] += 1;
    for wrong in [[0; 32], hex::decode_array(ORDER), above, [0xff; 32]] {
        assert!(SigningKey::from_secret(&wrong).is_none(), "{wrong:?}");
        assert!(SigningKey::deterministic(&wrong).is_none(), "{wrong:?}");
    }
    let mut one = [0; 32];
    one[31] = 1;
    for good in [one, greatest] {
        let (randomized, deterministic) = (SigningKey::from_secret(&good), SigningKey::deterministic(&good));
        let signature = randomized.unwrap().sign(b"edge").unwrap();
        assert!(deterministic.unwrap().verifying_key().verify(b"edge", &signature));
    }
}

#[test]
fn generation_retries_until_the_key_is_usable() {
    let mut draws = vec![hex::decode_array(SECRET), hex::decode_array(ORDER), [0xff; 32], [0; 32]];
    let mut random =
        |bytes: &mut [u8]| bytes.copy_from_slice(&draws.pop().expect("no more draws than needed"));
    let key = SigningKey::generate(&mut random);
    assert_eq!(key.verifying_key(), randomized_key().verifying_key());
    assert!(draws.is_empty());
}

#[test]
fn coordinates_off_the_curve_are_refused() {
    let (x, y) = (hex::decode(X), hex::decode(Y));
    assert!(VerifyingKey::from_coordinates(&x, &y).is_some());
    for bit in 0..256 {
        let mut other = y.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(VerifyingKey::from_coordinates(&x, &other).is_none(), "bit {bit} of y");
    }
    assert!(VerifyingKey::from_coordinates(&y, &x).is_none());
    assert!(VerifyingKey::from_coordinates(&[0; 32], &[0; 32]).is_none());
    assert!(VerifyingKey::from_coordinates(&hex::decode(PRIME), &y).is_none());
    assert!(VerifyingKey::from_coordinates(&[0xff; 32], &[0xff; 32]).is_none());
}

#[test]
fn coordinates_have_32_bytes_each() {
    let (x, y) = (hex::decode(X), hex::decode(Y));
    let longer = |bytes: &[u8]| [&[0], bytes].concat();
    for (x, y) in [
        (&x[..31], &y[..]),
        (&x[..], &y[1..]),
        (&longer(&x)[..], &y[..]),
        (&x[..], &longer(&y)[..]),
        (&[x.as_slice(), &y].concat()[..], &[][..]),
        (&[], &[]),
    ] {
        assert!(VerifyingKey::from_coordinates(x, y).is_none(), "{} and {}", x.len(), y.len());
    }
}

#[test]
fn every_changed_bit_is_detected() {
    let (message, signature) = SIGNATURES[0];
    let (key, good) = (randomized_key(), hex::decode(signature));
    let key = key.verifying_key();
    for bit in 0..512 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.verify(message.as_bytes(), &bytes), "bit {bit} of the signature");
    }
    for bit in 0..message.len() * 8 {
        let mut changed = message.as_bytes().to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.verify(&changed, &good), "bit {bit} of the message");
    }
}

#[test]
fn a_signature_is_two_32_byte_numbers_in_range() {
    let (message, signature) = SIGNATURES[1];
    let (key, good) = (randomized_key(), hex::decode(signature));
    let is_rejected = |bytes: &[u8]| !key.verifying_key().verify(message.as_bytes(), bytes);
    assert!(!is_rejected(&good));
    let (r, s) = good.split_at(32);
    for part in [vec![0; 32], hex::decode(ORDER), vec![0xff; 32]] {
        assert!(is_rejected(&[&part, s].concat()), "r is {part:?}");
        assert!(is_rejected(&[r, &part].concat()), "s is {part:?}");
    }
    // TLS uses this encoding (ASN.1 DER) instead.
    let der = [&[0x30, 0x45, 0x02, 0x21, 0x00], r, &[0x02, 0x20], s].concat();
    for wrong in [&der[..], &good[..63], &good[1..], &[&good[..], &[0]].concat(), &[]] {
        assert!(is_rejected(wrong), "{} bytes", wrong.len());
    }
}

#[test]
fn debug_output_hides_the_secret_key() {
    for key in [randomized_key(), deterministic_key()] {
        // The secret starts with C9 AF A9. 201 is C9 as a decimal.
        let printed = format!("{key:?}").to_uppercase();
        assert!(!printed.contains("C9AFA9") && !printed.contains("201"), "{printed}");
    }
}
