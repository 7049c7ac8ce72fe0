//! Delivered events a second: one hub as one process, its journal on disk, one agent that publishes, and 1, 100 or 5,000
//! listeners over SSE, all on this machine. Events one at a time (each acknowledged before the next), and in batches of 100.
//! Beside it a bare loop that makes one write for each listener and event, in the same run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const EVENT: &str = r#"{"type":"aaep:agent.progress.updated","progress":{"percent":42.5,"description":"Reading the second of five letters."},"summary_normal":"Reading the second of five letters in your inbox."}"#;

fn main() {
    println!(
        "{:>9} {:>14} {:>14} {:>14} {:>9} {:>9} {:>9}",
        "listeners", "one at a time", "batches", "bare writes", "to bare", "batches", "KiB each"
    );
    for listeners in [1, 100, 5_000] {
        let events = (2_000_000 / listeners).clamp(400, 3_000);
        let hub = Hub::start();
        let before = hub.resident();
        let ears = Ears::connect(&hub.address, listeners);
        let each = hub.resident().saturating_sub(before) as f64 / listeners as f64;
        let session = hub.session();
        let one = hub.publish(&session, &ears, events, 1);
        let many = hub.publish(&session, &ears, events, 100);
        let bare = bare(listeners, events.min(1_000), frame());
        let (ones, manys) = (one / bare, many / bare);
        println!("{listeners:>9} {one:>14.0} {many:>14.0} {bare:>14.0} {ones:>9.2} {manys:>9.2} {each:>9.1}");
    }
}

struct Hub {
    child: Child,
    address: String,
    folder: std::path::PathBuf,
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Hub {
    fn start() -> Self {
        let binary = sayso_benches::binary().expect("cargo xtask bench builds the binary first");
        let folder =
            std::env::temp_dir().join(format!("sayso-fanout-{}-{:?}", std::process::id(), Instant::now()));
        let mut child = Command::new(binary)
            .args(["serve", "--open", "--listen", "127.0.0.1:0", "--data"])
            .arg(&folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, folder }
    }

    /// Resident memory in KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    }

    fn session(&self) -> String {
        let mut agent = Agent::connect(&self.address);
        let made = agent.post(
            "/agent/v1/sessions",
            r#"{"summary_normal":"Reading.","localization_hints":{"primary_language":"en"}}"#,
        );
        made.split('"').nth(3).unwrap().to_owned()
    }

    /// Events delivered in a second, from the first request to the last frame.
    fn publish(&self, session: &str, ears: &Ears, events: usize, batch: usize) -> f64 {
        let path = format!("/agent/v1/sessions/{session}/events");
        let mut agent = Agent::connect(&self.address);
        let body = vec![EVENT; batch].join("\n");
        ears.settle();
        let before = ears.bytes();
        let begun = Instant::now();
        let rounds = events.div_ceil(batch);
        for _ in 0..rounds {
            agent.post(&path, &body);
        }
        let wanted = before + (rounds * batch * ears.count * frame()) as u64;
        while ears.bytes() < wanted {
            std::thread::sleep(Duration::from_micros(200));
            assert!(begun.elapsed() < Duration::from_mins(2), "{} of {wanted} bytes", ears.bytes());
        }
        (rounds * batch * ears.count) as f64 / begun.elapsed().as_secs_f64()
    }
}

struct Agent {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Agent {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream), address: address.to_owned() }
    }

    fn post(&mut self, path: &str, body: &str) -> String {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut length, mut line) = (0, String::new());
        let mut first = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            if first.is_empty() {
                first.clone_from(&line);
            }
            if let Some(found) = line.strip_prefix("Content-Length: ") {
                length = found.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(first.starts_with("HTTP/1.1 20"), "{first} {body}");
        body
    }
}

/// Listeners, read by one thread that counts bytes.
struct Ears {
    count: usize,
    bytes: Arc<AtomicU64>,
}

impl Ears {
    fn connect(address: &str, count: usize) -> Self {
        let bytes = Arc::new(AtomicU64::new(0));
        let mut poll = mio::Poll::new().unwrap();
        let mut sockets = Vec::with_capacity(count);
        let mut agent = Agent::connect(address);
        let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"bench","capabilities":{}}"#;
        for token in 0..count {
            let accepted = agent.post("/aaep/v1/subscriptions", request);
            let id = accepted
                .split("\"subscription_id\":\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .to_owned();
            let mut stream = TcpStream::connect(address).unwrap();
            let get = format!("GET /aaep/v1/events?subscription_id={id} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            stream.write_all(get.as_bytes()).unwrap();
            let mut head = BufReader::with_capacity(1, &stream);
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                head.read_line(&mut line).unwrap();
            }
            stream.set_nonblocking(true).unwrap();
            let mut socket = mio::net::TcpStream::from_std(stream);
            poll.registry().register(&mut socket, mio::Token(token), mio::Interest::READABLE).unwrap();
            sockets.push(socket);
        }
        let counter = bytes.clone();
        std::thread::spawn(move || {
            let mut events = mio::Events::with_capacity(1024);
            let mut buffer = vec![0; 256 * 1024];
            loop {
                if poll.poll(&mut events, None).is_err() {
                    continue;
                }
                for event in &events {
                    while let Ok(read) = sockets[event.token().0].read(&mut buffer) {
                        if read == 0 {
                            break;
                        }
                        counter.fetch_add(read as u64, Ordering::Relaxed);
                    }
                }
            }
        });
        Self { count, bytes }
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until nothing more comes.
    fn settle(&self) {
        let mut before = self.bytes();
        loop {
            std::thread::sleep(Duration::from_millis(50));
            if self.bytes() == before {
                return;
            }
            before = self.bytes();
        }
    }
}

/// The length of the event's frame: ids and times are of one length.
fn frame() -> usize {
    let id = "evt_01a1dfc043440c364d5c4bd4339da857";
    let payload = EVENT.strip_prefix(r#"{"type":"aaep:agent.progress.updated","#).unwrap();
    let json = format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.progress.updated","event_id":"{id}","session_id":"sess_01a1dfc043367aa40dd694e82ae3e0ce","timestamp":"2026-11-15T15:08:01.732Z","producer":{{"agent_id":"local"}},"localization_hints":{{"primary_language":"en"}},{payload}"#
    );
    hub::delivery::Frame::event(id, &json, 1, false).sse().len()
}

/// One write for each listener and event, the receivers' half included.
fn bare(listeners: usize, events: usize, frame: usize) -> f64 {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut poll = mio::Poll::new().unwrap();
    let (mut outs, mut ins) = (Vec::new(), Vec::new());
    for token in 0..listeners {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut socket = mio::net::TcpStream::from_std(stream);
        poll.registry().register(&mut socket, mio::Token(token), mio::Interest::READABLE).unwrap();
        ins.push(socket);
        let (out, _) = server.accept().unwrap();
        out.set_nodelay(true).unwrap();
        outs.push(out);
    }
    let total = (listeners * events * frame) as u64;
    let reader = std::thread::spawn(move || {
        let mut events = mio::Events::with_capacity(1024);
        let (mut buffer, mut read) = (vec![0; 256 * 1024], 0);
        while read < total {
            poll.poll(&mut events, None).unwrap();
            for event in &events {
                while let Ok(some) = ins[event.token().0].read(&mut buffer) {
                    read += some as u64;
                }
            }
        }
    });
    let bytes = vec![b'x'; frame];
    let begun = Instant::now();
    for _ in 0..events {
        for out in &mut outs {
            out.write_all(&bytes).unwrap();
        }
    }
    reader.join().unwrap();
    (listeners * events) as f64 / begun.elapsed().as_secs_f64()
}
