//! The items of a document, cut out by counting brackets, a block at a time.

use aaep::check::Validator;
use aaep::rule::Findings;

pub(in crate::validate) struct Piece {
    pub(in crate::validate) start: usize,
    pub(in crate::validate) end: usize,
    pub(in crate::validate) line: u64,
    /// It is no item to be read.
    pub(in crate::validate) trouble: Option<Trouble>,
}

/// What keeps a piece from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It is longer than the limit; its bytes are gone.
    Oversized,
    /// Two items of the outermost array stand beside each other without a comma.
    NoComma,
    /// A comma of the outermost array stands where an item should.
    StrayComma,
    /// The outermost array is never closed.
    Unclosed,
}

impl Trouble {
    pub(crate) fn tell(self, limit: usize, findings: &mut Findings) {
        match self {
            Self::Oversized => Validator::refuse_size(limit, findings),
            Self::NoComma => Validator::refuse_array("a comma is missing before this item", findings),
            Self::StrayComma => Validator::refuse_array("an item is missing beside this comma", findings),
            Self::Unclosed => Validator::refuse_array("the array is not closed", findings),
        }
    }
}

#[derive(Default)]
pub(super) struct Scan {
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

impl Scan {
    pub(super) fn new() -> Self {
        Self { line: 1, ..Self::default() }
    }

    /// Scans what is there; says whether the outermost array has been closed.
    pub(super) fn run(&mut self, bytes: &[u8], limit: usize, pieces: &mut Vec<Piece>) -> bool {
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
    pub(super) fn end(&mut self, limit: usize, pieces: &mut Vec<Piece>) {
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
    pub(super) fn hand_over(&mut self, limit: usize) -> (usize, u64) {
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
