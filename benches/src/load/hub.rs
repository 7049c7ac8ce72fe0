//! The hub: the real binary as one child process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::agent::member;
use super::{Agent, Process, Server, lasting};

/// Where the hub keeps what it is told.
#[derive(Clone, Copy, Debug)]
pub enum Store<'a> {
    /// In a new folder on disk. `SAYSO_BENCH_DIR` names another place for it than the one for temporary files.
    Disk,
    /// In this folder.
    Folder(&'a Path),
    /// In memory.
    Memory,
}

/// `sayso serve`, until it is dropped.
#[derive(Debug)]
pub struct Hub {
    child: Child,
    address: String,
    session: String,
    /// From the start of the process to its word that it listens.
    pub started_in: Duration,
    _folder: Option<TempDir>,
}

impl Hub {
    /// Starts it and opens one session.
    pub fn start(store: Store<'_>) -> Self {
        let binary = crate::binary().expect("cargo xtask bench builds the binary first");
        let mut command = Command::new(binary);
        // Nobody answers so much; what is measured is how soon it is heard.
        command.args(["serve", "--open", "--listen", "127.0.0.1:0", "--hub-questions-per-minute", "1000000"]);
        let mut folder = None;
        match store {
            Store::Disk => {
                let made = Self::folder();
                command.arg("--data").arg(made.path());
                folder = Some(made);
            }
            Store::Folder(path) => drop(command.arg("--data").arg(path)),
            Store::Memory => drop(command.arg("--memory")),
        }
        let begun = Instant::now();
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("it ended before it listened").unwrap();
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        let started_in = begun.elapsed();
        std::thread::spawn(move || lines.for_each(drop));
        let mut hub = Self { child, address, session: String::new(), started_in, _folder: folder };
        hub.session = hub.open_session(&mut hub.agent());
        hub
    }

    /// A new folder for what is kept.
    pub fn folder() -> TempDir {
        let place = std::env::var_os("SAYSO_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
        tempfile::Builder::new().prefix("sayso-bench-").tempdir_in(place).unwrap()
    }

    /// A connection to it.
    pub fn agent(&self) -> Agent {
        Agent::connect(&self.address)
    }

    /// Opens one more session.
    pub fn open_session(&self, agent: &mut Agent) -> String {
        let started = r#"{"summary_normal":"Reading.","localization_hints":{"primary_language":"en"}}"#;
        member(&agent.post("/agent/v1/sessions", started), "session_id")
    }

    /// One more subscription.
    pub fn subscribe(&self, agent: &mut Agent) -> String {
        let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"bench","capabilities":{"supports_confirmation_reply":true}}"#;
        member(&agent.post("/aaep/v1/subscriptions", request), "subscription_id")
    }

    /// Where a subscription is heard.
    pub fn stream_of(subscription: &str) -> String {
        format!("/aaep/v1/events?subscription_id={subscription}")
    }

    /// A request that publishes these events in a session.
    pub fn publishes(&self, session: &str, events: &[String]) -> Vec<u8> {
        // A line end makes it JSON Lines, of one too.
        let body = events.join("\n") + "\n";
        Agent::request(&self.address, "POST", &format!("/agent/v1/sessions/{session}/events"), &body)
    }

    /// Ends it as an operator would, and waits until it has ended.
    pub fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap();
    }
}

impl Server for Hub {
    fn address(&self) -> &str {
        &self.address
    }

    fn stream(&self, agent: &mut Agent) -> String {
        Self::stream_of(&self.subscribe(agent))
    }

    fn request(&self, batch: usize) -> (Vec<u8>, usize) {
        (self.publishes(&self.session, &vec![lasting(); batch]), 1)
    }

    fn process(&self) -> Process {
        Process(self.child.id())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
