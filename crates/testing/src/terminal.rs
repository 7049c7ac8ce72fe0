//! A person at a terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::cli::binary;
use crate::http::Client;

/// Nothing takes longer that comes at all.
const PATIENCE: Duration = Duration::from_mins(2);

/// The keyboard and screen of a new pseudo-terminal, and the path under which a program opens it.
pub fn pseudo_terminal() -> (File, String) {
    // Processes that other tests start meanwhile must not keep it open.
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    (File::from(master), path)
}

/// `sayso listen` in a pseudo-terminal of its own, which does not echo.
pub struct Person {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What was on the screen so far, byte for byte.
    pub bytes: Vec<u8>,
}

impl Person {
    pub fn listens(address: &str, arguments: &[&str]) -> Self {
        Self::listens_as(address, arguments, |command| command)
    }

    pub fn listens_as(
        address: &str,
        arguments: &[&str],
        with: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        Self::listens_at(&format!("http://{address}"), arguments, with)
    }

    pub fn listens_at(
        url: &str,
        arguments: &[&str],
        with: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let (master, name) = pseudo_terminal();
        let terminal = || File::options().read(true).write(true).open(&name).unwrap();
        let slave = terminal();
        let mut modes = tcgetattr(&slave).unwrap();
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&slave, OptionalActions::Now, &modes).unwrap();
        let mut command = Command::new(binary());
        command.args(["listen", url]).args(arguments).env_remove("SAYSO_TOKEN");
        let command = with(command.stdin(slave).stdout(terminal()).stderr(terminal()));
        #[allow(clippy::zombie_processes, reason = "it is waited for when the person is dropped")]
        let child = command.spawn().unwrap();
        // The parent's copies of the terminal would keep its end from being seen.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (tell, screen) = channel();
        let reader = master.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let _ = tell.send(std::mem::take(&mut line));
            }
        });
        Self { child, keyboard: master, screen, bytes: Vec::new() }
    }

    /// Types a line.
    pub fn types(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The end of what is typed.
    pub fn types_no_more(&mut self) {
        self.keyboard.write_all(&[4]).unwrap();
    }

    /// The next line on the screen.
    pub fn next(&mut self) -> Option<String> {
        match self.screen.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.bytes.extend_from_slice(&line);
                let line = String::from_utf8(line).unwrap();
                Some(line.trim_end_matches(['\r', '\n']).to_owned())
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("nothing more came after {}", String::from_utf8_lossy(&self.bytes))
            }
        }
    }

    /// All lines up to the first with this in it.
    pub fn hears(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let Some(line) = self.next() else { panic!("it ended without {part:?}: {lines:#?}") };
            let found = line.contains(part);
            lines.push(line);
            if found {
                return lines;
            }
        }
    }

    pub fn is_there(address: &str, arguments: &[&str]) -> Self {
        let mut person = Self::listens(address, arguments);
        person.hears("Listening to");
        person
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        crate::cli::signal(&self.child.id().to_string(), signal);
    }

    /// What is left on the screen, and the exit code.
    pub fn ends(mut self) -> (Vec<String>, i32) {
        let mut lines = Vec::new();
        while let Some(line) = self.next() {
            lines.push(line);
        }
        (lines, self.child.wait().unwrap().code().unwrap())
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An agent in the middle of a session.
pub struct Agent {
    pub client: Client,
    pub session: String,
}

impl Agent {
    pub fn starts(client: Client) -> Self {
        let session = client.start();
        Self { client, session }
    }

    pub fn says(&self, event: &str) {
        let answer = self.client.post(&format!("/agent/v1/sessions/{}/events", self.session), event);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    pub fn writes(&self, text: &str, complete: bool) {
        let path = format!("/agent/v1/sessions/{}/output?output_id=out_1&complete={complete}", self.session);
        let answer = self.client.post(&path, text);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    pub fn asks(&self) -> String {
        self.client.ask(&self.session)
    }

    /// What became of a question, after so many seconds at most.
    pub fn waits(&self, token: &str, seconds: u32) -> String {
        let path = format!("/agent/v1/sessions/{}/replies/{token}?wait={seconds}", self.session);
        self.client.get(&path).body
    }
}
