//! Splits bytes into blocks of complete items. Buffers at most one block and one item of the maximum size.
//!
//! The input has one of two layouts, which is detected at its beginning and again after each array. In the *lines* layout,
//! every line is one item, so a broken line does not affect others. In the *document* layout (an array, or values over several
//! lines), items are found by counting brackets. The result does not depend on how many bytes each read returns. For an event
//! stream, only the data fields are used.

mod item_scanner;
#[cfg(test)]
mod tests;

use std::io::{self, Read};

pub(super) use item_scanner::{ItemError, ItemSpan};

use super::event_stream::EventStreamUnwrapper;
use item_scanner::ItemScanner;

/// The capacity of a pipe. A read that returns fewer bytes has drained the pipe.
const PIPE_CAPACITY: usize = 64 * 1024;
/// Number of bytes that are read at a time.
const READ_BLOCK_BYTES: usize = 256 * 1024;
/// Maximum number of lines in a block, which bounds the findings of a block of very short lines.
const MAX_BLOCK_LINES: usize = 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A block of complete items of the input.
pub(super) struct InputBlock {
    pub(super) bytes: Vec<u8>,
    pub(super) items: BlockItems,
    pub(super) lines: u64,
    /// Whether this is the first block and a byte-order mark preceded it.
    pub(super) has_byte_order_mark: bool,
    /// Whether no more input is available right now, so that pending findings should be printed.
    pub(super) is_input_drained: bool,
    /// Whether the block is the data of an event stream.
    pub(super) is_event_stream: bool,
}

pub(super) enum BlockItems {
    /// Every line is an item.
    Lines,
    /// Each span is an item. Its line is counted from 1 in this block.
    Spans(Vec<ItemSpan>),
}

pub(super) struct Splitter<R> {
    input: EventStreamUnwrapper<R>,
    limit: usize,
    /// The read buffer, allocated once because a pipe may need many reads.
    incoming: Box<[u8]>,
    buffer: Vec<u8>,
    /// Length of the prefix of `buffer` that contains no newline.
    newline_free_len: usize,
    layout: Layout,
    is_ended: bool,
    is_started: bool,
    is_short_read: bool,
}

enum Layout {
    /// Only white space has been seen.
    Unknown,
    Lines,
    Document(ItemScanner),
    /// An array was just closed. The rest of that line does not count as a new line.
    Closed,
}

impl<R: Read> Splitter<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input: EventStreamUnwrapper::new(input),
            limit,
            incoming: vec![0; READ_BLOCK_BYTES].into_boxed_slice(),
            buffer: Vec::new(),
            newline_free_len: 0,
            layout: Layout::Unknown,
            is_ended: false,
            is_started: false,
            is_short_read: false,
        }
    }

    /// Returns the next block; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<InputBlock>> {
        let has_mark = !self.is_started && self.take_byte_order_mark()?;
        self.is_started = true;
        let block = self.next_block()?;
        let is_event_stream = self.input.looks_like_stream();
        Ok(match block {
            Some(block) => Some(InputBlock {
                has_byte_order_mark: has_mark,
                is_input_drained: self.is_short_read,
                is_event_stream,
                ..block
            }),
            None if has_mark => {
                Some(InputBlock { has_byte_order_mark: has_mark, is_event_stream, ..InputBlock::empty(0) })
            }
            None => None,
        })
    }

    /// Removes a leading byte-order mark. Returns whether there was one.
    fn take_byte_order_mark(&mut self) -> io::Result<bool> {
        while self.buffer.len() < BYTE_ORDER_MARK.len()
            && BYTE_ORDER_MARK.starts_with(&self.buffer)
            && self.fill()?
        {}
        let has_mark = self.buffer.starts_with(BYTE_ORDER_MARK);
        if has_mark {
            self.buffer.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(has_mark)
    }

    fn next_block(&mut self) -> io::Result<Option<InputBlock>> {
        loop {
            let block = match self.layout {
                Layout::Unknown => self.detect_layout()?,
                Layout::Lines => return self.next_lines(),
                Layout::Document(_) => self.next_spans()?,
                Layout::Closed => self.finish_array_line()?,
            };
            if block.is_some() {
                return Ok(block);
            }
        }
    }

    /// Reads more input. Returns whether there was any.
    fn fill(&mut self) -> io::Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        let read = loop {
            match self.input.read(&mut self.incoming) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.buffer.extend_from_slice(&self.incoming[..read]);
        self.is_ended = read == 0;
        self.is_short_read = read < PIPE_CAPACITY;
        Ok(read > 0)
    }

    /// Detects the layout of the following input. Leading empty lines become a block of their own, so that they are not
    /// buffered.
    fn detect_layout(&mut self) -> io::Result<Option<InputBlock>> {
        loop {
            // Only the first `limit + 1` bytes are examined, so that the result does not depend on the read sizes.
            let seen = &self.buffer[..self.buffer.len().min(self.limit.saturating_add(1))];
            let blank_len = seen.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if let Some(end) = seen[..blank_len].iter().rposition(|byte| *byte == b'\n') {
                return Ok(Some(self.cut_lines(end + 1)));
            }
            let is_input_complete = self.is_ended || seen.len() > self.limit;
            if let Some(is_document) = is_document(&seen[blank_len..], is_input_complete) {
                self.layout = if is_document { Layout::Document(ItemScanner::new()) } else { Layout::Lines };
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn next_lines(&mut self) -> io::Result<Option<InputBlock>> {
        loop {
            let newline_free = self.newline_free_len.min(self.buffer.len());
            if let Some(end) =
                memchr::memchr_iter(b'\n', &self.buffer[newline_free..]).take(MAX_BLOCK_LINES).last()
            {
                return Ok(Some(self.cut_lines(newline_free + end + 1)));
            }
            self.newline_free_len = self.buffer.len();
            // One more byte than the limit is allowed, because a trailing CR does not belong to the line.
            if self.buffer.len() > self.limit.saturating_add(1) {
                return self.skip_oversized_line().map(Some);
            }
            if !self.fill()? {
                let bytes = std::mem::take(&mut self.buffer);
                let block = InputBlock { bytes, items: BlockItems::Lines, ..InputBlock::empty(1) };
                return Ok((!block.bytes.is_empty()).then_some(block));
            }
        }
    }

    fn cut_lines(&mut self, end: usize) -> InputBlock {
        let bytes = self.cut_bytes(end);
        let lines = count_lines(&bytes);
        InputBlock { bytes, items: BlockItems::Lines, ..InputBlock::empty(lines) }
    }

    fn cut_bytes(&mut self, end: usize) -> Vec<u8> {
        self.newline_free_len = 0;
        let rest = self.buffer.split_off(end);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Skips a line that is too long, including its end.
    fn skip_oversized_line(&mut self) -> io::Result<InputBlock> {
        self.newline_free_len = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                self.buffer.drain(..=end);
                break;
            }
            self.buffer.clear();
            if !self.fill()? {
                break;
            }
        }
        let span = ItemSpan { start: 0, end: 0, line: 1, error: Some(ItemError::Oversized) };
        Ok(InputBlock { items: BlockItems::Spans(vec![span]), ..InputBlock::empty(1) })
    }

    fn next_spans(&mut self) -> io::Result<Option<InputBlock>> {
        loop {
            let Layout::Document(scanner) = &mut self.layout else { return Ok(None) };
            let mut spans = Vec::new();
            let is_closed = scanner.scan(&self.buffer, self.limit, &mut spans);
            if self.is_ended && !is_closed {
                scanner.finish_input(self.limit, &mut spans);
            }
            // The bytes and lines of an incomplete item move to the next block.
            let (block_len, lines) = scanner.start_next_block(self.limit);
            if is_closed {
                self.layout = Layout::Closed;
            } else if self.is_ended {
                self.layout = Layout::Lines;
            }
            if is_closed || self.is_ended || lines > 0 || !spans.is_empty() {
                let bytes = self.cut_bytes(block_len);
                return Ok(Some(InputBlock {
                    bytes,
                    items: BlockItems::Spans(spans),
                    ..InputBlock::empty(lines)
                }));
            }
            self.buffer.drain(..block_len);
            self.fill()?;
        }
    }

    /// Handles the rest of the line on which an array was closed, which is usually empty.
    fn finish_array_line(&mut self) -> io::Result<Option<InputBlock>> {
        loop {
            let blank_len =
                self.buffer.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            self.buffer.drain(..blank_len);
            if !self.buffer.is_empty() || !self.fill()? {
                self.layout = Layout::Unknown;
                let is_line_end = self.buffer.first() == Some(&b'\n');
                self.buffer.drain(..usize::from(is_line_end));
                return Ok(is_line_end.then(|| InputBlock::empty(1)));
            }
        }
    }
}

impl InputBlock {
    /// A block without items, which only counts lines.
    fn empty(lines: u64) -> Self {
        Self {
            bytes: Vec::new(),
            items: BlockItems::Spans(Vec::new()),
            lines,
            has_byte_order_mark: false,
            is_input_drained: false,
            is_event_stream: false,
        }
    }
}

/// Returns whether the input is a document: an array, or an object that continues on its second line. If the first
/// line is only a truncated object, the second line starts a new item, so the input is not a document. Returns `None` if
/// more input is needed, but never if `is_input_complete` is set.
fn is_document(text: &[u8], is_input_complete: bool) -> Option<bool> {
    let undecided = is_input_complete.then_some(false);
    match text.first() {
        None => undecided,
        Some(b'[') => Some(true),
        Some(b'{') => {
            let Some(end) = text.iter().position(|byte| *byte == b'\n') else { return undecided };
            if !has_open_brackets(&text[..end]) {
                return Some(false);
            }
            let Some(next) = text[end..].iter().position(|byte| !byte.is_ascii_whitespace()) else {
                return undecided;
            };
            let is_indented = text[end + next - 1] != b'\n';
            Some(is_indented || matches!(text[end + next], b'"' | b'}' | b']' | b',' | b':'))
        }
        Some(_) => Some(false),
    }
}

/// Returns whether brackets are still open at the end of a line. A line that ends within a string is broken, not open.
fn has_open_brackets(line: &[u8]) -> bool {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_i64, false, false);
    for byte in line {
        if is_quoted {
            is_quoted = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => is_quoted = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    depth > 0 && !is_quoted
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
