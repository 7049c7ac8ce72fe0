//! The writer: compact JSON, members in the order in which they are given.

use std::fmt::{self, Write};

use super::{SyntaxError, Tape, Value, plain_run};

/// A JSON value as text: what extensions, packaged contexts and unknown members are kept as. It is always one whole
/// JSON value, byte for byte as it was received or built.
///
/// ```
/// use seal::json::Raw;
/// assert_eq!(Raw::parse(r#"{"amount":"500.00"}"#).unwrap().as_str(), r#"{"amount":"500.00"}"#);
/// assert!(Raw::parse("{").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(Box<str>);

impl Raw {
    /// Takes a text that is one JSON value.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Tape::default().read(text)?;
        Ok(Self(text.trim().into()))
    }

    /// Takes a value that a [`Tape`] has read, as it was written.
    pub fn of(value: &Value<'_>) -> Self {
        Self(value.source().into())
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the text of an object whose members `members` writes.
///
/// ```
/// assert_eq!(seal::json::object(|writer| writer.key("a").text("b")), r#"{"a":"b"}"#);
/// ```
pub fn object(members: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::default();
    writer.object(members);
    writer.finish()
}

/// Writes one JSON text. Commas come by themselves; brackets are the caller's to match.
#[derive(Debug, Default)]
pub struct Writer {
    out: String,
    comma: bool,
}

impl Writer {
    /// One that has room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), comma: false }
    }

    /// The text so far.
    pub fn finish(self) -> String {
        self.out
    }

    /// How many bytes are written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing is written yet.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    fn separate(&mut self) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = true;
    }

    /// Opens an object.
    pub fn open_object(&mut self) {
        self.separate();
        self.out.push('{');
        self.comma = false;
    }

    /// Closes an object.
    pub fn close_object(&mut self) {
        self.out.push('}');
        self.comma = true;
    }

    /// Opens an array.
    pub fn open_array(&mut self) {
        self.separate();
        self.out.push('[');
        self.comma = false;
    }

    /// Closes an array.
    pub fn close_array(&mut self) {
        self.out.push(']');
        self.comma = true;
    }

    /// Writes an object whose members `members` writes.
    pub fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.open_object();
        members(self);
        self.close_object();
    }

    /// Writes an array whose items `items` writes.
    pub fn array(&mut self, items: impl FnOnce(&mut Self)) {
        self.open_array();
        items(self);
        self.close_array();
    }

    /// Writes members that are texts.
    pub fn texts<'t>(&mut self, members: impl IntoIterator<Item = (&'t str, &'t str)>) {
        for (name, text) in members {
            self.key(name).text(text);
        }
    }

    /// A member's name; its value comes next.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.separate();
        self.quote(name);
        self.out.push(':');
        self.comma = false;
        self
    }

    /// A string.
    pub fn text(&mut self, text: &str) {
        self.separate();
        self.quote(text);
    }

    /// A member whose name and text have nothing in them that would have to be escaped.
    pub fn plain(&mut self, name: &str, text: &str) {
        self.separate();
        for part in ["\"", name, "\":\"", text, "\""] {
            self.out.push_str(part);
        }
    }

    /// A boolean.
    pub fn boolean(&mut self, value: bool) {
        self.separate();
        self.out.push_str(if value { "true" } else { "false" });
    }

    /// An integer.
    pub fn integer(&mut self, value: i64) {
        self.separate();
        let _ = write!(self.out, "{value}");
    }

    /// A number; integral values are written without a fraction (C-A19), those that JSON cannot say as `null`.
    pub fn number(&mut self, value: f64) {
        self.separate();
        write_number(&mut self.out, value);
    }

    /// A value that is JSON already.
    pub fn raw(&mut self, json: &str) {
        self.separate();
        self.out.push_str(json);
    }

    fn quote(&mut self, text: &str) {
        quote_short(&mut self.out, text);
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

/// Writes a string with the short escapes that people know.
pub(super) fn quote_short(out: &mut String, text: &str) {
    // Nearly every string is plain from end to end.
    if plain_run(text.as_bytes(), 0).0 == text.len() {
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

/// Writes a string with what must be escaped escaped: controls by their short form, where there is one, or as `\u00XX`.
pub(crate) fn quote(out: &mut String, text: &str, short: impl Fn(u8) -> Option<&'static str>) {
    out.push('"');
    let mut from = 0;
    loop {
        let (at, _) = plain_run(text.as_bytes(), from);
        out.push_str(&text[from..at]);
        let Some(byte) = text.as_bytes().get(at).copied() else { break };
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
        from = at + 1;
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut writer = Writer::default();
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
        writer.plain("id", "evt_1");
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
