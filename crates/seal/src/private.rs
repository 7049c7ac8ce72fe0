//! Files that only their owner can read: where keys and the hashes of tokens are kept.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::Zeroizing;

/// Why such a file could not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The system said no.
    #[error("{}: {}", .0.display(), crate::in_words(.1))]
    Io(PathBuf, #[source] io::Error),
    /// Others than its owner can read or change it; its mode.
    #[error("{path}: others can read or change it (mode {1:o}); run chmod 600 {path}", path = .0.display())]
    Open(PathBuf, u32),
    /// Longer than this many bytes: of what is not read whole, nothing is believed.
    #[error("{path}: longer than {1} bytes", path = .0.display())]
    TooLong(PathBuf, u64),
    /// It does not hold the two keys.
    #[error("{}: must hold one Ed25519 and one P-256 secret key as a JWK set", .0.display())]
    Form(PathBuf),
    /// It does not hold the one key.
    #[error("{}: must hold one P-256 secret key as a JWK", .0.display())]
    NotOne(PathBuf),
    /// It does not hold the 32 bytes of a secret.
    #[error("{}: must hold 32 secret bytes in base64url", .0.display())]
    NotMac(PathBuf),
}

impl KeyFileError {
    /// A file that is too long does not have the form that its reader wants.
    pub(crate) fn if_too_long(self, form: fn(PathBuf) -> Self) -> Self {
        match self {
            Self::TooLong(path, _) => form(path),
            other => other,
        }
    }
}

/// How such a file is made: for its owner alone. Whether it must be new is the caller's to add.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Writes such a file; one that is there already is left alone.
pub(crate) fn create(path: &Path, text: &str) -> Result<(), KeyFileError> {
    let wrong = |error| KeyFileError::Io(path.to_owned(), error);
    let mut file = options().write(true).create_new(true).open(path).map_err(wrong)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)
}

/// Reads such a file whole, if nobody but its owner can read or change it. What was read is wiped when it is dropped.
pub fn read(path: &Path, longest: u64) -> Result<Zeroizing<String>, KeyFileError> {
    let wrong = |error| KeyFileError::Io(path.to_owned(), error);
    let file = File::open(path).map_err(wrong)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_err(wrong)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::Open(path.to_owned(), mode));
        }
    }
    let mut text = Zeroizing::new(String::new());
    file.take(longest.saturating_add(1)).read_to_string(&mut text).map_err(wrong)?;
    if text.len() as u64 > longest { Err(KeyFileError::TooLong(path.to_owned(), longest)) } else { Ok(text) }
}
