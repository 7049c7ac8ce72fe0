//! Reads the items of a recording one by one, for `sayso replay` and `sayso capture`. The items are the same
//! as those of `sayso validate`.

use std::collections::VecDeque;
use std::io::{self, Read};

use super::splitter::{BlockItems, InputBlock, ItemError, Splitter};

/// Default maximum size of an item.
pub(crate) const MAX_ITEM_BYTES: usize = 1_114_112;

/// One event or message, or why it could not be read.
pub(crate) struct RecordingItem {
    /// The line on which the item starts, counted from 1.
    pub(crate) line: u64,
    pub(crate) bytes: Result<Vec<u8>, ItemError>,
}

/// Reads a recording. Holds at most one block in memory.
pub(crate) struct ItemReader<R> {
    splitter: Splitter<R>,
    pending: VecDeque<RecordingItem>,
    /// Number of lines in the earlier blocks.
    lines_before: u64,
}

impl<R: Read> ItemReader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { splitter: Splitter::new(input, MAX_ITEM_BYTES), pending: VecDeque::new(), lines_before: 0 }
    }

    /// Returns the next item; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<RecordingItem>> {
        loop {
            if let Some(item) = self.pending.pop_front() {
                return Ok(Some(item));
            }
            let Some(block) = self.splitter.next()? else { return Ok(None) };
            self.add_block(&block);
        }
    }

    fn add_block(&mut self, block: &InputBlock) {
        match &block.items {
            BlockItems::Lines => {
                for (line, number) in block.bytes.split(|byte| *byte == b'\n').zip(1..) {
                    if !line.iter().all(u8::is_ascii_whitespace) {
                        let bytes = if line.len() > MAX_ITEM_BYTES {
                            Err(ItemError::Oversized)
                        } else {
                            Ok(line.to_vec())
                        };
                        self.pending.push_back(RecordingItem { line: self.lines_before + number, bytes });
                    }
                }
            }
            BlockItems::Spans(spans) => {
                for span in spans {
                    let bytes = match span.error {
                        Some(error) => Err(error),
                        None => Ok(block.bytes.get(span.start..span.end).unwrap_or_default().to_vec()),
                    };
                    self.pending.push_back(RecordingItem { line: self.lines_before + span.line, bytes });
                }
            }
        }
        self.lines_before += block.lines;
    }
}
