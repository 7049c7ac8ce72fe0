//! Why a configuration could not be changed.

use std::io;
use std::path::PathBuf;

use seal::describe_io_error;

/// Why a configuration could not be changed. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A file or folder cannot be used.
    #[error("cannot {action} {}: {}", path.display(), describe_io_error(source))]
    Io {
        /// What was attempted, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is too long.
    #[error("{} is longer than {limit} bytes, so it is not changed", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The maximum length.
        limit: u64,
    },
    /// The file is not what a configuration file should be, so editing it could destroy it.
    #[error("{} is not changed: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another program changed the file in the meantime.
    #[error("{} was changed by another program in the meantime, so it is left unchanged; run the command again", path.display())]
    ChangedByAnotherProgram {
        /// The file.
        path: PathBuf,
    },
    /// An environment variable that names a folder is missing.
    #[error("{0} is not set, so the configuration cannot be found")]
    NoFolder(&'static str),
}

impl SetupError {
    /// Returns a function that adds the action and the path to an I/O error.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn unusable(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Unusable { path: path.into(), reason: reason.into() }
    }
}
