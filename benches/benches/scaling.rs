//! The cost of an event as the number of open sessions, then of listeners, grows. The cost is the CPU time of the server,
//! which the driver on the same machine affects less than the rate. `long_history.rs` does the same for stored events.
use sayso_benches::load::{BenchHub, ListenerPool, PublishMode, PublishResult, Scale, Store, publish};

fn main() {
    let scale = Scale::from_args();
    println!("open sessions; 100 listeners; CPU microseconds of the server per event");
    println!("{:>9} {:>9} {:>9} {:>9} {:>9}", "sessions", "one", "vs first", "batches", "vs first");
    let mut first = None;
    for sessions in scale.pick([1, 1_000, 9_000], [1, 10, 50]) {
        let hub = BenchHub::start(Store::Disk);
        let mut agent = hub.connect();
        (1..sessions).for_each(|_| drop(hub.open_session(&mut agent)));
        let listener_pool = ListenerPool::connect(&hub, scale.pick(100, 3), false);
        let [one, batches] = measure(&hub, &listener_pool, scale).map(|run| run.cpu_micros_per_event());
        let [first_one, first_batches] = *first.get_or_insert([one, batches]);
        println!(
            "{sessions:>9} {one:>9.1} {:>9.2} {batches:>9.1} {:>9.2}",
            one / first_one,
            batches / first_batches
        );
    }
    println!("listeners; one session; CPU microseconds of the server per event and listener");
    println!("{:>9} {:>9} {:>9} {:>9} {:>9}", "listeners", "one", "vs first", "batches", "vs first");
    let mut first = None;
    for listeners in scale.pick([100, 1_000, 5_000], [3, 10, 20]) {
        let hub = BenchHub::start(Store::Disk);
        let listener_pool = ListenerPool::connect(&hub, listeners, false);
        let [one, batches] = measure(&hub, &listener_pool, scale).map(|run| run.cpu_micros_per_delivery());
        let [first_one, first_batches] = *first.get_or_insert([one, batches]);
        println!(
            "{listeners:>9} {one:>9.2} {:>9.2} {batches:>9.3} {:>9.2}",
            one / first_one,
            batches / first_batches
        );
    }
    println!("goal: no ratio grows");
}

fn measure(hub: &BenchHub, listener_pool: &ListenerPool, scale: Scale) -> [PublishResult; 2] {
    [(PublishMode::ONE_AT_A_TIME, 2_000), (PublishMode::BATCHES, 5_000)]
        .map(|(mode, events)| publish(hub, listener_pool, scale.pick(events, 100), mode))
}
