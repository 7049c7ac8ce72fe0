//! What `sayso mcp` adds to a message: the time from a request to its answer with the gate, beside the same without it.
//!
//! The server is this program itself: it answers every line at once. The floor is the same server without the gate. A passed message
//! is a `ping`; a narrated call is a `tools/call` of a tool that needs no question, with a hub and a listener. Goal: the gate adds
//! less than 100 µs at the median to a passed message.
#![allow(clippy::expect_used)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sayso_benches::binary;
use sayso_benches::load::{BenchHub, ListenerPool, Scale, Server as _, Store};

const SERVER: &str = "GATE_BENCH_SERVER";

fn main() {
    if std::env::var_os(SERVER).is_some() {
        serve();
        return;
    }
    let scale = Scale::from_args();
    let rounds = scale.pick(20_000, 200);
    let Some(sayso) = binary() else {
        println!("gate: no sayso binary beside the benchmark; run cargo build --release first");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trust = folder.path().join("trust.toml");
    std::fs::write(&trust, "[servers.bench]\nannotations = true\n").expect("a trust file");
    let hub = BenchHub::start(Store::Memory);
    let listeners = ListenerPool::connect(&hub, 1, false);
    let server = std::env::current_exe().expect("this program");
    let direct = || Command::new(&server);
    let gated = || {
        let mut command = Command::new(&sayso);
        command.args(["mcp", "--name", "bench", "--hub", &format!("http://{}", hub.address())]);
        command.arg("--trust").arg(&trust).arg("--").arg(&server).env("XDG_DATA_HOME", folder.path());
        command
    };

    println!("{rounds} round trips, microseconds; and the start until the first answer, milliseconds");
    println!("{:<34} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p99", "max", "start");
    let small = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned();
    let large = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":"{}"}}"#, "x".repeat(64 << 10));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/tmp/file","lines":20}}}"#.to_owned();
    for (name, message, rounds) in [
        ("passed message of 40 bytes", small, rounds),
        ("passed message of 64 KiB", large, rounds / 10),
        // A hub stores each call, so a rate without a pause would measure the hub.
        ("narrated call", call, rounds / 10),
    ] {
        let floor = Times::measure(&mut direct(), &message, rounds);
        floor.print(&format!("{name}, without the gate"));
        let with_gate = Times::measure(&mut gated(), &message, rounds);
        with_gate.print(&format!("{name}, with the gate"));
        let added = with_gate.p50().saturating_sub(floor.p50());
        println!("the gate adds {} µs at the median{}", added.as_micros(), goal(name));
    }
    drop(listeners);
}

fn goal(name: &str) -> &'static str {
    if name.starts_with("passed message of 40") { " (goal: less than 100 µs)" } else { "" }
}

/// Answers every request at once.
fn serve() {
    let (stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in stdin.lines().map_while(Result::ok) {
        let answer = if line.contains("tools/list") {
            r#"{"jsonrpc":"2.0","id":"list","result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}}]}}"#
        } else {
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}"#
        };
        let written = stdout.write_all(answer.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
        if written.and_then(|()| stdout.flush()).is_err() {
            return;
        }
    }
}

/// The times of all round trips, sorted, and the time from the start to the first answer.
struct Times {
    sorted: Vec<Duration>,
    start: Duration,
}

impl Times {
    fn measure(command: &mut Command, message: &str, rounds: usize) -> Self {
        let started = Instant::now();
        let mut child = command
            .env(SERVER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut peer = Peer::new(&mut child);
        peer.round_trip(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#);
        let start = started.elapsed();
        let mut times: Vec<_> = (0..rounds.max(1)).map(|_| peer.round_trip(message)).collect();
        drop(peer);
        child.wait().expect("the server ends");
        times.sort_unstable();
        Self { sorted: times, start }
    }

    fn at(&self, percent: usize) -> Duration {
        let index = (self.sorted.len() * percent / 100).min(self.sorted.len().saturating_sub(1));
        self.sorted.get(index).copied().unwrap_or_default()
    }

    fn p50(&self) -> Duration {
        self.at(50)
    }

    fn print(&self, name: &str) {
        println!(
            "{name:<34} {:>8} {:>8} {:>8} {:>8}",
            self.p50().as_micros(),
            self.at(99).as_micros(),
            self.at(100).as_micros(),
            self.start.as_millis()
        );
    }
}

struct Peer {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
}

impl Peer {
    fn new(child: &mut Child) -> Self {
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Self {
            stdin: stdin.expect("a pipe"),
            stdout: BufReader::new(stdout.expect("a pipe")),
            line: Vec::new(),
        }
    }

    fn round_trip(&mut self, message: &str) -> Duration {
        let line = format!("{message}\n");
        let started = Instant::now();
        self.stdin.write_all(line.as_bytes()).expect("the server reads");
        self.line.clear();
        self.stdout.read_until(b'\n', &mut self.line).expect("the server answers");
        started.elapsed()
    }
}
