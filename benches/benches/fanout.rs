//! Delivered events per second: one hub process with its journal on disk, one publishing agent, and 1, 100 or 5,000 listeners
//! over SSE, all on this machine. In the same run and with the same readers, nginx with nchan (which stores nothing) and a
//! bare loop of one write per listener and event are measured for comparison.
#![allow(clippy::cast_precision_loss)]

use sayso_benches::load::{
    BenchHub, ListenerPool, Nchan, PublishMode, PublishResult, Scale, Server, Store, baseline_writes,
    frame_len, publish,
};

fn main() {
    let scale = Scale::from_args();
    println!("delivered events per second; the frame of an event has {} bytes", frame_len());
    println!(
        "one: each event is acknowledged before the next; pipelined: 16 open requests; batches: of 100 events; us: CPU time of the server in the run \"one\""
    );
    println!(
        "{:>9} {:>12} {:>10} {:>10} {:>10} {:>11} {:>10} {:>9} {:>9}",
        "listeners", "", "one", "pipelined", "batches", "us/event", "us/deliv.", "KiB each", "MiB idle"
    );
    for listeners in scale.pick([1, 100, 5_000], [1, 3, 20]) {
        let events = scale.pick((2_000_000 / listeners).clamp(400, 3_000), 100);
        let hub = measure(&BenchHub::start(Store::Disk), listeners, events);
        hub.print(listeners, "sayso");
        let bare = baseline_writes(listeners, events.min(1_000));
        println!("{listeners:>9} {:>12} {bare:>10.0}", "bare writes");
        let to_bare = hub.runs.map(|run| run.deliveries_per_second() / bare);
        println!("{:>22} {:>10.2} {:>10.2} {:>10.2}", "vs bare", to_bare[0], to_bare[1], to_bare[2]);
        let nchan = match Nchan::start() {
            Ok(nchan) => measure(&nchan, listeners, events),
            Err(error) => {
                println!("{listeners:>9} nchan: {error}");
                continue;
            }
        };
        nchan.print(listeners, "nchan");
        let ratio = |at: usize| hub.runs[at].deliveries_per_second() / nchan.runs[at].deliveries_per_second();
        println!(
            "{:>22} {:>10.2} {:>10.2} {:>10.2} {:>11.2} {:>10.2} {:>9.2}",
            "vs nchan",
            ratio(0),
            ratio(1),
            ratio(2),
            hub.runs[0].cpu_micros_per_event() / nchan.runs[0].cpu_micros_per_event(),
            hub.runs[0].cpu_micros_per_delivery() / nchan.runs[0].cpu_micros_per_delivery(),
            hub.kib_per_listener / nchan.kib_per_listener
        );
    }
    println!(
        "goals: one at a time, 1.50 times nchan with 100 listeners in each of five runs, and 2.00 times with 5,000; batches, 600,000 per second with 100 listeners; less memory than nchan, ideally 4 KiB"
    );
}

struct FanoutResult {
    runs: [PublishResult; 3],
    /// Memory per idle listener, in KiB.
    kib_per_listener: f64,
    /// Memory without listeners, in MiB.
    idle_mib: f64,
}

fn measure(server: &impl Server, listeners: usize, events: usize) -> FanoutResult {
    let before = server.process().resident_kib();
    let listener_pool = ListenerPool::connect(server, listeners, false);
    let kib_per_listener = server.process().resident_kib().saturating_sub(before) as f64 / listeners as f64;
    let runs = [PublishMode::ONE_AT_A_TIME, PublishMode::PIPELINED, PublishMode::BATCHES]
        .map(|mode| publish(server, &listener_pool, events, mode));
    assert_eq!(listener_pool.ended_streams(), 0, "listeners were disconnected");
    FanoutResult { runs, kib_per_listener, idle_mib: before as f64 / 1024.0 }
}

impl FanoutResult {
    /// Prints the result. The CPU costs are those of the server when it gets one event at a time.
    fn print(&self, listeners: usize, name: &str) {
        let [one, pipelined, batches] = self.runs;
        println!(
            "{listeners:>9} {name:>12} {:>10.0} {:>10.0} {:>10.0} {:>11.1} {:>10.2} {:>9.1} {:>9.1}",
            one.deliveries_per_second(),
            pipelined.deliveries_per_second(),
            batches.deliveries_per_second(),
            one.cpu_micros_per_event(),
            one.cpu_micros_per_delivery(),
            self.kib_per_listener,
            self.idle_mib
        );
    }
}
