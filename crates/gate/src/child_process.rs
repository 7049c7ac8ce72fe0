//! The program behind a gate: a child process in its own process group, which never outlives the gate.
//!
//! - The child's standard input and output are pipes. Its standard error is the gate's, untouched.
//! - Signals of the gate are passed on to the whole group ([`CaughtSignals`]).
//! - [`ChildProcess::stop`] and [`ProcessGroup::terminate`] end the group, because launchers such as `npx` leave processes behind.
//! - If the gate itself is killed, a small second process notices the end of a pipe and ends the group ([`watch`]).

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long the child may take to exit after its standard input was closed.
pub const EXIT_GRACE: Duration = Duration::from_secs(5);
/// How long the child and its group may take to exit after SIGTERM.
pub const TERM_GRACE: Duration = Duration::from_secs(2);

/// The message with which the gate dismisses its guard, after it has ended everything itself.
const GUARD_DISMISSED: &[u8] = b"done";

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
///
/// If it is dropped without [`ChildProcess::stop`] or [`ChildProcess::dismiss_guard`], the guard ends the group.
#[derive(Debug)]
pub struct ChildProcess {
    group: ProcessGroup,
    exit: oneshot::Receiver<io::Result<ExitStatus>>,
    guard: Option<Guard>,
}

impl ChildProcess {
    /// Starts a program in a process group of its own. Returns it with the pipes to its standard input and output.
    ///
    /// `guard_command` is the command that runs [`watch`]. The id of the group is appended to it.
    pub fn start(
        program: &OsString,
        arguments: &[OsString],
        guard_command: &[OsString],
    ) -> Result<(Self, ChildStdin, ChildStdout), StartError> {
        let failed = |source| StartError { program: program.clone(), source };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (Some(stdin), Some(stdout), Some(id)) = (child.stdin.take(), child.stdout.take(), id) else {
            return Err(failed(io::Error::other("its pipes are missing")));
        };
        let group = ProcessGroup(id);
        // Without a guard the gate works, but a gate that is killed leaves its child to notice the end of its input.
        let guard = Guard::start(guard_command, group).ok();
        let (exited, exit) = oneshot::channel();
        let waiting = std::thread::Builder::new().name("child-wait".to_owned()).spawn(move || {
            let _ = exited.send(child.wait());
        });
        if let Err(error) = waiting {
            group.send(Signal::KILL);
            return Err(failed(error));
        }
        Ok((Self { group, exit, guard }, stdin, stdout))
    }

    /// Waits until the program exits. It is cancel-safe, but must not be called again after it has returned. Other processes of
    /// the group may still run.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match (&mut self.exit).await {
            Ok(status) => status,
            Err(_) => Err(io::Error::other("the program's exit code is not known")),
        }
    }

    /// Returns a handle that sends signals to the group.
    pub fn group(&self) -> ProcessGroup {
        self.group
    }

    /// Ends the program and its whole group, and returns the program's exit code. `status` is what [`ChildProcess::wait`] has
    /// returned, if it has. The caller has closed the program's standard input. A program that ignores this gets SIGTERM after
    /// [`EXIT_GRACE`] and SIGKILL after [`TERM_GRACE`]. What is left of its group is killed.
    pub async fn stop(mut self, status: Option<io::Result<ExitStatus>>) -> u8 {
        let mut exited = status;
        if exited.is_none() {
            exited = timeout(EXIT_GRACE, self.wait()).await.ok();
        }
        if exited.is_none() {
            self.group.send(Signal::TERM);
            exited = timeout(TERM_GRACE, self.wait()).await.ok();
        }
        // The group exists only if some of its processes were left behind; without any, this does nothing.
        self.group.send(Signal::KILL);
        let status = match exited {
            Some(status) => status,
            None => self.wait().await,
        };
        self.dismiss_guard();
        status.map_or(1, exit_code)
    }

    /// Ends the guard, because no process of the group is left.
    pub fn dismiss_guard(mut self) {
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
    }
}

/// The signals of the gate, which no longer end it.
#[derive(Debug)]
pub struct CaughtSignals(Vec<(tokio::signal::unix::Signal, Signal)>);

impl CaughtSignals {
    /// Catches the signals that end a program, and those that programs use for themselves. Call it in a runtime, before the
    /// program is started.
    pub fn catch() -> Self {
        let signals = [
            (SignalKind::terminate(), Signal::TERM),
            (SignalKind::interrupt(), Signal::INT),
            (SignalKind::hangup(), Signal::HUP),
            (SignalKind::quit(), Signal::QUIT),
            (SignalKind::user_defined1(), Signal::USR1),
            (SignalKind::user_defined2(), Signal::USR2),
            (SignalKind::window_change(), Signal::WINCH),
        ];
        let caught = signals.into_iter().filter_map(|(kind, caught)| Some((signal(kind).ok()?, caught)));
        Self(caught.collect())
    }

    /// Waits for the next signal. It is cancel-safe.
    pub async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (stream, caught) in &mut self.0 {
                if matches!(stream.poll_recv(context), Poll::Ready(Some(()))) {
                    return Poll::Ready(*caught);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Passes signals on to the group, until one has arrived that asks to end.
    pub async fn forward_until_end(mut self, group: ProcessGroup) {
        loop {
            let received = self.next().await;
            group.send(received);
            if [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&received) {
                return;
            }
        }
    }

    /// Passes all signals on to the group.
    pub async fn forward(mut self, group: ProcessGroup) {
        loop {
            group.send(self.next().await);
        }
    }
}

/// A handle to the process group of a [`ChildProcess`].
#[derive(Clone, Copy, Debug)]
pub struct ProcessGroup(Pid);

impl ProcessGroup {
    /// Sends a signal to every process of the group. Does nothing if the group is gone.
    pub fn send(self, signal: Signal) {
        let _ = kill_process_group(self.0, signal);
    }

    /// Whether a process of the group exists.
    fn exists(self) -> bool {
        test_kill_process_group(self.0).is_ok()
    }

    /// Ends all processes of the group: first with SIGTERM, after [`TERM_GRACE`] with SIGKILL. Blocks the thread.
    pub fn terminate(self) {
        if !self.exists() {
            return;
        }
        self.send(Signal::TERM);
        let deadline = Instant::now() + TERM_GRACE;
        while self.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.send(Signal::KILL);
    }
}

/// Returns the exit code that a shell reports: the program's own, or 128 and the number of the signal that killed it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// A second process that ends the group if the gate itself is killed.
#[derive(Debug)]
struct Guard {
    child: Child,
}

impl Guard {
    fn start(command: &[OsString], group: ProcessGroup) -> io::Result<Self> {
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
    fn dismiss(mut self) {
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
    // Group 0 would be the guard's own, and group 1 the system's.
    if message != GUARD_DISMISSED
        && group > 1
        && let Some(group) = Pid::from_raw(group)
    {
        ProcessGroup(group).terminate();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test reports a failure by panicking")]

    use super::*;

    fn sh(script: &str) -> (ChildProcess, ChildStdin, ChildStdout) {
        ChildProcess::start(&"/bin/sh".into(), &["-c".into(), script.into()], &[]).unwrap()
    }

    #[tokio::test]
    async fn the_exit_code_of_the_program_is_returned() {
        let (child, stdin, _stdout) = sh("read -r line; exit 7");
        drop(stdin);
        assert_eq!(child.stop(None).await, 7);
        let (child, _stdin, _stdout) = sh("kill -TERM $$");
        assert_eq!(child.stop(None).await, 128 + 15);
    }

    #[tokio::test]
    async fn a_process_that_the_program_left_behind_is_killed() {
        let (child, mut stdin, mut stdout) = sh("sleep 1000 & echo $!; read -r line; exit 0");
        stdin.write_all(b"go\n").unwrap();
        let mut output = String::new();
        drop(stdin);
        assert_eq!(child.stop(None).await, 0);
        // The pipe ends only when the left-behind process, which inherited it, is gone.
        stdout.read_to_string(&mut output).unwrap();
        assert!(output.trim().parse::<i32>().is_ok(), "{output}");
    }

    #[tokio::test]
    async fn an_exit_that_was_seen_before_keeps_its_code() {
        let (mut child, _stdin, _stdout) = sh("exit 7");
        let status = child.wait().await;
        assert_eq!(child.stop(Some(status)).await, 7);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = ChildProcess::start(&"/no/such/program".into(), &[], &[]).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
