//! Canonical JSON (RFC 8785): one text for one value, so that a hash means something.
//!
//! What has no canonical form is refused, never mended: a doubled key, half a surrogate pair, a number beyond the range of
//! a double, and an integer beyond ±2^53, which a double would round in silence.

use std::borrow::Cow;
use std::ops::Range;

use thiserror::Error;

use crate::json::{self, Kind, Number, Value};

/// Why a value has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotCanonical {
    /// An object has this key twice.
    #[error("the key {0:?} stands twice in one object")]
    DoubledKey(String),
    /// This string has half of a surrogate pair.
    #[error("the string {0} has half of a surrogate pair")]
    LoneSurrogate(String),
    /// This integer is beyond ±2^53.
    #[error("the integer {0} is beyond 2^53; write it as a string")]
    BigInteger(String),
    /// This number is beyond the range of a double.
    #[error("the number {0} is beyond the range of a double")]
    HugeNumber(String),
}

/// The canonical form of a value.
///
/// ```
/// let mut tape = seal::json::Tape::default();
/// let doc = tape.read(r#"{ "b": 1e2, "a": "\u00e9" }"#).unwrap();
/// assert_eq!(seal::canonical(&doc.root()).unwrap(), r#"{"a":"é","b":100}"#);
/// ```
pub fn canonical(value: &Value<'_>) -> Result<String, NotCanonical> {
    Canonical::default().write(value, &[], &[]).map(|form| form.text)
}

/// A canonical form from which members were left out, and in which one was noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The form.
    pub text: String,
    /// What to cut from it to have the form without the noted member too: the member and one comma.
    pub noted: Option<Range<usize>>,
}

impl Form {
    /// The two pieces that remain when the noted member is cut out.
    pub fn without_noted(&self) -> [&str; 2] {
        let range = self.noted.clone().unwrap_or(0..0);
        [self.text.get(..range.start).unwrap_or(""), self.text.get(range.end..).unwrap_or("")]
    }
}

/// A writer of canonical forms, with memory to be used again.
#[derive(Debug, Default)]
pub struct Canonical {
    capacity: usize,
}

impl Canonical {
    /// The form of a value without the members at the paths of `without`, noting the member at `note`. A path is the keys
    /// from the outermost object down.
    pub fn write(
        &mut self,
        value: &Value<'_>,
        without: &[&[&str]],
        note: &[&str],
    ) -> Result<Form, NotCanonical> {
        let mut pass = Pass {
            out: String::with_capacity(self.capacity.max(value.source().len())),
            members: Vec::new(),
            path: Vec::new(),
            without,
            note,
            noted: None,
        };
        pass.value(value, true)?;
        self.capacity = self.capacity.max(pass.out.len());
        Ok(Form { text: pass.out, noted: pass.noted })
    }
}

struct Pass<'p, 'd> {
    out: String,
    /// The members of all objects that are open, the innermost last.
    members: Vec<(Cow<'d, str>, Value<'d>)>,
    /// The keys down to here, as far as some path of `without` or `note` goes along.
    path: Vec<Cow<'d, str>>,
    without: &'p [&'p [&'p str]],
    note: &'p [&'p str],
    noted: Option<Range<usize>>,
}

impl<'d> Pass<'_, 'd> {
    fn value(&mut self, value: &Value<'d>, watched: bool) -> Result<(), NotCanonical> {
        match value.kind() {
            Kind::Null => self.out.push_str("null"),
            Kind::Bool => self.out.push_str(if value.boolean() == Some(true) { "true" } else { "false" }),
            Kind::Number => {
                if let Some(number) = value.number() {
                    write_number(&mut self.out, &number)?;
                }
            }
            Kind::Text => {
                if value.has_lone_surrogate() {
                    return Err(NotCanonical::LoneSurrogate(value.source().to_owned()));
                }
                match value.plain_text() {
                    // Without an escape there is nothing in it that must be escaped.
                    Some(plain) => {
                        self.out.push('"');
                        self.out.push_str(plain);
                        self.out.push('"');
                    }
                    None => quote(&mut self.out, &value.text().unwrap_or_default()),
                }
            }
            Kind::Array => {
                self.out.push('[');
                for (index, item) in value.items().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.value(&item, false)?;
                }
                self.out.push(']');
            }
            Kind::Object => self.object(value, watched)?,
        }
        Ok(())
    }

    fn object(&mut self, object: &Value<'d>, watched: bool) -> Result<(), NotCanonical> {
        let from = self.members.len();
        for (key, value) in object.members() {
            if key.has_lone_surrogate() {
                return Err(NotCanonical::LoneSurrogate(key.source().to_owned()));
            }
            self.members.push((key.text().unwrap_or_default(), value));
        }
        self.members[from..].sort_by(|(a, _), (b, _)| order(a, b));
        if let Some(twice) = self.members[from..].windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(NotCanonical::DoubledKey(twice[0].0.clone().into_owned()));
        }
        self.out.push('{');
        let mut first = true;
        for at in from..self.members.len() {
            let value = self.members[at].1;
            let mut below = false;
            if watched {
                let key = &self.members[at].0;
                if self.without.iter().any(|path| self.leads_to(path, key) == Some(true)) {
                    continue;
                }
                below = self.without.iter().any(|path| self.leads_to(path, key).is_some())
                    || self.leads_to(self.note, key).is_some();
            }
            let noted = watched && self.leads_to(self.note, &self.members[at].0) == Some(true);
            let before = self.out.len();
            if !first {
                self.out.push(',');
            }
            // If the noted member came first, the comma to cut is the one after it.
            if !first
                && let Some(range) = self.noted.as_mut()
                && range.end == before
                && self.out.as_bytes().get(range.start.wrapping_sub(1)) == Some(&b'{')
            {
                range.end += 1;
            }
            first = false;
            let key = self.members[at].0.clone();
            quote(&mut self.out, &key);
            self.out.push(':');
            if below {
                self.path.push(key);
            }
            self.value(&value, below)?;
            if below {
                self.path.pop();
            }
            if noted {
                self.noted = Some(before..self.out.len());
            }
        }
        self.members.truncate(from);
        self.out.push('}');
        Ok(())
    }

    /// Whether `key`, under the keys down to here, is the end of the path (`true`) or on the way (`false`).
    fn leads_to(&self, path: &[&str], key: &str) -> Option<bool> {
        let depth = self.path.len();
        let along = path.len() > depth
            && path[depth] == key
            && path.iter().zip(&self.path).all(|(wanted, here)| *wanted == here.as_ref());
        along.then_some(path.len() == depth + 1)
    }
}

/// RFC 8785 §3.2.3: keys in the order of their UTF-16 units.
fn order(a: &str, b: &str) -> std::cmp::Ordering {
    // Bytes are in the order of code points, which differs from that of units only beyond the basic plane.
    if a.is_ascii() || b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// RFC 8785 §3.2.2.2.
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

fn write_number(out: &mut String, number: &Number<'_>) -> Result<(), NotCanonical> {
    if number.is_big() {
        return Err(NotCanonical::BigInteger(number.source().to_owned()));
    }
    if number.is_huge() {
        return Err(NotCanonical::HugeNumber(number.source().to_owned()));
    }
    if number.is_integer() {
        // JSON allows an integer one spelling only, but for the sign of zero.
        out.push_str(if number.source() == "-0" { "0" } else { number.source() });
    } else {
        let value = number.as_f64();
        // `1e16` would be printed as an integer that no reader takes; what is canonical must stay so.
        if value.abs() > 9_007_199_254_740_992.0 && value.abs() < 1e21 {
            return Err(NotCanonical::BigInteger(number.source().to_owned()));
        }
        out.push_str(&number_text(value).unwrap_or_default());
    }
    Ok(())
}

/// A double as ECMAScript prints it (RFC 8785 §3.2.2.3); `None` for what is not finite.
///
/// ```
/// assert_eq!(seal::number_text(1e21).unwrap(), "1e+21");
/// assert_eq!(seal::number_text(-0.0).unwrap(), "0");
/// assert_eq!(seal::number_text(f64::NAN), None);
/// ```
pub fn number_text(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    if value == 0.0 {
        return Some("0".to_owned());
    }
    let shortest = shortest(value.abs());
    let (mantissa, exponent) = shortest.split_once('e')?;
    let digits = mantissa.replace('.', "");
    let point = exponent.parse::<i32>().ok()? + 1;
    let count = i32::try_from(digits.len()).ok()?;
    let sign = if value < 0.0 { "-" } else { "" };
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    Some(match point {
        _ if count <= point && point <= 21 => format!("{sign}{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, rest) = digits.split_at(usize::try_from(point).ok()?);
            format!("{sign}{whole}.{rest}")
        }
        -5..=0 => format!("{sign}0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            let mark = if point > 0 { "+" } else { "-" };
            format!("{sign}{first}{dot}{rest}e{mark}{}", (point - 1).abs())
        }
    })
}

/// The fewest digits that read back, and of those the nearest, as `1.25e3`.
fn shortest(value: f64) -> String {
    let shortest = format!("{value:e}");
    // Where two texts are equally near, Rust takes the greater and ECMAScript the even one, as does Rust itself when it
    // is told how many digits to print. With fewer digits than 16 no double is in the middle between two.
    let count = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if count < 16 {
        return shortest;
    }
    let nearest = format!("{value:.*e}", count - 1);
    // Above a power of two the nearest text may belong to the next double already.
    if nearest.parse() == Ok(value) { nearest } else { shortest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Tape;

    fn form(text: &str, without: &[&[&str]], note: &[&str]) -> Form {
        let mut tape = Tape::default();
        Canonical::default().write(&tape.read(text).unwrap().root(), without, note).unwrap()
    }

    #[test]
    fn members_are_left_out_at_their_path_only() {
        let left = form(r#"{"b":{"x":1,"y":2},"x":3,"c":[{"x":4}]}"#, &[&["b", "x"]], &[]);
        assert_eq!(left.text, r#"{"b":{"y":2},"c":[{"x":4}],"x":3}"#);
    }

    #[test]
    fn cutting_the_noted_member_gives_the_form_without_it() {
        for text in [
            r#"{"s":{"n":[1,2],"a":1,"z":2},"n":0}"#,
            r#"{"s":{"n":{},"z":2}}"#,
            r#"{"s":{"a":{"n":1},"n":"x"}}"#,
            r#"{"s":{"n":"only"},"t":1}"#,
            r#"{"a":{"n":5},"s":{"nn":1}}"#,
        ] {
            let both = form(text, &[], &["s", "n"]);
            let without = form(text, &[&["s", "n"]], &[]);
            assert_eq!(both.without_noted().concat(), without.text, "{text}");
            assert_eq!(both.text, form(text, &[], &[]).text);
        }
    }
}
