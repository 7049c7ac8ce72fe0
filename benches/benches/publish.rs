//! Events acknowledged as durable in a second, by 1, 16 and 64 agents over HTTP, each with a session and a connection of its
//! own and one request open. Beside it the same server with `--memory`, and a bare append with fdatasync at equal batch,
//! turn by turn in one run.
use std::time::Duration;

use sayso_benches::load::{Crowd, Hub, Scale, Store, bare_appends};

const GOAL: f64 = 0.60;

fn main() {
    let scale = Scale::of_arguments();
    let (turns, time) = (scale.pick(5, 1), scale.pick(Duration::from_secs(2), Duration::from_millis(200)));
    println!("the middle of {turns} turns of {time:?} each");
    println!(
        "{:>7} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>9} {:>9}",
        "agents", "disk", "memory", "bare", "to memory", "to bare", "p50 ms", "p99 ms", "us each"
    );
    for agents in [1, 16, 64] {
        let (disk, memory) = (Hub::start(Store::Disk), Hub::start(Store::Memory));
        let mut runs: Vec<(Crowd, Crowd, f64)> = (0..turns)
            .map(|_| {
                let durable = Crowd::publish(&disk, agents, time);
                let fleeting = Crowd::publish(&memory, agents, time);
                (durable, fleeting, bare_appends(agents, scale.pick(400, 20)))
            })
            .collect();
        runs.sort_by(|one, other| (one.0.rate / one.1.rate).total_cmp(&(other.0.rate / other.1.rate)));
        let (durable, fleeting, bare) = runs.swap_remove(turns / 2);
        println!(
            "{agents:>7} {:>10.0} {:>10.0} {bare:>10.0} {:>10.2} {:>8.2} {:>8.2} {:>9.2} {:>9.1}",
            durable.rate,
            fleeting.rate,
            durable.rate / fleeting.rate,
            durable.rate / bare,
            durable.times.p50(),
            durable.times.p99(),
            durable.cost
        );
    }
    println!("goal: {GOAL:.2} to memory at 64 agents; us each is the server's processor time for an event");
}
