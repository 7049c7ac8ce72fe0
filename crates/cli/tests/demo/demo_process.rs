//! The demo as a child process, with its output lines and its input.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long to wait before a test fails. Long enough for slow machines.
const READ_TIMEOUT: Duration = Duration::from_mins(2);

/// A running `sayso demo`.
pub(crate) struct DemoProcess {
    child: Child,
    input: Option<Box<dyn Write>>,
    lines: Receiver<String>,
    /// All output lines read so far.
    pub(crate) printed: Vec<String>,
}

impl DemoProcess {
    /// Starts the demo with a pipe as standard input.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::run(arguments, Stdio::piped(), None)
    }

    /// Starts the demo with a pseudo-terminal as standard input.
    pub(crate) fn start_in_terminal(arguments: &[&str]) -> Self {
        let (input, name) = testing::terminal::pseudo_terminal();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        Self::run(arguments, terminal.into(), Some(Box::new(input)))
    }

    fn run(arguments: &[&str], stdin: Stdio, input: Option<Box<dyn Write>>) -> Self {
        #[allow(clippy::zombie_processes, reason = "Drop waits for the child")]
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .arg("demo")
            .args(arguments)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (line_tx, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = line_tx.send(line);
            }
        });
        let pipe = child.stdin.take().map(|pipe| Box::new(pipe) as Box<dyn Write>);
        let input = input.or(pipe);
        Self { child, input, lines, printed: Vec::new() }
    }

    /// Returns the next line, or `None` at the end of the output.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let line = match self.lines.recv_timeout(READ_TIMEOUT) {
            Ok(line) => line,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                panic!("timed out waiting for output: {:#?}", self.printed)
            }
        };
        self.printed.push(line.clone());
        Some(line)
    }

    /// Reads until a line contains `part` and returns that line.
    pub(crate) fn read_until(&mut self, part: &str) -> String {
        // The demo repeats its questions, so lines keep coming even if the expected one never does.
        let deadline = Instant::now() + READ_TIMEOUT;
        loop {
            assert!(Instant::now() < deadline, "no {part}: {:#?}", self.printed);
            let line = self.next_line().unwrap_or_else(|| panic!("no {part}: {:#?}", self.printed));
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        self.type_bytes(format!("{line}\n").as_bytes());
    }

    pub(crate) fn type_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes standard input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn signal(&self, name: &str) {
        testing::cli::send_signal(&self.child.id().to_string(), &format!("-{name}"));
    }

    /// Reads the remaining output and returns the exit code.
    pub(crate) fn wait_for_exit(&mut self) -> i32 {
        while self.next_line().is_some() {}
        let deadline = Instant::now() + READ_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or_else(|| panic!("{status}"));
            }
            assert!(Instant::now() < deadline, "the process did not exit");
            std::thread::yield_now();
        }
    }

    /// Sends a GET request to the demo's hub and returns the raw response.
    pub(crate) fn get(&self, path: &str) -> String {
        let line = self.printed.iter().find(|line| line.contains(" http://127.0.0.1:")).expect("an address");
        let address = line.rsplit("http://").next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for DemoProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs one request with `--once` and returns the lines between the startup notice and the final notice. The exit code
/// must be 0.
pub(crate) fn run_once(request: &str, options: &[&str]) -> Vec<String> {
    let mut demo = DemoProcess::start(&[&["--once", request], options].concat());
    demo.close_input();
    assert_eq!(demo.wait_for_exit(), 0, "{:#?}", demo.printed);
    let startup = demo.printed.iter().position(|line| is_notice(line) && line.contains("http://")).unwrap();
    let mut announcements = demo.printed.split_off(startup + 1);
    let last = announcements.pop().unwrap();
    assert!(is_notice(&last), "{last}");
    strip_times(&announcements)
}

/// Whether a line starts with the label of a notice, in any language.
fn is_notice(line: &str) -> bool {
    ["notice: ", "aviso: ", "àkíyèsí: "].iter().any(|label| line.starts_with(label))
}

/// Removes the time limit from questions, because it depends on when the input ends and on the speed of the machine.
pub(crate) fn strip_times(lines: &[String]) -> Vec<String> {
    let strip = |line: &String| {
        if line.starts_with("ask: You have ") { "ask: You have …".to_owned() } else { line.clone() }
    };
    lines.iter().map(strip).collect()
}
