//! Publishing to hubs in memory with one shard and with two, without listeners and without a network, so that the cores are
//! the limit. Compared in the same run: events per second, and CPU time per event.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use aaep::SessionId;
use aaep::event::Producer;
use hub::command::{HubCommand, HubReply};
use hub::delivery::DeliveryLimits;
use hub::{Core, HubLimits, Principal, Shard, ShardMap};
use journal::MemoryJournal;
use sayso_benches::load::{ProcessStats, Scale};
use seal::{Random, SystemRandom, UnixMillis};
use wire::{AgentConnection, AgentMessage, HubHandle};

/// The goal for the ratio between two shards and one.
const GOAL_RATIO: f64 = 1.6;
/// Number of events in one request.
const BATCH: usize = 100;
/// Number of open requests for each session.
const IN_FLIGHT: usize = 4;

const EVENT: &str = r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working on the next part of the task."}"#;

fn main() {
    let scale = Scale::from_args();
    let events = scale.pick(400_000, 4_000);
    println!("{:<28} {:>14} {:>16}", "publishing in memory", "events/s", "CPU us/event");
    let mut best = [0.0_f64; 2];
    for run in 1..=scale.pick(5, 1) {
        for (shards, best) in [1, 2].into_iter().zip(&mut best) {
            match measure(shards, events) {
                Ok((elapsed, cpu_time)) => {
                    #[allow(clippy::cast_precision_loss, reason = "a rate does not need to be exact")]
                    let count = events as f64;
                    let rate = count / elapsed.as_secs_f64();
                    *best = best.max(rate);
                    let micros = cpu_time.as_secs_f64() * 1e6 / count;
                    println!("run {run}, {shards} shards {:>24.0} {micros:>16.2}", rate);
                }
                Err(error) => return println!("run {run}, {shards} shards: {error}"),
            }
        }
    }
    let [one, two] = best;
    println!(
        "best of all runs: 2 shards publish {:.2} times what 1 shard does; goal {GOAL_RATIO}",
        two / one
    );
}

/// Publishes this many events. Returns the elapsed time and the CPU time of the process.
fn measure(shards: u16, events: usize) -> Result<(Duration, Duration), String> {
    let hub = start_hub(shards)?;
    // Two people in each of two shards, or all four in the only one.
    let map = ShardMap::new(2);
    let people = (0..).map(|number| format!("person-{number}"));
    let of = |shard| people.clone().filter(move |person| map.of_person(person) == shard).take(2);
    let people: Vec<String> = of(0).chain(of(1)).collect();
    let agent = hub.connect_agent(1_000);
    let principal = Principal::local();
    let mut sessions = Vec::new();
    for person in people {
        let body = format!(r#"{{"summary_normal":"A task.","requested_by":"user:{person}"}}"#);
        let start = HubCommand::Start { body: body.into(), idempotency_key: None };
        agent.submit(&principal, start).ok_or("the hub has stopped")?;
        match next_reply(&agent)? {
            HubReply::SessionStarted { session_id } => sessions.push(session_id),
            other => return Err(format!("{other:?}")),
        }
    }
    let cpu_before = ProcessStats(std::process::id()).cpu_time();
    let started = Instant::now();
    let requests = events.div_ceil(BATCH);
    let mut pending = 0;
    for request in 0..requests {
        if pending == IN_FLIGHT * sessions.len() {
            check(&next_reply(&agent)?)?;
            pending -= 1;
        }
        let session: &SessionId = sessions.get(request % sessions.len()).ok_or("no session")?;
        let command = HubCommand::Publish {
            session: session.clone(),
            events: vec![EVENT.into(); BATCH],
            idempotency_key: None,
        };
        agent.submit(&principal, command).ok_or("the hub has stopped")?;
        pending += 1;
    }
    for _ in 0..pending {
        check(&next_reply(&agent)?)?;
    }
    Ok((started.elapsed(), ProcessStats(std::process::id()).cpu_time().saturating_sub(cpu_before)))
}

fn start_hub(shards: u16) -> Result<HubHandle, String> {
    // Old events are deleted, so that memory does not grow with the number of runs.
    let retention = journal::Retention { max_bytes: Some(64 << 20), ..HubLimits::default().retention };
    let limits = HubLimits { retention, ..HubLimits::default() };
    let mut cores = Vec::new();
    for shard in Shard::all_of(ShardMap::new(shards)) {
        let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
        let journal = Box::new(MemoryJournal::default());
        let core = Core::in_shard(shard, journal, Producer::new("hub"), limits, random, now());
        cores.push(core.map_err(|error| error.to_string())?);
    }
    HubHandle::start_shards(cores, DeliveryLimits::default(), now, Arc::default())
        .map_err(|error| error.to_string())
}

fn now() -> UnixMillis {
    std::time::SystemTime::now().into()
}

/// Waits for the next reply without a runtime.
fn next_reply(agent: &AgentConnection) -> Result<HubReply, String> {
    let waker: Waker = Arc::new(ThreadWaker(std::thread::current())).into();
    loop {
        match agent.poll_recv(&mut Context::from_waker(&waker)) {
            Poll::Ready(Some(AgentMessage::Reply(_, reply))) => return Ok(reply),
            Poll::Ready(Some(AgentMessage::Notice(_))) => {}
            Poll::Ready(None) => return Err("the connection was closed".to_owned()),
            Poll::Pending => std::thread::park(),
        }
    }
}

struct ThreadWaker(std::thread::Thread);

impl std::task::Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn check(reply: &HubReply) -> Result<(), String> {
    match reply {
        HubReply::EventsPublished { .. } => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
