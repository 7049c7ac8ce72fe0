//! The open subscriptions, their principals and their disconnections.

use std::collections::{BTreeMap, BTreeSet};

use seal::UnixMillis;

use crate::id::SubscriptionId;

use super::Question;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SubscriptionTable {
    open: BTreeMap<SubscriptionId, SubscriptionState>,
    /// Disconnected subscriptions by the time at which they count as closed.
    disconnected: BTreeSet<(UnixMillis, SubscriptionId)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SubscriptionState {
    principal: Box<str>,
    closes_at: Option<UnixMillis>,
}

impl SubscriptionTable {
    /// Opens or resumes a subscription, unless it belongs to another principal.
    pub(super) fn open(&mut self, id: &SubscriptionId, principal: &str) -> bool {
        if let Some(state) = self.open.get(id) {
            return *state.principal == *principal && self.resume(id);
        }
        let state = SubscriptionState { principal: principal.into(), closes_at: None };
        self.open.insert(id.clone(), state).is_none()
    }

    pub(super) fn resume(&mut self, id: &SubscriptionId) -> bool {
        let Some(state) = self.open.get_mut(id) else { return false };
        if let Some(closes_at) = state.closes_at.take() {
            self.disconnected.remove(&(closes_at, id.clone()));
        }
        true
    }

    /// Marks a subscription as disconnected. Unless it reconnects, it counts as closed at `closes_at`.
    /// A second call does not change this time.
    pub(super) fn mark_disconnected(&mut self, id: &SubscriptionId, closes_at: UnixMillis) {
        if let Some(state) = self.open.get_mut(id).filter(|state| state.closes_at.is_none()) {
            state.closes_at = Some(closes_at);
            self.disconnected.insert((closes_at, id.clone()));
        }
    }

    pub(super) fn close(&mut self, id: &SubscriptionId) {
        if let Some(SubscriptionState { closes_at: Some(closes_at), .. }) = self.open.remove(id) {
            self.disconnected.remove(&(closes_at, id.clone()));
        }
    }

    /// Returns a subscription that did not reconnect in time.
    pub(super) fn next_expired(&self, now: UnixMillis) -> Option<SubscriptionId> {
        self.disconnected.first().filter(|(closes_at, _)| *closes_at <= now).map(|(_, id)| id.clone())
    }

    pub(super) fn next_expiry(&self) -> Option<UnixMillis> {
        self.disconnected.first().map(|(closes_at, _)| *closes_at)
    }

    /// Returns the principal of an open subscription.
    pub(super) fn principal(&self, id: &SubscriptionId, now: UnixMillis) -> Option<&str> {
        let state = self.open.get(id)?;
        state.closes_at.is_none_or(|closes_at| now < closes_at).then_some(&*state.principal)
    }

    /// Returns whether any subscription can answer this question, or may reconnect to do so. Callers
    /// first close the subscriptions that did not reconnect in time, or leave them out of the question.
    pub(super) fn can_answer(&self, question: &Question) -> bool {
        question.replier_ids.iter().any(|id| match self.open.get(id) {
            Some(state) => state.closes_at.is_none() || question.waits_for_reconnect(),
            None => false,
        })
    }

    pub(super) fn contains(&self, id: &SubscriptionId) -> bool {
        self.open.contains_key(id)
    }
}
