//! What guards a row.
//!
//! SQLite has checksums in its write-ahead log and none in its file: a flipped bit could turn a no into a yes. So every row
//! that anything depends on carries 64 bits of a SHA-256 of its content, with its table and every length.

use seal::Digest;

/// The sum of a row: the table, then its columns in order.
pub(super) struct Sum(Vec<u8>);

impl Sum {
    pub(super) fn of(table: &str) -> Self {
        Self(Vec::with_capacity(256)).text(table)
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn number(mut self, number: i64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// A column that may be `NULL`, which is not the same as empty.
    pub(super) fn maybe(mut self, bytes: Option<&[u8]>) -> Self {
        self.0.push(u8::from(bytes.is_some()));
        self.bytes(bytes.unwrap_or_default())
    }

    pub(super) fn maybe_number(mut self, number: Option<i64>) -> Self {
        self.0.push(u8::from(number.is_some()));
        self.number(number.unwrap_or_default())
    }

    pub(super) fn done(self) -> i64 {
        short(&Digest::of(&self.0))
    }
}

/// The sum of an event, without copying its body.
pub(super) fn event(position: i64, session: i64, at: i64, critical: bool, id: &str, body: &[u8]) -> i64 {
    let mut head = [0; 33];
    let numbers = [position, session, at, i64::try_from(id.len()).unwrap_or(i64::MAX)];
    for (place, number) in head.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    head[32] = u8::from(critical);
    short(&Digest::of_all([&head[..], id.as_bytes(), body]))
}

fn short(digest: &Digest) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    i64::from_le_bytes(first)
}
