//! Events at a rate that waits for nobody: each has its time, and its stamp is that time, whenever it was sent.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Agent, Hub, event, micros};

/// A flood, until it is stopped.
#[derive(Debug)]
pub struct Flood {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Flooded>,
}

/// What a flood has done.
#[derive(Clone, Copy, Debug)]
pub struct Flooded {
    /// Events sent.
    pub events: u64,
    /// Events sent in a second.
    pub rate: f64,
    /// How late the latest was sent, in milliseconds: if that grows to seconds, the server did not even take it in.
    pub latest: f64,
}

/// So many agents share the flood.
const AGENTS: usize = 4;
/// What comes in that time goes into one request.
const TOGETHER: Duration = Duration::from_millis(4);
/// No more than so many go into one request.
const MOST: u64 = 500;

impl Flood {
    /// Begins; what is due at the same moment goes into one request.
    pub fn start(hub: &Hub, rate: f64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let agents: Vec<(Agent, String)> = (0..AGENTS)
            .map(|_| {
                let mut agent = hub.agent();
                let session = hub.open_session(&mut agent);
                drain(&agent);
                (agent, session)
            })
            .collect();
        let (end, address) = (stop.clone(), super::Server::address(hub).to_owned());
        let thread = std::thread::spawn(move || run(&address, agents, rate, &end));
        Self { stop, thread }
    }

    /// Ends it and says what it has done.
    pub fn stop(self) -> Flooded {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn run(address: &str, mut agents: Vec<(Agent, String)>, rate: f64, stop: &AtomicBool) -> Flooded {
    let begun = micros();
    let due = |number: u64| begun + Duration::from_secs_f64(number as f64 / rate).as_micros() as u64;
    let (mut sent, mut latest) = (0, 0);
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        let now = micros();
        let mut events = Vec::new();
        while due(sent) <= now && (events.len() as u64) < MOST {
            events.push(event(due(sent)));
            sent += 1;
        }
        if events.is_empty() {
            std::thread::sleep(Duration::from_micros(due(sent).saturating_sub(now).clamp(50, 2000)));
            continue;
        }
        // What comes within a few milliseconds goes together, as agents send it: a request each would measure the intake.
        std::thread::sleep(TOGETHER);
        turn = (turn + 1) % agents.len();
        let (agent, session) = &mut agents[turn];
        let path = format!("/agent/v1/sessions/{session}/events");
        agent.send(&Agent::request(address, "POST", &path, &(events.join("\n") + "\n")));
        latest = latest.max(micros().saturating_sub(due(sent - 1)));
    }
    let took = micros().saturating_sub(begun).max(1);
    Flooded { events: sent, rate: sent as f64 * 1e6 / took as f64, latest: latest as f64 / 1e3 }
}

/// Reads answers over; one that is not good ends the driver.
fn drain(agent: &Agent) {
    let mut stream = agent.socket().try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            let bad = memchr::memmem::find(&buffer[..read], b"HTTP/1.1 4").is_some();
            assert!(!bad, "{}", String::from_utf8_lossy(&buffer[..read]));
        }
    });
}
