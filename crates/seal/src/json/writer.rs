//! A writer of compact JSON. Members are written in the caller's order.

use std::fmt::{self, Write};

use super::{JsonValue, SyntaxError, Tape, find_end_of_unescaped_text};

/// The source text of one JSON value. Used for JSON that is passed on unchanged, such as extensions and unknown members.
///
/// ```
/// use seal::json::RawJson;
/// assert_eq!(RawJson::parse(r#"{"amount":"500.00"}"#).unwrap().as_str(), r#"{"amount":"500.00"}"#);
/// assert!(RawJson::parse("{").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// Creates a value from a text. Fails unless the text is one JSON value.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Tape::default().read(text)?;
        Ok(Self(text.trim().into()))
    }

    /// Copies the source of a value that a [`Tape`] has read.
    pub fn from_value(value: &JsonValue<'_>) -> Self {
        Self(value.source().into())
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the text of an object. `members` writes its members.
///
/// ```
/// assert_eq!(seal::json::write_object(|writer| writer.key("a").text("b")), r#"{"a":"b"}"#);
/// ```
pub fn write_object(members: impl FnOnce(&mut JsonWriter)) -> String {
    let mut writer = JsonWriter::with_capacity(OBJECT_CAPACITY);
    writer.object(members);
    writer.finish()
}

/// The initial capacity of an object's text, in bytes. Most objects fit, so that the text does not grow in small steps.
const OBJECT_CAPACITY: usize = 256;

/// Writes one JSON text. It adds commas, and the caller must balance the brackets.
#[derive(Debug, Default)]
pub struct JsonWriter {
    out: String,
    needs_comma: bool,
}

impl JsonWriter {
    /// Creates a writer with capacity for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), needs_comma: false }
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.out
    }

    /// Returns the number of bytes written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Returns whether nothing has been written yet.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    fn separate(&mut self) {
        if self.needs_comma {
            self.out.push(',');
        }
        self.needs_comma = true;
    }

    /// Opens an object.
    pub fn open_object(&mut self) {
        self.separate();
        self.out.push('{');
        self.needs_comma = false;
    }

    /// Closes an object.
    pub fn close_object(&mut self) {
        self.out.push('}');
        self.needs_comma = true;
    }

    /// Opens an array.
    pub fn open_array(&mut self) {
        self.separate();
        self.out.push('[');
        self.needs_comma = false;
    }

    /// Closes an array.
    pub fn close_array(&mut self) {
        self.out.push(']');
        self.needs_comma = true;
    }

    /// Writes an object. `members` writes its members.
    pub fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.open_object();
        members(self);
        self.close_object();
    }

    /// Writes an array. `items` writes its items.
    pub fn array(&mut self, items: impl FnOnce(&mut Self)) {
        self.open_array();
        items(self);
        self.close_array();
    }

    /// Writes members whose values are strings.
    pub fn text_members<'t>(&mut self, members: impl IntoIterator<Item = (&'t str, &'t str)>) {
        for (name, text) in members {
            self.key(name).text(text);
        }
    }

    /// Writes a member's name. The value must follow.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.separate();
        self.quote(name);
        self.out.push(':');
        self.needs_comma = false;
        self
    }

    /// Writes a string.
    pub fn text(&mut self, text: &str) {
        self.separate();
        self.quote(text);
    }

    /// Writes a member whose name and text need no escapes.
    pub fn plain_member(&mut self, name: &str, text: &str) {
        self.separate();
        for part in ["\"", name, "\":\"", text, "\""] {
            self.out.push_str(part);
        }
    }

    /// Writes a boolean.
    pub fn boolean(&mut self, value: bool) {
        self.separate();
        self.out.push_str(if value { "true" } else { "false" });
    }

    /// Writes an integer.
    pub fn integer(&mut self, value: i64) {
        self.separate();
        let _ = write!(self.out, "{value}");
    }

    /// Writes a number. Integers below 2^53 are written without a fraction (C-A19), infinities and NaN as `null`.
    pub fn number(&mut self, value: f64) {
        self.separate();
        write_number(&mut self.out, value);
    }

    /// Writes a value that is given as JSON.
    pub fn raw(&mut self, json: &str) {
        self.separate();
        self.out.push_str(json);
    }

    fn quote(&mut self, text: &str) {
        quote_with_short_escapes(&mut self.out, text);
    }
}

pub(super) fn write_number(out: &mut String, value: f64) {
    let _ = if !value.is_finite() {
        out.write_str("null")
    } else if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        write!(out, "{value:.0}")
    } else {
        write!(out, "{value:?}")
    };
}

/// Writes a quoted string. Line breaks and tabs become `\n`, `\r` and `\t`.
pub(super) fn quote_with_short_escapes(out: &mut String, text: &str) {
    // Nearly all strings need no escapes.
    if find_end_of_unescaped_text(text.as_bytes(), 0).0 == text.len() {
        out.reserve(text.len() + 2);
        for part in ["\"", text, "\""] {
            out.push_str(part);
        }
        return;
    }
    quote(out, text, |byte| match byte {
        b'\n' => Some("\\n"),
        b'\r' => Some("\\r"),
        b'\t' => Some("\\t"),
        _ => None,
    });
}

/// Writes a quoted string. Control characters are escaped with the short form that `short` returns, or else as `\u00XX`.
pub(crate) fn quote(out: &mut String, text: &str, short: impl Fn(u8) -> Option<&'static str>) {
    out.push('"');
    let mut start = 0;
    loop {
        let (end, _) = find_end_of_unescaped_text(text.as_bytes(), start);
        out.push_str(&text[start..end]);
        let Some(byte) = text.as_bytes().get(end).copied() else { break };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            _ => match short(byte) {
                Some(escape) => out.push_str(escape),
                None => {
                    let _ = write!(out, "\\u{byte:04x}");
                }
            },
        }
        start = end + 1;
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_json_parses_back() {
        let mut writer = JsonWriter::default();
        writer.open_object();
        writer.key("a\"b").open_array();
        writer.text("x\u{1}\n\\ é😀");
        writer.integer(-3);
        writer.number(60.0);
        writer.number(0.5);
        writer.number(1e300);
        writer.boolean(true);
        writer.open_object();
        writer.close_object();
        writer.close_array();
        writer.key("raw").raw("[1]");
        writer.plain_member("id", "evt_1");
        writer.close_object();
        let text = writer.finish();
        assert_eq!(
            text,
            "{\"a\\\"b\":[\"x\\u0001\\n\\\\ é😀\",-3,60,0.5,1e300,true,{}],\"raw\":[1],\"id\":\"evt_1\"}"
        );
        let mut tape = Tape::default();
        let doc = tape.read(&text).unwrap();
        let items: Vec<_> = doc.root().member("a\"b").unwrap().items().collect();
        assert_eq!(items[0].text().unwrap(), "x\u{1}\n\\ é😀");
    }
}
