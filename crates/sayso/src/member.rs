//! Functions that write the members of an event's object.

use std::time::Duration;

use seal::json::{JsonKind, JsonValue, Tape, TapeWriter};

use crate::redact::CountingRedactor;

/// A JSON object with its tape, so that an embedded hub need not parse it.
pub(crate) type Document = Box<TapeWriter>;

/// The initial capacity of a document; most events fit.
const EVENT_CAPACITY_BYTES: usize = 384;

/// Writes an object whose members `members` writes.
pub(crate) fn object(members: impl FnOnce(&mut TapeWriter)) -> Document {
    let mut out = Box::new(TapeWriter::with_capacity(EVENT_CAPACITY_BYTES));
    out.object(members);
    out
}

/// Copies the members of another object.
pub(crate) fn copy_members(out: &mut TapeWriter, object: &TapeWriter) {
    match object.doc() {
        Ok(doc) => {
            for (name, value) in doc.root().members() {
                out.copy_key(&name);
                out.copy(&value);
            }
        }
        Err(error) => out.set_error(error),
    }
}

pub(crate) fn text(out: &mut TapeWriter, name: &str, text: &str) {
    out.key(name).text(text);
}

pub(crate) fn text_members(out: &mut TapeWriter, members: &[(&str, &str)]) {
    for (name, value) in members {
        text(out, name, value);
    }
}

pub(crate) fn optional_text(out: &mut TapeWriter, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        text(out, name, value);
    }
}

/// Writes a list of strings, unless it is empty.
pub(crate) fn texts<'t>(out: &mut TapeWriter, name: &str, texts: impl IntoIterator<Item = &'t str>) {
    let mut texts = texts.into_iter().peekable();
    if texts.peek().is_some() {
        out.key(name).array(|out| texts.for_each(|text| out.text(text)));
    }
}

/// Writes a count. A value above `i64::MAX` is written as `i64::MAX`.
pub(crate) fn count(out: &mut TapeWriter, name: &str, count: u64) {
    out.key(name).integer(i64::try_from(count).unwrap_or(i64::MAX));
}

pub(crate) fn millis(out: &mut TapeWriter, name: &str, duration: Duration) {
    count(out, name, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
}

pub(crate) fn optional_millis(out: &mut TapeWriter, name: &str, duration: Option<Duration>) {
    if let Some(duration) = duration {
        millis(out, name, duration);
    }
}

/// Writes a JSON value and removes the secrets from its texts. Invalid JSON is written as null.
pub(crate) fn json(out: &mut TapeWriter, name: &str, json: &str, redactor: &CountingRedactor) {
    out.key(name);
    match Tape::default().read(json) {
        Ok(doc) => copy_redacted(doc.root(), redactor, out),
        Err(_) => out.raw("null"),
    }
}

fn copy_redacted(value: JsonValue<'_>, redactor: &CountingRedactor, out: &mut TapeWriter) {
    match value.kind() {
        JsonKind::Object => {
            out.open_object();
            for (name, value) in value.members() {
                out.key(&name.text().unwrap_or_default());
                copy_redacted(value, redactor, out);
            }
            out.close_object();
        }
        JsonKind::Array => {
            out.open_array();
            value.items().for_each(|item| copy_redacted(item, redactor, out));
            out.close_array();
        }
        _ => match value.text() {
            Some(text) => out.text(&redactor.redact(&text)),
            None => out.copy(&value),
        },
    }
}
