//! A place where speech can be heard by a test: a sound server of its own whose sound is recorded, and a real
//! speech-dispatcher that speaks there.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::tape::{RATE, Tape};

/// Nothing takes longer that comes at all.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct Studio {
    folder: tempfile::TempDir,
    processes: Vec<Child>,
    tape: Arc<(Mutex<Vec<i16>>, Condvar)>,
}

impl Studio {
    pub(crate) fn opens() -> Self {
        let mut studio = Self {
            folder: tempfile::tempdir().unwrap(),
            processes: Vec::new(),
            tape: Arc::new((Mutex::new(Vec::new()), Condvar::new())),
        };
        studio.start_sound();
        studio.record();
        studio.start_dispatcher();
        studio
    }

    /// A folder for everything that these programs keep, so that nothing of the person's own is touched.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.furnish(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Lets a program be heard here.
    pub(crate) fn furnish(&self, command: &mut Command) {
        let folder = self.folder.path();
        for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env(name, folder);
        }
        command.env("PULSE_SERVER", format!("unix:{}", self.path("pulse.sock").display()));
        for name in ["DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "SPEECHD_ADDRESS"] {
            command.env_remove(name);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_sound(&mut self) {
        let socket = self.path("pulse.sock");
        let mut command = self.command("pulseaudio");
        command.args([
            "-n",
            "--daemonize=no",
            "--exit-idle-time=-1",
            "--use-pid-file=no",
            "--disable-shm=yes",
        ]);
        command.args(["--realtime=no", "--high-priority=no", "-L", "module-null-sink sink_name=tape", "-L"]);
        command.arg(format!("module-native-protocol-unix socket={} auth-anonymous=1", socket.display()));
        self.processes.push(command.spawn().unwrap());
        reach(&socket);
    }

    fn record(&mut self) {
        let mut command = self.command("parec");
        command.args(["--raw", "--format=s16le", "--channels=1", "--latency-msec=200", "-d", "tape.monitor"]);
        command.arg(format!("--rate={RATE}"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut sound = child.stdout.take().unwrap();
        self.processes.push(child);
        let tape = Arc::clone(&self.tape);
        std::thread::spawn(move || {
            let mut bytes = [0; 2];
            let mut sound = BufReader::new(&mut sound);
            let mut piece = Vec::new();
            while sound.read_exact(&mut bytes).is_ok() {
                piece.push(i16::from_le_bytes(bytes));
                if piece.len() == RATE / 50 {
                    tape.0.lock().unwrap().append(&mut piece);
                    tape.1.notify_all();
                }
            }
        });
        self.wait(|tape| tape.len() > 0);
    }

    fn start_dispatcher(&mut self) {
        // A long buffer: a busy machine must not make gaps.
        let settings = "AudioOutputMethod \"pulse\"\nAddModule \"espeak-ng\" \"sd_espeak-ng\" \"espeak-ng.conf\"\nDefaultModule espeak-ng\nDefaultLanguage \"en\"\nLogLevel 3\nAudioPulseMinLength 1000\n";
        std::fs::write(self.path("speechd.conf"), settings).unwrap();
        std::fs::create_dir(self.path("modules")).unwrap();
        std::fs::write(self.path("modules/espeak-ng.conf"), "").unwrap();
        let socket = self.path("speechd.sock");
        let mut command = self.command("speech-dispatcher");
        command.args(["--run-single", "--timeout", "0", "--communication-method", "unix_socket"]);
        command.arg("--socket-path").arg(&socket).arg("--pid-file").arg(self.path("speechd.pid"));
        command.arg("--config-dir").arg(self.folder.path()).arg("--log-dir").arg(self.folder.path());
        self.processes.push(command.spawn().unwrap());
        reach(&socket);
    }

    /// Waits until the tape is as it should be.
    pub(crate) fn wait(&self, is_so: impl Fn(Tape<'_>) -> bool) {
        let (tape, grows) = &*self.tape;
        let late = Instant::now() + PATIENCE;
        let mut samples = tape.lock().unwrap();
        while !is_so(Tape(&samples)) {
            let left = late.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the tape of {} s is not as it should be", samples.len() / RATE);
            samples = grows.wait_timeout(samples, left).unwrap().0;
        }
    }

    /// Waits for a second of silence.
    pub(crate) fn silence(&self) {
        let from = self.position();
        self.wait(|tape| tape.len() >= from + RATE && tape.from(tape.len() - RATE).is_silent());
    }

    /// Waits until from now on so many seconds have sounded.
    pub(crate) fn sounds_for(&self, seconds: usize) {
        let from = self.position();
        self.wait(|tape| tape.from(from).sounding() > seconds * RATE);
    }

    /// How much was recorded.
    pub(crate) fn position(&self) -> usize {
        self.tape.0.lock().unwrap().len()
    }

    /// What was recorded from there on.
    pub(crate) fn recorded(&self, from: usize) -> Vec<i16> {
        self.tape.0.lock().unwrap()[from..].to_vec()
    }

    /// What a text sounds like, said by the test itself.
    pub(crate) fn sound_of(&self, text: &str, pace: i8) -> Vec<i16> {
        self.silence();
        let from = self.position();
        let mut line = BufReader::new(UnixStream::connect(self.path("speechd.sock")).unwrap());
        line.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        for command in ["SET self CLIENT_NAME a:test:b", &format!("SET self RATE {pace}"), "SPEAK"] {
            line.get_mut().write_all(format!("{command}\r\n").as_bytes()).unwrap();
            let mut answer = String::new();
            line.read_line(&mut answer).unwrap();
            assert!(answer.starts_with('2'), "{answer}");
        }
        line.get_mut().write_all(format!("{}\r\n.\r\n", text.replace('\n', "\r\n")).as_bytes()).unwrap();
        self.wait(|tape| !tape.from(from).is_silent());
        self.silence();
        let sound = self.recorded(from);
        Tape(&sound).trimmed().to_vec()
    }

    /// A way to the dispatcher on which the test hears what is said.
    pub(crate) fn tap(&self) -> Tap {
        let socket = self.path("tap.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let dispatcher = self.path("speechd.sock");
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let (near, _) = listener.accept().unwrap();
            let far = UnixStream::connect(dispatcher).unwrap();
            pass(near.try_clone().unwrap(), far.try_clone().unwrap(), tell.clone());
            pass(far, near, tell);
        });
        Tap { socket, told }
    }
}

impl Drop for Studio {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// What goes to the dispatcher and comes from it, line by line.
pub(crate) struct Tap {
    pub(crate) socket: PathBuf,
    told: Receiver<String>,
}

impl Tap {
    /// The next line with this in it.
    pub(crate) fn until(&self, part: &str) {
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| line.contains(part)) {
            let Ok(line) = self.told.recv_timeout(PATIENCE) else { panic!("no {part:?} after {lines:#?}") };
            lines.push(line);
        }
    }
}

fn pass(from: UnixStream, mut to: UnixStream, tell: Sender<String>) {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let _ = tell.send(String::from_utf8_lossy(&line).trim_end().to_owned());
            if to.write_all(&line).is_err() {
                break;
            }
            line.clear();
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

/// Waits for a socket that a program is about to open.
fn reach(socket: &Path) {
    let late = Instant::now() + PATIENCE;
    while UnixStream::connect(socket).is_err() {
        assert!(Instant::now() < late, "nobody listens at {}", socket.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
