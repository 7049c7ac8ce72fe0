//! A value against its shape.

use std::borrow::Cow;
use std::collections::HashSet;

use super::path::Path;
use super::spoken::Heard;
use super::{extension, spoken};
use crate::event::CORE_CONTEXT;
use crate::form::{is_language_tag, is_uri};
use crate::json::{Kind, Value};
use crate::record::{Field, Shape};
use crate::rule::{self, Face, Findings, Rule};
use seal::{Timestamp, TimestampError};

/// Checks the value of a field, and what is said in it.
#[inline]
pub(super) fn field(
    field: &Field,
    value: Value<'_>,
    path: &Path<'_>,
    heard: &mut Heard,
    findings: &mut Findings,
) {
    shape(&field.shape, field.rule, value, path, heard, findings);
    if field.spoken {
        spoken::check(value, field.name, path, heard, findings);
    }
}

/// Checks a value against a shape; `rule` is what a wrong one breaks.
pub(super) fn shape(
    shape: &Shape,
    rule: Rule,
    value: Value<'_>,
    path: &Path<'_>,
    heard: &mut Heard,
    findings: &mut Findings,
) {
    let fits = match shape {
        Shape::Text { min, max } => value.kind() == Kind::Text && text_fits(value, *min, *max),
        Shape::Form { is, .. } => with_text(value, is),
        Shape::Uri => with_text(value, is_uri),
        Shape::Tag => {
            if !with_text(value, is_language_tag) {
                // A wrong tag breaks the rule on tags, unless the field has a narrower one.
                let rule = if rule == rule::HINTS_LISTS { rule::TAG } else { rule };
                wrong(shape, rule, value, path, findings);
            }
            return;
        }
        Shape::Time { any } => return time(*any, rule, value, path, heard, findings),
        Shape::Word(words) => {
            let known = with_text(value, |text| words.contains(&text));
            if !known && value.kind() == Kind::Text && findings.face() == Face::Receive {
                // A word that we do not know may be newer than we are (C-J2).
                let found = format!("expected {}, found {}", shape.words(), excerpt(value));
                return findings.warn(rule, path.pointer(), found);
            }
            known
        }
        Shape::Bool => value.kind() == Kind::Bool,
        Shape::Integer { min, max } => return integer(shape, (*min, *max), rule, value, path, findings),
        Shape::Number { min, max } => value.number().is_some_and(|number| {
            let number = number.as_f64();
            number >= *min && number <= *max
        }),
        Shape::List { of, min, max, unique, items } => {
            let limits = Limits { min: *min, max: *max, unique: *unique };
            return list(shape, of, limits, (rule, items.unwrap_or(rule)), value, path, heard, findings);
        }
        Shape::Record { fields, closed, open_objects } => {
            if value.kind() == Kind::Object {
                return record(fields, (*closed, *open_objects), value, path, heard, findings);
            }
            false
        }
        Shape::Object => value.kind() == Kind::Object,
        Shape::Extensions => return extension::check_objects(rule, value, path, findings),
        Shape::Context => return context(rule, value, path, findings),
        Shape::Response => match value.kind() {
            Kind::Text => text_fits(value, 1, 16_384),
            Kind::Bool | Kind::Number => true,
            _ => false,
        },
    };
    if !fits {
        wrong(shape, rule, value, path, findings);
    }
}

/// Says what a value should have been.
#[cold]
fn wrong(shape: &Shape, rule: Rule, value: Value<'_>, path: &Path<'_>, findings: &mut Findings) {
    findings.push(rule, path.pointer(), format!("expected {}, found {}", shape.words(), excerpt(value)));
}

/// A value in a few words: as it is written if it is short, else what it is.
pub(super) fn excerpt(value: Value<'_>) -> String {
    let source = value.source();
    match value.kind() {
        Kind::Text if source.len() > 80 => format!("a string of {} bytes", source.len() - 2),
        Kind::Array | Kind::Object if source.len() > 40 => value.kind().word().to_owned(),
        _ => source.to_owned(),
    }
}

#[inline]
fn with_text(value: Value<'_>, is: impl Fn(&str) -> bool) -> bool {
    match value.plain_text() {
        Some(text) => is(text),
        None => value.text().is_some_and(|text| is(&text)),
    }
}

/// Code points are counted only where the bytes leave it open.
#[inline]
fn text_fits(value: Value<'_>, min: u32, max: u32) -> bool {
    let written = value.written_len();
    if written > max as usize {
        return value.text().is_some_and(|text| text.chars().count() <= max as usize);
    }
    written >= min as usize
        && (min <= 1 || value.text().is_some_and(|text| text.chars().count() >= min as usize))
}

fn integer(
    shape: &Shape,
    (min, max): (i64, i64),
    rule: Rule,
    value: Value<'_>,
    path: &Path<'_>,
    findings: &mut Findings,
) {
    let Some(number) = value.number() else { return wrong(shape, rule, value, path, findings) };
    let inside = match number.as_i64() {
        Some(whole) => (min..=max).contains(&whole),
        // Beyond 64 bits: the rule on large integers speaks of it, this one only of limits.
        None => number.is_integer() && max == i64::MAX && !number.source().starts_with('-'),
    };
    if !inside {
        // §5.3.1.1 sets the rate no upper limit, only the schema does.
        let too_fast = rule == rule::RATE && number.as_i64().is_some_and(|rate| rate > max);
        let rule = if too_fast { rule::CAPABILITY_FORM } else { rule };
        wrong(shape, rule, value, path, findings);
    } else if !number.is_integer() {
        findings.push(rule::INTEGER_FORM, path.pointer(), format!("found {}", number.source()));
    }
}

fn time(
    any: bool,
    rule: Rule,
    value: Value<'_>,
    path: &Path<'_>,
    heard: &mut Heard,
    findings: &mut Findings,
) {
    let Some(text) = value.text() else {
        return wrong(&Shape::Time { any }, rule, value, path, findings);
    };
    let found = |why: TimestampError| format!("{:?} {why}", &*text);
    if any {
        if let Err(why) = Timestamp::parse_rfc3339(&text) {
            findings.push(rule, path.pointer(), found(why));
        }
        return;
    }
    let read = Timestamp::parse(&text);
    heard.time = read.ok();
    match read {
        Ok(read) if read.is_placeholder() => {
            findings.push(rule::TIME_REAL, path.pointer(), format!("{text:?} looks like a stand-in"));
        }
        Ok(read) if read.fraction_digits() == 0 => {
            findings.push(rule::TIME_MILLIS, path.pointer(), format!("found {text:?}"));
        }
        Ok(_) => {}
        Err(TimestampError::Digits) => {
            findings.push(rule::TIME_DIGITS, path.pointer(), format!("found {text:?}"));
        }
        Err(why @ TimestampError::NoSuchTime) => findings.push(rule::TIME_REAL, path.pointer(), found(why)),
        // RFC 3339 all the same: a receiver copes (C-A6).
        Err(why @ TimestampError::Case) if findings.face() == Face::Receive => {
            findings.warn(rule, path.pointer(), found(why));
        }
        Err(why) => findings.push(rule, path.pointer(), found(why)),
    }
}

#[derive(Clone, Copy)]
struct Limits {
    min: usize,
    max: usize,
    unique: bool,
}

#[allow(clippy::too_many_arguments, reason = "all of it comes from one shape")]
fn list(
    whole: &Shape,
    of: &Shape,
    limits: Limits,
    (rule, items): (Rule, Rule),
    value: Value<'_>,
    path: &Path<'_>,
    heard: &mut Heard,
    findings: &mut Findings,
) {
    if value.kind() != Kind::Array {
        return wrong(whole, rule, value, path, findings);
    }
    let mut count = 0;
    for item in value.items() {
        shape(of, items, item, &Path::Item(path, count), heard, findings);
        count += 1;
    }
    if limits.unique && count > 1 {
        unique(rule, value, path, findings);
    }
    if count < limits.min || count > limits.max {
        findings.push(rule, path.pointer(), format!("expected {}, found {count}", whole.words()));
    }
}

fn unique(rule: Rule, list: Value<'_>, path: &Path<'_>, findings: &mut Findings) {
    let mut seen = HashSet::new();
    for (at, item) in list.items().enumerate() {
        if !seen.insert(identity(item)) {
            let at = Path::Item(path, at);
            findings.push(rule, at.pointer(), format!("{} stands twice", excerpt(item)));
        }
    }
}

/// The same text for values that JSON Schema calls equal, and for no others: a text begins with its length, so that
/// nothing in it can be taken for what follows.
fn identity(value: Value<'_>) -> Cow<'_, str> {
    match value.kind() {
        Kind::Text => match value.text() {
            Some(text) => Cow::Owned(format!("{}\"{text}", text.len())),
            None => Cow::Borrowed(""),
        },
        Kind::Number => match value.number() {
            Some(number) if !number.is_big() => Cow::Owned(number.as_f64().to_string()),
            _ => Cow::Borrowed(value.source()),
        },
        Kind::Array => {
            Cow::Owned(value.items().fold("[".to_owned(), |sum, item| sum + &identity(item) + "\0"))
        }
        Kind::Object => {
            let mut members: Vec<_> = value
                .members()
                .map(|(key, value)| format!("{}\0{}", identity(key), identity(value)))
                .collect();
            members.sort_unstable();
            Cow::Owned(format!("{{{}", members.join("\0\0")))
        }
        Kind::Null | Kind::Bool => Cow::Borrowed(value.source()),
    }
}

fn record(
    fields: &'static [Field],
    (closed, open_objects): (Option<Rule>, Option<Rule>),
    value: Value<'_>,
    path: &Path<'_>,
    heard: &mut Heard,
    findings: &mut Findings,
) {
    let mut seen = 0_u64;
    for (key, value) in value.members() {
        let at = Path::Key(path, key);
        match fields.iter().position(|field| key.is(field.name)) {
            Some(known) => {
                seen |= 1 << known;
                field(&fields[known], value, &at, heard, findings);
            }
            None => match (closed, open_objects) {
                (Some(rule), _) => {
                    findings.push(rule, at.pointer(), "this member is not known here".to_owned());
                }
                (None, Some(rule)) if value.kind() != Kind::Object => {
                    findings.push(rule, at.pointer(), format!("found {}", excerpt(value)));
                }
                _ => {}
            },
        }
    }
    for (at, field) in fields.iter().enumerate() {
        if let Some(rule) = field.missing.filter(|_| seen & 1 << at == 0) {
            findings.push(rule, path.pointer(), format!("{} is missing", field.name));
        }
    }
}

/// `@context` (§3.2.1): the core's URI, or an array of URIs that begins with it.
fn context(rule: Rule, value: Value<'_>, path: &Path<'_>, findings: &mut Findings) {
    match value.kind() {
        Kind::Text if with_text(value, |text| text == CORE_CONTEXT) => {}
        Kind::Array => {
            let mut items = value.items();
            match items.next() {
                None => findings.push(rule::CONTEXT_ITEMS, path.pointer(), "the array is empty".to_owned()),
                Some(first) if with_text(first, |text| text == CORE_CONTEXT) => {}
                Some(first) => {
                    let at = Path::Item(path, 0);
                    findings.push(rule, at.pointer(), format!("found {}", excerpt(first)));
                }
            }
            for (at, item) in items.enumerate() {
                let at = Path::Item(path, at + 1);
                if item.kind() != Kind::Text {
                    findings.push(rule, at.pointer(), format!("expected a string, found {}", excerpt(item)));
                } else if !with_text(item, is_uri) {
                    findings.push(rule::CONTEXT_ITEMS, at.pointer(), format!("found {}", excerpt(item)));
                } else if !with_text(item, names_a_version) {
                    findings.push(rule::CONTEXT_VERSIONED, at.pointer(), format!("found {}", excerpt(item)));
                }
            }
        }
        _ => findings.push(rule, path.pointer(), format!("found {}", excerpt(value))),
    }
}

/// A URI with a part like `v1` or `2.0`.
fn names_a_version(uri: &str) -> bool {
    uri.split(['/', ':', '#', '?', '=', '-', '_']).any(|part| {
        let number = part.strip_prefix(['v', 'V']).unwrap_or(part);
        let dotted = part.len() > number.len() || number.contains('.');
        dotted && number.split('.').all(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    })
}
