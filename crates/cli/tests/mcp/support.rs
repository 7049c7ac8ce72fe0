//! The real gate with a scripted server, a scripted host, a real hub and a scripted listener.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::cli::{KillTimer, binary};
use testing::http::TIMEOUT;
use testing::hub::HubProcess;
use testing::messages::{REPLY_CAPABILITIES, confirmation_reply, short_type};
use testing::websocket::WebSocketClient;

use crate::personal_hub::User;

/// A trust file that trusts the annotations of the server `files`.
pub(super) const TRUST: &str = "[servers.files]\nannotations = true\n";

/// A gate with its server, used by a scripted host.
pub(super) struct Gate {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    pub(super) folder: TempDir,
    _timer: KillTimer,
}

impl Gate {
    /// Starts a gate for the server `files`, with these arguments and modes of the server.
    pub(super) fn start(hub: Option<&HubProcess>, arguments: &[&str], modes: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), hub, arguments, modes)
    }

    pub(super) fn start_in(
        folder: TempDir,
        hub: Option<&HubProcess>,
        arguments: &[&str],
        modes: &[&str],
    ) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
        let log = folder.path().join("seen");
        let server = [&["python3", "-u", script, log.to_str().unwrap()], modes].concat();
        Self::start_command(folder, hub, arguments, &server)
    }

    pub(super) fn start_command(
        folder: TempDir,
        hub: Option<&HubProcess>,
        arguments: &[&str],
        server: &[&str],
    ) -> Self {
        // A port on which nothing listens.
        let url =
            hub.map_or_else(|| "http://127.0.0.1:1".to_owned(), |hub| format!("http://{}", hub.address));
        let arguments = [&["--hub", &url], arguments].concat();
        Self::start_command_as(folder, &arguments, server, |_| {})
    }

    /// Starts a gate that must find the personal hub of this user by itself.
    pub(super) fn start_for_user(user: &User) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
        let log = folder.path().join("seen").to_str().unwrap().to_owned();
        Self::start_command_as(folder, &[], &["python3", "-u", script, &log], |command| {
            user.configure(command);
        })
    }

    fn start_command_as(
        folder: TempDir,
        arguments: &[&str],
        server: &[&str],
        configure: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = Command::new(binary());
        command.args(["mcp", "--name", "files"]).args(arguments);
        if !server.is_empty() {
            command.arg("--").args(server);
        }
        command
            .env("XDG_DATA_HOME", folder.path().join("data"))
            .env_remove("SAYSO_URL")
            .env_remove("SAYSO_TOKEN");
        configure(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let timer = KillTimer::start(child.id());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                if stdout.read_until(b'\n', &mut line).unwrap_or(0) == 0 || sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, folder, _timer: timer }
    }

    /// Writes a trust file and returns its path.
    pub(super) fn write_trust(folder: &TempDir, text: &str) -> String {
        let path = folder.path().join("trust.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Starts a gate with a trust file.
    pub(super) fn start_trusting(hub: Option<&HubProcess>, trust: &str, modes: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = Self::write_trust(&folder, trust);
        Self::start_in(folder, hub, &["--trust", &path], modes)
    }

    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub(super) fn send_raw(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).unwrap();
        stdin.flush().unwrap();
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// Sends a tool call.
    pub(super) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params}));
    }

    /// Returns the next line that the host gets.
    pub(super) fn next_line(&mut self) -> Vec<u8> {
        self.lines.recv_timeout(TIMEOUT).expect("the host gets a line")
    }

    pub(super) fn next(&mut self) -> Value {
        let line = self.next_line();
        serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// Returns the next message with this id. Progress notifications and other messages are skipped.
    pub(super) fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Lists the tools, so that the gate knows them.
    pub(super) fn list_tools(&mut self) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}));
        self.answer("list")
    }

    /// Waits until the server has seen everything that was sent so far and did not wait for a person.
    pub(super) fn sync(&mut self) {
        self.send(&json!({"jsonrpc": "2.0", "id": "sync", "method": "ping"}));
        self.answer("sync");
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("seen")
    }

    /// Returns the raw lines that the server has received.
    pub(super) fn seen_raw(&self) -> Vec<u8> {
        std::fs::read(self.log()).unwrap_or_default()
    }

    /// Returns the calls that the server has received, as tool and id, including those inside batches.
    pub(super) fn seen_calls(&self) -> Vec<(String, Value)> {
        let text = String::from_utf8_lossy(&self.seen_raw()).into_owned();
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let messages =
            messages.flat_map(|message| message.as_array().cloned().unwrap_or_else(|| vec![message]));
        let calls = messages.filter(|message| message["method"] == "tools/call");
        calls.map(|call| (call["params"]["name"].as_str().unwrap().to_owned(), call["id"].clone())).collect()
    }

    /// Closes the gate's standard input.
    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for the gate to exit. Returns its exit code, or `None` if a signal ended it.
    pub(super) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns what the host has read after the gate has ended.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.lines.iter().flatten().collect()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A person's listener.
pub(super) struct Listener {
    socket: WebSocketClient,
    subscription: String,
}

impl Listener {
    pub(super) fn connect(hub: &HubProcess) -> Self {
        let (socket, subscription) = WebSocketClient::connect_and_subscribe(hub, REPLY_CAPABILITIES);
        Self { socket, subscription }
    }

    /// Returns the next event of this type.
    pub(super) fn wait_for(&mut self, event_type: &str) -> Value {
        loop {
            let event = self.socket.next();
            if short_type(&event) == event_type {
                return event;
            }
        }
    }

    /// Returns the next event, whatever it is.
    pub(super) fn next(&mut self) -> Value {
        self.socket.next()
    }

    /// Waits for the next event whose normal summary contains this text.
    pub(super) fn wait_for_text(&mut self, text: &str) -> Value {
        loop {
            let event = self.socket.next();
            if event["summary_normal"].as_str().is_some_and(|summary| summary.contains(text)) {
                return event;
            }
        }
    }

    /// Waits for a question.
    pub(super) fn question(&mut self) -> Value {
        self.wait_for("awaiting.confirmation")
    }

    pub(super) fn reply(&mut self, question: &Value, decision: &str) {
        let token = question["reply_token"].as_str().unwrap();
        let reply = confirmation_reply(&self.subscription, token, decision);
        self.socket.send(&reply);
    }

    /// Waits for a question and answers it.
    pub(super) fn answer(&mut self, decision: &str) -> Value {
        let question = self.question();
        self.reply(&question, decision);
        question
    }

    /// Answers a clarification.
    pub(super) fn clarify(&mut self, response: &Value) -> Value {
        let question = self.wait_for("awaiting.clarification");
        let timestamp = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
        let reply = json!({
            "type": "clarification.reply", "reply_token": question["reply_token"], "response": response,
            "subscription_id": self.subscription, "timestamp": timestamp.to_string(),
        });
        self.socket.send(&reply.to_string());
        question
    }

    /// Stops a session.
    pub(super) fn stop(&mut self, session: &Value) {
        let timestamp = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
        let stop = json!({
            "type": "sayso:session.stop", "session_id": session, "subscription_id": self.subscription,
            "timestamp": timestamp.to_string(),
        });
        self.socket.send(&stop.to_string());
    }
}

/// Returns the sentence of a refused call. Fails if the call was not refused.
pub(super) fn refusal(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap()
}
