//! Agents' requests that are waiting for an answer. They are indexed by request, question and time, and counted by
//! principal, so that the cost of a turn does not depend on the number of waits.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use aaep::ReplyToken;
use seal::UnixMillis;

use crate::command::{HubReply, RequestId};
use crate::shards::CountGuard;

#[derive(Default)]
pub(super) struct PendingWaits {
    open: HashMap<RequestId, PendingWait>,
    by_time: BTreeSet<(UnixMillis, RequestId)>,
    by_token: HashMap<ReplyToken, BTreeSet<RequestId>>,
    count_by_principal: HashMap<Arc<str>, usize>,
    /// Replies to send once the turn is stored.
    ready: Vec<(RequestId, HubReply)>,
}

struct PendingWait {
    until: UnixMillis,
    token: ReplyToken,
    principal: Arc<str>,
    /// Counts the wait, if there are several shards.
    _count: Option<CountGuard>,
}

impl PendingWaits {
    pub(super) fn insert(
        &mut self,
        request: RequestId,
        until: UnixMillis,
        token: ReplyToken,
        principal: Arc<str>,
        count: Option<CountGuard>,
    ) {
        self.remove(request);
        self.by_time.insert((until, request));
        self.by_token.entry(token.clone()).or_default().insert(request);
        *self.count_by_principal.entry(principal.clone()).or_default() += 1;
        self.open.insert(request, PendingWait { until, token, principal, _count: count });
    }

    /// Returns the question that a request waits for.
    pub(super) fn token_of(&self, request: RequestId) -> Option<&ReplyToken> {
        self.open.get(&request).map(|wait| &wait.token)
    }

    /// Whether any request waits for this question.
    pub(super) fn has_waiter(&self, token: &ReplyToken) -> bool {
        self.by_token.contains_key(token)
    }

    /// Returns the number of pending waits of a principal.
    pub(super) fn count_for_principal(&self, principal: &str) -> usize {
        self.count_by_principal.get(principal).copied().unwrap_or(0)
    }

    /// Removes a wait.
    pub(super) fn remove(&mut self, request: RequestId) {
        let Some(PendingWait { until, token, principal, .. }) = self.open.remove(&request) else { return };
        self.by_time.remove(&(until, request));
        if let Some(requests) = self.by_token.get_mut(&token) {
            requests.remove(&request);
            if requests.is_empty() {
                self.by_token.remove(&token);
            }
        }
        if let Some(count) = self.count_by_principal.get_mut(&principal) {
            *count -= 1;
            if *count == 0 {
                self.count_by_principal.remove(&principal);
            }
        }
    }

    /// Replies to every wait for a resolved question.
    pub(super) fn resolve(&mut self, token: &ReplyToken, reply: &HubReply) {
        for request in self.by_token.get(token).cloned().unwrap_or_default() {
            self.remove(request);
            self.ready.push((request, reply.clone()));
        }
    }

    /// Replies to every wait that has expired.
    pub(super) fn expire(&mut self, now: UnixMillis, reply: &HubReply) {
        while let Some((_, request)) = self.by_time.first().copied().filter(|(until, _)| *until <= now) {
            self.remove(request);
            self.ready.push((request, reply.clone()));
        }
    }

    /// Returns when the first wait expires.
    pub(super) fn next_deadline(&self) -> Option<UnixMillis> {
        self.by_time.first().map(|(until, _)| *until)
    }

    /// Takes the replies that are ready to be sent.
    pub(super) fn take_ready(&mut self) -> Vec<(RequestId, HubReply)> {
        std::mem::take(&mut self.ready)
    }

    /// Removes all waits and returns their requests, for a turn that was discarded.
    pub(super) fn take_all(&mut self) -> Vec<RequestId> {
        let Self { open, ready, .. } = std::mem::take(self);
        ready.into_iter().map(|(request, _)| request).chain(open.into_keys()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum WaitOperation {
        Insert(u64, i64, u8, u8),
        Remove(u64),
        Resolve(u8),
        Expire(i64),
        TakeAll,
    }

    fn operations() -> impl Strategy<Value = Vec<WaitOperation>> {
        let operation = prop_oneof![
            6 => (0..24_u64, 0..40_i64, 0..6_u8, 0..3_u8).prop_map(|(id, until, token, principal)| WaitOperation::Insert(id, until, token, principal)),
            2 => (0..24_u64).prop_map(WaitOperation::Remove),
            2 => (0..6_u8).prop_map(WaitOperation::Resolve),
            2 => (0..40_i64).prop_map(WaitOperation::Expire),
            1 => Just(WaitOperation::TakeAll),
        ];
        prop::collection::vec(operation, 0..120)
    }

    fn token(number: u8) -> ReplyToken {
        ReplyToken::parse(&format!("rpl_{number:032x}")).unwrap()
    }

    proptest! {
        #[test]
        fn the_indexes_agree_with_a_linear_scan(operations in operations()) {
            let mut waits = PendingWaits::default();
            let mut model: Vec<(u64, i64, u8, u8)> = Vec::new();
            for operation in operations {
                let is_removed = |wait: &(u64, i64, u8, u8)| match operation {
                    WaitOperation::Insert(id, ..) | WaitOperation::Remove(id) => wait.0 == id,
                    WaitOperation::Resolve(token) => wait.2 == token,
                    WaitOperation::Expire(now) => wait.1 <= now,
                    WaitOperation::TakeAll => true,
                };
                let mut expected: Vec<_> = model.iter().filter(|wait| is_removed(wait)).map(|wait| RequestId(wait.0)).collect();
                model.retain(|wait| !is_removed(wait));
                let mut replied = match operation {
                    WaitOperation::Insert(id, until, token_number, principal) => {
                        waits.insert(RequestId(id), UnixMillis::new(until), token(token_number), principal.to_string().into(), None);
                        model.push((id, until, token_number, principal));
                        expected.clear();
                        Vec::new()
                    }
                    WaitOperation::Remove(id) => {
                        waits.remove(RequestId(id));
                        expected.clear();
                        Vec::new()
                    }
                    WaitOperation::Resolve(token_number) => {
                        waits.resolve(&token(token_number), &HubReply::Done);
                        waits.take_ready().into_iter().map(|(id, _)| id).collect()
                    }
                    WaitOperation::Expire(now) => {
                        waits.expire(UnixMillis::new(now), &HubReply::Done);
                        waits.take_ready().into_iter().map(|(id, _)| id).collect()
                    }
                    WaitOperation::TakeAll => waits.take_all(),
                };
                expected.sort_unstable();
                replied.sort_unstable();
                prop_assert_eq!(replied, expected);
                prop_assert_eq!(waits.len(), model.len());
                prop_assert_eq!(waits.next_deadline(), model.iter().map(|wait| UnixMillis::new(wait.1)).min());
                for principal in 0..3 {
                    let count = model.iter().filter(|wait| wait.3 == principal).count();
                    prop_assert_eq!(waits.count_for_principal(&principal.to_string()), count);
                }
                prop_assert_eq!(waits.by_token.values().map(BTreeSet::len).sum::<usize>(), model.len());
            }
        }
    }
}
