//! The real binary with every transport enabled, an agent over HTTP, and listeners with tokens.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use seal::UnixMillis;
use serde_json::{Value, json};
use testing::cli::{binary, create_token};

use crate::sse;
use crate::transport::{ListenerConnection, TransportKind};
use testing::http::TestClient;

/// The number of shards of the hubs in the second run of each test. The sessions of the tests are in shard 2, and listeners
/// hear all three.
pub(crate) const SEVERAL_SHARDS: u16 = 3;

thread_local! {
    /// The number of shards of the hubs that the test of this thread starts.
    static SHARDS: Cell<u16> = const { Cell::new(1) };
}

/// Sets the number of shards of the hubs that this thread starts.
pub(crate) fn set_shards(shards: u16) {
    SHARDS.set(shards);
}

/// A hub with every transport enabled.
pub(crate) struct TransportHub {
    process: testing::hub::HubProcess,
    pub(crate) address: String,
    pub(crate) socket: PathBuf,
    /// Empty without the feature `grpc`.
    #[cfg_attr(not(feature = "grpc"), allow(dead_code, reason = "gRPC is not built"))]
    pub(crate) grpc_address: String,
    /// The hub's stdin and stdout if the stdio transport is enabled, until a listener takes them.
    pub(crate) pipes: Option<(ChildStdin, ChildStdout)>,
    /// Kills the hub after 10 minutes, unless this sender is dropped first.
    _watchdog: Sender<()>,
}

impl TransportHub {
    fn start(kind: TransportKind, folder: &Path, is_persistent: bool, extra_args: &[&str]) -> Self {
        let socket = folder.join("hub.sock");
        let mut command = Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--tokens"]).arg(&test_tokens().file);
        command.arg("--unix").arg(&socket).args(extra_args);
        command.env("SAYSO_HUB_SHARDS", SHARDS.get().to_string());
        if cfg!(feature = "grpc") {
            command.args(["--grpc-listen", "127.0.0.1:0"]);
        }
        if is_persistent {
            command.arg("--data").arg(folder.join("data"));
        } else {
            command.arg("--memory");
        }
        let (process, pipes) = if kind == TransportKind::Stdio {
            let (process, pipes) = testing::hub::HubProcess::start_with_pipes(command.arg("--stdio"));
            (process, Some(pipes))
        } else {
            (testing::hub::HubProcess::start_command(&mut command), None)
        };
        let watchdog = kill_after(process.pid(), Duration::from_mins(10));
        let grpc_lines =
            process.startup_lines.iter().filter_map(|line| line.strip_prefix("listening on grpc://"));
        let grpc_address = grpc_lines.collect();
        Self { address: process.address.clone(), process, socket, grpc_address, pipes, _watchdog: watchdog }
    }

    /// Kills the hub with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends SIGTERM.
    pub(crate) fn ask_to_stop(&self) {
        self.process.signal("-TERM");
    }

    /// Waits for the hub to exit. Returns the exit code, or `None` if the hub had to be killed after 30 seconds.
    ///
    /// The hub promises to exit within 5 seconds; a slow machine may need longer.
    pub(crate) fn wait_for_exit(&mut self) -> Option<i32> {
        let _watchdog = kill_after(self.process.pid(), Duration::from_secs(30));
        self.process.wait()
    }
}

/// Kills a process after `timeout`, unless the returned sender is dropped first.
fn kill_after(process: String, timeout: Duration) -> Sender<()> {
    let (cancel, cancelled) = channel();
    std::thread::spawn(move || {
        if cancelled.recv_timeout(timeout) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-KILL", &process]).status();
        }
    });
    cancel
}

/// The tokens that all hubs share.
pub(crate) struct TestTokens {
    _folder: tempfile::TempDir,
    file: PathBuf,
    /// An agent's token.
    pub(crate) bank: String,
    /// Tokens of two listeners that can reply.
    pub(crate) ada: String,
    pub(crate) ben: String,
    /// The token of an observer, which cannot reply.
    pub(crate) eve: String,
}

pub(crate) fn test_tokens() -> &'static TestTokens {
    static TOKENS: OnceLock<TestTokens> = OnceLock::new();
    TOKENS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let create = |role: &str, name: &str| {
            let agent_args = if role == "agent" { &["--agent-id", name][..] } else { &[] };
            create_token(file.to_str().unwrap(), &[&["--role", role, "--name", name], agent_args].concat())
        };
        TestTokens {
            bank: create("agent", "bank"),
            ada: create("listener", "ada"),
            ben: create("listener", "ben"),
            eve: create("observer", "eve"),
            file: file.clone(),
            _folder: folder,
        }
    })
}

/// The hub and the transport of one test.
pub(crate) struct TransportFixture {
    pub(crate) kind: TransportKind,
    folder: tempfile::TempDir,
    pub(crate) hub: TransportHub,
    pub(crate) agent: TestClient,
}

impl TransportFixture {
    /// A fixture whose hub stores nothing on disk.
    pub(crate) fn in_memory(kind: TransportKind) -> Self {
        Self::new(kind, false, &[])
    }

    /// Like [`Self::in_memory`], with additional arguments for the hub.
    pub(crate) fn in_memory_with(kind: TransportKind, extra_args: &[&str]) -> Self {
        Self::new(kind, false, extra_args)
    }

    /// A fixture whose hub stores its data on disk, so that it can be restarted.
    pub(crate) fn on_disk(kind: TransportKind) -> Self {
        Self::new(kind, true, &[])
    }

    fn new(kind: TransportKind, is_persistent: bool, extra_args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = TransportHub::start(kind, folder.path(), is_persistent, extra_args);
        let agent = TestClient::new(&hub.address).with_bearer(&test_tokens().bank);
        Self { kind, folder, hub, agent }
    }

    /// The hub's data folder.
    pub(crate) fn data_folder(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts a new hub on the data of the previous one.
    pub(crate) fn restart_hub(&mut self) {
        self.hub = TransportHub::start(self.kind, self.folder.path(), true, &[]);
        self.agent = TestClient::new(&self.hub.address).with_bearer(&test_tokens().bank);
    }

    /// Connects Ada on the transport under test.
    pub(crate) fn connect(&mut self) -> Box<dyn ListenerConnection> {
        self.kind.connect(&mut self.hub, &test_tokens().ada).unwrap()
    }

    /// Connects and subscribes Ada on the transport under test. Returns the connection and the subscription id.
    pub(crate) fn connect_and_subscribe(
        &mut self,
        capabilities: &Value,
    ) -> (Box<dyn ListenerConnection>, String) {
        let mut connection = self.connect();
        let id = accepted_subscription_id(&connection.subscribe(&subscription_request(capabilities)));
        (connection, id)
    }

    /// Connects and subscribes another listener over SSE.
    pub(crate) fn connect_sse_listener(
        &self,
        token: &str,
        capabilities: &Value,
    ) -> (sse::SseListener, String) {
        let mut connection = sse::SseListener::new(&self.hub.address, token);
        let id = accepted_subscription_id(&connection.subscribe(&subscription_request(capabilities)));
        (connection, id)
    }

    /// Creates a second subscription of the same user on another connection.
    pub(crate) fn connect_same_user(
        &mut self,
        capabilities: &Value,
    ) -> (Box<dyn ListenerConnection>, String) {
        let kind = if self.kind == TransportKind::Stdio { TransportKind::UnixLines } else { self.kind };
        let mut connection = kind.connect(&mut self.hub, &test_tokens().ada).unwrap();
        let id = accepted_subscription_id(&connection.subscribe(&subscription_request(capabilities)));
        (connection, id)
    }

    pub(crate) fn start_session(&self) -> String {
        self.agent.start_session()
    }

    /// Publishes these events in one request.
    pub(crate) fn publish(&self, session: &str, events: &[Value]) {
        let lines: Vec<_> = events.iter().map(Value::to_string).collect();
        let ndjson = self.agent.with_header("Content-Type: application/x-ndjson");
        let response = ndjson.post(&format!("/agent/v1/sessions/{session}/events"), &lines.join("\n"));
        assert_eq!(response.status, 200, "{response:?}");
    }

    pub(crate) fn publish_output(&self, session: &str, text: &str, complete: bool) {
        let path = format!("/agent/v1/sessions/{session}/output?complete={complete}");
        let response = self.agent.post(&path, text);
        assert_eq!(response.status, 200, "{response:?}");
    }

    /// Asks a question as the agent and returns its reply token.
    pub(crate) fn ask(&self, session: &str, question: &Value) -> String {
        let resource = if question.get("question").is_some() { "clarifications" } else { "confirmations" };
        let path = format!("/agent/v1/sessions/{session}/{resource}");
        let response = self.agent.post(&path, &question.to_string());
        assert_eq!(response.status, 201, "{response:?}");
        response.json_str("reply_token")
    }

    /// Returns the current status of the agent's question.
    pub(crate) fn question_status(&self, session: &str, token: &str) -> Value {
        self.get_question(session, token, "")
    }

    /// Waits until the agent's question is resolved, at most a minute, and returns its status.
    pub(crate) fn wait_for_outcome(&self, session: &str, token: &str) -> Value {
        let mut status = self.get_question(session, token, "?wait=15");
        for _ in 0..3 {
            if status["status"] == "pending" {
                status = self.get_question(session, token, "?wait=15");
            }
        }
        status
    }

    fn get_question(&self, session: &str, token: &str, query: &str) -> Value {
        let response = self.agent.get(&format!("/agent/v1/sessions/{session}/replies/{token}{query}"));
        assert_eq!(response.status, 200, "{response:?}");
        serde_json::from_str(&response.body).unwrap()
    }
}

/// Asserts that a subscription was accepted and returns its id.
pub(crate) fn accepted_subscription_id(response: &Value) -> String {
    assert_eq!(response["type"], "subscription.accepted", "{response}");
    response["subscription_id"].as_str().unwrap().to_owned()
}

pub(crate) fn subscription_request(capabilities: &Value) -> String {
    testing::messages::subscription_request(&capabilities.to_string())
}

/// The capabilities of a listener that can reply.
pub(crate) fn reply_capabilities() -> Value {
    json!({"supports_confirmation_reply": true, "supports_clarification_reply": true})
}

/// A question about an irreversible action.
pub(crate) fn question() -> Value {
    serde_json::from_str(testing::messages::CONFIRMATION_BODY).unwrap()
}

pub(crate) fn now() -> String {
    timestamp_in(0)
}

/// Returns the timestamp this many seconds from now.
pub(crate) fn timestamp_in(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let at = i64::try_from(now.as_millis()).unwrap() + seconds * 1000;
    seal::Timestamp::from_unix_millis(UnixMillis::new(at)).unwrap().to_string()
}

pub(crate) fn reply(subscription: &str, token: &str, decision: &str) -> Value {
    json!({"type": "confirmation.reply", "reply_token": token, "decision": decision,
        "subscription_id": subscription, "timestamp": now()})
}
