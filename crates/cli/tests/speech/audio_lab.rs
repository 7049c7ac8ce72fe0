//! An isolated audio environment: a private PulseAudio server whose output is recorded, and a real speech-dispatcher
//! that plays to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::audio_samples::{AudioSamples, SAMPLE_RATE};

/// How long to wait before a test fails. Long enough for slow machines.
const READ_TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) struct AudioLab {
    folder: tempfile::TempDir,
    processes: Vec<Child>,
    recording: Arc<(Mutex<Vec<i16>>, Condvar)>,
}

impl AudioLab {
    pub(crate) fn start() -> Self {
        let mut lab = Self {
            folder: tempfile::tempdir().unwrap(),
            processes: Vec::new(),
            recording: Arc::new((Mutex::new(Vec::new()), Condvar::new())),
        };
        lab.start_sound_server();
        lab.start_recording();
        lab.start_dispatcher();
        lab
    }

    /// Creates a command that does not use or change the user's own configuration.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.configure(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Sets the environment of a program so that it uses this sound server and keeps its files in the lab's folder.
    pub(crate) fn configure(&self, command: &mut Command) {
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

    fn start_sound_server(&mut self) {
        let socket = self.path("pulse.sock");
        let mut command = self.command("pulseaudio");
        command.args([
            "-n",
            "--daemonize=no",
            "--exit-idle-time=-1",
            "--use-pid-file=no",
            "--disable-shm=yes",
        ]);
        command.args([
            "--realtime=no",
            "--high-priority=no",
            "-L",
            "module-null-sink sink_name=recording",
            "-L",
        ]);
        command.arg(format!("module-native-protocol-unix socket={} auth-anonymous=1", socket.display()));
        self.processes.push(command.spawn().unwrap());
        wait_for_socket(&socket);
    }

    fn start_recording(&mut self) {
        let mut command = self.command("parec");
        command.args([
            "--raw",
            "--format=s16le",
            "--channels=1",
            "--latency-msec=200",
            "-d",
            "recording.monitor",
        ]);
        command.arg(format!("--rate={SAMPLE_RATE}"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut sound = child.stdout.take().unwrap();
        self.processes.push(child);
        let recording = Arc::clone(&self.recording);
        std::thread::spawn(move || {
            let mut bytes = [0; 2];
            let mut sound = BufReader::new(&mut sound);
            let mut samples = Vec::new();
            while sound.read_exact(&mut bytes).is_ok() {
                samples.push(i16::from_le_bytes(bytes));
                if samples.len() == SAMPLE_RATE / 50 {
                    recording.0.lock().unwrap().append(&mut samples);
                    recording.1.notify_all();
                }
            }
        });
        self.wait_until(|recording| recording.len() > 0);
    }

    fn start_dispatcher(&mut self) {
        // A long buffer prevents gaps on a busy machine.
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
        wait_for_socket(&socket);
    }

    /// Waits until the recording satisfies the condition.
    pub(crate) fn wait_until(&self, condition: impl Fn(AudioSamples<'_>) -> bool) {
        let (recording, more_samples) = &*self.recording;
        let deadline = Instant::now() + READ_TIMEOUT;
        let mut samples = recording.lock().unwrap();
        while !condition(AudioSamples(&samples)) {
            let remaining = deadline.saturating_duration_since(Instant::now());
            assert!(
                !remaining.is_zero(),
                "the condition is not met after {} s of recording",
                samples.len() / SAMPLE_RATE
            );
            samples = more_samples.wait_timeout(samples, remaining).unwrap().0;
        }
    }

    /// Waits for a second of silence.
    pub(crate) fn wait_for_silence(&self) {
        let from = self.position();
        self.wait_until(|recording| {
            recording.len() >= from + SAMPLE_RATE && recording.skip(recording.len() - SAMPLE_RATE).is_silent()
        });
    }

    /// Waits until `seconds` more seconds of audible sound are recorded.
    pub(crate) fn wait_for_sound(&self, seconds: usize) {
        let from = self.position();
        self.wait_until(|recording| recording.skip(from).count_audible_samples() > seconds * SAMPLE_RATE);
    }

    /// Returns the number of recorded samples.
    pub(crate) fn position(&self) -> usize {
        self.recording.0.lock().unwrap().len()
    }

    /// Returns the samples from this position on.
    pub(crate) fn samples_from(&self, from: usize) -> Vec<i16> {
        self.recording.0.lock().unwrap()[from..].to_vec()
    }

    /// Speaks a text through the dispatcher and returns its sound without the silence around it.
    pub(crate) fn synthesize(&self, text: &str, pace: i8) -> Vec<i16> {
        self.wait_for_silence();
        let from = self.position();
        let mut connection = BufReader::new(UnixStream::connect(self.path("speechd.sock")).unwrap());
        connection.get_ref().set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        for command in ["SET self CLIENT_NAME a:test:b", &format!("SET self RATE {pace}"), "SPEAK"] {
            connection.get_mut().write_all(format!("{command}\r\n").as_bytes()).unwrap();
            let mut response = String::new();
            connection.read_line(&mut response).unwrap();
            assert!(response.starts_with('2'), "{response}");
        }
        connection
            .get_mut()
            .write_all(format!("{}\r\n.\r\n", text.replace('\n', "\r\n")).as_bytes())
            .unwrap();
        self.wait_until(|recording| !recording.skip(from).is_silent());
        self.wait_for_silence();
        let sound = self.samples_from(from);
        AudioSamples(&sound).trimmed().to_vec()
    }

    /// Opens a proxy to the dispatcher that records all lines in both directions.
    pub(crate) fn open_tap(&self) -> DispatcherTap {
        let socket = self.path("tap.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let dispatcher = self.path("speechd.sock");
        let (line_tx, lines) = channel();
        std::thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let server = UnixStream::connect(dispatcher).unwrap();
            forward(client.try_clone().unwrap(), server.try_clone().unwrap(), line_tx.clone());
            forward(server, client, line_tx);
        });
        DispatcherTap { socket, lines }
    }
}

impl Drop for AudioLab {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A proxy that records the lines to and from the dispatcher.
pub(crate) struct DispatcherTap {
    pub(crate) socket: PathBuf,
    lines: Receiver<String>,
}

impl DispatcherTap {
    /// Waits for a line that contains `part`.
    pub(crate) fn wait_for_line(&self, part: &str) {
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| line.contains(part)) {
            let Ok(line) = self.lines.recv_timeout(READ_TIMEOUT) else {
                panic!("no {part:?} after {lines:#?}")
            };
            lines.push(line);
        }
    }
}

fn forward(from: UnixStream, mut to: UnixStream, line_tx: Sender<String>) {
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let _ = line_tx.send(String::from_utf8_lossy(&line).trim_end().to_owned());
            if to.write_all(&line).is_err() {
                break;
            }
            line.clear();
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

/// Waits until a program is listening on the socket.
fn wait_for_socket(socket: &Path) {
    let deadline = Instant::now() + READ_TIMEOUT;
    while UnixStream::connect(socket).is_err() {
        assert!(Instant::now() < deadline, "no program is listening on {}", socket.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
