//! `canonicalize_exact` never gives two different numbers the same form.

use proptest::prelude::*;
use seal::json::Tape;
use seal::{CanonicalError, canonicalize, canonicalize_exact};

fn exact_form(text: &str) -> Result<String, CanonicalError> {
    canonicalize_exact(&Tape::default().read(text).unwrap().root())
}

/// A decimal number with the value `digits` × 10^`exponent`. The digits do not start with 0.
#[derive(Clone, Debug)]
struct Decimal {
    is_negative: bool,
    digits: String,
    exponent: i64,
}

/// How a decimal is written in JSON.
#[derive(Clone, Debug)]
struct Spelling {
    /// Digits before the point; 0 for a number that starts with `0.`.
    digits_before_point: usize,
    zeros_after_point: usize,
    zeros_at_end: usize,
    exponent_mark: &'static str,
}

fn decimal(max_digits: usize, exponents: std::ops::Range<i64>) -> impl Strategy<Value = Decimal> {
    let digits = (1..10_u8, proptest::collection::vec(0..10_u8, 0..max_digits));
    let digits = digits.prop_map(|(first, rest)| {
        std::iter::once(first).chain(rest).map(|digit| char::from(b'0' + digit)).collect::<String>()
    });
    (any::<bool>(), digits, exponents).prop_map(|(is_negative, digits, exponent)| Decimal {
        is_negative,
        digits,
        exponent,
    })
}

/// Generates decimals of every size. Some are close to 2^53 or to a double, where rounding matters.
fn any_decimal() -> impl Strategy<Value = Decimal> {
    let near_double = (any::<f64>().prop_filter("normal", |value| value.is_normal()), 14..25_usize);
    let near_double = near_double.prop_map(|(value, digits)| parse_scientific(&format!("{value:.digits$e}")));
    let near_2_to_the_53 = (9_007_199_254_740_980_u64..9_007_199_254_741_010, -3..4_i64)
        .prop_map(|(value, exponent)| Decimal { is_negative: false, digits: value.to_string(), exponent });
    prop_oneof![decimal(25, -340..330), decimal(5, -10..25), near_double, near_2_to_the_53]
}

/// Parses Rust's scientific notation, such as `-1.25e3`.
fn parse_scientific(text: &str) -> Decimal {
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap();
    let exponent = exponent.parse::<i64>().unwrap() - i64::try_from(fraction.len()).unwrap();
    Decimal { is_negative: mantissa.starts_with('-'), digits: format!("{whole}{fraction}"), exponent }
}

fn spelling() -> impl Strategy<Value = Spelling> {
    (0..30_usize, 0..3_usize, 0..3_usize, prop::sample::select(vec!["e", "E", "e0"])).prop_map(
        |(digits_before_point, zeros_after_point, zeros_at_end, exponent_mark)| Spelling {
            digits_before_point,
            zeros_after_point,
            zeros_at_end,
            exponent_mark,
        },
    )
}

fn spell(decimal: &Decimal, spelling: &Spelling) -> String {
    let sign = if decimal.is_negative { "-" } else { "" };
    let (whole, fraction) = match spelling.digits_before_point.min(decimal.digits.len()) {
        0 => ("0", format!("{}{}", "0".repeat(spelling.zeros_after_point), decimal.digits)),
        split => (&decimal.digits[..split], decimal.digits[split..].to_owned()),
    };
    let exponent = decimal.exponent + i64::try_from(fraction.len()).unwrap();
    let fraction = format!("{fraction}{}", "0".repeat(spelling.zeros_at_end));
    let point = if fraction.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { "-" } else { "" };
    let (letter, zeros) = spelling.exponent_mark.split_at(1);
    format!("{sign}{whole}{point}{fraction}{letter}{exponent_sign}{zeros}{}", exponent.abs())
}

/// Expands a JSON number that may have an exponent. Returns whether it is negative, its digits before the point and its
/// digits after the point, without superfluous zeros. Equal numbers have equal expansions.
fn expand(text: &str) -> (bool, String, String) {
    let lower = text.to_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
    let (mut whole, mut fraction) = (whole.trim_start_matches('-').to_owned(), fraction.to_owned());
    for _ in 0..exponent.parse::<i64>().unwrap().unsigned_abs() {
        if exponent.starts_with('-') {
            fraction.insert(0, whole.pop().unwrap_or('0'));
        } else {
            let moved = if fraction.is_empty() { '0' } else { fraction.remove(0) };
            whole.push(moved);
        }
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let is_zero = whole.is_empty() && fraction.is_empty();
    (text.starts_with('-') && !is_zero, whole.to_owned(), fraction.to_owned())
}

proptest! {
    /// The form preserves the value, so two numbers with the same form are equal.
    #[test]
    fn the_exact_form_has_the_value_of_the_number(value in any_decimal(), spelling in spelling()) {
        let text = spell(&value, &spelling);
        match exact_form(&text) {
            Ok(form) => prop_assert_eq!(expand(&form), expand(&text), "{} became {}", text, form),
            Err(CanonicalError::RoundedNumber(_)) => {
                if let Ok(form) = canonicalize(&Tape::default().read(&text).unwrap().root()) {
                    prop_assert_ne!(expand(&form), expand(&text), "{} is not rounded", text);
                }
            }
            Err(CanonicalError::NumberOutOfRange(_) | CanonicalError::UnsafeInteger(_)) => {}
            Err(error) => prop_assert!(false, "{}: {}", text, error),
        }
    }

    #[test]
    fn every_spelling_with_an_exponent_has_the_same_exact_form(
        value in any_decimal(), first in spelling(), second in spelling(),
    ) {
        let (first, second) = (spell(&value, &first), spell(&value, &second));
        match (exact_form(&first), exact_form(&second)) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a, b, "{} and {}", first, second),
            (Err(_), Err(_)) => {}
            (a, b) => prop_assert!(false, "{}: {:?}, but {}: {:?}", first, a, second, b),
        }
    }

    /// Decimals with at most 15 digits have different doubles.
    #[test]
    fn a_number_with_at_most_15_digits_has_an_exact_form(value in decimal(15, -15..1), spelling in spelling()) {
        let text = spell(&value, &spelling);
        prop_assert!(exact_form(&text).is_ok(), "{}", text);
    }
}

#[test]
fn numbers_that_round_to_the_same_double_do_not_both_have_an_exact_form() {
    for (exact, rounded) in [
        ("9007199254740992", "9007199254740993.0"),
        ("1e22", "10000000000000000000001.0"),
        ("0.1", "0.1000000000000000055511151231257827"),
        ("0", "1e-400"),
        ("-0.0", "-1e-99999999999999999999"),
    ] {
        assert!(exact_form(exact).is_ok(), "{exact}");
        assert_eq!(exact_form(rounded), Err(CanonicalError::RoundedNumber(rounded.to_owned())));
        // Numbers are checked at every depth.
        let nested = format!(r#"{{"a":[{{"b":{rounded}}}]}}"#);
        assert_eq!(exact_form(&nested), Err(CanonicalError::RoundedNumber(rounded.to_owned())));
    }
}
