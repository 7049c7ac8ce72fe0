//! `aaep-listen` of `aaep-cli-debug`: follows a session and answers.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{compat, program};
use testing::messages::kind;

/// A listener that answers everything alike, until it is dropped.
struct Listener(Child);

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What it hears of a session that asks, from its start to its end.
fn heard(answer: &str) -> Vec<Value> {
    let hub = compat();
    let mut command: Command = program("aaep-listen");
    command.args(["--endpoint", &format!("http://{}", hub.address), "--quiet", answer]);
    let mut child = Listener(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    // When it hears of this session, its stream is open.
    let started = hub.client().start();
    let mut told = Vec::new();
    for line in lines.map_while(Result::ok) {
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["session_id"] == started.as_str() {
            if told.is_empty() {
                let wish = r#"{"user_message":"Transfer 250 euros to Ben"}"#;
                assert_eq!(hub.client().post("/sessions", wish).status, 201);
                told.push(event);
            }
            continue;
        }
        let last = kind(&event) == "session.completed";
        told.push(event);
        if last {
            break;
        }
    }
    told
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn it_follows_a_session_and_its_answer_counts() {
    for (answer, decision, acts) in [("--auto-accept", "accept", true), ("--auto-reject", "reject", false)] {
        let told = heard(answer);
        let decided: Vec<_> =
            told.iter().filter_map(|event| event["extensions"]["sayso"]["decision"].as_str()).collect();
        assert_eq!(decided, [decision], "{told:#?}");
        assert_eq!(told.iter().any(|event| kind(event) == "tool.invoked"), acts, "{told:#?}");
        assert_eq!(told.last().map(kind), Some("session.completed"));
    }
}
