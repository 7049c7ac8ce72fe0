//! Canonical JSON (RFC 8785): one text for each value, so that equal values have equal hashes.
//!
//! Some values have no canonical form: those with a duplicate key, a lone surrogate, a number beyond the range of a double,
//! or an integer beyond ±2^53, which a double would silently round. They are an error and are never repaired.

use std::borrow::Cow;
use std::ops::Range;

use thiserror::Error;

use crate::json::{self, JsonKind, JsonNumber, JsonValue};

/// Why a value has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// An object contains this key twice.
    #[error("the key {0:?} appears twice in one object")]
    DuplicateKey(String),
    /// This string contains a lone surrogate.
    #[error("the string {0} contains a lone surrogate")]
    LoneSurrogate(String),
    /// This integer is beyond ±2^53.
    #[error("the integer {0} is beyond 2^53; write it as a string")]
    UnsafeInteger(String),
    /// This number is beyond the range of a double.
    #[error("the number {0} is beyond the range of a double")]
    NumberOutOfRange(String),
    /// This number would be rounded, so another number would have the same form. Only [`canonicalize_exact`] reports it.
    #[error("the number {0} would be rounded; write it as a string")]
    RoundedNumber(String),
}

/// Returns the canonical form of a value.
///
/// ```
/// let mut tape = seal::json::Tape::default();
/// let doc = tape.read(r#"{ "b": 1e2, "a": "\u00e9" }"#).unwrap();
/// assert_eq!(seal::canonicalize(&doc.root()).unwrap(), r#"{"a":"é","b":100}"#);
/// ```
pub fn canonicalize(value: &JsonValue<'_>) -> Result<String, CanonicalError> {
    CanonicalWriter::default().write(value, &[], &[]).map(|form| form.text)
}

/// Returns the canonical form of a value, or an error if it contains a number that this form would round. Two values with
/// the same exact form are therefore equal, whatever number type a reader uses.
///
/// ```
/// let mut tape = seal::json::Tape::default();
/// assert_eq!(seal::canonicalize_exact(&tape.read("[0.10, 5e2]").unwrap().root()).unwrap(), "[0.1,500]");
/// assert!(seal::canonicalize_exact(&tape.read("9007199254740993.0").unwrap().root()).is_err());
/// ```
pub fn canonicalize_exact(value: &JsonValue<'_>) -> Result<String, CanonicalError> {
    check_numbers(value)?;
    canonicalize(value)
}

fn check_numbers(value: &JsonValue<'_>) -> Result<(), CanonicalError> {
    match value.kind() {
        JsonKind::Array => value.items().try_for_each(|item| check_numbers(&item)),
        JsonKind::Object => value.members().try_for_each(|(_, member)| check_numbers(&member)),
        JsonKind::Number => match value.as_number() {
            Some(number) if !survives_rounding(&number) => {
                Err(CanonicalError::RoundedNumber(number.source().to_owned()))
            }
            _ => Ok(()),
        },
        JsonKind::Null | JsonKind::Bool | JsonKind::Text => Ok(()),
    }
}

/// Returns whether a number has the same decimal value as the shortest form of its double. Returns `true` for integers
/// and for numbers out of range, which [`write_number`] checks.
fn survives_rounding(number: &JsonNumber<'_>) -> bool {
    if number.is_integer() || number.is_out_of_range() {
        return true;
    }
    let rounded = format_number(number.as_f64());
    rounded.is_some_and(|rounded| decimal_parts(&rounded) == decimal_parts(number.source()))
}

/// Returns the value of a decimal text: its digits without zeros at either end, and the exponent of the last digit. Zero
/// has no digits. The sign is ignored.
fn decimal_parts(text: &str) -> (String, i64) {
    let text = text.trim_start_matches('-');
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return (String::new(), 0);
    }
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let dropped_zeros = length(&digits) - length(digits.trim_end_matches('0'));
    // Only a huge negative exponent can overflow `i64` here: with a huge positive exponent, the number is out of range
    // and never compared. The replacement is an exponent that no double has, so the comparison fails.
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MIN / 4);
    (significant.to_owned(), exponent - length(fraction) + dropped_zeros)
}

/// A canonical form with some members left out and one member marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalJson {
    /// The canonical text.
    pub text: String,
    /// The range to cut from `text` to remove the marked member: the member, and one comma if there is another member. `None`
    /// if there is no such member.
    pub marked_range: Option<Range<usize>>,
}

impl CanonicalJson {
    /// Returns the text before and after the marked member. Together they are the canonical form without it.
    pub fn without_marked_member(&self) -> [&str; 2] {
        let range = self.marked_range.clone().unwrap_or(0..0);
        [self.text.get(..range.start).unwrap_or(""), self.text.get(range.end..).unwrap_or("")]
    }
}

/// Writes canonical forms. Remembers the length of the longest one, to allocate enough memory for the next.
#[derive(Debug, Default)]
pub struct CanonicalWriter {
    capacity: usize,
}

impl CanonicalWriter {
    /// Writes the canonical form of a value without the members at the paths in `excluded`, and marks the member at
    /// `marked_path`. A path lists the keys from the outermost object inwards.
    pub fn write(
        &mut self,
        value: &JsonValue<'_>,
        excluded: &[&[&str]],
        marked_path: &[&str],
    ) -> Result<CanonicalJson, CanonicalError> {
        let mut pass = CanonicalPass {
            out: String::with_capacity(self.capacity.max(value.source().len())),
            members: Vec::new(),
            path: Vec::new(),
            excluded,
            marked_path,
            marked_range: None,
        };
        pass.write_value(value, true)?;
        self.capacity = self.capacity.max(pass.out.len());
        Ok(CanonicalJson { text: pass.out, marked_range: pass.marked_range })
    }
}

struct CanonicalPass<'p, 'd> {
    out: String,
    /// The members of all open objects, innermost last.
    members: Vec<(Cow<'d, str>, JsonValue<'d>)>,
    /// The keys from the root to the current object. Tracked only while they are a prefix of `marked_path` or of a path in
    /// `excluded`.
    path: Vec<Cow<'d, str>>,
    excluded: &'p [&'p [&'p str]],
    marked_path: &'p [&'p str],
    marked_range: Option<Range<usize>>,
}

impl<'d> CanonicalPass<'_, 'd> {
    /// Writes a value. If `is_on_path` is false, no path leads into the value.
    fn write_value(&mut self, value: &JsonValue<'d>, is_on_path: bool) -> Result<(), CanonicalError> {
        match value.kind() {
            JsonKind::Null => self.out.push_str("null"),
            JsonKind::Bool => self.out.push_str(if value.as_bool() == Some(true) { "true" } else { "false" }),
            JsonKind::Number => {
                if let Some(number) = value.as_number() {
                    write_number(&mut self.out, &number)?;
                }
            }
            JsonKind::Text => {
                if value.has_lone_surrogate() {
                    return Err(CanonicalError::LoneSurrogate(value.source().to_owned()));
                }
                match value.plain_text() {
                    // Text without escapes contains nothing that needs an escape.
                    Some(plain) => {
                        self.out.push('"');
                        self.out.push_str(plain);
                        self.out.push('"');
                    }
                    None => quote(&mut self.out, &value.text().unwrap_or_default()),
                }
            }
            JsonKind::Array => {
                self.out.push('[');
                for (index, item) in value.items().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.write_value(&item, false)?;
                }
                self.out.push(']');
            }
            JsonKind::Object => self.write_object(value, is_on_path)?,
        }
        Ok(())
    }

    fn write_object(&mut self, object: &JsonValue<'d>, is_on_path: bool) -> Result<(), CanonicalError> {
        let first_index = self.members.len();
        for (key, value) in object.members() {
            if key.has_lone_surrogate() {
                return Err(CanonicalError::LoneSurrogate(key.source().to_owned()));
            }
            self.members.push((key.text().unwrap_or_default(), value));
        }
        self.members[first_index..].sort_by(|(a, _), (b, _)| compare_utf16(a, b));
        if let Some(duplicate) = self.members[first_index..].windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(CanonicalError::DuplicateKey(duplicate[0].0.clone().into_owned()));
        }
        self.out.push('{');
        let mut is_first = true;
        for index in first_index..self.members.len() {
            let value = self.members[index].1;
            let mut child_is_on_path = false;
            if is_on_path {
                let key = &self.members[index].0;
                if self.excluded.iter().any(|path| self.match_path(path, key) == Some(true)) {
                    continue;
                }
                child_is_on_path = self.excluded.iter().any(|path| self.match_path(path, key).is_some())
                    || self.match_path(self.marked_path, key).is_some();
            }
            let is_marked =
                is_on_path && self.match_path(self.marked_path, &self.members[index].0) == Some(true);
            let start = self.out.len();
            if !is_first {
                self.out.push(',');
            }
            // If the marked member came first, the comma to cut is the one after it.
            if !is_first
                && let Some(range) = self.marked_range.as_mut()
                && range.end == start
                && self.out.as_bytes().get(range.start.wrapping_sub(1)) == Some(&b'{')
            {
                range.end += 1;
            }
            is_first = false;
            let key = self.members[index].0.clone();
            quote(&mut self.out, &key);
            self.out.push(':');
            if child_is_on_path {
                self.path.push(key);
            }
            self.write_value(&value, child_is_on_path)?;
            if child_is_on_path {
                self.path.pop();
            }
            if is_marked {
                self.marked_range = Some(start..self.out.len());
            }
        }
        self.members.truncate(first_index);
        self.out.push('}');
        Ok(())
    }

    /// Matches `key` in the current object against a path. Returns `Some(true)` if it is the last key of the path,
    /// `Some(false)` if it is an earlier one, and `None` if it does not match.
    fn match_path(&self, path: &[&str], key: &str) -> Option<bool> {
        let depth = self.path.len();
        let matches = path.len() > depth
            && path[depth] == key
            && path.iter().zip(&self.path).all(|(expected, actual)| *expected == actual.as_ref());
        matches.then_some(path.len() == depth + 1)
    }
}

/// Compares keys by their UTF-16 code units (RFC 8785 §3.2.3).
fn compare_utf16(a: &str, b: &str) -> std::cmp::Ordering {
    // Byte order is code point order, which differs from UTF-16 order only beyond the basic multilingual plane.
    if a.is_ascii() || b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// Writes a quoted string (RFC 8785 §3.2.2.2).
fn quote(out: &mut String, text: &str) {
    json::quote(out, text, |byte| match byte {
        0x08 => Some("\\b"),
        0x09 => Some("\\t"),
        0x0A => Some("\\n"),
        0x0C => Some("\\f"),
        0x0D => Some("\\r"),
        _ => None,
    });
}

fn write_number(out: &mut String, number: &JsonNumber<'_>) -> Result<(), CanonicalError> {
    if number.is_unsafe_integer() {
        return Err(CanonicalError::UnsafeInteger(number.source().to_owned()));
    }
    if number.is_out_of_range() {
        return Err(CanonicalError::NumberOutOfRange(number.source().to_owned()));
    }
    if number.is_integer() {
        // An integer has only one spelling in JSON, except for zero, which may have a sign.
        out.push_str(if number.source() == "-0" { "0" } else { number.source() });
    } else {
        let value = number.as_f64();
        // `1e16` would be written as an integer beyond 2^53, which has no canonical form.
        if value.abs() > 9_007_199_254_740_992.0 && value.abs() < 1e21 {
            return Err(CanonicalError::UnsafeInteger(number.source().to_owned()));
        }
        out.push_str(&format_number(value).unwrap_or_default());
    }
    Ok(())
}

/// Formats a double as ECMAScript does (RFC 8785 §3.2.2.3). Returns `None` if the value is not finite.
///
/// ```
/// assert_eq!(seal::format_number(1e21).unwrap(), "1e+21");
/// assert_eq!(seal::format_number(-0.0).unwrap(), "0");
/// assert_eq!(seal::format_number(f64::NAN), None);
/// ```
pub fn format_number(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    if value == 0.0 {
        return Some("0".to_owned());
    }
    let shortest = shortest_decimal(value.abs());
    let (mantissa, exponent) = shortest.split_once('e')?;
    let digits = mantissa.replace('.', "");
    let point = exponent.parse::<i32>().ok()? + 1;
    let digit_count = i32::try_from(digits.len()).ok()?;
    let sign = if value < 0.0 { "-" } else { "" };
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    Some(match point {
        _ if digit_count <= point && point <= 21 => {
            format!("{sign}{digits}{}", zeros(point - digit_count))
        }
        1..=21 => {
            let (whole, rest) = digits.split_at(usize::try_from(point).ok()?);
            format!("{sign}{whole}.{rest}")
        }
        -5..=0 => format!("{sign}0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            let exponent_sign = if point > 0 { "+" } else { "-" };
            format!("{sign}{first}{dot}{rest}e{exponent_sign}{}", (point - 1).abs())
        }
    })
}

/// Returns the shortest decimal that parses to `value`, such as `1.25e3`. Among equally short decimals, returns the one
/// closest to `value`.
fn shortest_decimal(value: f64) -> String {
    let shortest = format!("{value:e}");
    // If two decimals are equally close, ECMAScript picks the even one, but `{:e}` picks the greater one. `{:.*e}`, which has
    // a fixed number of digits, picks the even one, too. With fewer than 16 digits there can be no tie.
    let digit_count = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if digit_count < 16 {
        return shortest;
    }
    let closest = format!("{value:.*e}", digit_count - 1);
    // Next to a power of two, the closest decimal may parse to the neighbouring double.
    if closest.parse() == Ok(value) { closest } else { shortest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn canonical_form(text: &str, excluded: &[&[&str]], marked_path: &[&str]) -> CanonicalJson {
        let mut tape = Tape::default();
        CanonicalWriter::default().write(&tape.read(text).unwrap().root(), excluded, marked_path).unwrap()
    }

    #[test]
    fn members_are_excluded_only_at_their_path() {
        let result = canonical_form(r#"{"b":{"x":1,"y":2},"x":3,"c":[{"x":4}]}"#, &[&["b", "x"]], &[]);
        assert_eq!(result.text, r#"{"b":{"y":2},"c":[{"x":4}],"x":3}"#);
    }

    #[test]
    fn cutting_the_marked_member_equals_excluding_it() {
        for text in [
            r#"{"s":{"n":[1,2],"a":1,"z":2},"n":0}"#,
            r#"{"s":{"n":{},"z":2}}"#,
            r#"{"s":{"a":{"n":1},"n":"x"}}"#,
            r#"{"s":{"n":"only"},"t":1}"#,
            r#"{"a":{"n":5},"s":{"nn":1}}"#,
        ] {
            let marked = canonical_form(text, &[], &["s", "n"]);
            let without = canonical_form(text, &[&["s", "n"]], &[]);
            assert_eq!(marked.without_marked_member().concat(), without.text, "{text}");
            assert_eq!(marked.text, canonical_form(text, &[], &[]).text);
        }
    }
}
