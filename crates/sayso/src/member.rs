//! Members of an event's object, written one at a time.

use std::time::Duration;

use seal::json::{Kind, Scribe, Tape, Value};

use crate::redact::Cleaner;

/// A JSON object with its tape, so that an embedded hub does not parse it.
pub(crate) type Document = Box<Scribe>;

/// The initial capacity of a document; most events fit.
const EVENT_CAPACITY_BYTES: usize = 384;

/// Writes an object whose members `members` writes.
pub(crate) fn object(members: impl FnOnce(&mut Scribe)) -> Document {
    let mut out = Box::new(Scribe::with_capacity(EVENT_CAPACITY_BYTES));
    out.object(members);
    out
}

/// Copies the members of another object.
pub(crate) fn copy_members(out: &mut Scribe, object: &Scribe) {
    match object.doc() {
        Ok(doc) => {
            for (name, value) in doc.root().members() {
                out.copy_key(&name);
                out.copy(&value);
            }
        }
        Err(error) => out.fail(error),
    }
}

pub(crate) fn text(out: &mut Scribe, name: &str, text: &str) {
    out.key(name).text(text);
}

pub(crate) fn all(out: &mut Scribe, members: &[(&str, &str)]) {
    for (name, value) in members {
        text(out, name, value);
    }
}

pub(crate) fn optional_text(out: &mut Scribe, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        text(out, name, value);
    }
}

/// A list of texts, if it is not empty.
pub(crate) fn texts<'t>(out: &mut Scribe, name: &str, texts: impl IntoIterator<Item = &'t str>) {
    let mut texts = texts.into_iter().peekable();
    if texts.peek().is_some() {
        out.key(name).array(|out| texts.for_each(|text| out.text(text)));
    }
}

/// A count; what does not fit is written as the largest that does.
pub(crate) fn count(out: &mut Scribe, name: &str, count: u64) {
    out.key(name).integer(i64::try_from(count).unwrap_or(i64::MAX));
}

pub(crate) fn millis(out: &mut Scribe, name: &str, duration: Duration) {
    count(out, name, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
}

pub(crate) fn optional_millis(out: &mut Scribe, name: &str, duration: Option<Duration>) {
    if let Some(duration) = duration {
        millis(out, name, duration);
    }
}

/// A JSON value, with the secrets taken out of its texts.
pub(crate) fn json(out: &mut Scribe, name: &str, json: &str, cleaner: &Cleaner) {
    out.key(name);
    match Tape::default().read(json) {
        Ok(doc) => copy(doc.root(), cleaner, out),
        Err(_) => out.raw("null"),
    }
}

fn copy(value: Value<'_>, cleaner: &Cleaner, out: &mut Scribe) {
    match value.kind() {
        Kind::Object => {
            out.open_object();
            for (name, value) in value.members() {
                out.key(&name.text().unwrap_or_default());
                copy(value, cleaner, out);
            }
            out.close_object();
        }
        Kind::Array => {
            out.open_array();
            value.items().for_each(|item| copy(item, cleaner, out));
            out.close_array();
        }
        _ => match value.text() {
            Some(text) => out.text(&cleaner.clean(&text)),
            None => out.copy(&value),
        },
    }
}
