//! Runs the real binary as a hub in its own process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::cli::{KillTimer, binary};
use crate::http::{TIMEOUT, TestClient};

/// The exit code and the output of a hub that did not start.
pub type StartFailure = (Option<i32>, Vec<String>);

/// Returns a loopback address that is not in use. Its port is outside the ephemeral range, so a hub can be
/// started and restarted there.
pub fn reserved_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let offset = u16::try_from(std::process::id() % 100).unwrap() * 120;
    loop {
        let port = 20_000 + (offset + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        if let Ok(listener) = std::net::TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr().unwrap().to_string();
        }
    }
}

/// A hub that runs until it is dropped.
pub struct HubProcess {
    child: Child,
    pub address: String,
    /// The lines that the hub wrote to standard error before it was listening.
    pub startup_lines: Vec<String>,
    log_lines: Receiver<String>,
}

impl HubProcess {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_command(Command::new(binary()).arg("serve").args(arguments))
    }

    /// Starts a hub with this command. Panics if the command exits before the hub is listening.
    pub fn start_command(command: &mut Command) -> Self {
        Self::try_start_command(command)
            .unwrap_or_else(|(code, startup_lines)| panic!("the hub exited with {code:?}: {startup_lines:?}"))
    }

    /// Starts a hub with this command. Returns an error if the command exits before the hub is listening.
    pub fn try_start_command(command: &mut Command) -> Result<Self, StartFailure> {
        Self::spawn(command.stdin(Stdio::null()).stdout(Stdio::null()))
    }

    /// Starts a hub whose standard input and output are pipes. Returns the hub and the pipes.
    pub fn start_with_pipes(command: &mut Command) -> (Self, (ChildStdin, ChildStdout)) {
        let started = Self::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut hub = started.unwrap_or_else(|(code, startup_lines)| {
            panic!("the hub exited with {code:?}: {startup_lines:?}")
        });
        let pipes = hub.child.stdin.take().zip(hub.child.stdout.take()).unwrap();
        (hub, pipes)
    }

    fn spawn(command: &mut Command) -> Result<Self, StartFailure> {
        #[allow(clippy::zombie_processes, reason = "dropping the hub waits for the process")]
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let _timer = KillTimer::start(child.id());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut startup_lines = Vec::new();
        loop {
            let Some(line) = lines.next() else { return Err((child.wait().unwrap().code(), startup_lines)) };
            let line = line.unwrap();
            let http_address = line.strip_prefix("listening on http://");
            if let Some(address) = http_address.or_else(|| line.strip_prefix("listening on https://")) {
                let address = address.to_owned();
                // A thread reads all later output, so that the hub never blocks on a full pipe.
                let (sender, log_lines) = channel();
                std::thread::spawn(move || {
                    for line in lines.map_while(Result::ok) {
                        let _ = sender.send(line);
                    }
                });
                return Ok(Self { child, address, startup_lines, log_lines });
            }
            startup_lines.push(line);
        }
    }

    pub fn start_in_memory() -> Self {
        Self::start(&["--memory", "--open", "--listen", "127.0.0.1:0"])
    }

    /// Starts a hub in memory with these additional arguments.
    pub fn start_in_memory_with(arguments: &[&str]) -> Self {
        Self::start(&[&["--memory", "--open", "--listen", "127.0.0.1:0"], arguments].concat())
    }

    pub fn start_on_disk(folder: &Path) -> Self {
        Self::start(&["--open", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()])
    }

    pub fn client(&self) -> TestClient {
        TestClient::new(&self.address)
    }

    /// Reads the admin token that a hub without tokens creates, from the file that it names at startup.
    pub fn admin_token(&self) -> String {
        let path = self.startup_lines.iter().find_map(|line| line.strip_prefix("the admin token is in "));
        std::fs::read_to_string(path.expect("the path of the admin token")).unwrap().trim().to_owned()
    }

    /// Returns the process id.
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Returns how many file descriptors the process has open.
    pub fn open_descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("the hub runs").count()
    }

    /// Waits for the next log line that contains this text.
    pub fn wait_for_log(&self, part: &str) -> String {
        loop {
            let line = self
                .log_lines
                .recv_timeout(TIMEOUT)
                .unwrap_or_else(|_| panic!("the log does not contain {part:?}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Stops the hub and returns the rest of its log.
    pub fn stop_and_collect_log(mut self) -> Vec<String> {
        assert_eq!(self.stop(), 0);
        self.log_lines.iter().collect()
    }

    /// Kills the hub without a clean shutdown.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the hub to stop, and returns its exit code.
    pub fn stop(&mut self) -> i32 {
        self.signal("-TERM");
        self.wait().unwrap()
    }

    pub fn signal(&self, signal: &str) {
        crate::cli::send_signal(&self.pid(), signal);
    }

    /// Waits for the hub to exit. Returns its exit code, or `None` if a signal ended it.
    pub fn wait(&mut self) -> Option<i32> {
        let _timer = KillTimer::start(self.child.id());
        self.child.wait().unwrap().code()
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
