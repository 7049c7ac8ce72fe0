//! From bytes to blocks of whole items, without ever holding more than a block.
//!
//! Two layouts are told apart by the beginning of the input. In *lines* every line is one item, so that a broken one
//! spoils no other. In a *document* (an array, or values over several lines) items are cut out by counting brackets.

use std::io::{self, Read};

/// How much is read at a time.
const BLOCK: usize = 256 * 1024;
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Some whole items of the input.
pub(super) struct Cut {
    pub(super) bytes: Vec<u8>,
    pub(super) items: Items,
    /// How many lines the block has.
    pub(super) lines: u64,
    /// The input began with a byte-order mark, just before this block.
    pub(super) mark: bool,
    /// There is no more to be had at once: whoever waits for findings should get them.
    pub(super) pause: bool,
}

pub(super) enum Items {
    /// Every line is an item.
    Lines,
    /// These pieces are, each with the line that it begins on, counted from 1 in this block.
    Pieces(Vec<Piece>),
}

pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) line: u64,
    /// It is no item to be read.
    pub(super) trouble: Option<Trouble>,
}

/// What keeps a piece from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is longer than the limit; its bytes are gone.
    Oversized,
    /// Two items of the outermost array stand beside each other without a comma.
    NoComma,
    /// A comma of the outermost array stands where an item should.
    StrayComma,
    /// The outermost array is never closed.
    Unclosed,
}

/// Cuts an input into blocks.
pub(super) struct Splitter<R> {
    input: R,
    limit: usize,
    /// Where reads go: made once, since a pipe may need many.
    incoming: Box<[u8]>,
    held: Vec<u8>,
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

/// Where the scan of a document stands.
#[derive(Default)]
struct Scan {
    /// Where in the outermost array, if inside one.
    array: Option<After>,
    /// The outermost array's commas were found wrong, and that has been told.
    told: bool,
    depth: usize,
    quoted: bool,
    escaped: bool,
    /// Where the item began that is being scanned, and on which line.
    item: Option<(usize, u64)>,
    at: usize,
    line: u64,
    /// Bytes of the item that were let go because it is too long.
    dropped: usize,
}

/// What came last in the outermost array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Opening,
    Item,
    Comma,
}

impl<R: Read> Splitter<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            incoming: vec![0; BLOCK].into_boxed_slice(),
            held: Vec::new(),
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
        Ok(match cut {
            Some(cut) => Some(Cut { mark, pause: self.short, ..cut }),
            None if mark => Some(Cut { mark, ..Cut::nothing(0) }),
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
        self.short = read < BLOCK;
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
                let scan = Scan { line: 1, ..Scan::default() };
                self.layout = if document { Layout::Document(scan) } else { Layout::Lines };
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn next_lines(&mut self) -> io::Result<Option<Cut>> {
        loop {
            if let Some(end) = self.held.iter().rposition(|byte| *byte == b'\n') {
                return Ok(Some(self.cut_lines(end + 1)));
            }
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
        let rest = self.held.split_off(end);
        std::mem::replace(&mut self.held, rest)
    }

    /// Lets go of a line that is too long, up to its end.
    fn skip_line(&mut self) -> io::Result<Cut> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
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
        Self { bytes: Vec::new(), items: Items::Pieces(Vec::new()), lines, mark: false, pause: false }
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

impl Scan {
    /// Scans what is there; says whether the outermost array has been closed.
    fn run(&mut self, bytes: &[u8], limit: usize, pieces: &mut Vec<Piece>) -> bool {
        while let Some(byte) = bytes.get(self.at) {
            let at = self.at;
            self.at += 1;
            if *byte == b'\n' {
                self.line += 1;
            }
            if self.quoted {
                self.quoted = self.escaped || *byte != b'"';
                self.escaped = !self.escaped && *byte == b'\\';
                if !self.quoted && self.depth == 0 {
                    self.finish(self.at, limit, pieces);
                }
                continue;
            }
            match byte {
                b'[' if self.array.is_none() && self.item.is_none() => self.array = Some(After::Opening),
                b']' if self.array.is_some() && self.depth == 0 => {
                    self.finish(at, limit, pieces);
                    if self.array == Some(After::Comma) {
                        self.complain(Trouble::StrayComma, at, pieces);
                    }
                    return true;
                }
                b'{' | b'[' => {
                    self.begin(at, pieces);
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.begin(at, pieces);
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.finish(self.at, limit, pieces);
                    }
                }
                b'"' => {
                    self.begin(at, pieces);
                    self.quoted = true;
                }
                b',' if self.depth == 0 => self.comma(at, limit, pieces),
                b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => self.finish(at, limit, pieces),
                _ => self.begin(at, pieces),
            }
        }
        false
    }

    /// The input is over, whatever is still open.
    fn end(&mut self, limit: usize, pieces: &mut Vec<Piece>) {
        self.finish(self.at, limit, pieces);
        if self.array.is_some() {
            self.told = false;
            self.complain(Trouble::Unclosed, self.at, pieces);
        }
    }

    fn begin(&mut self, at: usize, pieces: &mut Vec<Piece>) {
        if self.item.is_none() {
            if self.array == Some(After::Item) {
                self.complain(Trouble::NoComma, at, pieces);
            }
            self.item = Some((at, self.line));
            self.dropped = 0;
        }
    }

    fn comma(&mut self, at: usize, limit: usize, pieces: &mut Vec<Piece>) {
        self.finish(at, limit, pieces);
        match self.array {
            Some(After::Item) => {}
            Some(After::Opening | After::Comma) => self.complain(Trouble::StrayComma, at, pieces),
            // Outside of an array it is nobody's: an item that is not JSON.
            None => {
                self.begin(at, pieces);
                self.finish(self.at, limit, pieces);
            }
        }
        self.array = self.array.and(Some(After::Comma));
    }

    fn finish(&mut self, end: usize, limit: usize, pieces: &mut Vec<Piece>) {
        if let Some((start, line)) = self.item.take() {
            let oversized = self.dropped + (end - start) > limit;
            pieces.push(Piece { start, end, line, trouble: oversized.then_some(Trouble::Oversized) });
            self.array = self.array.and(Some(After::Item));
        }
        self.depth = 0;
        self.quoted = false;
        self.escaped = false;
    }

    /// Says what is wrong with the outermost array; once, since the rest follows from it.
    fn complain(&mut self, trouble: Trouble, at: usize, pieces: &mut Vec<Piece>) {
        if !self.told {
            self.told = true;
            pieces.push(Piece { start: at, end: at, line: self.line, trouble: Some(trouble) });
        }
    }

    /// Prepares for the next block: returns how many bytes and lines stay behind.
    fn hand_over(&mut self, limit: usize) -> (usize, u64) {
        let (keep, lines) = match &mut self.item {
            Some((start, line)) if self.dropped + (self.at - *start) > limit => {
                // Too long to be held: only its brackets are still followed.
                self.dropped += self.at - *start;
                let lines = *line - 1;
                *start = self.at;
                (self.at, lines)
            }
            Some((start, line)) => (*start, *line - 1),
            None => (self.at, self.line - 1),
        };
        self.at -= keep;
        self.line -= lines;
        if let Some((start, line)) = &mut self.item {
            *start -= keep;
            *line -= lines;
        }
        (keep, lines)
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

#[allow(clippy::naive_bytecount, reason = "one pass over a block, and it vectorises")]
fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests;
