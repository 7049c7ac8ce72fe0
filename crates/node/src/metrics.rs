//! The node's own metrics. None of them names a session, an agent or a person.

use asp::state_machine::State;
use asp::{Performative, RejectCode};
use hub::telemetry::{LabelledCounter, MetricValue};
use wire::{ServiceMetric, unix_now};

use crate::node::Node;

/// Counters of what has happened since the node started.
#[derive(Debug, Default)]
pub(crate) struct NodeCounters {
    /// Messages that this node sent, by performative.
    pub(crate) sent: PerformativeCounter,
    /// Messages from peers that were accepted, by performative.
    pub(crate) received: PerformativeCounter,
    /// Refused messages, by the side that refused and by code.
    refused: LabelledCounter,
    /// Messages from peers that were not authentic.
    pub(crate) dropped: MetricValue,
    /// Attempts to deliver a message that failed.
    pub(crate) delivery_failures: MetricValue,
    /// Messages whose delivery was given up.
    pub(crate) abandoned: MetricValue,
    /// Ended sessions that were rebuilt from the journal.
    pub(crate) rebuilt: MetricValue,
    /// Requests from peers that exceeded their rate limit.
    pub(crate) rate_limited: MetricValue,
    /// Questions to a person, by what they are about.
    pub(crate) questions_asked: LabelledCounter,
    /// Questions that ended, by outcome.
    pub(crate) questions_resolved: LabelledCounter,
}

/// A counter for each performative.
#[derive(Debug, Default)]
pub(crate) struct PerformativeCounter([MetricValue; Performative::ALL.len()]);

impl PerformativeCounter {
    pub(crate) fn increment(&self, performative: Performative) {
        let index = Performative::ALL.iter().position(|other| *other == performative);
        if let Some(counter) = index.and_then(|index| self.0.get(index)) {
            counter.add(1);
        }
    }

    fn values(&self) -> impl Iterator<Item = (Vec<String>, u64)> {
        let counts = Performative::ALL.iter().zip(&self.0);
        counts.map(|(performative, count)| (vec![performative.as_str().to_owned()], count.get()))
    }
}

impl NodeCounters {
    /// Counts a message from a peer that this node refused.
    pub(crate) fn count_refused_by_us(&self, code: RejectCode) {
        self.refused.increment(&["node", code.as_str()]);
    }

    /// Counts a message from this node that the peer refused. An unknown code counts as unspecified, because the peer chooses it.
    pub(crate) fn count_refused_by_peer(&self, code: &str) {
        let code = RejectCode::parse(code).unwrap_or(RejectCode::Unspecified);
        self.refused.increment(&["peer", code.as_str()]);
    }
}

impl Node {
    /// Returns the node's metrics.
    pub(crate) fn metrics(&self) -> Vec<ServiceMetric> {
        let now = unix_now();
        let mut by_state = State::ALL.map(|state| (state.as_str(), 0));
        let (mut outbox, mut oldest, mut questions_open) = (0, None, 0);
        for handle in self.handles() {
            let summary = handle.summary();
            if let Some((_, count)) = by_state.iter_mut().find(|(state, _)| *state == summary.state.as_str())
            {
                *count += 1;
            }
            outbox += summary.undelivered;
            oldest = oldest.into_iter().chain(summary.oldest_undelivered.map(|(_, since)| since)).min();
            questions_open += u64::from(summary.asks_person);
        }
        let age_ms = oldest.map_or(0, |since: seal::UnixMillis| now.millis_since(since).max(0));
        let counters = &self.counters;
        let (circuits_open, disputes) = {
            let peers = self.peers();
            (peers.open_circuits(), peers.open_dispute_questions())
        };
        let quarantined = self.quarantined().len();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        vec![
            ServiceMetric::labelled_gauge(
                "sayso_asp_sessions",
                "Open sessions, by state.",
                &["state"],
                by_state.into_iter().map(|(state, count)| (vec![state.to_owned()], count)),
            ),
            ServiceMetric::gauge(
                "sayso_asp_sessions_quarantined",
                "Stored sessions that cannot be restored.",
                number(quarantined),
            ),
            ServiceMetric::counter(
                "sayso_asp_sessions_rebuilt",
                "Ended sessions that were read again from the journal.",
                counters.rebuilt.get(),
            ),
            ServiceMetric::labelled_counter(
                "sayso_asp_messages_sent",
                "Messages that this node sent, by performative.",
                &["performative"],
                counters.sent.values(),
            ),
            ServiceMetric::labelled_counter(
                "sayso_asp_messages_received",
                "Accepted messages from peers, by performative.",
                &["performative"],
                counters.received.values(),
            ),
            ServiceMetric::labelled_counter(
                "sayso_asp_messages_refused",
                "Refused messages, by the side that refused and by code.",
                &["by", "code"],
                counters.refused.snapshot(),
            ),
            ServiceMetric::counter(
                "sayso_asp_messages_dropped",
                "Messages from peers that were not authentic.",
                counters.dropped.get(),
            ),
            ServiceMetric::counter(
                "sayso_asp_rate_limited",
                "Requests from peers that exceeded their rate limit.",
                counters.rate_limited.get(),
            ),
            ServiceMetric::gauge("sayso_asp_outbox_messages", "Messages that wait to be delivered.", outbox),
            ServiceMetric::gauge(
                "sayso_asp_outbox_oldest_seconds",
                "Age of the oldest message that waits to be delivered, in seconds; 0 if none waits.",
                age_ms.unsigned_abs() / 1000,
            ),
            ServiceMetric::counter(
                "sayso_asp_delivery_failures",
                "Failed attempts to deliver a message.",
                counters.delivery_failures.get(),
            ),
            ServiceMetric::counter(
                "sayso_asp_messages_abandoned",
                "Messages whose delivery was given up.",
                counters.abandoned.get(),
            ),
            ServiceMetric::gauge(
                "sayso_asp_circuits_open",
                "Peers that do not answer and are left alone for a while.",
                number(circuits_open),
            ),
            ServiceMetric::labelled_counter(
                "sayso_asp_questions_asked",
                "Questions to a person, by what they are about.",
                &["about"],
                counters.questions_asked.snapshot(),
            ),
            ServiceMetric::gauge(
                "sayso_asp_questions_open",
                "Questions that wait for a person.",
                questions_open + number(disputes),
            ),
            ServiceMetric::labelled_counter(
                "sayso_asp_questions_resolved",
                "Questions that ended, by outcome.",
                &["outcome"],
                counters.questions_resolved.snapshot(),
            ),
        ]
    }
}
