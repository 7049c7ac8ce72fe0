//! The hub: the real binary in a child process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::keep_alive_client::json_member;
use super::{KeepAliveClient, ProcessStats, Server, uncoalescable_event};

/// Where the hub stores its data.
#[derive(Clone, Copy, Debug)]
pub enum Store<'a> {
    /// In a new folder on disk, inside `SAYSO_BENCH_DIR` or, if that is not set, the folder for temporary files.
    Disk,
    /// In this folder.
    Folder(&'a Path),
    /// In memory.
    Memory,
}

/// A running `sayso serve`. Dropping this kills the process.
#[derive(Debug)]
pub struct BenchHub {
    child: Child,
    address: String,
    session: String,
    /// Time from the start of the process until it listens.
    pub started_in: Duration,
    _folder: Option<TempDir>,
}

impl BenchHub {
    /// Starts the hub and opens one session.
    pub fn start(store: Store<'_>) -> Self {
        Self::start_with_shards(store, 1)
    }

    /// Starts a hub with this many shards and opens one session.
    pub fn start_with_shards(store: Store<'_>, shards: u16) -> Self {
        let binary = crate::binary().expect("cargo xtask bench builds the binary first");
        let mut command = Command::new(binary);
        // The benchmark asks far more questions per minute than the default limit allows.
        command.args(["serve", "--open", "--listen", "127.0.0.1:0", "--hub-questions-per-minute", "1000000"]);
        command.args([
            "--hub-total-questions-per-minute",
            "1000000",
            "--hub-total-criticals-per-minute",
            "1000000",
        ]);
        // All agents of the benchmark have the same id, so they count as one agent.
        command.args(["--hub-sessions-per-principal", "1000000", "--hub-bytes-per-minute", "1024TiB"]);
        command.arg("--hub-shards").arg(shards.to_string());
        let mut folder = None;
        match store {
            Store::Disk => {
                let temp_dir = Self::temp_dir();
                command.arg("--data").arg(temp_dir.path());
                folder = Some(temp_dir);
            }
            Store::Folder(path) => drop(command.arg("--data").arg(path)),
            Store::Memory => drop(command.arg("--memory")),
        }
        let started = Instant::now();
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("the hub exited before it was listening").unwrap();
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        let started_in = started.elapsed();
        std::thread::spawn(move || lines.for_each(drop));
        let mut hub = Self { child, address, session: String::new(), started_in, _folder: folder };
        hub.session = hub.open_session(&mut hub.connect());
        hub
    }

    /// Creates a temporary folder for the hub's data.
    pub fn temp_dir() -> TempDir {
        let parent = std::env::var_os("SAYSO_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
        tempfile::Builder::new().prefix("sayso-bench-").tempdir_in(parent).unwrap()
    }

    /// Opens a connection to the hub.
    pub fn connect(&self) -> KeepAliveClient {
        KeepAliveClient::connect(&self.address)
    }

    /// Opens one more session.
    pub fn open_session(&self, client: &mut KeepAliveClient) -> String {
        self.open_session_for(client, "bench")
    }

    /// Opens one more session, for this person. The person decides to which shard the session belongs.
    pub fn open_session_for(&self, client: &mut KeepAliveClient, person: &str) -> String {
        let started = format!(
            r#"{{"summary_normal":"Reading.","requested_by":"{person}","localization_hints":{{"primary_language":"en"}}}}"#
        );
        json_member(&client.post("/agent/v1/sessions", &started), "session_id")
    }

    /// Creates one more subscription.
    pub fn subscribe(&self, client: &mut KeepAliveClient) -> String {
        let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"bench","capabilities":{"supports_confirmation_reply":true}}"#;
        json_member(&client.post("/aaep/v1/subscriptions", request), "subscription_id")
    }

    /// Returns the path of a subscription's stream.
    pub fn stream_path(subscription: &str) -> String {
        format!("/aaep/v1/events?subscription_id={subscription}")
    }

    /// Returns a request that publishes these events in a session.
    pub fn session_publish_request(&self, session: &str, events: &[String]) -> Vec<u8> {
        // The final newline makes even a single event JSON Lines.
        let body = events.join("\n") + "\n";
        KeepAliveClient::request(
            &self.address,
            "POST",
            &format!("/agent/v1/sessions/{session}/events"),
            &body,
        )
    }

    /// Stops the hub with SIGTERM and waits for its exit.
    pub fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap();
    }
}

impl Server for BenchHub {
    fn address(&self) -> &str {
        &self.address
    }

    fn subscribe_and_get_stream_path(&self, client: &mut KeepAliveClient) -> String {
        Self::stream_path(&self.subscribe(client))
    }

    fn publish_request(&self, batch: usize) -> (Vec<u8>, usize) {
        (self.session_publish_request(&self.session, &vec![uncoalescable_event(); batch]), 1)
    }

    fn process(&self) -> ProcessStats {
        ProcessStats(self.child.id())
    }
}

impl Drop for BenchHub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
