//! Slow and dead readers among 1,000 listeners: what their neighbours notice. First all keep up; then a twentieth reads 200
//! events a second and another does not read at all. Measured are the others, the same number both times: their delivery
//! rate when an agent publishes as fast as it can, and their times when events come at a fixed rate that waits for nobody.
#![allow(clippy::cast_precision_loss)]

use std::time::Duration;

use sayso_benches::load::{Ears, Flood, Histogram, Hub, Laggards, Scale, Store, Style, publish};

fn main() {
    let scale = Scale::of_arguments();
    let all = scale.pick(1_000, 20);
    let laggards = all / 20;
    println!(
        "{:<34} {:>12} {:>10} {:>9} {:>9} {:>9} {:>6}",
        "", "delivered/s", "us each", "p50 ms", "p99 ms", "most ms", "ended"
    );
    let good = Run::of(scale, all - 2 * laggards, 2 * laggards, 0);
    good.print("all keep up");
    let mixed = Run::of(scale, all - 2 * laggards, 0, laggards);
    mixed.print(&format!("{laggards} slow, {laggards} dead among them"));
    println!(
        "{:<34} {:>12.2} {:>10.2} {:>9.2} {:>9.2} {:>9.2}",
        "ratio (goal 1.00)",
        mixed.rate / good.rate,
        mixed.cost / good.cost,
        mixed.times.p50() / good.times.p50(),
        mixed.times.p99() / good.times.p99(),
        mixed.times.most() / good.times.most()
    );
}

struct Run {
    rate: f64,
    cost: f64,
    times: Histogram,
    ended: u64,
}

impl Run {
    fn of(scale: Scale, measured: usize, others: usize, laggards: usize) -> Self {
        let hub = Hub::start(Store::Disk);
        let ears = Ears::connect(&hub, measured, true);
        let _others = Ears::connect(&hub, others, false);
        let _laggards = Laggards::connect(&hub, laggards, 200, laggards);
        // So much that the buffers of those who do not read are full.
        publish(&hub, &ears, scale.pick(5_000, 200), Style::BATCHES);
        let run = publish(&hub, &ears, scale.pick(5_000, 200), Style::BATCHES);
        let flood = Flood::start(&hub, scale.pick(400.0, 100.0));
        std::thread::sleep(scale.pick(Duration::from_secs(2), Duration::from_millis(200)));
        ears.floods();
        std::thread::sleep(scale.pick(Duration::from_secs(20), Duration::from_secs(1)));
        let times = ears.floods();
        flood.stop();
        Self { rate: run.rate(), cost: run.cost_each(), times, ended: ears.ended() }
    }

    fn print(&self, name: &str) {
        let Self { rate, cost, times, ended } = self;
        println!(
            "{name:<34} {rate:>12.0} {cost:>10.2} {:>9.2} {:>9.2} {:>9.2} {ended:>6}",
            times.p50(),
            times.p99(),
            times.most()
        );
    }
}
