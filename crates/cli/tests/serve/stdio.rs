//! What only standard input and output have; what all wires do is in `tests/wires`.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout, Command};

use serde_json::{Value, json};
use testing::cli::binary;
use testing::hub::Hub;
use testing::messages::{CAN_REPLY, FROM_THE_FUTURE, kind, renegotiate, request};

pub(crate) struct Parent {
    hub: Hub,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Parent {
    pub(crate) fn start(more: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(["serve", "--memory", "--open", "--stdio", "--listen", "127.0.0.1:0"]).args(more);
        let (hub, (input, output)) = Hub::with_pipes(&mut command);
        Self { hub, input, output: BufReader::new(output).lines() }
    }

    pub(crate) fn line(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn call(&mut self, id: u64, method: &str, params: &str) -> Value {
        self.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        let answer = self.next();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(id)), "{answer}");
        answer
    }

    fn notify(&mut self, method: &str, params: &str) {
        self.line(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    pub(crate) fn next(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    pub(crate) fn subscribe(&mut self) -> String {
        let answer = self.call(1, "aaep.subscribe", &request(CAN_REPLY));
        assert_eq!(kind(&answer["result"]), "subscription.accepted", "{answer}");
        answer["result"]["subscription_id"].as_str().unwrap().to_owned()
    }

    /// Ends the input, and returns the exit code.
    pub(crate) fn end(self) -> Option<i32> {
        let Self { mut hub, input, .. } = self;
        drop(input);
        hub.wait()
    }
}

#[test]
fn errors_are_for_bad_calls_only() {
    let mut parent = Parent::start(&[]);
    let code = |answer: &Value| answer["error"]["code"].as_i64();
    for (line, expected) in [
        ("{".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (format!("\"{}\"", "x".repeat(2 * 1024 * 1024)), -32600),
    ] {
        parent.line(&line);
        assert_eq!(code(&parent.next()), Some(expected));
    }
    assert_eq!(code(&parent.call(1, "aaep.sing", "{}")), Some(-32601));
    assert_eq!(code(&parent.call(2, "aaep.subscribe", "{}")), Some(-32602));
    assert_eq!(code(&parent.call(3, "aaep.renegotiate", &renegotiate("sub_1", "{}"))), Some(-32602));
    let refused = parent.call(4, "aaep.subscribe", FROM_THE_FUTURE);
    assert_eq!(refused["result"]["reason_code"], "version_unsupported", "a refusal is a result (C-E13)");
    parent.notify("aaep.sing", "{}");
    parent.notify("aaep.reply", r#"{"type":"confirmation.reply"}"#);
    parent.subscribe();
    assert_eq!(code(&parent.call(5, "aaep.subscribe", &request("{}"))), Some(-32602), "one at a time");
    assert_eq!(parent.end(), Some(0));
}
