//! The server as a child process: in a process group of its own, so that nothing of it outlives the gate.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::limits::TERMINATION_GRACE;

/// What the gate writes to its guard when it has ended everything itself.
const GUARD_DISMISSED: &[u8] = b"done";

/// The group of the server's processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessGroup(Pid);

/// A running server.
pub(crate) struct ServerProcess {
    pub(crate) child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) group: ProcessGroup,
}

impl ServerProcess {
    /// Starts the server. Its standard error is that of the gate.
    pub(crate) fn start(program: &OsString, arguments: &[OsString]) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        match (child.stdin.take(), child.stdout.take(), pid) {
            (Some(stdin), Some(stdout), Some(pid)) => {
                Ok(Self { child, stdin, stdout, group: ProcessGroup(pid) })
            }
            _ => Err(io::Error::other("the process has no standard input and output")),
        }
    }
}

impl ProcessGroup {
    /// Sends a signal to all processes of the group.
    pub(crate) fn signal(self, signal: Signal) {
        // If the group is empty, there is nothing to do.
        let _ = kill_process_group(self.0, signal);
    }

    /// Whether a process of the group exists.
    fn exists(self) -> bool {
        test_kill_process_group(self.0).is_ok()
    }

    /// Ends all processes of the group: first politely, then by force.
    pub(crate) fn terminate(self) {
        if !self.exists() {
            return;
        }
        self.signal(Signal::TERM);
        let deadline = Instant::now() + TERMINATION_GRACE;
        while self.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(Signal::KILL);
    }
}

/// Returns the exit code that stands for a status: the code itself, or 128 and the signal.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// A second process that ends the server's processes if the gate itself is killed.
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// Starts the guard. `command` is the program that runs [`watch`].
    pub(crate) fn start(command: &[OsString], group: ProcessGroup) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let child = Command::new(program)
            .args(arguments)
            .arg(group.0.as_raw_nonzero().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { child })
    }

    /// Ends the guard, because nothing is left to be guarded.
    pub(crate) fn dismiss(mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            let _ = stdin.write_all(GUARD_DISMISSED);
        }
        let _ = self.child.wait();
    }
}

/// Waits until standard input ends, which happens when the gate ends, however it ends. Then terminates the process group, unless
/// the gate has said that it did so itself.
pub fn watch(group: i32) {
    let mut message = Vec::new();
    let _ = io::stdin().lock().take(16).read_to_end(&mut message);
    // Group 0 would be the guard's own, and 1 that of the system.
    if message != GUARD_DISMISSED
        && group > 1
        && let Some(group) = Pid::from_raw(group)
    {
        ProcessGroup(group).terminate();
    }
}
