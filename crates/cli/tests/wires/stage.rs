//! The real binary with every wire open, an agent on HTTP, and people with tokens.

use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use seal::UnixMillis;
use serde_json::{Value, json};
use testing::cli::{binary, token};

use crate::sse;
use crate::wire::{Kind, Wire};
use testing::http::Client;

/// A hub with every wire open.
pub(crate) struct Hub {
    process: testing::hub::Hub,
    pub(crate) address: String,
    pub(crate) socket: PathBuf,
    /// Its input and output, where it listens on them, until somebody takes them.
    pub(crate) pipes: Option<(ChildStdin, ChildStdout)>,
    /// Whatever hangs ends with the hub: nothing takes so long.
    _watch: Sender<()>,
}

impl Hub {
    fn start(kind: Kind, folder: &Path, keeps: bool, more: &[&str]) -> Self {
        let socket = folder.join("hub.sock");
        let mut command = Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--tokens"]).arg(&people().file);
        command.arg("--unix").arg(&socket).args(more);
        if keeps {
            command.arg("--data").arg(folder.join("data"));
        } else {
            command.arg("--memory");
        }
        let (process, pipes) = if kind == Kind::Stdio {
            let (process, pipes) = testing::hub::Hub::with_pipes(command.arg("--stdio"));
            (process, Some(pipes))
        } else {
            (testing::hub::Hub::start_as(&mut command), None)
        };
        let watch = watch(process.id(), Duration::from_mins(10));
        Self { address: process.address.clone(), process, socket, pipes, _watch: watch }
    }

    /// Kills it without a word.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks it to stop.
    pub(crate) fn ask_to_stop(&self) {
        self.process.signal("-TERM");
    }

    /// Its exit code. It is promised that it ends within 5 seconds, of which a slow machine may make more; much later it is
    /// killed, and has none.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let _watch = watch(self.process.id(), Duration::from_secs(30));
        self.process.wait()
    }
}

/// Kills a process after that time, unless the sender is dropped before.
fn watch(process: String, patience: Duration) -> Sender<()> {
    let (alive, gone) = channel();
    std::thread::spawn(move || {
        if gone.recv_timeout(patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-KILL", &process]).status();
        }
    });
    alive
}

/// Tokens, made once for all hubs.
pub(crate) struct People {
    _folder: tempfile::TempDir,
    file: PathBuf,
    /// An agent.
    pub(crate) bank: String,
    /// Two who listen and answer.
    pub(crate) ada: String,
    pub(crate) ben: String,
    /// One who listens and cannot answer.
    pub(crate) eve: String,
}

pub(crate) fn people() -> &'static People {
    static PEOPLE: OnceLock<People> = OnceLock::new();
    PEOPLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        let made = |role: &str, name: &str| {
            let agent = if role == "agent" { &["--agent-id", name][..] } else { &[] };
            token(file.to_str().unwrap(), &[&["--role", role, "--name", name], agent].concat())
        };
        People {
            bank: made("agent", "bank"),
            ada: made("listener", "ada"),
            ben: made("listener", "ben"),
            eve: made("observer", "eve"),
            file: file.clone(),
            _folder: folder,
        }
    })
}

/// One cell of the table: a hub of its own, and the wire that is looked at.
pub(crate) struct Stage {
    pub(crate) kind: Kind,
    folder: tempfile::TempDir,
    pub(crate) hub: Hub,
    pub(crate) agent: Client,
}

impl Stage {
    /// With a hub that keeps nothing.
    pub(crate) fn in_memory(kind: Kind) -> Self {
        Self::new(kind, false, &[])
    }

    /// With a hub that keeps nothing, and is told more.
    pub(crate) fn with(kind: Kind, more: &[&str]) -> Self {
        Self::new(kind, false, more)
    }

    /// With a hub that can be started again.
    pub(crate) fn on_disk(kind: Kind) -> Self {
        Self::new(kind, true, &[])
    }

    fn new(kind: Kind, keeps: bool, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start(kind, folder.path(), keeps, more);
        let agent = Client::of(&hub.address).bearer(&people().bank);
        Self { kind, folder, hub, agent }
    }

    /// The hub's data folder.
    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the hub again, on what the last one has left.
    pub(crate) fn start_again(&mut self) {
        self.hub = Hub::start(self.kind, self.folder.path(), true, &[]);
        self.agent = Client::of(&self.hub.address).bearer(&people().bank);
    }

    /// Ada on the wire that is looked at.
    pub(crate) fn connect(&mut self) -> Box<dyn Wire> {
        self.kind.connect(&mut self.hub, &people().ada).unwrap()
    }

    /// Ada on the wire that is looked at, subscribed, and the id of her subscription.
    pub(crate) fn subscribed(&mut self, capabilities: &Value) -> (Box<dyn Wire>, String) {
        let mut wire = self.connect();
        let id = accepted(&wire.subscribe(&request(capabilities)));
        (wire, id)
    }

    /// Somebody else, who listens on SSE.
    pub(crate) fn neighbour(&self, token: &str, capabilities: &Value) -> (sse::Listener, String) {
        let mut wire = sse::Listener::new(&self.hub.address, token);
        let id = accepted(&wire.subscribe(&request(capabilities)));
        (wire, id)
    }

    /// Another subscription of the same one who is on the wire that is looked at, on a connection of its own.
    pub(crate) fn same_person(&mut self, capabilities: &Value) -> (Box<dyn Wire>, String) {
        let kind = if self.kind == Kind::Stdio { Kind::Lines } else { self.kind };
        let mut wire = kind.connect(&mut self.hub, &people().ada).unwrap();
        let id = accepted(&wire.subscribe(&request(capabilities)));
        (wire, id)
    }

    pub(crate) fn start(&self) -> String {
        self.agent.start()
    }

    /// The agent says these events, all at once.
    pub(crate) fn publish(&self, session: &str, events: &[Value]) {
        let lines: Vec<_> = events.iter().map(Value::to_string).collect();
        let many = self.agent.with("Content-Type: application/x-ndjson");
        let answer = many.post(&format!("/agent/v1/sessions/{session}/events"), &lines.join("\n"));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    pub(crate) fn output(&self, session: &str, text: &str, complete: bool) {
        let path = format!("/agent/v1/sessions/{session}/output?complete={complete}");
        let answer = self.agent.post(&path, text);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// The agent asks; the token of its question.
    pub(crate) fn ask(&self, session: &str, question: &Value) -> String {
        let what = if question.get("question").is_some() { "clarifications" } else { "confirmations" };
        let path = format!("/agent/v1/sessions/{session}/{what}");
        let answer = self.agent.post(&path, &question.to_string());
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("reply_token")
    }

    /// What the agent learns of its question now.
    pub(crate) fn status(&self, session: &str, token: &str) -> Value {
        self.replies(session, token, "")
    }

    /// What the agent learns of its question in the end.
    pub(crate) fn outcome(&self, session: &str, token: &str) -> Value {
        let mut told = self.replies(session, token, "?wait=15");
        for _ in 0..3 {
            if told["status"] == "pending" {
                told = self.replies(session, token, "?wait=15");
            }
        }
        told
    }

    fn replies(&self, session: &str, token: &str, query: &str) -> Value {
        let answer = self.agent.get(&format!("/agent/v1/sessions/{session}/replies/{token}{query}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    }
}

/// The subscription that was given.
pub(crate) fn accepted(answer: &Value) -> String {
    assert_eq!(answer["type"], "subscription.accepted", "{answer}");
    answer["subscription_id"].as_str().unwrap().to_owned()
}

pub(crate) fn request(capabilities: &Value) -> String {
    testing::messages::request(&capabilities.to_string())
}

/// What somebody who answers asks for.
pub(crate) fn can_reply() -> Value {
    json!({"supports_confirmation_reply": true, "supports_clarification_reply": true})
}

/// A question whose yes cannot be taken back.
pub(crate) fn question() -> Value {
    serde_json::from_str(testing::messages::QUESTION).unwrap()
}

pub(crate) fn now() -> String {
    after(0)
}

/// The time in so many seconds.
pub(crate) fn after(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let at = i64::try_from(now.as_millis()).unwrap() + seconds * 1000;
    seal::Timestamp::from_unix_millis(UnixMillis::new(at)).unwrap().to_string()
}

pub(crate) fn reply(subscription: &str, token: &str, decision: &str) -> Value {
    json!({"type": "confirmation.reply", "reply_token": token, "decision": decision,
        "subscription_id": subscription, "timestamp": now()})
}
