//! What the reader noticed: doubled keys, half surrogates, numbers too large, and sizes (§3.7, §3.8).

use std::collections::HashSet;

use super::members::doubled;
use super::path::Path;
use crate::json::{Doc, Kind, Raw, Tape, Value};
use crate::rule::{self, Face, Findings};

const EVENT_BYTES: usize = 64 * 1024;
const EVENT_DEPTH: u32 = 8;
const STRING_BYTES: usize = 16 * 1024;

/// Looks closely where the reader's marks say that there is something to see.
#[inline]
pub(super) fn check(doc: &Doc<'_>, findings: &mut Findings) {
    let marks = doc.marks();
    if doc.source().len() > EVENT_BYTES {
        findings.push(rule::EVENT_SIZE, String::new(), format!("found {} bytes", doc.source().len()));
    }
    if marks.depth > EVENT_DEPTH {
        findings.push(rule::EVENT_DEPTH, String::new(), format!("found {}", marks.depth));
    }
    if marks.lone_surrogate
        || marks.big_integer
        || marks.huge_number
        || marks.maybe_doubled_key
        || doc.source().len() > STRING_BYTES
    {
        walk(doc.root(), &Path::Root, findings);
    }
}

/// Whether a value that a stranger sent can stand in what we send, as deep as an extension's capabilities do.
pub(crate) fn is_sound(value: &Raw) -> bool {
    let text = format!(r#"{{"":{{"":{value}}}}}"#);
    let mut findings = Findings::new(Face::Strict);
    let mut tape = Tape::default();
    tape.read(&text).is_ok_and(|doc| {
        check(&doc, &mut findings);
        findings.list().is_empty()
    })
}

#[cold]
fn walk(value: Value<'_>, path: &Path<'_>, findings: &mut Findings) {
    match value.kind() {
        Kind::Text => text(value, path, findings),
        Kind::Number => {
            let Some(number) = value.number() else { return };
            if number.is_huge() {
                findings.push(rule::NUMBER_RANGE, path.pointer(), "it is beyond 1.8e308".to_owned());
            } else if number.is_big() {
                findings.push(rule::INTEGER_RANGE, path.pointer(), format!("found {}", number.source()));
            }
        }
        Kind::Array => {
            for (at, item) in value.items().enumerate() {
                walk(item, &Path::Item(path, at), findings);
            }
        }
        Kind::Object => {
            // The outermost object's doubled keys are found where its members are checked.
            let inner = !matches!(path, Path::Root);
            let mut seen = HashSet::new();
            for (key, value) in value.members() {
                let name = key.text().unwrap_or_default();
                let at = Path::Member(path, &name);
                text(key, &at, findings);
                walk(value, &at, findings);
                if inner && !seen.insert(name.clone()) {
                    doubled(&at, findings);
                }
            }
        }
        Kind::Null | Kind::Bool => {}
    }
}

fn text(value: Value<'_>, path: &Path<'_>, findings: &mut Findings) {
    if value.has_lone_surrogate() {
        findings.push(rule::SOUND_JSON, path.pointer(), "half of a surrogate pair stands alone".to_owned());
    }
    if value.written_len() > STRING_BYTES
        && let Some(text) = value.text()
        && text.len() > STRING_BYTES
    {
        findings.push(rule::STRING_SIZE, path.pointer(), format!("found {} bytes", text.len()));
    }
}
