//! The real binary as a hub in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::cli::binary;
use crate::http::{Client, TIMEOUT};

/// The exit code and the output of a hub that did not start.
pub type FailedStart = (Option<i32>, Vec<String>);

/// An address on which nobody listens. Its port is outside the range that the system hands out, so a hub can be started and
/// restarted there.
pub fn reserved_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 100).unwrap() * 120;
    loop {
        let port = 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        if let Ok(free) = std::net::TcpListener::bind(("127.0.0.1", port)) {
            return free.local_addr().unwrap().to_string();
        }
    }
}

/// A hub that runs until it is dropped.
pub struct Hub {
    child: Child,
    pub address: String,
    /// What it said before it listened.
    pub said: Vec<String>,
    later: Receiver<String>,
}

impl Hub {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_as(Command::new(binary()).arg("serve").args(arguments))
    }

    /// Starts it by a command that becomes it.
    pub fn start_as(command: &mut Command) -> Self {
        Self::run(command).unwrap_or_else(|(code, said)| panic!("it ended with {code:?}: {said:?}"))
    }

    /// Runs a command that becomes a hub, or ends.
    pub fn run(command: &mut Command) -> Result<Self, FailedStart> {
        Self::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()))
    }

    /// Starts it with a listener on its standard input and output, which are returned.
    pub fn with_pipes(command: &mut Command) -> (Self, (ChildStdin, ChildStdout)) {
        let started = Self::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut hub = started.unwrap_or_else(|(code, said)| panic!("it ended with {code:?}: {said:?}"));
        let pipes = hub.child.stdin.take().zip(hub.child.stdout.take()).unwrap();
        (hub, pipes)
    }

    fn spawn(command: &mut Command) -> Result<Self, FailedStart> {
        #[allow(clippy::zombie_processes, reason = "it is waited for when the hub is dropped")]
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        loop {
            let Some(line) = lines.next() else { return Err((child.wait().unwrap().code(), said)) };
            let line = line.unwrap();
            let plain = line.strip_prefix("listening on http://");
            if let Some(address) = plain.or_else(|| line.strip_prefix("listening on https://")) {
                let address = address.to_owned();
                // What it says later must not block it.
                let (tell, later) = channel();
                std::thread::spawn(move || {
                    for line in lines.map_while(Result::ok) {
                        let _ = tell.send(line);
                    }
                });
                return Ok(Self { child, address, said, later });
            }
            said.push(line);
        }
    }

    pub fn open() -> Self {
        Self::start(&["--memory", "--open", "--listen", "127.0.0.1:0"])
    }

    /// In memory, with these limits.
    pub fn limited(limits: &[&str]) -> Self {
        Self::start(&[&["--memory", "--open", "--listen", "127.0.0.1:0"], limits].concat())
    }

    pub fn on_disk(folder: &Path) -> Self {
        Self::start(&["--open", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()])
    }

    pub fn client(&self) -> Client {
        Client::of(&self.address)
    }

    /// Its process id.
    pub fn id(&self) -> String {
        self.child.id().to_string()
    }

    /// The next line of its log that has this in it.
    pub fn logs(&self, part: &str) -> String {
        loop {
            let line = self.later.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("no {part} in the log"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Asks it to stop, and returns the rest of its log.
    pub fn stop_and_read_log(mut self) -> Vec<String> {
        assert_eq!(self.stop(), 0);
        self.later.iter().collect()
    }

    /// Kills it without a word.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop, and returns its exit code.
    pub fn stop(&mut self) -> i32 {
        self.signal("-TERM");
        self.wait().unwrap()
    }

    pub fn signal(&self, signal: &str) {
        crate::cli::signal(&self.id(), signal);
    }

    /// Waits for its end; its exit code, unless a signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
