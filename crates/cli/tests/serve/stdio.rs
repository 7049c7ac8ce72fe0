//! A listener on standard input and output.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use testing::http::Client;
use testing::messages::CAN_REPLY;
use testing::messages::{FROM_THE_FUTURE, close, kind, renegotiate, reply, request};

pub(crate) struct Parent {
    child: Child,
    client: Client,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Parent {
    pub(crate) fn start(more: &[&str]) -> Self {
        #[allow(clippy::zombie_processes, reason = "it is waited for at the end of each test")]
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["serve", "--memory", "--open", "--stdio", "--listen", "127.0.0.1:0"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let address =
            said.find_map(|line| Some(line.unwrap().strip_prefix("listening on http://")?.to_owned()));
        std::thread::spawn(move || said.for_each(drop));
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let output = BufReader::new(output).lines();
        Self { child, client: Client::of(&address.unwrap()), input, output }
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

    /// The next event.
    fn event(&mut self) -> Value {
        let mut said = self.next();
        assert_eq!(said["method"], "aaep.event", "{said}");
        said["params"].take()
    }

    pub(crate) fn subscribe(&mut self) -> String {
        let answer = self.call(1, "aaep.subscribe", &request(CAN_REPLY));
        assert_eq!(kind(&answer["result"]), "subscription.accepted", "{answer}");
        answer["result"]["subscription_id"].as_str().unwrap().to_owned()
    }

    /// Ends the input, and returns the exit code.
    pub(crate) fn end(self) -> Option<i32> {
        let Self { mut child, input, .. } = self;
        drop(input);
        child.wait().unwrap().code()
    }
}

#[test]
fn a_question_is_heard_and_answered() {
    let mut parent = Parent::start(&[]);
    let client = parent.client.clone();
    let subscription = parent.subscribe();
    let terse = renegotiate(&subscription, r#"{"preferred_verbosity":"terse"}"#);
    assert_eq!(kind(&parent.call(2, "aaep.renegotiate", &terse)["result"]), "subscription.accepted");
    assert_eq!(parent.call(3, "aaep.ping", "{}")["result"], json!({}));
    let session = client.start();
    assert_eq!(kind(&parent.event()), "session.started");
    let token = client.ask(&session);
    while parent.event()["reply_token"] != token.as_str() {}
    parent.notify("aaep.reply", &reply(&subscription, &token, "accept"));
    let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=10");
    assert_eq!(client.get(&path).text("decision"), "accept");
    assert_eq!(parent.event()["extensions"]["sayso"]["decision"], "accept");
    parent.notify("aaep.close", &close(&subscription));
    assert_ne!(parent.subscribe(), subscription, "and it can begin again");
    assert_eq!(parent.end(), Some(0));
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
