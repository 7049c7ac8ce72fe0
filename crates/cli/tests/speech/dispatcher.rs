//! A dispatcher that says nothing and tells the test what it was told. A text ends when the test says so.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testing::terminal::Person;

/// Nothing takes longer that comes at all.
const PATIENCE: Duration = Duration::from_mins(2);

/// What it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Command(String),
    Text(String),
}

pub(crate) struct Dispatcher {
    folder: tempfile::TempDir,
    told: Receiver<Told>,
    line: Arc<Mutex<Option<UnixStream>>>,
    /// How many texts were told.
    texts: u32,
}

impl Dispatcher {
    pub(crate) fn starts() -> Self {
        let mut dispatcher = Self::absent();
        dispatcher.appears();
        dispatcher
    }

    /// One that does not run yet.
    pub(crate) fn absent() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, told: channel().1, line: Arc::default(), texts: 0 }
    }

    pub(crate) fn appears(&mut self) {
        let (tell, told) = channel();
        self.told = told;
        let line = Arc::clone(&self.line);
        let listener = UnixListener::bind(self.socket()).unwrap();
        std::thread::spawn(move || {
            let mut texts = 0;
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                *line.lock().unwrap() = Some(stream.try_clone().unwrap());
                serve(&stream, &tell, &mut texts);
            }
        });
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("speechd.sock")
    }

    /// The folder in which programs are looked for: there is none but those that a test puts there.
    pub(crate) fn programs(&self) -> &Path {
        self.folder.path()
    }

    /// A person who listens with it.
    pub(crate) fn person(&self, address: &str, arguments: &[&str]) -> Person {
        let arguments: Vec<_> = ["--speech"].iter().chain(arguments).copied().collect();
        Person::listens_as(address, &arguments, |command: &mut Command| {
            command
                .env("SPEECHD_ADDRESS", format!("unix_socket:{}", self.socket().display()))
                .env("PATH", self.programs())
        })
    }

    /// The same, once its greeting was said.
    pub(crate) fn person_there(&mut self, address: &str, arguments: &[&str]) -> Person {
        let mut person = self.person(address, arguments);
        person.hears("Listening to");
        assert!(self.text().starts_with("notice: Listening to"));
        self.ends();
        person
    }

    /// The next thing that it is told.
    pub(crate) fn next(&mut self) -> Told {
        let told = self.told.recv_timeout(PATIENCE).expect("something more");
        if matches!(told, Told::Text(_)) {
            self.texts += 1;
        }
        told
    }

    /// The next text; commands in front of it are passed over.
    pub(crate) fn text(&mut self) -> String {
        loop {
            if let Told::Text(text) = self.next() {
                return text;
            }
        }
    }

    /// The next text with this in it; those in front of it are said to their ends.
    pub(crate) fn text_with(&mut self, part: &str) -> String {
        loop {
            let text = self.text();
            if text.contains(part) {
                return text;
            }
            self.ends();
        }
    }

    /// The next command of this name, with no text before it.
    pub(crate) fn command(&mut self, name: &str) -> String {
        loop {
            match self.next() {
                Told::Command(command) if command.starts_with(name) => return command,
                Told::Command(_) => {}
                Told::Text(text) => panic!("{text:?} was told before {name}"),
            }
        }
    }

    /// Whether it was told nothing more yet.
    pub(crate) fn is_told_nothing(&self) -> bool {
        self.told.try_recv().is_err()
    }

    /// What was told last has been said to its end.
    pub(crate) fn ends(&self) {
        self.event("702", "END");
    }

    /// Somebody else has cut off what was told last.
    pub(crate) fn is_cancelled(&self) {
        self.event("703", "CANCELED");
    }

    fn event(&self, code: &str, name: &str) {
        let text = format!("{code}-{}\r\n{code}-1\r\n{code} {name}\r\n", self.texts);
        self.line.lock().unwrap().as_ref().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// It breaks off in the middle; nobody answers there any more.
    pub(crate) fn dies(&self) {
        std::fs::remove_file(self.socket()).unwrap();
        self.hangs_up();
    }

    /// It breaks off, but can be reached again.
    pub(crate) fn hangs_up(&self) {
        self.line.lock().unwrap().take().unwrap().shutdown(std::net::Shutdown::Both).unwrap();
    }
}

/// Reads as speech-dispatcher does, and answers.
fn serve(stream: &UnixStream, tell: &Sender<Told>, texts: &mut u32) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut text: Option<Vec<String>> = None;
    let mut line = Vec::new();
    let mut saying = None;
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if !line.ends_with(b"\r\n") {
            continue;
        }
        let said = String::from_utf8(std::mem::take(&mut line)).unwrap();
        let said = said.trim_end_matches("\r\n").to_owned();
        let answer = match (&mut text, said.as_str()) {
            (Some(lines), ".") => {
                *texts += 1;
                let _ = tell.send(Told::Text(lines.join("\n")));
                text = None;
                saying = Some(*texts);
                let number = *texts;
                format!("225-{number}\r\n225 OK MESSAGE QUEUED\r\n701-{number}\r\n701-1\r\n701 BEGIN\r\n")
            }
            (Some(lines), said) => {
                lines.push(said.strip_prefix('.').unwrap_or(said).to_owned());
                continue;
            }
            (None, command) => {
                let answer = match command {
                    "SPEAK" => {
                        text = Some(Vec::new());
                        "230 OK RECEIVING DATA\r\n".to_owned()
                    }
                    "GET LANGUAGE" => "251-en-GB\r\n251 OK GET RETURNED\r\n".to_owned(),
                    "GET RATE" => "251-0\r\n251 OK GET RETURNED\r\n".to_owned(),
                    "CANCEL self" => saying.take().map_or("213 OK CANCELED\r\n".to_owned(), |number| {
                        format!("213 OK CANCELED\r\n703-{number}\r\n703-1\r\n703 CANCELED\r\n")
                    }),
                    _ => "200 OK\r\n".to_owned(),
                };
                let _ = tell.send(Told::Command(said));
                answer
            }
        };
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A program that does nothing and tells the test what it was told.
pub(crate) struct Program {
    told: Receiver<String>,
}

impl Program {
    /// Puts an `espeak-ng` into a folder; `then` is what it does at last.
    pub(crate) fn espeak(folder: &Path, then: &str) -> Self {
        Self::named("espeak-ng", folder, then)
    }

    /// Puts one into a folder.
    pub(crate) fn named(name: &str, folder: &Path, then: &str) -> Self {
        let pipe = folder.join(format!("{name}.fifo"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let program = folder.join(name);
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{{ echo \"with $*\"; /bin/cat; }} > '{}'\n{then}\n",
            pipe.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (tell, told) = channel();
        let reader = File::options().read(true).write(true).open(pipe).unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines() {
                let _ = tell.send(line.unwrap());
            }
        });
        Self { told }
    }

    /// The next line: its arguments, or what it should say.
    pub(crate) fn next(&self) -> String {
        self.told.recv_timeout(PATIENCE).expect("something more")
    }
}
