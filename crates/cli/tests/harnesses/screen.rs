//! A program in a terminal, whose screen can be read and whose keys can be pressed. The terminal is `tmux`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::fixture::HarnessFixture;

/// How long to wait for something that must appear.
const MAX_WAIT: Duration = Duration::from_mins(2);
const POLL_PAUSE: Duration = Duration::from_millis(100);

/// A program on a screen. It is killed when this is dropped.
pub(crate) struct Screen {
    socket: PathBuf,
    process: String,
}

impl Screen {
    /// Starts a program in the project of the fixture.
    pub(crate) fn start(
        fixture: &HarnessFixture,
        program: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let mut screen = Self { socket: fixture.home().join("tmux"), process: String::new() };
        let mut command = screen.tmux();
        command.args(["new-session", "-d", "-x", "150", "-y", "50", "-c"]).arg(fixture.project());
        command.args(["env", "-i"]);
        command.args(fixture.environment(environment).iter().map(|(name, value)| format!("{name}={value}")));
        let output = command.arg(program).args(arguments).output().expect("tmux is installed");
        assert!(output.status.success(), "{output:?}");
        screen.process = screen.print(&["display-message", "-p", "#{pane_pid}"]);
        screen
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]);
        command
    }

    fn print(&self, arguments: &[&str]) -> String {
        let output = self.tmux().args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Returns the text on the screen. It is empty if the program has ended.
    pub(crate) fn text(&self) -> String {
        self.print(&["capture-pane", "-p"])
    }

    /// Waits until the screen contains a text.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, || self.text().contains(text));
    }

    /// Waits until a condition is met. `what` names it.
    pub(crate) fn wait_until(&self, what: &str, is_met: impl Fn() -> bool) {
        let deadline = Instant::now() + MAX_WAIT;
        while !is_met() {
            assert!(Instant::now() < deadline, "no {what:?} on this screen:\n{}", self.text());
            std::thread::sleep(POLL_PAUSE);
        }
    }

    /// Presses a key, by tmux's name for it.
    pub(crate) fn press(&self, key: &str) {
        self.print(&["send-keys", key]);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Some programs survive the end of their terminal. The first process in a terminal leads a group.
        if let Ok(process) = self.process.parse::<u32>() {
            drop(Command::new("kill").args(["-KILL", "--", &format!("-{process}")]).status());
        }
        self.print(&["kill-server"]);
    }
}
