//! What goes to standard output, and how text from strangers is made fit for it.

use std::io::{ErrorKind, Write};

pub(crate) use seal::{harmless, in_words};

use crate::Outcome;

pub(crate) fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has heard enough is no failure.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            tell(&format!("sayso: cannot write: {}", in_words(&error)));
            Outcome::Failed
        }
        _ => Outcome::Good,
    }
}

/// Tells the person at work something. A reader that has gone is no failure here either.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Text from strangers must not move the cursor, ring the bell or turn the line around.
pub(crate) fn printable(text: &str) -> String {
    harmless(text, |c| format!("\\u{{{c:x}}}"))
}

pub(crate) fn many(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

pub(crate) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
