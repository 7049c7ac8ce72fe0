//! Redaction of text that arrives in pieces. Text that may be the start of a secret waits for the rest.

use aaep::secret::decidable_prefix_len;

use super::CountingRedactor;

/// The held-back end of a text that may continue.
#[derive(Debug, Default)]
pub(crate) struct StreamRedactor(String);

/// The maximum number of bytes held back, except for a private key. A longer secret is recognised by its start.
const MAX_PENDING_BYTES: usize = 4096;

/// The number of characters at each end of a private key that are enough to recognise it.
const KEY_EDGE_CHARS: usize = 64;

impl StreamRedactor {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a piece and returns the text that can be published now.
    pub(crate) fn push(&mut self, piece: &str, is_complete: bool, redactor: &CountingRedactor) -> String {
        self.0.push_str(piece);
        let prefix_len =
            if is_complete { self.0.len() } else { decidable_prefix_len(&self.0, MAX_PENDING_BYTES) };
        let rest = self.0.split_off(prefix_len);
        let decided = std::mem::replace(&mut self.0, rest);
        if self.0.len() > 2 * MAX_PENDING_BYTES {
            // This is a private key. Only its start and its end are needed to recognise it, so the middle is dropped.
            let tail_start = self.0.char_indices().rev().nth(KEY_EDGE_CHARS).map_or(0, |(at, _)| at);
            let head_end = self.0.char_indices().nth(KEY_EDGE_CHARS).map_or(0, |(at, _)| at);
            self.0.replace_range(head_end..tail_start, "");
        }
        redactor.redact(&decided).into_owned()
    }
}
