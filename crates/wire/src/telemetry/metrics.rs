//! Collects all metrics as families of samples.

use std::sync::Arc;
use std::time::SystemTime;

use hub::telemetry::LabelledCounter;

use super::counters::TransportKind;
use super::histogram::HistogramSnapshot;
use super::{Telemetry, process};

/// The samples of one metric name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricFamily {
    /// The name, without the `_total` suffix of a counter.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: MetricSamples,
}

/// One metric of a service: a counter or a gauge. Its values may differ by labels.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceMetric {
    name: &'static str,
    help: &'static str,
    is_counter: bool,
    samples: Vec<Sample>,
}

impl ServiceMetric {
    /// A counter. Its name is written without the suffix `_total`.
    pub fn counter(name: &'static str, help: &'static str, count: u64) -> Self {
        Self { name, help, is_counter: true, samples: vec![unlabelled(count)] }
    }

    /// A gauge.
    pub fn gauge(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, is_counter: false, samples: vec![unlabelled(value)] }
    }

    /// A counter with labels. Its name is written without the suffix `_total`. `counts` are the values of the labels, each
    /// with its count.
    pub fn labelled_counter(
        name: &'static str,
        help: &'static str,
        labels: &[&'static str],
        counts: impl IntoIterator<Item = (Vec<String>, u64)>,
    ) -> Self {
        Self { name, help, is_counter: true, samples: labelled(labels, counts) }
    }

    /// A gauge with labels. `values` are the values of the labels, each with the gauge's value.
    pub fn labelled_gauge(
        name: &'static str,
        help: &'static str,
        labels: &[&'static str],
        values: impl IntoIterator<Item = (Vec<String>, u64)>,
    ) -> Self {
        Self { name, help, is_counter: false, samples: labelled(labels, values) }
    }
}

impl From<ServiceMetric> for MetricFamily {
    fn from(metric: ServiceMetric) -> Self {
        let ServiceMetric { name, help, is_counter, samples } = metric;
        let value = if is_counter { MetricSamples::Counter(samples) } else { MetricSamples::Gauge(samples) };
        Self { name, help, value }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum MetricSamples {
    Counter(Vec<Sample>),
    Gauge(Vec<Sample>),
    Histogram(HistogramSnapshot),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: f64,
}

pub(super) fn families(telemetry: &Telemetry) -> Vec<MetricFamily> {
    let mut all = MetricFamilies(Vec::new());
    let version = vec![sample("version", env!("CARGO_PKG_VERSION"), 1)];
    all.add("sayso_build_info", "Version of the running program.", MetricSamples::Gauge(version));
    all.add_gauge(
        "sayso_uptime_seconds",
        "Seconds since the hub started.",
        telemetry.started.elapsed().as_secs(),
    );
    let started_at =
        telemetry.started_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    all.add_gauge(
        "process_start_time_seconds",
        "Start time of the process, in seconds since the Unix epoch.",
        started_at,
    );
    if let Some(bytes) = process::resident_bytes() {
        all.add_gauge("process_resident_memory_bytes", "Resident memory size in bytes.", bytes);
    }
    if let Some(open_fds) = process::open_descriptors() {
        all.add_gauge("process_open_fds", "Number of open file descriptors.", open_fds);
    }
    let shards = telemetry.shard_counters();
    let is_single = shards.len() == 1 && shards.contains_key(&0);
    for (shard, hub) in &shards {
        let mut of_shard = MetricFamilies(Vec::new());
        of_shard.add_hub_metrics(hub);
        all.merge(of_shard, (!is_single).then_some(*shard));
    }
    all.add_storage_metrics(telemetry);
    all.add_transport_metrics(telemetry);
    all.0
}

struct MetricFamilies(Vec<MetricFamily>);

impl MetricFamilies {
    fn add(&mut self, name: &'static str, help: &'static str, value: MetricSamples) {
        self.0.push(MetricFamily { name, help, value });
    }

    /// Adds the samples of one shard to the families. If there are several shards, each sample gets its number as a label.
    fn merge(&mut self, of_shard: Self, shard: Option<u16>) {
        for mut family in of_shard.0 {
            let (MetricSamples::Counter(samples) | MetricSamples::Gauge(samples)) = &mut family.value else {
                self.0.push(family);
                continue;
            };
            for sample in &mut *samples {
                sample.labels.extend(shard.map(|shard| ("shard", shard.to_string())));
            }
            let existing = self.0.iter_mut().find(|existing| existing.name == family.name);
            match existing.map(|existing| &mut existing.value) {
                Some(MetricSamples::Counter(all) | MetricSamples::Gauge(all)) => all.append(samples),
                _ => self.0.push(family),
            }
        }
    }

    /// Adds a gauge with a value for each shard.
    fn add_shard_gauge(&mut self, name: &'static str, help: &'static str, values: &[(u16, u64)]) {
        let samples = values.iter().map(|(shard, value)| match values {
            [(0, _)] => unlabelled(*value),
            _ => sample("shard", &shard.to_string(), *value),
        });
        self.add(name, help, MetricSamples::Gauge(samples.collect()));
    }

    fn add_counter(&mut self, name: &'static str, help: &'static str, count: u64) {
        self.add(name, help, MetricSamples::Counter(vec![unlabelled(count)]));
    }

    fn add_gauge(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.add(name, help, MetricSamples::Gauge(vec![unlabelled(value)]));
    }

    fn add_labelled_counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        counts: &LabelledCounter,
        labels: &[&'static str],
    ) {
        self.add(name, help, MetricSamples::Counter(labelled(labels, counts.snapshot())));
    }

    fn add_hub_metrics(&mut self, hub: &hub::HubMetrics) {
        self.add_counter("sayso_turns", "Turns that the hub has run.", hub.turns.get());
        self.add_counter("sayso_events_published", "Events committed to the journal.", hub.events.get());
        let help = "Rule violations in refused requests from agents, by rule.";
        self.add_labelled_counter("sayso_rule_violations", help, &hub.rule_violations, &["rule"]);
        self.add_counter("sayso_sessions_started", "Sessions started.", hub.sessions_started.get());
        self.add_counter("sayso_sessions_ended", "Sessions ended.", hub.sessions_ended.get());
        self.add_gauge("sayso_sessions_open", "Open sessions.", hub.sessions_open.get());
        let help = "Subscriptions accepted.";
        self.add_counter("sayso_subscriptions_accepted", help, hub.subscriptions_accepted.get());
        let help = "Subscriptions rejected, by reason code.";
        self.add_labelled_counter(
            "sayso_subscriptions_rejected",
            help,
            &hub.subscriptions_rejected,
            &["reason"],
        );
        self.add_gauge("sayso_subscriptions_open", "Open subscriptions.", hub.subscriptions_open.get());
        let outcomes = [("complete", &hub.resumes_complete), ("gap", &hub.resumes_gap)];
        let outcomes = outcomes.map(|(outcome, count)| sample("outcome", outcome, count.get())).into();
        let help = "Listeners that resumed, with all missed events or with a gap.";
        self.add("sayso_resumes", help, MetricSamples::Counter(outcomes));
        self.add_counter("sayso_questions_asked", "Questions asked.", hub.questions_asked.get());
        self.add_gauge("sayso_questions_open", "Open questions.", hub.questions_open.get());
        let help = "Questions resolved, by cause and decision.";
        self.add_labelled_counter(
            "sayso_questions_resolved",
            help,
            &hub.questions_resolved,
            &["by", "decision"],
        );
        self.add_counter("sayso_handoffs_requested", "Hand-offs requested.", hub.handoffs_requested.get());
        let help = "Hand-offs resolved, by outcome.";
        self.add_labelled_counter("sayso_handoffs_resolved", help, &hub.handoffs_resolved, &["outcome"]);
        let help = "Extensions of a question's deadline.";
        self.add_counter("sayso_questions_extended", help, hub.questions_extended.get());
        let help = "Accepted confirmations spent on a tool call.";
        self.add_counter("sayso_consents_spent", help, hub.consents_spent.get());
        let help = "Replies, by verdict: applied, or the reason for refusal.";
        self.add_labelled_counter("sayso_replies", help, &hub.replies, &["verdict"]);
        self.add_counter(
            "sayso_requests_over_limit",
            "Requests refused because a limit was reached.",
            hub.limit_refusals.get(),
        );
    }

    fn add_storage_metrics(&mut self, telemetry: &Telemetry) {
        let storage = &telemetry.storage;
        let help = "Duration of a journal commit in seconds.";
        self.add("sayso_commit_seconds", help, MetricSamples::Histogram(storage.commit_seconds.snapshot()));
        let help = "Entries per journal commit.";
        self.add("sayso_commit_entries", help, MetricSamples::Histogram(storage.commit_entries.snapshot()));
        self.add_counter("sayso_commit_failures", "Failed journal commits.", storage.failures.get());
        let help = "Time of the last failed commit, in seconds since the Unix epoch; 0 if none failed.";
        self.add_gauge(
            "sayso_last_commit_failure_timestamp_seconds",
            help,
            storage.last_failure_unix_seconds.get(),
        );
        let help = "1 if the last commit succeeded, 0 if it failed.";
        let mut journals = storage.journals();
        if journals.is_empty() {
            journals.insert(0, Arc::default());
        }
        let healthy: Vec<_> =
            journals.iter().map(|(shard, journal)| (*shard, u64::from(!journal.is_failing()))).collect();
        self.add_shard_gauge("sayso_storage_healthy", help, &healthy);
        let bytes: Vec<_> = journals.iter().map(|(shard, journal)| (*shard, journal.bytes.get())).collect();
        self.add_shard_gauge("sayso_journal_bytes", "Size of the journal in bytes.", &bytes);
    }

    fn add_transport_metrics(&mut self, telemetry: &Telemetry) {
        let (counters, fanout) = (&telemetry.counters, telemetry.fanout.get());
        if let Some(fanout) = fanout {
            self.add_counter("sayso_frames_sent", "Frames sent to listeners.", fanout.frames.get());
            self.add_counter("sayso_bytes_sent", "Bytes sent to listeners.", fanout.bytes.get());
            let help = "Listeners disconnected because they could not keep up.";
            self.add_counter("sayso_slow_listeners_disconnected", help, fanout.slow_listeners.get());
        }
        let listeners = TransportKind::ALL.iter().map(|&transport| {
            let streams = fanout
                .filter(|_| transport == TransportKind::Sse)
                .map_or(0, |fanout| fanout.open_streams.get());
            sample("transport", transport.as_str(), counters.listeners(transport).get() + streams)
        });
        self.add(
            "sayso_listeners",
            "Connected listeners, by transport.",
            MetricSamples::Gauge(listeners.collect()),
        );
        let help = "HTTP requests, by route and status class.";
        self.add_labelled_counter("sayso_http_requests", help, &counters.requests, &["route", "status"]);
        let help = "Requests without a valid token.";
        self.add_counter("sayso_auth_failures", help, counters.auth_failures.get());
        let help = "Failed attempts to reload the tokens or the certificate.";
        self.add_counter("sayso_reload_failures", help, telemetry.reload_failures.get());
        let help = "1 if the last reload succeeded, 0 if it failed and removed tokens may still be accepted.";
        self.add_gauge("sayso_reload_healthy", help, u64::from(!telemetry.is_reload_failing()));
        self.add_counter("sayso_connections", "Connections received.", counters.connections.get());
        let help = "Connections refused or closed because of a connection limit.";
        self.add_counter("sayso_connections_refused", help, counters.connections_refused.get());
        let help = "Open connections.";
        self.add_gauge("sayso_connections_open", help, counters.connections_open.get());
        self.add_counter("sayso_log_lines_dropped", "Log lines dropped.", telemetry.log.dropped_lines());
    }
}

fn labelled(labels: &[&'static str], counts: impl IntoIterator<Item = (Vec<String>, u64)>) -> Vec<Sample> {
    let samples = counts.into_iter().map(|(values, count)| Sample {
        labels: labels.iter().copied().zip(values).collect(),
        ..unlabelled(count)
    });
    samples.collect()
}

fn sample(label_name: &'static str, label_value: &str, value: u64) -> Sample {
    Sample { labels: vec![(label_name, label_value.to_owned())], ..unlabelled(value) }
}

#[allow(clippy::cast_precision_loss, reason = "both text formats use doubles for all values")]
fn unlabelled(value: u64) -> Sample {
    Sample { labels: Vec::new(), value: value as f64 }
}
