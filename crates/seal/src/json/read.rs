//! The reader: text in, tape out.

use thiserror::Error;

use super::node::{BIG, Doc, ESCAPED, FLOAT, HUGE, Kind, LONE, Marks, Node, TRUE, WIDE};
use super::text::{unescape, unit};

/// Containers may be nested this deep and no deeper; what lies below is refused unread.
pub const MAX_DEPTH: u32 = 64;

/// Why a text is not JSON, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem} at byte {}", .at + 1)]
pub struct SyntaxError {
    /// The byte at which reading stopped, counted from 0.
    pub at: usize,
    /// What stood there.
    pub problem: Problem,
}

/// What can be wrong with a text that should be JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text ended inside a value.
    #[error("the text ends inside a value")]
    Ended,
    /// Something else should have stood here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A control character stands bare inside a string.
    #[error("a control character must be escaped inside a string")]
    Control,
    /// A backslash is followed by no escape that JSON knows.
    #[error("not an escape that JSON knows")]
    Escape,
    /// A number that JSON does not know (`01`, `1.`, `+1`, `NaN`).
    #[error("not a number that JSON knows")]
    Number,
    /// More than [`MAX_DEPTH`] containers inside each other.
    #[error("nested more than {} deep", MAX_DEPTH)]
    Depth,
    /// A second value follows the first.
    #[error("a second value follows the first")]
    Trailing,
    /// Longer than a tape can point into (4 GiB).
    #[error("longer than 4 GiB")]
    Length,
}

/// A reader and its memory, to be used again for the next text.
#[derive(Debug, Default)]
pub struct Tape {
    nodes: Vec<Node>,
}

impl Tape {
    /// Reads one whole text; white space around it is allowed, anything else is not.
    pub fn read<'d>(&'d mut self, text: &'d str) -> Result<Doc<'d>, SyntaxError> {
        self.nodes.clear();
        if u32::try_from(text.len()).is_err() {
            return Err(SyntaxError { at: 0, problem: Problem::Length });
        }
        let mut reader = Reader { text, at: 0, nodes: &mut self.nodes, marks: Marks::default() };
        reader.space();
        reader.value(0)?;
        reader.space();
        if reader.at < text.len() {
            return Err(reader.fail(Problem::Trailing));
        }
        let marks = reader.marks;
        Ok(Doc { text, nodes: &self.nodes, marks })
    }
}

pub(super) struct Reader<'r> {
    pub(super) text: &'r str,
    pub(super) at: usize,
    pub(super) nodes: &'r mut Vec<Node>,
    pub(super) marks: Marks,
}

#[allow(clippy::cast_possible_truncation, reason = "the text is shorter than 4 GiB, and so is the tape")]
impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn fail(&self, problem: Problem) -> SyntaxError {
        let problem =
            if self.at >= self.text.len() && problem != Problem::Depth { Problem::Ended } else { problem };
        SyntaxError { at: self.at, problem }
    }

    #[inline]
    pub(super) fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize, flags: u8) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: end as u32, next, kind, flags });
    }

    pub(super) fn value(&mut self, depth: u32) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Kind::Bool, TRUE),
            Some(b'f') => self.word("false", Kind::Bool, 0),
            Some(b'n') => self.word("null", Kind::Null, 0),
            _ => Err(self.fail(Problem::Expected("a JSON value"))),
        }
    }

    fn word(&mut self, word: &'static str, kind: Kind, flags: u8) -> Result<(), SyntaxError> {
        let rest = &self.text.as_bytes()[self.at..];
        if !rest.starts_with(word.as_bytes()) {
            if word.as_bytes().starts_with(rest) {
                self.at = self.text.len();
            }
            return Err(self.fail(Problem::Expected("a JSON value")));
        }
        self.push(kind, self.at, self.at + word.len(), flags);
        self.at += word.len();
        Ok(())
    }

    /// Opens a container; returns its place on the tape.
    fn open(&mut self, kind: Kind, depth: u32) -> Result<usize, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.fail(Problem::Depth));
        }
        self.marks.depth = self.marks.depth.max(depth);
        let place = self.nodes.len();
        self.push(kind, self.at, self.at, 0);
        self.at += 1;
        self.space();
        Ok(place)
    }

    fn close(&mut self, place: usize) {
        self.at += 1;
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[place];
        node.end = self.at as u32;
        node.next = next;
    }

    fn array(&mut self, depth: u32) -> Result<(), SyntaxError> {
        let place = self.open(Kind::Array, depth)?;
        if self.peek() == Some(b']') {
            self.close(place);
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.fail(Problem::Expected("a comma or ]"))),
            }
            self.space();
        }
        self.close(place);
        Ok(())
    }

    fn object(&mut self, depth: u32) -> Result<(), SyntaxError> {
        let place = self.open(Kind::Object, depth)?;
        if self.peek() == Some(b'}') {
            self.close(place);
            return Ok(());
        }
        let mut seen = 0_u64;
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.fail(Problem::Expected("a key in double quotes")));
            }
            let key = self.nodes.len();
            self.string()?;
            note_key(self.text, self.nodes, key, depth, &mut seen, &mut self.marks);
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.fail(Problem::Expected("a colon")));
            }
            self.at += 1;
            self.space();
            self.value(depth + 1)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.fail(Problem::Expected("a comma or }"))),
            }
            self.space();
        }
        self.close(place);
        Ok(())
    }

    #[inline]
    fn string(&mut self) -> Result<(), SyntaxError> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        let start = self.at;
        let mut flags = 0;
        loop {
            let (found, wide) = plain_run(bytes, self.at);
            self.at = found;
            if wide {
                flags |= WIDE;
            }
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    flags |= ESCAPED;
                    flags |= self.escape()?;
                }
                Some(_) => return Err(self.fail(Problem::Control)),
                None => return Err(self.fail(Problem::Ended)),
            }
        }
        self.push(Kind::Text, start, self.at, flags);
        self.marks.lone_surrogate |= flags & LONE != 0;
        self.at += 1;
        Ok(())
    }

    /// Steps over one escape; returns [`LONE`] if it is half of a surrogate pair.
    fn escape(&mut self) -> Result<u8, SyntaxError> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(0)
            }
            Some(b'u') => {
                let first = unit(self.text, self.at + 1).ok_or_else(|| self.fail(Problem::Escape))?;
                self.at += 5;
                if !(0xD800..0xE000).contains(&first) {
                    return Ok(0);
                }
                if first < 0xDC00
                    && self.text.as_bytes().get(self.at..self.at + 2) == Some(b"\\u".as_slice())
                    && let Some(0xDC00..0xE000) = unit(self.text, self.at + 2)
                {
                    self.at += 6;
                    return Ok(0);
                }
                Ok(LONE)
            }
            _ => Err(self.fail(Problem::Escape)),
        }
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let integer = self.digits()?;
        if integer > 1 && self.text.as_bytes()[self.at - integer] == b'0' {
            return Err(self.fail(Problem::Number));
        }
        let mut flags = 0;
        let mut exponent = false;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
            flags |= FLOAT;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
            flags |= FLOAT;
            exponent = true;
        }
        if integer > 15 || exponent {
            let text = &self.text[start..self.at];
            if flags == 0 && text.trim_start_matches('-').parse::<u64>().is_ok_and(|n| n <= 1 << 53) {
                // Long, but still exact in a double.
            } else if flags == 0 {
                flags |= BIG;
                self.marks.big_integer = true;
            }
            if text.parse::<f64>().is_ok_and(f64::is_infinite) {
                flags |= HUGE;
                self.marks.huge_number = true;
            }
        }
        self.push(Kind::Number, start, self.at, flags);
        Ok(())
    }

    fn digits(&mut self) -> Result<usize, SyntaxError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.fail(Problem::Number));
        }
        Ok(self.at - start)
    }
}

/// Notes the outermost `type`, and a key inside that may stand twice. `seen` holds a bit for a sketch of each key of the
/// object; keys with escapes always need a closer look, because `"a"` and `"\u0061"` are the same.
#[allow(clippy::cast_possible_truncation, reason = "the text is shorter than 4 GiB, and so is the tape")]
#[inline]
pub(super) fn note_key(
    text: &str,
    nodes: &[Node],
    key: usize,
    depth: u32,
    seen: &mut u64,
    marks: &mut Marks,
) {
    let node = nodes[key];
    let bytes = &text.as_bytes()[node.start as usize..node.end as usize];
    if node.flags & ESCAPED != 0 {
        marks.maybe_doubled_key = true;
        if depth == 0 && unescape(&text[node.start as usize..node.end as usize]) == "type" {
            marks.type_at = key as u32 + 1;
        }
    } else if depth == 0 {
        if bytes == b"type" {
            marks.type_at = key as u32 + 1;
        }
    } else {
        let sample =
            bytes.first().map_or(0, |first| u32::from(*first) ^ u32::from(bytes[bytes.len() / 2]) << 2);
        let sketch = 1 << (sample.wrapping_add(bytes.len() as u32) & 63);
        marks.maybe_doubled_key |= *seen & sketch != 0;
        *seen |= sketch;
    }
}

/// Where the run of plain characters ends that starts at `at`: at a quote, a backslash, a control character or the
/// end. Eight bytes at a time; also says whether anything beyond ASCII may have been passed.
#[inline]
pub(crate) fn plain_run(bytes: &[u8], mut at: usize) -> (usize, bool) {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let stops = |word: u64| {
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        (quote.wrapping_sub(ONES) & !quote
            | slash.wrapping_sub(ONES) & !slash
            | word.wrapping_sub(ONES * 0x20) & !word)
            & HIGH
    };
    let mut wide = 0;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*eight);
        let stop = stops(word);
        wide |= word & HIGH;
        if stop != 0 {
            return (at + stop.trailing_zeros() as usize / 8, wide != 0);
        }
        at += 8;
    }
    // The last few are the end of the last eight; in front of them blanks are shifted in, which stop nothing.
    let left = bytes.len().saturating_sub(at);
    if let (1..8, Some(eight)) = (left, bytes.last_chunk::<8>()) {
        let known = 64 - 8 * left;
        let word = u64::from_le_bytes(*eight) >> known | (ONES * 0x20) << (8 * left);
        let found = stops(word).trailing_zeros() as usize / 8;
        return (at + found.min(left), (wide | word & HIGH) != 0);
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        wide |= u64::from(byte & 0x80);
        at += 1;
    }
    (at, wide != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Problem {
        Tape::default().read(text).expect_err(text).problem
    }

    #[test]
    fn only_rfc_8259_is_json() {
        for text in ["", "  ", "{", "[1,", "\"a", "{\"a\"", "{\"a\":", "tru", "-"] {
            assert_eq!(problem(text), Problem::Ended, "{text}");
        }
        for text in ["01", "1.", "1e", "-x", "1.e1"] {
            assert!(matches!(problem(text), Problem::Number | Problem::Ended), "{text}");
        }
        for text in ["{a:1}", "{'a':1}", "[1,]", "{\"a\":1,}", "NaN", "Infinity", "+1", "/*c*/1", "\u{feff}1"]
        {
            assert!(matches!(problem(text), Problem::Expected(_)), "{text}: {:?}", problem(text));
        }
        assert_eq!(problem("\"a\u{1}\""), Problem::Control);
        assert_eq!(problem(r#""\x""#), Problem::Escape);
        assert_eq!(problem(r#""\u12g4""#), Problem::Escape);
        assert_eq!(problem("1 2"), Problem::Trailing);
    }

    #[test]
    fn depth_is_bounded_and_counted() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let mut tape = Tape::default();
        assert_eq!(tape.read(&deep(65)).expect("64 inside one").marks().depth, 64);
        assert_eq!(problem(&deep(66)), Problem::Depth);
        assert_eq!(problem(&"[".repeat(100_000)), Problem::Depth);
    }

    #[test]
    fn what_is_unwise_is_noted() {
        let marks = |text: &str| *Tape::default().read(text).expect(text).marks();
        assert!(marks(r#"["\ud800"]"#).lone_surrogate);
        assert!(!marks(r#"["\ud83d\ude00"]"#).lone_surrogate);
        assert!(marks("9007199254740993").big_integer);
        assert!(!marks("9007199254740992").big_integer);
        assert!(marks("-9007199254740993").big_integer);
        assert!(marks("123456789012345678901234567890").big_integer);
        assert!(marks("1e400").huge_number && !marks("1e300").huge_number);
        assert!(marks(r#"{"o":{"a":1,"a":2}}"#).maybe_doubled_key);
        assert!(marks(r#"{"o":{"a":1,"\u0061":2}}"#).maybe_doubled_key);
    }

    #[test]
    fn values_are_found_again() {
        let mut tape = Tape::default();
        let doc = tape.read(r#" {"a":[1,{"b":"x\ty"}],"c":true,"d":-1.5e3,"a":null} "#).unwrap();
        let root = doc.root();
        assert_eq!(root.members().count(), 4);
        assert_eq!(root.member("a").unwrap().kind(), Kind::Null);
        let first = root.members().next().unwrap().1;
        assert_eq!(first.source(), r#"[1,{"b":"x\ty"}]"#);
        let items: Vec<_> = first.items().collect();
        assert_eq!(items[0].number().unwrap().as_i64(), Some(1));
        assert_eq!(items[1].member("b").unwrap().text().unwrap(), "x\ty");
        assert_eq!(root.member("c").unwrap().boolean(), Some(true));
        assert!((root.member("d").unwrap().number().unwrap().as_f64() + 1500.0).abs() < f64::EPSILON);
    }

    #[test]
    fn runs_end_at_every_place_of_a_word() {
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
    fn a_run_ends_at_the_first_that_is_not_plain() {
        for length in 0..27 {
            for (at, mark) in
                (0..length).flat_map(|at| [(at, b'"'), (at, b'\\'), (at, 0x1f), (at, 0), (at, 0xc3)])
            {
                let mut bytes = vec![b'!'; length];
                bytes[at] = mark;
                for from in 0..=length {
                    let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
                    let expected = bytes[from..].iter().position(stops).map_or(length, |found| from + found);
                    let (end, wide) = plain_run(&bytes, from);
                    assert_eq!(end, expected, "{bytes:?} from {from}");
                    assert!(wide || bytes[from..end].is_ascii(), "{bytes:?} from {from}");
                }
            }
        }
    }
}
