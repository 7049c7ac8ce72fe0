//! Open-loop load: each event has a scheduled time. Its stamp is that time, even if the event is sent late.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{BenchHub, KeepAliveClient, elapsed_micros, event};

/// A load at a fixed rate. It runs until it is stopped.
#[derive(Debug)]
pub struct FixedRateLoad {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<FixedRateResult>,
}

/// The result of a load.
#[derive(Clone, Copy, Debug)]
pub struct FixedRateResult {
    /// Events sent.
    pub events: u64,
    /// Events sent per second.
    pub rate: f64,
    /// Maximum delay of an event behind its schedule, in milliseconds. If it grows to seconds, the server did not keep up.
    pub max_delay_millis: f64,
}

/// Number of agents that share the load.
const PUBLISHERS: usize = 4;
/// Events within this time go into one request.
const BATCH_WINDOW: Duration = Duration::from_millis(4);
/// Maximum number of events in one request.
const MAX_BATCH_EVENTS: u64 = 500;

impl FixedRateLoad {
    /// Starts the load. Events that are due at the same time go into one request.
    pub fn start(hub: &BenchHub, rate: f64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let agents: Vec<(KeepAliveClient, String)> = (0..PUBLISHERS)
            .map(|_| {
                let mut agent = hub.connect();
                let session = hub.open_session(&mut agent);
                discard_responses(&agent);
                (agent, session)
            })
            .collect();
        let (stop_flag, address) = (stop.clone(), super::Server::address(hub).to_owned());
        let thread = std::thread::spawn(move || run(&address, agents, rate, &stop_flag));
        Self { stop, thread }
    }

    /// Stops the load and returns its result.
    pub fn stop(self) -> FixedRateResult {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn run(
    address: &str,
    mut agents: Vec<(KeepAliveClient, String)>,
    rate: f64,
    stop: &AtomicBool,
) -> FixedRateResult {
    let started = elapsed_micros();
    let due = |number: u64| started + Duration::from_secs_f64(number as f64 / rate).as_micros() as u64;
    let (mut sent, mut max_delay) = (0, 0);
    let mut next_agent = 0;
    while !stop.load(Ordering::Relaxed) {
        let now = elapsed_micros();
        let mut events = Vec::new();
        while due(sent) <= now && (events.len() as u64) < MAX_BATCH_EVENTS {
            events.push(event(due(sent)));
            sent += 1;
        }
        if events.is_empty() {
            std::thread::sleep(Duration::from_micros(due(sent).saturating_sub(now).clamp(50, 2000)));
            continue;
        }
        // Events within a few milliseconds share a request, as with real agents. With one request per event, the benchmark
        // would mostly measure request handling.
        std::thread::sleep(BATCH_WINDOW);
        next_agent = (next_agent + 1) % agents.len();
        let (agent, session) = &mut agents[next_agent];
        let path = format!("/agent/v1/sessions/{session}/events");
        agent.send(&KeepAliveClient::request(address, "POST", &path, &(events.join("\n") + "\n")));
        max_delay = max_delay.max(elapsed_micros().saturating_sub(due(sent - 1)));
    }
    let elapsed = elapsed_micros().saturating_sub(started).max(1);
    FixedRateResult {
        events: sent,
        rate: sent as f64 * 1e6 / elapsed as f64,
        max_delay_millis: max_delay as f64 / 1e3,
    }
}

/// Reads and discards responses. Panics on an error response.
fn discard_responses(agent: &KeepAliveClient) {
    let mut stream = agent.socket().try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            let is_error = memchr::memmem::find(&buffer[..read], b"HTTP/1.1 4").is_some();
            assert!(!is_error, "{}", String::from_utf8_lossy(&buffer[..read]));
        }
    });
}
