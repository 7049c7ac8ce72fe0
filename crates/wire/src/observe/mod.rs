//! How an operator sees what the hub does. Nothing that an agent or a person said is in any of it, but for the log at `trace`.
//!
//! - [`Observe`]: the one thing that all parts of the wire tell what happens; it counts and logs.
//! - [`record`]: the events of the log; [`Log`]: lines on standard error, bounded.
//! - `counters`, `histogram`: the wire's numbers; those of the hub are [`hub::Counters`].
//! - `metrics`: all numbers as families, and as Prometheus text in `exposition`.
//! - `journal`: a journal that is watched while it commits.

mod counters;
mod exposition;
mod histogram;
mod journal;
mod log;
mod metrics;
mod notes;
mod process;
pub mod record;
mod route;

use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

pub(crate) use counters::{Sent, Wire};
pub use exposition::Exposition;
pub use log::{Format, Log, LogLimits};
pub use tracing::Level;

use self::counters::Counters;
use self::histogram::Histogram;
use crate::http::{Head, Response};

/// What is told of everything that happens on the wire, and shows it to whoever runs the hub.
#[derive(Debug)]
pub struct Observe {
    log: Log,
    counters: Counters,
    hub: OnceLock<Arc<hub::Counters>>,
    sent: OnceLock<Arc<Sent>>,
    storage: Arc<Storage>,
    begun: Instant,
    begun_at: SystemTime,
}

/// How the journal fares.
#[derive(Debug)]
pub(crate) struct Storage {
    seconds: Histogram,
    entries: Histogram,
    failures: hub::watch::Count,
    last_failure: hub::watch::Count,
    fails: std::sync::atomic::AtomicBool,
    bytes: hub::watch::Count,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            seconds: Histogram::new(&[
                0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
            ]),
            entries: Histogram::new(&[1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0]),
            failures: hub::watch::Count::default(),
            last_failure: hub::watch::Count::default(),
            fails: std::sync::atomic::AtomicBool::new(false),
            bytes: hub::watch::Count::default(),
        }
    }
}

impl Default for Observe {
    fn default() -> Self {
        Self::new(Log::default())
    }
}

impl Observe {
    /// Reports through this log.
    pub fn new(log: Log) -> Self {
        Self {
            log,
            counters: Counters::default(),
            hub: OnceLock::new(),
            sent: OnceLock::new(),
            storage: Arc::default(),
            begun: Instant::now(),
            begun_at: SystemTime::now(),
        }
    }

    /// The journal, watched while it commits.
    pub fn journal(self: &Arc<Self>, inner: Box<dyn ::journal::Journal>) -> Box<dyn ::journal::Journal> {
        Box::new(journal::Watched::new(inner, self.clone()))
    }

    /// Why nothing can be stored, as far as the last commit tells.
    pub fn cannot_store(&self) -> bool {
        self.storage.fails.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The numbers as Prometheus reads them, in the form that is accepted.
    pub fn metrics(&self, form: Exposition) -> String {
        form.write(&metrics::families(self))
    }

    /// Writes the lines that are due by the clock: how many were left out. Called about once a second.
    pub fn tick(&self) {
        self.log.tick();
    }

    /// Writes what is left, in bounded time.
    pub fn close(&self) {
        self.log.close();
    }

    pub(crate) fn of_hub(&self, counters: Arc<hub::Counters>) {
        let _ = self.hub.set(counters);
    }

    pub(crate) fn of_fanout(&self, sent: Arc<Sent>) {
        let _ = self.sent.set(sent);
    }

    /// A request has come in; it may be for the path of a handler.
    pub(crate) fn request(&self, head: &Head, handler: Option<&'static str>) -> Asked<'_> {
        let route = handler.unwrap_or_else(|| route::template(&head.path));
        Asked { observe: self, route, method: head.method.word() }
    }

    /// A request that could not be read was answered.
    pub(crate) fn unread(&self, response: &Response) {
        let status = response.status.line().0;
        self.counters.requests.one(&[route::UNREAD, class(status)]);
        Self::limit(status, route::UNREAD);
    }

    /// A connection has come; whether there was a place for it.
    pub(crate) fn came(&self, place: bool) {
        self.counters.connections.add(1);
        if !place {
            self.counters.connections_refused.add(1);
            record::limit_hit("connections");
        }
    }

    /// Connections that are open, but for streams.
    pub(crate) fn connections(&self, open: usize) {
        self.counters.connections_open.set(open);
    }

    /// A listener to whom a task speaks, until it is dropped.
    pub(crate) fn listens(&self, wire: Wire) -> Listens<'_> {
        self.counters.listeners(wire).add(1);
        Listens(self, wire)
    }

    /// The hub is asked something. Only at `trace`, because it is what people and agents say.
    pub(crate) fn said(&self, command: &hub::command::Command) {
        if self.log.says() {
            record::said(command);
        }
    }

    fn limit(status: u16, route: &'static str) {
        let limit = match status {
            408 => "time",
            413 => "body",
            429 => "open",
            431 => "head",
            _ => return,
        };
        record::limit_hit_on(limit, route);
    }
}

/// A request that is being answered.
pub(crate) struct Asked<'o> {
    observe: &'o Observe,
    route: &'static str,
    method: &'static str,
}

impl Asked<'_> {
    /// It was answered with this status.
    pub(crate) fn answered(self, status: u16) {
        let Self { observe, route, method } = self;
        observe.counters.requests.one(&[route, class(status)]);
        match status {
            401 => {
                observe.counters.logins_refused.add(1);
                record::login_refused(route);
            }
            _ => Observe::limit(status, route),
        }
        record::request(method, route, status);
    }
}

/// A listener's place in the numbers.
pub(crate) struct Listens<'o>(&'o Observe, Wire);

impl Drop for Listens<'_> {
    fn drop(&mut self) {
        self.0.counters.listeners(self.1).take(1);
    }
}

fn class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
