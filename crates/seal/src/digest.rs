//! SHA-256, as a value and as text.

use std::fmt;

use sha2::Digest as _;

use crate::hex;

/// A SHA-256 hash. Its text is `sha256:` and 64 lower-case hexadecimal digits (ASP, D13).
///
/// ```
/// use seal::Digest;
/// let empty = Digest::of(b"");
/// assert!(empty.to_string().starts_with("sha256:e3b0c442"));
/// assert_eq!(Digest::parse(&empty.to_string()), Some(empty));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// 64 zeros: what the first link of a chain points to.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The hash of these pieces, one after the other.
    pub fn of_all<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut hash = sha2::Sha256::new();
        for piece in pieces {
            hash.update(piece);
        }
        Self(hash.finalize().into())
    }

    /// Reads the text form; anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        hex::read(text.strip_prefix("sha256:")?).map(Self)
    }

    /// The digest with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        hex::write(f, &self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
