//! How soon a question is heard, and how soon its answer wakes the agent.
//!
//! The commit itself cannot be seen from outside. It lies between the moment at which the question is sent and the one at
//! which the agent is told that it is stored. So two times are printed: from sent, which is never too short and is what is
//! held against the goal, and after stored, which is never too long (0 where it was heard before the agent was told).
//! Under the flood every listener gets half the events a second that were the most before; each event has its time,
//! whatever became of the one before it.
#![allow(clippy::cast_precision_loss)]

use std::collections::HashMap;
use std::time::Duration;

use sayso_benches::load::{Asked, Asker, Ears, Flood, Histogram, Hub, Scale, Slow, Store, Style, publish};

fn main() {
    let scale = Scale::of_arguments();
    let (listeners, questions) = (scale.pick(100, 5), scale.pick(400, 10));
    let hub = Hub::start(Store::Disk);
    let ears = Ears::connect(&hub, listeners, true);
    let answers = hub.subscribe(&mut hub.agent());
    let _present = Slow::listen(&hub, &answers, 1_000_000);
    let mut asker = Asker::new(&hub, &answers);

    println!("{questions} questions to {listeners} listeners; milliseconds");
    println!(
        "{:<26} {:>8} {:>8} {:>8} {:>10} {:>10} {:>8} {:>8}",
        "", "sent p50", "p99", "most", "stored p50", "p99", "wake p50", "p99"
    );
    let calm = Run::of(&mut asker, &ears, questions);
    calm.print("unloaded");
    let most = publish(&hub, &ears, scale.pick(5_000, 500), Style::BATCHES).events();
    let flood = Flood::start(&hub, most / 2.0);
    std::thread::sleep(scale.pick(Duration::from_secs(1), Duration::from_millis(100)));
    ears.floods();
    let loaded = Run::of(&mut asker, &ears, questions);
    let made = flood.stop();
    loaded.print("flooded by half the most");
    let floods = ears.floods();
    println!(
        "flood: {:.0} events a second of {most:.0} at most, sent at most {:.1} ms late; its own p50 {:.2}, p99 {:.2}",
        made.rate,
        made.latest,
        floods.p50(),
        floods.p99()
    );
    println!("streams that were ended: {}", ears.ended());
    let bound = (3.0 * calm.sent.p99()).max(5.0);
    println!(
        "p99 under the flood is {:.2} times that without (goal 3.00, or 5 ms: {:.2} of {bound:.2} ms)",
        loaded.sent.p99() / calm.sent.p99(),
        loaded.sent.p99()
    );
    drop(ears);
    slow(scale);
}

/// A listener that reads 200 events a second while 1,000 are made, with the buffers that the system gives it.
fn slow(scale: Scale) {
    let hub = Hub::start(Store::Disk);
    let mut agent = hub.agent();
    let (subscription, answers) = (hub.subscribe(&mut agent), hub.subscribe(&mut agent));
    let reader = Slow::listen(&hub, &subscription, 200);
    let present = Slow::listen(&hub, &answers, 1_000_000);
    let mut asker = Asker::new(&hub, &answers);
    let flood = Flood::start(&hub, 1_000.0);
    // Long enough that every buffer on the way is full, and not so long that a connection without a request is ended.
    std::thread::sleep(scale.pick(Duration::from_secs(8), Duration::from_secs(4)));
    for _ in 0..scale.pick(12, 2) {
        asker.ask(Duration::from_millis(1_500));
    }
    std::thread::sleep(Duration::from_secs(1));
    flood.stop();
    present.end();
    let read = reader.end();
    let heard: Histogram = read.asked.iter().map(|(stamp, at)| at - stamp).collect();
    println!(
        "a listener that reads 200 a second while 1,000 are made: {} of {} questions heard, p50 {:.0} ms, at most {:.0} ms (goal 1,000)",
        heard.len(),
        scale.pick(12, 2),
        heard.p50(),
        heard.most()
    );
    let ended = if read.ended { "the server ended its stream" } else { "its stream was kept" };
    println!("it read {} events, the oldest {:.0} ms old; {ended}", read.events, read.oldest);
}

struct Run {
    sent: Histogram,
    stored: Histogram,
    woken: Histogram,
}

impl Run {
    fn of(asker: &mut Asker, ears: &Ears, questions: usize) -> Self {
        ears.asked();
        let asked: Vec<Asked> = (0..questions).map(|_| asker.ask(Duration::from_millis(10))).collect();
        std::thread::sleep(Duration::from_secs(1));
        let heard = ears.asked();
        assert_eq!(heard.len(), questions * ears.count, "every listener hears every question");
        let stored: HashMap<u64, u64> = asked.iter().map(|one| (one.sent, one.stored)).collect();
        Self {
            sent: heard.iter().map(|(stamp, at)| at - stamp).collect(),
            stored: heard.iter().map(|(stamp, at)| at.saturating_sub(stored[stamp])).collect(),
            woken: asked.iter().map(|one| one.woken - one.answered).collect(),
        }
    }

    fn print(&self, name: &str) {
        let Self { sent, stored, woken } = self;
        println!(
            "{name:<26} {:>8.2} {:>8.2} {:>8.2} {:>10.2} {:>10.2} {:>8.2} {:>8.2}",
            sent.p50(),
            sent.p99(),
            sent.most(),
            stored.p50(),
            stored.p99(),
            woken.p50(),
            woken.p99()
        );
    }
}
