//! Runs the real binary until it exits.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long a process may run before it is killed and the test fails. Long enough for slow machines.
const MAX_RUN_TIME: Duration = Duration::from_mins(3);

/// Kills a process that runs too long, so that a test fails instead of waiting forever. Dropping the timer stops it.
pub struct KillTimer {
    _stopped_when_dropped: Sender<()>,
}

impl KillTimer {
    /// Starts a timer for the process with this id.
    pub fn start(process: u32) -> Self {
        let (sender, stopped) = channel::<()>();
        std::thread::spawn(move || {
            if stopped.recv_timeout(MAX_RUN_TIME) == Err(RecvTimeoutError::Timeout) {
                eprintln!("process {process} did not exit, so it is killed");
                let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
            }
        });
        Self { _stopped_when_dropped: sender }
    }
}

/// The result of a run.
pub struct CommandOutput {
    pub exit_code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    /// Returns the lines on standard output, without the summary line.
    pub fn findings(&self) -> Vec<&str> {
        let mut lines: Vec<_> = self.stdout.lines().collect();
        lines.pop();
        lines
    }

    /// Returns the last line on standard output.
    pub fn summary(&self) -> &str {
        self.stdout.lines().next_back().unwrap_or_default()
    }
}

/// Returns the path of the `sayso` binary, which Cargo builds before the tests of its package.
pub fn binary() -> PathBuf {
    let built = std::env::var_os("CARGO_BIN_EXE_sayso").map(PathBuf::from);
    // If a test program runs without Cargo, the binary is in the parent of the program's folder.
    built.unwrap_or_else(|| {
        let program = std::env::current_exe().unwrap();
        let folder = program.parent().and_then(|deps| deps.parent()).unwrap();
        folder.join(format!("sayso{}", std::env::consts::EXE_SUFFIX))
    })
}

/// Creates a command for the binary.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the binary with this standard input.
pub fn run_sayso(arguments: &[&str], input: impl AsRef<[u8]> + Sync) -> CommandOutput {
    run_sayso_with_input(arguments, |stdin| stdin.write_all(input.as_ref()))
}

/// Runs the binary. `feed` writes the standard input, which may be larger than memory.
pub fn run_sayso_with_input(
    arguments: &[&str],
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> CommandOutput {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _timer = KillTimer::start(child.id());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The binary may exit before it has read everything.
            let _ = feed(&mut stdin);
        });
        check_output(child.wait_with_output().unwrap())
    })
}

/// Creates a token and adds it to a token file. Returns the token.
pub fn create_token(file: &str, arguments: &[&str]) -> String {
    let output = command(&["token", "new", "--tokens", file]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes a file that only its owner can read, such as a private key.
pub fn write_private_file(path: &std::path::Path, text: &str) {
    let mut options = seal::private_file::open_options();
    let mut file = options.write(true).create(true).truncate(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Sends a signal, such as `-TERM`, to a process.
pub fn send_signal(process: &str, signal: &str) {
    assert!(Command::new("kill").args([signal, process]).status().unwrap().success());
}

/// Checks that a run ended with a documented exit code, UTF-8 output and no panic.
pub fn check_output(output: std::process::Output) -> CommandOutput {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    let exit_code = output.status.code().unwrap_or_else(|| panic!("killed: {:?}", output.status));
    assert!((0..=2).contains(&exit_code), "exit code {exit_code}: {stderr}");
    CommandOutput { exit_code, stdout, stderr }
}
