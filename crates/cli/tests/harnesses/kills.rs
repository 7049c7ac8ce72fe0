//! The hook, the hub or the harness is killed or suspended while a question is open, and a yes comes too late.
//!
//! No command is executed without a yes in time, except where a harness makes calls whose hook takes too long.

use std::process::Child;

use serde_json::{Value, json};
use testing::cli::KillTimer;

use crate::fixture::{HarnessFixture, Person, borrowed};
use crate::{claude, others};

/// How long the harness waits for its hooks in [`Fault::HookTakesTooLong`], in seconds.
const HARNESS_TIMEOUT: u32 = 10;

/// What happens while the question is open. After it, the person says yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    HookKilled,
    HubKilled,
    HarnessKilled,
    /// The hook is suspended until its deadline has passed and the person has said yes.
    HookSuspended,
    /// The harness does not wait for the answer any longer.
    HookTakesTooLong,
}

const FAULTS: [Fault; 5] = [
    Fault::HookKilled,
    Fault::HubKilled,
    Fault::HarnessKilled,
    Fault::HookSuspended,
    Fault::HookTakesTooLong,
];

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
    fails_open: &[Fault::HookTakesTooLong],
    waits_for_hooks: false,
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
    fails_open: &[Fault::HookTakesTooLong],
    waits_for_hooks: false,
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
};

/// Runs the harness with a fault. Returns whether the command was executed.
fn run(harness: &Harness, fault: Fault) -> bool {
    let mut fixture = HarnessFixture::start(Person::IsSilent);
    let deadline = if fault == Fault::HookSuspended { "15" } else { "120" };
    let environment = (harness.configure)(&fixture, &[harness.options, &["--deadline", deadline]].concat());
    if fault == Fault::HookTakesTooLong {
        shorten_timeouts(&fixture, harness);
    }
    let child = (harness.start)(&fixture, &borrowed(&environment));
    let timer = KillTimer::start(child.id());
    fixture.wait_until("question", || fixture.questions() == 1);
    assert!(!fixture.marker().exists(), "{} did not wait", harness.name);
    match fault {
        Fault::HookKilled => fixture.signal(true, "-KILL"),
        Fault::HubKilled => fixture.hub.kill(),
        Fault::HarnessKilled => fixture.signal(false, "-KILL"),
        Fault::HookSuspended => {
            fixture.signal(true, "-STOP");
            fixture.wait_until("end of the question", || {
                fixture.events().iter().any(|event| event.to_string().contains("\"timeout\""))
            });
        }
        Fault::HookTakesTooLong => {}
    }
    if fault != Fault::HookTakesTooLong {
        fixture.say_yes();
    }
    if fault == Fault::HookSuspended {
        fixture.signal(true, "-CONT");
    }
    let output = child.wait_with_output().unwrap();
    drop(timer);
    eprintln!("{} {fault:?}: {:?} {}", harness.name, output.status, String::from_utf8_lossy(&output.stdout));
    // The hook may survive its harness.
    fixture.say_yes();
    fixture.wait_until("end of the hooks", || fixture.processes(true).is_empty());
    fixture.signal(false, "-KILL");
    fixture.marker().exists()
}

/// Makes the harness wait less for its hooks.
fn shorten_timeouts(fixture: &HarnessFixture, harness: &Harness) {
    fn shorten(value: &mut Value, timeout: u32) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, timeout)),
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "timeout" { *member = json!(timeout) } else { shorten(member, timeout) }
                }
            }
            _ => {}
        }
    }
    let (file, second) = harness.hooks;
    let path = fixture.home().join(file);
    let mut settings: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    shorten(&mut settings["hooks"], HARNESS_TIMEOUT * second);
    std::fs::write(path, settings.to_string()).unwrap();
}

/// Runs the harness with each fault. Most of the time of a run is spent waiting, so they run at the same time.
fn check(harness: &Harness) {
    let faults = FAULTS.iter().filter(|fault| !harness.waits_for_hooks || **fault != Fault::HookTakesTooLong);
    let executed: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = faults.map(|fault| (*fault, scope.spawn(move || run(harness, *fault)))).collect();
        let ended = runs.into_iter().map(|(fault, run)| (fault, run.join().unwrap()));
        ended.filter(|(_, is_executed)| *is_executed).map(|(fault, _)| fault).collect()
    });
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
fn codex_executes_a_command_without_a_yes_only_if_its_hook_takes_too_long() {
    check(&CODEX);
}

#[test]
#[ignore = "needs Gemini CLI; run `cargo xtask gates`"]
fn gemini_executes_a_command_without_a_yes_only_if_its_hook_takes_too_long() {
    check(&GEMINI);
}

#[test]
#[ignore = "needs opencode; run `cargo xtask gates`"]
fn opencode_executes_nothing_if_a_process_is_killed_or_suspended_during_the_question() {
    check(&OPENCODE);
}
