//! What an operator may know of the hub: numbers, and notes of what happened. Neither holds anything that an agent or a
//! person said.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use aaep::consent::By;
use aaep::{ReplyToken, SessionId, SubscriptionId};

use crate::ListenerId;

/// The hub's numbers. The turn adds to them once, when it is on disk; whoever shows them reads at any time.
#[derive(Debug, Default)]
pub struct Counters {
    /// Turns that were taken.
    pub turns: Count,
    /// Events that are on disk.
    pub events: Count,
    /// Rules that refused requests of agents were about, by id.
    pub refused: Labelled,
    /// Sessions that were started.
    pub sessions_started: Count,
    /// Sessions that have ended.
    pub sessions_ended: Count,
    /// Sessions that are open.
    pub sessions_open: Count,
    /// Subscriptions that were accepted.
    pub subscriptions_accepted: Count,
    /// Subscriptions that were rejected, by reason code.
    pub subscriptions_rejected: Labelled,
    /// Subscriptions that are open.
    pub subscriptions_open: Count,
    /// Connections that listen.
    pub listeners: Count,
    /// Listeners that came back and were told all that they missed.
    pub resumes_complete: Count,
    /// Listeners that came back too late for that, and were told the present state.
    pub resumes_gap: Count,
    /// Questions that were asked.
    pub questions_asked: Count,
    /// Questions that are open.
    pub questions_open: Count,
    /// Questions that were resolved, by `by` and decision.
    pub questions_resolved: Labelled,
    /// Deadlines that were moved.
    pub questions_extended: Count,
    /// Accepted questions that were spent on a call.
    pub consents_spent: Count,
    /// Replies by what came of them.
    pub replies: Labelled,
    /// Requests that were refused because too much is open.
    pub full: Count,
}

/// A number that others may read while it grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds.
    pub fn add(&self, more: u64) {
        if more > 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Takes away; never below nothing.
    pub fn take(&self, less: u64) {
        let _ =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_sub(less)));
    }

    /// Says how many there are now.
    pub fn set(&self, now: usize) {
        self.0.store(now as u64, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Numbers by label, for what is rare. The labels are words of ours; should there ever be too many, the rest is `other`.
#[derive(Debug, Default)]
pub struct Labelled(Mutex<BTreeMap<Vec<String>, u64>>);

impl Labelled {
    /// So many labels at most.
    pub const MOST: usize = 1_000;

    /// Adds one.
    pub fn one(&self, labels: &[&str]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let known = all.len() < Self::MOST || all.contains_key(&key);
        let key = if known { key } else { labels.iter().map(|_| "other".to_owned()).collect() };
        *all.entry(key).or_default() += 1;
    }

    /// All of them, in order.
    pub fn all(&self) -> Vec<(Vec<String>, u64)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(labels, count)| (labels.clone(), *count)).collect()
    }
}

/// Something that happened, by its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// An agent has started a session.
    SessionStarted(SessionId),
    /// A session has ended.
    SessionEnded(SessionId),
    /// A subscription was accepted.
    SubscriptionOpened(SubscriptionId),
    /// A subscription is closed.
    SubscriptionClosed(SubscriptionId),
    /// A subscription was rejected, with this reason code.
    SubscriptionRejected(String),
    /// A question was asked.
    QuestionAsked {
        /// What the answer must name: a secret of those who may answer.
        token: ReplyToken,
        /// In which session.
        session: SessionId,
    },
    /// A question was resolved.
    QuestionResolved {
        /// Which.
        token: ReplyToken,
        /// How.
        by: By,
    },
    /// A reply was not taken.
    ReplyRefused {
        /// The name of its sender's token.
        principal: Box<str>,
        /// Why.
        why: String,
    },
    /// What an agent said broke these rules.
    Unlawful(Vec<&'static str>),
    /// What the hub had to say itself in this session was refused by these rules, and is lacking.
    Unsaid {
        /// Which session.
        session: SessionId,
        /// The rules.
        rules: Vec<&'static str>,
    },
    /// A request was refused because too much is open.
    Full(String),
    /// A connection listens.
    Joined {
        /// The connection.
        listener: ListenerId,
        /// What it listens on.
        subscription: SubscriptionId,
    },
    /// A listener came back too late to be told all that it missed.
    Gap(ListenerId),
    /// A turn could not be written; nothing of it happened.
    NotStored(String),
    /// The state could not be read again after a failed write. It is read before the next turn.
    NotRead(String),
    /// The disk takes writes again.
    StoredAgain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded() {
        let labelled = Labelled::default();
        for number in 0..Labelled::MOST + 50 {
            labelled.one(&[&number.to_string()]);
        }
        let all = labelled.all();
        assert_eq!(all.len(), Labelled::MOST + 1);
        assert!(all.contains(&(vec!["other".to_owned()], 50)));
    }
}
