//! `sayso serve --cluster`: several nodes as processes, with their journals in a Postgres server of their own.

mod campaign;
mod listener;
mod patroni;

use std::fs::File;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testing::http::{TIMEOUT, TestClient};
use testing::hub::reserved_address;
use testing::messages::{CONFIRMATION_BODY, REPLY_CAPABILITIES};
use testing::postgres::PostgresServer;
use testing::postgres_proxy::Proxy;
use testing::tcp_link::TcpLink;

use super::observability::metrics;

/// A node with connections of its own to the database and from the other nodes, which can be cut.
struct TestNode {
    name: &'static str,
    address: String,
    internal_address: String,
    folder: TempDir,
    database_link: Proxy,
    internal_link: TcpLink,
    arguments: Vec<String>,
    process: Option<Child>,
    is_paused: bool,
}

impl TestNode {
    fn start(server: &PostgresServer, name: &'static str, arguments: &[&str]) -> Self {
        let internal_address = reserved_address();
        let mut node = Self {
            name,
            address: reserved_address(),
            internal_link: TcpLink::start(&internal_address),
            internal_address,
            folder: tempfile::tempdir().unwrap(),
            database_link: Proxy::start(&server.socket()),
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
        command.args(["--cluster-listen", &self.internal_address]);
        command.args(["--cluster-address", self.internal_link.address()]);
        if !self.arguments.iter().any(|argument| argument == "--cluster-drain-delay") {
            command.args(["--cluster-drain-delay", "0s"]);
        }
        command.args(["--journal", &self.database_link.address(), "--data"]);
        command.arg(self.folder.path().join("data")).args(&self.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap());
        self.is_paused = false;
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

    fn is_ready(&mut self) -> bool {
        !self.is_paused
            && self.is_running()
            && self.client().try_send("GET", "/readyz", "").is_some_and(|response| response.status == 200)
    }

    fn kill(&mut self) {
        self.process.as_mut().unwrap().kill().unwrap();
        self.wait();
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

/// Starts nodes and waits until all of them are ready.
fn start_nodes(server: &PostgresServer, names: &[&'static str], arguments: &[&str]) -> Vec<TestNode> {
    let mut nodes: Vec<_> = names.iter().map(|name| TestNode::start(server, name, arguments)).collect();
    wait_until_ready(&mut nodes);
    nodes
}

fn wait_until_ready(nodes: &mut [TestNode]) {
    wait_until("all nodes are ready", || nodes.iter_mut().all(TestNode::is_ready));
}

/// Asks again and again until the condition holds.
pub(super) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + 2 * TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
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

/// Returns how many shards a node owns.
fn owned_by(server: &PostgresServer, node: &str) -> usize {
    let sql = format!(
        "SELECT count(*) FROM sayso.shard WHERE owner = '{node}' AND lease_until > clock_timestamp()"
    );
    server.sql(&sql).parse().unwrap()
}

/// Distributes the shards evenly, which a busy machine may not have done when the nodes started.
fn rebalance(server: &PostgresServer, nodes: &mut [TestNode]) {
    let balanced = run_sayso(&["cluster", "rebalance", "--journal", &server.address()]);
    assert_eq!(balanced.status.code(), Some(0), "{}", stderr(&balanced));
    wait_until("the shards are distributed", || {
        nodes.iter().all(|node| owned_by(server, node.name) >= SHARDS / nodes.len())
    });
    wait_until_ready(nodes);
}

/// The default number of shards of a cluster.
const SHARDS: usize = 16;

/// The lease must be long enough for a busy machine.
const OPEN: &[&str] = &["--open", "--journal-lease", "4s"];

/// Starts sessions for different people, until there is one in each of `count` shards. Returns them by shard.
fn start_sessions(client: &TestClient, count: usize) -> Vec<String> {
    let mut sessions = std::collections::BTreeMap::new();
    for person in 0.. {
        let body = format!(
            r#"{{"summary_normal":"Moving money.","requested_by":"user:person{person}","localization_hints":{{"primary_language":"en"}}}}"#
        );
        let response = client.post("/agent/v1/sessions", &body);
        assert_eq!(response.status, 201, "{response:?}");
        let session = response.json_str("session_id");
        let shard = session.rsplit_once('x').unwrap().1.parse::<usize>().unwrap();
        sessions.entry(shard).or_insert(session);
        if sessions.len() == count {
            break;
        }
    }
    sessions.into_values().collect()
}

fn reply_path(session: &str, token: &str) -> String {
    format!("/agent/v1/sessions/{session}/replies/{token}?wait=60")
}

#[test]
fn every_node_serves_the_sessions_of_all_shards() {
    let Some(server) = start_server("every_node_serves_the_sessions_of_all_shards") else { return };
    let mut nodes = start_nodes(&server, &["a", "b", "c"], OPEN);
    rebalance(&server, &mut nodes);
    let [a, b, c] = [0, 1, 2].map(|index| nodes[index].client());
    let subscription = c.subscribe(REPLY_CAPABILITIES);
    let mut stream = c.open_event_stream(&subscription, None);
    let sessions = start_sessions(&a, SHARDS);
    for session in &sessions {
        let token = b.ask_confirmation(session);
        loop {
            let (kind, _, event) = stream.next();
            if kind == "awaiting.confirmation" && event["reply_token"] == token.as_str() {
                break;
            }
        }
        assert_eq!(a.reply(&subscription, &token, "accept").status, 204);
        assert_eq!(b.get(&reply_path(session, &token)).json_str("decision"), "accept");
    }
    let keys = [&a, &b, &c].map(|client| client.get("/.well-known/sayso-receipt-key.json").body);
    assert!(keys[0] == keys[1] && keys[1] == keys[2]);
}

#[test]
fn the_others_take_over_the_shards_of_a_killed_node() {
    let Some(server) = start_server("the_others_take_over_the_shards_of_a_killed_node") else { return };
    let mut nodes = start_nodes(&server, &["a", "b"], OPEN);
    rebalance(&server, &mut nodes);
    let [killed, other] = [0, 1].map(|index| nodes[index].client());
    let subscription = killed.subscribe(REPLY_CAPABILITIES);
    let sessions = start_sessions(&killed, SHARDS);
    let tokens: Vec<_> = sessions.iter().map(|session| killed.ask_confirmation(session)).collect();
    let short = r#"{"action":"Send 5 euros to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":10,"default_decision":"reject","summary_normal":"May I?","tool":"send","arguments":{"amount":"6.00"}}"#;
    let others = start_sessions(&killed, SHARDS);
    let overdue: Vec<_> = others
        .iter()
        .map(|session| {
            let path = format!("/agent/v1/sessions/{session}/confirmations");
            killed.post(&path, short).json_str("reply_token")
        })
        .collect();
    nodes[0].kill();
    for (session, token) in sessions.iter().zip(&tokens) {
        wait_until("the reply is accepted", || other.reply(&subscription, token, "accept").status == 204);
        assert_eq!(other.get(&reply_path(session, token)).json_str("decision"), "accept");
    }
    // Each deadline fires once, on the node that took over.
    for (session, token) in others.iter().zip(&overdue) {
        assert_eq!(other.get(&reply_path(session, token)).json_str("decision"), "reject");
    }
    assert_eq!(server.sql("SELECT count(*), count(decided) FROM sayso.question"), "32|32");
    // The killed node comes back.
    nodes[0].run();
    wait_until_ready(&mut nodes);
    assert_eq!(killed.get(&reply_path(&sessions[0], &tokens[0])).json_str("decision"), "accept");
}

#[test]
fn a_node_that_is_stopped_gives_its_shards_away_before_its_lease_ends() {
    let Some(server) = start_server("a_node_that_is_stopped_gives_its_shards_away") else { return };
    let mut nodes = start_nodes(&server, &["a", "b"], &["--open", "--journal-lease", "1m"]);
    rebalance(&server, &mut nodes);
    let client = nodes[1].client();
    let sessions = start_sessions(&client, SHARDS);
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    let lease_end = server.sql("SELECT min(lease_until) FROM sayso.shard");
    nodes[0].signal("-TERM");
    assert_eq!(nodes[0].wait(), Some(0));
    assert_eq!(server.sql("SELECT count(*) FROM sayso.node"), "1");
    for session in &sessions {
        let token = client.ask_confirmation(session);
        // The listener stays connected while shards move.
        while stream.next().2["reply_token"] != token.as_str() {}
    }
    assert_eq!(owned_by(&server, "b"), SHARDS);
    assert_eq!(server.sql(&format!("SELECT clock_timestamp() < '{lease_end}'")), "t");
}

#[test]
fn a_node_that_stops_says_that_it_is_not_ready_before_it_stops_accepting() {
    let Some(server) = start_server("a_node_that_stops_says_that_it_is_not_ready") else { return };
    let arguments = ["--open", "--journal-lease", "4s", "--cluster-drain-delay", "1h"];
    let mut nodes = start_nodes(&server, &["a", "b"], &arguments);
    rebalance(&server, &mut nodes);
    let client = nodes[0].client();
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let mut stream = client.open_event_stream(&subscription, None);
    nodes[0].signal("-TERM");
    // Each request is a new connection.
    wait_until("the node is not ready", || client.get("/readyz").status == 503);
    let reason = client.get("/readyz").body;
    assert!(reason.contains("This node is being drained."), "{reason}");
    wait_until("the other node owns all shards", || owned_by(&server, "b") == SHARDS);
    for session in &start_sessions(&client, SHARDS) {
        let token = client.ask_confirmation(session);
        while stream.next().2["reply_token"] != token.as_str() {}
    }
    assert_eq!(client.get("/healthz").status, 200);
    // The second signal ends the delay. The listener is told to go elsewhere.
    nodes[0].signal("-TERM");
    while stream.next().0 != "subscription.close" {}
    assert_eq!(nodes[0].wait(), Some(0));
    assert_eq!(server.sql("SELECT count(*) FROM sayso.node"), "1");
}

#[test]
fn operators_see_the_cluster_drain_a_node_and_distribute_its_shards() {
    let Some(server) = start_server("operators_see_the_cluster_drain_a_node") else { return };
    let address = server.address();
    let status = || run_sayso(&["cluster", "status", "--journal", &address]);
    let before = status();
    assert_eq!(before.status.code(), Some(2), "{}", stderr(&before));
    let text = stderr(&before);
    assert!(text.contains("no node of a cluster has used this database yet"), "{text}");
    let mut nodes = start_nodes(&server, &["a", "b"], OPEN);
    rebalance(&server, &mut nodes);
    let text = stdout(&status());
    assert_eq!(status().status.code(), Some(0), "{text}");
    assert!(
        text.contains(&format!("node a: running, 8 shards, {}", nodes[0].internal_link.address())),
        "{text}"
    );
    assert!(text.contains("shard 15: owned by "), "{text}");
    let json = stdout(&run_sayso(&["cluster", "status", "--json", "--journal", &address]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["shards"].as_array().unwrap().len(), SHARDS);
    assert_eq!(json["nodes"][1]["shards"], 8);
    let unknown = run_sayso(&["cluster", "drain", "c", "--journal", &address]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    let client = nodes[1].client();
    client.subscribe(REPLY_CAPABILITIES);
    let sessions = start_sessions(&client, SHARDS);
    let drained = run_sayso(&["cluster", "drain", "a", "--journal", &address]);
    assert_eq!(drained.status.code(), Some(0), "{}", stderr(&drained));
    assert_eq!(nodes[0].wait(), Some(0), "the drained node stops");
    for session in &sessions {
        client.ask_confirmation(session);
    }
    assert_eq!(owned_by(&server, "b"), SHARDS);
    // A node that starts owns nothing until an operator distributes the shards.
    nodes[0].run();
    wait_until_ready(&mut nodes);
    rebalance(&server, &mut nodes);
    assert_eq!((owned_by(&server, "a"), owned_by(&server, "b")), (8, 8));
    for node in &mut nodes {
        node.kill();
    }
    server.wait_for_sql("SELECT max(lease_until) < clock_timestamp() FROM sayso.shard", "t");
    let after = status();
    assert_eq!(after.status.code(), Some(1), "a shard has no owner: {}", stdout(&after));
}

#[test]
fn tokens_in_the_database_hold_on_every_node_and_are_revoked_everywhere() {
    let Some(server) = start_server("tokens_in_the_database_hold_on_every_node") else { return };
    let address = server.address();
    let nodes = start_nodes(&server, &["a", "b"], &["--journal-lease", "4s"]);
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
    for node in &nodes {
        wait_until("the token is valid", || status(node, &shop) == 201);
        wait_until("the token is valid", || status(node, &bank) == 201);
    }
    let revoked = run_sayso(&["token", "revoke", "shop", "--journal", &address]);
    assert_eq!(revoked.status.code(), Some(0), "{}", stderr(&revoked));
    for node in &nodes {
        wait_until("the token is revoked", || status(node, &shop) == 401);
        assert_eq!(status(node, &bank), 201);
    }
    let listed = stdout(&run_sayso(&["token", "list", "--journal", &address]));
    assert!(listed.contains("admin") && listed.contains("bank") && !listed.contains("shop"), "{listed}");
    // The first node of the cluster wrote the admin token to its data folder.
    let files = nodes
        .iter()
        .filter_map(|node| std::fs::read_to_string(node.folder.path().join("data").join("admin-token")).ok());
    let admin_tokens: Vec<_> = files.collect();
    assert_eq!(admin_tokens.len(), 1);
    let metrics = nodes[1].client().with_bearer(admin_tokens[0].trim()).get("/metrics");
    assert_eq!(metrics.status, 200);
}

#[test]
fn nodes_with_different_settings_are_noticed() {
    let Some(server) = start_server("nodes_with_different_settings_are_noticed") else { return };
    let manifests = tempfile::tempdir().unwrap();
    let manifest = manifests.path().join("bank.json");
    let write = |name: &str| {
        let text = serde_json::json!({
            "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:producer.manifest", "agent_id": "bank",
            "agent_name": name, "aaep_versions_supported": ["1.0.0"], "conformance_levels_supported": [1],
            "transports_supported": ["sse"], "contact": "help@bank.example",
        });
        std::fs::write(&manifest, text.to_string()).unwrap();
    };
    write("The Bank");
    let folder = manifests.path().to_str().unwrap();
    let same = ["--open", "--journal-lease", "4s", "--manifests-folder", folder];
    let mut nodes = start_nodes(&server, &["a"], &same);
    nodes.push(TestNode::start(&server, "b", &same));
    wait_until_ready(&mut nodes);
    let status = || stdout(&run_sayso(&["cluster", "status", "--journal", &server.address()]));
    assert!(!nodes[1].log().contains("differ") && !status().contains("differ"), "{}", nodes[1].log());
    // Another limit, another host name, and another manifest.
    write("Another Bank");
    nodes[1].kill();
    nodes[1].arguments.extend(["--hub-max-lease", "1h", "--host", "hub.example:443"].map(str::to_owned));
    nodes[1].run();
    wait_until_ready(&mut nodes);
    let log = nodes[1].log();
    let warning = log.lines().find(|line| line.contains("differ")).unwrap();
    assert!(warning.contains("node a") && warning.contains(r#"hub.max_lease ("1h" here,"#), "{warning}");
    assert!(warning.contains(r#"host (["hub.example:443"] here, [] there)"#), "{warning}");
    assert!(warning.contains("manifests.folder (1 files, "), "{warning}");
    let line =
        "warning: settings of node b differ from those of node a: host, hub.max_lease, manifests.folder";
    assert!(status().contains(line), "{}", status());
    let json = stdout(&run_sayso(&["cluster", "status", "--json", "--journal", &server.address()]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["nodes"][0]["differing_settings"].as_array().unwrap().len(), 0);
    assert_eq!(json["nodes"][1]["differing_settings"][0], "host");
}

#[test]
fn the_metrics_of_a_node_show_its_shards_and_what_it_forwards() {
    let Some(server) = start_server("the_metrics_of_a_node_show_its_shards_and_what_it_forwards") else {
        return;
    };
    let mut nodes = start_nodes(&server, &["a", "b"], OPEN);
    rebalance(&server, &mut nodes);
    let client = nodes[0].client();
    let shards = |name: &str| -> Vec<u64> {
        let samples = metrics(&client);
        let value = |shard: usize| samples[&format!("{name}{{shard=\"{shard}\"}}")];
        (0..SHARDS).map(|shard| format!("{}", value(shard)).parse().unwrap()).collect()
    };
    let stored = |column: &str| -> Vec<u64> {
        let rows = server.sql(&format!("SELECT {column} FROM sayso.shard ORDER BY id"));
        rows.lines().map(|row| row.parse().unwrap()).collect()
    };
    let of_a = stored("(owner = 'a')::int");
    assert_eq!(of_a.iter().sum::<u64>(), 8);
    wait_until("the shards of the node are shown", || shards("sayso_shard_here") == of_a);
    assert_eq!(shards("sayso_shard_reachable"), [1; SHARDS]);
    wait_until("the epochs are shown", || shards("sayso_shard_epoch") == stored("epoch"));
    let forwarded = shards("sayso_requests_forwarded_total");
    let sessions = start_sessions(&client, SHARDS);
    let forwarded_now = shards("sayso_requests_forwarded_total");
    for shard in 0..SHARDS {
        assert_eq!(forwarded_now[shard] > forwarded[shard], of_a[shard] == 0, "shard {shard}");
    }
    assert!(metrics(&client)["sayso_nodes_connected"] >= 1.0);
    let (starts, held) = (shards("sayso_shard_starts_total"), shards("sayso_requests_held_total"));
    // The other node is lost. Requests for its shards are held until this one has taken over.
    nodes[1].kill();
    let of_b = of_a.iter().position(|is_of_a| *is_of_a == 0).unwrap();
    let path = format!("/agent/v1/sessions/{}/confirmations", sessions[of_b]);
    // A request that was on its way when the node was lost is not repeated.
    wait_until("a question is asked", || client.post(&path, CONFIRMATION_BODY).status == 201);
    wait_until("all shards run here", || shards("sayso_shard_here") == [1; SHARDS]);
    let (starts_now, held_now) = (shards("sayso_shard_starts_total"), shards("sayso_requests_held_total"));
    for shard in 0..SHARDS {
        assert!(starts_now[shard] >= starts[shard] + (1 - of_a[shard]), "shard {shard}");
    }
    assert!(held_now.iter().sum::<u64>() > held.iter().sum::<u64>());
    assert_eq!(shards("sayso_requests_waiting_for_shard"), [0; SHARDS]);
    wait_until("the lost node is not shown", || metrics(&client)["sayso_nodes_connected"] == 0.0);
}

#[test]
fn a_hub_with_one_shard_becomes_a_cluster_without_losing_anything() {
    let Some(server) = start_server("a_hub_with_one_shard_becomes_a_cluster") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(["serve", "--open", "--listen", "127.0.0.1:0", "--journal", &server.address(), "--data"]);
    let mut hub = testing::hub::HubProcess::start_command(command.arg(folder.path()));
    let (client, session) = (hub.client(), hub.client().start_session());
    let subscription = client.subscribe(REPLY_CAPABILITIES);
    let token = client.ask_confirmation(&session);
    // The nodes join while the hub still runs.
    let mut nodes: Vec<_> = ["a", "b"].map(|name| TestNode::start(&server, name, OPEN)).into();
    server.wait_for_sql("SELECT count(*) FROM sayso.node", "2");
    assert!(!nodes[0].is_ready());
    assert_eq!(hub.stop(), 0);
    wait_until_ready(&mut nodes);
    assert_eq!(nodes[0].client().reply(&subscription, &token, "accept").status, 204);
    assert_eq!(nodes[1].client().get(&reply_path(&session, &token)).json_str("decision"), "accept");
    assert_eq!(server.sql("SELECT count(*) FROM sayso.shard"), "1");
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
    let text = check(&["--journal", "postgres://db/hub", "--listen", "192.0.2.1:80", "--behind-proxy"]);
    assert!(text.contains("cluster_listen: name the address of this machine"), "{text}");
    let text = check(&["--journal", "postgres://db/hub", "--cluster-listen", "0.0.0.0:7000"]);
    assert!(text.contains("the other nodes cannot connect to 0.0.0.0"), "{text}");
    for setting in ["--memory", "--personal", "--stdio", "--compat", "--demo-agent"] {
        let text = check(&["--journal", "postgres://db/hub", setting]);
        assert!(text.contains(&format!("cannot be combined with {setting}")), "{text}");
    }
}
