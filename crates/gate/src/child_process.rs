//! The program behind a gate: a child process in its own process group, which never outlives the gate.
//!
//! - The child's standard input and output are pipes. Its standard error is the gate's, untouched.
//! - Signals that ask the gate to stop are passed on to the whole group ([`ChildProcess::forward_signals`]).
//! - [`ChildProcess::stop`] ends the group: it waits for an orderly exit, then sends SIGTERM, then SIGKILL. It always ends with
//!   SIGKILL to the group, because launchers such as `npx` leave processes behind.
//! - If the gate itself is killed, a small watchdog process notices the end of a pipe and kills the group.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

/// How long the child may take to exit after its standard input was closed.
pub const EXIT_GRACE: Duration = Duration::from_secs(5);
/// How long the child may take to exit after SIGTERM.
pub const TERM_GRACE: Duration = Duration::from_secs(2);

/// What the watchdog runs: it waits for the end of its standard input and then kills the process group `$1`.
const WATCHDOG_SCRIPT: &str = "while read -r _; do :; done; kill -KILL -\"$1\" 2>/dev/null";

/// Why the program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {program:?}: {}", seal::describe_io_error(source))]
pub struct StartError {
    /// The program.
    pub program: OsString,
    /// The error of the operating system.
    pub source: io::Error,
}

/// A running program with its process group.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    group: Option<Pid>,
    watchdog: Option<Child>,
}

impl ChildProcess {
    /// Starts a program in a process group of its own. Returns it with the pipes to its standard input and output.
    pub fn start(
        program: &OsString,
        arguments: &[OsString],
    ) -> Result<(Self, ChildStdin, ChildStdout), StartError> {
        let failed = |source| StartError { program: program.clone(), source };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let watchdog = group.and_then(|group| start_watchdog(group).ok());
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| failed(io::Error::other("its pipes are missing")))?;
        Ok((Self { child, group, watchdog }, stdin, stdout))
    }

    /// Waits until the program exits. It is cancel-safe. Other processes of its group may still run.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Returns a handle that sends signals to the group.
    pub fn group(&self) -> ProcessGroup {
        ProcessGroup(self.group)
    }

    /// Ends the program and its whole group, and returns the program's exit code. The caller has closed the program's standard
    /// input. A program that ignores this gets SIGTERM after [`EXIT_GRACE`] and SIGKILL after [`TERM_GRACE`].
    pub async fn stop(mut self) -> u8 {
        let mut exited = timeout(EXIT_GRACE, self.child.wait()).await.ok();
        if exited.is_none() {
            self.group().send(Signal::TERM);
            exited = timeout(TERM_GRACE, self.child.wait()).await.ok();
        }
        // While the leader is not reaped, nobody else can get its process group id. Afterwards, the group exists only if some of
        // its processes were left behind; without any, this does nothing.
        self.group().send(Signal::KILL);
        let status = match exited {
            Some(status) => status,
            None => self.child.wait().await,
        };
        self.stop_watchdog().await;
        status.map_or(1, exit_code)
    }

    /// Ends the watchdog before the group id can be used again.
    async fn stop_watchdog(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            let _ = watchdog.kill().await;
        }
    }

    /// Passes SIGINT, SIGTERM, SIGHUP and SIGQUIT of the gate on to the group. Completes at the first signal.
    pub fn forward_signals(group: ProcessGroup) -> io::Result<impl Future<Output = ()>> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut quit = signal(SignalKind::quit())?;
        Ok(async move {
            let received = tokio::select! {
                _ = interrupt.recv() => Signal::INT,
                _ = terminate.recv() => Signal::TERM,
                _ = hangup.recv() => Signal::HUP,
                _ = quit.recv() => Signal::QUIT,
            };
            group.send(received);
        })
    }
}

/// A handle to the process group of a [`ChildProcess`].
#[derive(Clone, Copy, Debug)]
pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Sends a signal to every process of the group. Does nothing if the group is gone.
    pub fn send(self, signal: Signal) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Returns the exit code that a shell reports: the program's own, or 128 and the number of the signal that killed it.
pub fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Starts the process that kills the group when this process ends in any way. The kernel closes the pipe for us.
fn start_watchdog(group: Pid) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", WATCHDOG_SCRIPT, "sayso-watchdog", &group.as_raw_nonzero().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test reports a failure by panicking")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn sh(script: &str) -> (ChildProcess, ChildStdin, ChildStdout) {
        ChildProcess::start(&"/bin/sh".into(), &["-c".into(), script.into()]).unwrap()
    }

    #[tokio::test]
    async fn the_exit_code_of_the_program_is_returned() {
        let (child, stdin, _stdout) = sh("read -r line; exit 7");
        drop(stdin);
        assert_eq!(child.stop().await, 7);
        let (child, _stdin, _stdout) = sh("kill -TERM $$");
        assert_eq!(child.stop().await, 128 + 15);
    }

    #[tokio::test]
    async fn a_process_that_the_program_left_behind_is_killed() {
        let (child, mut stdin, mut stdout) = sh("sleep 1000 & echo $!; read -r line; exit 0");
        stdin.write_all(b"go\n").await.unwrap();
        let mut output = String::new();
        drop(stdin);
        assert_eq!(child.stop().await, 0);
        // The pipe ends only when the left-behind process, which inherited it, is gone.
        stdout.read_to_string(&mut output).await.unwrap();
        assert!(output.trim().parse::<i32>().is_ok(), "{output}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let error = ChildProcess::start(&"/no/such/program".into(), &[]).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
