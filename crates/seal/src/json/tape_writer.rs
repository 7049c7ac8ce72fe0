//! A JSON writer that builds the tape together with the text, so that its output does not have to be parsed.

use std::fmt::Write;

use super::document::{
    Doc, ESCAPED, JsonKind, LONE_SURROGATE, NON_ASCII, OUT_OF_RANGE, ParseNotes, TRUE, TapeNode,
    UNSAFE_INTEGER,
};
use super::reader::{MAX_DEPTH, SyntaxError, SyntaxErrorKind, Tape, TapeReader, note_key};
use super::writer::{quote_with_short_escapes, write_number};
use super::{JsonValue, find_end_of_unescaped_text};

/// A parsed text that owns its source and its tape.
#[derive(Clone, Debug)]
pub struct OwnedDoc {
    text: Box<str>,
    nodes: Box<[TapeNode]>,
    notes: ParseNotes,
}

impl OwnedDoc {
    /// Parses a text.
    ///
    /// ```
    /// let owned = seal::json::OwnedDoc::read(r#"{"agent_id":"bank"}"#).unwrap();
    /// assert_eq!(owned.doc().root().member("agent_id").unwrap().text().unwrap(), "bank");
    /// ```
    pub fn read(text: &str) -> Result<Self, SyntaxError> {
        Ok(Self::from_doc(&Tape::default().read(text)?))
    }

    /// Copies a document that was parsed or written with its tape.
    pub fn from_doc(doc: &Doc<'_>) -> Self {
        Self { text: doc.text.into(), nodes: doc.nodes.into(), notes: doc.notes }
    }

    /// Returns the document.
    pub fn doc(&self) -> Doc<'_> {
        Doc { text: &self.text, nodes: &self.nodes, notes: self.notes }
    }

    /// Returns the text.
    pub fn source(&self) -> &str {
        &self.text
    }
}

/// Estimated bytes of text per node, for preallocation.
const BYTES_PER_NODE: usize = 16;

/// Writes one JSON text and its tape. It adds commas, and the caller must balance the brackets.
///
/// [`TapeWriter::doc`] returns what a [`Tape`] would read from [`TapeWriter::source`], at a fraction of the cost. For a
/// value that is copied from another document, the nodes are copied, too.
///
/// ```
/// use seal::json::{TapeWriter, Tape};
/// let mut tape = Tape::default();
/// let source = tape.read(r#"{"tool": "fetch"}"#).unwrap();
/// let mut writer = TapeWriter::default();
/// writer.open_object();
/// writer.plain_member("type", "call");
/// writer.key("tool");
/// writer.copy(&source.root().member("tool").unwrap());
/// writer.close_object();
/// let written = writer.doc().unwrap();
/// assert_eq!(written.source(), r#"{"type":"call","tool":"fetch"}"#);
/// assert_eq!(written.type_value().unwrap().text().unwrap(), "call");
/// ```
#[derive(Clone, Debug, Default)]
pub struct TapeWriter {
    out: String,
    nodes: Vec<TapeNode>,
    notes: ParseNotes,
    /// The open containers: the tape index of each, and a bit set of its hashed keys.
    open_containers: Vec<(usize, u64)>,
    needs_comma: bool,
    /// The first error in a value that was written raw.
    error: Option<SyntaxError>,
}

#[allow(clippy::cast_possible_truncation, reason = "`doc` rejects texts longer than 4 GiB")]
impl TapeWriter {
    /// Creates a writer with capacity for `bytes` bytes of text.
    pub fn with_capacity(bytes: usize) -> Self {
        let (out, nodes) = (String::with_capacity(bytes), Vec::with_capacity(bytes / BYTES_PER_NODE));
        Self { out, nodes, ..Self::default() }
    }

    /// Starts a new text and reuses the allocated memory.
    pub fn clear(&mut self) {
        self.out.clear();
        self.nodes.clear();
        self.open_containers.clear();
        (self.notes, self.needs_comma, self.error) = (ParseNotes::default(), false, None);
    }

    /// Returns the text written so far.
    pub fn source(&self) -> &str {
        &self.out
    }

    /// Returns the text and starts a new one, in `buffer` or in a new buffer with room for a text of
    /// the same length.
    pub fn take(&mut self, buffer: Option<String>) -> String {
        let buffer = buffer.unwrap_or_else(|| String::with_capacity(self.out.len()));
        let text = std::mem::replace(&mut self.out, buffer);
        self.clear();
        text
    }

    /// Returns what was written as a parsed document. Fails if a [`Tape`] would not accept the text.
    pub fn doc(&self) -> Result<Doc<'_>, SyntaxError> {
        let offset = self.out.len();
        let kind = match &self.error {
            Some(error) => return Err(error.clone()),
            None if u32::try_from(offset).is_err() => SyntaxErrorKind::TooLong,
            None if self.notes.depth > MAX_DEPTH => SyntaxErrorKind::TooDeep,
            None if self.nodes.is_empty() || !self.open_containers.is_empty() => {
                SyntaxErrorKind::UnexpectedEnd
            }
            None => return Ok(Doc { text: &self.out, nodes: &self.nodes, notes: self.notes }),
        };
        Err(SyntaxError { offset, kind })
    }

    /// Returns whether parsing the text gives the same document, for tests. Only the flags for characters beyond ASCII may
    /// differ, because they may also be set for strings without such characters.
    pub fn matches_reparse(&self) -> bool {
        let mut tape = Tape::default();
        match (tape.read(&self.out), self.doc()) {
            (Ok(parsed), Ok(written)) => {
                let is_same = |(parsed, written): (&TapeNode, &TapeNode)| {
                    let text = self.out.get(written.start as usize..written.end as usize);
                    TapeNode { flags: parsed.flags & !NON_ASCII, ..*parsed }
                        == TapeNode { flags: written.flags & !NON_ASCII, ..*written }
                        && (written.flags & NON_ASCII != 0
                            || written.kind != JsonKind::Text
                            || text.is_some_and(str::is_ascii))
                };
                parsed.notes == written.notes
                    && parsed.nodes.len() == written.nodes.len()
                    && parsed.nodes.iter().zip(written.nodes).all(is_same)
            }
            (parsed, written) => parsed.is_err() == written.is_err(),
        }
    }

    /// Replaces line breaks with spaces. Line breaks have no meaning between tokens and are escaped inside strings.
    pub fn replace_line_breaks(&mut self) {
        // Without an early exit, the compiler can vectorize the scan.
        let is_line_break = |byte: u8| u8::from(byte == b'\n') | u8::from(byte == b'\r');
        if self.out.bytes().fold(0, |found, byte| found | is_line_break(byte)) != 0 {
            self.out = self.out.replace(['\n', '\r'], " ");
        }
    }

    #[inline]
    fn separate(&mut self) {
        if self.needs_comma {
            self.out.push(',');
        }
        self.needs_comma = true;
    }

    #[inline]
    fn push(&mut self, kind: JsonKind, start: usize, end: usize, flags: u8) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(TapeNode { start: start as u32, end: end as u32, next, kind, flags });
    }

    fn open(&mut self, kind: JsonKind, bracket: char) {
        self.separate();
        let depth = self.open_containers.len() as u32;
        self.notes.depth = self.notes.depth.max(depth);
        self.open_containers.push((self.nodes.len(), 0));
        self.push(kind, self.out.len(), self.out.len(), 0);
        self.out.push(bracket);
        self.needs_comma = false;
    }

    fn close(&mut self, bracket: char) {
        self.out.push(bracket);
        self.needs_comma = true;
        let (end, next) = (self.out.len() as u32, self.nodes.len() as u32);
        if let Some((index, _)) = self.open_containers.pop() {
            let node = &mut self.nodes[index];
            (node.end, node.next) = (end, next);
        }
    }

    /// Opens an object.
    pub fn open_object(&mut self) {
        self.open(JsonKind::Object, '{');
    }

    /// Closes an object.
    pub fn close_object(&mut self) {
        self.close('}');
    }

    /// Opens an array.
    pub fn open_array(&mut self) {
        self.open(JsonKind::Array, '[');
    }

    /// Closes an array.
    pub fn close_array(&mut self) {
        self.close(']');
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

    /// Writes a member's name. The value must follow.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.separate();
        self.quote(name);
        self.note_last_key();
        self.out.push(':');
        self.needs_comma = false;
        self
    }

    /// Writes a member's name that is printable ASCII and needs no escapes. The value must follow.
    pub fn plain_key(&mut self, name: &str) {
        self.separate();
        self.write_plain_key(name, 0);
    }

    fn write_plain_key(&mut self, name: &str, flags: u8) {
        self.out.push('"');
        let start = self.out.len();
        self.out.push_str(name);
        self.push(JsonKind::Text, start, start + name.len(), flags);
        self.note_last_key();
        self.out.push_str("\":");
        self.needs_comma = false;
    }

    /// Writes the name of a member of another document. The value must follow.
    pub fn copy_key(&mut self, key: &JsonValue<'_>) {
        let Some(name) = key.plain_text() else {
            self.key(&key.text().unwrap_or_default());
            return;
        };
        self.separate();
        self.write_plain_key(name, key.node().flags);
    }

    /// Writes a string.
    pub fn text(&mut self, text: &str) {
        self.separate();
        self.quote(text);
    }

    /// Writes a boolean.
    pub fn boolean(&mut self, value: bool) {
        self.separate();
        let start = self.out.len();
        self.out.push_str(if value { "true" } else { "false" });
        self.push(JsonKind::Bool, start, self.out.len(), if value { TRUE } else { 0 });
    }

    /// Writes an integer.
    pub fn integer(&mut self, value: i64) {
        self.separate();
        let start = self.out.len();
        let _ = write!(self.out, "{value}");
        let is_unsafe = value.unsigned_abs() > 1 << 53;
        self.notes.has_unsafe_integer |= is_unsafe;
        self.push(JsonKind::Number, start, self.out.len(), if is_unsafe { UNSAFE_INTEGER } else { 0 });
    }

    /// Writes a number as [`JsonWriter::number`](super::JsonWriter::number) does.
    pub fn number(&mut self, value: f64) {
        let mut text = String::new();
        write_number(&mut text, value);
        self.raw(&text);
    }

    /// Writes a member whose name and text are printable ASCII and need no escapes.
    pub fn plain_member(&mut self, name: &str, text: &str) {
        self.plain_key(name);
        self.out.push('"');
        let start = self.out.len();
        self.out.push_str(text);
        self.out.push('"');
        self.push(JsonKind::Text, start, start + text.len(), 0);
        self.needs_comma = true;
    }

    /// Writes a value of another document, with its source text.
    pub fn copy(&mut self, value: &JsonValue<'_>) {
        self.separate();
        let (source, nodes) = (value.source(), value.tape());
        let Some(first) = nodes.first() else { return };
        let quote_length = u32::from(first.kind == JsonKind::Text);
        let index = self.nodes.len();
        let byte_shift = (self.out.len() as u32).wrapping_sub(first.start - quote_length);
        let node_shift = (index as u32).wrapping_sub(value.index());
        self.out.push_str(source);
        self.nodes.extend(nodes.iter().map(|node| TapeNode {
            start: node.start.wrapping_add(byte_shift),
            end: node.end.wrapping_add(byte_shift),
            next: node.next.wrapping_add(node_shift),
            ..*node
        }));
        self.note_copied_value(index, self.open_containers.len() as u32);
    }

    /// Writes a value that is given as JSON, and parses it.
    pub fn raw(&mut self, json: &str) {
        self.separate();
        let (at, depth) = (self.out.len(), self.open_containers.len() as u32);
        self.out.push_str(json);
        let mut reader = TapeReader { text: &self.out, at, nodes: &mut self.nodes, notes: self.notes };
        reader.skip_whitespace();
        let result = reader.parse_value(depth).and_then(|()| {
            reader.skip_whitespace();
            if reader.at == self.out.len() {
                Ok(())
            } else {
                Err(reader.syntax_error(SyntaxErrorKind::TrailingData))
            }
        });
        self.notes = reader.notes;
        if let Err(error) = result {
            self.set_error(error);
        }
    }

    /// Records that a value is not JSON. [`Self::doc`] returns the first such error.
    pub fn set_error(&mut self, error: SyntaxError) {
        self.error.get_or_insert(error);
    }

    /// Notes the facts that a parser would note about a copied value.
    fn note_copied_value(&mut self, index: usize, depth: u32) {
        let node = self.nodes[index];
        match node.kind {
            JsonKind::Object => {
                self.notes.depth = self.notes.depth.max(depth);
                let (mut at, mut seen_keys) = (index + 1, 0);
                while at < node.next as usize {
                    note_key(&self.out, &self.nodes, at, depth, &mut seen_keys, &mut self.notes);
                    self.notes.has_lone_surrogate |= self.nodes[at].flags & LONE_SURROGATE != 0;
                    self.note_copied_value(at + 1, depth + 1);
                    at = self.nodes[at + 1].next as usize;
                }
            }
            JsonKind::Array => {
                self.notes.depth = self.notes.depth.max(depth);
                let mut at = index + 1;
                while at < node.next as usize {
                    self.note_copied_value(at, depth + 1);
                    at = self.nodes[at].next as usize;
                }
            }
            JsonKind::Text => self.notes.has_lone_surrogate |= node.flags & LONE_SURROGATE != 0,
            JsonKind::Number => {
                self.notes.has_unsafe_integer |= node.flags & UNSAFE_INTEGER != 0;
                self.notes.has_out_of_range_number |= node.flags & OUT_OF_RANGE != 0;
            }
            JsonKind::Null | JsonKind::Bool => {}
        }
    }

    fn quote(&mut self, text: &str) {
        let start = self.out.len() + 1;
        let (plain_end, may_be_non_ascii) = find_end_of_unescaped_text(text.as_bytes(), 0);
        let mut flags = if may_be_non_ascii { NON_ASCII } else { 0 };
        if plain_end == text.len() {
            self.out.push('"');
            self.out.push_str(text);
            self.out.push('"');
        } else {
            quote_with_short_escapes(&mut self.out, text);
            flags = ESCAPED | if text.is_ascii() { 0 } else { NON_ASCII };
        }
        self.push(JsonKind::Text, start, self.out.len() - 1, flags);
    }

    #[inline]
    fn note_last_key(&mut self) {
        let Some((key_index, node)) = self.nodes.len().checked_sub(1).zip(self.nodes.last()) else { return };
        let depth = self.open_containers.len() as u32;
        // Most keys are in the outermost object, where only `type` matters, which has 4 bytes.
        if depth == 1 && node.flags & ESCAPED == 0 && node.end - node.start != 4 {
            return;
        }
        if let Some((_, seen_keys)) = self.open_containers.last_mut() {
            note_key(&self.out, &self.nodes, key_index, depth - 1, seen_keys, &mut self.notes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates JSON that contains everything that a parser notes.
    fn json() -> impl Strategy<Value = String> {
        let text = prop_oneof![
            "[a-cé]{0,9}".prop_map(|text| format!("\"{text}\"")),
            Just(r#""type""#.to_owned()),
            Just(r#""\u0061\n""#.to_owned()),
            Just(r#""\ud800""#.to_owned()),
        ];
        let leaf = prop_oneof![
            text.clone(),
            Just("9007199254740993".to_owned()),
            Just("-1.5e400".to_owned()),
            Just("0.25".to_owned()),
            Just("true".to_owned()),
            Just("null".to_owned()),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            let member = (text.clone(), inner.clone()).prop_map(|(key, value)| format!("{key} :\n{value}"));
            prop_oneof![
                proptest::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(" ,"))),
                proptest::collection::vec(member, 0..5)
                    .prop_map(|members| format!("{{ {} }}", members.join(","))),
            ]
        })
    }

    proptest! {
        /// Values that are written, copied or inserted raw have the tape that a parser would build.
        #[test]
        fn the_written_tape_equals_the_parsed_tape(values in proptest::collection::vec((json(), "[a-bé\"\\\\\n]{0,9}"), 1..6), number_count in 0_usize..7) {
            let mut writer = TapeWriter::default();
            for round in 0..2 {
                writer.clear();
                writer.open_object();
                writer.plain_member("type", "x");
                writer.plain_key("four");
                writer.text(r"\");
                for number in [0, -7, 1 << 53, (1 << 53) + 1, i64::MIN, i64::MAX].into_iter().take(number_count) {
                    writer.plain_key("number");
                    writer.integer(number);
                    writer.plain_key("even");
                    writer.boolean(number % 2 == 0);
                }
                for (index, (value, name)) in values.iter().enumerate() {
                    let owned = OwnedDoc::read(value).unwrap();
                    writer.key(name);
                    match (index + round) % 3 {
                        0 => writer.copy(&owned.doc().root()),
                        1 => writer.raw(owned.source()),
                        _ => {
                            writer.open_array();
                            writer.text(name);
                            writer.open_object();
                            writer.plain_member("inner", "plain");
                            for (key, value) in owned.doc().root().members() {
                                writer.copy_key(&key);
                                writer.copy(&value);
                            }
                            writer.close_object();
                            writer.close_array();
                        }
                    }
                }
                writer.close_object();
                prop_assert!(writer.matches_reparse(), "{}", writer.source());
                writer.replace_line_breaks();
                prop_assert!(!writer.source().contains(['\n', '\r']) && writer.matches_reparse(), "{}", writer.source());
            }
        }
    }

    #[test]
    fn output_that_is_not_json_is_rejected() {
        let mut writer = TapeWriter::default();
        assert!(writer.doc().is_err());
        writer.open_object();
        assert!(writer.doc().is_err());
        writer.key("a");
        writer.raw("{");
        writer.close_object();
        assert!(writer.doc().is_err());
        writer.clear();
        writer.raw("1 2");
        assert!(matches!(writer.doc(), Err(SyntaxError { kind: SyntaxErrorKind::TrailingData, .. })));
        let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
        let owned = OwnedDoc::read(&deep).unwrap();
        for (depth, fits) in [(1, true), (2, false)] {
            writer.clear();
            (0..depth).for_each(|_| writer.open_array());
            writer.copy(&owned.doc().root());
            (0..depth).for_each(|_| writer.close_array());
            assert_eq!(writer.doc().is_ok(), fits);
            assert!(writer.matches_reparse());
        }
    }
}
