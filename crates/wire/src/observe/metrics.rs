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
    let mut all = Vec::new();
    let mut add = |name, help, value| all.push(Family { name, help, value });
    add(
        "sayso_build_info",
        "The version that runs.",
        Value::Gauge(vec![Sample {
            labels: vec![("version", env!("CARGO_PKG_VERSION").to_owned())],
            value: 1.0,
        }]),
    );
    add("sayso_uptime_seconds", "Seconds since the start.", gauge(observe.begun.elapsed().as_secs()));
    let begun = observe.begun_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    add("process_start_time_seconds", "When it started, in seconds since 1970.", gauge(begun.as_secs()));
    if let Some(bytes) = process::resident() {
        add("process_resident_memory_bytes", "Memory in use.", gauge(bytes));
    }
    if let Some(open) = process::descriptors() {
        add("process_open_fds", "Open file descriptors.", gauge(open));
    }
    if let Some(hub) = observe.hub.get() {
        add("sayso_turns", "Turns of the hub.", counter(hub.turns.get()));
        add("sayso_events_published", "Events that are on disk.", counter(hub.events.get()));
        add(
            "sayso_events_refused",
            "Rules that refused requests of agents broke, by rule.",
            by(&hub.refused, &["rule"]),
        );
        add("sayso_sessions_started", "Sessions that were started.", counter(hub.sessions_started.get()));
        add("sayso_sessions_ended", "Sessions that have ended.", counter(hub.sessions_ended.get()));
        add("sayso_sessions_open", "Sessions that are open.", gauge(hub.sessions_open.get()));
        add(
            "sayso_subscriptions_accepted",
            "Subscriptions that were accepted.",
            counter(hub.subscriptions_accepted.get()),
        );
        add(
            "sayso_subscriptions_rejected",
            "Subscriptions that were rejected, by reason code.",
            by(&hub.subscriptions_rejected, &["reason"]),
        );
        add("sayso_subscriptions_open", "Subscriptions that are open.", gauge(hub.subscriptions_open.get()));
        let outcomes = [("complete", &hub.resumes_complete), ("gap", &hub.resumes_gap)];
        add(
            "sayso_resumes",
            "Listeners that came back: told all that they missed, or only the present.",
            Value::Counter(
                outcomes.into_iter().map(|(word, count)| sample("outcome", word, count.get())).collect(),
            ),
        );
        add("sayso_questions_asked", "Questions that were asked.", counter(hub.questions_asked.get()));
        add("sayso_questions_open", "Questions that are open.", gauge(hub.questions_open.get()));
        add(
            "sayso_questions_resolved",
            "Questions that were resolved, by what and how.",
            by(&hub.questions_resolved, &["by", "decision"]),
        );
        add(
            "sayso_questions_extended",
            "Times that a person was given more time.",
            counter(hub.questions_extended.get()),
        );
        add(
            "sayso_consents_spent",
            "Accepted questions that were spent on a call.",
            counter(hub.consents_spent.get()),
        );
        add(
            "sayso_replies",
            "Replies, by what came of them: taken, or why not.",
            by(&hub.replies, &["verdict"]),
        );
        add("sayso_requests_full", "Requests refused because too much is open.", counter(hub.full.get()));
    }
    let storage = &observe.storage;
    add(
        "sayso_commit_seconds",
        "How long a commit to the journal took.",
        Value::Histogram(storage.seconds.snapshot()),
    );
    add(
        "sayso_commit_entries",
        "Entries in a commit to the journal.",
        Value::Histogram(storage.entries.snapshot()),
    );
    add("sayso_commit_failures", "Commits that failed.", counter(storage.failures.get()));
    add(
        "sayso_last_commit_failure_timestamp_seconds",
        "When a commit failed last, in seconds since 1970; 0 if none has.",
        gauge(storage.last_failure.get()),
    );
    add(
        "sayso_storage_good",
        "1 if the last commit was written, 0 if it failed.",
        gauge(u64::from(!observe.cannot_store())),
    );
    add("sayso_journal_bytes", "Bytes that the journal takes.", gauge(storage.bytes.get()));
    let counters = &observe.counters;
    let streams = observe.sent.get().map_or(0, |sent| sent.streams.get());
    let wires = Wire::ALL.map(|wire| {
        let others = if wire == Wire::Sse { streams } else { 0 };
        sample("wire", wire.word(), counters.listeners(wire).get() + others)
    });
    if let Some(sent) = observe.sent.get() {
        add("sayso_frames_sent", "Frames handed to listeners.", counter(sent.frames.get()));
        add("sayso_bytes_sent", "Bytes of these frames.", counter(sent.bytes.get()));
        add(
            "sayso_listeners_slow",
            "Listeners that could not keep up and were let go.",
            counter(sent.too_slow.get()),
        );
    }
    add("sayso_listeners", "Connections that listen, by wire.", Value::Gauge(wires.into()));
    add(
        "sayso_http_requests",
        "Requests, by route and class of status.",
        by(&counters.requests, &["route", "status"]),
    );
    add(
        "sayso_logins_refused",
        "Requests without a token that is known.",
        counter(counters.logins_refused.get()),
    );
    add("sayso_connections", "Connections that came.", counter(counters.connections.get()));
    add(
        "sayso_connections_refused",
        "Connections for which there was no place.",
        counter(counters.connections_refused.get()),
    );
    add(
        "sayso_connections_open",
        "Connections that are open and not streams.",
        gauge(counters.connections_open.get()),
    );
    add("sayso_log_lines_left_out", "Lines left out of the log.", counter(observe.log.left_out()));
    all
}

fn counter(value: u64) -> Value {
    Value::Counter(vec![plain(value)])
}

fn gauge(value: u64) -> Value {
    Value::Gauge(vec![plain(value)])
}

fn by(labelled: &Labelled, names: &[&'static str]) -> Value {
    let samples = labelled.all().into_iter().map(|(labels, count)| Sample {
        labels: names.iter().copied().zip(labels).collect(),
        ..plain(count)
    });
    Value::Counter(samples.collect())
}

fn sample(name: &'static str, label: &str, value: u64) -> Sample {
    Sample { labels: vec![(name, label.to_owned())], ..plain(value) }
}

#[allow(clippy::cast_precision_loss, reason = "both formats know doubles only")]
fn plain(value: u64) -> Sample {
    Sample { labels: Vec::new(), value: value as f64 }
}
