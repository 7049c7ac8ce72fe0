//! Which subscriptions are open, whose they are, and which have lost their connection.

use std::collections::{BTreeMap, BTreeSet};

use seal::UnixMillis;

use crate::id::SubscriptionId;

use super::Question;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subscriptions {
    open: BTreeMap<SubscriptionId, Subscription>,
    /// Those that are lost, by the time at which they count as closed.
    lost: BTreeSet<(UnixMillis, SubscriptionId)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Subscription {
    principal: Box<str>,
    lost_until: Option<UnixMillis>,
}

impl Subscriptions {
    /// Opens one; not if it is somebody else's.
    pub(super) fn open(&mut self, id: &SubscriptionId, principal: &str) -> bool {
        if let Some(known) = self.open.get(id) {
            return *known.principal == *principal && self.resume(id);
        }
        let new = Subscription { principal: principal.into(), lost_until: None };
        self.open.insert(id.clone(), new).is_none()
    }

    pub(super) fn resume(&mut self, id: &SubscriptionId) -> bool {
        let Some(known) = self.open.get_mut(id) else { return false };
        if let Some(until) = known.lost_until.take() {
            self.lost.remove(&(until, id.clone()));
        }
        true
    }

    /// It has lost its connection, and may come back until then; once lost, it is given no more time.
    pub(super) fn lose(&mut self, id: &SubscriptionId, until: UnixMillis) {
        if let Some(known) = self.open.get_mut(id).filter(|known| known.lost_until.is_none()) {
            known.lost_until = Some(until);
            self.lost.insert((until, id.clone()));
        }
    }

    pub(super) fn close(&mut self, id: &SubscriptionId) {
        if let Some(Subscription { lost_until: Some(until), .. }) = self.open.remove(id) {
            self.lost.remove(&(until, id.clone()));
        }
    }

    /// One that did not come back in time.
    pub(super) fn lost_for_good(&self, now: UnixMillis) -> Option<SubscriptionId> {
        self.lost.first().filter(|(until, _)| *until <= now).map(|(_, id)| id.clone())
    }

    pub(super) fn next_closure(&self) -> Option<UnixMillis> {
        self.lost.first().map(|(until, _)| *until)
    }

    /// Whose it is, if it is open.
    pub(super) fn principal(&self, id: &SubscriptionId, now: UnixMillis) -> Option<&str> {
        let known = self.open.get(id)?;
        known.lost_until.is_none_or(|until| now < until).then_some(&*known.principal)
    }

    /// Whether anybody is there who may answer this question, or may come back to.
    pub(super) fn can_answer(&self, question: &Question, now: UnixMillis) -> bool {
        question.repliers.iter().any(|id| match self.open.get(id) {
            Some(known) => known.lost_until.is_none_or(|until| now < until && question.waits_for_return()),
            None => false,
        })
    }

    pub(super) fn is_known(&self, id: &SubscriptionId) -> bool {
        self.open.contains_key(id)
    }
}
