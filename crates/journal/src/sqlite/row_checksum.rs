//! Row checksums.
//!
//! SQLite has checksums in its write-ahead log but none in its main file. There, a flipped bit could turn a rejection
//! into an acceptance. So every row stores 64 bits of a SHA-256 hash, except for index rows and reply attempts. The hash
//! covers the name of the table, the columns that are read back, and the lengths of texts and byte strings. For events it
//! omits the name of the table, and the length of the body, because the body comes last.

use seal::Digest;

/// Builds the checksum of a row from its table and its columns in order.
pub(super) struct RowChecksum(Vec<u8>);

impl RowChecksum {
    pub(super) fn for_table(table: &str) -> Self {
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

    /// Adds a column that may be `NULL`. `NULL` and an empty value give different checksums.
    pub(super) fn optional_bytes(mut self, bytes: Option<&[u8]>) -> Self {
        self.0.push(u8::from(bytes.is_some()));
        self.bytes(bytes.unwrap_or_default())
    }

    pub(super) fn optional_number(mut self, number: Option<i64>) -> Self {
        self.0.push(u8::from(number.is_some()));
        self.number(number.unwrap_or_default())
    }

    pub(super) fn finish(self) -> i64 {
        first_64_bits(&Digest::of(&self.0))
    }
}

/// The digest of all sessions and questions: the sum of the checksums of their rows. A change of one row changes it
/// without reading the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LedgerDigest(i64);

impl LedgerDigest {
    /// The digest of a journal without sessions.
    pub(super) const EMPTY: Self = Self(0);

    pub(super) fn add(&mut self, checksum: i64) {
        self.0 = self.0.wrapping_add(checksum);
    }

    pub(super) fn remove(&mut self, checksum: i64) {
        self.0 = self.0.wrapping_sub(checksum);
    }

    pub(super) fn to_le_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    pub(super) fn from_le_bytes(bytes: [u8; 8]) -> Self {
        Self(i64::from_le_bytes(bytes))
    }
}

/// Returns the checksum of an event, without copying its body.
pub(super) fn event_checksum(
    position: i64,
    session: i64,
    at: i64,
    is_critical: bool,
    id: &str,
    body: &[u8],
) -> i64 {
    let mut header = [0; 33];
    let numbers = [position, session, at, i64::try_from(id.len()).unwrap_or(i64::MAX)];
    for (field, number) in header.chunks_exact_mut(8).zip(numbers) {
        field.copy_from_slice(&number.to_le_bytes());
    }
    header[32] = u8::from(is_critical);
    first_64_bits(&Digest::of_parts([&header[..], id.as_bytes(), body]))
}

fn first_64_bits(digest: &Digest) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    i64::from_le_bytes(first)
}
