//! Spans and metrics to a collector: OTLP over HTTP, in its JSON form.
//!
//! - `encode`: the JSON.
//! - `post`: the way to the collector.
//! - [`Otlp`]: a queue with an end, and the thread that empties it. Nobody waits for the thread: what finds no place is
//!   dropped and counted, and what the collector does not take is dropped and counted, too.

mod encode;
mod post;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hub::watch::Count;
pub use post::{BadCollector, Collector};
use seal::{Random, SystemRandom};

use super::metrics::Family;
use super::{Kind, Level, Log};

/// How much is kept for a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtlpLimits {
    /// Spans that wait.
    pub queue: usize,
    /// Spans in one request.
    pub batch: usize,
    /// How often spans are sent.
    pub spans_every: Duration,
    /// How often metrics are sent.
    pub metrics_every: Duration,
    /// How long a request may take.
    pub patience: Duration,
}

impl Default for OtlpLimits {
    fn default() -> Self {
        Self {
            queue: 4_096,
            batch: 512,
            spans_every: Duration::from_secs(1),
            metrics_every: Duration::from_secs(10),
            patience: Duration::from_secs(5),
        }
    }
}

/// The way to a collector.
#[derive(Debug)]
pub struct Otlp {
    queue: SyncSender<Item>,
    shared: Arc<Shared>,
    limits: OtlpLimits,
    collector: String,
    begun: SystemTime,
    metrics_at: Mutex<Instant>,
    /// Whether the log knows that the collector is away.
    told: AtomicBool,
}

#[derive(Debug, Default)]
struct Shared {
    sent: Count,
    dropped: Count,
    failures: Count,
    away: AtomicBool,
}

#[derive(Debug)]
enum Item {
    Span(Span),
    Metrics(String),
    /// All that came before has been tried when this is answered.
    Flush(SyncSender<()>),
}

impl Otlp {
    /// Starts the thread.
    pub fn start(collector: Collector, limits: OtlpLimits) -> std::io::Result<Self> {
        let (queue, inbox) = sync_channel(limits.queue);
        let shared: Arc<Shared> = Arc::default();
        let name = collector.to_string();
        let thread = Sender { collector, limits, inbox, shared: shared.clone(), spans: Vec::new() };
        std::thread::Builder::new().name("otlp".to_owned()).spawn(move || thread.run())?;
        let metrics_at = Mutex::new(Instant::now());
        let told = AtomicBool::new(false);
        Ok(Self { queue, shared, limits, collector: name, begun: SystemTime::now(), metrics_at, told })
    }

    /// Spans that the collector took.
    pub fn sent(&self) -> u64 {
        self.shared.sent.get()
    }

    /// Spans that were dropped.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.get()
    }

    /// Requests that failed.
    pub fn failures(&self) -> u64 {
        self.shared.failures.get()
    }

    pub(super) fn give(&self, span: Span) {
        if self.queue.try_send(Item::Span(span)).is_err() {
            self.shared.dropped.add(1);
        }
    }

    pub(super) fn tick(&self, families: impl FnOnce() -> Vec<Family>, log: &Log) {
        self.tell(log);
        let mut at = self.metrics_at.lock().unwrap_or_else(PoisonError::into_inner);
        if at.elapsed() >= self.limits.metrics_every {
            *at = Instant::now();
            self.give_metrics(&families());
        }
    }

    /// Sends what there is, if the collector takes it within a moment.
    pub(super) fn close(&self, families: &[Family], log: &Log) {
        self.give_metrics(families);
        let (done, tried) = sync_channel(1);
        if self.queue.try_send(Item::Flush(done)).is_ok() {
            let _ = tried.recv_timeout(Duration::from_millis(1_500));
        }
        self.tell(log);
    }

    fn give_metrics(&self, families: &[Family]) {
        if self
            .queue
            .try_send(Item::Metrics(encode::metrics(families, self.begun, SystemTime::now())))
            .is_err()
        {
            self.shared.failures.add(1);
        }
    }

    fn tell(&self, log: &Log) {
        let away = self.shared.away.load(Ordering::Relaxed);
        if self.told.swap(away, Ordering::Relaxed) != away {
            let (level, kind) =
                if away { (Level::Warn, Kind::OtlpAway) } else { (Level::Info, Kind::OtlpBack) };
            let dropped = self.dropped().to_string();
            log.entry(level, kind, &[("collector", &self.collector), ("dropped", &dropped)]);
        }
    }
}

/// Which span this is, and of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trace {
    of: [u8; 16],
    span: [u8; 8],
    parent: Option<[u8; 8]>,
}

impl Trace {
    /// Names for a span: within the trace that the caller names, or the first of its own.
    pub(super) fn new(traceparent: Option<&str>) -> Self {
        let (mut of, mut span) = ([0; 16], [0; 8]);
        SystemRandom.fill(&mut of);
        SystemRandom.fill(&mut span);
        match traceparent.and_then(parent) {
            Some((of, parent)) => Self { of, span, parent: Some(parent) },
            None => Self { of, span, parent: None },
        }
    }
}

/// The trace and span of a `traceparent` header (W3C Trace Context §3.2).
fn parent(header: &str) -> Option<([u8; 16], [u8; 8])> {
    let mut parts = header.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    if version.len() != 2 || version == "ff" || parts.next()?.len() != 2 {
        return None;
    }
    let (trace, span) = (bytes::<16>(trace)?, bytes::<8>(span)?);
    (trace != [0; 16] && span != [0; 8]).then_some((trace, span))
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    if hex.len() != N * 2
        || !hex.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
    {
        return None;
    }
    let mut out = [0; N];
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(out)
}

/// Something that took time.
#[derive(Clone, Debug)]
pub(super) struct Span {
    name: String,
    trace: Trace,
    begun: SystemTime,
    ended: SystemTime,
    is_server: bool,
    failed: bool,
    texts: Vec<(&'static str, String)>,
    numbers: Vec<(&'static str, i64)>,
}

impl Span {
    pub(super) fn new(name: String, trace: Trace, begun: SystemTime, ended: SystemTime) -> Self {
        Self {
            name,
            trace,
            begun,
            ended,
            is_server: false,
            failed: false,
            texts: Vec::new(),
            numbers: Vec::new(),
        }
    }

    pub(super) fn server(mut self) -> Self {
        self.is_server = true;
        self
    }

    pub(super) fn failed(mut self) -> Self {
        self.failed = true;
        self
    }

    pub(super) fn with(mut self, name: &'static str, text: &str) -> Self {
        self.texts.push((name, text.to_owned()));
        self
    }

    pub(super) fn with_number(mut self, name: &'static str, number: i64) -> Self {
        self.numbers.push((name, number));
        self
    }
}

/// The thread.
struct Sender {
    collector: Collector,
    limits: OtlpLimits,
    inbox: Receiver<Item>,
    shared: Arc<Shared>,
    spans: Vec<Span>,
}

impl Sender {
    fn run(mut self) {
        let mut due = Instant::now() + self.limits.spans_every;
        loop {
            match self.inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Item::Span(span)) => self.spans.push(span),
                Ok(Item::Metrics(json)) => {
                    self.post("v1/metrics", &json);
                }
                Ok(Item::Flush(done)) => {
                    self.send();
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.send(),
            }
            if self.spans.len() >= self.limits.batch || Instant::now() >= due {
                self.send();
                due = Instant::now() + self.limits.spans_every;
            }
        }
    }

    fn send(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        let taken = self.post("v1/traces", &encode::spans(&spans));
        let count = if taken { &self.shared.sent } else { &self.shared.dropped };
        count.add(spans.len() as u64);
    }

    fn post(&self, path: &str, json: &str) -> bool {
        let taken = self.collector.post(path, json, self.limits.patience);
        if !taken {
            self.shared.failures.add(1);
        }
        self.shared.away.store(!taken, Ordering::Relaxed);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_taken_only_if_it_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let (trace, span) = parent(good).unwrap();
        assert_eq!((trace[0], span[1]), (0x4b, 0xf0));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-ää92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parent(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_collector_that_is_away_costs_spans_and_nothing_else() {
        // A port that the system hands out to nobody.
        let collector = Collector::parse("http://127.0.0.1:1").unwrap();
        let otlp = Otlp::start(collector, OtlpLimits { queue: 8, ..OtlpLimits::default() }).unwrap();
        for _ in 0..10_000 {
            let now = SystemTime::now();
            otlp.give(Span::new("a".to_owned(), Trace::new(None), now, now));
        }
        otlp.close(&[], &Log::silent());
        assert!(otlp.dropped() > 0 && otlp.failures() > 0 && otlp.sent() == 0);
    }
}
