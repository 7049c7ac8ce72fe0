//! Compares canonical JSON with the examples of RFC 8785 and with a second, independent and slower implementation.

mod random_spelling;
mod reference;

use proptest::prelude::*;
use random_spelling::spell_randomly;
use reference::{canonicalize_slowly, format_number_slowly, remove_member};
use seal::json::Tape;
use seal::{CanonicalError, CanonicalJson, CanonicalWriter, canonicalize, format_number};
use serde_json::{Map, Value};
use testing::hex;
use testing::property::cases;

fn canonical_form(text: &str) -> Result<String, CanonicalError> {
    canonicalize(&Tape::default().read(text).expect(text).root())
}

fn write_canonical(text: &str, excluded: &[&[&str]], marked_path: &[&str]) -> CanonicalJson {
    CanonicalWriter::default()
        .write(&Tape::default().read(text).expect(text).root(), excluded, marked_path)
        .expect(text)
}

/// RFC 8785 appendix B.
const NUMBERS: [(u64, Option<&str>); 26] = [
    (0x0000_0000_0000_0000, Some("0")),
    (0x8000_0000_0000_0000, Some("0")),
    (0x0000_0000_0000_0001, Some("5e-324")),
    (0x8000_0000_0000_0001, Some("-5e-324")),
    (0x7fef_ffff_ffff_ffff, Some("1.7976931348623157e+308")),
    (0xffef_ffff_ffff_ffff, Some("-1.7976931348623157e+308")),
    (0x4340_0000_0000_0000, Some("9007199254740992")),
    (0xc340_0000_0000_0000, Some("-9007199254740992")),
    (0x4430_0000_0000_0000, Some("295147905179352830000")),
    (0x7fff_ffff_ffff_ffff, None),
    (0x7ff0_0000_0000_0000, None),
    (0x44b5_2d02_c7e1_4af5, Some("9.999999999999997e+22")),
    (0x44b5_2d02_c7e1_4af6, Some("1e+23")),
    (0x44b5_2d02_c7e1_4af7, Some("1.0000000000000001e+23")),
    (0x444b_1ae4_d6e2_ef4e, Some("999999999999999700000")),
    (0x444b_1ae4_d6e2_ef4f, Some("999999999999999900000")),
    (0x444b_1ae4_d6e2_ef50, Some("1e+21")),
    (0x3eb0_c6f7_a0b5_ed8c, Some("9.999999999999997e-7")),
    (0x3eb0_c6f7_a0b5_ed8d, Some("0.000001")),
    (0x41b3_de43_5555_5553, Some("333333333.3333332")),
    (0x41b3_de43_5555_5554, Some("333333333.33333325")),
    (0x41b3_de43_5555_5555, Some("333333333.3333333")),
    (0x41b3_de43_5555_5556, Some("333333333.3333334")),
    (0x41b3_de43_5555_5557, Some("333333333.33333343")),
    (0xbecb_f647_612f_3696, Some("-0.0000033333333333333333")),
    (0x4314_3ff3_c1cb_0959, Some("1424953923781206.2")),
];

#[test]
fn the_numbers_of_appendix_b_are_printed_as_published() {
    for (bits, expected) in NUMBERS {
        assert_eq!(format_number(f64::from_bits(bits)).as_deref(), expected, "{bits:016x}");
        if let Some(expected) = expected {
            assert_eq!(format_number_slowly(f64::from_bits(bits)), expected, "the reference, {bits:016x}");
        }
    }
    assert_eq!(format_number(f64::NEG_INFINITY), None);
    assert_eq!(format_number(-f64::NAN), None);
}

#[test]
fn a_tie_between_two_shortest_decimals_is_resolved_to_the_even_one() {
    // ECMA-262, Number::toString, note 2. Each value is a double exactly halfway between two decimals.
    for (exact, expected) in [
        ("1424953923781206.25", "1424953923781206.2"),
        ("1424953923781206.75", "1424953923781206.8"),
        ("-1424953923781206.25", "-1424953923781206.2"),
        ("536870912.50390625", "536870912.5039062"),
        ("1.00000762939453125", "1.0000076293945312"),
        ("1.00002288818359375", "1.0000228881835938"),
    ] {
        let value: f64 = exact.parse().unwrap();
        assert_eq!(format_number(value).as_deref(), Some(expected), "{exact}");
        assert_eq!(format_number_slowly(value), expected, "the reference, {exact}");
        assert_eq!(canonical_form(exact).as_deref(), Ok(expected));
    }
}

#[test]
fn the_example_of_section_3_2_2_has_the_bytes_of_section_3_2_4() {
    let text = r#"{
      "numbers": [333333333.33333329, 1E30, 4.50,
                  2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"#;
    let bytes: [u8; 118] = hex::decode_array(
        "7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
         75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
         5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
         65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
         5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
         30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d",
    );
    assert_eq!(canonical_form(text).unwrap().as_bytes(), bytes);
}

#[test]
fn keys_are_in_the_order_of_section_3_2_3() {
    let text = r#"{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let expected = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
        \"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",\
        \"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
    assert_eq!(canonical_form(text).unwrap(), expected);
}

#[test]
fn keys_are_sorted_in_every_object_and_arrays_keep_their_order() {
    let text = r#"{"b":[3,{"z":1,"a":{"d":[],"c":{}}},2],"":0,"aa":1,"a":2,"B":3,"10":4,"2":5}"#;
    let expected = r#"{"":0,"10":4,"2":5,"B":3,"a":2,"aa":1,"b":[3,{"a":{"c":{},"d":[]},"z":1},2]}"#;
    assert_eq!(canonical_form(text).unwrap(), expected);
}

#[test]
fn only_required_escapes_are_written() {
    for code in 0..0x20_u32 {
        let expected = match code {
            8 => "\"\\b\"".to_owned(),
            9 => "\"\\t\"".to_owned(),
            10 => "\"\\n\"".to_owned(),
            12 => "\"\\f\"".to_owned(),
            13 => "\"\\r\"".to_owned(),
            _ => format!("\"\\u{code:04x}\""),
        };
        assert_eq!(canonical_form(&format!("\"\\u{code:04X}\"")).unwrap(), expected);
        assert_eq!(canonical_form(&format!("{{\"\\u{code:04X}\":0}}")).unwrap(), format!("{{{expected}:0}}"));
    }
    for plain in
        ['/', '\'', '<', '&', '\u{7f}', '\u{80}', '\u{2028}', '\u{fffd}', '\u{feff}', '\u{ffff}', '😀']
    {
        assert_eq!(canonical_form(&format!("\"{plain}\"")).unwrap(), format!("\"{plain}\""));
        let mut units = [0; 2];
        let escaped: Vec<_> =
            plain.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let escaped = escaped.concat();
        assert_eq!(canonical_form(&format!("\"{escaped}\"")).unwrap(), format!("\"{plain}\""));
    }
    assert_eq!(canonical_form(r#""\"\\\/""#).unwrap(), r#""\"\\/""#);
    // Composed and decomposed letters stay as they are (RFC 8785 §3.1).
    assert_eq!(canonical_form("\"\u{e5} a\u{30a}\"").unwrap(), "\"\u{e5} a\u{30a}\"");
}

#[test]
fn every_spelling_of_a_number_has_one_canonical_text() {
    for (spellings, expected) in [
        (&["0", "-0", "0.0", "-0.0", "0e0", "-0E-5", "0e999999", "1e-400", "-1e-400"][..], "0"),
        (&["100", "1e2", "1E+2", "100.000", "0.1e3", "1000e-1"], "100"),
        (&["-1.5", "-15e-1", "-0.15E1"], "-1.5"),
        (&["1e21", "1000000000000000000000.0", "1.0e+21"], "1e+21"),
        (&["1e-7", "0.0000001"], "1e-7"),
        (&["0.000001", "1e-6"], "0.000001"),
        (&["9007199254740992", "9007199254740992.0", "9.007199254740992e15"], "9007199254740992"),
        (&["-9007199254740992"], "-9007199254740992"),
        (&["1.7976931348623157e308", "1.7976931348623158e308"], "1.7976931348623157e+308"),
        (&["4.9e-324", "2.4703282292062328e-324"], "5e-324"),
        (&["0.30000000000000004", "0.30000000000000004000000000000000001"], "0.30000000000000004"),
    ] {
        for spelling in spellings {
            assert_eq!(canonical_form(spelling).as_deref(), Ok(expected), "{spelling}");
        }
    }
}

#[test]
fn integers_beyond_2_to_the_53_are_refused() {
    for digits in [
        "9007199254740993",
        "9007199254740994",
        "10000000000000000",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551617",
        "123456789012345678901234567890",
        &"9".repeat(400),
    ] {
        for digits in [digits.to_owned(), format!("-{digits}")] {
            assert_eq!(canonical_form(&digits), Err(CanonicalError::UnsafeInteger(digits.clone())));
            let deep = format!("{{\"a\":[1,{{\"b\":{digits}}}]}}");
            assert_eq!(canonical_form(&deep), Err(CanonicalError::UnsafeInteger(digits)));
        }
    }
    for digits in ["9007199254740992", "9007199254740991", "999999999999999", "1000000000000000"] {
        for digits in [digits.to_owned(), format!("-{digits}")] {
            assert_eq!(canonical_form(&digits), Ok(digits));
        }
    }
}

#[test]
fn numbers_beyond_a_double_are_refused() {
    for digits in
        ["1e309", "-1e309", "1e400", "1.8e308", "1e99999999999999999999", "179769313486231580794e288"]
    {
        assert_eq!(canonical_form(digits), Err(CanonicalError::NumberOutOfRange(digits.to_owned())));
    }
    let long = format!("{}.5", "9".repeat(310));
    assert_eq!(canonical_form(&long), Err(CanonicalError::NumberOutOfRange(long.clone())));
}

#[test]
fn duplicate_keys_are_refused_in_any_spelling() {
    for (text, key) in [
        (r#"{"a":1,"a":1}"#, "a"),
        (r#"{"a":1,"b":2,"c":3,"a":2}"#, "a"),
        (r#"{"a":1,"\u0061":2}"#, "a"),
        (r#"{"\u0061":1,"\u0061":2}"#, "a"),
        (r#"{"":1,"":2}"#, ""),
        (r#"{"/":1,"\/":2}"#, "/"),
        (r#"{"\n":1,"\u000A":2}"#, "\n"),
        (r#"{"😀":1,"\ud83d\uDE00":2}"#, "😀"),
        (r#"[0,{"x":{"é":1,"\u00e9":2}}]"#, "é"),
    ] {
        assert_eq!(canonical_form(text), Err(CanonicalError::DuplicateKey(key.to_owned())), "{text}");
    }
    assert!(canonical_form(r#"{"a":{"a":{"a":1}},"A":2,"\u00e5":3,"a\u030a":4}"#).is_ok());
}

#[test]
fn a_lone_surrogate_is_refused_in_values_and_keys() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\uDFFF x""#,
        r#""x \uD83D""#,
        r#""\ude00\ud83d""#,
        r#""\ud83d\ud83d""#,
        r#""\ud83d\u0041""#,
        r#""\ud83d\ude00\ude00""#,
        r#""\ud83d\\ude00""#,
        r#""\ud83d ude00""#,
    ] {
        assert_eq!(canonical_form(text), Err(CanonicalError::LoneSurrogate(text.to_owned())));
        assert_eq!(
            canonical_form(&format!("[1,{text}]")),
            Err(CanonicalError::LoneSurrogate(text.to_owned()))
        );
        assert_eq!(
            canonical_form(&format!("{{{text}:1}}")),
            Err(CanonicalError::LoneSurrogate(text.to_owned()))
        );
        assert_eq!(
            canonical_form(&format!("{{\"a\":{text}}}")),
            Err(CanonicalError::LoneSurrogate(text.to_owned()))
        );
    }
    assert_eq!(canonical_form(r#""\\ud800 \ud83d\ude00""#).unwrap(), r#""\\ud800 😀""#);
}

#[test]
fn a_member_is_excluded_only_at_its_path() {
    let text = r#"{"x":1,"a":{"x":2,"b":{"x":3}},"c":[{"x":4}],"b":{"x":5}}"#;
    for (path, expected) in [
        (&["x"][..], r#"{"a":{"b":{"x":3},"x":2},"b":{"x":5},"c":[{"x":4}]}"#),
        (&["a", "x"], r#"{"a":{"b":{"x":3}},"b":{"x":5},"c":[{"x":4}],"x":1}"#),
        (&["a", "b", "x"], r#"{"a":{"b":{},"x":2},"b":{"x":5},"c":[{"x":4}],"x":1}"#),
        (&["a"], r#"{"b":{"x":5},"c":[{"x":4}],"x":1}"#),
        (&["c", "x"], r#"{"a":{"b":{"x":3},"x":2},"b":{"x":5},"c":[{"x":4}],"x":1}"#),
        (&["x", "x"], r#"{"a":{"b":{"x":3},"x":2},"b":{"x":5},"c":[{"x":4}],"x":1}"#),
        (&[], r#"{"a":{"b":{"x":3},"x":2},"b":{"x":5},"c":[{"x":4}],"x":1}"#),
    ] {
        assert_eq!(write_canonical(text, &[path], &[]).text, expected, "{path:?}");
    }
    assert_eq!(write_canonical(text, &[&["x"], &["a"], &["b"], &["c"]], &[]).text, "{}");
    // Paths match decoded keys, not their spellings.
    assert_eq!(write_canonical(r#"{"\u0061":{"\"":1}}"#, &[&["a", "\""]], &[]).text, r#"{"a":{}}"#);
    // Paths do not match inside arrays.
    assert_eq!(
        write_canonical(r#"[{"a":1}]"#, &[&["a"]], &["a"]),
        CanonicalJson { text: r#"[{"a":1}]"#.into(), marked_range: None }
    );
}

#[test]
fn a_reused_writer_keeps_no_state() {
    let mut writer = CanonicalWriter::default();
    let mut tape = Tape::default();
    let long = format!("{{\"a\":{{\"b\":\"{}\"}}}}", "x".repeat(1000));
    assert!(
        writer.write(&tape.read(&long).unwrap().root(), &[], &["a", "b"]).unwrap().marked_range.is_some()
    );
    assert!(writer.write(&tape.read(r#"{"a":{"b":1,"b":2}}"#).unwrap().root(), &[], &["a", "b"]).is_err());
    let short = writer.write(&tape.read(r#"{"b":1}"#).unwrap().root(), &[], &["a", "b"]).unwrap();
    assert_eq!(short, CanonicalJson { text: r#"{"b":1}"#.into(), marked_range: None });
    assert_eq!(short.without_marked_member(), ["", r#"{"b":1}"#]);
}

/// Generates characters whose UTF-8 and UTF-16 orders differ, or that need escapes.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        3 => proptest::char::range(' ', '~'),
        2 => proptest::char::range('\0', '\u{1f}'),
        1 => proptest::sample::select(vec!['"', '\\', '/', '\u{7f}', '\u{80}', 'é', '\u{d7ff}', '\u{e000}']),
        1 => proptest::sample::select(vec!['\u{fb33}', '\u{fffd}', '\u{ffff}', '\u{10000}', '😀', '\u{10ffff}']),
        1 => any::<char>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(character(), 0..6).prop_map(|letters| letters.into_iter().collect())
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        // Values around powers of ten and two, among them 1e-7, 1e-6 and 1e21, where the notation changes.
        (-330..310_i32, -3..4_i64)
            .prop_map(|(power, steps)| step(format!("1e{power}").parse().unwrap(), steps)),
        (-1074..1024_i32, -3..4_i64).prop_map(|(power, steps)| step(2_f64.powi(power), steps)),
        (any::<i32>(), 0..25_i32).prop_map(|(digits, power)| f64::from(digits) / 10_f64.powi(power)),
        // Some of these have few bits after the point and lie exactly halfway between two decimals.
        (any::<i32>(), any::<i16>(), 0..50_i32)
            .prop_map(|(whole, part, power)| f64::from(whole) + f64::from(part) * 2_f64.powi(-power)),
    ]
    .prop_filter("JSON has finite numbers only", |value| value.is_finite())
}

/// Returns the double that is `steps` doubles after `value`.
fn step(value: f64, steps: i64) -> f64 {
    f64::from_bits(value.to_bits().saturating_add_signed(steps))
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-(1_i64 << 53)..=1 << 53).prop_map(Value::from),
        (-20..20_i64).prop_map(Value::from),
        double().prop_map(Value::from),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    // Doubles that would be written as an integer beyond 2^53 have no canonical form. Another test covers them.
    let has_canonical_form = |value: &Value| {
        let magnitude = value.as_f64().unwrap_or_default().abs();
        magnitude <= 9_007_199_254_740_992.0 || magnitude >= 1e21
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_filter("has a canonical form", has_canonical_form),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((text(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Generates keys from a small set, so that paths often match.
fn key() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["a", "b", "c", "\"", "é"]).prop_map(str::to_owned)
}

fn nested() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), text().prop_map(Value::String), Just(Value::Array(vec![]))];
    leaf.prop_recursive(4, 60, 5, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            4 => proptest::collection::vec((key(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn path() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(key(), 0..4)
}

fn as_strs(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn a_formatted_double_is_short_and_parses_back(value in double()) {
        let text = format_number(value).unwrap();
        let reparsed: f64 = text.parse().unwrap();
        // -0 is formatted as 0. Adding 0.0 makes the two equal.
        prop_assert_eq!((reparsed + 0.0).to_bits(), (value + 0.0).to_bits(), "{} is not {:e}", text, value);
        prop_assert!(reparsed != 0.0 || text == "0", "{}", text);
        // 17 digits after "-0.00000", as in the second to last row of appendix B.
        prop_assert!(text.len() <= 25, "{}", text);
        prop_assert_eq!(text, format_number_slowly(value));
    }
}

#[test]
fn a_double_that_would_print_as_an_integer_beyond_2_to_the_53_is_refused() {
    for text in ["1e16", "-1e16", "9007199254740994.0", "9.99e20", "123456789012345678901e0"] {
        assert_eq!(canonical_form(text), Err(CanonicalError::UnsafeInteger(text.to_owned())), "{text}");
    }
    assert_eq!(canonical_form("9007199254740992.0").as_deref(), Ok("9007199254740992"));
    assert_eq!(canonical_form("1e21").as_deref(), Ok("1e+21"));
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn every_spelling_matches_the_reference_implementation(
        value in json(),
        choices in proptest::collection::vec(any::<u8>(), 1..200),
    ) {
        let text = spell_randomly(&value, &choices);
        let canonical = canonical_form(&text);
        prop_assert_eq!(canonical, Ok(canonicalize_slowly(&value)), "{}", text);
    }

    #[test]
    fn canonicalizing_twice_changes_nothing(value in json(), choices in proptest::collection::vec(any::<u8>(), 1..200)) {
        let once = canonical_form(&spell_randomly(&value, &choices)).unwrap();
        prop_assert_eq!(canonical_form(&once), Ok(once.clone()));
    }

    #[test]
    fn the_canonical_form_preserves_strings_and_keys(value in json(), choices in proptest::collection::vec(any::<u8>(), 1..99)) {
        // Another parser must find the same strings and keys. The numbers that it parses may differ in the last digit.
        let once = canonical_form(&spell_randomly(&value, &choices)).unwrap();
        let reparsed: Value = serde_json::from_str(&once).unwrap();
        prop_assert_eq!(describe_structure(&reparsed), describe_structure(&value));
    }

    #[test]
    fn cutting_the_marked_member_equals_excluding_it(
        value in nested(),
        choices in proptest::collection::vec(any::<u8>(), 1..200),
        excluded in proptest::collection::vec(path(), 0..3),
        marked_path in path(),
    ) {
        let text = spell_randomly(&value, &choices);
        let paths: Vec<Vec<&str>> = excluded.iter().map(|path| as_strs(path)).collect();
        let mut paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
        let marked_path = as_strs(&marked_path);

        let mut expected = value.clone();
        for path in &paths {
            remove_member(&mut expected, path);
        }
        let marked = write_canonical(&text, &paths, &marked_path);
        prop_assert_eq!(&marked.text, &canonicalize_slowly(&expected));
        prop_assert_eq!(&write_canonical(&text, &paths, &[]).text, &marked.text);

        let was_present = remove_member(&mut expected, &marked_path);
        prop_assert_eq!(marked.without_marked_member().concat(), canonicalize_slowly(&expected), "{:?} of {}", marked_path, marked.text);
        prop_assert_eq!(marked.marked_range.is_some(), was_present);
        paths.push(&marked_path);
        let cut = write_canonical(&text, &paths, &marked_path);
        prop_assert_eq!(&cut.text, &canonicalize_slowly(&expected));
        prop_assert_eq!(cut.marked_range, None);
    }
}

/// Formats a value in a fixed member order, with a placeholder for numbers.
fn describe_structure(value: &Value) -> String {
    match value {
        Value::Number(_) => "#".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(describe_structure).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            let mut all: Vec<_> =
                members.iter().map(|(key, value)| format!("{key:?}:{}", describe_structure(value))).collect();
            all.sort();
            format!("{{{}}}", all.join(","))
        }
        other => format!("{other:?}"),
    }
}
