//! Events per second of one hub in memory with 1, 2 and 4 shards, alternating in one run.
//!
//! 16 agents publish in batches of 64 events, so that the hub's turns cost more than HTTP does. Each session has a different person,
//! so the sessions are spread over the shards. Nobody listens. The driver shares the
//! processors with the hub. The CPU time of the hub per event shows what a shard adds.
use std::time::Duration;

use sayso_benches::load::{BenchHub, ConcurrentPublishResult, Scale, Store};

const GOAL_RATIO: f64 = 1.6;
const SHARDS: [u16; 3] = [1, 2, 4];

fn main() {
    let scale = Scale::from_args();
    let (rounds, time) = (scale.pick(5, 1), scale.pick(Duration::from_secs(2), Duration::from_millis(200)));
    println!("median of {rounds} rounds of {time:?} each");
    println!(
        "{:>7} {:>12} {:>9} {:>9} {:>9} {:>9}",
        "shards", "events/s", "relative", "p50 ms", "p99 ms", "us each"
    );
    let mut runs = SHARDS.map(|_| Vec::new());
    for _ in 0..rounds {
        for (shards, runs) in SHARDS.into_iter().zip(&mut runs) {
            // A hub in memory keeps what it has received, so each round has a new one.
            let hub = BenchHub::start_with_shards(Store::Memory, shards);
            runs.push(ConcurrentPublishResult::publish_in_batches(&hub, 16, 64, time));
        }
    }
    let medians = runs.map(|mut runs| {
        runs.sort_by(|one, other| one.rate.total_cmp(&other.rate));
        runs.swap_remove(rounds / 2)
    });
    for (shards, run) in SHARDS.into_iter().zip(&medians) {
        println!(
            "{shards:>7} {:>12.0} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
            run.rate,
            run.rate / medians[0].rate,
            run.latencies.p50_millis(),
            run.latencies.p99_millis(),
            run.cpu_micros_per_event
        );
    }
    println!(
        "goal: {GOAL_RATIO:.1} times the rate with 2 shards, on 2 cores; us each is the CPU time of the server per event"
    );
}
