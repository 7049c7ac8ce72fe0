//! MessagePack as a transport encoding.

use asp::message_pack::{MessagePackError, decode, encode};
use proptest::prelude::*;

const LIMIT: usize = 1 << 20;

/// Random JSON values.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-(1_i64 << 53)..=1 << 53).prop_map(Into::into),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Into::into),
        ".*".prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
            prop::collection::btree_map(".{0,8}", inner, 0..8)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// A text that can be encoded comes back byte for byte, and any other text is not encoded at all.
    #[test]
    fn an_encoded_text_comes_back_exactly(value in json()) {
        let text = value.to_string();
        if let Some(bytes) = encode(&text) {
            prop_assert_eq!(decode(&bytes, LIMIT), Ok(text));
        }
    }

    /// Any bytes are refused, or are a JSON text within the limit that means the same after it is encoded and decoded.
    #[test]
    fn any_bytes_are_refused_or_are_json(bytes in prop::collection::vec(any::<u8>(), 0..200), limit in 0_usize..300) {
        if let Ok(text) = decode(&bytes, limit) {
            prop_assert!(text.len() <= limit);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            if let Some(again) = encode(&text) {
                prop_assert_eq!(decode(&again, limit), Ok(text));
            }
        }
    }

    /// After one byte was changed, decoding returns an error or another valid JSON text.
    #[test]
    fn a_changed_byte_gives_an_error_or_another_text(value in json(), index in any::<prop::sample::Index>(), byte in any::<u8>()) {
        if let Some(mut bytes) = encode(&value.to_string()) {
            let index = index.index(bytes.len());
            bytes[index] = byte;
            if let Ok(text) = decode(&bytes, LIMIT) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            }
        }
    }
}

#[test]
fn data_that_is_not_one_json_value_within_the_limit_is_refused() {
    use MessagePackError::{
        InvalidKey, InvalidNumber, NotUtf8, TooDeep, TooLong, TooShort, TrailingBytes, UnsupportedType,
    };
    let nested = [vec![0x91; 66], vec![0xc0]].concat();
    let integer = |value: u64| [&[0xcf][..], &value.to_be_bytes()].concat();
    let double = |value: f64| [&[0xcb][..], &value.to_be_bytes()].concat();
    for (bytes, expected) in [
        (vec![], TooShort),
        (vec![0x92, 0xc0], TooShort),
        (vec![0xdd, 0xff, 0xff, 0xff, 0xff], TooShort),
        (vec![0xdf, 0xff, 0xff, 0xff, 0xff], TooShort),
        (vec![0xdb, 0xff, 0xff, 0xff, 0xff, b'a'], TooShort),
        (vec![0xcb, 0], TooShort),
        (vec![0xcd, 0], TooShort),
        (vec![0xc0, 0xc0], TrailingBytes),
        (vec![0xc4, 1, 0], UnsupportedType),
        (vec![0xd4, 1, 0], UnsupportedType),
        (vec![0xca, 0, 0, 0, 0], UnsupportedType),
        (vec![0xc1], UnsupportedType),
        (vec![0xa1, 0xff], NotUtf8),
        (vec![0x81, 0x01, 0xc0], InvalidKey),
        (vec![0x82, 0xa1, b'a', 0xc0, 0xa1, b'a', 0xc2], InvalidKey),
        (integer((1 << 53) + 1), InvalidNumber),
        (integer(u64::MAX), InvalidNumber),
        (double(f64::NAN), InvalidNumber),
        (double(f64::INFINITY), InvalidNumber),
        (nested, TooDeep),
        ([&[0xd9, 200][..], &[b'a'; 200]].concat(), TooLong),
        // Each control character takes six bytes of JSON.
        ([&[0xd9, 30][..], &[1; 30]].concat(), TooLong),
    ] {
        assert_eq!(decode(&bytes, 100), Err(expected), "{bytes:x?}");
    }
    assert_eq!(decode(&integer(1 << 53), 100).as_deref(), Ok("9007199254740992"));
}

#[test]
fn a_text_that_would_change_is_not_encoded() {
    for text in [
        r#"{"a": 1}"#,
        r#"{"a":1.50}"#,
        r#"{"a":1e2}"#,
        r#"{"a":-0}"#,
        r#"{"a":"\u0041"}"#,
        r#"{"a":"\/"}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":9007199254740993}"#,
        r#"{"a":"\ud800"}"#,
        "{",
    ] {
        assert_eq!(encode(text), None, "{text}");
    }
    for text in [r#"{"a":1,"b":[true,null,-3,0.25,"é\n\""],"c":{}}"#, "[]", "\"\"", "9007199254740992"] {
        let bytes = encode(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(decode(&bytes, LIMIT).as_deref(), Ok(text));
    }
}
