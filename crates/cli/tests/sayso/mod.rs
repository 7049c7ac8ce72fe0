//! Runs the real binary and waits for its end.

use std::io::{self, Write};
use std::process::{Command, Stdio};

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The lines on standard output, without the closing one.
    #[allow(dead_code, reason = "not every test file needs it")]
    pub(crate) fn findings(&self) -> Vec<&str> {
        let mut lines: Vec<_> = self.out.lines().collect();
        lines.pop();
        lines
    }

    /// The closing line.
    #[allow(dead_code, reason = "not every test file needs it")]
    pub(crate) fn summary(&self) -> &str {
        self.out.lines().next_back().unwrap_or_default()
    }
}

/// The binary, not yet started.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it with this on standard input.
pub(crate) fn sayso(arguments: &[&str], input: impl AsRef<[u8]> + Sync) -> Ended {
    sayso_fed(arguments, |stdin| stdin.write_all(input.as_ref()))
}

/// Runs it with whatever `feed` writes to standard input, which may be more than memory should hold.
pub(crate) fn sayso_fed(
    arguments: &[&str],
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> Ended {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // It may end before it has read everything; that is its own business.
            let _ = feed(&mut stdin);
        });
        ended(child.wait_with_output().unwrap())
    })
}

/// What every run keeps: an exit code that was promised, text in UTF-8, and no panic.
pub(crate) fn ended(output: std::process::Output) -> Ended {
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    let code = output.status.code().unwrap_or_else(|| panic!("killed: {:?}", output.status));
    assert!((0..=2).contains(&code), "exit code {code}: {err}");
    Ended { code, out, err }
}
