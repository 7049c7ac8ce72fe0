//! What an event costs as more is open: sessions, then listeners. The cost is the server's processor time, which a driver on
//! the same machine does not blur as it does the rate. `stored.rs` does the same for stored events.
use sayso_benches::load::{Ears, Hub, Published, Scale, Store, Style, publish};

fn main() {
    let scale = Scale::of_arguments();
    println!("open sessions; 100 listeners; microseconds of the server for an event");
    println!("{:>9} {:>9} {:>9} {:>9} {:>9}", "sessions", "one", "to first", "batches", "to first");
    let mut first = None;
    for sessions in scale.pick([1, 1_000, 9_000], [1, 10, 50]) {
        let hub = Hub::start(Store::Disk);
        let mut agent = hub.agent();
        (1..sessions).for_each(|_| drop(hub.open_session(&mut agent)));
        let ears = Ears::connect(&hub, scale.pick(100, 3), false);
        let [one, batches] = runs(&hub, &ears, scale).map(|run| run.cost());
        let [first_one, first_batches] = *first.get_or_insert([one, batches]);
        println!(
            "{sessions:>9} {one:>9.1} {:>9.2} {batches:>9.1} {:>9.2}",
            one / first_one,
            batches / first_batches
        );
    }
    println!("listeners; one session; microseconds of the server for an event and listener");
    println!("{:>9} {:>9} {:>9} {:>9} {:>9}", "listeners", "one", "to 100", "batches", "to 100");
    let mut hundred = None;
    for listeners in scale.pick([100, 1_000, 5_000], [3, 10, 20]) {
        let hub = Hub::start(Store::Disk);
        let ears = Ears::connect(&hub, listeners, false);
        let [one, batches] = runs(&hub, &ears, scale).map(|run| run.cost_each());
        let [first_one, first_batches] = *hundred.get_or_insert([one, batches]);
        println!(
            "{listeners:>9} {one:>9.2} {:>9.2} {batches:>9.3} {:>9.2}",
            one / first_one,
            batches / first_batches
        );
    }
    println!("goal: no ratio grows");
}

fn runs(hub: &Hub, ears: &Ears, scale: Scale) -> [Published; 2] {
    [(Style::ONE, 2_000), (Style::BATCHES, 5_000)]
        .map(|(style, events)| publish(hub, ears, scale.pick(events, 100), style))
}
