//! Writes to standard output and standard error, and escapes untrusted text.

use std::io::{ErrorKind, Write};

pub(crate) use seal::{describe_io_error, escape_controls};

use crate::ExitStatus;

pub(crate) fn print_stdout(text: &str) -> ExitStatus {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // It is not an error if the reader has closed the pipe.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            print_stderr(&format!("sayso: cannot write: {}", describe_io_error(&error)));
            ExitStatus::CannotRun
        }
        _ => ExitStatus::Success,
    }
}

/// Prints a message to standard error. A closed pipe is not an error.
pub(crate) fn print_stderr(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Escapes control characters and bidi overrides in untrusted text.
pub(crate) fn printable(text: &str) -> String {
    escape_controls(text, |c| format!("\\u{{{c:x}}}"))
}

pub(crate) fn pluralize(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

pub(crate) fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
