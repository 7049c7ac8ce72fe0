//! What it costs an agent's author: an event through the embedded API, and a token of the model on its way to a listener, in
//! nanoseconds and allocations of memory. Beside them, in the same run, bare channels.
use std::alloc::System;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use aaep::event::Event;
use aaep::message::Boundary;
use aaep::shape::{Limits, Shaper, Wants};
use aaep::{Received, json::Writer};
use sayso::{Hub, Progress, Session};
use sayso_benches::load::{Agent, Ears, Process, Scale, Server};
use seal::UnixMillis;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::{mpsc, oneshot};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Of an event, in nanoseconds.
const GOAL: f64 = 3000.0;

fn main() {
    let scale = Scale::of_arguments();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return println!("no runtime") };
    println!(
        "{:<58} {:>9} {:>9} {:>9} {:>9}",
        "an event without durability", "ns", "to a send", "busy ns", "allocs"
    );
    let events = scale.pick(200_000, 2_000);
    let send = sends(events);
    row("a send on a bare channel to another thread", &send, &send);
    row("a send and an answer, one after the other", &runtime.block_on(answers(events / 4)), &send);
    for sessions in [1, 16, 256] {
        let name = format!("embedded, {sessions} sessions, each awaits its events");
        row(&name, &runtime.block_on(embedded(sessions, events / 4 / sessions, false)), &send);
    }
    let heard = runtime.block_on(embedded(16, events / 4 / 16, true));
    row("embedded, 16 sessions, and a listener over SSE", &heard, &send);
    println!(
        "goal: {GOAL:.0} ns an event; busy is the time that the thread which speaks was on a processor\n"
    );
    println!(
        "{:<58} {:>9} {:>9} {:>9} {:>9}",
        "a token through shaping", "ns", "to a send", "allocs", "a chunk"
    );
    for (name, boundaries) in [
        ("a listener by sentences", vec![Boundary::Sentence]),
        ("a listener by words", vec![Boundary::Word]),
        ("a listener by paragraphs", vec![Boundary::Paragraph]),
        ("a listener without coalescing", vec![Boundary::None]),
    ] {
        shaped(name, boundaries, scale.pick(200, 3), &send);
    }
    println!("goal: by sentences, no allocation between two boundaries and two at most for a chunk");
}

/// What one of something costs.
struct Cost {
    nanoseconds: f64,
    busy: f64,
    allocations: f64,
}

/// When something began.
struct Begun<'r> {
    at: Instant,
    busy: f64,
    region: Region<'r, System>,
}

fn begin() -> Begun<'static> {
    Begun { at: Instant::now(), busy: busy(), region: Region::new(ALLOCATOR) }
}

/// For how long this thread was on a processor, in nanoseconds.
fn busy() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(f64::NAN)
}

fn cost(count: usize, begun: &Begun<'_>) -> Cost {
    let elapsed = begun.at.elapsed();
    let change = begun.region.change();
    let made = change.allocations + change.reallocations;
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let each = |all: f64| all / count as f64;
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let made = made as f64;
    let nanoseconds = each(elapsed.as_secs_f64() * 1e9);
    Cost { nanoseconds, busy: each(busy() - begun.busy), allocations: each(made) }
}

fn row(name: &str, cost: &Cost, send: &Cost) {
    let times = cost.nanoseconds / send.nanoseconds;
    let Cost { nanoseconds, busy, allocations } = cost;
    println!("{name:<58} {nanoseconds:>9.0} {times:>9.1} {busy:>9.0} {allocations:>9.2}");
}

/// Sends to a thread that takes all there is.
fn sends(count: usize) -> Cost {
    let (sender, mut receiver) = mpsc::unbounded_channel::<usize>();
    let taker = std::thread::spawn(move || {
        let mut sum = 0;
        while let Some(one) = receiver.blocking_recv() {
            sum += one;
        }
        sum
    });
    let begun = begin();
    for one in 0..count {
        let _ = sender.send(one);
    }
    let cost = cost(count, &begun);
    drop(sender);
    let _ = black_box(taker.join());
    cost
}

/// Sends and waits for an answer: what any interface costs at least in which another thread answers.
async fn answers(count: usize) -> Cost {
    let (sender, mut receiver) = mpsc::unbounded_channel::<oneshot::Sender<usize>>();
    let answerer = std::thread::spawn(move || {
        while let Some(answer) = receiver.blocking_recv() {
            let _ = answer.send(1);
        }
    });
    let begun = begin();
    for _ in 0..count {
        let (answer, answered) = oneshot::channel();
        let _ = sender.send(answer);
        let _ = answered.await;
    }
    let cost = cost(count, &begun);
    drop(sender);
    let _ = answerer.join();
    cost
}

/// The hub in this process, for who listens to it.
struct Inside(String);

impl Server for Inside {
    fn address(&self) -> &str {
        &self.0
    }

    fn stream(&self, agent: &mut Agent) -> String {
        let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"bench","capabilities":{}}"#;
        let accepted = agent.post("/aaep/v1/subscriptions", request);
        let id = accepted.split("\"subscription_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        format!("/aaep/v1/events?subscription_id={}", id.unwrap_or_default())
    }

    fn request(&self, _: usize) -> (Vec<u8>, usize) {
        (Vec::new(), 0)
    }

    fn process(&self) -> Process {
        Process(std::process::id())
    }
}

/// Events of sessions that go on side by side.
async fn embedded(sessions: usize, each: usize, heard: bool) -> Cost {
    let Ok(hub) = Hub::embedded().agent("bench").listen("127.0.0.1:0").open() else {
        return Cost { nanoseconds: f64::NAN, busy: f64::NAN, allocations: f64::NAN };
    };
    let inside = hub.address().map(|address| Inside(address.to_string())).filter(|_| heard);
    let ears = inside.map(|inside| Ears::connect(&inside, 1, false));
    let mut open = Vec::new();
    for _ in 0..sessions {
        if let Ok(session) = hub.session("Measure.").start().await {
            open.push(session);
        }
    }
    work(&open, each / 10 + 1).await;
    let begun = begin();
    work(&open, each).await;
    let cost = cost(sessions * each, &begun);
    for session in open {
        let _ = session.finish("Measured.").await;
    }
    drop(ears);
    hub.close().await;
    cost
}

async fn work(sessions: &[Session], each: usize) {
    let one = async |session: &Session| {
        for _ in 0..each {
            if let Err(error) = session.progress(Progress::says("Half of it is done.")).await {
                println!("{error}");
            }
        }
    };
    let mut all: Vec<_> = sessions.iter().map(|session| Box::pin(one(session))).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// A text as a model makes it: a token is a piece of a word.
fn tokens() -> Vec<String> {
    let text = "Your checking account holds twelve thousand five hundred dollars. Two payments are planned for this week, the \
        rent and the insurance. Nothing else needs your attention today. I can look at the savings account as well, if you \
        want me to.\n\nThe rent is due on Monday; it is paid by itself. ";
    let mut tokens = Vec::new();
    let mut letters = text.repeat(8).chars().collect::<Vec<_>>().into_iter();
    loop {
        let token: String = letters.by_ref().take(4).collect();
        if token.is_empty() {
            return tokens;
        }
        tokens.push(token);
    }
}

fn event(session: usize, position: usize, token: &str, complete: bool) -> Option<Arc<Received<Event>>> {
    let mut out = Writer::default();
    out.open_object();
    for (name, text) in [
        ("@context", "https://aaep-protocol.org/context/v1"),
        ("type", "aaep:agent.output.streaming"),
        ("event_id", &*format!("evt_{session}x{position}")),
        ("session_id", &*format!("sess_{session}")),
        ("timestamp", "2026-11-15T12:00:00.000Z"),
        ("chunk", token),
        ("coalesce_hint", "none"),
    ] {
        out.key(name);
        out.text(text);
    }
    out.key("producer");
    out.raw(r#"{"agent_id":"bench"}"#);
    out.key("position");
    out.integer(i64::try_from(position).ok()?);
    out.key("complete");
    out.boolean(complete);
    out.close_object();
    Received::<Event>::parse(out.finish()).map(Arc::new)
}

fn shaped(name: &str, boundaries: Vec<Boundary>, outputs: usize, send: &Cost) {
    let tokens = tokens();
    let events = |session| -> Vec<_> {
        let mut position = 0;
        let all = tokens.iter().enumerate().filter_map(|(at, token)| {
            let made = event(session, position, token, at + 1 == tokens.len());
            position += token.chars().count();
            made
        });
        all.collect()
    };
    let mut shaper = Shaper::new(Arc::new(Wants { boundaries, ..Wants::default() }), Limits::default());
    let (mut time, mut between, mut sending, mut chunks, mut quiet) = (0.0, 0, 0, 0, 0_usize);
    for session in 0..=outputs {
        let events = events(session);
        for event in &events {
            let (since, region) = (Instant::now(), Region::new(ALLOCATOR));
            shaper.push(event);
            let mut left = 0;
            while let Some(out) = shaper.pull(UnixMillis::new(0)) {
                drop(black_box(out));
                left += 1;
            }
            let change = region.change();
            // The first output warms it up.
            if session > 0 {
                time += since.elapsed().as_secs_f64() * 1e9;
                let made = change.allocations + change.reallocations;
                if left == 0 {
                    (between, quiet) = (between + made, quiet + 1);
                } else {
                    (sending, chunks) = (sending + made, chunks + left);
                }
            }
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let each = |all: f64, count: usize| all / count.max(1) as f64;
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let (between, sending) = (between as f64, sending as f64);
    let nanoseconds = each(time, tokens.len() * outputs);
    println!(
        "{name:<58} {nanoseconds:>9.0} {:>9.1} {:>9.3} {:>9.2}",
        nanoseconds / send.nanoseconds,
        each(between, quiet),
        each(sending, chunks)
    );
}
