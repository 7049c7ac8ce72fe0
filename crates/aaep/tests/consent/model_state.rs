//! The state of the exhaustive model: one registry, what an observer has recorded about it, and the
//! invariants.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use aaep::consent::{ConsentOutcome, ResolvedBy, StagedChange};
use seal::UnixMillis;

use super::consent_hub::*;

pub(crate) const TICK_MS: i64 = 40_000;
/// The timeout of each question in milliseconds, without extensions.
pub(crate) const TIMEOUT_MS: [i64; 2] = [70_000, 30_000];

/// The state of a listener's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ModelLink {
    Open,
    /// The tick at which the connection was lost.
    LostAt(u8),
    Closed,
}

/// The observer's record of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ObservedQuestion {
    pub(crate) asked_tick: Option<u8>,
    pub(crate) extended_ms: i64,
    /// Whether the question was accepted, and how it was resolved.
    pub(crate) resolved: Option<(bool, ResolvedBy)>,
    pub(crate) is_spent: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelState {
    pub(crate) registry: TestRegistry,
    pub(crate) tick: u8,
    pub(crate) links: [ModelLink; 2],
    pub(crate) observed: [ObservedQuestion; 2],
    pub(crate) is_session_ended: bool,
    pub(crate) crash_tick: Option<u8>,
    pub(crate) violations: BTreeSet<&'static str>,
}

impl ModelState {
    /// Returns what distinguishes this state from others.
    pub(crate) fn key(&self) -> impl Hash + PartialEq + use<> {
        let status_and_deadline = |n: usize| {
            let question = self.registry.question(&token(question_number(n)));
            question.map(|question| (question.status, question.deadline))
        };
        let observations = (
            self.tick,
            self.links,
            self.observed,
            self.is_session_ended,
            self.crash_tick,
            self.violations.clone(),
        );
        (observations, status_and_deadline(0), status_and_deadline(1), self.registry.next_deadline())
    }

    pub(crate) fn now(&self) -> UnixMillis {
        T0 + i64::from(self.tick) * TICK_MS
    }

    /// Returns whether the listener is connected or can still resume its subscription.
    pub(crate) fn is_live(&self, listener: usize) -> bool {
        match self.links[listener] {
            ModelLink::Open => true,
            ModelLink::LostAt(tick) => self.tick <= tick,
            ModelLink::Closed => false,
        }
    }

    pub(crate) fn deadline(&self, n: usize) -> Option<UnixMillis> {
        let observed_question = &self.observed[n];
        observed_question
            .asked_tick
            .map(|tick| T0 + i64::from(tick) * TICK_MS + TIMEOUT_MS[n] + observed_question.extended_ms)
    }

    pub(crate) fn is_open(&self, n: usize) -> bool {
        !self.is_session_ended && self.observed[n].asked_tick.is_some() && self.observed[n].resolved.is_none()
    }

    pub(crate) fn check_invariant(&mut self, invariant: &'static str, holds: bool) {
        if !holds {
            self.violations.insert(invariant);
        }
    }

    pub(crate) fn commit(&mut self, staged: StagedChange) {
        for outcome in staged.outcomes() {
            if let ConsentOutcome::Resolved(resolution) = outcome {
                let n = usize::from(resolution.token == token(question_number(1)));
                let (accepted, was_resolved) =
                    (resolution.is_accepted(), self.observed[n].resolved.is_some());
                let is_past_deadline = self.deadline(n).is_some_and(|deadline| self.now() >= deadline);
                self.check_invariant("a question is resolved only once", !was_resolved);
                self.check_invariant(
                    "nothing irreversible is accepted by default",
                    n == 1 || !accepted || resolution.resolved_by == ResolvedBy::Reply,
                );
                self.check_invariant(
                    "a timeout comes only after the deadline",
                    resolution.resolved_by != ResolvedBy::Timeout || is_past_deadline,
                );
                let is_by_default = matches!(
                    resolution.resolved_by,
                    ResolvedBy::Timeout | ResolvedBy::Closure | ResolvedBy::Unreachable
                );
                self.check_invariant(
                    "without a reply, the default applies",
                    !is_by_default || accepted == (n == 1),
                );
                let is_withdrawn =
                    matches!(resolution.resolved_by, ResolvedBy::Cancelled | ResolvedBy::Stopped);
                self.check_invariant("a withdrawn question is refused", !is_withdrawn || !accepted);
                self.observed[n].resolved = Some((accepted, resolution.resolved_by));
            }
        }
        self.is_session_ended |= staged.ended_session().is_some();
        self.registry.commit(staged);
    }
}

impl PartialEq for ModelState {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Hash for ModelState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.key().hash(hasher);
    }
}

/// Returns the number that the helpers of `consent_hub` use for the question with index `n`.
pub(crate) fn question_number(n: usize) -> u8 {
    [0xa0, 0xa1][n]
}
