//! The items of a recording, one after the other, for those who hear or draw it: the same that `sayso validate` checks.

use std::collections::VecDeque;
use std::io::{self, Read};

use super::split::{Cut, Items as Kind, Splitter, Trouble};

/// Longer items are not read, unless somebody says so.
pub(crate) const LONGEST: usize = 1_114_112;

/// One event or message, or why there is none.
pub(crate) struct Item {
    /// The line that it begins on, from 1 on.
    pub(crate) line: u64,
    pub(crate) bytes: Result<Vec<u8>, Trouble>,
}

/// Reads a recording. Never more than a block of it is held.
pub(crate) struct Items<R> {
    splitter: Splitter<R>,
    waiting: VecDeque<Item>,
    lines: u64,
}

impl<R: Read> Items<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { splitter: Splitter::new(input, LONGEST), waiting: VecDeque::new(), lines: 0 }
    }

    /// The next item; nothing at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Item>> {
        loop {
            if let Some(item) = self.waiting.pop_front() {
                return Ok(Some(item));
            }
            let Some(cut) = self.splitter.next()? else { return Ok(None) };
            self.take(&cut);
        }
    }

    fn take(&mut self, cut: &Cut) {
        match &cut.items {
            Kind::Lines => {
                for (line, number) in cut.bytes.split(|byte| *byte == b'\n').zip(1..) {
                    if !line.iter().all(u8::is_ascii_whitespace) {
                        let bytes =
                            if line.len() > LONGEST { Err(Trouble::Oversized) } else { Ok(line.to_vec()) };
                        self.waiting.push_back(Item { line: self.lines + number, bytes });
                    }
                }
            }
            Kind::Pieces(pieces) => {
                for piece in pieces {
                    let bytes = match piece.trouble {
                        Some(trouble) => Err(trouble),
                        None => Ok(cut.bytes.get(piece.start..piece.end).unwrap_or_default().to_vec()),
                    };
                    self.waiting.push_back(Item { line: self.lines + piece.line, bytes });
                }
            }
        }
        self.lines += cut.lines;
    }
}
