//! Messages and complete sessions per second through two nodes on one machine, in memory and durable, compared with the raw
//! signatures and verifications that they need. The nodes are the release binary. The agents' programs share the cores with
//! the nodes, and each session has one request in flight. Prints ratios, and whether messages and sessions each reach the goals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sayso_benches::asp::filler_text;
use sayso_benches::load::Scale;
use seal::{AgentKeys, SystemRandom};
use serde_json::{Value, json};

const SESSIONS: &str = "/agent/v1/asp/sessions";
/// A policy without limits that matter here.
const POLICY: &str = "[limits]
messages_per_minute = [4000000000, 4000000000, 4000000000, 4000000000, 4000000000]
bytes_per_minute = [4000000000, 4000000000, 4000000000, 4000000000, 4000000000]
invitations_per_minute = [4000000000, 4000000000, 4000000000, 4000000000, 4000000000]
remembered_proofs = 4000000
messages_per_session = 1000000
session_bytes = 4000000000
";

/// Goal for the rates in memory at 64 concurrent sessions, relative to the raw rate.
const RAW_RATIO_GOAL: f64 = 0.50;
/// Goal for the durable rates at 64 concurrent sessions, relative to the rates in memory.
const DURABLE_RATIO_GOAL: f64 = 0.60;

/// Where the nodes keep their sessions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    Memory,
    Disk,
}

/// How the nodes deliver messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Http,
    WebSocket,
}

fn main() {
    let scale = Scale::from_args();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!("{cores} cores, which the nodes and the agents' programs share");
    let floor = CryptoFloor::measure(scale.pick(2_000, 20));
    // Messages and sessions per second in memory.
    let mut memory_rates = [0.0; 2];
    for (storage, transport) in [
        (Storage::Memory, Transport::Http),
        (Storage::Disk, Transport::Http),
        (Storage::Memory, Transport::WebSocket),
        (Storage::Disk, Transport::WebSocket),
    ] {
        let name = match (storage, transport) {
            (Storage::Memory, Transport::Http) => "in memory, HTTP",
            (Storage::Disk, Transport::Http) => "durable, HTTP",
            (Storage::Memory, Transport::WebSocket) => "in memory, WebSocket",
            (Storage::Disk, Transport::WebSocket) => "durable, WebSocket",
        };
        for sessions in [1, 64] {
            let pair = NodePair::start(storage, transport);
            let count = scale.pick(if sessions == 1 { 1_000 } else { 8_000 }, 2 * sessions);
            let rate = pair.messages_per_second(sessions, count);
            // One session uses one core at a time, because its messages are delivered one after the other.
            let used_cores = if sessions == 1 { 1 } else { cores };
            let raw = floor.messages_per_second(transport) * used_cores as f64;
            println!(
                "{rate:9.0} messages per second  {sessions:2} sessions, {name}: {:.2} of the raw rate on {used_cores} cores ({raw:.0})",
                rate / raw
            );
            if sessions == 64 {
                judge("messages", storage, rate, rate / raw, &mut memory_rates[0]);
            }
            let count = scale.pick(if sessions == 1 { 100 } else { 800 }, sessions);
            let rate = pair.sessions_per_second(sessions, count);
            println!(
                "{rate:9.0} sessions per second  {sessions:2} at a time, {name}: {:.2} of the raw rate on {used_cores} cores",
                rate * MESSAGES_PER_SESSION as f64 / raw
            );
            if sessions == 64 {
                let raw_ratio = rate * MESSAGES_PER_SESSION as f64 / raw;
                judge("sessions", storage, rate, raw_ratio, &mut memory_rates[1]);
            }
        }
    }
}

/// Prints whether a rate reaches its goal. The rate in memory comes first and is kept for the durable one.
fn judge(what: &str, storage: Storage, rate: f64, raw_ratio: f64, memory_rate: &mut f64) {
    let (ratio, of, goal) = match storage {
        Storage::Memory => {
            *memory_rate = rate;
            (raw_ratio, "the raw rate", RAW_RATIO_GOAL)
        }
        Storage::Disk => (rate / *memory_rate, "in memory", DURABLE_RATIO_GOAL),
    };
    let verdict = if ratio >= goal { "met" } else { "missed" };
    println!("          {what}: {ratio:.2} of {of} (goal {goal:.2}): {verdict}");
}

/// The time of the raw operations that messages need, on one core.
struct CryptoFloor {
    ed25519: Duration,
    es256: Duration,
}

impl CryptoFloor {
    fn measure(rounds: u32) -> Self {
        let keys = AgentKeys::generate(&mut SystemRandom);
        let (text, token) = (filler_text(64), filler_text(760));
        let time = |run: &dyn Fn()| {
            let started = Instant::now();
            (0..rounds).for_each(|_| run());
            started.elapsed() / rounds
        };
        let best = |run: &dyn Fn()| (0..5).map(|_| time(run)).min().unwrap();
        let ed25519 = best(&|| {
            let signature = keys.signing.sign(black_box(text.as_bytes()));
            assert!(keys.signing.verifying_key().verify(black_box(text.as_bytes()), &signature));
        });
        let es256 = best(&|| {
            let signature = keys.dpop.sign(black_box(token.as_bytes())).unwrap();
            assert!(keys.dpop.verifying_key().verify(black_box(token.as_bytes()), &signature));
        });
        println!(
            "raw: {:.1} us to sign and verify with Ed25519, {:.1} us with ES256",
            ed25519.as_secs_f64() * 1e6,
            es256.as_secs_f64() * 1e6
        );
        Self { ed25519, es256 }
    }

    /// Each message has a signature and a proof. A request has a proof of its own.
    fn messages_per_second(&self, transport: Transport) -> f64 {
        let proofs = if transport == Transport::Http { 2 } else { 1 };
        1.0 / (self.ed25519 + self.es256 * proofs).as_secs_f64()
    }
}

/// A node in a process of its own.
struct BenchNode {
    child: Child,
    address: String,
    agent: String,
}

impl Drop for BenchNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct NodePair {
    nodes: [BenchNode; 2],
    _folder: tempfile::TempDir,
}

/// The invitation, its acceptance, two introductions, one message and the close.
const MESSAGES_PER_SESSION: usize = 6;

impl NodePair {
    fn start(storage: Storage, transport: Transport) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners.map(|listener| listener.local_addr().unwrap().to_string());
        let folders = ["inviter", "invited"].map(|name| folder.path().join(name));
        for (folder, address) in folders.iter().zip(&addresses) {
            std::fs::create_dir(folder).unwrap();
            let status = Command::new(binary())
                .args(["asp", "keygen", "--name", "bench", "--agent", &format!("agent://{address}/bench")])
                .arg("--out")
                .arg(folder.join("identity"))
                .stdout(Stdio::null())
                .status()
                .unwrap();
            assert!(status.success());
            std::fs::write(folder.join("policy.toml"), POLICY).unwrap();
        }
        for (folder, other) in [(&folders[0], &folders[1]), (&folders[1], &folders[0])] {
            let card = other.join("identity/card.json");
            std::fs::write(folder.join("peers"), card.to_str().unwrap()).unwrap();
        }
        let [first, second] = addresses;
        let nodes = [(first, &folders[0]), (second, &folders[1])]
            .map(|(address, folder)| start_node(address, folder, storage, transport));
        Self { nodes, _folder: folder }
    }

    /// Opens a session and completes the introduction.
    fn open_session(&self, clients: &mut [Client; 2]) -> String {
        let [inviter, invited] = clients;
        let invitation = json!({"peer": self.nodes[1].agent, "subject": "bench", "terms": {}});
        let session = inviter.post(SESSIONS, &invitation)["sessionId"].as_str().unwrap().to_owned();
        invited.wait_for_messages(&session, 1);
        invited.send(&session, "ACCEPT", &json!({"referenceId": format!("prop_{session}")}));
        inviter.wait_for_messages(&session, 4);
        session
    }

    /// Sends this many messages in all sessions together, and waits until the other side has stored them.
    fn messages_per_second(&self, sessions: usize, count: usize) -> f64 {
        let body = json!({"subject": "bench", "data": {"text": filler_text(1024)}});
        let opened: Vec<_> = (0..sessions)
            .map(|_| {
                let mut clients = self.clients();
                let session = self.open_session(&mut clients);
                (clients, session)
            })
            .collect();
        let started = Instant::now();
        std::thread::scope(|scope| {
            for (mut clients, session) in opened {
                let body = &body;
                scope.spawn(move || {
                    let sent = count / sessions;
                    for _ in 0..sent {
                        clients[0].send(&session, "OBSERVE", body);
                    }
                    clients[1].wait_for_messages(&session, 4 + sent);
                });
            }
        });
        count as f64 / started.elapsed().as_secs_f64()
    }

    /// Runs this many complete sessions, at most `concurrent` at a time.
    fn sessions_per_second(&self, concurrent: usize, count: usize) -> f64 {
        let next = AtomicUsize::new(0);
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..concurrent {
                scope.spawn(|| {
                    let mut clients = self.clients();
                    while next.fetch_add(1, Ordering::Relaxed) < count {
                        let session = self.open_session(&mut clients);
                        clients[0].send(&session, "OBSERVE", &json!({"subject": "bench"}));
                        clients[0].send(&session, "CLOSE", &json!({"reason": "done"}));
                        clients[1].wait_for_messages(&session, MESSAGES_PER_SESSION);
                    }
                });
            }
        });
        count as f64 / started.elapsed().as_secs_f64()
    }

    fn clients(&self) -> [Client; 2] {
        self.nodes.each_ref().map(|node| Client::connect(&node.address))
    }
}

fn binary() -> std::path::PathBuf {
    sayso_benches::binary().expect("cargo xtask bench builds the binary first")
}

fn start_node(address: String, folder: &Path, storage: Storage, transport: Transport) -> BenchNode {
    let mut command = Command::new(binary());
    command.args(["asp", "serve", "--open", "--listen", &address]);
    for (option, name) in [("--identity", "identity"), ("--peers", "peers"), ("--policy", "policy.toml")] {
        command.arg(option).arg(folder.join(name));
    }
    match storage {
        Storage::Memory => command.arg("--memory"),
        Storage::Disk => command.arg("--data").arg(folder.join("data")),
    };
    if transport == Transport::WebSocket {
        command.arg("--websocket");
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("listening on ")), "the node did not start");
    std::thread::spawn(move || lines.for_each(drop));
    let agent = format!("agent://{address}/bench");
    BenchNode { child, address, agent }
}

/// The connection of an agent's program to its node.
struct Client {
    address: String,
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { address: address.to_owned(), stream: BufReader::new(stream) }
    }

    fn request(&mut self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            status = status.or_else(|| line.split(' ').nth(1)?.parse().ok());
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status.unwrap(), serde_json::from_slice(&body).unwrap_or_default())
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.request("POST", path, &body.to_string());
        assert!((200..300).contains(&status), "{status}: {answer}");
        answer
    }

    fn send(&mut self, session: &str, performative: &str, body: &Value) {
        let message = json!({"performative": performative, "body": body});
        self.post(&format!("{SESSIONS}/{session}/messages"), &message);
    }

    /// Waits until the session has this many messages.
    fn wait_for_messages(&mut self, session: &str, count: usize) {
        loop {
            let path = format!("{SESSIONS}/{session}?after={}&wait=10", count - 1);
            let (status, view) = self.request("GET", &path, "");
            match status {
                200 if view["messageCount"].as_u64().unwrap() >= count as u64 => return,
                200 => {}
                // The invitation has not arrived yet.
                404 => std::thread::sleep(Duration::from_millis(1)),
                _ => panic!("{status}: {view}"),
            }
        }
    }
}
