//! Parsed documents. A document is a tape of nodes, and values refer to the nodes.

use std::borrow::Cow;

use super::{JsonNumber, unescape::unescape};

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
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

impl JsonKind {
    /// Returns the kind with its article, for a sentence: "a string", "an array".
    #[inline]
    pub fn with_article(self) -> &'static str {
        match self {
            JsonKind::Null => "null",
            JsonKind::Bool => "a boolean",
            JsonKind::Number => "a number",
            JsonKind::Text => "a string",
            JsonKind::Array => "an array",
            JsonKind::Object => "an object",
        }
    }
}

/// One value or key on the tape. `start` and `end` are byte offsets in the text. For a string, they exclude the quotes.
/// `next` is the index of the first node after this node and everything inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TapeNode {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) next: u32,
    pub(super) kind: JsonKind,
    pub(super) flags: u8,
}

impl TapeNode {
    /// Returns whether the node's source equals `bytes`.
    #[inline]
    pub(super) fn equals(&self, text: &str, bytes: &[u8]) -> bool {
        (self.end - self.start) as usize == bytes.len()
            && &text.as_bytes()[self.start as usize..self.end as usize] == bytes
    }
}

/// The string has escapes, so its value differs from its source.
pub(super) const ESCAPED: u8 = 1;
/// The string may have characters beyond ASCII. The flag is always set if it has some, and sometimes even if it has none.
pub(super) const NON_ASCII: u8 = 2;
/// The string contains a lone surrogate.
pub(super) const LONE_SURROGATE: u8 = 4;
/// The number is written with a fraction or an exponent.
pub(super) const FLOAT: u8 = 8;
/// The number is an integer beyond ±2^53.
pub(super) const UNSAFE_INTEGER: u8 = 16;
/// The number is beyond the range of a double.
pub(super) const OUT_OF_RANGE: u8 = 32;
/// The boolean is `true`.
pub(super) const TRUE: u8 = 64;

/// Facts noted while parsing, so that the validation rules need to examine only documents with rare features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseNotes {
    /// The maximum nesting depth of containers. The outermost container has depth 0.
    pub depth: u32,
    /// Some string contains a lone surrogate.
    pub has_lone_surrogate: bool,
    /// Some integer is beyond ±2^53.
    pub has_unsafe_integer: bool,
    /// Some number is beyond the range of a double.
    pub has_out_of_range_number: bool,
    /// Tape index of the value of the outermost object's `type`, so that finding the message type needs no search. If there
    /// are several, the last one counts. 0 if there is none.
    pub type_index: u32,
    /// Some object inside the outermost one may have a duplicate key. Duplicates are never missed, but false alarms are
    /// possible. Duplicate keys of the outermost object are not noted.
    pub may_have_duplicate_key: bool,
}

/// A parsed JSON text.
#[derive(Clone, Copy, Debug)]
pub struct Doc<'d> {
    pub(super) text: &'d str,
    pub(super) nodes: &'d [TapeNode],
    pub(super) notes: ParseNotes,
}

impl<'d> Doc<'d> {
    /// Returns the outermost value.
    #[inline]
    pub fn root(&self) -> JsonValue<'d> {
        JsonValue { text: self.text, nodes: self.nodes, index: 0 }
    }

    /// Returns the facts noted while parsing.
    #[inline]
    pub fn notes(&self) -> &ParseNotes {
        &self.notes
    }

    /// Returns the parsed text, byte for byte.
    #[inline]
    pub fn source(&self) -> &'d str {
        self.text
    }

    /// Returns the value of the outermost object's `type`.
    #[inline]
    pub fn type_value(&self) -> Option<JsonValue<'d>> {
        (self.notes.type_index != 0).then(|| self.value_at(self.notes.type_index))
    }

    /// Returns the value at a tape index, which must be a [`JsonValue::index`] of this document.
    #[inline]
    pub fn value_at(&self, index: u32) -> JsonValue<'d> {
        JsonValue { text: self.text, nodes: self.nodes, index }
    }
}

/// One value in a [`Doc`].
#[derive(Clone, Copy, Debug)]
pub struct JsonValue<'d> {
    text: &'d str,
    nodes: &'d [TapeNode],
    index: u32,
}

impl<'d> JsonValue<'d> {
    #[inline]
    pub(super) fn node(&self) -> TapeNode {
        self.nodes[self.index as usize]
    }

    /// Returns the nodes of this value and of everything inside it.
    #[inline]
    pub(super) fn tape(&self) -> &'d [TapeNode] {
        &self.nodes[self.index as usize..self.node().next as usize]
    }

    /// Returns the value's type.
    #[inline]
    pub fn kind(&self) -> JsonKind {
        self.node().kind
    }

    /// Returns the value's index on the tape, for [`Doc::value_at`].
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the value's source text, including quotes and brackets.
    #[inline]
    pub fn source(&self) -> &'d str {
        let node = self.node();
        let (start, end) = (node.start as usize, node.end as usize);
        match node.kind {
            JsonKind::Text => &self.text[(start - 1)..=end],
            _ => &self.text[start..end],
        }
    }

    /// Returns the string with its escapes decoded, or `None` for other values. A lone surrogate becomes U+FFFD.
    #[inline]
    pub fn text(&self) -> Option<Cow<'d, str>> {
        let node = self.node();
        if node.kind != JsonKind::Text {
            return None;
        }
        let source = &self.text[node.start as usize..node.end as usize];
        Some(if node.flags & ESCAPED == 0 { Cow::Borrowed(source) } else { Cow::Owned(unescape(source)) })
    }

    /// Returns the string if it has no escapes.
    #[inline]
    pub fn plain_text(&self) -> Option<&'d str> {
        let node = self.node();
        (node.kind == JsonKind::Text && node.flags & ESCAPED == 0)
            .then(|| &self.text[node.start as usize..node.end as usize])
    }

    /// Returns whether the value is the string `expected`.
    #[inline]
    pub fn is_text(&self, expected: &str) -> bool {
        let node = &self.nodes[self.index as usize];
        if node.flags & ESCAPED != 0 {
            return self.text().is_some_and(|text| text == expected);
        }
        node.equals(self.text, expected.as_bytes()) && node.kind == JsonKind::Text
    }

    /// Returns the bytes of the string if it has no escapes.
    #[inline]
    pub fn plain_bytes(&self) -> Option<&'d [u8]> {
        let node = self.node();
        (node.kind == JsonKind::Text && node.flags & ESCAPED == 0)
            .then(|| &self.text.as_bytes()[node.start as usize..node.end as usize])
    }

    /// Returns the length of the string's source in bytes, which is never less than its number of characters.
    #[inline]
    pub fn raw_len(&self) -> usize {
        let node = self.node();
        (node.end - node.start) as usize
    }

    /// Returns whether the string may contain anything but printable ASCII and DEL.
    #[inline]
    pub fn may_exceed_printable_ascii(&self) -> bool {
        self.node().flags & (ESCAPED | NON_ASCII) != 0
    }

    /// Returns whether the string contains a lone surrogate.
    #[inline]
    pub fn has_lone_surrogate(&self) -> bool {
        self.node().flags & LONE_SURROGATE != 0
    }

    /// Returns the boolean, or `None` for other values.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        let node = self.node();
        (node.kind == JsonKind::Bool).then_some(node.flags & TRUE != 0)
    }

    /// Returns the number, or `None` for other values.
    #[inline]
    pub fn as_number(&self) -> Option<JsonNumber<'d>> {
        let node = self.node();
        (node.kind == JsonKind::Number).then(|| JsonNumber {
            text: &self.text[node.start as usize..node.end as usize],
            is_float: node.flags & FLOAT != 0,
            is_unsafe_integer: node.flags & UNSAFE_INTEGER != 0,
            is_out_of_range: node.flags & OUT_OF_RANGE != 0,
        })
    }

    /// Returns an array's items. Empty for other values.
    #[inline]
    pub fn items(&self) -> impl Iterator<Item = JsonValue<'d>> + use<'d> {
        let is_array = self.kind() == JsonKind::Array;
        let end = self.node().next;
        let (text, nodes) = (self.text, self.nodes);
        let mut index = self.index + 1;
        std::iter::from_fn(move || {
            (is_array && index < end).then(|| {
                let value = JsonValue { text, nodes, index };
                index = nodes[index as usize].next;
                value
            })
        })
    }

    /// Returns an object's members as key and value, in source order. Empty for other values.
    #[inline]
    pub fn members(&self) -> impl Iterator<Item = (JsonValue<'d>, JsonValue<'d>)> + use<'d> {
        let is_object = self.kind() == JsonKind::Object;
        let end = self.node().next;
        let (text, nodes) = (self.text, self.nodes);
        let mut index = self.index + 1;
        std::iter::from_fn(move || {
            (is_object && index < end).then(|| {
                let key = JsonValue { text, nodes, index };
                let value = JsonValue { text, nodes, index: index + 1 };
                index = nodes[index as usize + 1].next;
                (key, value)
            })
        })
    }

    /// Returns the value of the member with this name. If there are several, returns the last one.
    #[inline]
    pub fn member(&self, name: &str) -> Option<JsonValue<'d>> {
        self.members().filter(|(key, _)| key.is_text(name)).last().map(|(_, value)| value)
    }
}
