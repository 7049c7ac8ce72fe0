//! Metrics and logs for the operator. They never contain what agents or people say, except for the log at
//! level `trace`.
//!
//! - [`Telemetry`]: counts and logs what happens on the transports.
//! - [`log_record`]: the events of the log.
//! - [`LogHandle`]: writes the log to standard error, within limits.
//! - `counters`, `histogram`: the counters of the transports. The metrics of the hub are [`hub::HubMetrics`].
//! - `metrics`: collects all metrics.
//! - `exposition`: writes the metrics in the Prometheus and OpenMetrics text formats.
//! - `instrumented_journal`: a journal wrapper that measures commits.
//! - `hub_log_events`: writes the hub's log events.
//! - `process`: metrics of this process.
//! - `route_template`: the routes that appear in metrics and logs.

mod counters;
mod exposition;
mod histogram;
mod hub_log_events;
mod instrumented_journal;
mod log;
pub mod log_record;
mod metrics;
mod process;
pub(crate) mod route_template;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Instant, SystemTime};

pub(crate) use counters::{FanoutCounters, TransportKind};
pub use exposition::ExpositionFormat;
pub(crate) use log::in_shard;
pub use log::{LogFormat, LogHandle, LogLimits};
pub use metrics::ServiceMetric;
pub use tracing::Level;

use self::counters::WireCounters;
use self::histogram::Histogram;
use crate::http::{HttpResponse, RequestHead};

/// Counts and logs what happens on the transports, for the operator.
#[derive(Debug)]
pub struct Telemetry {
    log: LogHandle,
    counters: WireCounters,
    /// The counters of the shards on this node, by number.
    hub: Mutex<BTreeMap<u16, Arc<hub::HubMetrics>>>,
    fanout: OnceLock<Arc<FanoutCounters>>,
    storage: Arc<StorageMetrics>,
    reload_failures: hub::telemetry::MetricValue,
    is_reload_failing: std::sync::atomic::AtomicBool,
    started: Instant,
    started_at: SystemTime,
}

/// Metrics of the journal.
#[derive(Debug)]
pub(crate) struct StorageMetrics {
    commit_seconds: Histogram,
    commit_entries: Histogram,
    failures: hub::telemetry::MetricValue,
    last_failure_unix_seconds: hub::telemetry::MetricValue,
    /// The open journals, by shard.
    journals: Mutex<BTreeMap<u16, Weak<JournalMetrics>>>,
}

/// Metrics of the journal of one shard.
#[derive(Debug, Default)]
pub(crate) struct JournalMetrics {
    is_failing: std::sync::atomic::AtomicBool,
    bytes: hub::telemetry::MetricValue,
}

impl JournalMetrics {
    fn is_failing(&self) -> bool {
        self.is_failing.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl StorageMetrics {
    fn journals(&self) -> BTreeMap<u16, Arc<JournalMetrics>> {
        let journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        journals.iter().filter_map(|(shard, journal)| Some((*shard, journal.upgrade()?))).collect()
    }
}

impl Default for StorageMetrics {
    fn default() -> Self {
        Self {
            commit_seconds: Histogram::new(&[
                0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
            ]),
            commit_entries: Histogram::new(&[
                1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0,
            ]),
            failures: hub::telemetry::MetricValue::default(),
            last_failure_unix_seconds: hub::telemetry::MetricValue::default(),
            journals: Mutex::default(),
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self::new(LogHandle::default())
    }
}

impl Telemetry {
    /// Creates telemetry that reports through this log.
    pub fn new(log: LogHandle) -> Self {
        Self {
            log,
            counters: WireCounters::default(),
            hub: Mutex::default(),
            fanout: OnceLock::new(),
            storage: Arc::default(),
            reload_failures: hub::telemetry::MetricValue::default(),
            is_reload_failing: std::sync::atomic::AtomicBool::new(false),
            started: Instant::now(),
            started_at: SystemTime::now(),
        }
    }

    /// Wraps a journal so that its commits are measured. The journals of several shards are wrapped in order.
    pub fn instrument_journal(
        self: &Arc<Self>,
        inner: Box<dyn ::journal::Journal>,
    ) -> Box<dyn ::journal::Journal> {
        self.instrument_journal_of(None, inner)
    }

    /// Like [`instrument_journal`](Self::instrument_journal), for a shard of several. Log lines name it.
    pub fn instrument_journal_of(
        self: &Arc<Self>,
        shard: Option<u16>,
        inner: Box<dyn ::journal::Journal>,
    ) -> Box<dyn ::journal::Journal> {
        let metrics: Arc<JournalMetrics> = Arc::default();
        {
            let mut journals = self.storage.journals.lock().unwrap_or_else(PoisonError::into_inner);
            let next = journals.last_key_value().map_or(0, |(last, _)| last + 1);
            journals.insert(shard.unwrap_or(next), Arc::downgrade(&metrics));
        }
        Box::new(instrumented_journal::InstrumentedJournal::new(inner, self.clone(), metrics, shard))
    }

    /// Returns whether the last commit to the journal of any shard failed.
    pub fn is_storage_failing(&self) -> bool {
        self.storage.journals().values().any(|journal| journal.is_failing())
    }

    /// Returns whether the last reload failed, so that removed tokens may still be accepted.
    pub fn is_reload_failing(&self) -> bool {
        self.is_reload_failing.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Records the result of a reload.
    pub fn record_reload(&self, has_failed: bool) {
        self.reload_failures.add(u64::from(has_failed));
        self.is_reload_failing.store(has_failed, std::sync::atomic::Ordering::Relaxed);
    }

    /// Returns the metrics in this text format, followed by those of a service.
    pub fn metrics(&self, format: ExpositionFormat, service: Vec<ServiceMetric>) -> String {
        let mut families = metrics::families(self);
        families.extend(service.into_iter().map(metrics::MetricFamily::from));
        format.write(&families)
    }

    /// Reports dropped log lines. Call it about once a second.
    pub fn tick(&self) {
        self.log.tick();
    }

    /// Writes all remaining log lines, in bounded time.
    pub fn close(&self) {
        self.log.close();
    }

    pub(crate) fn set_hub_counters(&self, counters: Vec<Arc<hub::HubMetrics>>) {
        for (shard, counters) in (0..).zip(counters) {
            self.set_shard_counters(shard, Some(counters));
        }
    }

    /// Sets the counters of a shard that has started, or removes those of a shard that has stopped.
    pub(crate) fn set_shard_counters(&self, shard: u16, counters: Option<Arc<hub::HubMetrics>>) {
        let mut all = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        match counters {
            Some(counters) => drop(all.insert(shard, counters)),
            None => drop(all.remove(&shard)),
        }
    }

    fn shard_counters(&self) -> BTreeMap<u16, Arc<hub::HubMetrics>> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_fanout_counters(&self, counters: Arc<FanoutCounters>) {
        let _ = self.fanout.set(counters);
    }

    /// Begins to record a request. `route` is the template of its path.
    pub(crate) fn begin_request(&self, head: &RequestHead, route: &'static str) -> RequestInProgress<'_> {
        RequestInProgress { telemetry: self, route, method: head.method.as_str() }
    }

    /// Records the response to a request that could not be read.
    pub(crate) fn record_unreadable(&self, response: &HttpResponse) {
        let status = response.status.code_and_reason().0;
        self.counters.requests.increment(&[route_template::UNREADABLE, status_class(status)]);
        Self::log_limit(status, route_template::UNREADABLE);
    }

    /// Records a new connection. `refused_by` is the limit that it exceeds, if it was refused.
    pub(crate) fn record_connection(&self, refused_by: Option<&'static str>) {
        self.counters.connections.add(1);
        if let Some(limit) = refused_by {
            self.counters.connections_refused.add(1);
            log_record::limit_reached(limit);
        }
    }

    /// Records that a connection whose caller had not authenticated was closed to make room for a new one.
    pub(crate) fn record_displaced_connection(&self) {
        self.counters.connections_refused.add(1);
        log_record::limit_reached("reserved_connections");
    }

    /// Sets the number of open connections.
    pub(crate) fn set_open_connections(&self, open: usize) {
        self.counters.connections_open.set(open);
    }

    /// Counts a listener that has its own writer task, until the returned guard is dropped.
    pub(crate) fn track_listener(&self, transport: TransportKind) -> ListenerGuard<'_> {
        self.counters.listeners(transport).add(1);
        ListenerGuard(self, transport)
    }

    /// Logs a command, but only at level `trace`, because the command contains what people and agents say.
    pub(crate) fn log_command(&self, command: &hub::command::HubCommand) {
        if self.log.logs_content() {
            log_record::command_received(command);
        }
    }

    /// Logs which limit a request exceeded, if the status of its response says so.
    fn log_limit(status: u16, route: &'static str) {
        let limit = match status {
            408 => "time",
            413 => "body",
            429 => "open",
            431 => "head",
            _ => return,
        };
        log_record::limit_reached_on(limit, route);
    }
}

#[cfg(feature = "grpc")]
impl Telemetry {
    /// Records a caller without a valid token, on a transport whose calls are not recorded as HTTP requests.
    pub(crate) fn record_auth_failure(&self, route: &'static str) {
        self.counters.auth_failures.add(1);
        log_record::auth_failed(route);
    }
}

/// A request in progress.
pub(crate) struct RequestInProgress<'o> {
    telemetry: &'o Telemetry,
    route: &'static str,
    method: &'static str,
}

impl RequestInProgress<'_> {
    /// Records the status of the response.
    pub(crate) fn finish(self, status: u16) {
        let Self { telemetry, route, method } = self;
        telemetry.counters.requests.increment(&[route, status_class(status)]);
        match status {
            401 => {
                telemetry.counters.auth_failures.add(1);
                log_record::auth_failed(route);
            }
            _ => Telemetry::log_limit(status, route),
        }
        log_record::request(method, route, status);
    }
}

/// Counts one listener until it is dropped.
pub(crate) struct ListenerGuard<'o>(&'o Telemetry, TransportKind);

impl Drop for ListenerGuard<'_> {
    fn drop(&mut self) {
        self.0.counters.listeners(self.1).subtract(1);
    }
}

fn status_class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
