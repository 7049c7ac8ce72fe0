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
    /// It is longer than the limit; its bytes are gone.
    pub(super) oversized: bool,
}

/// Cuts an input into blocks.
pub(super) struct Splitter<R> {
    input: R,
    limit: usize,
    held: Vec<u8>,
    layout: Layout,
    ended: bool,
    started: bool,
    short: bool,
}

enum Layout {
    Unknown,
    Lines,
    Document(Scan),
}

/// Where the scan of a document stands.
#[derive(Default)]
struct Scan {
    /// Inside the outermost array.
    in_array: bool,
    depth: u32,
    quoted: bool,
    escaped: bool,
    /// Where the item began that is being scanned, and on which line.
    item: Option<(usize, u64)>,
    at: usize,
    line: u64,
    /// Bytes of the item that were let go because it is too long.
    dropped: usize,
}

impl<R: Read> Splitter<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            held: Vec::new(),
            layout: Layout::Unknown,
            ended: false,
            started: false,
            short: false,
        }
    }

    /// The next block; nothing at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Cut>> {
        let mut mark = false;
        if !self.started {
            self.started = true;
            self.fill()?;
            if self.held.starts_with(MARK) {
                self.held.drain(..MARK.len());
                mark = true;
            }
            self.find_layout()?;
        }
        let cut = match self.layout {
            Layout::Document(_) => self.next_pieces()?,
            _ => self.next_lines()?,
        };
        Ok(match cut {
            Some(cut) => Some(Cut { mark, pause: self.short, ..cut }),
            None if mark => {
                Some(Cut { bytes: Vec::new(), items: Items::Lines, lines: 0, mark, pause: false })
            }
            None => None,
        })
    }

    /// Reads some more; says whether there was any.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let before = self.held.len();
        self.held.resize(before + BLOCK, 0);
        let read = loop {
            match self.input.read(&mut self.held[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                self.held.truncate(before);
                return Err(error);
            }
        };
        self.held.truncate(before + read);
        self.ended = read == 0;
        self.short = read < BLOCK;
        Ok(read > 0)
    }

    /// An array, or an object whose first line does not end it and whose second goes on with it, is a document.
    fn find_layout(&mut self) -> io::Result<()> {
        loop {
            let blank = self.held.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let rest = &self.held[blank..];
            let decided = match rest.first() {
                None => self.ended.then_some(false),
                Some(b'[') => Some(true),
                Some(b'{') => match rest.iter().position(|byte| *byte == b'\n') {
                    Some(end) if balance(&rest[..end]) > 0 => rest[end..]
                        .iter()
                        .find(|byte| !byte.is_ascii_whitespace())
                        .map(|next| matches!(next, b'"' | b'}')),
                    Some(_) => Some(false),
                    None => (self.ended || rest.len() > self.limit).then_some(false),
                },
                Some(_) => Some(false),
            };
            if let Some(document) = decided {
                self.layout = if document {
                    Layout::Document(Scan { line: 1, ..Scan::default() })
                } else {
                    Layout::Lines
                };
                return Ok(());
            }
            if !self.fill()? && self.held.len() > blank {
                // Only an opening line, and then nothing.
                self.layout = Layout::Lines;
                return Ok(());
            }
        }
    }

    fn next_lines(&mut self) -> io::Result<Option<Cut>> {
        loop {
            if let Some(end) = self.held.iter().rposition(|byte| *byte == b'\n') {
                let rest = self.held.split_off(end + 1);
                let bytes = std::mem::replace(&mut self.held, rest);
                let lines = count_lines(&bytes);
                return Ok(Some(Cut { bytes, items: Items::Lines, lines, mark: false, pause: false }));
            }
            if self.held.len() > self.limit {
                return self.skip_line().map(Some);
            }
            if !self.fill()? {
                let bytes = std::mem::take(&mut self.held);
                let cut = Cut { bytes, items: Items::Lines, lines: 1, mark: false, pause: false };
                return Ok((!cut.bytes.is_empty()).then_some(cut));
            }
        }
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
        let piece = Piece { start: 0, end: 0, line: 1, oversized: true };
        Ok(Cut { bytes: Vec::new(), items: Items::Pieces(vec![piece]), lines: 1, mark: false, pause: false })
    }

    fn next_pieces(&mut self) -> io::Result<Option<Cut>> {
        loop {
            let Layout::Document(scan) = &mut self.layout else { return self.next_lines() };
            let mut pieces = Vec::new();
            let over = scan.run(&self.held, self.limit, self.ended, &mut pieces);
            if over {
                // The array is closed: what follows is judged line by line.
                let (at, lines) = (scan.at, scan.line - 1);
                let rest = self.held.split_off(at);
                let bytes = std::mem::replace(&mut self.held, rest);
                self.layout = Layout::Lines;
                return Ok(Some(Cut {
                    bytes,
                    items: Items::Pieces(pieces),
                    lines,
                    mark: false,
                    pause: false,
                }));
            }
            // The bytes of the item that is not whole yet go on to the next block, and its lines with them.
            let (keep, lines) = scan.hand_over(self.limit);
            if !pieces.is_empty() {
                let rest = self.held.split_off(keep);
                let bytes = std::mem::replace(&mut self.held, rest);
                return Ok(Some(Cut {
                    bytes,
                    items: Items::Pieces(pieces),
                    lines,
                    mark: false,
                    pause: false,
                }));
            }
            if keep > 0 {
                self.held.drain(..keep);
                let cut =
                    Cut { bytes: Vec::new(), items: Items::Pieces(pieces), lines, mark: false, pause: false };
                if lines > 0 {
                    return Ok(Some(cut));
                }
            }
            if !self.fill()? && self.held.is_empty() {
                return Ok(None);
            }
            if self.ended
                && matches!(&self.layout, Layout::Document(scan) if scan.item.is_none())
                && self.held.is_empty()
            {
                return Ok(None);
            }
        }
    }
}

impl Scan {
    /// Scans what is there; says whether the outermost array has been closed.
    fn run(&mut self, bytes: &[u8], limit: usize, ended: bool, pieces: &mut Vec<Piece>) -> bool {
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
                b'[' if !self.in_array && self.item.is_none() => self.in_array = true,
                b']' if self.in_array && self.depth == 0 => {
                    self.finish(at, limit, pieces);
                    return true;
                }
                b'{' | b'[' => {
                    self.begin(at);
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.begin(at);
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.finish(self.at, limit, pieces);
                    }
                }
                b'"' => {
                    self.begin(at);
                    self.quoted = true;
                }
                b',' if self.depth == 0 => self.finish(at, limit, pieces),
                b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => self.finish(at, limit, pieces),
                _ => self.begin(at),
            }
        }
        if ended {
            let in_array = self.in_array;
            self.finish(self.at, limit, pieces);
            if in_array {
                // The array was never closed: what is there at the end is not JSON, and says so.
                pieces.push(Piece { start: self.at, end: self.at, line: self.line, oversized: false });
                return true;
            }
        }
        false
    }

    fn begin(&mut self, at: usize) {
        if self.item.is_none() {
            self.item = Some((at, self.line));
            self.dropped = 0;
        }
    }

    fn finish(&mut self, end: usize, limit: usize, pieces: &mut Vec<Piece>) {
        if let Some((start, line)) = self.item.take() {
            let oversized = self.dropped + (end - start) > limit;
            pieces.push(Piece { start, end, line, oversized });
        }
        self.depth = 0;
        self.quoted = false;
        self.escaped = false;
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

/// How many brackets stay open at the end of a line.
fn balance(line: &[u8]) -> i64 {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
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
    depth
}

#[allow(clippy::naive_bytecount, reason = "one pass over a block, and it vectorises")]
fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
