//! The cost of publishing an event through the embedded hub, and of shaping a model's token for a listener, in nanoseconds
//! and allocations. Compared in the same run with bare channels.
use std::alloc::System;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use aaep::event::Event;
use aaep::message::Boundary;
use aaep::shaping::{Shaper, ShaperLimits, ShapingTerms};
use aaep::{ParsedDocument, json::JsonWriter};
use sayso::{Hub, ProgressUpdate, Session};
use sayso_benches::load::{KeepAliveClient, ListenerPool, ProcessStats, Scale, Server};
use seal::UnixMillis;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::{mpsc, oneshot};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The goal for one event, in nanoseconds.
const GOAL_NANOS: f64 = 3000.0;

fn main() {
    let scale = Scale::from_args();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return println!("cannot create a Tokio runtime") };
    println!(
        "{:<58} {:>9} {:>9} {:>9} {:>9}",
        "event without durability", "ns", "vs send", "cpu ns", "allocs"
    );
    let events = scale.pick(200_000, 2_000);
    let send = bench_channel_sends(events);
    print_row("send on a bare channel to another thread", &send, &send);
    print_row(
        "send and reply, one after the other",
        &runtime.block_on(bench_channel_round_trips(events / 4)),
        &send,
    );
    for sessions in [1, 16, 256] {
        let name = format!("embedded, {sessions} sessions, each awaits its events");
        print_row(&name, &runtime.block_on(bench_embedded(sessions, events / 4 / sessions, false)), &send);
    }
    let with_listener = runtime.block_on(bench_embedded(16, events / 4 / 16, true));
    print_row("embedded, 16 sessions, with a listener over SSE", &with_listener, &send);
    println!("goal: {GOAL_NANOS:.0} ns per event; cpu ns is the CPU time of the publishing thread\n");
    println!(
        "{:<58} {:>9} {:>9} {:>9} {:>9}",
        "token through shaping", "ns", "vs send", "allocs", "per chunk"
    );
    for (name, boundaries) in [
        ("a listener by sentences", vec![Boundary::Sentence]),
        ("a listener by words", vec![Boundary::Word]),
        ("a listener by paragraphs", vec![Boundary::Paragraph]),
        ("a listener without coalescing", vec![Boundary::None]),
    ] {
        bench_shaping(name, boundaries, scale.pick(200, 3), &send);
    }
    println!("goal: by sentences, no allocation between two boundaries and at most two per chunk");
}

/// The cost of one operation.
struct OperationCost {
    nanos: f64,
    cpu_nanos: f64,
    allocations: f64,
}

/// The start of a measurement.
struct CostMeasurement<'r> {
    started: Instant,
    cpu_nanos_before: f64,
    region: Region<'r, System>,
}

fn start_measurement() -> CostMeasurement<'static> {
    CostMeasurement {
        started: Instant::now(),
        cpu_nanos_before: thread_cpu_nanos(),
        region: Region::new(ALLOCATOR),
    }
}

/// Returns the CPU time of this thread, in nanoseconds.
fn thread_cpu_nanos() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(f64::NAN)
}

/// Returns the cost of each of `count` operations since the start of the measurement.
fn finish_measurement(count: usize, measurement: &CostMeasurement<'_>) -> OperationCost {
    let elapsed = measurement.started.elapsed();
    let change = measurement.region.change();
    let allocations_made = change.allocations + change.reallocations;
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let each = |all: f64| all / count as f64;
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let allocations_made = allocations_made as f64;
    OperationCost {
        nanos: each(elapsed.as_secs_f64() * 1e9),
        cpu_nanos: each(thread_cpu_nanos() - measurement.cpu_nanos_before),
        allocations: each(allocations_made),
    }
}

fn print_row(name: &str, cost: &OperationCost, send: &OperationCost) {
    let ratio = cost.nanos / send.nanos;
    let OperationCost { nanos, cpu_nanos, allocations } = cost;
    println!("{name:<58} {nanos:>9.0} {ratio:>9.1} {cpu_nanos:>9.0} {allocations:>9.2}");
}

/// Sends to a thread that receives everything.
fn bench_channel_sends(count: usize) -> OperationCost {
    let (sender, mut receiver) = mpsc::unbounded_channel::<usize>();
    let receiver_thread = std::thread::spawn(move || {
        let mut sum = 0;
        while let Some(value) = receiver.blocking_recv() {
            sum += value;
        }
        sum
    });
    let measurement = start_measurement();
    for value in 0..count {
        let _ = sender.send(value);
    }
    let cost = finish_measurement(count, &measurement);
    drop(sender);
    let _ = black_box(receiver_thread.join());
    cost
}

/// Sends and waits for a reply: the minimum cost of any interface in which another thread replies.
async fn bench_channel_round_trips(count: usize) -> OperationCost {
    let (sender, mut receiver) = mpsc::unbounded_channel::<oneshot::Sender<usize>>();
    let reply_thread = std::thread::spawn(move || {
        while let Some(reply) = receiver.blocking_recv() {
            let _ = reply.send(1);
        }
    });
    let measurement = start_measurement();
    for _ in 0..count {
        let (reply, reply_receiver) = oneshot::channel();
        let _ = sender.send(reply);
        let _ = reply_receiver.await;
    }
    let cost = finish_measurement(count, &measurement);
    drop(sender);
    let _ = reply_thread.join();
    cost
}

/// The embedded hub, for the listener pool.
struct EmbeddedServer(String);

impl Server for EmbeddedServer {
    fn address(&self) -> &str {
        &self.0
    }

    fn subscribe_and_get_stream_path(&self, client: &mut KeepAliveClient) -> String {
        let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"bench","capabilities":{}}"#;
        let accepted = client.post("/aaep/v1/subscriptions", request);
        let id = accepted.split("\"subscription_id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        format!("/aaep/v1/events?subscription_id={}", id.unwrap_or_default())
    }

    fn publish_request(&self, _: usize) -> (Vec<u8>, usize) {
        (Vec::new(), 0)
    }

    fn process(&self) -> ProcessStats {
        ProcessStats(std::process::id())
    }
}

/// Publishes events in concurrent sessions.
async fn bench_embedded(sessions: usize, events_per_session: usize, with_listener: bool) -> OperationCost {
    let Ok(hub) = Hub::embedded().agent("bench").listen("127.0.0.1:0").open() else {
        return OperationCost { nanos: f64::NAN, cpu_nanos: f64::NAN, allocations: f64::NAN };
    };
    let server = hub.address().map(|address| EmbeddedServer(address.to_string())).filter(|_| with_listener);
    let listeners = server.map(|server| ListenerPool::connect(&server, 1, false));
    let mut open = Vec::new();
    for _ in 0..sessions {
        if let Ok(session) = hub.session("Measure.").start().await {
            open.push(session);
        }
    }
    publish_progress(&open, events_per_session / 10 + 1).await;
    let measurement = start_measurement();
    publish_progress(&open, events_per_session).await;
    let cost = finish_measurement(sessions * events_per_session, &measurement);
    for session in open {
        let _ = session.finish("Measured.").await;
    }
    drop(listeners);
    hub.close().await;
    cost
}

async fn publish_progress(sessions: &[Session], events_per_session: usize) {
    let publish = async |session: &Session| {
        for _ in 0..events_per_session {
            if let Err(error) = session.progress(ProgressUpdate::new("Half of it is done.")).await {
                println!("{error}");
            }
        }
    };
    let mut all: Vec<_> = sessions.iter().map(|session| Box::pin(publish(session))).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|task| task.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Splits a text into tokens of the size that models produce.
fn tokens() -> Vec<String> {
    let text = "Your checking account holds twelve thousand five hundred dollars. Two payments are planned for this week, the \
        rent and the insurance. Nothing else needs your attention today. I can look at the savings account as well, if you \
        want me to.\n\nThe rent is due on Monday; it is paid by itself. ";
    let mut tokens = Vec::new();
    let mut characters = text.repeat(8).chars().collect::<Vec<_>>().into_iter();
    loop {
        let token: String = characters.by_ref().take(4).collect();
        if token.is_empty() {
            return tokens;
        }
        tokens.push(token);
    }
}

fn event(session: usize, position: usize, token: &str, complete: bool) -> Option<Arc<ParsedDocument<Event>>> {
    let mut out = JsonWriter::default();
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
    ParsedDocument::<Event>::parse(out.finish()).map(Arc::new)
}

fn bench_shaping(name: &str, boundaries: Vec<Boundary>, outputs: usize, send: &OperationCost) {
    let tokens = tokens();
    let events = |session| -> Vec<_> {
        let mut position = 0;
        let all = tokens.iter().enumerate().filter_map(|(at, token)| {
            let parsed = event(session, position, token, at + 1 == tokens.len());
            position += token.chars().count();
            parsed
        });
        all.collect()
    };
    let mut shaper = Shaper::new(
        Arc::new(ShapingTerms { boundaries, ..ShapingTerms::default() }),
        ShaperLimits::default(),
    );
    let (mut total_nanos, mut held_allocations, mut chunk_allocations, mut chunks, mut held_tokens) =
        (0.0, 0, 0, 0, 0_usize);
    for session in 0..=outputs {
        let events = events(session);
        for event in &events {
            let (started, region) = (Instant::now(), Region::new(ALLOCATOR));
            shaper.push(event);
            let mut chunk_count = 0;
            while let Some(out) = shaper.pull(UnixMillis::new(0)) {
                drop(black_box(out));
                chunk_count += 1;
            }
            let change = region.change();
            // The first output only warms up the shaper.
            if session > 0 {
                total_nanos += started.elapsed().as_secs_f64() * 1e9;
                let allocations_made = change.allocations + change.reallocations;
                // Without a chunk, the shaper holds the token until the next boundary.
                if chunk_count == 0 {
                    (held_allocations, held_tokens) = (held_allocations + allocations_made, held_tokens + 1);
                } else {
                    (chunk_allocations, chunks) =
                        (chunk_allocations + allocations_made, chunks + chunk_count);
                }
            }
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let each = |all: f64, count: usize| all / count.max(1) as f64;
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let (held_allocations, chunk_allocations) = (held_allocations as f64, chunk_allocations as f64);
    let nanos = each(total_nanos, tokens.len() * outputs);
    println!(
        "{name:<58} {nanos:>9.0} {:>9.1} {:>9.3} {:>9.2}",
        nanos / send.nanos,
        each(held_allocations, held_tokens),
        each(chunk_allocations, chunks)
    );
}
