//! What has been read: nodes on a tape, and the values that look at them.

use std::borrow::Cow;

use super::{Number, text::unescape};

/// What a JSON value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    Text,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

impl Kind {
    /// The word for a sentence: "a string", "an array".
    #[inline]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::Text => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

/// One value or key on the tape; `next` is the node after everything inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) next: u32,
    pub(super) kind: Kind,
    pub(super) flags: u8,
}

impl Node {
    /// Whether its bytes are these.
    #[inline]
    pub(super) fn is_in(&self, text: &str, bytes: &[u8]) -> bool {
        (self.end - self.start) as usize == bytes.len()
            && &text.as_bytes()[self.start as usize..self.end as usize] == bytes
    }
}

/// The string has escapes, so its text is not its bytes.
pub(super) const ESCAPED: u8 = 1;
/// The string may have characters beyond ASCII (never missed; now and then set without need).
pub(super) const WIDE: u8 = 2;
/// The string has half of a surrogate pair.
pub(super) const LONE: u8 = 4;
/// The number is written with a fraction or an exponent.
pub(super) const FLOAT: u8 = 8;
/// The number is an integer beyond ±2^53.
pub(super) const BIG: u8 = 16;
/// The number is beyond the range of a double.
pub(super) const HUGE: u8 = 32;
/// The boolean is `true`.
pub(super) const TRUE: u8 = 64;

/// What was noticed while reading, so that the rare case alone pays for a closer look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Containers inside the outermost one, at the deepest place.
    pub depth: u32,
    /// Some string has half of a surrogate pair.
    pub lone_surrogate: bool,
    /// Some integer is beyond ±2^53.
    pub big_integer: bool,
    /// Some number is beyond the range of a double.
    pub huge_number: bool,
    /// Where the value of the outermost object's `type` stands on the tape: who dispatches on it need not search. 0 if
    /// there is none; of several, the last.
    pub type_at: u32,
    /// Some object below the outermost may have a doubled key. Never missed, sometimes wrong.
    pub maybe_doubled_key: bool,
}

/// A text that has been read.
#[derive(Clone, Copy, Debug)]
pub struct Doc<'d> {
    pub(super) text: &'d str,
    pub(super) nodes: &'d [Node],
    pub(super) marks: Marks,
}

impl<'d> Doc<'d> {
    /// The outermost value.
    #[inline]
    pub fn root(&self) -> Value<'d> {
        Value { text: self.text, nodes: self.nodes, at: 0 }
    }

    /// What was noticed while reading.
    #[inline]
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// The text that was read, byte for byte.
    #[inline]
    pub fn source(&self) -> &'d str {
        self.text
    }

    /// The value of the outermost object's `type`.
    #[inline]
    pub fn type_value(&self) -> Option<Value<'d>> {
        (self.marks.type_at != 0).then(|| self.at(self.marks.type_at))
    }

    /// The value that stands there on the tape: an [`Value::index`] of this very document.
    #[inline]
    pub fn at(&self, at: u32) -> Value<'d> {
        Value { text: self.text, nodes: self.nodes, at }
    }
}

/// One value of a [`Doc`].
#[derive(Clone, Copy, Debug)]
pub struct Value<'d> {
    text: &'d str,
    nodes: &'d [Node],
    at: u32,
}

impl<'d> Value<'d> {
    #[inline]
    pub(super) fn node(&self) -> Node {
        self.nodes[self.at as usize]
    }

    /// The nodes of this value and of all that is in it.
    #[inline]
    pub(super) fn tape(&self) -> &'d [Node] {
        &self.nodes[self.at as usize..self.node().next as usize]
    }

    /// What this value is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.node().kind
    }

    /// Where it stands on the tape; [`Doc::at`] takes it back.
    #[inline]
    pub fn index(&self) -> u32 {
        self.at
    }

    /// The value as it was written, quotes and brackets included.
    #[inline]
    pub fn source(&self) -> &'d str {
        let node = self.node();
        let (start, end) = (node.start as usize, node.end as usize);
        match node.kind {
            Kind::Text => &self.text[(start - 1)..=end],
            _ => &self.text[start..end],
        }
    }

    /// The string, with its escapes undone; half a surrogate pair becomes U+FFFD.
    #[inline]
    pub fn text(&self) -> Option<Cow<'d, str>> {
        let node = self.node();
        if node.kind != Kind::Text {
            return None;
        }
        let written = &self.text[node.start as usize..node.end as usize];
        Some(if node.flags & ESCAPED == 0 { Cow::Borrowed(written) } else { Cow::Owned(unescape(written)) })
    }

    /// The string without its escapes undone, if there is none to undo.
    #[inline]
    pub fn plain_text(&self) -> Option<&'d str> {
        let node = self.node();
        (node.kind == Kind::Text && node.flags & ESCAPED == 0)
            .then(|| &self.text[node.start as usize..node.end as usize])
    }

    /// Whether it is that string.
    #[inline]
    pub fn is(&self, name: &str) -> bool {
        let node = &self.nodes[self.at as usize];
        if node.flags & ESCAPED != 0 {
            return self.text().is_some_and(|text| text == name);
        }
        node.is_in(self.text, name.as_bytes()) && node.kind == Kind::Text
    }

    /// The bytes of the string, if there is no escape to undo.
    #[inline]
    pub fn plain_bytes(&self) -> Option<&'d [u8]> {
        let node = self.node();
        (node.kind == Kind::Text && node.flags & ESCAPED == 0)
            .then(|| &self.text.as_bytes()[node.start as usize..node.end as usize])
    }

    /// Bytes of the string as written: never fewer than its characters.
    #[inline]
    pub fn written_len(&self) -> usize {
        let node = self.node();
        (node.end - node.start) as usize
    }

    /// Whether the string could hold anything but printable ASCII.
    #[inline]
    pub fn maybe_unusual(&self) -> bool {
        self.node().flags & (ESCAPED | WIDE) != 0
    }

    /// Whether the string has half of a surrogate pair.
    #[inline]
    pub fn has_lone_surrogate(&self) -> bool {
        self.node().flags & LONE != 0
    }

    /// The boolean.
    #[inline]
    pub fn boolean(&self) -> Option<bool> {
        let node = self.node();
        (node.kind == Kind::Bool).then_some(node.flags & TRUE != 0)
    }

    /// The number.
    #[inline]
    pub fn number(&self) -> Option<Number<'d>> {
        let node = self.node();
        (node.kind == Kind::Number).then(|| Number {
            text: &self.text[node.start as usize..node.end as usize],
            float: node.flags & FLOAT != 0,
            big: node.flags & BIG != 0,
            huge: node.flags & HUGE != 0,
        })
    }

    /// An array's items; of anything else, nothing.
    #[inline]
    pub fn items(&self) -> impl Iterator<Item = Value<'d>> + use<'d> {
        let is_array = self.kind() == Kind::Array;
        let end = self.node().next;
        let (text, nodes) = (self.text, self.nodes);
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (is_array && at < end).then(|| {
                let value = Value { text, nodes, at };
                at = nodes[at as usize].next;
                value
            })
        })
    }

    /// An object's members, key and value, as they were written; of anything else, nothing.
    #[inline]
    pub fn members(&self) -> impl Iterator<Item = (Value<'d>, Value<'d>)> + use<'d> {
        let is_object = self.kind() == Kind::Object;
        let end = self.node().next;
        let (text, nodes) = (self.text, self.nodes);
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (is_object && at < end).then(|| {
                let key = Value { text, nodes, at };
                let value = Value { text, nodes, at: at + 1 };
                at = nodes[at as usize + 1].next;
                (key, value)
            })
        })
    }

    /// The member of that name; of several, the last.
    #[inline]
    pub fn member(&self, name: &str) -> Option<Value<'d>> {
        self.members().filter(|(key, _)| key.is(name)).last().map(|(_, value)| value)
    }
}
