//! A node in a process of its own, which is restarted whenever it is killed, and pairs of nodes that pin each other.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testing::cli::{binary, run_sayso};
use testing::http::{TIMEOUT, TestClient, TestResponse};
use testing::hub::reserved_address;

/// A policy with limits that no test reaches, and short delays between attempts.
const GENEROUS_POLICY: &str = "\
[limits]
messages_per_minute = [1000000, 1000000, 1000000, 1000000, 1000000]
invitations_per_minute = [1000000, 1000000, 1000000, 1000000, 1000000]
bytes_per_minute = [4000000000, 4000000000, 4000000000, 4000000000, 4000000000]
retry_delay_ms = 20
max_retry_delay_ms = 200
[circuit_breaker]
failure_threshold = 1000000
[escrow]
ceilings = [\"1000000.00\", \"1000000.00\", \"1000000.00\", \"1000000.00\", \"1000000.00\"]
";
/// The pause between two polls of a value that has no notification.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Number of log lines that are kept for a failed test.
const KEPT_LOG_LINES: usize = 50;

/// How nodes deliver messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
    WebSocket,
}

/// Where a node keeps its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Memory,
    Disk,
}

/// Calls a function until it returns a value. Panics if that takes too long.
#[track_caller]
pub(crate) fn poll<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not happen in time");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The description of a node before it starts.
#[derive(Clone)]
pub(crate) struct NodeBuilder {
    name: String,
    pub(crate) address: String,
    endpoint: Option<String>,
    arguments: Vec<String>,
    keygen_options: Vec<String>,
    policy: String,
    storage: Storage,
    crash_at: Option<String>,
    crashes_again: bool,
    capability: String,
    is_open: bool,
}

impl NodeBuilder {
    /// A node of an agent with this name, on a loopback address of its own.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            address: reserved_address(),
            endpoint: None,
            arguments: Vec::new(),
            keygen_options: Vec::new(),
            policy: GENEROUS_POLICY.to_owned(),
            storage: Storage::Memory,
            crash_at: None,
            crashes_again: false,
            capability: "negotiate.printing".to_owned(),
            is_open: true,
        }
    }

    pub(crate) fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    pub(crate) fn transport(self, transport: Transport) -> Self {
        match transport {
            Transport::Http => self,
            Transport::WebSocket => self.argument("--websocket"),
        }
    }

    pub(crate) fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Adds options of `sayso asp keygen`.
    pub(crate) fn keygen_option(mut self, options: &[&str]) -> Self {
        self.keygen_options.extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    /// Replaces the generous policy.
    pub(crate) fn policy(mut self, policy: &str) -> Self {
        policy.clone_into(&mut self.policy);
        self
    }

    /// Deposits money for the escrow of an agent.
    pub(crate) fn deposit(mut self, agent: &str) -> Self {
        let deposit = format!("{{ agent = \"{agent}\", amount = \"1000000.00\", currency = \"EUR\" }}");
        let _ = writeln!(self.policy, "deposits = [{deposit}]");
        self
    }

    /// Asks the agent's program for a token.
    pub(crate) fn without_open(mut self) -> Self {
        self.is_open = false;
        self
    }

    /// Publishes an address other than the node's own, such as the address of a proxy.
    pub(crate) fn published_at(mut self, address: &str) -> Self {
        self.endpoint = Some(format!("http://{address}"));
        self.argument("--host").argument(address)
    }

    /// Aborts the process at a crash point, once.
    pub(crate) fn crash_at(mut self, point: &str) -> Self {
        self.crash_at = Some(point.to_owned());
        self
    }

    /// Aborts the process at a crash point, after each start.
    pub(crate) fn crash_always_at(mut self, point: &str) -> Self {
        self.crashes_again = true;
        self.crash_at(point)
    }

    pub(crate) fn agent(&self) -> String {
        format!("agent://{}/{}", self.address, self.name)
    }

    /// Creates the identity in a folder. `--rotate` in `options` replaces its keys.
    pub(crate) fn keygen(&self, folder: &Path, options: &[&str]) {
        let (agent, out) = (self.agent(), folder.join("identity"));
        let mut arguments = vec!["asp", "keygen", "--agent", &agent, "--name", &self.name];
        arguments.extend(["--capability", &self.capability, "--organization", "org:test"]);
        arguments.extend(["--out", out.to_str().unwrap()]);
        if let Some(endpoint) = &self.endpoint {
            arguments.extend(["--endpoint", endpoint]);
        }
        arguments.extend(self.keygen_options.iter().map(String::as_str));
        arguments.extend(options);
        let output = run_sayso(&arguments, "");
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
    }

    /// Creates the identity, and returns the folder.
    pub(crate) fn create_folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        self.keygen(folder.path(), &[]);
        folder
    }

    /// Starts the node in a folder with an identity. `peers` are the card files that it pins.
    pub(crate) fn start(self, folder: tempfile::TempDir, peers: &[PathBuf]) -> TestNode {
        let node = self.start_unchecked(folder, peers);
        node.wait_until_running();
        node
    }

    fn start_unchecked(self, folder: tempfile::TempDir, peers: &[PathBuf]) -> TestNode {
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let lines: Vec<_> = peers.iter().map(|peer| peer.to_str().unwrap()).collect();
        std::fs::write(path("peers"), lines.join("\n")).unwrap();
        std::fs::write(path("policy.toml"), &self.policy).unwrap();
        let mut arguments: Vec<String> =
            ["asp", "serve", "--listen", &self.address].map(str::to_owned).to_vec();
        arguments.extend(self.is_open.then(|| "--open".to_owned()));
        arguments.extend(["--identity".to_owned(), path("identity"), "--peers".to_owned(), path("peers")]);
        arguments.extend(["--policy".to_owned(), path("policy.toml")]);
        match self.storage {
            Storage::Memory => arguments.push("--memory".to_owned()),
            Storage::Disk => arguments.extend(["--data".to_owned(), path("data")]),
        }
        arguments.extend(self.arguments.clone());
        let supervisor = Arc::new(Supervisor::default());
        supervisor.start(arguments, self.crash_at.clone(), self.crashes_again);
        TestNode { agent: self.agent(), address: self.address.clone(), builder: self, folder, supervisor }
    }
}

/// A node, which is restarted whenever its process ends, until it is dropped.
pub(crate) struct TestNode {
    pub(crate) agent: String,
    pub(crate) address: String,
    pub(crate) builder: NodeBuilder,
    pub(crate) folder: tempfile::TempDir,
    supervisor: Arc<Supervisor>,
}

/// A session as the agent's program sees it.
pub(crate) struct View(pub(crate) Value);

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut view = self.0.clone();
        view["messages"] = self.messages().iter().map(|message| message["performative"].clone()).collect();
        write!(f, "{view}")
    }
}

impl View {
    pub(crate) fn state(&self) -> &str {
        self.0["state"].as_str().unwrap()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        ["CLOSED", "FAILED"].contains(&self.state())
    }

    pub(crate) fn message_count(&self) -> usize {
        usize::try_from(self.0["messageCount"].as_u64().unwrap()).unwrap()
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        self.0["unacknowledged"] == 0
    }

    pub(crate) fn messages(&self) -> &[Value] {
        self.0["messages"].as_array().unwrap()
    }
}

impl TestNode {
    pub(crate) fn card_path(&self) -> PathBuf {
        card_path(&self.folder)
    }

    /// A client for requests that the node must answer.
    pub(crate) fn client(&self) -> TestClient {
        TestClient::new(&self.address)
    }

    /// Sends a request from the agent's program. Returns `None` if the node did not answer.
    pub(crate) fn try_send(&self, method: &str, path: &str, body: &str) -> Option<TestResponse> {
        self.supervisor.assert_healthy();
        self.client().try_send(method, path, body)
    }

    /// Reads something, again and again until the node answers.
    pub(crate) fn get(&self, path: &str) -> TestResponse {
        poll(path, || self.try_send("GET", path, "").filter(|response| response.status != 503))
    }

    /// Returns a session, or `None` if the node does not know it.
    pub(crate) fn view(&self, session: &str, after: usize, wait_seconds: u32) -> Option<View> {
        let response =
            self.get(&format!("/agent/v1/asp/sessions/{session}?after={after}&wait={wait_seconds}"));
        match response.status {
            200 => Some(View(response.json())),
            404 => None,
            _ => panic!("{response:?}"),
        }
    }

    /// Waits until a session meets a condition.
    #[track_caller]
    pub(crate) fn wait_for(&self, session: &str, what: &str, is_met: impl Fn(&View) -> bool) -> View {
        let deadline = Instant::now() + TIMEOUT;
        let mut known = 0;
        loop {
            let view = self.view(session, known, 1);
            if let Some(view) = view {
                // The next request waits for a change.
                known = view.message_count();
                let all = self.view(session, 0, 0).unwrap();
                if is_met(&all) {
                    return all;
                }
                if all.is_terminal() {
                    std::thread::sleep(POLL_INTERVAL);
                }
            } else {
                std::thread::sleep(POLL_INTERVAL);
            }
            assert!(
                Instant::now() < deadline,
                "{}: {what} did not happen in time: {:?}\n{}",
                self.agent,
                self.view(session, 0, 0),
                self.supervisor.log()
            );
        }
    }

    /// Sends a message from the agent's program. Returns `None` if the node did not answer.
    pub(crate) fn try_post_message(
        &self,
        session: &str,
        performative: &str,
        body: &Value,
    ) -> Option<TestResponse> {
        let request = json!({"performative": performative, "body": body}).to_string();
        self.try_send("POST", &format!("/agent/v1/asp/sessions/{session}/messages"), &request)
    }

    /// Sends a message from the agent's program, which the node must accept.
    #[track_caller]
    pub(crate) fn send(&self, session: &str, performative: &str, body: &Value) -> Value {
        let response = self.try_post_message(session, performative, body).expect("a response");
        assert_eq!(response.status, 200, "{performative}: {response:?}");
        response.json()
    }

    /// Returns the session with this subject, if it is open.
    pub(crate) fn find_session(&self, subject: &str) -> Option<String> {
        let list = self.get("/agent/v1/asp/sessions").json();
        let found = list["sessions"].as_array().unwrap().iter().find(|entry| entry["subject"] == subject)?;
        Some(found["sessionId"].as_str().unwrap().to_owned())
    }

    /// Sends an invitation. Returns `None` if the node did not answer.
    pub(crate) fn try_invite(&self, peer: &str, subject: &str, valid_seconds: i64) -> Option<TestResponse> {
        let valid_until = timestamp_in(valid_seconds);
        let request = json!({"peer": peer, "subject": subject, "terms": {}, "validUntil": valid_until});
        self.try_send("POST", "/agent/v1/asp/sessions", &request.to_string())
    }

    pub(crate) fn transcript(&self, session: &str) -> String {
        let response = self.get(&format!("/agent/v1/asp/sessions/{session}/transcript"));
        assert_eq!(response.status, 200, "{response:?}");
        response.body
    }

    /// Returns the cards of both sides.
    pub(crate) fn cards(&self, session: &str) -> String {
        let response = self.get(&format!("/agent/v1/asp/sessions/{session}/cards"));
        assert_eq!(response.status, 200, "{response:?}");
        response.body
    }

    pub(crate) fn wait_until_running(&self) {
        self.supervisor.wait_until_running();
    }

    /// Kills the process. It is restarted at once.
    pub(crate) fn kill(&self) {
        self.supervisor.kill();
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        send_signal(self.supervisor.wait_until_running(), signal);
    }

    /// Replaces the policy file and the list of peers, and makes the node read them again.
    pub(crate) fn reload(&self, policy: &str, peers: &[PathBuf]) {
        let lines: Vec<_> = peers.iter().map(|peer| peer.to_str().unwrap()).collect();
        std::fs::write(self.folder.path().join("peers"), lines.join("\n")).unwrap();
        std::fs::write(self.folder.path().join("policy.toml"), policy).unwrap();
        self.signal(rustix::process::Signal::HUP);
    }

    /// Kills the process, and waits until a new one is listening.
    pub(crate) fn restart(&self) {
        let starts = self.starts();
        self.kill();
        poll("the restart", || (self.starts() > starts).then_some(()));
    }

    /// Ends the process, calls the test's function to change the identity or the arguments, and starts a new process with the same data.
    pub(crate) fn restart_with(self, change: impl FnOnce(NodeBuilder) -> NodeBuilder) -> Self {
        self.supervisor.stop();
        let builder = change(self.builder.clone());
        self.start_again(builder)
    }

    /// Restarts the node with the same data and another identity of the same agent.
    pub(crate) fn restart_with_new_keys(self) -> Self {
        self.supervisor.stop();
        std::fs::remove_dir_all(self.folder.path().join("identity")).unwrap();
        self.builder.keygen(self.folder.path(), &[]);
        let builder = self.builder.clone();
        self.start_again(builder)
    }

    /// Ends the process, copies its data, and starts it again.
    pub(crate) fn backup(self) -> (Self, tempfile::TempDir) {
        self.supervisor.stop();
        let copy = tempfile::tempdir().unwrap();
        copy_folder(&self.folder.path().join("data"), copy.path());
        let builder = self.builder.clone();
        (self.start_again(builder), copy)
    }

    /// Ends the process, lets the test change its data folder, and starts it again.
    pub(crate) fn restart_with_data(self, change: impl FnOnce(&Path)) -> Self {
        self.supervisor.stop();
        change(&self.folder.path().join("data"));
        let builder = self.builder.clone();
        self.start_again(builder)
    }

    /// Restarts the node with the data of a backup.
    pub(crate) fn restore(self, backup: &tempfile::TempDir) -> Self {
        self.supervisor.stop();
        let data = self.folder.path().join("data");
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::create_dir(&data).unwrap();
        copy_folder(backup.path(), &data);
        let builder = self.builder.clone();
        self.start_again(builder)
    }

    fn start_again(mut self, builder: NodeBuilder) -> Self {
        let peers = std::fs::read_to_string(self.folder.path().join("peers")).unwrap();
        let peers: Vec<PathBuf> = peers.lines().map(PathBuf::from).collect();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        drop(self);
        builder.start(folder, &peers)
    }

    /// Returns how many processes were listening until now.
    pub(crate) fn starts(&self) -> usize {
        self.supervisor.state.lock().unwrap().starts
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.supervisor.stop();
    }
}

pub(crate) fn card_path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("identity/card.json")
}

/// Returns the time in this many seconds, as messages state it.
pub(crate) fn timestamp_in(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let at = i64::try_from(now.as_millis()).unwrap() + seconds * 1000;
    seal::Timestamp::from_unix_millis(seal::UnixMillis::new(at)).unwrap().to_string()
}

/// Starts two nodes that pin each other's cards: the buyer, which invites, and the press.
pub(crate) fn start_pair(prepare: impl Fn(NodeBuilder) -> NodeBuilder) -> [TestNode; 2] {
    start_builders([NodeBuilder::new("buyer"), NodeBuilder::new("press")].map(prepare))
}

/// Starts two nodes that pin each other's cards.
pub(crate) fn start_builders(mut builders: [NodeBuilder; 2]) -> [TestNode; 2] {
    let buyer = builders[0].agent();
    builders = builders.map(|builder| builder.deposit(&buyer));
    let [first, second] = builders;
    let folders = [first.create_folder(), second.create_folder()];
    let cards = folders.each_ref().map(card_path);
    let [first_folder, second_folder] = folders;
    let nodes = [
        first.start_unchecked(first_folder, &cards[1..]),
        second.start_unchecked(second_folder, &cards[..1]),
    ];
    nodes.iter().for_each(TestNode::wait_until_running);
    nodes
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_folder(&entry.path(), &target);
        } else if entry.file_type().unwrap().is_file() {
            // The control socket of a node that was killed stays in its folder.
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

fn send_kill(pid: u32) {
    send_signal(pid, rustix::process::Signal::KILL);
}

fn send_signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // The process may have ended already.
    let _ = rustix::process::kill_process(pid, signal);
}

/// Keeps a process running.
#[derive(Default)]
struct Supervisor {
    state: Mutex<SupervisorState>,
    changed: Condvar,
}

#[derive(Default)]
struct SupervisorState {
    pid: Option<u32>,
    starts: usize,
    is_stopping: bool,
    has_stopped: bool,
    /// The exit code of a process that ended by itself.
    failure: Option<i32>,
    log: VecDeque<String>,
}

impl Supervisor {
    fn start(self: &Arc<Self>, arguments: Vec<String>, mut crash_at: Option<String>, crashes_again: bool) {
        let supervisor = self.clone();
        std::thread::spawn(move || {
            while let Some(child) = supervisor.spawn(&arguments, crash_at.as_deref()) {
                if !crashes_again {
                    crash_at = None;
                }
                supervisor.follow(child);
            }
            supervisor.state.lock().unwrap().has_stopped = true;
            supervisor.changed.notify_all();
        });
    }

    fn spawn(&self, arguments: &[String], crash_at: Option<&str>) -> Option<Child> {
        let state = self.state.lock().unwrap();
        if state.is_stopping || state.failure.is_some() {
            return None;
        }
        let mut command = Command::new(binary());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(crash_at) = crash_at {
            command.env("SAYSO_ASP_CRASH_AT", crash_at);
        }
        drop(state);
        Some(command.spawn().unwrap())
    }

    /// Reads the output of a process until it ends.
    fn follow(&self, mut child: Child) {
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            let mut state = self.state.lock().unwrap();
            if line.starts_with("listening on http") {
                state.pid = Some(child.id());
                state.starts += 1;
                if state.is_stopping {
                    let _ = child.kill();
                }
                self.changed.notify_all();
            }
            if state.log.len() == KEPT_LOG_LINES {
                state.log.pop_front();
            }
            state.log.push_back(line);
        }
        // Killing needs the same lock, so no signal reaches another process with the same id.
        let mut state = self.state.lock().unwrap();
        let status = child.wait().unwrap();
        state.pid = None;
        if !state.is_stopping {
            state.failure = status.code();
        }
        self.changed.notify_all();
    }

    fn wait_until_running(&self) -> u32 {
        let state = self.state.lock().unwrap();
        let is_starting = |state: &mut SupervisorState| state.pid.is_none() && state.failure.is_none();
        let (state, _) = self.changed.wait_timeout_while(state, TIMEOUT, is_starting).unwrap();
        state.pid.unwrap_or_else(|| panic!("the node does not run: {:?}", state.log))
    }

    fn kill(&self) {
        let mut state = self.state.lock().unwrap();
        if let Some(pid) = state.pid.take() {
            send_kill(pid);
        }
    }

    fn stop(&self) {
        let mut state = self.state.lock().unwrap();
        if state.has_stopped {
            return;
        }
        state.is_stopping = true;
        if let Some(pid) = state.pid {
            send_kill(pid);
        }
        drop(self.changed.wait_timeout_while(state, TIMEOUT, |state| !state.has_stopped).unwrap());
    }

    fn assert_healthy(&self) {
        let state = self.state.lock().unwrap();
        assert!(state.failure.is_none(), "the node exited with {:?}: {:#?}", state.failure, state.log);
    }

    fn log(&self) -> String {
        self.state.lock().unwrap().log.iter().fold(String::new(), |text, line| text + line + "\n")
    }
}
