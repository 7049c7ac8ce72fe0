//! Files that only their owner can read, for keys and token hashes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::Zeroizing;

/// Why a private file could not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// An I/O error.
    #[error("{}: {}", .0.display(), crate::describe_io_error(.1))]
    Io(PathBuf, #[source] io::Error),
    /// Users other than the owner can read or change the file, which has this mode.
    #[error("{path}: other users can read or change it (mode {1:o}); run chmod 600 {path}", path = .0.display())]
    InsecurePermissions(PathBuf, u32),
    /// The file is longer than this many bytes, so it was not read completely and is not used.
    #[error("{path} is longer than {1} bytes", path = .0.display())]
    TooLong(PathBuf, u64),
    /// The file does not contain the two agent keys.
    #[error("{} must contain one Ed25519 and one P-256 secret key as a JWK set", .0.display())]
    NotAgentKeys(PathBuf),
    /// The file does not contain one signing key.
    #[error("{} must contain one P-256 secret key as a JWK", .0.display())]
    NotSigningKey(PathBuf),
    /// The file does not contain a 32-byte secret.
    #[error("{} must contain 32 secret bytes in base64url", .0.display())]
    NotMacKey(PathBuf),
}

impl KeyFileError {
    /// Replaces [`Self::TooLong`] with the error for a wrong format.
    pub(crate) fn map_too_long(self, wrong_format: fn(PathBuf) -> Self) -> Self {
        match self {
            Self::TooLong(path, _) => wrong_format(path),
            other => other,
        }
    }
}

/// Returns options that create a file that only its owner can read or write. The caller adds the access mode and whether
/// the file must be new.
pub fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Writes a new private file. Fails if the file exists.
pub(crate) fn create(path: &Path, text: &str) -> Result<(), KeyFileError> {
    let io_error = |error| KeyFileError::Io(path.to_owned(), error);
    let mut file = open_options().write(true).create_new(true).open(path).map_err(io_error)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io_error)
}

/// Replaces the content of a private file. Writes a new file and renames it, so that a crash leaves either the old or the
/// new content. The new file has the owner of the old one, so that a program that runs as this owner can still read it.
pub fn replace(path: &Path, text: &str) -> Result<(), KeyFileError> {
    let io_error = |error| KeyFileError::Io(path.to_owned(), error);
    // If the path is a symbolic link, the file to which it points is replaced, not the link.
    let path = match std::fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        resolved => resolved.map_err(io_error)?,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let write_and_rename = || {
        // The file may be left from a crash. It is not opened, because it could be a symbolic link.
        match std::fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = open_options().write(true).create_new(true).open(&temporary)?;
        #[cfg(unix)]
        if let Ok(old) = std::fs::metadata(&path) {
            use std::os::unix::fs::MetadataExt as _;
            let new = file.metadata()?;
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
            }
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        // Makes the rename itself durable. Not every system can sync a folder.
        if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
        Ok(())
    };
    write_and_rename().map_err(io_error)
}

/// Reads a private file. Fails if anyone but its owner can read or change it. The text is erased from memory when it is
/// dropped.
pub fn read(path: &Path, max_bytes: u64) -> Result<Zeroizing<String>, KeyFileError> {
    let io_error = |error| KeyFileError::Io(path.to_owned(), error);
    let file = File::open(path).map_err(io_error)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_err(io_error)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyFileError::InsecurePermissions(path.to_owned(), mode));
        }
    }
    let mut text = Zeroizing::new(String::new());
    file.take(max_bytes.saturating_add(1)).read_to_string(&mut text).map_err(io_error)?;
    if text.len() as u64 > max_bytes {
        Err(KeyFileError::TooLong(path.to_owned(), max_bytes))
    } else {
        Ok(text)
    }
}
