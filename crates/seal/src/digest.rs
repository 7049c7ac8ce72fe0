//! SHA-256, as a value and as text.

use sha2::Digest as _;

use crate::hex::hex_newtype;

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

hex_newtype!(Digest, 32, "sha256:");

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
}
