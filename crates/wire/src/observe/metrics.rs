//! All numbers, as families of samples, as Prometheus reads them.

use std::time::SystemTime;

use hub::watch::Labelled;

use super::counters::Wire;
use super::histogram::Snapshot;
use super::{Observe, process};

/// Samples of one name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Family {
    /// Without the `_total` of a counter.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Counter(Vec<Sample>),
    Gauge(Vec<Sample>),
    Histogram(Snapshot),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: f64,
}

pub(super) fn families(observe: &Observe) -> Vec<Family> {
    let mut all = Families(Vec::new());
    let version = vec![sample("version", env!("CARGO_PKG_VERSION"), 1)];
    all.add("sayso_build_info", "The version that runs.", Value::Gauge(version));
    all.gauge("sayso_uptime_seconds", "Seconds since the start.", observe.begun.elapsed().as_secs());
    let begun = observe.begun_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    all.gauge("process_start_time_seconds", "When it started, in seconds since 1970.", begun);
    if let Some(bytes) = process::resident() {
        all.gauge("process_resident_memory_bytes", "Memory in use.", bytes);
    }
    if let Some(open) = process::descriptors() {
        all.gauge("process_open_fds", "Open file descriptors.", open);
    }
    if let Some(hub) = observe.hub.get() {
        all.hub(hub);
    }
    all.storage(observe);
    all.wire(observe);
    all.0
}

struct Families(Vec<Family>);

impl Families {
    fn add(&mut self, name: &'static str, help: &'static str, value: Value) {
        self.0.push(Family { name, help, value });
    }

    fn counter(&mut self, name: &'static str, help: &'static str, count: u64) {
        self.add(name, help, Value::Counter(vec![plain(count)]));
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.add(name, help, Value::Gauge(vec![plain(value)]));
    }

    fn by(&mut self, name: &'static str, help: &'static str, counts: &Labelled, labels: &[&'static str]) {
        let samples = counts.all().into_iter().map(|(values, count)| Sample {
            labels: labels.iter().copied().zip(values).collect(),
            ..plain(count)
        });
        self.add(name, help, Value::Counter(samples.collect()));
    }

    fn hub(&mut self, hub: &hub::Counters) {
        self.counter("sayso_turns", "Turns of the hub.", hub.turns.get());
        self.counter("sayso_events_published", "Events that are on disk.", hub.events.get());
        let help = "Rules that refused requests of agents broke, by rule.";
        self.by("sayso_events_refused", help, &hub.refused, &["rule"]);
        self.counter("sayso_sessions_started", "Sessions that were started.", hub.sessions_started.get());
        self.counter("sayso_sessions_ended", "Sessions that have ended.", hub.sessions_ended.get());
        self.gauge("sayso_sessions_open", "Sessions that are open.", hub.sessions_open.get());
        let help = "Subscriptions that were accepted.";
        self.counter("sayso_subscriptions_accepted", help, hub.subscriptions_accepted.get());
        let help = "Subscriptions that were rejected, by reason code.";
        self.by("sayso_subscriptions_rejected", help, &hub.subscriptions_rejected, &["reason"]);
        self.gauge("sayso_subscriptions_open", "Subscriptions that are open.", hub.subscriptions_open.get());
        let outcomes = [("complete", &hub.resumes_complete), ("gap", &hub.resumes_gap)];
        let outcomes = outcomes.map(|(word, count)| sample("outcome", word, count.get())).into();
        let help = "Listeners that came back: told all that they missed, or only the present.";
        self.add("sayso_resumes", help, Value::Counter(outcomes));
        self.counter("sayso_questions_asked", "Questions that were asked.", hub.questions_asked.get());
        self.gauge("sayso_questions_open", "Questions that are open.", hub.questions_open.get());
        let help = "Questions that were resolved, by what and how.";
        self.by("sayso_questions_resolved", help, &hub.questions_resolved, &["by", "decision"]);
        let help = "Times that a person was given more time.";
        self.counter("sayso_questions_extended", help, hub.questions_extended.get());
        let help = "Accepted questions that were spent on a call.";
        self.counter("sayso_consents_spent", help, hub.consents_spent.get());
        let help = "Replies, by what came of them: taken, or why not.";
        self.by("sayso_replies", help, &hub.replies, &["verdict"]);
        self.counter("sayso_requests_full", "Requests refused because too much is open.", hub.full.get());
    }

    fn storage(&mut self, observe: &Observe) {
        let storage = &observe.storage;
        let help = "How long a commit to the journal took.";
        self.add("sayso_commit_seconds", help, Value::Histogram(storage.seconds.snapshot()));
        let help = "Entries in a commit to the journal.";
        self.add("sayso_commit_entries", help, Value::Histogram(storage.entries.snapshot()));
        self.counter("sayso_commit_failures", "Commits that failed.", storage.failures.get());
        let help = "When a commit failed last, in seconds since 1970; 0 if none has.";
        self.gauge("sayso_last_commit_failure_timestamp_seconds", help, storage.last_failure.get());
        let help = "1 if the last commit was written, 0 if it failed.";
        self.gauge("sayso_storage_good", help, u64::from(!observe.cannot_store()));
        self.gauge("sayso_journal_bytes", "Bytes that the journal takes.", storage.bytes.get());
    }

    fn wire(&mut self, observe: &Observe) {
        let (counters, sent) = (&observe.counters, observe.sent.get());
        if let Some(sent) = sent {
            self.counter("sayso_frames_sent", "Frames handed to listeners.", sent.frames.get());
            self.counter("sayso_bytes_sent", "Bytes of these frames.", sent.bytes.get());
            let help = "Listeners that could not keep up and were disconnected.";
            self.counter("sayso_listeners_slow", help, sent.too_slow.get());
        }
        let wires = Wire::ALL.map(|wire| {
            let streams = sent.filter(|_| wire == Wire::Sse).map_or(0, |sent| sent.streams.get());
            sample("wire", wire.word(), counters.listeners(wire).get() + streams)
        });
        self.add("sayso_listeners", "Connections that listen, by wire.", Value::Gauge(wires.into()));
        let help = "Requests, by route and class of status.";
        self.by("sayso_http_requests", help, &counters.requests, &["route", "status"]);
        let help = "Requests without a token that is known.";
        self.counter("sayso_logins_refused", help, counters.logins_refused.get());
        self.counter("sayso_connections", "Connections that came.", counters.connections.get());
        let help = "Connections for which there was no place.";
        self.counter("sayso_connections_refused", help, counters.connections_refused.get());
        let help = "Connections that are open and not streams.";
        self.gauge("sayso_connections_open", help, counters.connections_open.get());
        self.counter("sayso_log_lines_left_out", "Lines left out of the log.", observe.log.left_out());
    }
}

fn sample(name: &'static str, label: &str, value: u64) -> Sample {
    Sample { labels: vec![(name, label.to_owned())], ..plain(value) }
}

#[allow(clippy::cast_precision_loss, reason = "both formats know doubles only")]
fn plain(value: u64) -> Sample {
    Sample { labels: Vec::new(), value: value as f64 }
}
