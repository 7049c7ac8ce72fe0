//! The latency that `sayso mcp` and `sayso acp` add to a message: the time from a request to its answer with the gate, compared with the
//! time without it.
//!
//! The server is this program itself: it answers every line at once. The baseline is the same server without the gate. Both run at the
//! same time, and requests alternate between them, so that a busy machine slows down both. A forwarded message is one that the gate
//! does not act on; an announced call is a `tools/call` of a tool that needs no question, or a turn of an agent with one tool call, with a
//! hub and a listener. Goal: the gate adds less than 100 µs at the median to a forwarded message.
//!
//! A coding agent starts one process of `sayso hook` per event. The time from its start to the first byte that it sends to the hub is
//! compared with a program that does nothing else. Goal: at most 20 ms at the median.
#![allow(clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use sayso_benches::binary;
use sayso_benches::load::{BenchHub, ListenerPool, Scale, Server as _, Store};

const SERVER: &str = "GATE_BENCH_SERVER";
const HOOK: &str = "GATE_BENCH_HOOK";
const HOOK_EVENT: &str = r#"{"session_id":"s1","cwd":"/tmp","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"touch a"},"tool_use_id":"toolu_1"}"#;
const LIST_TOOLS: &str = r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#;
const NEW_SESSION: &str =
    r#"{"jsonrpc":"2.0","id":"new","method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/tmp/file","lines":20}}}"#;
const PROMPT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"Go."}]}}"#;

fn main() {
    if std::env::var_os(SERVER).is_some() {
        serve();
        return;
    }
    if let Ok(hub) = std::env::var(HOOK) {
        let mut event = String::new();
        std::io::stdin().read_to_string(&mut event).expect("an event");
        TcpStream::connect(hub).and_then(|mut hub| hub.write_all(b"x")).expect("the hub");
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
    let url = format!("http://{}", hub.address());
    let direct = || Command::new(&server);
    let mcp = || {
        let mut command = Command::new(&sayso);
        command.args(["mcp", "--name", "bench", "--hub", &url]);
        command.arg("--trust").arg(&trust).arg("--").arg(&server).env("XDG_DATA_HOME", folder.path());
        command
    };
    let acp = || {
        let mut command = Command::new(&sayso);
        command.args(["acp", "--hub", &url, "--"]).arg(&server);
        command
    };

    println!(
        "{rounds} round trips, in microseconds, and the time from start to first answer, in milliseconds"
    );
    println!("{:<44} {:>8} {:>8} {:>8} {:>8}", "", "p50", "p99", "max", "start");
    let large = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":"{}"}}"#, "x".repeat(64 << 10));
    let escaped = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"lines":[{}]}}}}"#,
        vec![r#""a \"line\" of text\n""#; 64 * 1024 / 24].join(",")
    );
    let gates: [(&str, &dyn Fn() -> Command, &str, &str); 2] =
        [("mcp", &mcp, LIST_TOOLS, CALL), ("acp", &acp, NEW_SESSION, PROMPT)];
    for (name, gated, opening, narrated) in gates {
        for (what, message, rounds, goal) in [
            ("forwarded message of 40 bytes", PING, rounds, " (goal: less than 100 µs)"),
            ("forwarded message of 64 KiB", &large, rounds / 10, " (goal: less than 100 µs)"),
            ("forwarded message of 64 KiB, many values", &escaped, rounds / 10, " (goal: less than 100 µs)"),
            // The hub stores each call, so many rounds would take long without measuring the gate any better.
            ("announced call", narrated, rounds / 10, ""),
        ] {
            let [baseline, with_gate] =
                Times::measure([&mut direct(), &mut gated()], opening, message, rounds);
            baseline.print(&format!("{name}: {what}, without"));
            with_gate.print(&format!("{name}: {what}, with"));
            let added = with_gate.p50().saturating_sub(baseline.p50());
            let ratio = with_gate.p50().as_secs_f64() / baseline.p50().as_secs_f64().max(1e-9);
            println!("the gate adds {} µs at the median, {ratio:.1} times as long{goal}", added.as_micros());
        }
    }
    drop(listeners);
    measure_hook(&sayso, folder.path(), scale.pick(200, 5));
}

/// Measures the time from the start of a hook to the first byte that it sends to the hub.
fn measure_hook(sayso: &Path, folder: &Path, rounds: usize) {
    // The hub reads one byte and never answers.
    let hub = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = hub.local_addr().expect("an address").to_string();
    let mut alone = Command::new(std::env::current_exe().expect("this program"));
    alone.env(HOOK, &address);
    let mut hook = Command::new(sayso);
    hook.args(["hook", "claude", "--hub", &format!("http://{address}")]).env("XDG_RUNTIME_DIR", folder);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (command, times) in [&mut alone, &mut hook].into_iter().zip(&mut times) {
            let started = Instant::now();
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the hook starts");
            child.stdin.take().expect("a pipe").write_all(HOOK_EVENT.as_bytes()).expect("the hook reads");
            let (mut stream, _) = hub.accept().expect("the hook connects");
            stream.read_exact(&mut [0]).expect("the hook sends something");
            times.push(started.elapsed());
            drop(child.kill());
            child.wait().expect("the hook ends");
        }
    }
    println!("{rounds} starts of a hook, from the start to the first byte to the hub, in microseconds");
    for (name, mut times) in
        ["hook: a program that does nothing else", "hook: sayso hook (goal: at most 20 ms)"]
            .into_iter()
            .zip(times)
    {
        times.sort_unstable();
        Times { sorted: times, start: Duration::ZERO }.print(name);
    }
}

/// Answers every request at once.
fn serve() {
    let (stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in stdin.lines().map_while(Result::ok) {
        let head = line.get(..100.min(line.len())).unwrap_or_default();
        let answer = if head.contains("tools/list") {
            r#"{"jsonrpc":"2.0","id":"list","result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}}]}}"#
        } else if head.contains("session/new") {
            r#"{"jsonrpc":"2.0","id":"new","result":{"sessionId":"s1"}}"#
        } else if head.contains("session/prompt") {
            concat!(
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Read /tmp/file","kind":"read","status":"completed"}}}"#,
                "\n",
                r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#
            )
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
    /// Measures several programs side by side.
    fn measure<const N: usize>(
        commands: [&mut Command; N],
        opening: &str,
        message: &str,
        rounds: usize,
    ) -> [Self; N] {
        let mut peers = commands.map(|command| Peer::start(command, opening));
        for _ in 0..rounds.max(1) {
            for peer in &mut peers {
                let time = peer.round_trip(message);
                peer.times.push(time);
            }
        }
        peers.map(Peer::finish)
    }

    fn percentile(&self, percent: usize) -> Duration {
        let index = (self.sorted.len() * percent / 100).min(self.sorted.len().saturating_sub(1));
        self.sorted.get(index).copied().unwrap_or_default()
    }

    fn p50(&self) -> Duration {
        self.percentile(50)
    }

    fn print(&self, name: &str) {
        println!(
            "{name:<44} {:>8} {:>8} {:>8} {:>8}",
            self.p50().as_micros(),
            self.percentile(99).as_micros(),
            self.percentile(100).as_micros(),
            self.start.as_millis()
        );
    }
}

struct Peer {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: Vec<u8>,
    times: Vec<Duration>,
    start: Duration,
}

impl Peer {
    fn start(command: &mut Command, opening: &str) -> Self {
        let started = Instant::now();
        let mut child = command
            .env(SERVER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut peer = Self {
            child,
            stdin: stdin.expect("a pipe"),
            stdout: BufReader::new(stdout.expect("a pipe")),
            line: Vec::new(),
            times: Vec::new(),
            start: Duration::ZERO,
        };
        peer.round_trip(opening);
        peer.start = started.elapsed();
        peer
    }

    fn finish(mut self) -> Times {
        drop(self.stdin);
        self.child.wait().expect("the server ends");
        self.times.sort_unstable();
        Times { sorted: self.times, start: self.start }
    }

    /// Sends a request and waits for its answer. Notifications before it are read.
    fn round_trip(&mut self, message: &str) -> Duration {
        let line = format!("{message}\n");
        let started = Instant::now();
        self.stdin.write_all(line.as_bytes()).expect("the server reads");
        loop {
            self.line.clear();
            let count = self.stdout.read_until(b'\n', &mut self.line).expect("the server answers");
            assert!(count > 0, "the server has ended");
            if self.line.starts_with(br#"{"jsonrpc":"2.0","id""#) {
                return started.elapsed();
            }
        }
    }
}
