//! Fuzzes the digest of a bound action. Two calls have the same digest if and only if they have the same tool and equal
//! arguments. Numbers are compared as decimals, not as doubles.
//!
//! An input has up to four parts, separated by NUL: the arguments of the first call and of the second call, and their tools.

#![no_main]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use aaep::consent::BoundAction;
use aaep::json::{JsonKind, JsonValue, Tape};
use libfuzzer_sys::fuzz_target;

/// A JSON value that can be compared exactly.
#[derive(Clone, Debug, PartialEq)]
enum ExactValue {
    Null,
    Bool(bool),
    Number(ExactNumber),
    Text(String),
    Array(Vec<ExactValue>),
    Object(BTreeMap<String, ExactValue>),
}

/// `digits` × 10^`exponent`. The digits have no zeros at either end, and zero has no digits.
#[derive(Clone, Debug, PartialEq)]
struct ExactNumber {
    is_negative: bool,
    digits: String,
    exponent: i128,
}

fuzz_target!(|text: &str| {
    let mut parts = text.split('\0');
    let first = parts.next().unwrap_or_default();
    let second = parts.next().unwrap_or_default();
    let first_tool = parts.next().unwrap_or("transfer");
    let second_tool = parts.next().unwrap_or(first_tool);
    compare((first_tool, first), (second_tool, second));

    let Ok(action) = BoundAction::new(first_tool, first) else { return };
    let value = exact_value(first);
    // The same call in another spelling is the same action.
    let mut respelled = String::new();
    respell(&value, &mut respelled);
    let same = BoundAction::new(first_tool, &respelled).expect("another spelling is accepted too");
    assert_eq!(action.digest(), same.digest(), "{first} and {respelled}");
    // A call that differs in the last digit of its numbers is another action.
    let mut nudged = String::new();
    respell(&nudge_numbers(value), &mut nudged);
    compare((first_tool, first), (first_tool, &nudged));
});

/// Checks that two calls have the same digest if and only if they are equal.
fn compare((first_tool, first): (&str, &str), (second_tool, second): (&str, &str)) {
    let (Ok(a), Ok(b)) = (BoundAction::new(first_tool, first), BoundAction::new(second_tool, second)) else {
        return;
    };
    let are_equal = first_tool == second_tool && exact_value(first) == exact_value(second);
    assert_eq!(a.digest() == b.digest(), are_equal, "{first_tool} {first} and {second_tool} {second}");
}

/// Reads the arguments of an accepted action.
fn exact_value(text: &str) -> ExactValue {
    let mut tape = Tape::default();
    read_exactly(&tape.read(text).expect("accepted arguments are JSON").root())
}

fn read_exactly(value: &JsonValue<'_>) -> ExactValue {
    match value.kind() {
        JsonKind::Null => ExactValue::Null,
        JsonKind::Bool => ExactValue::Bool(value.source() == "true"),
        JsonKind::Number => ExactValue::Number(read_number(value.source())),
        JsonKind::Text => ExactValue::Text(read_text(value)),
        JsonKind::Array => ExactValue::Array(value.items().map(|item| read_exactly(&item)).collect()),
        JsonKind::Object => {
            let mut members = BTreeMap::new();
            for (key, member) in value.members() {
                let previous = members.insert(read_text(&key), read_exactly(&member));
                assert_eq!(previous, None, "a duplicate key was accepted: {}", value.source());
            }
            ExactValue::Object(members)
        }
    }
}

fn read_text(value: &JsonValue<'_>) -> String {
    assert!(!value.has_lone_surrogate(), "a lone surrogate was accepted: {}", value.source());
    value.text().expect("a string").into_owned()
}

fn read_number(text: &str) -> ExactNumber {
    let lower = text.to_ascii_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let (whole, fraction) = mantissa
        .trim_start_matches('-')
        .split_once('.')
        .unwrap_or_else(|| (mantissa.trim_start_matches('-'), ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return ExactNumber { is_negative: false, digits: String::new(), exponent: 0 };
    }
    let exponent: i128 = exponent.parse().expect("a number with a huge exponent is refused");
    let exponent = exponent - fraction.len() as i128 + (digits.len() - significant.len()) as i128;
    ExactNumber { is_negative: text.starts_with('-'), digits: significant.to_owned(), exponent }
}

/// Writes a value with escaped strings, reversed members, white space and numbers in scientific notation.
fn respell(value: &ExactValue, out: &mut String) {
    match value {
        ExactValue::Null => out.push_str(" null"),
        ExactValue::Bool(value) => write!(out, "{value} ").expect("a string is writable"),
        ExactValue::Number(ExactNumber { is_negative, digits, exponent }) => {
            let (sign, digits) =
                (if *is_negative { "-" } else { "" }, if digits.is_empty() { "0" } else { digits });
            write!(out, "{sign}{digits}.0E{exponent}").expect("a string is writable");
        }
        ExactValue::Text(text) => respell_text(text, out),
        ExactValue::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ",\n" } else { "\t" });
                respell(item, out);
            }
            out.push(']');
        }
        ExactValue::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().rev().enumerate() {
                out.push_str(if index > 0 { " ," } else { " " });
                respell_text(key, out);
                out.push_str(" : ");
                respell(member, out);
            }
            out.push('}');
        }
    }
}

fn respell_text(text: &str, out: &mut String) {
    out.push('"');
    for unit in text.encode_utf16() {
        write!(out, "\\u{unit:04X}").expect("a string is writable");
    }
    out.push('"');
}

/// Adds a last digit to every number.
fn nudge_numbers(value: ExactValue) -> ExactValue {
    match value {
        ExactValue::Number(ExactNumber { is_negative, digits, exponent }) => {
            ExactValue::Number(ExactNumber {
                is_negative,
                digits: format!("{digits}1"),
                exponent: exponent - 1,
            })
        }
        ExactValue::Array(items) => ExactValue::Array(items.into_iter().map(nudge_numbers).collect()),
        ExactValue::Object(members) => ExactValue::Object(
            members.into_iter().map(|(key, member)| (key, nudge_numbers(member))).collect(),
        ),
        other => other,
    }
}
