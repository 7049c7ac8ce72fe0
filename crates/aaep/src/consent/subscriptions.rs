//! The open subscriptions, their principals, and which of them are disconnected.

use std::collections::{BTreeMap, BTreeSet};

use seal::UnixMillis;

use crate::id::SubscriptionId;

use super::Question;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SubscriptionTable {
    open: BTreeMap<SubscriptionId, SubscriptionState>,
    /// Disconnected subscriptions by the time at which they count as closed.
    lost: BTreeSet<(UnixMillis, SubscriptionId)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SubscriptionState {
    principal: Box<str>,
    lost_until: Option<UnixMillis>,
}

impl SubscriptionTable {
    /// Opens or resumes a subscription, unless it belongs to another principal.
    pub(super) fn open(&mut self, id: &SubscriptionId, principal: &str) -> bool {
        if let Some(state) = self.open.get(id) {
            return *state.principal == *principal && self.resume(id);
        }
        let state = SubscriptionState { principal: principal.into(), lost_until: None };
        self.open.insert(id.clone(), state).is_none()
    }

    pub(super) fn resume(&mut self, id: &SubscriptionId) -> bool {
        let Some(state) = self.open.get_mut(id) else { return false };
        if let Some(until) = state.lost_until.take() {
            self.lost.remove(&(until, id.clone()));
        }
        true
    }

    /// Marks a subscription as disconnected. Unless it reconnects, it counts as closed at `until`.
    /// A second call does not change this time.
    pub(super) fn mark_lost(&mut self, id: &SubscriptionId, until: UnixMillis) {
        if let Some(state) = self.open.get_mut(id).filter(|state| state.lost_until.is_none()) {
            state.lost_until = Some(until);
            self.lost.insert((until, id.clone()));
        }
    }

    pub(super) fn close(&mut self, id: &SubscriptionId) {
        if let Some(SubscriptionState { lost_until: Some(until), .. }) = self.open.remove(id) {
            self.lost.remove(&(until, id.clone()));
        }
    }

    /// Returns a subscription that did not reconnect in time.
    pub(super) fn next_expired(&self, now: UnixMillis) -> Option<SubscriptionId> {
        self.lost.first().filter(|(until, _)| *until <= now).map(|(_, id)| id.clone())
    }

    pub(super) fn next_expiry(&self) -> Option<UnixMillis> {
        self.lost.first().map(|(until, _)| *until)
    }

    /// Returns the principal of an open subscription.
    pub(super) fn principal(&self, id: &SubscriptionId, now: UnixMillis) -> Option<&str> {
        let state = self.open.get(id)?;
        state.lost_until.is_none_or(|until| now < until).then_some(&*state.principal)
    }

    /// Returns whether any subscription can answer this question, or may reconnect to do so.
    pub(super) fn can_answer(&self, question: &Question, now: UnixMillis) -> bool {
        question.replier_ids.iter().any(|id| match self.open.get(id) {
            Some(state) => state.lost_until.is_none_or(|until| now < until && question.waits_for_reconnect()),
            None => false,
        })
    }

    pub(super) fn contains(&self, id: &SubscriptionId) -> bool {
        self.open.contains_key(id)
    }
}
