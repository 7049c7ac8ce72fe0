//! `sayso hook`.

mod answers;
mod any_input;
mod failures;
mod git_folders;
mod kill;
mod narration;
mod sessions;
mod transcripts;
#[cfg(target_os = "linux")]
mod watchdog;

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testing::cli::{KillTimer, binary};
use testing::http::EventStream;
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

/// How long to wait for an event that must come.
const MAX_SILENCE: Duration = Duration::from_mins(1);

/// A hub, and a runtime folder for the hooks.
struct HookFixture {
    hub: HubProcess,
    runtime: tempfile::TempDir,
}

/// A listener that answers questions.
struct Listener {
    subscription: String,
    stream: EventStream,
}

/// A hook that runs.
struct RunningHook {
    child: Child,
    _timer: KillTimer,
}

impl HookFixture {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(arguments: &[&str]) -> Self {
        Self { hub: HubProcess::start_in_memory_with(arguments), runtime: tempfile::tempdir().unwrap() }
    }

    fn listen(&self) -> Listener {
        self.listen_with(REPLY_CAPABILITIES)
    }

    fn listen_with(&self, capabilities: &str) -> Listener {
        let client = self.hub.client();
        let subscription = client.subscribe(capabilities);
        let stream = client.open_event_stream(&subscription, None);
        Listener { subscription, stream }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.arg("hook").args(arguments);
        command.env_remove("SAYSO_TOKEN").env("XDG_RUNTIME_DIR", self.runtime.path());
        command.env("SAYSO_URL", format!("http://{}", self.hub.address));
        command
    }

    /// Starts a hook with this event.
    fn spawn(&self, arguments: &[&str], event: &Value) -> RunningHook {
        RunningHook::spawn(&mut self.command(arguments), event.to_string().as_bytes())
    }

    /// Runs a hook of Claude Code with this event, and returns what it prints.
    fn run(&self, event: &Value) -> Value {
        self.spawn(&["claude"], event).finish()
    }

    fn answer(&self, listener: &Listener, token: &str, decision: &str) {
        assert_eq!(self.hub.client().reply(&listener.subscription, token, decision).status, 204);
    }
}

impl Listener {
    fn next_before(&mut self, deadline: Instant, awaited: &str) -> (String, String, Value) {
        loop {
            let line = self.stream.next_line();
            assert!(Instant::now() < deadline, "no {awaited}");
            if let Some(data) = line.strip_prefix("data: ") {
                let event: Value = serde_json::from_str(data).unwrap();
                let kind = event["type"].as_str().unwrap().replace("aaep:agent.", "");
                let id = event["event_id"].as_str().unwrap_or_default().to_owned();
                return (kind, id, event);
            }
        }
    }

    /// Returns the next event of this type.
    fn wait_for(&mut self, kind: &str) -> Value {
        // The hub keeps an idle stream alive, so an event that never comes would not fail the test otherwise.
        let deadline = Instant::now() + MAX_SILENCE;
        loop {
            let (found, _, event) = self.next_before(deadline, kind);
            if found == kind {
                return event;
            }
        }
    }

    /// Waits for a question. Returns its token.
    fn wait_for_question(&mut self) -> String {
        self.wait_for("awaiting.confirmation")["reply_token"].as_str().unwrap().to_owned()
    }

    /// Waits until a question is resolved. Returns what resolved it.
    fn wait_for_resolution(&mut self, token: &str) -> Value {
        loop {
            let event = self.wait_for("state.changed");
            if event["extensions"]["sayso"]["reply_token"] == token
                || event["extensions"]["sayso"]["resolves"]["reply_token"] == token
                || event.to_string().contains(token)
            {
                return event;
            }
        }
    }

    /// Returns the types and summaries of all events up to the first one of this type.
    fn heard_until(&mut self, kind: &str) -> Vec<(String, String)> {
        let mut heard = Vec::new();
        let deadline = Instant::now() + MAX_SILENCE;
        loop {
            let (found, _, event) = self.next_before(deadline, kind);
            let text = event["summary_normal"].as_str().or(event["chunk"].as_str()).unwrap_or_default();
            heard.push((found.clone(), text.to_owned()));
            if found == kind {
                return heard;
            }
        }
    }
}

impl RunningHook {
    fn spawn(command: &mut Command, event: &[u8]) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let timer = KillTimer::start(child.id());
        // The hook may exit without reading everything.
        let _ = child.stdin.take().unwrap().write_all(event);
        Self { child, _timer: timer }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Waits for the exit and returns the JSON on standard output. The exit code must be 0.
    fn finish(self) -> Value {
        let (printed, code) = self.finish_with_code();
        assert_eq!(code, Some(0), "{printed}");
        printed
    }

    fn finish_with_code(self) -> (Value, Option<i32>) {
        let output = self.child.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        let printed = serde_json::from_str(&stdout)
            .unwrap_or_else(|_| panic!("{stdout:?} {}", String::from_utf8_lossy(&output.stderr)));
        (printed, output.status.code())
    }
}

/// An event of Claude Code.
#[allow(clippy::needless_pass_by_value, reason = "callers write the members inline")]
fn event(name: &str, members: Value) -> Value {
    let mut event = json!({
        "session_id": "6b918224", "transcript_path": "/home/x/t.jsonl", "cwd": "/home/x/shop", "prompt_id": "p1",
        "permission_mode": "default", "hook_event_name": name
    });
    for (name, value) in members.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

fn bash_event(name: &str, command: &str, id: &str) -> Value {
    event(
        name,
        json!({"tool_name": "Bash", "tool_input": {"command": command, "description": "x"}, "tool_use_id": id}),
    )
}

fn permission_request(command: &str) -> Value {
    event(
        "PermissionRequest",
        json!({"tool_name": "Bash", "tool_input": {"command": command, "description": "x"}}),
    )
}

fn allowed() -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}})
}

fn denied(reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": reason}
    }})
}

fn pre_tool(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason
    }})
}
