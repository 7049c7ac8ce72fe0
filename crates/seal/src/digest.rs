//! SHA-256 hashes and their text form.

use std::io::{self, Read};

use sha2::Digest as _;

use crate::hex::hex_newtype;

/// A SHA-256 hash. Its text form is `sha256:` and 64 lower-case hexadecimal digits (ASP, D13).
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
    /// The all-zero hash, which the first entry of a hash chain uses as the hash of its predecessor.
    pub const ZERO: Self = Self([0; 32]);

    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Hashes the concatenation of several byte slices.
    pub fn of_parts<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut hasher = sha2::Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Hashes everything that the reader returns.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let (mut hasher, mut buffer) = (sha2::Sha256::new(), vec![0; 1 << 16]);
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(Self(hasher.finalize().into())),
                count => hasher.update(&buffer[..count]),
            }
        }
    }
}
