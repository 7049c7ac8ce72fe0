//! Tests Ed25519 with the vectors of RFC 8032, and with inputs that a lenient verifier would accept.

use seal::ed25519::{Signature, SigningKey, VerifyingKey};
use testing::hex;

struct Rfc8032Vector {
    name: &'static str,
    seed: &'static str,
    public: &'static str,
    message: &'static str,
    signature: &'static str,
}

/// RFC 8032 §7.1.
const VECTORS: [Rfc8032Vector; 5] = [
    Rfc8032Vector {
        name: "TEST 1",
        seed: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        public: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        message: "",
        signature: "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155\
                    5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    },
    Rfc8032Vector {
        name: "TEST 2",
        seed: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        public: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        message: "72",
        signature: "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                    085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    },
    Rfc8032Vector {
        name: "TEST 3",
        seed: "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        public: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        message: "af82",
        signature: "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
                    18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    },
    Rfc8032Vector {
        name: "TEST 1024",
        seed: "f5e5767cf153319517630f226876b86c8160cc583bc013744c6bf255f5cc0ee5",
        public: "278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e",
        message: "08b8b2b733424243760fe426a4b54908632110a66c2f6591eabd3345e3e4eb98\
                  fa6e264bf09efe12ee50f8f54e9f77b1e355f6c50544e23fb1433ddf73be84d8\
                  79de7c0046dc4996d9e773f4bc9efe5738829adb26c81b37c93a1b270b20329d\
                  658675fc6ea534e0810a4432826bf58c941efb65d57a338bbd2e26640f89ffbc\
                  1a858efcb8550ee3a5e1998bd177e93a7363c344fe6b199ee5d02e82d522c4fe\
                  ba15452f80288a821a579116ec6dad2b3b310da903401aa62100ab5d1a36553e\
                  06203b33890cc9b832f79ef80560ccb9a39ce767967ed628c6ad573cb116dbef\
                  efd75499da96bd68a8a97b928a8bbc103b6621fcde2beca1231d206be6cd9ec7\
                  aff6f6c94fcd7204ed3455c68c83f4a41da4af2b74ef5c53f1d8ac70bdcb7ed1\
                  85ce81bd84359d44254d95629e9855a94a7c1958d1f8ada5d0532ed8a5aa3fb2\
                  d17ba70eb6248e594e1a2297acbbb39d502f1a8c6eb6f1ce22b3de1a1f40cc24\
                  554119a831a9aad6079cad88425de6bde1a9187ebb6092cf67bf2b13fd65f270\
                  88d78b7e883c8759d2c4f5c65adb7553878ad575f9fad878e80a0c9ba63bcbcc\
                  2732e69485bbc9c90bfbd62481d9089beccf80cfe2df16a2cf65bd92dd597b07\
                  07e0917af48bbb75fed413d238f5555a7a569d80c3414a8d0859dc65a46128ba\
                  b27af87a71314f318c782b23ebfe808b82b0ce26401d2e22f04d83d1255dc51a\
                  ddd3b75a2b1ae0784504df543af8969be3ea7082ff7fc9888c144da2af58429e\
                  c96031dbcad3dad9af0dcbaaaf268cb8fcffead94f3c7ca495e056a9b47acdb7\
                  51fb73e666c6c655ade8297297d07ad1ba5e43f1bca32301651339e22904cc8c\
                  42f58c30c04aafdb038dda0847dd988dcda6f3bfd15c4b4c4525004aa06eeff8\
                  ca61783aacec57fb3d1f92b0fe2fd1a85f6724517b65e614ad6808d6f6ee34df\
                  f7310fdc82aebfd904b01e1dc54b2927094b2db68d6f903b68401adebf5a7e08\
                  d78ff4ef5d63653a65040cf9bfd4aca7984a74d37145986780fc0b16ac451649\
                  de6188a7dbdf191f64b5fc5e2ab47b57f7f7276cd419c17a3ca8e1b939ae49e4\
                  88acba6b965610b5480109c8b17b80e1b7b750dfc7598d5d5011fd2dcc5600a3\
                  2ef5b52a1ecc820e308aa342721aac0943bf6686b64b2579376504ccc493d97e\
                  6aed3fb0f9cd71a43dd497f01f17c0e2cb3797aa2a2f256656168e6c496afc5f\
                  b93246f6b1116398a346f1a641f3b041e989f7914f90cc2c7fff357876e506b5\
                  0d334ba77c225bc307ba537152f3f1610e4eafe595f6d9d90d11faa933a15ef1\
                  369546868a7f3a45a96768d40fd9d03412c091c6315cf4fde7cb68606937380d\
                  b2eaaa707b4c4185c32eddcdd306705e4dc1ffc872eeee475a64dfac86aba41c\
                  0618983f8741c5ef68d3a101e8a3b8cac60c905c15fc910840b94c00a0b9d0",
        signature: "0aab4c900501b3e24d7cdf4663326a3a87df5e4843b2cbdb67cbf6e460fec350\
                    aa5371b1508f9f4528ecea23c436d94b5e8fcd4f681e30a6ac00a9704a188a03",
    },
    Rfc8032Vector {
        name: "TEST SHA(abc)",
        seed: "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        public: "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        message: "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                  2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        signature: "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589\
                    09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    },
];

/// All encodings of points whose order divides 8. With such a key, one signature is valid for many messages. The first ten
/// have a valid y, some with a superfluous sign for x = 0. The last four have a y that is not below p.
const WEAK_KEYS: [&str; 14] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

/// L, the order of the base point (RFC 8032 §5.1), least significant byte first.
const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

fn sign_example() -> (VerifyingKey, &'static [u8], Signature) {
    let key = SigningKey::from_seed(&hex::decode_array(VECTORS[0].seed));
    let message = b"message";
    (key.verifying_key(), message, key.sign(message))
}

#[test]
fn the_rfc_8032_vectors_sign_and_verify() {
    for vector in &VECTORS {
        let key = SigningKey::from_seed(&hex::decode_array(vector.seed));
        let message = hex::decode(vector.message);
        let expected = Signature::from_bytes(hex::decode_array(vector.signature));
        assert_eq!(key.verifying_key().as_bytes(), &hex::decode_array(vector.public), "{}", vector.name);
        assert_eq!(key.sign(&message), expected, "{}", vector.name);
        let public = VerifyingKey::from_bytes(&hex::decode(vector.public)).expect(vector.name);
        assert!(public.verify(&message, &expected), "{}", vector.name);
    }
    assert_eq!(hex::decode(VECTORS[3].message).len(), 1023);
}

#[test]
fn a_signature_is_valid_only_for_its_own_vector() {
    for key in &VECTORS {
        let public = VerifyingKey::from_bytes(&hex::decode(key.public)).unwrap();
        for message in &VECTORS {
            for signature in &VECTORS {
                let is_own = key.name == message.name && key.name == signature.name;
                let signature = Signature::from_bytes(hex::decode_array(signature.signature));
                assert_eq!(public.verify(&hex::decode(message.message), &signature), is_own, "{}", key.name);
            }
        }
    }
}

#[test]
fn weak_public_keys_are_refused() {
    for weak in WEAK_KEYS {
        assert_eq!(VerifyingKey::from_bytes(&hex::decode(weak)), None, "{weak}");
    }
}

#[test]
fn each_point_has_one_encoding() {
    // RFC 8032 §5.1.3 requires y to be below p. These values of y are p + 3, p + 4 and so on, of points that are not weak.
    for lowest in [0xf0, 0xf1, 0xf2, 0xf3, 0xf6, 0xf7, 0xfb, 0xfc, 0xfd, 0xff] {
        for highest in [0x7f, 0xff] {
            let mut above = [0xff; 32];
            (above[0], above[31]) = (lowest, highest);
            assert_eq!(VerifyingKey::from_bytes(&above), None, "p + {}", lowest - 0xed);
            let mut below = [0; 32];
            (below[0], below[31]) = (lowest - 0xed, highest & 0x80);
            assert!(VerifyingKey::from_bytes(&below).is_some(), "{} is a valid y", lowest - 0xed);
        }
    }
}

#[test]
fn bytes_that_are_not_a_point_are_refused() {
    // y = 2 is not on the curve.
    let mut two = [0; 32];
    two[0] = 2;
    assert_eq!(VerifyingKey::from_bytes(&two), None);
    let good = hex::decode(VECTORS[0].public);
    assert!(VerifyingKey::from_bytes(&good).is_some());
    for wrong in [&[][..], &good[..31], &[good.as_slice(), &[0]].concat()] {
        assert_eq!(VerifyingKey::from_bytes(wrong), None, "{} bytes", wrong.len());
    }
}

#[test]
fn a_weak_r_is_refused_even_if_the_equation_holds() {
    // R is the neutral point and S is k·a, so S·B = R + k·A holds, and RFC 8032 alone would accept the signature.
    let signature = Signature::from_bytes(hex::decode_array(
        "0100000000000000000000000000000000000000000000000000000000000000\
         83ce4d891baa93079b4fb2e3a77e24dedd74410f20eebe0d10daffd20e51a801",
    ));
    let key = VerifyingKey::from_bytes(&hex::decode(VECTORS[0].public)).unwrap();
    assert!(!key.verify(b"weak", &signature));
}

#[test]
fn s_must_be_below_the_group_order() {
    let (key, message, good) = sign_example();
    let order: [u8; 32] = hex::decode_array(ORDER);
    let mut bytes = *good.as_bytes();
    // S + L, S + 2L and so on are equal to S modulo the order. All that fit into 32 bytes must be rejected.
    for times in 1..16 {
        let mut carry = 0;
        for (byte, addend) in bytes[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(addend) + carry;
            *byte = sum.to_le_bytes()[0];
            carry = sum >> 8;
        }
        if carry > 0 {
            assert!(times > 14, "S + {times}L must fit into 32 bytes");
            return;
        }
        assert!(!key.verify(message, &Signature::from_bytes(bytes)), "S + {times}L");
    }
}

#[test]
fn every_changed_bit_is_detected() {
    let (key, message, good) = sign_example();
    assert!(key.verify(message, &good));
    for bit in 0..512 {
        let mut bytes = *good.as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.verify(message, &Signature::from_bytes(bytes)), "bit {bit} of the signature");
    }
    for bit in 0..message.len() * 8 {
        let mut changed = message.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.verify(&changed, &good), "bit {bit} of the message");
    }
    for bit in 0..256 {
        let mut bytes = *key.as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let other = VerifyingKey::from_bytes(&bytes);
        assert!(other.is_none_or(|other| !other.verify(message, &good)), "bit {bit} of the key");
    }
}

#[test]
fn each_signature_has_one_text() {
    let (_, _, signature) = sign_example();
    let text = signature.to_string();
    let digits = text.strip_prefix("ed25519:").unwrap();
    assert_eq!((text.len(), digits.to_lowercase().as_str()), (136, digits));
    assert_eq!(Signature::parse(&text), Some(signature));
    for wrong in [
        text.to_uppercase(),
        format!("ed25519:{}", digits.to_uppercase()),
        format!("Ed25519:{digits}"),
        digits.to_owned(),
        format!(" {text}"),
        format!("{text}\n"),
        format!("ed25519: {digits}"),
        format!("ed25519:ed25519:{digits}"),
        format!("{text}00"),
        text[..134].to_owned(),
        text[..135].to_owned(),
        format!("sha256:{digits}"),
        format!("ed25519:{}é", &digits[2..]),
        format!("ed25519:+{}", &digits[1..]),
        String::new(),
    ] {
        assert_eq!(Signature::parse(&wrong), None, "{wrong}");
    }
}

#[test]
fn a_single_capital_digit_is_refused() {
    let (_, _, signature) = sign_example();
    let text = signature.to_string();
    for (at, letter) in text.char_indices().filter(|(_, letter)| letter.is_ascii_lowercase()) {
        let mut changed = text.clone();
        changed.replace_range(at..=at, &letter.to_ascii_uppercase().to_string());
        assert_eq!(Signature::parse(&changed), None, "{changed}");
    }
}

#[test]
fn debug_output_hides_the_secret_key() {
    let key = SigningKey::from_seed(&hex::decode_array(VECTORS[0].seed));
    // The seed starts with 9d 61. 157 is 9d as a decimal.
    let printed = format!("{key:?}");
    assert!(!printed.contains("9d61") && !printed.contains("157"), "{printed}");
}
