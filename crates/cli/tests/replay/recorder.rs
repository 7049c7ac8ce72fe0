//! `sayso capture` at work, and what it has written.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use testing::messages::kind;

/// Nothing takes longer that comes at all.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A recorder that runs until it is dropped.
pub(crate) struct Recorder {
    child: Child,
    file: PathBuf,
    said: Receiver<String>,
}

impl Recorder {
    /// Records into that file, once it is connected.
    pub(crate) fn starts(url: &str, file: &Path, arguments: &[&str]) -> Self {
        let recorder = Self::begins(url, file, arguments);
        recorder.says("Recording ");
        recorder
    }

    /// The same, whether it comes to be connected or not.
    pub(crate) fn begins(url: &str, file: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.args(["capture", url, "-o", file.to_str().unwrap()]).args(arguments);
        Self::run(&mut command, file)
    }

    /// A command that becomes one.
    pub(crate) fn run(command: &mut Command, file: &Path) -> Self {
        command.env_remove("SAYSO_TOKEN").stdin(Stdio::null()).stdout(Stdio::null());
        #[allow(clippy::zombie_processes, reason = "it is waited for when the recorder is dropped")]
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (tell, said) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self { child, file: file.to_owned(), said }
    }

    /// The next line that has this in it.
    pub(crate) fn says(&self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.said.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(why) => {
                    panic!("it did not say {part:?}: {why}; {:?}", std::fs::read_to_string(&self.file))
                }
            }
        }
    }

    /// Waits until this stands in the recording so many times.
    pub(crate) fn has(&self, part: &str, times: usize) {
        let until = Instant::now() + PATIENCE;
        while std::fs::read_to_string(&self.file).unwrap_or_default().matches(part).count() < times {
            assert!(Instant::now() < until, "no {part} came {times} times: {:?}", events(&self.file));
            std::thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Ends it by a signal: its exit code, and what it has said since.
    pub(crate) fn stop(mut self, signal: &str) -> (Option<i32>, Vec<String>) {
        self.signal(signal);
        self.ends()
    }

    pub(crate) fn ends(&mut self) -> (Option<i32>, Vec<String>) {
        let code = self.child.wait().unwrap().code();
        (code, self.said.iter().collect())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every line of a recording.
pub(crate) fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect()
}

/// Its events.
pub(crate) fn events(file: &Path) -> Vec<Value> {
    lines(file).into_iter().filter(|line| line["event_id"].is_string()).collect()
}

/// The types of what stands in it.
pub(crate) fn kinds(file: &Path) -> Vec<String> {
    lines(file).iter().map(|line| kind(line).to_owned()).collect()
}

/// A recording of the repository.
pub(crate) fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(format!("{name}.jsonl"))
}
