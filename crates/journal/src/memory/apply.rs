//! One entry, done or refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Attempt, Decision, Event, Kept, Memory, Question, Undo};
use crate::stored::{OpenQuestion, OpenSession, OpenSubscription, Remembered, Spending};
use crate::{Entry, Position, Reason};

impl Memory {
    pub(super) fn is_open(&self, session: &str) -> bool {
        self.sessions.get(session).is_some_and(|kept| !kept.ended)
    }

    fn open_session(&mut self, session: &str) -> Result<&mut Kept, Reason> {
        self.sessions.get_mut(session).filter(|kept| !kept.ended).ok_or(Reason::SessionNotOpen)
    }

    fn undecided(&mut self, token: &str) -> Result<&mut Question, Reason> {
        let question = self.questions.get_mut(token).ok_or(Reason::QuestionUnknown)?;
        if question.decided.is_some() { Err(Reason::AlreadyDecided) } else { Ok(question) }
    }

    fn subscription(&mut self, id: &str) -> Result<&mut OpenSubscription, Reason> {
        self.subscriptions.get_mut(id).ok_or(Reason::SubscriptionNotOpen)
    }

    /// Does one entry and says how to take it back, or leaves everything as it was and says why not.
    pub(super) fn apply(&mut self, entry: &Entry<'_>) -> Result<Undo, Reason> {
        match *entry {
            Entry::Event { position, session, event_id, at, critical, body } => {
                if position != self.last.next() {
                    return Err(Reason::Gap { expected: self.last.next() });
                }
                if self.ids.contains_key(event_id) {
                    return Err(Reason::EventKnown);
                }
                let kept = self.open_session(session)?;
                kept.positions.insert(position);
                let (session, id) = (kept.id.clone(), Arc::<str>::from(event_id));
                self.ids.insert(id.clone(), position);
                self.events.insert(position, Event { session, id, at, critical, body: body.into() });
                self.last = position;
                self.bytes += body.len();
                Ok(Box::new(Memory::take_back_event))
            }
            Entry::SessionOpened { id, agent, principal, lease, record } => {
                if self.sessions.contains_key(id) {
                    return Err(Reason::SessionKnown);
                }
                self.opened += 1;
                let id = id.to_owned();
                let session = OpenSession {
                    id: id.clone(),
                    agent: agent.to_owned(),
                    principal: principal.to_owned(),
                    lease,
                    record: record.to_vec(),
                };
                let name = id.as_str().into();
                let kept =
                    Kept { id: name, number: self.opened, session, ended: false, positions: BTreeSet::new() };
                self.sessions.insert(id.clone(), kept);
                Ok(Box::new(move |memory| drop(memory.sessions.remove(&id))))
            }
            Entry::SessionTouched { id, lease, record } => {
                let kept = self.open_session(id)?;
                let before = kept.session.clone();
                kept.session.lease = lease;
                if let Some(record) = record {
                    kept.session.record = record.to_vec();
                }
                Ok(Box::new(move |memory| {
                    if let Some(kept) = memory.sessions.get_mut(&before.id) {
                        kept.session = before;
                    }
                }))
            }
            Entry::SessionEnded { id, at: _ } => {
                self.open_session(id)?;
                let mut asked = self.questions.values().filter(|question| question.open.session == id);
                if asked.any(|question| question.decided.is_none()) {
                    return Err(Reason::SessionStillAsks);
                }
                self.open_session(id)?.ended = true;
                let id = id.to_owned();
                Ok(Box::new(move |memory| {
                    if let Some(kept) = memory.sessions.get_mut(&id) {
                        kept.ended = false;
                    }
                }))
            }
            Entry::QuestionOpened { token, session, deadline, record } => {
                if self.questions.contains_key(token) {
                    return Err(Reason::QuestionKnown);
                }
                self.open_session(session)?;
                let (token, session) = (token.to_owned(), session.to_owned());
                let open = OpenQuestion { token: token.clone(), session, deadline, record: record.to_vec() };
                self.questions.insert(token.clone(), Question { open, decided: None });
                Ok(Box::new(move |memory| drop(memory.questions.remove(&token))))
            }
            Entry::DeadlineMoved { token, deadline } => {
                let before = std::mem::replace(&mut self.undecided(token)?.open.deadline, deadline);
                let token = token.to_owned();
                Ok(Box::new(move |memory| {
                    if let Some(question) = memory.questions.get_mut(&token) {
                        question.open.deadline = before;
                    }
                }))
            }
            Entry::Decided { token, decision, by, receipt, at } => {
                self.undecided(token)?.decided = Some(Decision {
                    answer: decision.to_owned(),
                    by: by.to_owned(),
                    receipt: receipt.to_vec(),
                    at,
                    spent: None,
                });
                let token = token.to_owned();
                Ok(Box::new(move |memory| {
                    if let Some(question) = memory.questions.get_mut(&token) {
                        question.decided = None;
                    }
                }))
            }
            Entry::Spent { token, call, at } => {
                let question = self.questions.get(token).ok_or(Reason::QuestionUnknown)?;
                let decided = question.decided.as_ref().ok_or(Reason::NotDecided)?;
                if decided.spent.is_some() {
                    return Err(Reason::AlreadySpent);
                }
                if !self.is_open(&question.open.session) {
                    return Err(Reason::SessionNotOpen);
                }
                self.spend(token, Some(Spending { call: call.to_vec(), at }));
                let token = token.to_owned();
                Ok(Box::new(move |memory| memory.spend(&token, None)))
            }
            Entry::SubscriptionOpened { id, principal, record } => {
                if self.subscriptions.contains_key(id) {
                    return Err(Reason::SubscriptionKnown);
                }
                let (id, principal) = (id.to_owned(), principal.to_owned());
                let cursor = Position::START;
                let open = OpenSubscription { id: id.clone(), principal, record: record.to_vec(), cursor };
                self.subscriptions.insert(id.clone(), open);
                Ok(Box::new(move |memory| drop(memory.subscriptions.remove(&id))))
            }
            Entry::SubscriptionChanged { id, record } => {
                let before = std::mem::replace(&mut self.subscription(id)?.record, record.to_vec());
                let id = id.to_owned();
                Ok(Box::new(move |memory| {
                    if let Ok(open) = memory.subscription(&id) {
                        open.record = before;
                    }
                }))
            }
            Entry::SubscriptionClosed { id } => {
                let before = self.subscriptions.remove(id).ok_or(Reason::SubscriptionNotOpen)?;
                Ok(Box::new(move |memory| drop(memory.subscriptions.insert(before.id.clone(), before))))
            }
            Entry::Cursor { subscription, position } => {
                let last = self.last;
                let open = self.subscription(subscription)?;
                if position > last {
                    return Err(Reason::BeyondLast);
                }
                let before = open.cursor;
                open.cursor = before.max(position);
                let id = subscription.to_owned();
                Ok(Box::new(move |memory| {
                    if let Ok(open) = memory.subscription(&id) {
                        open.cursor = before;
                    }
                }))
            }
            Entry::Idempotent { principal, key, request, response, at } => {
                let name = (principal.to_owned(), key.to_owned());
                if self.keys.contains_key(&name) {
                    return Err(Reason::KeyUsed);
                }
                let kept = Remembered { request: request.to_vec(), response: response.to_vec(), at };
                self.keys.insert(name.clone(), kept);
                Ok(Box::new(move |memory| drop(memory.keys.remove(&name))))
            }
            Entry::Attempt { at, subscription, what } => {
                self.attempts.push_back(Attempt { at, bytes: subscription.len() + what.len() });
                self.bytes += subscription.len() + what.len();
                Ok(Box::new(|memory| {
                    let taken = memory.attempts.pop_back();
                    memory.bytes -= taken.map_or(0, |attempt| attempt.bytes);
                }))
            }
        }
    }

    fn take_back_event(&mut self) {
        if let Some((position, event)) = self.events.pop_last() {
            self.ids.remove(&event.id);
            if let Some(kept) = self.sessions.get_mut(&*event.session) {
                kept.positions.remove(&position);
            }
            self.last = Position::new(position.get() - 1);
            self.bytes -= event.body.len();
        }
    }

    fn spend(&mut self, token: &str, spent: Option<Spending>) {
        if let Some(decided) = self.questions.get_mut(token).and_then(|question| question.decided.as_mut()) {
            decided.spent = spent;
        }
    }
}
