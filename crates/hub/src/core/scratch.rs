//! Buffers that turns reuse, to avoid allocations.

use aaep::Timestamp;
use aaep::json::{Tape, TapeWriter};
use seal::{Random, UnixMillis};

use crate::command::TurnOutput;

/// Buffers that are reused from turn to turn.
#[derive(Default)]
pub(super) struct ScratchBuffers {
    /// The tape of the agent's request that is being parsed.
    pub(super) request_tape: Tape,
    /// The writer of the event that is being written.
    pub(super) event_writer: TapeWriter,
    /// Strings of events that are already written, for reuse.
    pub(super) spare_texts: Vec<String>,
    /// Writers of the hub's own events, for reuse.
    spare_writers: Vec<TapeWriter>,
    /// The buffer for the text of an id.
    pub(super) id_text: String,
    /// The outputs of a turn.
    pub(super) outputs: Vec<TurnOutput>,
    /// The last formatted time, and its text.
    pub(super) last_timestamp: (UnixMillis, String),
}

/// Maximum number of spare strings, and of spare writers.
const MAX_SPARES: usize = 16;
/// Maximum size of a spare string or writer, in bytes.
const MAX_SPARE_BYTES: usize = 16 * 1024;

impl ScratchBuffers {
    /// Keeps a string for reuse.
    pub(super) fn recycle_text(&mut self, text: String) {
        if self.spare_texts.len() < MAX_SPARES && text.capacity() <= MAX_SPARE_BYTES {
            self.spare_texts.push(text);
        }
    }

    /// Returns a writer for one of the hub's own events.
    pub(super) fn take_writer(&mut self) -> TapeWriter {
        self.spare_writers.pop().unwrap_or_default()
    }

    /// Keeps a writer for reuse.
    pub(super) fn recycle_writer(&mut self, mut writer: TapeWriter) {
        if self.spare_writers.len() < MAX_SPARES && writer.source().len() <= MAX_SPARE_BYTES {
            writer.clear();
            self.spare_writers.push(writer);
        }
    }

    /// Formats a time; the last result is cached.
    pub(super) fn format_timestamp(&mut self, at: UnixMillis) -> &str {
        let (cached_at, text) = &mut self.last_timestamp;
        if *cached_at != at || text.is_empty() {
            *text = Timestamp::from_unix_millis(at).map(|at| at.to_string()).unwrap_or_default();
            *cached_at = at;
        }
        text
    }
}

/// Number of bytes to request from the system per call. A small request takes as long as a large one.
const POOL_BYTES: usize = 512;

/// A source of random bytes.
type RandomSource = dyn FnMut(&mut [u8]) + Send;

/// A pool of random bytes, each used once.
pub(super) struct RandomPool {
    source: Box<RandomSource>,
    bytes: Box<[u8; POOL_BYTES]>,
    used: usize,
}

impl RandomPool {
    pub(super) fn new(source: impl FnMut(&mut [u8]) + Send + 'static) -> Self {
        Self { source: Box::new(source), bytes: Box::new([0; POOL_BYTES]), used: POOL_BYTES }
    }
}

impl Random for RandomPool {
    fn fill(&mut self, bytes: &mut [u8]) {
        let mut remaining = bytes;
        while !remaining.is_empty() {
            if self.used >= POOL_BYTES {
                (self.source)(self.bytes.as_mut_slice());
                self.used = 0;
            }
            let length = remaining.len().min(POOL_BYTES - self.used);
            let (filled, rest) = remaining.split_at_mut(length);
            if let Some(next) = self.bytes.get_mut(self.used..self.used + length) {
                filled.copy_from_slice(next);
                // Used bytes are erased.
                next.fill(0);
            }
            self.used += length;
            remaining = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_random_byte_comes_from_the_source_and_is_used_once() {
        let mut next = 0_u32;
        let mut pool = RandomPool::new(move |bytes: &mut [u8]| {
            for byte in bytes {
                *byte = u8::try_from(next % 251).unwrap();
                next += 1;
            }
        });
        let mut expected = 0_u32;
        for length in [1, 7, 500, 16, 1_100, 0, 3] {
            let mut bytes = vec![0; length];
            pool.fill(&mut bytes);
            for byte in bytes {
                assert_eq!(u32::from(byte), expected % 251);
                expected += 1;
            }
        }
    }

    #[test]
    fn a_cached_timestamp_equals_a_new_one() {
        let mut scratch = ScratchBuffers::default();
        for at in [0, 0, 1_767_603_600_000, 0].map(UnixMillis::new) {
            assert_eq!(scratch.format_timestamp(at), Timestamp::from_unix_millis(at).unwrap().to_string());
        }
    }

    #[test]
    fn only_a_few_small_buffers_are_kept() {
        let mut scratch = ScratchBuffers::default();
        scratch.recycle_text(String::with_capacity(MAX_SPARE_BYTES + 1));
        assert_eq!(scratch.spare_texts.len(), 0);
        (0..=MAX_SPARES).for_each(|_| scratch.recycle_text(String::with_capacity(MAX_SPARE_BYTES)));
        assert_eq!(scratch.spare_texts.len(), MAX_SPARES);
        let writer = |bytes: usize| {
            let mut writer = TapeWriter::default();
            // The writer adds quotation marks.
            writer.text(&"x".repeat(bytes - 2));
            writer
        };
        scratch.recycle_writer(writer(MAX_SPARE_BYTES + 1));
        assert_eq!(scratch.spare_writers.len(), 0);
        (0..=MAX_SPARES).for_each(|_| scratch.recycle_writer(writer(MAX_SPARE_BYTES)));
        assert_eq!(scratch.spare_writers.len(), MAX_SPARES);
        assert_eq!(scratch.take_writer().source(), "", "a recycled writer is empty");
    }
}
