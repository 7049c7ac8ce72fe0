//! The real binary, run until it ends.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// How a run ended.
pub struct Finished {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Finished {
    /// The lines on standard output, without the closing one.
    pub fn findings(&self) -> Vec<&str> {
        let mut lines: Vec<_> = self.out.lines().collect();
        lines.pop();
        lines
    }

    /// The closing line.
    pub fn summary(&self) -> &str {
        self.out.lines().next_back().unwrap_or_default()
    }
}

/// The binary `sayso`, which Cargo builds before the tests of its package.
pub fn binary() -> PathBuf {
    let built = std::env::var_os("CARGO_BIN_EXE_sayso").map(PathBuf::from);
    // A test program that is run without Cargo lies in a folder below the binary's.
    built.unwrap_or_else(|| {
        let program = std::env::current_exe().unwrap();
        let folder = program.parent().and_then(|deps| deps.parent()).unwrap();
        folder.join(format!("sayso{}", std::env::consts::EXE_SUFFIX))
    })
}

/// The binary, not yet started.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it with this on standard input.
pub fn sayso(arguments: &[&str], input: impl AsRef<[u8]> + Sync) -> Finished {
    sayso_fed(arguments, |stdin| stdin.write_all(input.as_ref()))
}

/// Runs it with whatever `feed` writes to standard input, which may be more than memory should hold.
pub fn sayso_fed(arguments: &[&str], feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send) -> Finished {
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

/// Makes a token and adds it to a file.
pub fn token(file: &str, rest: &[&str]) -> String {
    let made = command(&["token", "new", "--tokens", file]).args(rest).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

/// Sends a signal, such as `-TERM`, to a process.
pub fn signal(process: &str, signal: &str) {
    assert!(Command::new("kill").args([signal, process]).status().unwrap().success());
}

/// What every run keeps: an exit code that was promised, text in UTF-8, and no panic.
pub fn ended(output: std::process::Output) -> Finished {
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    let code = output.status.code().unwrap_or_else(|| panic!("killed: {:?}", output.status));
    assert!((0..=2).contains(&code), "exit code {code}: {err}");
    Finished { code, out, err }
}
