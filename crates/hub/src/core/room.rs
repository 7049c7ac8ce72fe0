//! What a turn needs again and again, kept so that it is made once.

use aaep::Timestamp;
use aaep::json::{Scribe, Tape};
use seal::{Random, UnixMillis};

use crate::command::Output;

/// Room that turns use again.
#[derive(Default)]
pub(super) struct Room {
    /// To read what an agent says.
    pub(super) said: Tape,
    /// To write the event that is made of it.
    pub(super) event: Scribe,
    /// Texts of events that are written by now: the next are written in their room.
    pub(super) texts: Vec<String>,
    /// What the hub's own events were written with, for the next ones.
    own: Vec<Scribe>,
    /// To write an id.
    pub(super) id: String,
    /// What follows from a turn.
    pub(super) outputs: Vec<Output>,
    /// A time, and how it is written.
    pub(super) stamp: (UnixMillis, String),
}

/// So many texts are kept…
const TEXTS: usize = 16;
/// …if they have no more bytes.
const TEXT: usize = 16 * 1024;

impl Room {
    /// A text is not needed any more.
    pub(super) fn keep(&mut self, text: String) {
        if self.texts.len() < TEXTS && text.capacity() <= TEXT {
            self.texts.push(text);
        }
    }

    /// A scribe for an event of the hub's own.
    pub(super) fn scribe(&mut self) -> Scribe {
        self.own.pop().unwrap_or_default()
    }

    /// An event of the hub's own is not needed any more.
    pub(super) fn keep_scribe(&mut self, mut scribe: Scribe) {
        if self.own.len() < TEXTS && scribe.source().len() <= TEXT {
            scribe.clear();
            self.own.push(scribe);
        }
    }

    /// How a time is written.
    pub(super) fn stamp(&mut self, at: UnixMillis) -> &str {
        let (known, text) = &mut self.stamp;
        if *known != at || text.is_empty() {
            *text = Timestamp::from_unix_millis(at).map(|at| at.to_string()).unwrap_or_default();
            *known = at;
        }
        text
    }
}

/// So many random bytes are asked for at once: the system takes as long for a few as for many.
const AT_ONCE: usize = 512;

/// Where randomness comes from.
type Source = dyn FnMut(&mut [u8]) + Send;

/// Random bytes, each given out once.
pub(super) struct Dice {
    source: Box<Source>,
    bytes: Box<[u8; AT_ONCE]>,
    used: usize,
}

impl Dice {
    pub(super) fn new(source: impl FnMut(&mut [u8]) + Send + 'static) -> Self {
        Self { source: Box::new(source), bytes: Box::new([0; AT_ONCE]), used: AT_ONCE }
    }
}

impl Random for Dice {
    fn fill(&mut self, bytes: &mut [u8]) {
        let mut wanted = bytes;
        while !wanted.is_empty() {
            if self.used >= AT_ONCE {
                (self.source)(self.bytes.as_mut_slice());
                self.used = 0;
            }
            let length = wanted.len().min(AT_ONCE - self.used);
            let (now, later) = wanted.split_at_mut(length);
            if let Some(next) = self.bytes.get_mut(self.used..self.used + length) {
                now.copy_from_slice(next);
                // What was given out is not kept.
                next.fill(0);
            }
            self.used += length;
            wanted = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_of_the_source_and_given_out_once() {
        let mut next = 0_u32;
        let mut dice = Dice::new(move |bytes: &mut [u8]| {
            for byte in bytes {
                *byte = u8::try_from(next % 251).unwrap();
                next += 1;
            }
        });
        let mut expected = 0_u32;
        for length in [1, 7, 500, 16, 1_100, 0, 3] {
            let mut bytes = vec![0; length];
            dice.fill(&mut bytes);
            for byte in bytes {
                assert_eq!(u32::from(byte), expected % 251);
                expected += 1;
            }
        }
    }

    #[test]
    fn a_time_is_written_as_it_is_each_time() {
        let mut room = Room::default();
        for at in [0, 0, 1_767_603_600_000, 0].map(UnixMillis::new) {
            assert_eq!(room.stamp(at), Timestamp::from_unix_millis(at).unwrap().to_string());
        }
    }
}
