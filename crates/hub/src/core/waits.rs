//! Agents that wait for an answer: found by their request, by the question and by the time, and counted by principal, so
//! that a turn costs what happens in it and not what waits.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use aaep::ReplyToken;
use seal::UnixMillis;

use crate::command::{Reply, RequestId};

#[derive(Default)]
pub(super) struct Waits {
    open: HashMap<RequestId, Waiting>,
    by_time: BTreeSet<(UnixMillis, RequestId)>,
    by_token: HashMap<ReplyToken, BTreeSet<RequestId>>,
    by_principal: HashMap<Arc<str>, usize>,
    /// What is told when the turn is on disk.
    answered: Vec<(RequestId, Reply)>,
}

struct Waiting {
    until: UnixMillis,
    token: ReplyToken,
    who: Arc<str>,
}

impl Waits {
    pub(super) fn insert(&mut self, request: RequestId, until: UnixMillis, token: ReplyToken, who: Arc<str>) {
        self.forget(request);
        self.by_time.insert((until, request));
        self.by_token.entry(token.clone()).or_default().insert(request);
        *self.by_principal.entry(who.clone()).or_default() += 1;
        self.open.insert(request, Waiting { until, token, who });
    }

    /// The question that this waits for.
    pub(super) fn token_of(&self, request: RequestId) -> Option<&ReplyToken> {
        self.open.get(&request).map(|waiting| &waiting.token)
    }

    /// Whether anybody waits for this.
    pub(super) fn has(&self, token: &ReplyToken) -> bool {
        self.by_token.contains_key(token)
    }

    /// How many of this principal wait.
    pub(super) fn of_principal(&self, who: &str) -> usize {
        self.by_principal.get(who).copied().unwrap_or(0)
    }

    /// Nobody waits for this any more.
    pub(super) fn forget(&mut self, request: RequestId) {
        let Some(Waiting { until, token, who }) = self.open.remove(&request) else { return };
        self.by_time.remove(&(until, request));
        if let Some(same) = self.by_token.get_mut(&token) {
            same.remove(&request);
            if same.is_empty() {
                self.by_token.remove(&token);
            }
        }
        if let Some(count) = self.by_principal.get_mut(&who) {
            *count -= 1;
            if *count == 0 {
                self.by_principal.remove(&who);
            }
        }
    }

    /// The question is resolved: all who wait for it are told so.
    pub(super) fn resolve(&mut self, token: &ReplyToken, answer: &Reply) {
        for request in self.by_token.get(token).cloned().unwrap_or_default() {
            self.forget(request);
            self.answered.push((request, answer.clone()));
        }
    }

    /// Whose time is over is told this.
    pub(super) fn expire(&mut self, now: UnixMillis, answer: &Reply) {
        while let Some((_, request)) = self.by_time.first().copied().filter(|(until, _)| *until <= now) {
            self.forget(request);
            self.answered.push((request, answer.clone()));
        }
    }

    /// When the first one's time is over.
    pub(super) fn next_deadline(&self) -> Option<UnixMillis> {
        self.by_time.first().map(|(until, _)| *until)
    }

    /// The answers of this turn.
    pub(super) fn take_answered(&mut self) -> Vec<(RequestId, Reply)> {
        std::mem::take(&mut self.answered)
    }

    /// Everybody, for a turn that did not happen.
    pub(super) fn take_all(&mut self) -> Vec<RequestId> {
        let Self { open, answered, .. } = std::mem::take(self);
        answered.into_iter().map(|(request, _)| request).chain(open.into_keys()).collect()
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
    enum Step {
        Insert(u64, i64, u8, u8),
        Forget(u64),
        Resolve(u8),
        Expire(i64),
        TakeAll,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0..24_u64, 0..40_i64, 0..6_u8, 0..3_u8).prop_map(|(id, until, token, who)| Step::Insert(id, until, token, who)),
            2 => (0..24_u64).prop_map(Step::Forget),
            2 => (0..6_u8).prop_map(Step::Resolve),
            2 => (0..40_i64).prop_map(Step::Expire),
            1 => Just(Step::TakeAll),
        ];
        prop::collection::vec(step, 0..120)
    }

    fn token(number: u8) -> ReplyToken {
        ReplyToken::parse(&format!("rpl_{number:032x}")).unwrap()
    }

    proptest! {
        #[test]
        fn the_indices_tell_what_a_scan_would(steps in steps()) {
            let mut waits = Waits::default();
            let mut naive: Vec<(u64, i64, u8, u8)> = Vec::new();
            for step in steps {
                let gone = |one: &(u64, i64, u8, u8)| match step {
                    Step::Insert(id, ..) | Step::Forget(id) => one.0 == id,
                    Step::Resolve(token) => one.2 == token,
                    Step::Expire(now) => one.1 <= now,
                    Step::TakeAll => true,
                };
                let mut told: Vec<_> = naive.iter().filter(|one| gone(one)).map(|one| RequestId(one.0)).collect();
                naive.retain(|one| !gone(one));
                let mut answered = match step {
                    Step::Insert(id, until, of, who) => {
                        waits.insert(RequestId(id), UnixMillis::new(until), token(of), who.to_string().into());
                        naive.push((id, until, of, who));
                        told.clear();
                        Vec::new()
                    }
                    Step::Forget(id) => {
                        waits.forget(RequestId(id));
                        told.clear();
                        Vec::new()
                    }
                    Step::Resolve(of) => {
                        waits.resolve(&token(of), &Reply::Done);
                        waits.take_answered().into_iter().map(|(id, _)| id).collect()
                    }
                    Step::Expire(now) => {
                        waits.expire(UnixMillis::new(now), &Reply::Done);
                        waits.take_answered().into_iter().map(|(id, _)| id).collect()
                    }
                    Step::TakeAll => waits.take_all(),
                };
                told.sort_unstable();
                answered.sort_unstable();
                prop_assert_eq!(answered, told);
                prop_assert_eq!(waits.len(), naive.len());
                prop_assert_eq!(waits.next_deadline(), naive.iter().map(|one| UnixMillis::new(one.1)).min());
                for who in 0..3 {
                    let count = naive.iter().filter(|one| one.3 == who).count();
                    prop_assert_eq!(waits.of_principal(&who.to_string()), count);
                }
                prop_assert_eq!(waits.by_token.values().map(BTreeSet::len).sum::<usize>(), naive.len());
            }
        }
    }
}
