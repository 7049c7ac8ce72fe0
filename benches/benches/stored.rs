//! What a long history costs: start-up, memory and the cost of an event with few stored events and with a million. They are
//! published by the thousand to the real server, in sessions of a thousand, of which all but eight are over.
#![allow(clippy::cast_precision_loss)]

use std::path::Path;
use std::time::Duration;

use sayso_benches::load::{Crowd, Ears, Hub, Scale, Server, Store, Style, lasting, publish};

const IN_SESSION: usize = 1_000;
const OPEN: usize = 8;

fn main() {
    let scale = Scale::of_arguments();
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
        "us: the server's processor time for an event, with 100 listeners; the last two: acknowledged by 16 agents, no listener"
    );
    println!("goal: no cost of an event grows with what is stored");
}

fn measure(scale: Scale, stored: usize) -> [f64; 7] {
    let folder = Hub::folder();
    fill(folder.path(), stored);
    let size = std::fs::metadata(folder.path().join("journal.sqlite")).map_or(0, |file| file.len());
    // The best of several starts: the first finds the file in no cache.
    let mut start = Duration::MAX;
    for _ in 0..scale.pick(5, 2) {
        let hub = Hub::start(Store::Folder(folder.path()));
        start = start.min(hub.started_in);
        hub.stop();
    }
    let hub = Hub::start(Store::Folder(folder.path()));
    let memory = hub.process().resident() as f64 / 1024.0;
    let ears = Ears::connect(&hub, scale.pick(100, 3), false);
    let one = publish(&hub, &ears, scale.pick(3_000, 100), Style::ONE).cost();
    let batches = publish(&hub, &ears, scale.pick(5_000, 200), Style::BATCHES).cost();
    drop(ears);
    let crowd = Crowd::publish(&hub, 16, scale.pick(Duration::from_secs(3), Duration::from_millis(200)));
    let millis = start.as_secs_f64() * 1e3;
    println!(
        "{stored:>9} {:>9.1} {millis:>9.1} {memory:>9.1} {one:>11.1} {batches:>10.1} {:>11.0} {:>10.1}",
        size as f64 / 1e6,
        crowd.rate,
        crowd.cost
    );
    [size as f64, millis, memory, one, batches, crowd.rate, crowd.cost]
}

fn fill(folder: &Path, events: usize) {
    let hub = Hub::start(Store::Folder(folder));
    let mut agent = hub.agent();
    // The session has a beginning and an end too.
    let said = vec![lasting(); IN_SESSION - 2];
    let sessions = events / IN_SESSION;
    for number in 0..sessions {
        let session = hub.open_session(&mut agent);
        agent.send(&hub.publishes(&session, &said));
        agent.answer();
        if number + OPEN < sessions {
            let over = r#"{"type":"aaep:agent.session.completed","summary_normal":"All done."}"#;
            agent.send(&hub.publishes(&session, &[over.to_owned()]));
            agent.answer();
        }
    }
    hub.stop();
}
