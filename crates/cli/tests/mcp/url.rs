//! `sayso mcp --url`: a server behind a URL.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testing::hub::HubProcess;

use super::support::{Gate, Listener, TRUST, refusal};

/// A scripted server that is reached over HTTP.
struct HttpServer {
    child: Child,
    url: String,
    log: std::path::PathBuf,
}

impl HttpServer {
    fn start(folder: &tempfile::TempDir) -> Self {
        let log = folder.path().join("http");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/http_server.py");
        let mut command = Command::new("python3");
        let mut child = command.args(["-u", script]).arg(&log).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()), log }
    }

    /// Returns what the server received: HTTP method, headers and message.
    fn seen(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn seen_calls(&self) -> Vec<Value> {
        let seen = self.seen().into_iter();
        seen.filter(|seen| seen["body"]["method"] == "tools/call")
            .map(|seen| seen["body"]["params"]["name"].clone())
            .collect()
    }
}

impl HttpServer {
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start_gate(hub: &HubProcess, server_folder: &tempfile::TempDir) -> (Gate, HttpServer) {
    start_gate_with(hub, server_folder, &[])
}

fn start_gate_with(
    hub: &HubProcess,
    server_folder: &tempfile::TempDir,
    options: &[&str],
) -> (Gate, HttpServer) {
    let server = HttpServer::start(server_folder);
    let folder = tempfile::tempdir().unwrap();
    let trust = Gate::write_trust(&folder, TRUST);
    let arguments = [&["--trust", &trust, "--url", &server.url], options].concat();
    let gate = Gate::start_command(folder, Some(hub), &arguments, &[]);
    (gate, server)
}

#[test]
fn calls_to_a_server_behind_a_url_are_gated_like_any_other() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, server) = start_gate(&hub, &folder);
    gate.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}));
    assert_eq!(gate.answer(1)["result"]["protocolVersion"], "2025-11-25");
    gate.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    gate.list_tools();
    gate.call(2, "read", &json!({}));
    assert_eq!(gate.next()["method"], "notifications/message");
    assert_eq!(gate.next()["result"]["content"][0]["text"], "read done");
    gate.call(3, "write", &json!({"n": 1}));
    listener.answer("reject");
    refusal(&gate.answer(3));
    gate.call(4, "write", &json!({"n": 2}));
    listener.answer("accept");
    assert_eq!(gate.answer(4)["result"]["content"][0]["text"], "write done");
    assert_eq!(server.seen_calls(), ["read", "write"]);
    // A server error is an error for the host.
    gate.send(&json!({"jsonrpc": "2.0", "id": 5, "method": "broken"}));
    let answer = gate.answer(5);
    assert!(answer["error"]["message"].as_str().unwrap().contains("HTTP status 500"), "{answer}");
    gate.close_input();
    assert_eq!(gate.wait(), Some(0));
    // The session is used and ended.
    let seen = server.seen();
    let call = seen.iter().find(|seen| seen["body"]["method"] == "tools/call").unwrap();
    assert_eq!(call["headers"], json!({"mcp-session-id": "s-1", "mcp-protocol-version": "2025-11-25"}));
    assert_eq!(seen.last().unwrap()["http"], "DELETE");
}

#[test]
fn messages_of_the_newer_protocol_have_the_headers_that_it_requires() {
    let hub = HubProcess::start_in_memory();
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, server) = start_gate(&hub, &folder);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    gate.list_tools();
    gate.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "arguments": {"region": "Köln"}, "_meta": meta}}));
    gate.answer(1);
    gate.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "file:///ü", "_meta": meta}}));
    gate.answer(2);
    let seen = server.seen();
    let headers =
        |method: &str| seen.iter().find(|seen| seen["body"]["method"] == method).unwrap()["headers"].clone();
    assert_eq!(
        headers("tools/call"),
        json!({
            "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "read",
            // The server marks this argument with `x-mcp-header`.
            "mcp-param-region": "=?base64?S8O2bG4=?=",
        })
    );
    assert_eq!(headers("resources/read")["mcp-name"], "=?base64?ZmlsZTovLy/DvA==?=");
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_for_the_host() {
    let hub = HubProcess::start_in_memory();
    let folder = tempfile::tempdir().unwrap();
    let mut gate = Gate::start_command(folder, Some(&hub), &["--url", "http://127.0.0.1:1/mcp"], &[]);
    gate.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"}));
    let answer = gate.answer(1);
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    let output = testing::cli::run_sayso(&["mcp", "--url", "ftp://example.com"], "");
    assert_eq!(output.exit_code, 2, "{}", output.stderr);
}

#[test]
fn a_hub_that_is_killed_during_a_question_means_no_for_a_server_behind_a_url() {
    let mut hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, server) = start_gate(&hub, &folder);
    gate.call(1, "write", &json!({}));
    listener.question();
    hub.kill();
    // Other messages still pass while the gate looks for the hub.
    gate.sync();
    let answer = gate.answer(1);
    assert!(refusal(&answer).contains("hub could not be reached"), "{answer}");
    gate.sync();
    assert!(server.seen_calls().is_empty());
}

#[test]
fn a_gate_that_is_killed_during_a_question_sends_nothing_to_a_url_even_after_a_yes() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, server) = start_gate(&hub, &folder);
    gate.call(1, "write", &json!({}));
    let question = listener.question();
    gate.sync();
    gate.kill();
    listener.reply(&question, "accept");
    listener.wait_for("state.changed");
    assert!(server.seen_calls().is_empty());
}

#[test]
fn a_server_behind_a_url_that_is_killed_during_a_question_is_an_error_after_the_yes() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, mut server) = start_gate(&hub, &folder);
    gate.list_tools();
    gate.call(1, "write", &json!({}));
    let question = listener.question();
    server.kill();
    listener.reply(&question, "accept");
    let answer = gate.answer(1);
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert_eq!(listener.wait_for("tool.completed")["status"], "error");
    assert!(server.seen_calls().is_empty());
    // The yes was for that call only: the next identical one is asked about.
    gate.call(2, "write", &json!({}));
    listener.answer("reject");
    refusal(&gate.answer(2));
}

#[test]
fn an_elicitation_of_a_server_behind_a_url_can_be_answered_by_a_listener() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, _server) = start_gate_with(&hub, &folder, &["--elicit"]);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let request = json!({"message": "Who are you?", "requestedSchema": schema});
    let elicit =
        |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "elicit", "params": {"request": request}});
    gate.send(&elicit(1));
    assert_eq!(gate.next()["method"], "elicitation/create");
    let question = listener.clarify(&json!(true));
    assert!(question["question"].as_str().unwrap().contains("Who are you?"), "{question}");
    listener.clarify(&json!("Ana"));
    let given = json!({"action": "accept", "content": {"name": "Ana"}});
    assert_eq!(gate.answer(1)["result"]["given"], given);
    // If the host answers first, the question is withdrawn.
    gate.send(&elicit(2));
    listener.wait_for("awaiting.clarification");
    gate.send(&json!({"jsonrpc": "2.0", "id": "elicit-2", "result": {"action": "decline"}}));
    assert_eq!(gate.answer(2)["result"]["given"], json!({"action": "decline"}));
    listener.wait_for("state.changed");
}

#[test]
fn input_that_a_server_behind_a_url_needs_can_be_given_by_a_listener() {
    let hub = HubProcess::start_in_memory();
    let mut listener = Listener::connect(&hub);
    let folder = tempfile::tempdir().unwrap();
    let (mut gate, server) = start_gate_with(&hub, &folder, &["--elicit"]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let params = json!({"name": "form", "arguments": {}, "_meta": meta});
    gate.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
    listener.answer("accept");
    listener.clarify(&json!(true));
    listener.clarify(&json!("Ana"));
    let answer = gate.answer(1);
    let given: Value =
        serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(given, json!({"q": {"action": "accept", "content": {"name": "Ana"}}}));
    // Both requests have the headers of the newer protocol.
    let seen = server.seen();
    let calls: Vec<_> = seen.iter().filter(|seen| seen["body"]["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|call| call["headers"]["mcp-name"] == "form"), "{calls:?}");
}
