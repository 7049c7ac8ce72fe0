//! Reads files up to a size limit, and defines the error type of the commands.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::ExitStatus;
use crate::output::{describe_io_error, print_stderr, print_stdout, printable};

/// Why a command failed: its exit status and a message.
pub(crate) struct CommandError {
    status: ExitStatus,
    message: String,
}

impl CommandError {
    /// Creates an error for invalid input. The exit code is that of a failed check.
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self { status: ExitStatus::Negative, message: message.into() }
    }

    /// Creates an error for a command that cannot run.
    pub(crate) fn cannot_run(message: impl Into<String>) -> Self {
        Self { status: ExitStatus::CannotRun, message: message.into() }
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the message and returns the exit status. Faults in the input go to stdout, because they are the command's result. All other errors go to stderr.
    pub(crate) fn report(self) -> ExitStatus {
        if self.status == ExitStatus::Negative {
            return print_stdout(&format!("{}\n", self.message)).max(ExitStatus::Negative);
        }
        print_stderr(&format!("sayso: {}", self.message));
        self.status
    }
}

impl From<String> for CommandError {
    fn from(message: String) -> Self {
        Self::cannot_run(message)
    }
}

/// Reads a file; `-` is standard input. Fails if the file is longer than `limit` bytes. That error message ends with `hint`.
pub(crate) fn read(path: &Path, limit: u64, hint: &str) -> Result<Vec<u8>, CommandError> {
    let read_error =
        |reason: &str| CommandError::cannot_run(format!("cannot read {}: {reason}", display_name(path)));
    let read_limit = limit.saturating_add(1);
    let mut bytes = Vec::new();
    let result = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(read_limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(read_limit).read_to_end(&mut bytes))
    };
    match result {
        Err(error) => Err(read_error(&describe_io_error(&error))),
        Ok(_) if bytes.len() as u64 > limit => {
            Err(read_error(&format!("it is longer than {limit} bytes{hint}")))
        }
        Ok(_) => Ok(bytes),
    }
}

/// Creates a directory and its parents, accessible only to the owner because the data is confidential.
pub(crate) fn create_private_dir(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Returns the name of a file for messages.
pub(crate) fn display_name(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".to_owned() } else { printable(&path.to_string_lossy()) }
}
