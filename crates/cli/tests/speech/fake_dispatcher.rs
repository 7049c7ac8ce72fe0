//! A fake speech-dispatcher that records its input. The test decides when a text has been spoken.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testing::terminal::ListenProcess;

/// How long to wait before a test fails. Long enough for slow machines.
const READ_TIMEOUT: Duration = Duration::from_mins(2);

/// A command or a text that the dispatcher received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SsipInput {
    Command(String),
    Text(String),
}

pub(crate) struct FakeDispatcher {
    folder: tempfile::TempDir,
    received: Receiver<SsipInput>,
    connection: Arc<Mutex<Option<UnixStream>>>,
    /// The number of texts read by the test so far.
    text_count: u32,
}

impl FakeDispatcher {
    pub(crate) fn start() -> Self {
        let mut dispatcher = Self::not_running();
        dispatcher.begin_listening();
        dispatcher
    }

    /// Creates a dispatcher that does not listen yet.
    pub(crate) fn not_running() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, received: channel().1, connection: Arc::default(), text_count: 0 }
    }

    pub(crate) fn begin_listening(&mut self) {
        let (input_tx, received) = channel();
        self.received = received;
        let connection = Arc::clone(&self.connection);
        let listener = UnixListener::bind(self.socket()).unwrap();
        std::thread::spawn(move || {
            let mut text_count = 0;
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                *connection.lock().unwrap() = Some(stream.try_clone().unwrap());
                serve(&stream, &input_tx, &mut text_count);
            }
        });
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("speechd.sock")
    }

    /// Returns the only folder in the `PATH` of the listener. A test can install programs there.
    pub(crate) fn programs(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a listener that uses this dispatcher.
    pub(crate) fn start_listener(&self, address: &str, arguments: &[&str]) -> ListenProcess {
        let arguments: Vec<_> = ["--speech"].iter().chain(arguments).copied().collect();
        ListenProcess::start_with(address, &arguments, |command: &mut Command| {
            command
                .env("SPEECHD_ADDRESS", format!("unix_socket:{}", self.socket().display()))
                .env("PATH", self.programs())
        })
    }

    /// Starts a listener and waits until its greeting is spoken.
    pub(crate) fn start_connected_listener(&mut self, address: &str, arguments: &[&str]) -> ListenProcess {
        let mut person = self.start_listener(address, arguments);
        person.read_until("Listening to");
        assert!(self.next_text().starts_with("notice: Connected."));
        self.finish_text();
        person
    }

    /// Returns the next command or text.
    pub(crate) fn next(&mut self) -> SsipInput {
        let input = self.received.recv_timeout(READ_TIMEOUT).expect("no more input");
        if matches!(input, SsipInput::Text(_)) {
            self.text_count += 1;
        }
        input
    }

    /// Returns the next text and skips the commands before it.
    pub(crate) fn next_text(&mut self) -> String {
        loop {
            if let SsipInput::Text(text) = self.next() {
                return text;
            }
        }
    }

    /// Returns the next text that contains `part` and finishes the texts before it.
    pub(crate) fn next_text_containing(&mut self, part: &str) -> String {
        loop {
            let text = self.next_text();
            if text.contains(part) {
                return text;
            }
            self.finish_text();
        }
    }

    /// Returns the next command that starts with `name`. Panics if a text comes first.
    pub(crate) fn next_command(&mut self, name: &str) -> String {
        loop {
            match self.next() {
                SsipInput::Command(command) if command.starts_with(name) => return command,
                SsipInput::Command(_) => {}
                SsipInput::Text(text) => panic!("{text:?} came before {name}"),
            }
        }
    }

    /// Returns whether there is no unread input.
    pub(crate) fn is_idle(&self) -> bool {
        self.received.try_recv().is_err()
    }

    /// Reports that the last text was spoken to its end.
    pub(crate) fn finish_text(&self) {
        self.send_event("702", "END");
    }

    /// Reports that another program cancelled the last text.
    pub(crate) fn cancel_text(&self) {
        self.send_event("703", "CANCELED");
    }

    fn send_event(&self, code: &str, name: &str) {
        let text = format!("{code}-{}\r\n{code}-1\r\n{code} {name}\r\n", self.text_count);
        self.connection.lock().unwrap().as_ref().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Disconnects and stops listening.
    pub(crate) fn stop(&self) {
        std::fs::remove_file(self.socket()).unwrap();
        self.disconnect();
    }

    /// Closes the connection but keeps listening.
    pub(crate) fn disconnect(&self) {
        self.connection.lock().unwrap().take().unwrap().shutdown(std::net::Shutdown::Both).unwrap();
    }
}

/// Serves one connection with the SSIP protocol of speech-dispatcher.
fn serve(stream: &UnixStream, input_tx: &Sender<SsipInput>, text_count: &mut u32) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut text: Option<Vec<String>> = None;
    let mut line = Vec::new();
    let mut spoken_text_number = None;
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if !line.ends_with(b"\r\n") {
            continue;
        }
        let line_text = String::from_utf8(std::mem::take(&mut line)).unwrap();
        let line_text = line_text.trim_end_matches("\r\n").to_owned();
        let response = match (&mut text, line_text.as_str()) {
            (Some(lines), ".") => {
                *text_count += 1;
                let _ = input_tx.send(SsipInput::Text(lines.join("\n")));
                text = None;
                spoken_text_number = Some(*text_count);
                let number = *text_count;
                format!("225-{number}\r\n225 OK MESSAGE QUEUED\r\n701-{number}\r\n701-1\r\n701 BEGIN\r\n")
            }
            (Some(lines), line_text) => {
                lines.push(line_text.strip_prefix('.').unwrap_or(line_text).to_owned());
                continue;
            }
            (None, command) => {
                let response = match command {
                    "SPEAK" => {
                        text = Some(Vec::new());
                        "230 OK RECEIVING DATA\r\n".to_owned()
                    }
                    "GET LANGUAGE" => "251-en-GB\r\n251 OK GET RETURNED\r\n".to_owned(),
                    "GET RATE" => "251-0\r\n251 OK GET RETURNED\r\n".to_owned(),
                    "CANCEL self" => {
                        spoken_text_number.take().map_or("213 OK CANCELED\r\n".to_owned(), |number| {
                            format!("213 OK CANCELED\r\n703-{number}\r\n703-1\r\n703 CANCELED\r\n")
                        })
                    }
                    _ => "200 OK\r\n".to_owned(),
                };
                let _ = input_tx.send(SsipInput::Command(line_text));
                response
            }
        };
        if (&*stream).write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// A fake program that records its arguments and input.
pub(crate) struct FakeProgram {
    received: Receiver<String>,
}

impl FakeProgram {
    /// Installs a fake `espeak-ng` in a folder. `then` is a shell command that runs at the end.
    pub(crate) fn install_espeak(folder: &Path, then: &str) -> Self {
        Self::install("espeak-ng", folder, then)
    }

    /// Installs a fake program in a folder. `then` is a shell command that runs at the end.
    pub(crate) fn install(name: &str, folder: &Path, then: &str) -> Self {
        let pipe = folder.join(format!("{name}.fifo"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let program = folder.join(name);
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{{ echo \"with $*\"; /bin/cat; }} > '{}'\n{then}\n",
            pipe.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (line_tx, received) = channel();
        let reader = File::options().read(true).write(true).open(pipe).unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines() {
                let _ = line_tx.send(line.unwrap());
            }
        });
        Self { received }
    }

    /// Returns the next line: the arguments after `with`, or a line of input.
    pub(crate) fn next(&self) -> String {
        self.received.recv_timeout(READ_TIMEOUT).expect("no more input")
    }
}
