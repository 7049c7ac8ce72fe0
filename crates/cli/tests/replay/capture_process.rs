//! `sayso capture` as a child process, and the contents of its recording.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use testing::messages::short_type;

/// How long to wait before a test fails. Long enough for slow machines.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_mins(2);

/// A running recorder, which is killed on drop.
pub(crate) struct CaptureProcess {
    child: Child,
    file: PathBuf,
    stderr_lines: Receiver<String>,
}

impl CaptureProcess {
    /// Starts a recorder and waits until it is connected.
    pub(crate) fn start_connected(url: &str, file: &Path, arguments: &[&str]) -> Self {
        let recorder = Self::start(url, file, arguments);
        recorder.wait_for_line("Recording ");
        recorder
    }

    /// Starts a recorder without waiting for the connection.
    pub(crate) fn start(url: &str, file: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.args(["capture", url, "-o", file.to_str().unwrap()]).args(arguments);
        Self::run(&mut command, file)
    }

    /// Runs a prepared command as a recorder.
    pub(crate) fn run(command: &mut Command, file: &Path) -> Self {
        command.env_remove("SAYSO_TOKEN").stdin(Stdio::null()).stdout(Stdio::null());
        #[allow(clippy::zombie_processes, reason = "Drop waits for the child")]
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (line_tx, stderr_lines) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = line_tx.send(line);
            }
        });
        Self { child, file: file.to_owned(), stderr_lines }
    }

    /// Waits for a line on standard error that contains `part` and returns it.
    pub(crate) fn wait_for_line(&self, part: &str) -> String {
        let deadline = Instant::now() + READ_TIMEOUT;
        loop {
            match self.stderr_lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(error) => {
                    panic!(
                        "no line with {part:?}: {error}; recording: {:?}",
                        std::fs::read_to_string(&self.file)
                    )
                }
            }
        }
    }

    /// Waits until the recording contains `part` at least `times` times.
    pub(crate) fn wait_for_occurrences(&self, part: &str, times: usize) {
        let deadline = Instant::now() + READ_TIMEOUT;
        while std::fs::read_to_string(&self.file).unwrap_or_default().matches(part).count() < times {
            assert!(
                Instant::now() < deadline,
                "the recording does not contain {part} {times} times: {:?}",
                events(&self.file)
            );
            std::thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Ends the recorder with a signal. Returns the exit code and the unread lines of standard error.
    pub(crate) fn stop(mut self, signal: &str) -> (Option<i32>, Vec<String>) {
        self.signal(signal);
        self.wait_for_exit()
    }

    pub(crate) fn wait_for_exit(&mut self) -> (Option<i32>, Vec<String>) {
        let code = self.child.wait().unwrap().code();
        (code, self.stderr_lines.iter().collect())
    }
}

impl Drop for CaptureProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns all lines of a recording.
pub(crate) fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Returns the events of a recording.
pub(crate) fn events(file: &Path) -> Vec<Value> {
    lines(file).into_iter().filter(|line| line["event_id"].is_string()).collect()
}

/// Returns the type of each line of a recording, without its prefix.
pub(crate) fn recorded_types(file: &Path) -> Vec<String> {
    lines(file).iter().map(|line| short_type(line).to_owned()).collect()
}

/// Returns the path of a recording in the repository.
pub(crate) fn repository_recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(format!("{name}.jsonl"))
}
