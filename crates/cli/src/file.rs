//! Files that a command reads whole, with a limit, and why it cannot go on.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::Outcome;
use crate::print::{in_words, print, printable, tell};

/// Why there is nothing to go on with: what the words are about, and the words.
pub(crate) struct Stop {
    outcome: Outcome,
    words: String,
}

impl Stop {
    /// The thing examined has a fault.
    pub(crate) fn fault(words: impl Into<String>) -> Self {
        Self { outcome: Outcome::Faults, words: words.into() }
    }

    /// The command cannot run.
    pub(crate) fn failed(words: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, words: words.into() }
    }

    /// A fault is a finding; everything else is for the person at work.
    pub(crate) fn tell(self) -> Outcome {
        if self.outcome == Outcome::Faults {
            return print(&format!("{}\n", self.words)).max(Outcome::Faults);
        }
        tell(&format!("sayso: {}", self.words));
        self.outcome
    }
}

impl From<String> for Stop {
    fn from(words: String) -> Self {
        Self::failed(words)
    }
}

/// Reads a file; `-` is standard input. What is longer than the limit cannot be read; `more` says what could be done.
pub(crate) fn read(path: &Path, limit: u64, more: &str) -> Result<Vec<u8>, Stop> {
    let failed = |why: &str| Stop::failed(format!("cannot read {}: {why}", name(path)));
    let most = limit.saturating_add(1);
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    match read {
        Err(error) => Err(failed(&in_words(&error))),
        Ok(_) if bytes.len() as u64 > limit => Err(failed(&format!("it is longer than {limit} bytes{more}"))),
        Ok(_) => Ok(bytes),
    }
}

/// Makes a folder, and those above it, for its owner alone: what is kept there was said in confidence.
pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    let mut folder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.recursive(true).create(path)
}

/// How a file is called in what is printed.
pub(crate) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "stdin".to_owned() } else { printable(&path.to_string_lossy()) }
}
