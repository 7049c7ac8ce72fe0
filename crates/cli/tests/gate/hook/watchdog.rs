//! A hook that is suspended and never resumed is killed, and then the command line that `sayso setup` writes refuses the call.

use std::os::unix::process::CommandExt as _;
use std::path::Path;

use serde_json::json;
use testing::cli::send_signal;

use super::*;

/// Harnesses that make a call whose hook fails or takes too long, with the file and the event of their hook.
const HARNESSES: [(&str, &str, &str, &str); 2] = [
    ("codex", ".codex/hooks.json", "PreToolUse", "Bash"),
    ("gemini", ".gemini/settings.json", "BeforeTool", "run_shell_command"),
];

/// Returns the command line that `sayso setup` writes for the hook of an event, with a deadline of five seconds.
fn command_line(harness: &str, file: &str, event: &str, program: &Path) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut setup = Command::new(program);
    setup.args(["setup", harness, "--gate", "all"]).env_clear().env("HOME", home.path());
    assert!(setup.output().unwrap().status.success());
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(home.path().join(file)).unwrap()).unwrap();
    let line = document["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
    line.replacen(" ||", " --deadline 5 ||", 1)
}

/// Starts a shell, in a process group of its own, that runs a command line as a harness does.
fn run_in_shell(fixture: &HookFixture, line: &str, event: &Value) -> RunningHook {
    let mut command = Command::new("sh");
    command.args(["-c", line]).process_group(0);
    command.env_remove("SAYSO_TOKEN").env("XDG_RUNTIME_DIR", fixture.runtime.path());
    command.env("SAYSO_URL", format!("http://{}", fixture.hub.address));
    RunningHook::spawn(&mut command, event.to_string().as_bytes())
}

/// Returns the ids of the processes of a fixture that run this command of sayso.
fn processes(fixture: &HookFixture, command: &str) -> Vec<String> {
    let runtime = format!("XDG_RUNTIME_DIR={}", fixture.runtime.path().display());
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    folders
        .filter_map(|folder| {
            let environment = std::fs::read(folder.path().join("environ")).ok()?;
            let words = std::fs::read_to_string(folder.path().join("cmdline")).ok()?;
            let is_own = environment.split(|byte| *byte == 0).any(|variable| variable == runtime.as_bytes());
            (is_own && words.split('\0').nth(1) == Some(command))
                .then(|| folder.file_name().to_string_lossy().into_owned())
        })
        .collect()
}

fn only_process(fixture: &HookFixture, command: &str) -> String {
    let found = processes(fixture, command);
    assert_eq!(found.len(), 1, "{command} {found:?}");
    found.into_iter().next().unwrap()
}

/// Suspends processes of a hook during its question, and says yes. Neither Codex nor Gemini CLI may get an answer that permits the call.
fn check_refusal(suspend: impl Fn(&HookFixture, &RunningHook)) {
    for (harness, file, event, tool) in HARNESSES {
        let fixture = HookFixture::start();
        let mut listener = fixture.listen();
        let line = command_line(harness, file, event, &binary());
        let call = json!({
            "session_id": "s1", "cwd": "/home/x/shop", "hook_event_name": event, "tool_name": tool,
            "tool_input": {"command": "rm a"}
        });
        let shell = run_in_shell(&fixture, &line, &call);
        let token = listener.wait_for_question();
        suspend(&fixture, &shell);
        fixture.answer(&listener, &token, "accept");
        let output = shell.child.wait_with_output().unwrap();
        let reason = String::from_utf8_lossy(&output.stderr);
        // With exit code 2 and a reason, these harnesses refuse the call.
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{harness}: {reason}");
        assert!(reason.contains("Not permitted: "), "{harness}: {reason}");
    }
}

#[test]
fn a_hook_that_stays_suspended_refuses_the_call() {
    check_refusal(|fixture, _| send_signal(&only_process(fixture, "hook"), "-STOP"));
}

#[test]
fn a_hook_whose_process_group_stays_suspended_refuses_the_call() {
    use rustix::process::{Pid, Signal, kill_process_group};

    check_refusal(|_, shell| {
        // Not with the program `kill`, which can take a negative number for "all processes".
        let group = Pid::from_child(&shell.child);
        kill_process_group(group, Signal::STOP).unwrap();
    });
}

#[test]
fn a_hook_refuses_the_call_even_if_all_processes_of_sayso_stay_suspended() {
    check_refusal(|fixture, _| {
        send_signal(&only_process(fixture, "hook-watchdog"), "-STOP");
        send_signal(&only_process(fixture, "hook"), "-STOP");
    });
}

#[test]
fn a_hook_that_is_suspended_before_it_has_read_its_event_refuses_the_call() {
    for (harness, file, event, _) in HARNESSES {
        let fixture = HookFixture::start();
        let line = command_line(harness, file, event, &binary());
        let mut command = Command::new("sh");
        command.args(["-c", &line]).env("XDG_RUNTIME_DIR", fixture.runtime.path());
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = streams.spawn().unwrap();
        let _timer = KillTimer::start(child.id());
        let deadline = Instant::now() + MAX_SILENCE;
        let hook = loop {
            assert!(Instant::now() < deadline, "no hook");
            // Only a hook that handles signals has begun to work.
            let is_working = |process: &String| {
                let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
                let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
                u64::from_str_radix(caught.trim(), 16).unwrap_or_default() & (1 << 14) != 0
            };
            if let Some(hook) = processes(&fixture, "hook").into_iter().find(is_working) {
                break hook;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        send_signal(&hook, "-STOP");
        // It would keep the pipes open.
        let _hook_timer = KillTimer::start(hook.parse().unwrap());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{harness} {output:?}");
    }
}

#[test]
fn a_hook_does_not_need_its_watchdog_to_answer_and_the_watchdog_ends_with_it() {
    let fixture = HookFixture::start();
    let mut listener = fixture.listen();
    for signal in ["-KILL", "-STOP", "-CONT"] {
        let hook = fixture.spawn(&["claude"], &permission_request("rm a"));
        let token = listener.wait_for_question();
        let watchdog = only_process(&fixture, "hook-watchdog");
        send_signal(&watchdog, signal);
        fixture.answer(&listener, &token, "accept");
        assert_eq!(hook.finish(), allowed());
        if signal == "-STOP" {
            send_signal(&watchdog, "-CONT");
        }
        let deadline = Instant::now() + MAX_SILENCE;
        while !processes(&fixture, "hook-watchdog").is_empty() {
            assert!(Instant::now() < deadline, "the watchdog still runs after {signal}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // Narration is not worth a process.
    let call = bash_event("PostToolUse", "ls", "toolu_1");
    fixture.spawn(&["claude"], &call).finish();
}

#[test]
fn a_hook_whose_watchdog_cannot_start_refuses_the_call() {
    let fixture = HookFixture::start();
    let _listener = fixture.listen();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("sayso");
    for (arguments, call, expected) in [
        (
            &["codex", "--gate", "all"][..],
            bash_event("PreToolUse", "rm a", "toolu_1"),
            pre_tool("deny", "Not permitted: sayso could not start its watchdog."),
        ),
        (&["claude"], permission_request("rm a"), json!({})),
    ] {
        std::fs::copy(binary(), &program).unwrap();
        let mut command = Command::new(&program);
        command.arg("hook").args(arguments).env_remove("SAYSO_TOKEN");
        command.env("XDG_RUNTIME_DIR", fixture.runtime.path());
        command.env("SAYSO_URL", format!("http://{}", fixture.hub.address));
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        let timer = KillTimer::start(child.id());
        // The hook reads its event after this.
        std::fs::remove_file(&program).unwrap();
        child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
        assert_eq!(RunningHook { child, _timer: timer }.finish(), expected);
    }
}
