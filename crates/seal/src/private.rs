//! Files that only their owner can read: where keys and the hashes of tokens are kept.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Error, Read};
use std::path::Path;

use zeroize::Zeroizing;

/// Why such a file was not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotPrivate {
    /// The system said no.
    Io(Error),
    /// Others than its owner can read or change it; its mode.
    Open(u32),
    /// Longer than it may be: of what is not read whole, nothing is believed.
    TooLong(u64),
}

impl fmt::Display for NotPrivate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => f.write_str(&crate::in_words(error)),
            Self::Open(mode) => {
                write!(f, "others can read or change it (mode {mode:o}); run chmod 600 on it")
            }
            Self::TooLong(longest) => write!(f, "longer than {longest} bytes"),
        }
    }
}

impl std::error::Error for NotPrivate {}

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

/// Reads such a file whole, if nobody but its owner can read or change it. What was read is wiped when it is dropped.
pub fn read(path: &Path, longest: u64) -> Result<Zeroizing<String>, NotPrivate> {
    let file = File::open(path).map_err(NotPrivate::Io)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_err(NotPrivate::Io)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(NotPrivate::Open(mode));
        }
    }
    let mut text = Zeroizing::new(String::new());
    file.take(longest.saturating_add(1)).read_to_string(&mut text).map_err(NotPrivate::Io)?;
    if text.len() as u64 > longest { Err(NotPrivate::TooLong(longest)) } else { Ok(text) }
}
