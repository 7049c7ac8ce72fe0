//! A writer that knows what it has written: text and tape come out together, so that nobody has to read what was made here.

use std::fmt::Write;

use super::node::{BIG, Doc, ESCAPED, HUGE, Kind, LONE, Marks, Node, TRUE, WIDE};
use super::read::{MAX_DEPTH, Problem, Reader, SyntaxError, Tape, note_key};
use super::write::{quote_short, write_number};
use super::{Value, plain_run};

/// A text that has been read, and is kept with its tape.
#[derive(Clone, Debug)]
pub struct Kept {
    text: Box<str>,
    nodes: Box<[Node]>,
    marks: Marks,
}

impl Kept {
    /// Reads a text, to be looked at more than once.
    ///
    /// ```
    /// let kept = seal::json::Kept::read(r#"{"agent_id":"bank"}"#).unwrap();
    /// assert_eq!(kept.doc().root().member("agent_id").unwrap().text().unwrap(), "bank");
    /// ```
    pub fn read(text: &str) -> Result<Self, SyntaxError> {
        Ok(Self::of(&Tape::default().read(text)?))
    }

    /// Keeps a document that has been read, or written with its tape.
    pub fn of(doc: &Doc<'_>) -> Self {
        Self { text: doc.text.into(), nodes: doc.nodes.into(), marks: doc.marks }
    }

    /// What was read.
    pub fn doc(&self) -> Doc<'_> {
        Doc { text: &self.text, nodes: &self.nodes, marks: self.marks }
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.text
    }
}

/// Estimated bytes of text per node, for preallocation.
const BYTES_PER_NODE: usize = 16;

/// Writes one JSON text and its tape. Commas come by themselves; brackets are the caller's to match.
///
/// [`Scribe::doc`] is the same as if a [`Tape`] had read [`Scribe::source`], at a fraction of the cost: what is copied from
/// another document brings its part of the tape with it.
///
/// ```
/// use seal::json::{Scribe, Tape};
/// let mut tape = Tape::default();
/// let said = tape.read(r#"{"tool": "fetch"}"#).unwrap();
/// let mut scribe = Scribe::default();
/// scribe.open_object();
/// scribe.plain("type", "call");
/// scribe.key("tool");
/// scribe.copy(&said.root().member("tool").unwrap());
/// scribe.close_object();
/// let made = scribe.doc().unwrap();
/// assert_eq!(made.source(), r#"{"type":"call","tool":"fetch"}"#);
/// assert_eq!(made.type_value().unwrap().text().unwrap(), "call");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scribe {
    out: String,
    nodes: Vec<Node>,
    marks: Marks,
    /// The containers that are open: where each stands on the tape, and a sketch of its keys.
    open: Vec<(usize, u64)>,
    comma: bool,
    /// Something that was to be written as it is was no JSON.
    broken: Option<SyntaxError>,
}

#[allow(clippy::cast_possible_truncation, reason = "`doc` refuses what is longer than 4 GiB")]
impl Scribe {
    /// Creates a writer with room for so many bytes of text.
    pub fn with_capacity(bytes: usize) -> Self {
        let (out, nodes) = (String::with_capacity(bytes), Vec::with_capacity(bytes / BYTES_PER_NODE));
        Self { out, nodes, ..Self::default() }
    }

    /// Begins anew, in the room of what was written before.
    pub fn clear(&mut self) {
        self.out.clear();
        self.nodes.clear();
        self.open.clear();
        (self.marks, self.comma, self.broken) = (Marks::default(), false, None);
    }

    /// The text so far.
    pub fn source(&self) -> &str {
        &self.out
    }

    /// Takes the text out, and begins anew in the room of one that is not needed any more, or in as much room.
    pub fn take(&mut self, room: Option<String>) -> String {
        let room = room.unwrap_or_else(|| String::with_capacity(self.out.len()));
        let text = std::mem::replace(&mut self.out, room);
        self.clear();
        text
    }

    /// What was written, as if it had been read. It is an error if a `Tape` would not have read it.
    pub fn doc(&self) -> Result<Doc<'_>, SyntaxError> {
        let at = self.out.len();
        let problem = match &self.broken {
            Some(broken) => return Err(broken.clone()),
            None if u32::try_from(at).is_err() => Problem::Length,
            None if self.marks.depth > MAX_DEPTH => Problem::Depth,
            None if self.nodes.is_empty() || !self.open.is_empty() => Problem::Ended,
            None => return Ok(Doc { text: &self.out, nodes: &self.nodes, marks: self.marks }),
        };
        Err(SyntaxError { at, problem })
    }

    /// Whether a `Tape` that reads the text comes to the same. Only a string that may have characters beyond ASCII is now
    /// and then one by one and not by the other.
    pub fn is_as_read(&self) -> bool {
        let mut tape = Tape::default();
        match (tape.read(&self.out), self.doc()) {
            (Ok(read), Ok(made)) => {
                let same = |(read, made): (&Node, &Node)| {
                    let text = self.out.get(made.start as usize..made.end as usize);
                    Node { flags: read.flags & !WIDE, ..*read } == Node { flags: made.flags & !WIDE, ..*made }
                        && (made.flags & WIDE != 0
                            || made.kind != Kind::Text
                            || text.is_some_and(str::is_ascii))
                };
                read.marks == made.marks
                    && read.nodes.len() == made.nodes.len()
                    && read.nodes.iter().zip(made.nodes).all(same)
            }
            (read, made) => read.is_err() == made.is_err(),
        }
    }

    /// Puts blanks in the place of line ends, which mean nothing between the parts of JSON and are escaped inside strings.
    pub fn on_one_line(&mut self) {
        // Without a way out in the middle the compiler looks at many bytes at once.
        let ends = |byte: u8| u8::from(byte == b'\n') | u8::from(byte == b'\r');
        if self.out.bytes().fold(0, |broken, byte| broken | ends(byte)) != 0 {
            self.out = self.out.replace(['\n', '\r'], " ");
        }
    }

    #[inline]
    fn separate(&mut self) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = true;
    }

    #[inline]
    fn push(&mut self, kind: Kind, start: usize, end: usize, flags: u8) {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { start: start as u32, end: end as u32, next, kind, flags });
    }

    fn open(&mut self, kind: Kind, bracket: char) {
        self.separate();
        let depth = self.open.len() as u32;
        self.marks.depth = self.marks.depth.max(depth);
        self.open.push((self.nodes.len(), 0));
        self.push(kind, self.out.len(), self.out.len(), 0);
        self.out.push(bracket);
        self.comma = false;
    }

    fn close(&mut self, bracket: char) {
        self.out.push(bracket);
        self.comma = true;
        let (end, next) = (self.out.len() as u32, self.nodes.len() as u32);
        if let Some((place, _)) = self.open.pop() {
            let node = &mut self.nodes[place];
            (node.end, node.next) = (end, next);
        }
    }

    /// Opens an object.
    pub fn open_object(&mut self) {
        self.open(Kind::Object, '{');
    }

    /// Closes an object.
    pub fn close_object(&mut self) {
        self.close('}');
    }

    /// Opens an array.
    pub fn open_array(&mut self) {
        self.open(Kind::Array, '[');
    }

    /// Closes an array.
    pub fn close_array(&mut self) {
        self.close(']');
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

    /// A member's name; its value comes next.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.separate();
        self.quote(name);
        self.note();
        self.out.push(':');
        self.comma = false;
        self
    }

    /// A member's name that is printable ASCII with nothing in it that would have to be escaped; its value comes next.
    pub fn plain_key(&mut self, name: &str) {
        self.separate();
        self.name(name, 0);
    }

    fn name(&mut self, name: &str, flags: u8) {
        self.out.push('"');
        let start = self.out.len();
        self.out.push_str(name);
        self.push(Kind::Text, start, start + name.len(), flags);
        self.note();
        self.out.push_str("\":");
        self.comma = false;
    }

    /// The name of a member of another document.
    pub fn copy_key(&mut self, key: &Value<'_>) {
        let Some(name) = key.plain_text() else {
            self.key(&key.text().unwrap_or_default());
            return;
        };
        self.separate();
        self.name(name, key.node().flags);
    }

    /// A string.
    pub fn text(&mut self, text: &str) {
        self.separate();
        self.quote(text);
    }

    /// A boolean.
    pub fn boolean(&mut self, value: bool) {
        self.separate();
        let start = self.out.len();
        self.out.push_str(if value { "true" } else { "false" });
        self.push(Kind::Bool, start, self.out.len(), if value { TRUE } else { 0 });
    }

    /// An integer.
    pub fn integer(&mut self, value: i64) {
        self.separate();
        let start = self.out.len();
        let _ = write!(self.out, "{value}");
        let is_big = value.unsigned_abs() > 1 << 53;
        self.marks.big_integer |= is_big;
        self.push(Kind::Number, start, self.out.len(), if is_big { BIG } else { 0 });
    }

    /// A number, written as [`Writer::number`](super::Writer::number) does.
    pub fn number(&mut self, value: f64) {
        let mut text = String::new();
        write_number(&mut text, value);
        self.raw(&text);
    }

    /// A member whose name and text are printable ASCII, with nothing in them that would have to be escaped.
    pub fn plain(&mut self, name: &str, text: &str) {
        self.plain_key(name);
        self.out.push('"');
        let start = self.out.len();
        self.out.push_str(text);
        self.out.push('"');
        self.push(Kind::Text, start, start + text.len(), 0);
        self.comma = true;
    }

    /// A value of a document, as it was written there.
    pub fn copy(&mut self, value: &Value<'_>) {
        self.separate();
        let (source, nodes) = (value.source(), value.tape());
        let Some(first) = nodes.first() else { return };
        let quote = u32::from(first.kind == Kind::Text);
        let place = self.nodes.len();
        let bytes = (self.out.len() as u32).wrapping_sub(first.start - quote);
        let along = (place as u32).wrapping_sub(value.index());
        self.out.push_str(source);
        self.nodes.extend(nodes.iter().map(|node| Node {
            start: node.start.wrapping_add(bytes),
            end: node.end.wrapping_add(bytes),
            next: node.next.wrapping_add(along),
            ..*node
        }));
        self.look(place, self.open.len() as u32);
    }

    /// A value that is JSON already. It is read.
    pub fn raw(&mut self, json: &str) {
        self.separate();
        let (at, depth) = (self.out.len(), self.open.len() as u32);
        self.out.push_str(json);
        let mut reader = Reader { text: &self.out, at, nodes: &mut self.nodes, marks: self.marks };
        reader.space();
        let read = reader.value(depth).and_then(|()| {
            reader.space();
            if reader.at == self.out.len() { Ok(()) } else { Err(reader.fail(Problem::Trailing)) }
        });
        self.marks = reader.marks;
        if let Err(error) = read {
            self.fail(error);
        }
    }

    /// Notes that something that belongs here is no JSON: [`Self::doc`] returns this error.
    pub fn fail(&mut self, error: SyntaxError) {
        self.broken.get_or_insert(error);
    }

    /// Notes what a reader would have of a value that was copied.
    fn look(&mut self, place: usize, depth: u32) {
        let node = self.nodes[place];
        match node.kind {
            Kind::Object => {
                self.marks.depth = self.marks.depth.max(depth);
                let (mut at, mut seen) = (place + 1, 0);
                while at < node.next as usize {
                    note_key(&self.out, &self.nodes, at, depth, &mut seen, &mut self.marks);
                    self.marks.lone_surrogate |= self.nodes[at].flags & LONE != 0;
                    self.look(at + 1, depth + 1);
                    at = self.nodes[at + 1].next as usize;
                }
            }
            Kind::Array => {
                self.marks.depth = self.marks.depth.max(depth);
                let mut at = place + 1;
                while at < node.next as usize {
                    self.look(at, depth + 1);
                    at = self.nodes[at].next as usize;
                }
            }
            Kind::Text => self.marks.lone_surrogate |= node.flags & LONE != 0,
            Kind::Number => {
                self.marks.big_integer |= node.flags & BIG != 0;
                self.marks.huge_number |= node.flags & HUGE != 0;
            }
            Kind::Null | Kind::Bool => {}
        }
    }

    fn quote(&mut self, text: &str) {
        let start = self.out.len() + 1;
        let (plain, wide) = plain_run(text.as_bytes(), 0);
        let mut flags = if wide { WIDE } else { 0 };
        if plain == text.len() {
            self.out.push('"');
            self.out.push_str(text);
            self.out.push('"');
        } else {
            quote_short(&mut self.out, text);
            flags = ESCAPED | if text.is_ascii() { 0 } else { WIDE };
        }
        self.push(Kind::Text, start, self.out.len() - 1, flags);
    }

    #[inline]
    fn note(&mut self) {
        let Some((key, node)) = self.nodes.len().checked_sub(1).zip(self.nodes.last()) else { return };
        let depth = self.open.len() as u32;
        // Most names stand in the outermost object, and of those only one length means anything.
        if depth == 1 && node.flags & ESCAPED == 0 && node.end - node.start != 4 {
            return;
        }
        if let Some((_, seen)) = self.open.last_mut() {
            note_key(&self.out, &self.nodes, key, depth - 1, seen, &mut self.marks);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// JSON with everything that a reader notes.
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
        /// What is written, copied or taken over as it is has the tape that a reader would make of it.
        #[test]
        fn it_is_as_if_it_had_been_read(values in proptest::collection::vec((json(), "[a-bé\"\\\\\n]{0,9}"), 1..6), numbers in 0_usize..7) {
            let mut scribe = Scribe::default();
            for again in 0..2 {
                scribe.clear();
                scribe.open_object();
                scribe.plain("type", "x");
                scribe.plain_key("four");
                scribe.text(r"\");
                for number in [0, -7, 1 << 53, (1 << 53) + 1, i64::MIN, i64::MAX].into_iter().take(numbers) {
                    scribe.plain_key("number");
                    scribe.integer(number);
                    scribe.plain_key("even");
                    scribe.boolean(number % 2 == 0);
                }
                for (at, (value, name)) in values.iter().enumerate() {
                    let kept = Kept::read(value).unwrap();
                    scribe.key(name);
                    match (at + again) % 3 {
                        0 => scribe.copy(&kept.doc().root()),
                        1 => scribe.raw(kept.source()),
                        _ => {
                            scribe.open_array();
                            scribe.text(name);
                            scribe.open_object();
                            scribe.plain("inner", "plain");
                            for (key, value) in kept.doc().root().members() {
                                scribe.copy_key(&key);
                                scribe.copy(&value);
                            }
                            scribe.close_object();
                            scribe.close_array();
                        }
                    }
                }
                scribe.close_object();
                prop_assert!(scribe.is_as_read(), "{}", scribe.source());
                scribe.on_one_line();
                prop_assert!(!scribe.source().contains(['\n', '\r']) && scribe.is_as_read(), "{}", scribe.source());
            }
        }
    }

    #[test]
    fn what_could_not_be_read_is_refused() {
        let mut scribe = Scribe::default();
        assert!(scribe.doc().is_err());
        scribe.open_object();
        assert!(scribe.doc().is_err());
        scribe.key("a");
        scribe.raw("{");
        scribe.close_object();
        assert!(scribe.doc().is_err());
        scribe.clear();
        scribe.raw("1 2");
        assert!(matches!(scribe.doc(), Err(SyntaxError { problem: Problem::Trailing, .. })));
        let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
        let kept = Kept::read(&deep).unwrap();
        for (around, fits) in [(1, true), (2, false)] {
            scribe.clear();
            (0..around).for_each(|_| scribe.open_array());
            scribe.copy(&kept.doc().root());
            (0..around).for_each(|_| scribe.close_array());
            assert_eq!(scribe.doc().is_ok(), fits);
            assert!(scribe.is_as_read());
        }
    }
}
