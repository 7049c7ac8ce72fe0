//! Delivered events a second: one hub as one process, its journal on disk, one agent that publishes, and 1, 100 or 5,000
//! listeners over SSE, all on this machine. Beside it, in the same run and by the same readers, nginx with nchan (which
//! stores nothing), and a bare loop that makes one write for each listener and event.
#![allow(clippy::cast_precision_loss)]

use sayso_benches::load::{
    Ears, Hub, Nchan, Published, Scale, Server, Store, Style, bare_writes, framed, publish,
};

fn main() {
    let scale = Scale::of_arguments();
    println!("delivered events a second; an event is {} bytes as framed", framed());
    println!("one: acknowledged before the next; pipelined: 16 requests open; batches: of 100");
    println!(
        "{:>9} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "listeners", "", "one", "pipelined", "batches", "us an event", "us each", "KiB each", "MiB idle"
    );
    for listeners in scale.pick([1, 100, 5_000], [1, 3, 20]) {
        let events = scale.pick((2_000_000 / listeners).clamp(400, 3_000), 100);
        let hub = measure(&Hub::start(Store::Disk), listeners, events);
        hub.print(listeners, "sayso");
        let bare = bare_writes(listeners, events.min(1_000));
        println!("{listeners:>9} {:>12} {bare:>10.0}", "bare writes");
        let to_bare = hub.runs.map(|run| run.rate() / bare);
        println!("{:>22} {:>10.2} {:>10.2} {:>10.2}", "to bare", to_bare[0], to_bare[1], to_bare[2]);
        let nchan = match Nchan::start() {
            Ok(nchan) => measure(&nchan, listeners, events),
            Err(why) => {
                println!("{listeners:>9} nchan: {why}");
                continue;
            }
        };
        nchan.print(listeners, "nchan");
        let ratio = |at: usize| hub.runs[at].rate() / nchan.runs[at].rate();
        println!(
            "{:>22} {:>10.2} {:>10.2} {:>10.2} {:>11.2} {:>10.2} {:>9.2}",
            "to nchan",
            ratio(0),
            ratio(1),
            ratio(2),
            hub.runs[0].cost() / nchan.runs[0].cost(),
            hub.runs[0].cost_each() / nchan.runs[0].cost_each(),
            hub.each / nchan.each
        );
    }
    println!(
        "goals: one at a time 2.00 to nchan at 100 and at 5,000; batches 600,000 at 100; memory under nchan's, 4 KiB the wish"
    );
}

struct Measured {
    runs: [Published; 3],
    /// KiB that an idle listener takes, and MiB before there is one.
    each: f64,
    idle: f64,
}

fn measure(server: &impl Server, listeners: usize, events: usize) -> Measured {
    let before = server.process().resident();
    let ears = Ears::connect(server, listeners, false);
    let each = server.process().resident().saturating_sub(before) as f64 / listeners as f64;
    let runs =
        [Style::ONE, Style::PIPELINED, Style::BATCHES].map(|style| publish(server, &ears, events, style));
    assert_eq!(ears.ended(), 0, "listeners were let go");
    Measured { runs, each, idle: before as f64 / 1024.0 }
}

impl Measured {
    /// The costs are those of one at a time, on the server's side.
    fn print(&self, listeners: usize, name: &str) {
        let [one, pipelined, batches] = self.runs;
        println!(
            "{listeners:>9} {name:>12} {:>10.0} {:>10.0} {:>10.0} {:>11.1} {:>10.2} {:>9.1} {:>9.1}",
            one.rate(),
            pipelined.rate(),
            batches.rate(),
            one.cost(),
            one.cost_each(),
            self.each,
            self.idle
        );
    }
}
