//! brltty with its virtual driver. The test is the display: it sends keys and receives what is shown.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long to wait for a text that must appear.
const READ_TIMEOUT: Duration = Duration::from_mins(1);
/// TCP port of the BrlAPI server with the number 0.
const FIRST_PORT: u16 = 4101;

/// A running brltty and its display.
pub(crate) struct VirtualDisplay {
    brltty: Child,
    display: UnixStream,
    shown: Receiver<String>,
    /// The address of its BrlAPI server, as `--braille` takes it.
    pub(crate) address: String,
    _folder: tempfile::TempDir,
    current: String,
}

impl VirtualDisplay {
    /// Starts brltty with one row of this many cells. `auth` says how clients are authorized.
    pub(crate) fn start(columns: usize, auth: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let number = free_server_number();
        Self::start_in(folder, columns, auth, number)
    }

    /// Stops brltty and starts it again at the same address.
    pub(crate) fn restart(self, columns: usize, between: impl FnOnce()) -> Self {
        let number: u16 = self.address.rsplit_once(':').unwrap().1.parse().unwrap();
        drop(self);
        between();
        Self::start_in(tempfile::tempdir().unwrap(), columns, "none", number)
    }

    fn start_in(folder: tempfile::TempDir, columns: usize, auth: &str, number: u16) -> Self {
        let socket = folder.path().join("display.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let address = format!("127.0.0.1:{number}");
        // No configuration file, no screen, no speech; brltty stays in the foreground.
        let brltty = Command::new("brltty")
            .args(["-n", "-e", "-q", "-f", "/dev/null", "-b", "vr", "-x", "no", "-s", "no", "-t", "en_US"])
            .args(["-P", &format!("{path}/pid"), "-W", &path, "-U", &path])
            .args(["-d", &format!("client:{}", socket.display())])
            .args(["-A", &format!("auth={auth},host={address}")])
            // The virtual driver writes texts in the character set of the locale.
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("brltty starts");
        let (mut display, _) = listener.accept().unwrap();
        writeln!(display, "cells {columns} 1").unwrap();
        let reader = BufReader::new(display.try_clone().unwrap());
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                // Without a client, brltty shows that it has no screen to read.
                let text = line.strip_prefix("Visual ").map(unquote).filter(|text| text != "no screen");
                if let Some(text) = text {
                    let _ = sender.send(text);
                }
            }
        });
        Self { brltty, display, shown, address, _folder: folder, current: String::new() }
    }

    /// Presses a key, named as in the virtual driver. Wait for its effect before the next key: the driver can miss the second of
    /// two keys that arrive together.
    pub(crate) fn press(&mut self, key: &str) {
        writeln!(self.display, "{key}").unwrap();
    }

    /// Presses the routing key above the first cell of a word that is shown. BrlAPI counts cells from 0.
    pub(crate) fn route(&mut self, word: &str) {
        let before: Vec<&str> = self.current.split(' ').take_while(|part| *part != word).collect();
        let cell = before.iter().map(|part| part.chars().count() + 1).sum::<usize>();
        assert!(cell < self.current.chars().count(), "{word:?} is not in {:?}", self.current);
        // The virtual driver has no routing key for cell 0, so this presses the second cell of the word.
        self.press(&format!("ROUTE {}", cell + 1));
    }

    /// Waits until the display shows a text that contains this one.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let deadline = Instant::now() + READ_TIMEOUT;
        let mut seen = vec![self.current.clone()];
        while !self.current.contains(part) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(text) => self.current = text,
                Err(error) => panic!("the display never showed {part:?} ({error}): {seen:#?}"),
            }
            seen.push(self.current.clone());
        }
        self.current.clone()
    }

    /// Pans forward until the display shows a text that contains this one. Returns everything that was shown.
    pub(crate) fn read_until(&mut self, part: &str) -> Vec<String> {
        let mut seen = vec![self.current.clone()];
        while !self.current.contains(part) {
            // A blank display has nothing to pan; its next text comes by itself.
            if !self.current.is_empty() {
                self.press("FWINRT");
            }
            self.current = self
                .shown
                .recv_timeout(READ_TIMEOUT)
                .unwrap_or_else(|_| panic!("the display never showed {part:?}: {seen:#?}"));
            seen.push(self.current.clone());
        }
        seen
    }
}

impl Drop for VirtualDisplay {
    fn drop(&mut self) {
        let _ = self.brltty.kill();
        let _ = self.brltty.wait();
    }
}

/// Returns the number of a BrlAPI server whose port is free, and that no other test of this process gets.
fn free_server_number() -> u16 {
    static NEXT_OFFSET: AtomicU16 = AtomicU16::new(0);
    let first = 1000 + u16::try_from(std::process::id() % 20_000).unwrap();
    loop {
        let number = first + NEXT_OFFSET.fetch_add(1, Ordering::Relaxed);
        if std::net::TcpListener::bind(("127.0.0.1", FIRST_PORT + number)).is_ok() {
            return number;
        }
    }
}

/// Returns the text of a quoted string of the virtual driver.
fn unquote(text: &str) -> String {
    let inner = text.trim().trim_start_matches('"').trim_end_matches('"');
    inner.replace("\\\"", "\"").replace("\\\\", "\\").trim_end().to_owned()
}
