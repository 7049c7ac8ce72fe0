//! Text in pieces: what may be the beginning of a secret waits for the rest.

use aaep::secret::judged_prefix;

use super::Cleaner;

/// The end of a text that may go on.
#[derive(Debug, Default)]
pub(crate) struct Held(String);

/// No more bytes wait: a secret that is longer is seen by its beginning.
const MOST: usize = 4096;

/// Characters of a private key's armour that tell its beginning or its end.
const KEPT: usize = 64;

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a piece, and gives what can be told now.
    pub(crate) fn push(&mut self, piece: &str, complete: bool, cleaner: &Cleaner) -> String {
        self.0.push_str(piece);
        let cut = if complete { self.0.len() } else { judged_prefix(&self.0, MOST) };
        let rest = self.0.split_off(cut);
        let whole = std::mem::replace(&mut self.0, rest);
        if self.0.len() > 2 * MOST {
            // A private key: only its beginning and its end matter, and the text between is nobody's business.
            let tail = self.0.char_indices().rev().nth(KEPT).map_or(0, |(at, _)| at);
            let head = self.0.char_indices().nth(KEPT).map_or(0, |(at, _)| at);
            self.0.replace_range(head..tail, "");
        }
        cleaner.clean(&whole).into_owned()
    }
}
