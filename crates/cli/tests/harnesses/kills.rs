//! The hook, the hub or the harness is killed or suspended while a question is open, and a yes comes too late.
//!
//! No command is executed without a yes in time, except where a harness makes calls whose hook takes too long, and its timeout was made
//! shorter than the deadline of the hook.

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testing::cli::KillTimer;

use crate::fixture::{HarnessFixture, Person, ProcessKind, borrowed};
use crate::{claude, others};

/// The timeout of the harness and the deadline of its hooks, in seconds, if the question lasts longer than both.
const HARNESS_TIMEOUT: u32 = 30;
const DEADLINE: u32 = 15;

/// What happens while the question is open. After it, the person says yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    HookKilled,
    HubKilled,
    HarnessKilled,
    /// The hook is suspended until the person has said yes too late.
    HookSuspended,
    /// The hook is suspended, and never resumed.
    HookStopped,
    /// The hook and the shell in which the harness runs it are suspended, and never resumed.
    ShellStopped,
    /// All processes of sayso are suspended, and never resumed.
    SaysoStopped,
    /// The harness, the shell and the hook are suspended until the deadline of the hook has passed.
    HarnessSuspended,
    /// The timeout of the harness is shorter than the deadline of the hook.
    ShortTimeout,
}

impl Fault {
    const ALL: [Self; 9] = [
        Self::HookKilled,
        Self::HubKilled,
        Self::HarnessKilled,
        Self::HookSuspended,
        Self::HookStopped,
        Self::ShellStopped,
        Self::SaysoStopped,
        Self::HarnessSuspended,
        Self::ShortTimeout,
    ];

    /// Returns the deadline of the hook and the timeout of the harness, in seconds. `None` stands for the default.
    fn times(self) -> (u32, Option<u32>) {
        match self {
            Self::HookKilled | Self::HubKilled | Self::HarnessKilled => (120, None),
            Self::HookSuspended | Self::HarnessSuspended => (DEADLINE, None),
            Self::HookStopped | Self::ShellStopped | Self::SaysoStopped => (DEADLINE, Some(HARNESS_TIMEOUT)),
            Self::ShortTimeout => (120, Some(10)),
        }
    }
}

/// Variables of an environment.
pub(crate) type Environment = Vec<(&'static str, String)>;

/// A harness that runs without a screen.
pub(crate) struct Harness {
    pub(crate) name: &'static str,
    /// The file with its hooks, and its timeout for a second.
    pub(crate) hooks: (&'static str, u32),
    /// Connects it with these options of the hook. Returns its environment.
    pub(crate) configure: fn(&HarnessFixture, &[&str]) -> Environment,
    pub(crate) options: &'static [&'static str],
    /// Starts it.
    pub(crate) start: fn(&HarnessFixture, &[(&str, &str)]) -> Child,
    /// The faults after which it executes the command without a yes. The others must be refused.
    fails_open: &'static [Fault],
    /// Whether it waits without end for a hook that does not answer.
    waits_for_hooks: bool,
    /// How many of it run at the same time. It must be able to ask within two minutes.
    parallel_runs: usize,
}

fn start_claude(fixture: &HarnessFixture, environment: &[(&str, &str)], mode: &str) -> Child {
    let prompt = claude::prompt_for(&format!("touch {}", fixture.marker().display()));
    let arguments = ["-p", "--permission-mode", mode, &prompt];
    fixture.spawn(&HarnessFixture::program("claude"), &arguments, environment)
}

pub(crate) const CLAUDE: Harness = Harness {
    name: "Claude Code",
    hooks: (".claude/settings.json", 1),
    configure: claude::configure,
    options: &[],
    start: |fixture, environment| start_claude(fixture, environment, "default"),
    fails_open: &[],
    waits_for_hooks: false,
    parallel_runs: Fault::ALL.len(),
};

const CLAUDE_BYPASS: Harness = Harness {
    name: "Claude Code in bypass mode",
    options: &["--gate", "risky"],
    start: |fixture, environment| start_claude(fixture, environment, "bypassPermissions"),
    ..CLAUDE
};

pub(crate) const CODEX: Harness = Harness {
    name: "Codex",
    hooks: (".codex/hooks.json", 1),
    configure: |fixture, options| others::configure_codex(fixture, options, "never", "danger-full-access"),
    options: &["--gate", "risky", "--required"],
    start: |fixture, environment| {
        let script = others::script(fixture, "exec_command", json!({}));
        let arguments = ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", &script];
        fixture.spawn(&HarnessFixture::program("codex"), &arguments, environment)
    },
    fails_open: &[Fault::ShortTimeout],
    waits_for_hooks: false,
    parallel_runs: Fault::ALL.len(),
};

pub(crate) const GEMINI: Harness = Harness {
    name: "Gemini CLI",
    hooks: (".gemini/settings.json", 1000),
    configure: |fixture, options| others::configure_gemini(fixture, Some(options)),
    options: &["--gate", "risky", "--required"],
    start: |fixture, environment| {
        let script = others::script(fixture, "run_shell_command", json!({"description": "Make a file"}));
        let arguments = ["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", &script];
        fixture.spawn(&HarnessFixture::program("gemini"), &arguments, environment)
    },
    fails_open: &[Fault::ShortTimeout],
    waits_for_hooks: false,
    parallel_runs: Fault::ALL.len(),
};

pub(crate) const OPENCODE: Harness = Harness {
    name: "opencode",
    hooks: (".config/opencode/plugins/sayso.js", 1),
    configure: |fixture, options| others::configure_opencode(fixture, Some(options), "allow"),
    options: &["--gate", "risky", "--required"],
    start: |fixture, environment| {
        let script = others::script(fixture, "bash", json!({"description": "Make a file"}));
        fixture.spawn(&HarnessFixture::program("opencode"), &["run", &script], environment)
    },
    fails_open: &[],
    waits_for_hooks: true,
    parallel_runs: 3,
};

/// Runs the harness with a fault. Returns whether the command was executed.
fn run(harness: &Harness, fault: Fault) -> bool {
    let mut fixture = HarnessFixture::start(Person::IsSilent);
    let (deadline, timeout) = fault.times();
    let deadline = deadline.to_string();
    let environment = (harness.configure)(&fixture, &[harness.options, &["--deadline", &deadline]].concat());
    if let Some(timeout) = timeout {
        set_timeouts(&fixture, harness, timeout);
    }
    let child = (harness.start)(&fixture, &borrowed(&environment));
    let timer = KillTimer::start(child.id());
    fixture.wait_until("question", || fixture.questions() == 1);
    let asked_at = Instant::now();
    assert!(!fixture.marker().exists(), "{} did not wait", harness.name);
    match fault {
        Fault::HookKilled => fixture.signal(ProcessKind::Hook, "-KILL"),
        Fault::HubKilled => fixture.hub.kill(),
        Fault::HarnessKilled => fixture.signal(ProcessKind::Other, "-KILL"),
        Fault::HookSuspended => {
            fixture.signal(ProcessKind::Hook, "-STOP");
            fixture.wait_until("end of the question", || {
                fixture.events().iter().any(|event| event.to_string().contains("\"timeout\""))
            });
        }
        Fault::HookStopped => fixture.signal(ProcessKind::Hook, "-STOP"),
        Fault::ShellStopped => {
            fixture.signal(ProcessKind::HookShell, "-STOP");
            fixture.signal(ProcessKind::Hook, "-STOP");
        }
        Fault::SaysoStopped => {
            fixture.signal(ProcessKind::Watchdog, "-STOP");
            fixture.signal(ProcessKind::Hook, "-STOP");
        }
        Fault::HarnessSuspended => {
            for kind in [ProcessKind::Other, ProcessKind::HookShell, ProcessKind::Hook] {
                fixture.signal(kind, "-STOP");
            }
            let time = Duration::from_secs(u64::from(HARNESS_TIMEOUT));
            fixture.wait_until("end of the deadline", || asked_at.elapsed() > time);
        }
        Fault::ShortTimeout => {}
    }
    // A hub would take a yes to a question that is still open for a hook that is suspended. The hook must not use it later.
    if fault != Fault::ShortTimeout {
        fixture.say_yes();
    }
    if matches!(fault, Fault::HookSuspended | Fault::HarnessSuspended) {
        for kind in [ProcessKind::Hook, ProcessKind::HookShell, ProcessKind::Other] {
            fixture.signal(kind, "-CONT");
        }
    }
    let output = child.wait_with_output().unwrap();
    drop(timer);
    eprintln!("{} {fault:?}: {:?} {}", harness.name, output.status, String::from_utf8_lossy(&output.stdout));
    // The hook may survive its harness.
    fixture.say_yes();
    fixture.wait_until("end of the hooks", || fixture.processes(ProcessKind::Hook).is_empty());
    let is_executed = fixture.marker().exists();
    for kind in [ProcessKind::Watchdog, ProcessKind::HookShell, ProcessKind::Other] {
        fixture.signal(kind, "-KILL");
    }
    is_executed
}

/// Makes the harness wait this many seconds for its hooks.
fn set_timeouts(fixture: &HarnessFixture, harness: &Harness, timeout: u32) {
    fn set(value: &mut Value, timeout: u32) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| set(item, timeout)),
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "timeout" { *member = json!(timeout) } else { set(member, timeout) }
                }
            }
            _ => {}
        }
    }
    let (file, second) = harness.hooks;
    if harness.waits_for_hooks {
        return;
    }
    let path = fixture.home().join(file);
    let mut settings: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    set(&mut settings["hooks"], timeout * second);
    std::fs::write(path, settings.to_string()).unwrap();
}

/// Runs the harness with each fault. Most of the time of a run is spent waiting, so several run at the same time.
fn check(harness: &Harness) {
    let faults = Fault::ALL.iter().filter(|fault| !harness.waits_for_hooks || **fault != Fault::ShortTimeout);
    let faults: Vec<_> = faults.copied().collect();
    let mut executed = Vec::new();
    for faults in faults.chunks(harness.parallel_runs) {
        std::thread::scope(|scope| {
            let runs: Vec<_> =
                faults.iter().map(|fault| (*fault, scope.spawn(move || run(harness, *fault)))).collect();
            let ended = runs.into_iter().map(|(fault, run)| (fault, run.join().unwrap()));
            executed.extend(ended.filter(|(_, is_executed)| *is_executed).map(|(fault, _)| fault));
        });
    }
    assert_eq!(executed, harness.fails_open, "{}", harness.name);
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_executes_nothing_if_a_process_is_killed_or_suspended_during_the_question() {
    check(&CLAUDE);
}

#[test]
#[ignore = "needs Claude Code; run `cargo xtask gates`"]
fn claude_in_bypass_mode_executes_nothing_if_a_process_is_killed_or_suspended_during_the_question() {
    check(&CLAUDE_BYPASS);
}

#[test]
#[ignore = "needs Codex; run `cargo xtask gates`"]
fn codex_executes_a_command_without_a_yes_only_if_its_timeout_is_shorter_than_the_deadline() {
    check(&CODEX);
}

#[test]
#[ignore = "needs Gemini CLI; run `cargo xtask gates`"]
fn gemini_executes_a_command_without_a_yes_only_if_its_timeout_is_shorter_than_the_deadline() {
    check(&GEMINI);
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_executes_nothing_if_a_process_is_killed_or_suspended_during_the_question() {
    check(&OPENCODE);
}
