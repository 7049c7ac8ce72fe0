//! Checks for interoperable JSON: duplicate keys, lone surrogates, large numbers, and sizes (§3.7,
//! §3.8).

use std::collections::HashSet;

use super::members::report_duplicate;
use super::path::Path;
use crate::json::{Doc, JsonKind, JsonValue, RawJson, Tape};
use crate::rule::{self, Findings, ValidationMode};

const MAX_EVENT_BYTES: usize = 64 * 1024;
const MAX_EVENT_DEPTH: u32 = 8;
const MAX_STRING_BYTES: usize = 16 * 1024;

/// Checks a document. Walks its values only if the parser noticed a potential problem or a string
/// may be too long.
#[inline]
pub(super) fn check(doc: &Doc<'_>, findings: &mut Findings) {
    let notes = doc.notes();
    if doc.source().len() > MAX_EVENT_BYTES {
        findings.push(rule::EVENT_SIZE, String::new(), format!("found {} bytes", doc.source().len()));
    }
    if notes.depth > MAX_EVENT_DEPTH {
        findings.push(rule::EVENT_DEPTH, String::new(), format!("found {}", notes.depth));
    }
    if notes.has_lone_surrogate
        || notes.has_unsafe_integer
        || notes.has_out_of_range_number
        || notes.may_have_duplicate_key
        || doc.source().len() > MAX_STRING_BYTES
    {
        walk(doc.root(), &Path::Root, findings);
    }
}

/// Returns whether a received value stays interoperable JSON when we write it as the capabilities
/// of an extension, which are nested two levels deep.
pub(crate) fn is_interoperable(value: &RawJson) -> bool {
    let text = format!(r#"{{"":{{"":{value}}}}}"#);
    let mut findings = Findings::new(ValidationMode::Strict);
    let mut tape = Tape::default();
    tape.read(&text).is_ok_and(|doc| {
        check(&doc, &mut findings);
        findings.list().is_empty()
    })
}

#[cold]
fn walk(value: JsonValue<'_>, path: &Path<'_>, findings: &mut Findings) {
    match value.kind() {
        JsonKind::Text => check_text(value, path, findings),
        JsonKind::Number => {
            let Some(number) = value.as_number() else { return };
            if number.is_out_of_range() {
                findings.push(rule::NUMBER_RANGE, path.pointer(), "the number exceeds 1.8e308".to_owned());
            } else if number.is_unsafe_integer() {
                findings.push(rule::INTEGER_RANGE, path.pointer(), format!("found {}", number.source()));
            }
        }
        JsonKind::Array => {
            for (index, item) in value.items().enumerate() {
                walk(item, &Path::Item(path, index), findings);
            }
        }
        JsonKind::Object => {
            // Duplicate keys in the root object are already reported by the check of its members.
            let is_nested = !matches!(path, Path::Root);
            let mut seen = HashSet::new();
            for (key, value) in value.members() {
                let name = key.text().unwrap_or_default();
                let member_path = Path::Member(path, &name);
                check_text(key, &member_path, findings);
                walk(value, &member_path, findings);
                if is_nested && !seen.insert(name.clone()) {
                    report_duplicate(&member_path, findings);
                }
            }
        }
        JsonKind::Null | JsonKind::Bool => {}
    }
}

fn check_text(value: JsonValue<'_>, path: &Path<'_>, findings: &mut Findings) {
    if value.has_lone_surrogate() {
        findings.push(rule::INTEROPERABLE_JSON, path.pointer(), "lone surrogate".to_owned());
    }
    if value.raw_len() > MAX_STRING_BYTES
        && let Some(text) = value.text()
        && text.len() > MAX_STRING_BYTES
    {
        findings.push(rule::STRING_SIZE, path.pointer(), format!("found {} bytes", text.len()));
    }
}
