//! The server as a child process: signals, exit code, standard error, and no orphans.

use std::process::Command;

use serde_json::json;
use testing::cli::{run_sayso, send_signal};

use super::support::Gate;

/// Whether a process exists and is not a zombie.
fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_ok_and(|status| !status.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

/// Waits until a process has ended.
fn wait_until_gone(pid: &str) {
    let deadline = std::time::Instant::now() + testing::http::TIMEOUT;
    while is_alive(pid) {
        assert!(std::time::Instant::now() < deadline, "process {pid} is still there");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Starts a grandchild of the gate and returns its process id.
fn spawn_grandchild(gate: &mut Gate) -> String {
    gate.send(&json!({"jsonrpc": "2.0", "id": "spawn", "method": "spawn"}));
    let pid = gate.answer("spawn")["result"]["pid"].to_string();
    assert!(is_alive(&pid));
    pid
}

#[test]
fn the_gate_exits_with_the_servers_exit_code() {
    let mut gate = Gate::start(None, &[], &["exit-7"]);
    gate.sync();
    gate.close_input();
    assert_eq!(gate.wait(), Some(7));
    let mut gate = Gate::start(None, &[], &[]);
    gate.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "exit", "params": {"code": 42}}));
    assert_eq!(gate.wait(), Some(42));
    let folder = tempfile::tempdir().unwrap();
    let mut gate = Gate::start_command(folder, None, &[], &["sh", "-c", "kill -9 $$"]);
    assert_eq!(gate.wait(), Some(128 + 9));
}

#[test]
fn a_server_that_cannot_be_started_is_reported_with_exit_code_2() {
    let output = run_sayso(&["mcp", "--", "no-such-program-anywhere"], "");
    assert_eq!(output.exit_code, 2);
    assert_eq!(output.stdout, "");
    assert!(output.stderr.starts_with("sayso: cannot start no-such-program-anywhere: "), "{}", output.stderr);
    assert_eq!(run_sayso(&["mcp"], "").exit_code, 2);
    assert_eq!(run_sayso(&["mcp", "--name", "", "--", "true"], "").exit_code, 2);
}

#[test]
fn standard_error_of_the_server_is_untouched_and_the_gate_adds_nothing() {
    let output = run_sayso(&["mcp", "--", "sh", "-c", "echo out; echo err >&2"], "");
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
fn signals_reach_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"import os, signal, time
def stop(*_):
    print("got TERM", flush=True)
    os._exit(3)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGUSR1, lambda *_: print("got USR1", flush=True))
print("ready", flush=True)
while True:
    time.sleep(3600)
"#;
    let mut gate = Gate::start_command(folder, None, &[], &["python3", "-c", script]);
    assert_eq!(gate.next_line(), b"ready\n");
    send_signal(&gate.pid(), "-USR1");
    assert_eq!(gate.next_line(), b"got USR1\n");
    send_signal(&gate.pid(), "-TERM");
    assert_eq!(gate.next_line(), b"got TERM\n");
    assert_eq!(gate.wait(), Some(3));
}

#[test]
fn grandchildren_end_with_the_server() {
    let mut gate = Gate::start(None, &[], &[]);
    let grandchild = spawn_grandchild(&mut gate);
    gate.close_input();
    assert_eq!(gate.wait(), Some(0));
    wait_until_gone(&grandchild);
}

#[test]
fn a_gate_that_is_killed_leaves_no_process() {
    let mut gate = Gate::start(None, &[], &["ignore-eof"]);
    let grandchild = spawn_grandchild(&mut gate);
    let children = Command::new("pgrep").args(["-P", &gate.pid()]).output().unwrap();
    let children = String::from_utf8(children.stdout).unwrap();
    assert_eq!(children.lines().count(), 2, "the server and the guard: {children}");
    gate.kill();
    wait_until_gone(&grandchild);
    for child in children.lines() {
        wait_until_gone(child);
    }
}

#[test]
fn the_gate_kills_a_server_that_ignores_eof_when_the_host_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let script = format!(
        "trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 0.05; done",
        pid_file.display()
    );
    // The host closes both ends at once, as if it had been killed.
    let mut command = testing::cli::command(&["mcp", "--", "sh", "-c", &script]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let _timer = testing::cli::KillTimer::start(child.id());
    let server = loop {
        match std::fs::read_to_string(&pid_file) {
            Ok(pid) => break pid.trim().to_owned(),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    drop((child.stdin.take(), child.stdout.take()));
    assert_eq!(child.wait().unwrap().code(), Some(128 + 9));
    wait_until_gone(&server);
}
