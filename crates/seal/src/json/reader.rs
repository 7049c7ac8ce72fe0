//! The JSON parser, which turns text into a tape.

use thiserror::Error;

use super::document::{
    Doc, ESCAPED, FLOAT, JsonKind, LONE_SURROGATE, NON_ASCII, OUT_OF_RANGE, ParseNotes, TRUE, TapeNode,
    UNSAFE_INTEGER,
};
use super::unescape::{parse_utf16_unit, unescape};

/// Maximum nesting depth of containers. Deeper input is rejected.
pub const MAX_DEPTH: u32 = 64;

/// Why a text is not JSON, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} at byte {}", .offset + 1)]
pub struct SyntaxError {
    /// Offset of the byte at which parsing stopped, counted from 0.
    pub offset: usize,
    /// The problem at that byte.
    pub kind: SyntaxErrorKind,
}

/// A problem with a text that should be JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SyntaxErrorKind {
    /// The text ends inside a value.
    #[error("the text ends inside a value")]
    UnexpectedEnd,
    /// The text does not contain this where it is required.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A string contains an unescaped control character.
    #[error("a control character must be escaped inside a string")]
    ControlCharacter,
    /// A backslash is not followed by a valid escape.
    #[error("invalid escape")]
    InvalidEscape,
    /// JSON does not allow this number (`01`, `1.`, `-x`).
    #[error("invalid number")]
    InvalidNumber,
    /// Containers are nested more than [`MAX_DEPTH`] deep.
    #[error("nested more than {} deep", MAX_DEPTH)]
    TooDeep,
    /// There is more text after the value.
    #[error("there is more text after the JSON value")]
    TrailingData,
    /// The text is longer than a tape can address (4 GiB).
    #[error("longer than 4 GiB")]
    TooLong,
}

/// The nodes of a parsed text. Their memory is reused for the next text.
#[derive(Debug, Default)]
pub struct Tape {
    nodes: Vec<TapeNode>,
}

impl Tape {
    /// Parses a text that contains one value. Only white space may surround the value.
    pub fn read<'d>(&'d mut self, text: &'d str) -> Result<Doc<'d>, SyntaxError> {
        self.nodes.clear();
        if u32::try_from(text.len()).is_err() {
            return Err(SyntaxError { offset: 0, kind: SyntaxErrorKind::TooLong });
        }
        let mut reader = TapeReader { text, at: 0, nodes: &mut self.nodes, notes: ParseNotes::default() };
        reader.skip_whitespace();
        reader.parse_value(0)?;
        reader.skip_whitespace();
        if reader.at < text.len() {
            return Err(reader.syntax_error(SyntaxErrorKind::TrailingData));
        }
        let notes = reader.notes;
        Ok(Doc { text, nodes: &self.nodes, notes })
    }
}

/// The state of the parser.
pub(super) struct TapeReader<'r> {
    pub(super) text: &'r str,
    pub(super) at: usize,
    pub(super) nodes: &'r mut Vec<TapeNode>,
    pub(super) notes: ParseNotes,
}

#[allow(clippy::cast_possible_truncation, reason = "the text is shorter than 4 GiB, and so is the tape")]
impl TapeReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns an error at the current position. At the end of the text, its kind is
    /// [`SyntaxErrorKind::UnexpectedEnd`], unless it is [`SyntaxErrorKind::TooDeep`].
    pub(super) fn syntax_error(&self, kind: SyntaxErrorKind) -> SyntaxError {
        let kind = if self.at >= self.text.len() && kind != SyntaxErrorKind::TooDeep {
            SyntaxErrorKind::UnexpectedEnd
        } else {
            kind
        };
        SyntaxError { offset: self.at, kind }
    }

    #[inline]
    pub(super) fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn push(&mut self, kind: JsonKind, start: usize, end: usize, flags: u8) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(TapeNode { start: start as u32, end: end as u32, next, kind, flags });
    }

    pub(super) fn parse_value(&mut self, depth: u32) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b'"') => self.parse_string(),
            Some(b'{') => self.parse_object(depth),
            Some(b'[') => self.parse_array(depth),
            Some(b'-' | b'0'..=b'9') => self.parse_number(),
            Some(b't') => self.parse_literal("true", JsonKind::Bool, TRUE),
            Some(b'f') => self.parse_literal("false", JsonKind::Bool, 0),
            Some(b'n') => self.parse_literal("null", JsonKind::Null, 0),
            _ => Err(self.syntax_error(SyntaxErrorKind::Expected("a JSON value"))),
        }
    }

    fn parse_literal(&mut self, literal: &'static str, kind: JsonKind, flags: u8) -> Result<(), SyntaxError> {
        let rest = &self.text.as_bytes()[self.at..];
        if !rest.starts_with(literal.as_bytes()) {
            if literal.as_bytes().starts_with(rest) {
                self.at = self.text.len();
            }
            return Err(self.syntax_error(SyntaxErrorKind::Expected("a JSON value")));
        }
        self.push(kind, self.at, self.at + literal.len(), flags);
        self.at += literal.len();
        Ok(())
    }

    /// Opens a container and returns its index on the tape.
    fn open(&mut self, kind: JsonKind, depth: u32) -> Result<usize, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.syntax_error(SyntaxErrorKind::TooDeep));
        }
        self.notes.depth = self.notes.depth.max(depth);
        let index = self.nodes.len();
        self.push(kind, self.at, self.at, 0);
        self.at += 1;
        self.skip_whitespace();
        Ok(index)
    }

    fn close(&mut self, index: usize) {
        self.at += 1;
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[index];
        node.end = self.at as u32;
        node.next = next;
    }

    fn parse_array(&mut self, depth: u32) -> Result<(), SyntaxError> {
        let index = self.open(JsonKind::Array, depth)?;
        if self.peek() == Some(b']') {
            self.close(index);
            return Ok(());
        }
        loop {
            self.parse_value(depth + 1)?;
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.syntax_error(SyntaxErrorKind::Expected("a comma or ]"))),
            }
            self.skip_whitespace();
        }
        self.close(index);
        Ok(())
    }

    fn parse_object(&mut self, depth: u32) -> Result<(), SyntaxError> {
        let index = self.open(JsonKind::Object, depth)?;
        if self.peek() == Some(b'}') {
            self.close(index);
            return Ok(());
        }
        let mut seen_keys = 0_u64;
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.syntax_error(SyntaxErrorKind::Expected("a key in double quotes")));
            }
            let key_index = self.nodes.len();
            self.parse_string()?;
            note_key(self.text, self.nodes, key_index, depth, &mut seen_keys, &mut self.notes);
            self.skip_whitespace();
            if self.peek() != Some(b':') {
                return Err(self.syntax_error(SyntaxErrorKind::Expected("a colon")));
            }
            self.at += 1;
            self.skip_whitespace();
            self.parse_value(depth + 1)?;
            self.skip_whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.syntax_error(SyntaxErrorKind::Expected("a comma or }"))),
            }
            self.skip_whitespace();
        }
        self.close(index);
        Ok(())
    }

    #[inline]
    fn parse_string(&mut self) -> Result<(), SyntaxError> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        let start = self.at;
        let mut flags = 0;
        loop {
            let (run_end, may_be_non_ascii) = find_end_of_unescaped_text(bytes, self.at);
            self.at = run_end;
            if may_be_non_ascii {
                flags |= NON_ASCII;
            }
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    flags |= ESCAPED;
                    flags |= self.skip_escape()?;
                }
                Some(_) => return Err(self.syntax_error(SyntaxErrorKind::ControlCharacter)),
                None => return Err(self.syntax_error(SyntaxErrorKind::UnexpectedEnd)),
            }
        }
        self.push(JsonKind::Text, start, self.at, flags);
        self.notes.has_lone_surrogate |= flags & LONE_SURROGATE != 0;
        self.at += 1;
        Ok(())
    }

    /// Skips one escape. Returns [`LONE_SURROGATE`] if it is half of a surrogate pair.
    fn skip_escape(&mut self) -> Result<u8, SyntaxError> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(0)
            }
            Some(b'u') => {
                let first = parse_utf16_unit(self.text, self.at + 1)
                    .ok_or_else(|| self.syntax_error(SyntaxErrorKind::InvalidEscape))?;
                self.at += 5;
                if !(0xD800..0xE000).contains(&first) {
                    return Ok(0);
                }
                if first < 0xDC00
                    && self.text.as_bytes().get(self.at..self.at + 2) == Some(b"\\u".as_slice())
                    && let Some(0xDC00..0xE000) = parse_utf16_unit(self.text, self.at + 2)
                {
                    self.at += 6;
                    return Ok(0);
                }
                Ok(LONE_SURROGATE)
            }
            _ => Err(self.syntax_error(SyntaxErrorKind::InvalidEscape)),
        }
    }

    fn parse_number(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let integer_digits = self.skip_digits()?;
        if integer_digits > 1 && self.text.as_bytes()[self.at - integer_digits] == b'0' {
            return Err(self.syntax_error(SyntaxErrorKind::InvalidNumber));
        }
        let mut flags = 0;
        let mut has_exponent = false;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
            flags |= FLOAT;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.skip_digits()?;
            flags |= FLOAT;
            has_exponent = true;
        }
        if integer_digits > 15 || has_exponent {
            let text = &self.text[start..self.at];
            if flags == 0 && text.trim_start_matches('-').parse::<u64>().is_ok_and(|n| n <= 1 << 53) {
                // Long, but still exact in a double.
            } else if flags == 0 {
                flags |= UNSAFE_INTEGER;
                self.notes.has_unsafe_integer = true;
            }
            if text.parse::<f64>().is_ok_and(f64::is_infinite) {
                flags |= OUT_OF_RANGE;
                self.notes.has_out_of_range_number = true;
            }
        }
        self.push(JsonKind::Number, start, self.at, flags);
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<usize, SyntaxError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.syntax_error(SyntaxErrorKind::InvalidNumber));
        }
        Ok(self.at - start)
    }
}

/// Notes the position of the outermost `type`, and whether a key of an inner object may be a duplicate. `seen_keys` is a
/// bit set with one hashed bit for each key of the object. A key with escapes always counts as a possible duplicate, because
/// `"a"` and `"\u0061"` are equal.
#[allow(clippy::cast_possible_truncation, reason = "the text is shorter than 4 GiB, and so is the tape")]
#[inline]
pub(super) fn note_key(
    text: &str,
    nodes: &[TapeNode],
    key_index: usize,
    depth: u32,
    seen_keys: &mut u64,
    notes: &mut ParseNotes,
) {
    let node = nodes[key_index];
    let bytes = &text.as_bytes()[node.start as usize..node.end as usize];
    if node.flags & ESCAPED != 0 {
        notes.may_have_duplicate_key = true;
        if depth == 0 && unescape(&text[node.start as usize..node.end as usize]) == "type" {
            notes.type_index = key_index as u32 + 1;
        }
    } else if depth == 0 {
        if bytes == b"type" {
            notes.type_index = key_index as u32 + 1;
        }
    } else {
        let hash =
            bytes.first().map_or(0, |first| u32::from(*first) ^ u32::from(bytes[bytes.len() / 2]) << 2);
        let key_bit = 1 << (hash.wrapping_add(bytes.len() as u32) & 63);
        notes.may_have_duplicate_key |= *seen_keys & key_bit != 0;
        *seen_keys |= key_bit;
    }
}

/// Returns where the run of unescaped characters from `at` ends, which is at a quote, a backslash, a control character or
/// the end of the text. Also returns whether the run may contain characters beyond ASCII. Examines eight bytes at a time.
#[inline]
pub(crate) fn find_end_of_unescaped_text(bytes: &[u8], mut at: usize) -> (usize, bool) {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    let stop_bits = |word: u64| {
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        (quote.wrapping_sub(ONES) & !quote
            | slash.wrapping_sub(ONES) & !slash
            | word.wrapping_sub(ONES * 0x20) & !word)
            & HIGH_BITS
    };
    let mut non_ascii = 0;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let stop = stop_bits(word);
        non_ascii |= word & HIGH_BITS;
        if stop != 0 {
            return (at + stop.trailing_zeros() as usize / 8, non_ascii != 0);
        }
        at += 8;
    }
    // The remaining bytes are read as the end of the last eight bytes. Bytes before them are shifted out, and spaces, which
    // do not end a run, are shifted in after them.
    let remaining = bytes.len().saturating_sub(at);
    if let (1..8, Some(chunk)) = (remaining, bytes.last_chunk::<8>()) {
        let consumed_bits = 64 - 8 * remaining;
        let word = u64::from_le_bytes(*chunk) >> consumed_bits | (ONES * 0x20) << (8 * remaining);
        let found = stop_bits(word).trailing_zeros() as usize / 8;
        return (at + found.min(remaining), (non_ascii | word & HIGH_BITS) != 0);
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        non_ascii |= u64::from(byte & 0x80);
        at += 1;
    }
    (at, non_ascii != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_kind(text: &str) -> SyntaxErrorKind {
        Tape::default().read(text).expect_err(text).kind
    }

    #[test]
    fn only_rfc_8259_is_accepted() {
        for text in ["", "  ", "{", "[1,", "\"a", "{\"a\"", "{\"a\":", "tru", "-"] {
            assert_eq!(error_kind(text), SyntaxErrorKind::UnexpectedEnd, "{text}");
        }
        for text in ["01", "1.", "1e", "-x", "1.e1"] {
            assert!(
                matches!(error_kind(text), SyntaxErrorKind::InvalidNumber | SyntaxErrorKind::UnexpectedEnd),
                "{text}"
            );
        }
        for text in ["{a:1}", "{'a':1}", "[1,]", "{\"a\":1,}", "NaN", "Infinity", "+1", "/*c*/1", "\u{feff}1"]
        {
            assert!(
                matches!(error_kind(text), SyntaxErrorKind::Expected(_)),
                "{text}: {:?}",
                error_kind(text)
            );
        }
        assert_eq!(error_kind("\"a\u{1}\""), SyntaxErrorKind::ControlCharacter);
        assert_eq!(error_kind(r#""\x""#), SyntaxErrorKind::InvalidEscape);
        assert_eq!(error_kind(r#""\u12g4""#), SyntaxErrorKind::InvalidEscape);
        assert_eq!(error_kind("1 2"), SyntaxErrorKind::TrailingData);
    }

    #[test]
    fn nesting_depth_is_limited_and_counted() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let mut tape = Tape::default();
        assert_eq!(tape.read(&deep(65)).expect("64 arrays inside one").notes().depth, 64);
        assert_eq!(error_kind(&deep(66)), SyntaxErrorKind::TooDeep);
        assert_eq!(error_kind(&"[".repeat(100_000)), SyntaxErrorKind::TooDeep);
    }

    #[test]
    fn questionable_input_is_noted() {
        let notes = |text: &str| *Tape::default().read(text).expect(text).notes();
        assert!(notes(r#"["\ud800"]"#).has_lone_surrogate);
        assert!(!notes(r#"["\ud83d\ude00"]"#).has_lone_surrogate);
        assert!(notes("9007199254740993").has_unsafe_integer);
        assert!(!notes("9007199254740992").has_unsafe_integer);
        assert!(notes("-9007199254740993").has_unsafe_integer);
        assert!(notes("123456789012345678901234567890").has_unsafe_integer);
        assert!(notes("1e400").has_out_of_range_number && !notes("1e300").has_out_of_range_number);
        assert!(notes(r#"{"o":{"a":1,"a":2}}"#).may_have_duplicate_key);
        assert!(notes(r#"{"o":{"a":1,"\u0061":2}}"#).may_have_duplicate_key);
    }

    #[test]
    fn parsed_values_can_be_looked_up() {
        let mut tape = Tape::default();
        let doc = tape.read(r#" {"a":[1,{"b":"x\ty"}],"c":true,"d":-1.5e3,"a":null} "#).unwrap();
        let root = doc.root();
        assert_eq!(root.members().count(), 4);
        assert_eq!(root.member("a").unwrap().kind(), JsonKind::Null);
        let first = root.members().next().unwrap().1;
        assert_eq!(first.source(), r#"[1,{"b":"x\ty"}]"#);
        let items: Vec<_> = first.items().collect();
        assert_eq!(items[0].as_number().unwrap().as_i64(), Some(1));
        assert_eq!(items[1].member("b").unwrap().text().unwrap(), "x\ty");
        assert_eq!(root.member("c").unwrap().as_bool(), Some(true));
        assert!((root.member("d").unwrap().as_number().unwrap().as_f64() + 1500.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_string_may_end_at_any_offset_in_a_word() {
        for before in 0..20 {
            for stop in ["\"", "\\n\"", "é\""] {
                let text = format!("\"{}{stop}", "x".repeat(before));
                let mut tape = Tape::default();
                let doc = tape.read(&text).unwrap();
                assert_eq!(doc.root().source(), text);
            }
        }
    }

    #[test]
    fn a_plain_run_ends_at_the_first_special_byte() {
        for length in 0..27 {
            for (at, byte) in
                (0..length).flat_map(|at| [(at, b'"'), (at, b'\\'), (at, 0x1f), (at, 0), (at, 0xc3)])
            {
                let mut bytes = vec![b'!'; length];
                bytes[at] = byte;
                for from in 0..=length {
                    let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
                    let expected = bytes[from..].iter().position(stops).map_or(length, |found| from + found);
                    let (end, non_ascii) = find_end_of_unescaped_text(&bytes, from);
                    assert_eq!(end, expected, "{bytes:?} from {from}");
                    assert!(non_ascii || bytes[from..end].is_ascii(), "{bytes:?} from {from}");
                }
            }
        }
    }
}
