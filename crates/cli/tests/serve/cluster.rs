//! `sayso serve --cluster`: several nodes as processes, with their journal in a Postgres server of their own.
//!
//! `CLUSTER_FAULTS=200` sets the number of faults of the campaign (20 by default), `PROPERTY_SEED` its seed, and
//! `CLUSTER_LEASE=5s` the lease, which bounds the time of a failover.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testing::http::{TIMEOUT, TestClient};
use testing::hub::reserved_address;
use testing::messages::REPLY_CAPABILITIES;
use testing::postgres::PostgresServer;
use testing::postgres_proxy::Proxy;
use testing::random::SplitMix64;

use super::random_kills::{AcknowledgedState, assert_acknowledged, run_step};

/// A node with its own connection to the database, which can be cut.
struct TestNode {
    name: &'static str,
    address: String,
    folder: TempDir,
    link: Proxy,
    arguments: Vec<String>,
    process: Option<Child>,
    is_paused: bool,
}

impl TestNode {
    fn start(server: &PostgresServer, name: &'static str, arguments: &[&str]) -> Self {
        let mut node = Self {
            name,
            address: reserved_address(),
            folder: tempfile::tempdir().unwrap(),
            link: Proxy::start(&server.socket()),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            process: None,
            is_paused: false,
        };
        node.run();
        node
    }

    fn run(&mut self) {
        let log = File::options().append(true).create(true).open(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.args(["serve", "--cluster", "--cluster-node", self.name, "--listen", &self.address]);
        command.args(["--journal", &self.link.address(), "--data"]).arg(self.folder.path().join("data"));
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn client(&self) -> TestClient {
        TestClient::new(&self.address)
    }

    fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.try_wait().unwrap().is_none())
    }

    fn is_active(&mut self) -> bool {
        !self.is_paused
            && self.is_running()
            && self.client().try_send("GET", "/readyz", "").is_some_and(|response| response.status == 200)
    }

    fn signal(&mut self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.is_paused = signal == "-STOP";
    }

    /// Waits until the process has exited, and returns its exit code.
    fn wait(&mut self) -> Option<i32> {
        self.process.take().unwrap().wait().unwrap().code()
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of node {}:\n{}", self.name, self.log());
        }
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn start_server(test: &str) -> Option<PostgresServer> {
    testing::postgres::is_installed(test).then(PostgresServer::start)
}

/// Waits until one of the nodes is active, other than `except`, and returns its index.
fn wait_for_active(nodes: &mut [TestNode], except: Option<usize>) -> usize {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut indices = (0..nodes.len()).filter(|index| Some(*index) != except);
        if let Some(active) = indices.find(|index| nodes[*index].is_active()) {
            return active;
        }
        assert!(Instant::now() < deadline, "no node is active");
        std::thread::yield_now();
    }
}

/// Waits until a node other than `lost` is active. Starts nodes that have exited, as a supervisor does: on a busy machine, a node can
/// lose its lease without a fault.
fn wait_for_takeover(nodes: &mut [TestNode], lost: usize) -> usize {
    let deadline = Instant::now() + 2 * TIMEOUT;
    loop {
        for index in (0..nodes.len()).filter(|index| *index != lost) {
            if !nodes[index].is_running() {
                nodes[index].run();
            } else if nodes[index].is_active() {
                return index;
            }
        }
        assert!(Instant::now() < deadline, "no other node is active");
        std::thread::yield_now();
    }
}

fn run_sayso(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sayso")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lease must be long enough for a busy machine.
const OPEN: &[&str] = &["--open", "--journal-lease", "4s"];

#[test]
fn a_standby_answers_503_and_takes_over_when_the_active_node_is_killed() {
    let Some(server) = start_server("a_standby_answers_503_and_takes_over") else { return };
    let mut nodes = vec![TestNode::start(&server, "a", OPEN), TestNode::start(&server, "b", OPEN)];
    let active = wait_for_active(&mut nodes, None);
    let standby = 1 - active;
    let client = nodes[active].client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    let short = r#"{"action":"Send 5 euros to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":10,"default_decision":"reject","summary_normal":"May I?","tool":"send","arguments":{"amount":"6.00"}}"#;
    let other_session = client.start_session();
    let overdue = client.post(&format!("/agent/v1/sessions/{other_session}/confirmations"), short);
    let overdue = overdue.json_str("reply_token");
    // A standby does not serve, but a load balancer can ask it.
    let waiting = nodes[standby].client();
    while waiting.try_send("GET", "/healthz", "").is_none() {
        assert!(nodes[standby].is_running());
    }
    assert_eq!(waiting.get("/healthz").status, 200);
    for (method, path) in
        [("GET", "/readyz"), ("POST", "/agent/v1/sessions"), ("POST", "/aaep/v1/subscriptions")]
    {
        assert_eq!(waiting.send(method, path, "{}").status, 503, "{path}");
    }
    let receipt_key = client.get("/.well-known/sayso-receipt-key.json").body;
    nodes[active].process.as_mut().unwrap().kill().unwrap();
    assert_eq!(wait_for_active(&mut nodes, Some(active)), standby);
    assert_eq!(waiting.reply(&subscription, &token, "accept").status, 204);
    let path = |session: &str, token: &str| format!("/agent/v1/sessions/{session}/replies/{token}?wait=60");
    assert_eq!(waiting.get(&path(&session, &token)).json_str("decision"), "accept");
    // The deadline fires on the node that took over.
    assert_eq!(waiting.get(&path(&other_session, &overdue)).json_str("decision"), "reject");
    let decided = "SELECT count(*), count(decided) FROM sayso.question";
    assert_eq!(server.sql(decided), "2|2");
    assert_eq!(waiting.get("/.well-known/sayso-receipt-key.json").body, receipt_key);
}

#[test]
fn a_node_that_is_stopped_hands_over_before_its_lease_ends() {
    let Some(server) = start_server("a_node_that_is_stopped_hands_over") else { return };
    let arguments = &["--open", "--journal-lease", "1m"];
    let mut nodes = vec![TestNode::start(&server, "a", arguments), TestNode::start(&server, "b", arguments)];
    let active = wait_for_active(&mut nodes, None);
    let lease_end = server.sql("SELECT lease_until FROM sayso.shard");
    nodes[active].signal("-TERM");
    assert_eq!(nodes[active].wait(), Some(0));
    assert_eq!(wait_for_active(&mut nodes, Some(active)), 1 - active);
    assert_eq!(server.sql(&format!("SELECT clock_timestamp() < '{lease_end}'")), "t");
    // A standby leaves as well.
    let mut third = TestNode::start(&server, "c", arguments);
    server.wait_for_sql("SELECT count(*) FROM sayso.node", "2");
    third.signal("-TERM");
    assert_eq!(third.wait(), Some(0));
    assert_eq!(server.sql("SELECT count(*) FROM sayso.node"), "1");
}

#[test]
fn operators_see_the_cluster_and_drain_a_node() {
    let Some(server) = start_server("operators_see_the_cluster_and_drain_a_node") else { return };
    let address = server.address();
    let status = || run_sayso(&["cluster", "status", "--journal", &address]);
    let before = status();
    assert_eq!(before.status.code(), Some(2), "{}", stderr(&before));
    assert!(
        stderr(&before).contains("no node of a cluster has used this database yet"),
        "{}",
        stderr(&before)
    );
    let mut nodes = vec![TestNode::start(&server, "a", OPEN), TestNode::start(&server, "b", OPEN)];
    let active = wait_for_active(&mut nodes, None);
    server.wait_for_sql("SELECT count(*) FROM sayso.node", "2");
    let text = stdout(&status());
    assert_eq!(status().status.code(), Some(0), "{text}");
    let name = nodes[active].name;
    assert!(text.contains(&format!("node {name}: running, 1 shards, {}", nodes[active].address)), "{text}");
    assert!(text.contains(&format!("shard 0: owned by {name}, lease ")), "{text}");
    let json = stdout(&run_sayso(&["cluster", "status", "--json", "--journal", &address]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["shards"][0]["owner"], name);
    assert_eq!(json["nodes"].as_array().unwrap().len(), 2);
    let unknown = run_sayso(&["cluster", "drain", "c", "--journal", &address]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    let rebalanced = run_sayso(&["cluster", "rebalance", "--journal", &address]);
    assert_eq!(rebalanced.status.code(), Some(0), "{}", stderr(&rebalanced));
    let drained = run_sayso(&["cluster", "drain", name, "--journal", &address]);
    assert_eq!(drained.status.code(), Some(0), "{}", stderr(&drained));
    assert_eq!(nodes[active].wait(), Some(0), "the drained node stops");
    assert_eq!(wait_for_active(&mut nodes, Some(active)), 1 - active);
    nodes[1 - active].process.as_mut().unwrap().kill().unwrap();
    server.wait_for_sql("SELECT lease_until < clock_timestamp() FROM sayso.shard", "t");
    let after = status();
    assert_eq!(after.status.code(), Some(1), "a shard has no owner: {}", stdout(&after));
}

#[test]
fn tokens_in_the_database_hold_on_every_node_and_are_revoked_everywhere() {
    let Some(server) = start_server("tokens_in_the_database_hold_on_every_node") else { return };
    let address = server.address();
    let arguments = &["--journal-lease", "4s"];
    let mut nodes = vec![TestNode::start(&server, "a", arguments), TestNode::start(&server, "b", arguments)];
    let active = wait_for_active(&mut nodes, None);
    let new = |name: &str| {
        let created = run_sayso(&[
            "token",
            "new",
            "--journal",
            &address,
            "--role",
            "agent",
            "--agent-id",
            name,
            "--name",
            name,
        ]);
        assert_eq!(created.status.code(), Some(0), "{}", stderr(&created));
        stdout(&created).trim().to_owned()
    };
    let (bank, shop) = (new("bank"), new("shop"));
    let status = |node: &TestNode, token: &str| {
        let client = node.client().with_bearer(token);
        client.send("POST", "/agent/v1/sessions", r#"{"summary_normal":"Moving money."}"#).status
    };
    while status(&nodes[active], &shop) != 201 {
        std::thread::yield_now();
    }
    assert_eq!(status(&nodes[active], &bank), 201);
    let revoked = run_sayso(&["token", "revoke", "shop", "--journal", &address]);
    assert_eq!(revoked.status.code(), Some(0), "{}", stderr(&revoked));
    while status(&nodes[active], &shop) != 401 {
        std::thread::yield_now();
    }
    let listed = stdout(&run_sayso(&["token", "list", "--journal", &address]));
    assert!(listed.contains("admin") && listed.contains("bank") && !listed.contains("shop"), "{listed}");
    nodes[active].process.as_mut().unwrap().kill().unwrap();
    let other = wait_for_active(&mut nodes, Some(active));
    assert_eq!((status(&nodes[other], &bank), status(&nodes[other], &shop)), (201, 401));
    // The first node of the cluster wrote the admin token to its data folder.
    let files = nodes
        .iter()
        .filter_map(|node| std::fs::read_to_string(node.folder.path().join("data").join("admin-token")).ok());
    let admin_tokens: Vec<_> = files.collect();
    assert_eq!(admin_tokens.len(), 1);
    let metrics = nodes[other].client().with_bearer(admin_tokens[0].trim()).get("/metrics");
    assert_eq!(metrics.status, 200);
}

#[test]
fn settings_that_do_not_fit_a_cluster_are_refused() {
    let check = |arguments: &[&str]| {
        let output = run_sayso(&[&["serve", "--check", "--cluster"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        stderr(&output)
    };
    let text = check(&["--data", "missing"]);
    assert!(text.contains("name it with --journal"), "{text}");
    for setting in ["--memory", "--personal", "--stdio", "--compat", "--demo-agent"] {
        let text = check(&["--journal", "postgres://db/hub", setting]);
        assert!(text.contains(&format!("cannot be combined with {setting}")), "{text}");
    }
}

#[test]
fn nothing_acknowledged_is_lost_whatever_fails() {
    if !testing::postgres::is_installed("nothing_acknowledged_is_lost_whatever_fails") {
        return;
    }
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (faults, seed) = (number("CLUSTER_FAULTS", 20), number("PROPERTY_SEED", 11));
    let lease = std::env::var("CLUSTER_LEASE").unwrap_or_else(|_| "3s".to_owned());
    println!("{faults} faults, seed {seed}, lease {lease}");
    let mut campaign = Campaign::new(seed, &lease);
    for _ in 0..faults {
        campaign.run_round();
    }
    campaign.check();
    let slowest = campaign.failovers.iter().max().copied().unwrap_or_default();
    println!("{} failovers after SIGKILL, the slowest took {slowest:?}", campaign.failovers.len());
    println!("{} events and {} accepts were acknowledged", campaign.events, campaign.accepts);
    assert!(campaign.events > faults, "too little was acknowledged for a meaningful test");
}

/// Three nodes, and a primary with a synchronous standby.
struct Campaign {
    random: SplitMix64,
    primary: PostgresServer,
    standby: PostgresServer,
    nodes: Vec<TestNode>,
    acknowledged: AcknowledgedState,
    session: String,
    subscription: String,
    first_event_id: String,
    rounds: u64,
    events: u64,
    accepts: usize,
    /// From SIGKILL until another node accepted an event.
    failovers: Vec<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Pause,
    Cut,
    LosePrimary,
}

const SYNCHRONOUS: &str = "synchronous_standby_names=standby";

impl Campaign {
    fn new(seed: u64, lease: &str) -> Self {
        let mut primary = PostgresServer::start();
        let standby = primary.start_standby("standby", &[SYNCHRONOUS]);
        primary.restart_with(&[SYNCHRONOUS]);
        let arguments = ["--open", "--journal-lease", lease, "--journal-replicas", "1"];
        let nodes = ["a", "b", "c"].map(|name| TestNode::start(&primary, name, &arguments));
        Self {
            random: SplitMix64::new(seed),
            primary,
            standby,
            nodes: nodes.into(),
            acknowledged: AcknowledgedState::default(),
            session: String::new(),
            subscription: String::new(),
            first_event_id: String::new(),
            rounds: 0,
            events: 0,
            accepts: 0,
            failovers: Vec::new(),
        }
    }

    fn run_round(&mut self) {
        let fault = *self.random.choose_one(&[Fault::Kill, Fault::Pause, Fault::Cut, Fault::LosePrimary]);
        println!("round {}: {fault:?}", self.rounds);
        self.restart_nodes();
        let active = if self.rounds.is_multiple_of(5) { self.start_session() } else { self.check() };
        self.rounds += 1;
        let fault_after = self.acknowledged.events.len() + self.random.below(16) + 1;
        let (is_due, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (client, before) = (self.nodes[active].client(), self.acknowledged.events.len());
        let Self { nodes, primary, standby, acknowledged, session, subscription, failovers, .. } = self;
        std::thread::scope(|scope| {
            let fault = scope.spawn(|| {
                while !is_due.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                match fault {
                    Fault::Kill => {
                        nodes[active].process.as_mut().unwrap().kill().unwrap();
                        let killed_at = Instant::now();
                        let other = wait_for_takeover(nodes, active);
                        let probe = nodes[other].client();
                        while probe
                            .try_send("POST", "/agent/v1/sessions", r#"{"summary_normal":"Probe."}"#)
                            .is_none_or(|response| response.status != 201)
                        {
                            std::thread::yield_now();
                        }
                        failovers.push(killed_at.elapsed());
                    }
                    Fault::Pause => {
                        nodes[active].signal("-STOP");
                        wait_for_takeover(nodes, active);
                        nodes[active].signal("-CONT");
                        assert_eq!(nodes[active].wait(), Some(2), "a node that lost its journal stops");
                    }
                    Fault::Cut => {
                        nodes[active].link.refuse_connections(true);
                        nodes[active].link.cut();
                        wait_for_takeover(nodes, active);
                        nodes[active].link.refuse_connections(false);
                    }
                    Fault::LosePrimary => {
                        primary.kill();
                        standby.promote();
                        for node in &*nodes {
                            node.link.redirect(&standby.socket());
                            node.link.cut();
                        }
                    }
                }
                is_over.store(true, Ordering::SeqCst);
            });
            while !is_over.load(Ordering::SeqCst) {
                let is_served = run_step(&client, session, subscription, acknowledged).is_some();
                if !is_served || acknowledged.events.len() >= fault_after {
                    is_due.store(true, Ordering::SeqCst);
                }
                if !is_served {
                    break;
                }
            }
            is_due.store(true, Ordering::SeqCst);
            fault.join().unwrap();
        });
        self.events += u64::try_from(acknowledged_since(&self.acknowledged, before)).unwrap();
        if fault == Fault::LosePrimary {
            let standby = self.standby.start_standby("standby", &[SYNCHRONOUS]);
            self.primary = std::mem::replace(&mut self.standby, standby);
        }
    }

    /// Starts nodes that have exited, as a supervisor does.
    fn restart_nodes(&mut self) {
        for node in &mut self.nodes {
            if !node.is_running() {
                node.run();
            }
        }
    }

    /// Checks what was acknowledged in the last session, and starts another one. Returns the active node.
    fn start_session(&mut self) -> usize {
        self.check();
        self.accepts += self.acknowledged.accepted_count();
        let (active, started) = self.on_active_node(|client| {
            let subscription = client.subscribe(REPLY_CAPABILITIES);
            let mut stream = client.open_event_stream(&subscription, None);
            let session = client.start_session();
            loop {
                let (kind, id, event) = stream.next();
                if kind == "session.started" && event["session_id"] == session.as_str() {
                    return (session, subscription, id);
                }
            }
        });
        (self.session, self.subscription, self.first_event_id) = started;
        self.acknowledged = AcknowledgedState::default();
        active
    }

    /// Asserts on an active node that everything acknowledged is there. Returns the node.
    fn check(&mut self) -> usize {
        let (session, subscription) = (self.session.clone(), self.subscription.clone());
        let (first_event_id, acknowledged) =
            (self.first_event_id.clone(), std::mem::take(&mut self.acknowledged));
        let (active, ()) = self.on_active_node(|client| {
            if !session.is_empty() {
                assert_acknowledged(client, &session, &subscription, &first_event_id, &acknowledged);
            }
        });
        self.acknowledged = acknowledged;
        active
    }

    /// Runs `action` on an active node. If it fails because the node has lost its lease or its database, which happens on a
    /// busy machine, runs it again. Returns the node and the result.
    fn on_active_node<T>(&mut self, action: impl Fn(&TestClient) -> T) -> (usize, T) {
        let mut failures = 0;
        loop {
            let active = wait_for_active(&mut self.nodes, None);
            let client = self.nodes[active].client();
            match catch_unwind(AssertUnwindSafe(|| action(&client))) {
                Ok(result) => return (active, result),
                Err(failure) if failures == MAX_FAILURES => resume_unwind(failure),
                Err(_) => failures += 1,
            }
            // A node that lost its lease takes a moment to exit.
            while self.nodes[active].is_running() && !self.nodes[active].is_active() {
                std::thread::yield_now();
            }
            self.restart_nodes();
        }
    }
}

/// How often a check is repeated. Data that is really lost stays lost.
const MAX_FAILURES: u32 = 3;

fn acknowledged_since(acknowledged: &AcknowledgedState, before: usize) -> usize {
    acknowledged.events.len().saturating_sub(before)
}
