//! Behaviour that is specific to standard input and output. `tests/wires` covers what all transports share.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout, Command};

use serde_json::{Value, json};
use testing::cli::binary;
use testing::hub::HubProcess;
use testing::messages::{
    REPLY_CAPABILITIES, UNSUPPORTED_VERSION_REQUEST, short_type, subscription_renegotiate,
    subscription_request,
};

pub(crate) struct StdioClient {
    hub: HubProcess,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl StdioClient {
    pub(crate) fn start(extra_args: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(["serve", "--memory", "--open", "--stdio", "--listen", "127.0.0.1:0"]).args(extra_args);
        let (hub, (input, output)) = HubProcess::start_with_pipes(&mut command);
        Self { hub, input, output: BufReader::new(output).lines() }
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn call(&mut self, id: u64, method: &str, params: &str) -> Value {
        self.send_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        let response = self.next();
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(id)), "{response}");
        response
    }

    fn notify(&mut self, method: &str, params: &str) {
        self.send_line(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    pub(crate) fn next(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    pub(crate) fn subscribe(&mut self) -> String {
        let response = self.call(1, "aaep.subscribe", &subscription_request(REPLY_CAPABILITIES));
        assert_eq!(short_type(&response["result"]), "subscription.accepted", "{response}");
        response["result"]["subscription_id"].as_str().unwrap().to_owned()
    }

    /// Closes the input and returns the exit code.
    pub(crate) fn close_and_wait(self) -> Option<i32> {
        let Self { mut hub, input, .. } = self;
        drop(input);
        hub.wait()
    }
}

#[test]
fn json_rpc_errors_are_for_invalid_calls_only() {
    let mut client = StdioClient::start(&[]);
    let code = |response: &Value| response["error"]["code"].as_i64();
    for (line, expected) in [
        ("{".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (format!("\"{}\"", "x".repeat(2 * 1024 * 1024)), -32600),
    ] {
        client.send_line(&line);
        assert_eq!(code(&client.next()), Some(expected));
    }
    assert_eq!(code(&client.call(1, "aaep.sing", "{}")), Some(-32601));
    assert_eq!(code(&client.call(2, "aaep.subscribe", "{}")), Some(-32602));
    assert_eq!(
        code(&client.call(3, "aaep.renegotiate", &subscription_renegotiate("sub_1", "{}"))),
        Some(-32602)
    );
    let refused = client.call(4, "aaep.subscribe", UNSUPPORTED_VERSION_REQUEST);
    assert_eq!(refused["result"]["reason_code"], "version_unsupported", "a rejection is a result (C-E13)");
    client.notify("aaep.sing", "{}");
    client.notify("aaep.reply", r#"{"type":"confirmation.reply"}"#);
    client.subscribe();
    assert_eq!(
        code(&client.call(5, "aaep.subscribe", &subscription_request("{}"))),
        Some(-32602),
        "a connection has at most one subscription"
    );
    assert_eq!(client.close_and_wait(), Some(0));
}
