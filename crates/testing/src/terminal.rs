//! Runs `sayso listen` in a pseudo-terminal, as a person would.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::cli::binary;
use crate::http::TestClient;

/// How long to wait for output that must appear.
const READ_TIMEOUT: Duration = Duration::from_mins(2);

/// Opens a pseudo-terminal. Returns its controlling end, and the path of the end that a program opens.
pub fn pseudo_terminal() -> (File, String) {
    // Close-on-exec, so that processes that other tests start at the same time do not keep the terminal open.
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let path = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    (File::from(controller), path)
}

/// `sayso listen` in its own pseudo-terminal, without echo.
pub struct ListenProcess {
    child: Child,
    pty: File,
    lines: Receiver<Vec<u8>>,
    /// All bytes of output so far.
    pub raw_output: Vec<u8>,
}

impl ListenProcess {
    pub fn start(address: &str, arguments: &[&str]) -> Self {
        Self::start_with(address, arguments, |command| command)
    }

    pub fn start_with(
        address: &str,
        arguments: &[&str],
        configure: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        Self::start_at_url(&format!("http://{address}"), arguments, configure)
    }

    pub fn start_at_url(
        url: &str,
        arguments: &[&str],
        configure: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let listen: &[&str] = if arguments.contains(&"--answer-grace") {
            &["listen", url]
        } else {
            // A test answers faster than a person, and it reads the question first.
            &["listen", "--answer-grace", "0", url]
        };
        Self::start_command(&[listen, arguments].concat(), configure)
    }

    /// Starts `sayso` with these arguments.
    pub fn start_command(arguments: &[&str], configure: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let (controller, path) = pseudo_terminal();
        let open_device = || File::options().read(true).write(true).open(&path).unwrap();
        let device = open_device();
        let mut modes = tcgetattr(&device).unwrap();
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&device, OptionalActions::Now, &modes).unwrap();
        let mut command = Command::new(binary());
        command.args(arguments).env_remove("SAYSO_TOKEN");
        let command = configure(command.stdin(device).stdout(open_device()).stderr(open_device()));
        #[allow(clippy::zombie_processes, reason = "dropping the `ListenProcess` waits for the process")]
        let child = command.spawn().unwrap();
        // Closes this process's handles to the terminal. Open handles would prevent an end of file.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (sender, lines) = channel();
        let reader = controller.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                let _ = sender.send(std::mem::take(&mut line));
            }
        });
        Self { child, pty: controller, lines, raw_output: Vec::new() }
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) {
        self.pty.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends end of file.
    pub fn send_eof(&mut self) {
        self.pty.write_all(&[4]).unwrap();
    }

    /// Returns the next line of output, or `None` at the end.
    pub fn next_line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(READ_TIMEOUT) {
            Ok(line) => {
                self.raw_output.extend_from_slice(&line);
                let line = String::from_utf8(line).unwrap();
                Some(line.trim_end_matches(['\r', '\n']).to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("no more output after {}", String::from_utf8_lossy(&self.raw_output))
            }
        }
    }

    /// Returns all lines up to and including the first one that contains this text.
    pub fn read_until(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::new();
        // A listener keeps announcing, so lines can come even if the expected one never does.
        let deadline = Instant::now() + READ_TIMEOUT;
        loop {
            assert!(Instant::now() < deadline, "`sayso listen` did not print {part:?}: {lines:#?}");
            let Some(line) = self.next_line() else {
                panic!("`sayso listen` exited without printing {part:?}: {lines:#?}")
            };
            let is_match = line.contains(part);
            lines.push(line);
            if is_match {
                return lines;
            }
        }
    }

    pub fn start_connected(address: &str, arguments: &[&str]) -> Self {
        let mut process = Self::start(address, arguments);
        process.read_until("Listening to");
        process
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: &str) {
        crate::cli::send_signal(&self.child.id().to_string(), signal);
    }

    /// Returns the remaining lines of output and the exit code.
    pub fn wait_for_exit(mut self) -> (Vec<String>, i32) {
        let mut lines = Vec::new();
        while let Some(line) = self.next_line() {
            lines.push(line);
        }
        (lines, self.child.wait().unwrap().code().unwrap())
    }
}

impl Drop for ListenProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent with an open session.
pub struct AgentSession {
    pub client: TestClient,
    pub session_id: String,
}

impl AgentSession {
    pub fn start(client: TestClient) -> Self {
        let session_id = client.start_session();
        Self { client, session_id }
    }

    pub fn publish(&self, event: &str) {
        let response = self.client.post(&format!("/agent/v1/sessions/{}/events", self.session_id), event);
        assert_eq!(response.status, 200, "{response:?}");
    }

    pub fn write_output(&self, text: &str, complete: bool) {
        let path =
            format!("/agent/v1/sessions/{}/output?output_id=out_1&complete={complete}", self.session_id);
        let response = self.client.post(&path, text);
        assert_eq!(response.status, 200, "{response:?}");
    }

    pub fn ask_confirmation(&self) -> String {
        self.client.ask_confirmation(&self.session_id)
    }

    /// Waits for the reply to a question, up to this many seconds.
    pub fn wait_for_reply(&self, token: &str, seconds: u32) -> String {
        let path = format!("/agent/v1/sessions/{}/replies/{token}?wait={seconds}", self.session_id);
        self.client.get(&path).body
    }
}
