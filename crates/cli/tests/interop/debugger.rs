//! `aaep-listen` of `aaep-cli-debug`: it follows a session and replies.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{installed_program, start_compat_hub};
use testing::messages::short_type;

/// A listener that gives the same reply to every question. It is killed on drop.
struct DebuggerProcess(Child);

impl Drop for DebuggerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a session that asks a question. Returns all events that the debugger received.
fn run_session(reply_option: &str) -> Vec<Value> {
    let hub = start_compat_hub();
    let mut command: Command = installed_program("aaep-listen");
    command.args(["--endpoint", &format!("http://{}", hub.address), "--quiet", reply_option]);
    let mut child = DebuggerProcess(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    // When the debugger prints this session, the debugger's stream is open.
    let first_session = hub.client().start_session();
    let mut events = Vec::new();
    for line in lines.map_while(Result::ok) {
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["session_id"] == first_session.as_str() {
            if events.is_empty() {
                let request = r#"{"user_message":"Transfer 250 euros to Ben"}"#;
                assert_eq!(hub.client().post("/sessions", request).status, 201);
                events.push(event);
            }
            continue;
        }
        let is_last = short_type(&event) == "session.completed";
        events.push(event);
        if is_last {
            break;
        }
    }
    events
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn the_debugger_follows_a_session_and_its_reply_counts() {
    for (reply_option, decision, is_action_expected) in
        [("--auto-accept", "accept", true), ("--auto-reject", "reject", false)]
    {
        let events = run_session(reply_option);
        let decided: Vec<_> =
            events.iter().filter_map(|event| event["extensions"]["sayso"]["decision"].as_str()).collect();
        assert_eq!(decided, [decision], "{events:#?}");
        assert_eq!(
            events.iter().any(|event| short_type(event) == "tool.invoked"),
            is_action_expected,
            "{events:#?}"
        );
        assert_eq!(events.last().map(short_type), Some("session.completed"));
    }
}
