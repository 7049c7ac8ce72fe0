//! Measures how slow and dead readers affect the other listeners. In the first run, all 1,000 listeners keep up. In the second,
//! one in twenty reads only 200 events per second, and one in twenty does not read at all. Both runs measure the same number of fast listeners: their
//! delivery rate when an agent publishes at full speed, and their latency at a fixed event rate.
#![allow(clippy::cast_precision_loss)]

use std::time::Duration;

use sayso_benches::load::{
    BenchHub, FixedRateLoad, Histogram, ListenerPool, PublishMode, Scale, SlowReaders, Store, publish,
};

fn main() {
    let scale = Scale::from_args();
    let all = scale.pick(1_000, 20);
    let laggards_per_kind = all / 20;
    println!(
        "{:<34} {:>12} {:>15} {:>9} {:>9} {:>9} {:>6}",
        "", "delivered/s", "cpu us/delivery", "p50 ms", "p99 ms", "max ms", "ended"
    );
    let baseline = NeighbourRun::measure(scale, all - 2 * laggards_per_kind, 2 * laggards_per_kind, 0);
    baseline.print("all keep up");
    let mixed = NeighbourRun::measure(scale, all - 2 * laggards_per_kind, 0, laggards_per_kind);
    mixed.print(&format!("{laggards_per_kind} slow, {laggards_per_kind} dead among them"));
    println!(
        "{:<34} {:>12.2} {:>15.2} {:>9.2} {:>9.2} {:>9.2}",
        "ratio (goal 1.00)",
        mixed.rate / baseline.rate,
        mixed.cpu_micros_per_delivery / baseline.cpu_micros_per_delivery,
        mixed.latencies.p50_millis() / baseline.latencies.p50_millis(),
        mixed.latencies.p99_millis() / baseline.latencies.p99_millis(),
        mixed.latencies.max_millis() / baseline.latencies.max_millis()
    );
}

struct NeighbourRun {
    rate: f64,
    cpu_micros_per_delivery: f64,
    latencies: Histogram,
    ended: u64,
}

impl NeighbourRun {
    fn measure(scale: Scale, measured: usize, others: usize, laggards_per_kind: usize) -> Self {
        let hub = BenchHub::start(Store::Disk);
        let listeners = ListenerPool::connect(&hub, measured, true);
        let _others = ListenerPool::connect(&hub, others, false);
        let _laggards = SlowReaders::connect(&hub, laggards_per_kind, 200, laggards_per_kind);
        // Fill the socket buffers of the listeners that do not read.
        publish(&hub, &listeners, scale.pick(5_000, 200), PublishMode::BATCHES);
        let run = publish(&hub, &listeners, scale.pick(5_000, 200), PublishMode::BATCHES);
        let load = FixedRateLoad::start(&hub, scale.pick(400.0, 100.0));
        std::thread::sleep(scale.pick(Duration::from_secs(2), Duration::from_millis(200)));
        listeners.take_event_latencies();
        std::thread::sleep(scale.pick(Duration::from_secs(20), Duration::from_secs(1)));
        let latencies = listeners.take_event_latencies();
        load.stop();
        Self {
            rate: run.deliveries_per_second(),
            cpu_micros_per_delivery: run.cpu_micros_per_delivery(),
            latencies,
            ended: listeners.ended_streams(),
        }
    }

    fn print(&self, name: &str) {
        let Self { rate, cpu_micros_per_delivery, latencies, ended } = self;
        println!(
            "{name:<34} {rate:>12.0} {cpu_micros_per_delivery:>15.2} {:>9.2} {:>9.2} {:>9.2} {ended:>6}",
            latencies.p50_millis(),
            latencies.p99_millis(),
            latencies.max_millis()
        );
    }
}
