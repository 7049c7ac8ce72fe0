//! What may go, oldest first.

use std::collections::HashSet;

use seal::UnixMillis;

use super::{Memory, Question};
use crate::{Position, Retention, Trimmed};

impl Memory {
    pub(super) fn forget(&mut self, keep: &Retention, now: UnixMillis) -> Trimmed {
        let mut done = Trimmed::default();
        let too_old = |age: Option<i64>, at: UnixMillis| age.is_some_and(|age| at < now.saturating_sub(age));
        let ledger = self.ledger();
        let too_much = |bytes: usize| keep.bytes.is_some_and(|most| (bytes + ledger) as u64 > most);
        self.forget_events(keep.step, &mut done, |at, bytes| too_old(keep.events, at) || too_much(bytes));
        while let Some(attempt) = self.attempts.front() {
            if !too_old(keep.events, attempt.at) && (done.more || !too_much(self.bytes)) {
                break;
            }
            if done.attempts == keep.step as u64 {
                done.more = true;
                break;
            }
            self.bytes -= attempt.bytes;
            self.attempts.pop_front();
            done.attempts += 1;
        }
        let sessions = &self.sessions;
        self.questions.retain(|_, question| {
            let open = sessions.get(&question.open.session).is_some_and(|kept| !kept.ended);
            let goes = !open && question.decided.as_ref().is_some_and(|it| too_old(keep.decisions, it.at));
            done.decisions += u64::from(goes);
            !goes
        });
        self.forget_sessions(&mut done);
        self.keys.retain(|_, kept| {
            let goes = too_old(keep.keys, kept.at);
            done.keys += u64::from(goes);
            !goes
        });
        done.floor = self.floor;
        done.over = !done.more && too_much(self.bytes);
        done
    }

    /// The bytes of everything but events and attempts.
    pub(super) fn ledger(&self) -> usize {
        let sessions = self.sessions.values().map(|kept| &kept.session);
        let sessions = sessions.map(|it| it.id.len() + it.agent.len() + it.principal.len() + it.record.len());
        let questions = self.questions.values().map(Question::bytes);
        let subscriptions = self.subscriptions.values();
        let subscriptions = subscriptions.map(|it| it.id.len() + it.principal.len() + it.record.len());
        let keys = self.keys.iter();
        let keys = keys.map(|(name, it)| name.0.len() + name.1.len() + it.request.len() + it.response.len());
        sessions.chain(questions).chain(subscriptions).chain(keys).sum()
    }

    fn forget_events(&mut self, step: usize, done: &mut Trimmed, goes: impl Fn(UnixMillis, usize) -> bool) {
        for looked_at in 0.. {
            let Some((position, event)) = self.events.range(self.floor.next()..).next() else { return };
            if !goes(event.at, self.bytes) {
                return;
            }
            if looked_at == step {
                done.more = true;
                return;
            }
            let position = *position;
            if !self.is_open(&event.session) {
                self.forget_event(position, done);
            }
            self.floor = position;
        }
    }

    /// What ended sessions left below the floor, and the sessions themselves.
    fn forget_sessions(&mut self, done: &mut Trimmed) {
        let ended = self.sessions.values().filter(|kept| kept.ended);
        let below = ended.flat_map(|kept| kept.positions.range(..=self.floor).copied());
        let positions: Vec<Position> = below.collect();
        for position in positions {
            self.forget_event(position, done);
        }
        let asked: HashSet<&str> = self.questions.values().map(|question| &*question.open.session).collect();
        self.sessions.retain(|id, kept| !kept.ended || !kept.positions.is_empty() || asked.contains(&**id));
    }

    fn forget_event(&mut self, position: Position, done: &mut Trimmed) {
        let Some(event) = self.events.remove(&position) else { return };
        self.ids.remove(&event.id);
        if let Some(kept) = self.sessions.get_mut(&*event.session) {
            kept.positions.remove(&position);
        }
        self.bytes -= event.body.len();
        done.events += 1;
    }
}

impl Question {
    fn bytes(&self) -> usize {
        let receipt = self.decided.as_ref().map_or(0, |decided| decided.receipt.len());
        self.open.token.len() + self.open.session.len() + self.open.record.len() + receipt
    }
}
