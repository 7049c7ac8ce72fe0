//! Metrics and log events for operators. Neither contains text from agents or people.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use aaep::consent::ResolvedBy;
use aaep::{ReplyToken, SessionId, SubscriptionId};

use crate::ListenerId;
use crate::command::HandoffResult;

/// The hub's counters and gauges. Each turn updates them once, after it is stored; they can be read at any time.
#[derive(Debug, Default)]
pub struct HubMetrics {
    /// Turns that were committed.
    pub turns: MetricValue,
    /// Events that are stored.
    pub events: MetricValue,
    /// Rules that agents' requests broke, by rule id.
    pub rule_violations: LabelledCounter,
    /// Sessions that were started.
    pub sessions_started: MetricValue,
    /// Sessions that have ended.
    pub sessions_ended: MetricValue,
    /// Sessions that are open.
    pub sessions_open: MetricValue,
    /// Subscriptions that were accepted.
    pub subscriptions_accepted: MetricValue,
    /// Subscriptions that were rejected, by reason code.
    pub subscriptions_rejected: LabelledCounter,
    /// Subscriptions that are open.
    pub subscriptions_open: MetricValue,
    /// Listeners that are connected.
    pub listeners: MetricValue,
    /// Listeners that reconnected and received every event they missed.
    pub resumes_complete: MetricValue,
    /// Listeners that reconnected too late to receive every missed event, and received the current state instead.
    pub resumes_gap: MetricValue,
    /// Questions that were asked.
    pub questions_asked: MetricValue,
    /// Questions that are open.
    pub questions_open: MetricValue,
    /// Questions that were resolved, by what resolved them and by decision.
    pub questions_resolved: LabelledCounter,
    /// Hand-offs that were requested.
    pub handoffs_requested: MetricValue,
    /// Hand-offs that were resolved, by result.
    pub handoffs_resolved: LabelledCounter,
    /// Deadlines that were extended.
    pub questions_extended: MetricValue,
    /// Consents that were spent on a call.
    pub consents_spent: MetricValue,
    /// Attempts to reply, by result.
    pub replies: LabelledCounter,
    /// Requests that were refused because of a limit.
    pub limit_refusals: MetricValue,
}

/// A counter or gauge that other threads can read.
#[derive(Debug, Default)]
pub struct MetricValue(AtomicU64);

impl MetricValue {
    /// Adds to the value.
    pub fn add(&self, amount: u64) {
        if amount > 0 {
            self.0.fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Subtracts from the value; stops at 0.
    pub fn subtract(&self, amount: u64) {
        let _ =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old.saturating_sub(amount)));
    }

    /// Sets the value.
    pub fn set(&self, value: usize) {
        self.0.store(value as u64, Ordering::Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters by label, for rare events. The hub chooses the labels. Beyond [`MAX_LABEL_SETS`](Self::MAX_LABEL_SETS),
/// further labels count as `other`.
#[derive(Debug, Default)]
pub struct LabelledCounter(Mutex<BTreeMap<Vec<String>, u64>>);

impl LabelledCounter {
    /// Maximum number of label sets.
    pub const MAX_LABEL_SETS: usize = 1_000;

    /// Adds 1 to the counter with these labels.
    pub fn increment(&self, labels: &[&str]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let has_capacity = all.len() < Self::MAX_LABEL_SETS || all.contains_key(&key);
        let key = if has_capacity { key } else { labels.iter().map(|_| "other".to_owned()).collect() };
        *all.entry(key).or_default() += 1;
    }

    /// Returns all counters, ordered by label.
    pub fn snapshot(&self) -> Vec<(Vec<String>, u64)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }
}

/// A log event; it contains ids but no content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEvent {
    /// An agent started a session.
    SessionStarted(SessionId),
    /// A session ended.
    SessionEnded(SessionId),
    /// A subscription was accepted.
    SubscriptionOpened(SubscriptionId),
    /// A subscription was closed.
    SubscriptionClosed(SubscriptionId),
    /// A subscription was rejected, with this reason code.
    SubscriptionRejected(String),
    /// A question was asked.
    QuestionAsked {
        /// The question's token. It is secret, so it must not be logged in full.
        token: ReplyToken,
        /// The session of the question.
        session: SessionId,
    },
    /// A question was resolved.
    QuestionResolved {
        /// The question.
        token: ReplyToken,
        /// What resolved it.
        by: ResolvedBy,
    },
    /// An agent asked somebody to take over.
    HandoffRequested {
        /// The hand-off's token. It is secret, so it must not be logged in full.
        token: ReplyToken,
        /// The session.
        session: SessionId,
    },
    /// A hand-off was resolved.
    HandoffResolved {
        /// The hand-off.
        token: ReplyToken,
        /// How it was resolved.
        result: HandoffResult,
    },
    /// A reply was refused.
    ReplyRefused {
        /// The principal that sent it.
        principal: Box<str>,
        /// The reason.
        reason: String,
    },
    /// An agent's request broke these rules.
    RuleViolations(Vec<&'static str>),
    /// An event that the hub itself created in this session breaks these rules, so it was not published.
    HubEventRejected {
        /// The session.
        session: SessionId,
        /// The rules.
        rules: Vec<&'static str>,
    },
    /// A request was refused because of a limit.
    LimitReached(String),
    /// A listener connected.
    ListenerConnected {
        /// The connection.
        listener: ListenerId,
        /// Its subscription.
        subscription: SubscriptionId,
    },
    /// A listener reconnected too late to receive every event it missed.
    ResumeGap(ListenerId),
    /// A turn could not be stored; no part of it was applied.
    WriteFailed(String),
    /// The state could not be rebuilt after a failed write. The hub tries again before the next turn.
    RebuildFailed(String),
    /// The journal accepts writes again.
    WritesRecovered,
    /// The journal was restored from a backup or has lost entries, so unspent consents were voided and open questions
    /// were refused.
    ConsentsVoided {
        /// Number of voided consents.
        consents: usize,
        /// Number of refused questions.
        questions: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_label_sets_is_bounded() {
        let labelled = LabelledCounter::default();
        for number in 0..LabelledCounter::MAX_LABEL_SETS + 50 {
            labelled.increment(&[&number.to_string()]);
        }
        let all = labelled.snapshot();
        assert_eq!(all.len(), LabelledCounter::MAX_LABEL_SETS + 1);
        assert!(all.contains(&(vec!["other".to_owned()], 50)));
    }
}
