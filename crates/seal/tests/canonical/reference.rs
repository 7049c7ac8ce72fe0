//! A second implementation of RFC 8785, which is slow, simple, and derived from the ECMAScript specification.

use std::cmp::Ordering;

use serde_json::Value;

/// Returns the canonical form.
pub(crate) fn canonicalize_slowly(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => format_number_slowly(number.as_f64().expect("within the range of a double")),
        Value::String(text) => quote_slowly(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonicalize_slowly).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            let mut members: Vec<(Vec<u16>, String)> = members
                .iter()
                .map(|(key, value)| {
                    (
                        key.encode_utf16().collect(),
                        format!("{}:{}", quote_slowly(key), canonicalize_slowly(value)),
                    )
                })
                .collect();
            members.sort();
            let members: Vec<String> = members.into_iter().map(|(_, member)| member).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

/// Removes the member at a path. Returns whether it existed.
pub(crate) fn remove_member(value: &mut Value, path: &[&str]) -> bool {
    match path {
        [] => false,
        [last] => value.as_object_mut().is_some_and(|object| object.remove(*last).is_some()),
        [first, rest @ ..] => value
            .as_object_mut()
            .and_then(|object| object.get_mut(*first))
            .is_some_and(|inner| remove_member(inner, rest)),
    }
}

fn quote_slowly(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|character| match character {
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '"' | '\\' => format!("\\{character}"),
            '\0'..='\u{1f}' => format!("\\u{:04x}", u32::from(character)),
            _ => character.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// Formats a number like ECMAScript's Number::toString: with the fewest digits that parse to the value, and among those
/// the closest ones, in a notation that depends on the magnitude.
pub(crate) fn format_number_slowly(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let (digits, exponent) = find_shortest_digits(value.abs());
    if value.abs() >= 1e21 || value.abs() < 1e-6 {
        let mut text = digits;
        if text.len() > 1 {
            text.insert(1, '.');
        }
        return format!("{sign}{text}e{exponent:+}");
    }
    // Writes all digits that this range could need, inserts the point, and trims the zeros.
    let mut text = "0".repeat(10);
    text.push_str(&digits);
    text.push_str(&"0".repeat(30));
    let point = usize::try_from(11 + exponent).expect("not below 1e-6");
    text.insert(point, '.');
    let text = text.trim_start_matches('0').trim_end_matches('0').trim_end_matches('.');
    if text.starts_with('.') { format!("{sign}0{text}") } else { format!("{sign}{text}") }
}

/// Returns the shortest digits and their exponent. At each length, tries the decimals below and above the value, because
/// next to a power of two, the closer one may not parse to the value although the other one does.
fn find_shortest_digits(value: f64) -> (String, i32) {
    // No double has more than 767 significant digits.
    let exact = format!("{value:.800e}");
    let (mantissa, exponent) = exact.split_once('e').expect("an exponent");
    let exact = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().expect("a small number");
    for count in 1..=17 {
        let (leading, dropped) = exact.split_at(count);
        let below = (leading.to_owned(), exponent);
        let above = match (leading.parse::<u64>().expect("17 digits at most") + 1).to_string() {
            carried if carried.len() > count => (carried[..count].to_owned(), exponent + 1),
            next => (next, exponent),
        };
        let parses_back = |(digits, exponent): &(String, i32)| {
            let text = format!("{}.{}e{exponent}", &digits[..1], &digits[1..]);
            text.replace(".e", "e").parse() == Ok(value)
        };
        // If the value is exactly halfway between the two, the even one is used (ECMA-262, Number::toString, note 2).
        let is_even = leading.ends_with(['0', '2', '4', '6', '8']);
        let compared_with_half = dropped.trim_end_matches('0').cmp("5");
        let below_is_closer =
            compared_with_half.then(if is_even { Ordering::Less } else { Ordering::Greater }).is_lt();
        let found = match (parses_back(&below), parses_back(&above)) {
            (true, above_parses) if below_is_closer || !above_parses => below,
            (_, true) => above,
            _ => continue,
        };
        return (found.0.trim_end_matches('0').to_owned(), found.1);
    }
    unreachable!("17 digits always parse back to the value")
}
