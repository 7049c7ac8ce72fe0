//! The cost of a long history: start-up time, memory and cost per event with few stored events and with a million. The
//! events are published to the real server in batches, in sessions of a thousand events, of which all but eight have ended.
#![allow(clippy::cast_precision_loss)]

use std::path::Path;
use std::time::Duration;

use sayso_benches::load::{
    BenchHub, ConcurrentPublishResult, ListenerPool, PublishMode, Scale, Server, Store, publish,
    uncoalescable_event,
};

const EVENTS_PER_SESSION: usize = 1_000;
const OPEN_SESSIONS: usize = 8;

fn main() {
    let scale = Scale::from_args();
    println!(
        "{:>9} {:>9} {:>9} {:>9} {:>11} {:>10} {:>11} {:>10}",
        "stored", "MB", "start ms", "MiB", "us one", "us batches", "16 agents/s", "us each"
    );
    let few = measure(scale, 0);
    let many = measure(scale, scale.pick(1_000_000, 20_000));
    println!(
        "{:>29.2} {:>9.2} {:>11.2} {:>10.2} {:>11.2} {:>10.2}",
        many[1] / few[1],
        many[2] / few[2],
        many[3] / few[3],
        many[4] / few[4],
        many[5] / few[5],
        many[6] / few[6]
    );
    println!(
        "us: CPU time of the server per event, with 100 listeners; the last two columns: 16 agents without listeners"
    );
    println!("goal: no cost per event grows with the history");
}

fn measure(scale: Scale, stored: usize) -> [f64; 7] {
    let folder = BenchHub::temp_dir();
    fill(folder.path(), stored);
    let size = std::fs::metadata(folder.path().join("journal.sqlite")).map_or(0, |file| file.len());
    // The best of several starts, because at the first start the file is not cached yet.
    let mut start = Duration::MAX;
    for _ in 0..scale.pick(5, 2) {
        let hub = BenchHub::start(Store::Folder(folder.path()));
        start = start.min(hub.started_in);
        hub.stop();
    }
    let hub = BenchHub::start(Store::Folder(folder.path()));
    let memory = hub.process().resident_kib() as f64 / 1024.0;
    let listeners = ListenerPool::connect(&hub, scale.pick(100, 3), false);
    let one =
        publish(&hub, &listeners, scale.pick(3_000, 100), PublishMode::ONE_AT_A_TIME).cpu_micros_per_event();
    let batches =
        publish(&hub, &listeners, scale.pick(5_000, 200), PublishMode::BATCHES).cpu_micros_per_event();
    drop(listeners);
    let publishers = ConcurrentPublishResult::publish(
        &hub,
        16,
        scale.pick(Duration::from_secs(3), Duration::from_millis(200)),
    );
    let millis = start.as_secs_f64() * 1e3;
    println!(
        "{stored:>9} {:>9.1} {millis:>9.1} {memory:>9.1} {one:>11.1} {batches:>10.1} {:>11.0} {:>10.1}",
        size as f64 / 1e6,
        publishers.rate,
        publishers.cpu_micros_per_event
    );
    [size as f64, millis, memory, one, batches, publishers.rate, publishers.cpu_micros_per_event]
}

fn fill(folder: &Path, events: usize) {
    let hub = BenchHub::start(Store::Folder(folder));
    let mut agent = hub.connect();
    // The start and the end of the session are events too.
    let events_of_session = vec![uncoalescable_event(); EVENTS_PER_SESSION - 2];
    let sessions = events / EVENTS_PER_SESSION;
    for number in 0..sessions {
        let session = hub.open_session(&mut agent);
        agent.send(&hub.session_publish_request(&session, &events_of_session));
        agent.read_response();
        if number + OPEN_SESSIONS < sessions {
            let completed = r#"{"type":"aaep:agent.session.completed","summary_normal":"All done."}"#;
            agent.send(&hub.session_publish_request(&session, &[completed.to_owned()]));
            agent.read_response();
        }
    }
    hub.stop();
}
