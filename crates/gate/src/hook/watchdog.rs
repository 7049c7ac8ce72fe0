//! Ends a hook that does not answer by its deadline because it is suspended (SIGSTOP, Ctrl+Z) or hangs.
//!
//! Some harnesses make a call whose hook takes longer than their timeout. The command that `sayso setup` writes for them refuses the
//! call if the hook is killed, so a hook that cannot answer must be killed in time. Two watchdogs do that, because a suspended
//! process can do nothing by itself:
//!
//! - A second process ([`start`], [`watch`]) in a process group of its own, so that a signal to the group of the hook does not reach it. It also
//!   resumes the shell that started the hook, which must print the refusal and may be suspended, too.
//! - On Linux, a timer of the kernel ([`arm_kill_timer`]), which also works if all processes of sayso are suspended.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::Harness;

/// How long after its deadline a hook is killed. A hook that runs has answered before.
const KILL_MARGIN: Duration = Duration::from_secs(1);
/// How long after its deadline the kernel kills the hook. The other watchdog is first, because it can resume the shell.
#[cfg(target_os = "linux")]
const TIMER_MARGIN: Duration = Duration::from_secs(2);

/// The programs that a harness starts a command line with.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];

/// Makes the kernel kill this process if it still runs after its deadline, even if it is suspended then. Without such a timer, the
/// other watchdog remains.
pub(super) fn arm_kill_timer(deadline: Instant) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::signal::{SigEvent, SigevNotify, Signal};
        use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
        use nix::time::ClockId;

        let kill = SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 };
        let left = (deadline + TIMER_MARGIN).saturating_duration_since(Instant::now());
        if let Ok(mut timer) = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(kill)) {
            let _ = timer.set(Expiration::OneShot(left.into()), TimerSetTimeFlags::empty());
            // Dropping it would disarm it. The kernel removes it when the process ends.
            std::mem::forget(timer);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = deadline;
}

/// Starts the process that watches this one. It ends after this process and the shell that started it. `command` runs [`watch`]; the
/// arguments are appended to it.
pub(super) fn start(command: &[OsString], harness: Harness, deadline: Instant) -> io::Result<()> {
    let (program, arguments) = command.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let left = (deadline + KILL_MARGIN).saturating_duration_since(Instant::now());
    let mut watchdog = Command::new(program);
    watchdog.args(arguments).args([std::process::id().to_string(), left.as_millis().to_string()]);
    let parent = std::os::unix::process::parent_id();
    if is_shell_of_hook(parent, harness) {
        watchdog.args(["--shell".to_owned(), parent.to_string()]);
    }
    watchdog.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = watchdog.process_group(0).spawn()?;
    // The pipe to its standard input must end with this process, not earlier.
    std::mem::forget(child);
    Ok(())
}

/// Whether a process is a shell that runs the command line of a hook. The harness itself must not be resumed, because a person may
/// have suspended it.
fn is_shell_of_hook(process: u32, harness: Harness) -> bool {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    is_hook_command(&String::from_utf8_lossy(&line), harness)
}

/// Whether the arguments of a process, each followed by a zero byte, are those of a shell that runs the command line of a hook.
fn is_hook_command(arguments: &str, harness: Harness) -> bool {
    let mut arguments = arguments.split('\0');
    let program = arguments.next().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let is_command_option = |option: &str| option.starts_with('-') && option.contains('c');
    let command = arguments.skip_while(|argument| !is_command_option(argument)).nth(1).unwrap_or_default();
    SHELLS.contains(&program)
        && command.contains("sayso")
        && command.contains(&format!(" hook {}", harness.name()))
}

/// Kills the hook when `time_left` has passed, and resumes the shell that started it. Returns earlier if both have ended. Standard
/// input must end with the hook.
pub fn watch(hook: i32, shell: Option<i32>, time_left: Duration) {
    let deadline = Instant::now() + time_left;
    let shell = shell.and_then(Pid::from_raw).and_then(Shell::find);
    let stdin = io::stdin();
    let has_ended = wait_for_end(&PollFd::new(&stdin, PollFlags::IN), deadline);
    if let Some(hook) = Pid::from_raw(hook).filter(|_| !has_ended) {
        let _ = kill_process(hook, Signal::KILL);
    }
    if let Some(shell) = shell {
        shell.resume_at(deadline);
    }
}

/// Waits until the other end of a file closes. Returns false if the deadline passed before that.
fn wait_for_end(file: &PollFd<'_>, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = rustix::event::Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [file.clone()], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// The shell that started the hook.
struct Shell {
    #[cfg(target_os = "linux")]
    handle: std::os::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Shell {
    /// Returns a handle that stays the one of this process when its id is used again.
    fn find(id: Pid) -> Option<Self> {
        let handle = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()).ok()?;
        Some(Self { handle })
    }

    /// Resumes the shell if it has not ended by the deadline.
    fn resume_at(self, deadline: Instant) {
        if !wait_for_end(&PollFd::new(&self.handle, PollFlags::IN), deadline) {
            let _ = rustix::process::pidfd_send_signal(&self.handle, Signal::CONT);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Shell {
    fn find(_id: Pid) -> Option<Self> {
        None
    }

    fn resume_at(self, _deadline: Instant) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shell_with_the_command_of_a_hook_is_resumed() {
        let is_shell = |arguments: &[&str]| is_hook_command(&(arguments.join("\0") + "\0"), Harness::Codex);
        let command = "/usr/bin/sayso hook codex --gate risky || sh -c 'exit 2'";
        assert!(is_shell(&["/bin/bash", "-c", command]));
        assert!(is_shell(&["zsh", "-l", "-c", command]));
        assert!(is_shell(&["sh", "-lc", command]));
        // The harness itself, which a person may have suspended.
        assert!(!is_shell(&["codex", "exec", "why does sayso hook codex ask?"]));
        assert!(!is_shell(&["codex", "-c", "why does sayso hook codex ask?"]));
        assert!(!is_shell(&["bash", "-c", "sayso hook gemini"]));
        assert!(!is_shell(&["bash", "sayso hook codex"]));
        assert!(!is_shell(&[]));
    }
}
