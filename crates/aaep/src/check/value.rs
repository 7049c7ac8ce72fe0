//! Validation of a value against its field type.

use std::borrow::Cow;
use std::collections::HashSet;

use super::event::MAX_SUGGESTIONS;
use super::path::Path;
use super::spoken_text::ValueFacts;
use super::{extension, spoken_text};
use crate::event::{CORE_CONTEXT, is_in_core_namespace};
use crate::grammar::{is_language_tag, is_uri};
use crate::json::{JsonKind, JsonValue};
use crate::record::{Field, FieldType};
use crate::rule::{self, Findings, Rule, ValidationMode};
use seal::{Timestamp, TimestampError};

/// Checks the value of a field, and its text if it is spoken.
#[inline]
pub(super) fn check_field(
    field: &Field,
    value: JsonValue<'_>,
    path: &Path<'_>,
    facts: &mut ValueFacts,
    findings: &mut Findings,
) {
    check_value(&field.value_type, field.rule, value, path, facts, findings);
    if field.is_spoken {
        spoken_text::check(value, field.name, path, facts, findings);
    }
}

/// Checks a value against a field type. `rule` is the rule that a wrong value breaks.
pub(super) fn check_value(
    field_type: &FieldType,
    rule: Rule,
    value: JsonValue<'_>,
    path: &Path<'_>,
    facts: &mut ValueFacts,
    findings: &mut Findings,
) {
    let is_valid = match field_type {
        FieldType::Text { min, max } => value.kind() == JsonKind::Text && text_fits(value, *min, *max),
        FieldType::Grammar { matches, .. } => text_matches(value, matches),
        FieldType::Uri => text_matches(value, is_uri),
        FieldType::LanguageTag => {
            if !text_matches(value, is_language_tag) {
                // In a list of languages, an invalid tag breaks the rule about tags, not the rule
                // about lists.
                let rule = if rule == rule::HINTS_LISTS { rule::LANGUAGE_TAG } else { rule };
                report_wrong_value(field_type, rule, value, path, findings);
            }
            return;
        }
        FieldType::Timestamp { any_rfc3339 } => {
            return check_timestamp(*any_rfc3339, rule, value, path, facts, findings);
        }
        FieldType::Enum(values) => {
            let is_known = text_matches(value, |text| values.contains(&text));
            if !is_known && value.kind() == JsonKind::Text && findings.mode() == ValidationMode::Receive {
                // An unknown value may come from a newer version (C-J2).
                let found = format!("expected {}, found {}", field_type.describe(), excerpt(value));
                return findings.warn(rule, path.pointer(), found);
            }
            is_known
        }
        FieldType::Bool => value.kind() == JsonKind::Bool,
        FieldType::Integer { min, max } => {
            return check_integer(field_type, (*min, *max), rule, value, path, findings);
        }
        FieldType::Number { min, max } => value.as_number().is_some_and(|number| {
            let number = number.as_f64();
            number >= *min && number <= *max
        }),
        FieldType::List { item: item_type, min, max, unique, item_rule } => {
            let limits = ListLimits { min: *min, max: *max, unique: *unique };
            return check_list(
                field_type,
                item_type,
                limits,
                (rule, item_rule.unwrap_or(rule)),
                value,
                path,
                facts,
                findings,
            );
        }
        FieldType::Record { fields, unknown_member_rule, non_object_member_rule } => {
            if value.kind() == JsonKind::Object {
                return check_record(
                    fields,
                    (*unknown_member_rule, *non_object_member_rule),
                    value,
                    path,
                    facts,
                    findings,
                );
            }
            false
        }
        FieldType::Object => value.kind() == JsonKind::Object,
        FieldType::Extensions => return extension::check_objects(rule, value, path, findings),
        FieldType::Context => return check_context(rule, value, path, findings),
        FieldType::Response => match value.kind() {
            JsonKind::Text => text_fits(value, 1, 16_384),
            JsonKind::Bool | JsonKind::Number => true,
            _ => false,
        },
    };
    if !is_valid {
        report_wrong_value(field_type, rule, value, path, findings);
    }
}

/// Reports a value that does not match its field type.
#[cold]
fn report_wrong_value(
    field_type: &FieldType,
    rule: Rule,
    value: JsonValue<'_>,
    path: &Path<'_>,
    findings: &mut Findings,
) {
    findings.push(
        rule,
        path.pointer(),
        format!("expected {}, found {}", field_type.describe(), excerpt(value)),
    );
}

/// Returns a short form of a value: its source if that is short, else its kind.
pub(super) fn excerpt(value: JsonValue<'_>) -> String {
    let source = value.source();
    match value.kind() {
        JsonKind::Text if source.len() > 80 => format!("a string of {} bytes", source.len() - 2),
        JsonKind::Array | JsonKind::Object if source.len() > 40 => value.kind().with_article().to_owned(),
        _ => source.to_owned(),
    }
}

#[inline]
fn text_matches(value: JsonValue<'_>, matches: impl Fn(&str) -> bool) -> bool {
    match value.plain_text() {
        Some(text) => matches(text),
        None => value.text().is_some_and(|text| matches(&text)),
    }
}

/// Returns whether the number of code points is within the limits. Counts them only if the length
/// in bytes is not enough to tell.
#[inline]
fn text_fits(value: JsonValue<'_>, min: u32, max: u32) -> bool {
    let raw_len = value.raw_len();
    if raw_len > max as usize {
        return value.text().is_some_and(|text| text.chars().count() <= max as usize);
    }
    raw_len >= min as usize
        && (min <= 1 || value.text().is_some_and(|text| text.chars().count() >= min as usize))
}

fn check_integer(
    field_type: &FieldType,
    (min, max): (i64, i64),
    rule: Rule,
    value: JsonValue<'_>,
    path: &Path<'_>,
    findings: &mut Findings,
) {
    let Some(number) = value.as_number() else {
        return report_wrong_value(field_type, rule, value, path, findings);
    };
    let is_in_range = match number.as_i64() {
        Some(integer) => (min..=max).contains(&integer),
        // The rule about large integers reports integers beyond 64 bits. Here they only have to be
        // within the field's limits.
        None => number.is_integer() && max == i64::MAX && !number.source().starts_with('-'),
    };
    if !is_in_range {
        // §5.3.1.1 sets no upper limit for the rate; only the schema does.
        let exceeds_schema_rate = rule == rule::RATE && number.as_i64().is_some_and(|rate| rate > max);
        let rule = if exceeds_schema_rate { rule::CAPABILITY_FORM } else { rule };
        report_wrong_value(field_type, rule, value, path, findings);
    } else if !number.is_integer() {
        findings.push(rule::INTEGER_FORM, path.pointer(), format!("found {}", number.source()));
    }
}

fn check_timestamp(
    any_rfc3339: bool,
    rule: Rule,
    value: JsonValue<'_>,
    path: &Path<'_>,
    facts: &mut ValueFacts,
    findings: &mut Findings,
) {
    let Some(text) = value.text() else {
        return report_wrong_value(&FieldType::Timestamp { any_rfc3339 }, rule, value, path, findings);
    };
    let found = |error: TimestampError| format!("{:?} {error}", &*text);
    if any_rfc3339 {
        if let Err(error) = Timestamp::parse_rfc3339(&text) {
            findings.push(rule, path.pointer(), found(error));
        }
        return;
    }
    let timestamp = Timestamp::parse(&text);
    facts.timestamp = timestamp.ok();
    match timestamp {
        Ok(timestamp) if timestamp.is_placeholder() => {
            findings.push(rule::TIME_REAL, path.pointer(), format!("{text:?} looks like a placeholder"));
        }
        Ok(timestamp) if timestamp.fraction_digits() == 0 => {
            findings.push(rule::TIME_MILLIS, path.pointer(), format!("found {text:?}"));
        }
        Ok(_) => {}
        Err(TimestampError::FractionDigits) => {
            findings.push(rule::TIME_DIGITS, path.pointer(), format!("found {text:?}"));
        }
        Err(error @ TimestampError::NoSuchTime) => {
            findings.push(rule::TIME_REAL, path.pointer(), found(error));
        }
        // This is valid RFC 3339, so a receiver accepts it (C-A6).
        Err(error @ TimestampError::LowerCase) if findings.mode() == ValidationMode::Receive => {
            findings.warn(rule, path.pointer(), found(error));
        }
        Err(error) => findings.push(rule, path.pointer(), found(error)),
    }
}

#[derive(Clone, Copy)]
struct ListLimits {
    min: usize,
    max: usize,
    unique: bool,
}

#[allow(clippy::too_many_arguments, reason = "all arguments come from one field type")]
fn check_list(
    list_type: &FieldType,
    item_type: &FieldType,
    limits: ListLimits,
    (rule, item_rule): (Rule, Rule),
    value: JsonValue<'_>,
    path: &Path<'_>,
    facts: &mut ValueFacts,
    findings: &mut Findings,
) {
    if value.kind() != JsonKind::Array {
        return report_wrong_value(list_type, rule, value, path, findings);
    }
    let mut count = 0;
    for item in value.items() {
        check_value(item_type, item_rule, item, &Path::Item(path, count), facts, findings);
        count += 1;
    }
    if limits.unique && count > 1 {
        check_unique(rule, value, path, findings);
    }
    if count < limits.min || count > limits.max {
        findings.push(rule, path.pointer(), format!("expected {}, found {count}", list_type.describe()));
    }
}

fn check_unique(rule: Rule, list: JsonValue<'_>, path: &Path<'_>, findings: &mut Findings) {
    let mut seen = HashSet::new();
    for (index, item) in list.items().enumerate() {
        if !seen.insert(equality_key(item)) {
            let item_path = Path::Item(path, index);
            findings.push(rule, item_path.pointer(), format!("{} is a duplicate", excerpt(item)));
        }
    }
}

/// Returns a key that two values share if and only if JSON Schema considers them equal. In the key,
/// each string starts with its length, so its content cannot be mistaken for what follows.
fn equality_key(value: JsonValue<'_>) -> Cow<'_, str> {
    match value.kind() {
        JsonKind::Text => match value.text() {
            Some(text) => Cow::Owned(format!("{}\"{text}", text.len())),
            None => Cow::Borrowed(""),
        },
        JsonKind::Number => match value.as_number() {
            Some(number) if !number.is_unsafe_integer() => Cow::Owned(number.as_f64().to_string()),
            _ => Cow::Borrowed(value.source()),
        },
        JsonKind::Array => {
            Cow::Owned(value.items().fold("[".to_owned(), |key, item| key + &equality_key(item) + "\0"))
        }
        JsonKind::Object => {
            let mut members: Vec<_> = value
                .members()
                .map(|(key, value)| format!("{}\0{}", equality_key(key), equality_key(value)))
                .collect();
            members.sort_unstable();
            Cow::Owned(format!("{{{}", members.join("\0\0")))
        }
        JsonKind::Null | JsonKind::Bool => Cow::Borrowed(value.source()),
    }
}

/// Says that a member is unknown, and which one is probably meant.
pub(super) fn unknown_member(suggestion: Option<&str>) -> String {
    match suggestion {
        Some(known) => format!("unknown member; did you mean {known}?"),
        None => "unknown member".to_owned(),
    }
}

fn check_record(
    fields: &'static [Field],
    (unknown_member_rule, non_object_member_rule): (Option<Rule>, Option<Rule>),
    value: JsonValue<'_>,
    path: &Path<'_>,
    facts: &mut ValueFacts,
    findings: &mut Findings,
) {
    let mut seen = 0_u64;
    let mut unknown_count = 0;
    let mut suggest = |key: JsonValue<'_>| {
        unknown_count += 1;
        let name = key.text().filter(|_| unknown_count <= MAX_SUGGESTIONS)?;
        seal::closest_name(&name, fields.iter().map(|field| field.name))
    };
    for (key, value) in value.members() {
        let member_path = Path::Key(path, key);
        match fields.iter().position(|field| key.is_text(field.name)) {
            Some(index) => {
                seen |= 1 << index;
                check_field(&fields[index], value, &member_path, facts, findings);
            }
            None => match (unknown_member_rule, non_object_member_rule) {
                (Some(rule), _) => {
                    findings.push(rule, member_path.pointer(), unknown_member(suggest(key)));
                }
                (None, Some(rule)) if value.kind() != JsonKind::Object => {
                    let found = match suggest(key) {
                        Some(known) => unknown_member(Some(known)),
                        None => format!("found {}", excerpt(value)),
                    };
                    findings.push(rule, member_path.pointer(), found);
                }
                _ => {}
            },
        }
    }
    for (index, field) in fields.iter().enumerate() {
        if let Some(rule) = field.missing_rule.filter(|_| seen & 1 << index == 0) {
            findings.push(rule, path.pointer(), format!("{} is missing", field.name));
        }
    }
}

/// Checks `@context` (§3.2.1): the core URI, or an array of URIs that starts with it.
fn check_context(rule: Rule, value: JsonValue<'_>, path: &Path<'_>, findings: &mut Findings) {
    match value.kind() {
        JsonKind::Text if text_matches(value, |text| text == CORE_CONTEXT) => {}
        JsonKind::Array => {
            let mut items = value.items();
            match items.next() {
                None => findings.push(rule::CONTEXT_ITEMS, path.pointer(), "the array is empty".to_owned()),
                Some(first) if text_matches(first, |text| text == CORE_CONTEXT) => {}
                Some(first) => {
                    let item_path = Path::Item(path, 0);
                    findings.push(rule, item_path.pointer(), format!("found {}", excerpt(first)));
                }
            }
            for (index, item) in items.enumerate() {
                let item_path = Path::Item(path, index + 1);
                if item.kind() != JsonKind::Text {
                    findings.push(
                        rule,
                        item_path.pointer(),
                        format!("expected a string, found {}", excerpt(item)),
                    );
                } else if !text_matches(item, is_uri) {
                    findings.push(
                        rule::CONTEXT_ITEMS,
                        item_path.pointer(),
                        format!("found {}", excerpt(item)),
                    );
                } else if text_matches(item, is_in_core_namespace) {
                    findings.push(
                        rule::CONTEXT_FOREIGN,
                        item_path.pointer(),
                        format!("found {}", excerpt(item)),
                    );
                } else if !text_matches(item, contains_version_segment) {
                    findings.push(
                        rule::CONTEXT_VERSIONED,
                        item_path.pointer(),
                        format!("found {}", excerpt(item)),
                    );
                }
            }
        }
        _ => findings.push(rule, path.pointer(), format!("found {}", excerpt(value))),
    }
}

/// Returns whether a URI has a part like `v1` or `2.0`.
fn contains_version_segment(uri: &str) -> bool {
    uri.split(['/', ':', '#', '?', '=', '-', '_']).any(|part| {
        let number = part.strip_prefix(['v', 'V']).unwrap_or(part);
        let is_marked_as_version = part.len() > number.len() || number.contains('.');
        is_marked_as_version
            && number.split('.').all(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    })
}
