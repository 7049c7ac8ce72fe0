//! The actors of the tests: an editor, an agent and a listener, all played by the test, around the real gate and the real hub.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use testing::cli::{KillTimer, binary, send_signal};
use testing::hub::HubProcess;
use testing::messages::{REPLY_CAPABILITIES, confirmation_reply, short_type};
use testing::websocket::WebSocketClient;

use crate::personal_hub::User;

/// The agent's program: it copies its standard input to one named pipe, and another named pipe to its standard output, so the test is
/// the agent. It also starts a process that only a signal ends. All its processes hold the pipe `alive` open.
const AGENT: &str = r#"exec 4> "$4"; echo $$ > "$3"; exec 3<&0; sleep 100000 < /dev/null > /dev/null 2>&1 & cat <&3 > "$1" & exec cat "$2""#;

/// The gate, with the test at both of its ends.
pub(super) struct Gate {
    child: Child,
    pub(super) editor: Editor,
    pub(super) agent: Agent,
    /// Ends when no process of the agent is left.
    alive: Option<File>,
    log: BufReader<ChildStderr>,
    folder: tempfile::TempDir,
    _timer: KillTimer,
}

pub(super) struct Editor {
    to_gate: Option<ChildStdin>,
    from_gate: BufReader<ChildStdout>,
}

pub(super) struct Agent {
    to_gate: Option<File>,
    from_gate: BufReader<File>,
}

impl Gate {
    /// Starts the gate with the hub at this address.
    pub(super) fn start(hub: &str, options: &[&str]) -> Self {
        Self::start_as(&[&["--hub", hub], options].concat(), |_| {})
    }

    /// Starts the gate, which must find the personal hub of this user by itself.
    pub(super) fn start_for_user(user: &User) -> Self {
        Self::start_as(&[], |command| {
            user.configure(command);
        })
    }

    fn start_as(options: &[&str], configure: impl FnOnce(&mut Command)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [input, output, pid, alive] =
            ["input", "output", "pid", "alive"].map(|name| folder.path().join(name));
        for pipe in [&input, &output, &alive] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        let mut command = Command::new(binary());
        command.arg("acp").args(options);
        command.args(["--", "/bin/sh", "-c", AGENT, "agent"]).args([&input, &output, &pid, &alive]);
        command.env_remove("SAYSO_URL").env_remove("SAYSO_TOKEN");
        configure(&mut command);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let timer = KillTimer::start(child.id());
        let log = BufReader::new(child.stderr.take().unwrap());
        let editor =
            Editor { to_gate: child.stdin.take(), from_gate: BufReader::new(child.stdout.take().unwrap()) };
        // Opening a named pipe waits for the other end.
        let alive = File::open(&alive).unwrap();
        let from_gate = BufReader::new(File::open(&input).unwrap());
        let to_gate = Some(OpenOptions::new().write(true).open(&output).unwrap());
        Self {
            child,
            editor,
            agent: Agent { to_gate, from_gate },
            alive: Some(alive),
            log,
            folder,
            _timer: timer,
        }
    }

    /// Starts the gate and a turn in the session `s1`.
    pub(super) fn start_turn(hub: &HubProcess) -> Self {
        let mut gate = Self::start(&format!("http://{}", hub.address), &[]);
        gate.initialize();
        gate.prompt("s1", "Clean up.");
        gate
    }

    /// Exchanges `initialize`.
    pub(super) fn initialize(&mut self) {
        self.pass_to_agent(
            &json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}),
        );
        self.pass_to_editor(
            &json!({"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"tidy","title":"Tidy","version":"1"}}}),
        );
    }

    /// Sends a prompt. Its request id is the name of the session.
    pub(super) fn prompt(&mut self, session: &str, text: &str) {
        let prompt = json!([{"type":"text","text":text}]);
        self.pass_to_agent(
            &json!({"jsonrpc":"2.0","id":session,"method":"session/prompt","params":{"sessionId":session,"prompt":prompt}}),
        );
    }

    pub(super) fn end_turn(&mut self, session: &str, stop_reason: &str) {
        self.pass_to_editor(&json!({"jsonrpc":"2.0","id":session,"result":{"stopReason":stop_reason}}));
    }

    /// Sends an update from the agent, and checks that the editor gets it.
    pub(super) fn update(&mut self, session: &str, update: &Value) {
        self.pass_to_editor(&update_message(session, update));
    }

    /// Sends a permission request from the agent, and checks that the editor gets it.
    pub(super) fn request(&mut self, id: impl Into<Value>, tool_call: &Value, options: &Value) {
        self.pass_to_editor(&permission_request("s1", id, tool_call, options));
    }

    /// Sends a message from the editor, and checks that the agent gets the same bytes.
    pub(super) fn pass_to_agent(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.editor.send_raw(line.as_bytes());
        assert_eq!(self.agent.next_line(), line);
    }

    /// Sends a message from the agent, and checks that the editor gets the same bytes.
    pub(super) fn pass_to_editor(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.agent.send_raw(line.as_bytes());
        assert_eq!(self.editor.next_line(), line);
    }

    /// Sends a signal to the gate.
    pub(super) fn signal(&self, signal: &str) {
        send_signal(&self.child.id().to_string(), signal);
    }

    /// Sends a signal to the agent's own process.
    pub(super) fn signal_agent(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.folder.path().join("pid")).unwrap();
        send_signal(pid.trim(), signal);
    }

    /// Waits until the gate exits. Returns its exit code, or `None` if a signal killed it.
    pub(super) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Waits until no process of the agent is left.
    pub(super) fn wait_until_agent_is_gone(&mut self) {
        let mut alive = self.alive.take().unwrap();
        let (sender, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(alive.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(ended.recv_timeout(testing::http::TIMEOUT), Ok(true), "a process of the agent is left");
    }

    /// Waits for a line on standard error that contains this text.
    pub(super) fn wait_for_log(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.log.read_line(&mut line).unwrap() > 0, "the log does not contain {part:?}");
        }
    }

    /// Returns the rest of standard error, after the gate has ended.
    pub(super) fn log(&mut self) -> String {
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        log
    }

    /// Closes both ends in an orderly way. Returns the exit code.
    pub(super) fn finish(&mut self) -> Option<i32> {
        self.editor.close();
        while !self.agent.next_line().is_empty() {}
        self.agent.close();
        self.wait()
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Editor {
    pub(super) fn send_raw(&mut self, bytes: &[u8]) {
        self.to_gate.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// Answers a permission request.
    pub(super) fn select(&mut self, id: impl Into<Value>, option: &str) {
        self.send(&selected(id, option));
    }

    pub(super) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.from_gate.read_line(&mut line).unwrap();
        line
    }

    pub(super) fn next(&mut self) -> Value {
        let line = self.next_line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(super) fn read_exact(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.from_gate.read_exact(&mut read).unwrap();
        read
    }

    pub(super) fn close(&mut self) {
        self.to_gate = None;
    }
}

impl Agent {
    pub(super) fn send_raw(&mut self, bytes: &[u8]) {
        self.to_gate.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(super) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.from_gate.read_line(&mut line).unwrap();
        line
    }

    pub(super) fn next(&mut self) -> Value {
        let line = self.next_line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(super) fn close(&mut self) {
        self.to_gate = None;
    }
}

/// A listener at the hub.
pub(super) struct Listener {
    socket: WebSocketClient,
    subscription: String,
}

impl Listener {
    pub(super) fn connect(hub: &HubProcess) -> Self {
        let (socket, subscription) = WebSocketClient::connect_and_subscribe(hub, REPLY_CAPABILITIES);
        Self { socket, subscription }
    }

    /// Returns the next event of this type that satisfies the condition. Other events are skipped.
    pub(super) fn wait_for(&mut self, kind: &str, condition: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.socket.next();
            if short_type(&event) == kind && condition(&event) {
                return event;
            }
        }
    }

    /// Returns the next event of this type.
    pub(super) fn next(&mut self, kind: &str) -> Value {
        self.wait_for(kind, |_| true)
    }

    /// Returns all events up to and including the next one of this type.
    pub(super) fn collect_until(&mut self, kind: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.socket.next());
            if short_type(events.last().unwrap()) == kind {
                return events;
            }
        }
    }

    /// Answers a confirmation.
    pub(super) fn decide(&mut self, question: &Value, decision: &str) {
        let token = question["reply_token"].as_str().unwrap();
        self.socket.send(&confirmation_reply(&self.subscription, token, decision));
    }

    /// Answers a clarification.
    pub(super) fn choose(&mut self, question: &Value, response: &str) {
        let reply = confirmation_reply(&self.subscription, question["reply_token"].as_str().unwrap(), "");
        let mut reply: Value = serde_json::from_str(&reply).unwrap();
        let members = reply.as_object_mut().unwrap();
        members.remove("decision");
        members.insert("type".into(), "clarification.reply".into());
        members.insert("response".into(), response.into());
        self.socket.send(&reply.to_string());
    }

    /// Stops a session of the hub.
    pub(super) fn stop(&mut self, session: &str) {
        let reply = confirmation_reply(&self.subscription, "rpl_none", "");
        let timestamp = serde_json::from_str::<Value>(&reply).unwrap()["timestamp"].clone();
        let stop = json!({"type":"sayso:session.stop","session_id":session,"subscription_id":self.subscription,"timestamp":timestamp});
        self.socket.send(&stop.to_string());
    }
}

pub(super) fn update_message(session: &str, update: &Value) -> Value {
    json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":session,"update":update}})
}

pub(super) fn permission_request(
    session: &str,
    id: impl Into<Value>,
    tool_call: &Value,
    options: &Value,
) -> Value {
    let id = id.into();
    json!({"jsonrpc":"2.0","id":id,"method":"session/request_permission","params":{"sessionId":session,"toolCall":tool_call,"options":options}})
}

pub(super) fn selected(id: impl Into<Value>, option: &str) -> Value {
    let id = id.into();
    json!({"jsonrpc":"2.0","id":id,"result":{"outcome":{"outcome":"selected","optionId":option}}})
}

pub(super) fn cancel_request(id: impl Into<Value>) -> Value {
    let id = id.into();
    json!({"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":id}})
}

/// A call that deletes the build folder.
pub(super) fn delete_call() -> Value {
    json!({"toolCallId":"t1","title":"Terminal","kind":"execute","status":"pending","rawInput":{"command":"rm -r build"}})
}

/// The options to allow or reject once.
pub(super) fn once_options() -> Value {
    json!([{"optionId":"go","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}])
}

/// Options like those of real agents, with one that lasts.
pub(super) fn always_options() -> Value {
    json!([
        {"optionId":"forever","name":"Allow for this session","kind":"allow_always"},
        {"optionId":"go","name":"Allow","kind":"allow_once"},
        {"optionId":"no","name":"Reject","kind":"reject_once"},
    ])
}
