//! The real binary, its lines, and its keyboard.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A demonstration under way.
pub(crate) struct Demo {
    child: Child,
    keyboard: Option<Box<dyn Write>>,
    lines: Receiver<String>,
    /// All that was printed and read.
    pub(crate) printed: Vec<String>,
}

impl Demo {
    /// With a pipe in place of a keyboard.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::run(arguments, Stdio::piped(), None)
    }

    /// With a keyboard: a pseudo-terminal.
    pub(crate) fn at_keyboard(arguments: &[&str]) -> Self {
        let (keyboard, name) = testing::terminal::pseudo_terminal();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        Self::run(arguments, terminal.into(), Some(Box::new(keyboard)))
    }

    fn run(arguments: &[&str], stdin: Stdio, keyboard: Option<Box<dyn Write>>) -> Self {
        #[allow(clippy::zombie_processes, reason = "it is waited for when it is dropped")]
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .arg("demo")
            .args(arguments)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let pipe = child.stdin.take().map(|pipe| Box::new(pipe) as Box<dyn Write>);
        let keyboard = keyboard.or(pipe);
        Self { child, keyboard, lines, printed: Vec::new() }
    }

    /// The next line; none after the last.
    pub(crate) fn line(&mut self) -> Option<String> {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                panic!("nothing more came: {:#?}", self.printed)
            }
        };
        self.printed.push(line.clone());
        Some(line)
    }

    /// Reads until a line has this in it.
    pub(crate) fn until(&mut self, part: &str) -> String {
        loop {
            let line = self.line().unwrap_or_else(|| panic!("no {part}: {:#?}", self.printed));
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn types(&mut self, line: &str) {
        self.types_bytes(format!("{line}\n").as_bytes());
    }

    pub(crate) fn types_bytes(&mut self, bytes: &[u8]) {
        self.keyboard.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Nothing more is typed.
    pub(crate) fn hangs_up(&mut self) {
        self.keyboard = None;
    }

    pub(crate) fn signal(&self, name: &str) {
        testing::cli::signal(&self.child.id().to_string(), &format!("-{name}"));
    }

    /// Reads to the end; the exit code.
    pub(crate) fn end(&mut self) -> i32 {
        while self.line().is_some() {}
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or_else(|| panic!("{status}"));
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::yield_now();
        }
    }

    /// The answer of its hub to a request.
    pub(crate) fn get(&self, path: &str) -> String {
        let line = self.printed.iter().find(|line| line.contains(" http://127.0.0.1:")).expect("an address");
        let address = line.rsplit("http://").next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one request is told, after the listener is there, without the word that it has ended. It must end well.
pub(crate) fn once(request: &str, more: &[&str]) -> Vec<String> {
    let mut demo = Demo::start(&[&["--once", request], more].concat());
    demo.hangs_up();
    assert_eq!(demo.end(), 0, "{:#?}", demo.printed);
    let begins = demo
        .printed
        .iter()
        .position(|line| line.starts_with("notice: ") && line.contains("http://"))
        .unwrap();
    let mut told = demo.printed.split_off(begins + 1);
    let last = told.pop().unwrap();
    assert!(last.starts_with("notice: "), "{last}");
    without_times(&told)
}

/// How long somebody has depends on whether somebody could type, and on how slow the machine is.
pub(crate) fn without_times(lines: &[String]) -> Vec<String> {
    let steady = |line: &String| {
        if line.starts_with("ask: You have ") { "ask: You have …".to_owned() } else { line.clone() }
    };
    lines.iter().map(steady).collect()
}
