//! Durably acknowledged events per second, by 1, 16 and 64 agents over HTTP, each with its own session and connection and one
//! open request. Compared with the same server with `--memory`, and with bare appends with fdatasync at the same batch size,
//! alternating in one run.
use std::time::Duration;

use sayso_benches::load::{BenchHub, ConcurrentPublishResult, Scale, Store, baseline_appends};

const GOAL_RATIO: f64 = 0.60;

fn main() {
    let scale = Scale::from_args();
    let (rounds, time) = (scale.pick(5, 1), scale.pick(Duration::from_secs(2), Duration::from_millis(200)));
    println!("median of {rounds} rounds of {time:?} each");
    println!(
        "{:>7} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>9} {:>9}",
        "agents", "disk", "memory", "bare", "vs memory", "vs bare", "p50 ms", "p99 ms", "us each"
    );
    for agents in [1, 16, 64] {
        let (disk, memory) = (BenchHub::start(Store::Disk), BenchHub::start(Store::Memory));
        let mut runs: Vec<(ConcurrentPublishResult, ConcurrentPublishResult, f64)> = (0..rounds)
            .map(|_| {
                let disk_run = ConcurrentPublishResult::publish(&disk, agents, time);
                let memory_run = ConcurrentPublishResult::publish(&memory, agents, time);
                (disk_run, memory_run, baseline_appends(agents, scale.pick(400, 20)))
            })
            .collect();
        runs.sort_by(|one, other| (one.0.rate / one.1.rate).total_cmp(&(other.0.rate / other.1.rate)));
        let (disk_run, memory_run, bare_rate) = runs.swap_remove(rounds / 2);
        println!(
            "{agents:>7} {:>10.0} {:>10.0} {bare_rate:>10.0} {:>10.2} {:>8.2} {:>8.2} {:>9.2} {:>9.1}",
            disk_run.rate,
            memory_run.rate,
            disk_run.rate / memory_run.rate,
            disk_run.rate / bare_rate,
            disk_run.latencies.p50_millis(),
            disk_run.latencies.p99_millis(),
            disk_run.cpu_micros_per_event
        );
    }
    println!(
        "goal: with 64 agents, {GOAL_RATIO:.2} of the rate in memory; us each is the CPU time of the server per event"
    );
}
