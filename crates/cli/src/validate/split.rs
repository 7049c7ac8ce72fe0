//! From bytes to blocks of whole items, without ever holding more than a block and the longest item that is allowed.
//!
//! Two layouts are told apart by the beginning of the input, and again after each array. In *lines* every line is one
//! item, so that a broken one spoils no other. In a *document* (an array, or values over several lines) items are cut
//! out by counting brackets. The items are the same however the bytes come in. Of an event stream only the data is seen.

mod scan;
#[cfg(test)]
mod tests;

use std::io::{self, Read};

pub(super) use scan::{Piece, Trouble};

use super::stream::Unwrapped;
use scan::Scan;

/// What a full pipe gives at once: with less, nothing more is waiting.
const PIPE: usize = 64 * 1024;
/// How much is read at a time.
const BLOCK: usize = 256 * 1024;
/// A block has no more lines than this, so that what is found in very short ones does not pile up.
const LINES: usize = 1024;
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Some whole items of the input.
pub(super) struct Cut {
    pub(super) bytes: Vec<u8>,
    pub(super) items: Items,
    pub(super) lines: u64,
    /// The input began with a byte-order mark, just before this block.
    pub(super) mark: bool,
    /// There is no more to be had at once: whoever waits for findings should get them.
    pub(super) pause: bool,
    /// It is the data of an event stream.
    pub(super) stream: bool,
}

pub(super) enum Items {
    /// Every line is an item.
    Lines,
    /// These pieces are, each with the line that it begins on, counted from 1 in this block.
    Pieces(Vec<Piece>),
}

pub(super) struct Splitter<R> {
    input: Unwrapped<R>,
    limit: usize,
    /// Where reads go: made once, since a pipe may need many.
    incoming: Box<[u8]>,
    held: Vec<u8>,
    /// So much of what is held is known to have no end of a line in it.
    endless: usize,
    layout: Layout,
    ended: bool,
    started: bool,
    short: bool,
}

enum Layout {
    /// Nothing has been seen but white space.
    Unknown,
    Lines,
    Document(Scan),
    /// An array has just been closed; the rest of its line is not a line of its own.
    Closed,
}

impl<R: Read> Splitter<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input: Unwrapped::new(input),
            limit,
            incoming: vec![0; BLOCK].into_boxed_slice(),
            held: Vec::new(),
            endless: 0,
            layout: Layout::Unknown,
            ended: false,
            started: false,
            short: false,
        }
    }

    /// The next block; nothing at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Cut>> {
        let mark = !self.started && self.take_mark()?;
        self.started = true;
        let cut = self.next_cut()?;
        let stream = self.input.is_stream();
        Ok(match cut {
            Some(cut) => Some(Cut { mark, pause: self.short, stream, ..cut }),
            None if mark => Some(Cut { mark, stream, ..Cut::nothing(0) }),
            None => None,
        })
    }

    /// Whether the input began with a byte-order mark, which is then gone.
    fn take_mark(&mut self) -> io::Result<bool> {
        while self.held.len() < MARK.len() && MARK.starts_with(&self.held) && self.fill()? {}
        let mark = self.held.starts_with(MARK);
        if mark {
            self.held.drain(..MARK.len());
        }
        Ok(mark)
    }

    fn next_cut(&mut self) -> io::Result<Option<Cut>> {
        loop {
            let cut = match self.layout {
                Layout::Unknown => self.find_layout()?,
                Layout::Lines => return self.next_lines(),
                Layout::Document(_) => self.next_pieces()?,
                Layout::Closed => self.close_line()?,
            };
            if cut.is_some() {
                return Ok(cut);
            }
        }
    }

    /// Reads some more; says whether there was any.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let read = loop {
            match self.input.read(&mut self.incoming) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.held.extend_from_slice(&self.incoming[..read]);
        self.ended = read == 0;
        self.short = read < PIPE;
        Ok(read > 0)
    }

    /// Finds out how what follows is laid out. The empty lines before it are a block of their own, so that they are
    /// not held however many there are.
    fn find_layout(&mut self) -> io::Result<Option<Cut>> {
        loop {
            // No more than this is looked at, so that the answer is the same however the bytes come in.
            let seen = &self.held[..self.held.len().min(self.limit.saturating_add(1))];
            let blank = seen.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if let Some(end) = seen[..blank].iter().rposition(|byte| *byte == b'\n') {
                return Ok(Some(self.cut_lines(end + 1)));
            }
            if let Some(document) = is_document(&seen[blank..], self.ended || seen.len() > self.limit) {
                self.layout = if document { Layout::Document(Scan::new()) } else { Layout::Lines };
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn next_lines(&mut self) -> io::Result<Option<Cut>> {
        loop {
            let endless = self.endless.min(self.held.len());
            if let Some(end) = memchr::memchr_iter(b'\n', &self.held[endless..]).take(LINES).last() {
                return Ok(Some(self.cut_lines(endless + end + 1)));
            }
            self.endless = self.held.len();
            // One more, because a CR at the end is none of the line's.
            if self.held.len() > self.limit.saturating_add(1) {
                return self.skip_line().map(Some);
            }
            if !self.fill()? {
                let bytes = std::mem::take(&mut self.held);
                let cut = Cut { bytes, items: Items::Lines, ..Cut::nothing(1) };
                return Ok((!cut.bytes.is_empty()).then_some(cut));
            }
        }
    }

    fn cut_lines(&mut self, end: usize) -> Cut {
        let bytes = self.cut_bytes(end);
        let lines = count_lines(&bytes);
        Cut { bytes, items: Items::Lines, ..Cut::nothing(lines) }
    }

    fn cut_bytes(&mut self, end: usize) -> Vec<u8> {
        self.endless = 0;
        let rest = self.held.split_off(end);
        std::mem::replace(&mut self.held, rest)
    }

    /// Lets go of a line that is too long, up to its end.
    fn skip_line(&mut self) -> io::Result<Cut> {
        self.endless = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.held) {
                self.held.drain(..=end);
                break;
            }
            self.held.clear();
            if !self.fill()? {
                break;
            }
        }
        let piece = Piece { start: 0, end: 0, line: 1, trouble: Some(Trouble::Oversized) };
        Ok(Cut { items: Items::Pieces(vec![piece]), ..Cut::nothing(1) })
    }

    fn next_pieces(&mut self) -> io::Result<Option<Cut>> {
        loop {
            let Layout::Document(scan) = &mut self.layout else { return Ok(None) };
            let mut pieces = Vec::new();
            let closed = scan.run(&self.held, self.limit, &mut pieces);
            if self.ended && !closed {
                scan.end(self.limit, &mut pieces);
            }
            // The bytes of the item that is not whole yet go on to the next block, and its lines with them.
            let (keep, lines) = scan.hand_over(self.limit);
            if closed {
                self.layout = Layout::Closed;
            } else if self.ended {
                self.layout = Layout::Lines;
            }
            if closed || self.ended || lines > 0 || !pieces.is_empty() {
                let bytes = self.cut_bytes(keep);
                return Ok(Some(Cut { bytes, items: Items::Pieces(pieces), ..Cut::nothing(lines) }));
            }
            self.held.drain(..keep);
            self.fill()?;
        }
    }

    /// What stands on the line of the bracket that closed an array; nothing, most of the time.
    fn close_line(&mut self) -> io::Result<Option<Cut>> {
        loop {
            let blank = self.held.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            self.held.drain(..blank);
            if !self.held.is_empty() || !self.fill()? {
                self.layout = Layout::Unknown;
                let ends = self.held.first() == Some(&b'\n');
                self.held.drain(..usize::from(ends));
                return Ok(ends.then(|| Cut::nothing(1)));
            }
        }
    }
}

impl Cut {
    /// No items; only lines that are over.
    fn nothing(lines: u64) -> Self {
        Self {
            bytes: Vec::new(),
            items: Items::Pieces(Vec::new()),
            lines,
            mark: false,
            pause: false,
            stream: false,
        }
    }
}

/// Whether what begins so is a document: an array, or an object whose first line does not end it and whose second
/// goes on with it. A line that was merely cut off is followed by one that begins anew. Nothing if more must be seen,
/// unless there is `no_more`.
fn is_document(text: &[u8], no_more: bool) -> Option<bool> {
    let unsure = no_more.then_some(false);
    match text.first() {
        None => unsure,
        Some(b'[') => Some(true),
        Some(b'{') => {
            let Some(end) = text.iter().position(|byte| *byte == b'\n') else { return unsure };
            if !stays_open(&text[..end]) {
                return Some(false);
            }
            let Some(next) = text[end..].iter().position(|byte| !byte.is_ascii_whitespace()) else {
                return unsure;
            };
            let indented = text[end + next - 1] != b'\n';
            Some(indented || matches!(text[end + next], b'"' | b'}' | b']' | b',' | b':'))
        }
        Some(_) => Some(false),
    }
}

/// Whether brackets stay open at the end of a line. One that ends within a string is broken, not open.
fn stays_open(line: &[u8]) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_i64, false, false);
    for byte in line {
        if quoted {
            quoted = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    depth > 0 && !quoted
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
