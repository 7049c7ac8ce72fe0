//! Finds the items of a document by counting brackets, block by block.

use aaep::check::Validator;
use aaep::rule::Findings;

pub(in crate::validate) struct ItemSpan {
    pub(in crate::validate) start: usize,
    pub(in crate::validate) end: usize,
    pub(in crate::validate) line: u64,
    /// Why the item cannot be read.
    pub(in crate::validate) error: Option<ItemError>,
}

/// Why an item cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemError {
    /// It is longer than the limit.
    Oversized,
    /// Two items of the outermost array have no comma between them.
    NoComma,
    /// A comma of the outermost array has no item before or after it.
    StrayComma,
    /// The outermost array is never closed.
    Unclosed,
}

impl ItemError {
    pub(crate) fn add_finding(self, limit: usize, findings: &mut Findings) {
        match self {
            Self::Oversized => Validator::report_oversize(limit, findings),
            Self::NoComma => {
                Validator::report_malformed_array("a comma is missing before this item", findings);
            }
            Self::StrayComma => {
                Validator::report_malformed_array("an item is missing before or after this comma", findings);
            }
            Self::Unclosed => Validator::report_malformed_array("the array is not closed", findings),
        }
    }
}

#[derive(Default)]
pub(super) struct ItemScanner {
    /// The position in the outermost array, if inside one.
    array: Option<ArrayPosition>,
    /// Whether an error in the outermost array was reported.
    has_reported_error: bool,
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The start of the current item, and its line.
    item: Option<(usize, u64)>,
    /// The position of the next byte, and its line.
    at: usize,
    line: u64,
    /// Number of bytes of the current item that were discarded because the item is too long.
    dropped_bytes: usize,
}

/// The last token that was scanned in the outermost array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArrayPosition {
    Opening,
    Item,
    Comma,
}

impl ItemScanner {
    pub(super) fn new() -> Self {
        Self { line: 1, ..Self::default() }
    }

    /// Scans the bytes. Returns whether the outermost array was closed.
    pub(super) fn scan(&mut self, bytes: &[u8], limit: usize, spans: &mut Vec<ItemSpan>) -> bool {
        while let Some(byte) = bytes.get(self.at) {
            let at = self.at;
            self.at += 1;
            if *byte == b'\n' {
                self.line += 1;
            }
            if self.is_in_string {
                self.is_in_string = self.is_escaped || *byte != b'"';
                self.is_escaped = !self.is_escaped && *byte == b'\\';
                if !self.is_in_string && self.depth == 0 {
                    self.finish_item(self.at, limit, spans);
                }
                continue;
            }
            match byte {
                b'[' if self.array.is_none() && self.item.is_none() => {
                    self.array = Some(ArrayPosition::Opening);
                }
                b']' if self.array.is_some() && self.depth == 0 => {
                    self.finish_item(at, limit, spans);
                    if self.array == Some(ArrayPosition::Comma) {
                        self.report_error(ItemError::StrayComma, at, spans);
                    }
                    return true;
                }
                b'{' | b'[' => {
                    self.begin_item(at, spans);
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.begin_item(at, spans);
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.finish_item(self.at, limit, spans);
                    }
                }
                b'"' => {
                    self.begin_item(at, spans);
                    self.is_in_string = true;
                }
                b',' if self.depth == 0 => self.handle_comma(at, limit, spans),
                b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => self.finish_item(at, limit, spans),
                _ => self.begin_item(at, spans),
            }
        }
        false
    }

    /// Ends the input, and with it everything that is still open.
    pub(super) fn finish_input(&mut self, limit: usize, spans: &mut Vec<ItemSpan>) {
        self.finish_item(self.at, limit, spans);
        if self.array.is_some() {
            self.has_reported_error = false;
            self.report_error(ItemError::Unclosed, self.at, spans);
        }
    }

    fn begin_item(&mut self, at: usize, spans: &mut Vec<ItemSpan>) {
        if self.item.is_none() {
            if self.array == Some(ArrayPosition::Item) {
                self.report_error(ItemError::NoComma, at, spans);
            }
            self.item = Some((at, self.line));
            self.dropped_bytes = 0;
        }
    }

    fn handle_comma(&mut self, at: usize, limit: usize, spans: &mut Vec<ItemSpan>) {
        self.finish_item(at, limit, spans);
        match self.array {
            Some(ArrayPosition::Item) => {}
            Some(ArrayPosition::Opening | ArrayPosition::Comma) => {
                self.report_error(ItemError::StrayComma, at, spans);
            }
            // Outside an array, a comma is an item that is not JSON.
            None => {
                self.begin_item(at, spans);
                self.finish_item(self.at, limit, spans);
            }
        }
        self.array = self.array.and(Some(ArrayPosition::Comma));
    }

    fn finish_item(&mut self, end: usize, limit: usize, spans: &mut Vec<ItemSpan>) {
        if let Some((start, line)) = self.item.take() {
            let is_oversized = self.dropped_bytes + (end - start) > limit;
            spans.push(ItemSpan { start, end, line, error: is_oversized.then_some(ItemError::Oversized) });
            self.array = self.array.and(Some(ArrayPosition::Item));
        }
        self.depth = 0;
        self.is_in_string = false;
        self.is_escaped = false;
    }

    /// Reports an error in the outermost array. Only the first one is reported, because it may cause the others; but an
    /// array that is not closed is always reported.
    fn report_error(&mut self, error: ItemError, at: usize, spans: &mut Vec<ItemSpan>) {
        if !self.has_reported_error {
            self.has_reported_error = true;
            spans.push(ItemSpan { start: at, end: at, line: self.line, error: Some(error) });
        }
    }

    /// Prepares for the next block. Returns how many bytes and lines belong to the finished block.
    pub(super) fn start_next_block(&mut self, limit: usize) -> (usize, u64) {
        let (block_len, lines) = match &mut self.item {
            Some((start, line)) if self.dropped_bytes + (self.at - *start) > limit => {
                // The item is too long to be buffered. From now on, only its brackets are counted.
                self.dropped_bytes += self.at - *start;
                let lines = *line - 1;
                *start = self.at;
                (self.at, lines)
            }
            Some((start, line)) => (*start, *line - 1),
            None => (self.at, self.line - 1),
        };
        self.at -= block_len;
        self.line -= lines;
        if let Some((start, line)) = &mut self.item {
            *start -= block_len;
            *line -= lines;
        }
        (block_len, lines)
    }
}
