//! How long a question takes to reach listeners, and its answer to wake the agent.
//!
//! The hub commits a question after the agent sends it, and before the agent receives the response that confirms it is
//! stored. The commit itself cannot be observed from outside. So two times are printed: the time since sending, which is an upper bound and is compared
//! with the goal, and the time since the response, which is a lower bound (0 if a listener got the question first).
//! The load is half of the maximum event rate measured before. It is open-loop: each event is sent at its scheduled time,
//! even if earlier events are delayed.
#![allow(clippy::cast_precision_loss)]

use std::collections::HashMap;
use std::time::Duration;

use sayso_benches::load::{
    BenchHub, FixedRateLoad, Histogram, ListenerPool, PublishMode, QuestionDriver, QuestionTimes, Scale,
    Store, ThrottledListener, publish,
};

fn main() {
    let scale = Scale::from_args();
    let (listeners, questions) = (scale.pick(100, 5), scale.pick(400, 10));
    let hub = BenchHub::start(Store::Disk);
    let listener_pool = ListenerPool::connect(&hub, listeners, true);
    let answering_subscription = hub.subscribe(&mut hub.connect());
    let _answering_listener = ThrottledListener::listen(&hub, &answering_subscription, 1_000_000);
    let mut driver = QuestionDriver::new(&hub, &answering_subscription);

    println!("{questions} questions to {listeners} listeners; milliseconds");
    println!(
        "{:<26} {:>8} {:>8} {:>8} {:>10} {:>10} {:>8} {:>8}",
        "", "sent p50", "p99", "max", "stored p50", "p99", "wake p50", "p99"
    );
    let unloaded = QuestionRun::measure(&mut driver, &listener_pool, questions);
    unloaded.print("unloaded");
    let max_rate =
        publish(&hub, &listener_pool, scale.pick(5_000, 500), PublishMode::BATCHES).events_per_second();
    let load = FixedRateLoad::start(&hub, max_rate / 2.0);
    std::thread::sleep(scale.pick(Duration::from_secs(1), Duration::from_millis(100)));
    listener_pool.take_event_latencies();
    let loaded = QuestionRun::measure(&mut driver, &listener_pool, questions);
    let load_result = load.stop();
    loaded.print("under half the maximum load");
    let event_latencies = listener_pool.take_event_latencies();
    println!(
        "load: {:.0} events per second of a maximum of {max_rate:.0}, sent at most {:.1} ms late; event p50 {:.2}, p99 {:.2}",
        load_result.rate,
        load_result.max_delay_millis,
        event_latencies.p50_millis(),
        event_latencies.p99_millis()
    );
    println!("closed streams: {}", listener_pool.ended_streams());
    let goal_millis = (3.0 * unloaded.sent.p99_millis()).max(5.0);
    println!(
        "p99 under load: {:.2} ms, {:.2} times the unloaded p99 (goal: at most 3 times or 5 ms, whichever is larger, here {goal_millis:.2} ms)",
        loaded.sent.p99_millis(),
        loaded.sent.p99_millis() / unloaded.sent.p99_millis()
    );
    drop(listener_pool);
    bench_slow_listener(scale);
}

/// A listener that reads 200 events per second while 1,000 are published, with default socket buffers.
fn bench_slow_listener(scale: Scale) {
    let hub = BenchHub::start(Store::Disk);
    let mut agent = hub.connect();
    let (subscription, answering_subscription) = (hub.subscribe(&mut agent), hub.subscribe(&mut agent));
    let reader = ThrottledListener::listen(&hub, &subscription, 200);
    let answering_listener = ThrottledListener::listen(&hub, &answering_subscription, 1_000_000);
    let mut driver = QuestionDriver::new(&hub, &answering_subscription);
    let load = FixedRateLoad::start(&hub, 1_000.0);
    // Long enough to fill every buffer, but not so long that an idle connection is closed.
    std::thread::sleep(scale.pick(Duration::from_secs(8), Duration::from_secs(4)));
    for _ in 0..scale.pick(12, 2) {
        driver.ask(Duration::from_millis(1_500));
    }
    std::thread::sleep(Duration::from_secs(1));
    load.stop();
    answering_listener.stop();
    let read = reader.stop();
    let arrivals: Histogram = read.question_arrivals.iter().map(|(stamp, at)| at - stamp).collect();
    println!(
        "a listener that reads 200 events per second of 1,000: {} of {} questions received, p50 {:.0} ms, at most {:.0} ms (goal 1,000)",
        arrivals.len(),
        scale.pick(12, 2),
        arrivals.p50_millis(),
        arrivals.max_millis()
    );
    let ended =
        if read.was_closed_by_server { "the server closed its stream" } else { "its stream stayed open" };
    println!("it read {} events, the oldest {:.0} ms old; {ended}", read.events, read.max_age_millis);
}

struct QuestionRun {
    sent: Histogram,
    stored: Histogram,
    woken: Histogram,
}

impl QuestionRun {
    fn measure(driver: &mut QuestionDriver, listener_pool: &ListenerPool, questions: usize) -> Self {
        listener_pool.take_question_arrivals();
        let question_times: Vec<QuestionTimes> =
            (0..questions).map(|_| driver.ask(Duration::from_millis(10))).collect();
        std::thread::sleep(Duration::from_secs(1));
        let arrivals = listener_pool.take_question_arrivals();
        assert_eq!(arrivals.len(), questions * listener_pool.count, "every listener gets every question");
        let stored: HashMap<u64, u64> =
            question_times.iter().map(|times| (times.sent, times.stored)).collect();
        Self {
            sent: arrivals.iter().map(|(stamp, at)| at - stamp).collect(),
            stored: arrivals.iter().map(|(stamp, at)| at.saturating_sub(stored[stamp])).collect(),
            woken: question_times.iter().map(|times| times.woken - times.answered).collect(),
        }
    }

    fn print(&self, name: &str) {
        let Self { sent, stored, woken } = self;
        println!(
            "{name:<26} {:>8.2} {:>8.2} {:>8.2} {:>10.2} {:>10.2} {:>8.2} {:>8.2}",
            sent.p50_millis(),
            sent.p99_millis(),
            sent.max_millis(),
            stored.p50_millis(),
            stored.p99_millis(),
            woken.p50_millis(),
            woken.p99_millis()
        );
    }
}
