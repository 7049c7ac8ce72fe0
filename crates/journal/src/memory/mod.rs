//! The journal that lives as long as the value.

mod apply;
mod trim;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use seal::UnixMillis;

use crate::stored::{
    Alive, OpenQuestion, OpenSession, OpenSubscription, Remembered, Spending, StoredDecision, StoredEvent,
    StoredSession,
};
use crate::{Conflict, Entry, Error, Journal, Position, Retention, Trimmed};

/// A journal in memory, with the contract of [`Journal`] except that "durable" ends with the value.
#[derive(Debug, Default)]
pub struct Memory {
    events: BTreeMap<Position, Event>,
    /// Ids are made by the caller and by no stranger.
    ids: FxHashMap<Arc<str>, Position>,
    sessions: BTreeMap<String, Kept>,
    opened: u64,
    questions: BTreeMap<String, Question>,
    subscriptions: BTreeMap<String, OpenSubscription>,
    keys: HashMap<(String, String), Remembered>,
    attempts: VecDeque<Attempt>,
    last: Position,
    floor: Position,
    /// Of events and attempts.
    bytes: usize,
}

/// An event; its names are shared.
#[derive(Debug)]
struct Event {
    session: Arc<str>,
    id: Arc<str>,
    at: UnixMillis,
    critical: bool,
    body: Box<[u8]>,
}

#[derive(Debug)]
struct Kept {
    id: Arc<str>,
    number: u64,
    session: OpenSession,
    ended: bool,
    positions: BTreeSet<Position>,
}

/// Only its age and size: nothing reads an attempt back.
#[derive(Debug)]
struct Attempt {
    at: UnixMillis,
    bytes: usize,
}

#[derive(Debug)]
struct Question {
    open: OpenQuestion,
    decided: Option<Decision>,
}

#[derive(Debug)]
struct Decision {
    answer: String,
    by: String,
    receipt: Vec<u8>,
    at: UnixMillis,
    spent: Option<Spending>,
}

/// Takes one entry back; run in reverse order they leave what was there before the batch.
type Undo = Box<dyn FnOnce(&mut Memory)>;

impl Journal for Memory {
    fn commit(&mut self, batch: &[Entry<'_>]) -> Result<(), Error> {
        let conflict = |entry, reason| Err(Error::Conflict(Conflict { entry, reason }));
        // Of one there is nothing to take back.
        if let [one] = batch {
            return self.apply(one).map(drop).or_else(|reason| conflict(0, reason));
        }
        let mut undo: Vec<Undo> = Vec::with_capacity(batch.len());
        for (place, entry) in batch.iter().enumerate() {
            match self.apply(entry) {
                Ok(back) => undo.push(back),
                Err(reason) => {
                    undo.into_iter().rev().for_each(|back| back(self));
                    return conflict(place, reason);
                }
            }
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<Alive, Error> {
        let mut open: Vec<&Kept> = self.sessions.values().filter(|kept| !kept.ended).collect();
        open.sort_by_key(|kept| kept.number);
        Ok(Alive {
            sessions: open.into_iter().map(|kept| kept.session.clone()).collect(),
            questions: self
                .questions
                .values()
                .filter(|question| question.decided.is_none())
                .map(|question| question.open.clone())
                .collect(),
            unspent: self
                .questions
                .values()
                .filter(|question| self.is_open(&question.open.session))
                .filter_map(Question::decision)
                .filter(|decision| decision.spent.is_none())
                .collect(),
            subscriptions: self.subscriptions.values().cloned().collect(),
            last: self.last,
            floor: self.floor,
        })
    }

    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        Ok(self.events.range(after.next()..).take(limit).map(|(at, event)| event.stored(*at)).collect())
    }

    fn events_of(&mut self, session: &str, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        let Some(kept) = self.sessions.get(session) else { return Ok(Vec::new()) };
        let chosen = kept.positions.range(after.next()..).take(limit);
        Ok(chosen.filter_map(|position| Some(self.events.get(position)?.stored(*position))).collect())
    }

    fn position_of(&mut self, event_id: &str) -> Result<Option<Position>, Error> {
        Ok(self.ids.get(event_id).copied())
    }

    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, Error> {
        let kept = self.sessions.get(id);
        Ok(kept.map(|kept| StoredSession { opened: kept.session.clone(), ended: kept.ended }))
    }

    fn idempotent(&mut self, principal: &str, key: &str) -> Result<Option<Remembered>, Error> {
        Ok(self.keys.get(&(principal.to_owned(), key.to_owned())).cloned())
    }

    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, Error> {
        Ok(self.questions.get(token).and_then(Question::decision))
    }

    fn trim(&mut self, keep: &Retention, now: UnixMillis) -> Result<Trimmed, Error> {
        Ok(self.forget(keep, now))
    }

    fn size(&mut self) -> Result<u64, Error> {
        Ok((self.bytes + self.ledger()) as u64)
    }
}

impl Event {
    fn stored(&self, position: Position) -> StoredEvent {
        let Self { session, id, at, critical, body } = self;
        let (session, event_id) = (session.as_ref().to_owned(), id.as_ref().to_owned());
        StoredEvent { position, session, event_id, at: *at, critical: *critical, body: body.to_vec() }
    }
}

impl Question {
    fn decision(&self) -> Option<StoredDecision> {
        let decided = self.decided.as_ref()?;
        Some(StoredDecision {
            token: self.open.token.clone(),
            session: self.open.session.clone(),
            deadline: self.open.deadline,
            record: self.open.record.clone(),
            decision: decided.answer.clone(),
            by: decided.by.clone(),
            receipt: decided.receipt.clone(),
            at: decided.at,
            spent: decided.spent.clone(),
        })
    }
}
