//! Applies journal entries to the in-memory journal.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{AttemptEntry, DecisionEntry, EventEntry, MemoryJournal, QuestionEntry, SessionEntry, Undo};
use crate::stored::{DecisionUse, OpenQuestion, OpenSession, OpenSubscription, StoredResponse};
use crate::{ConflictReason, JournalEntry, Position};

impl MemoryJournal {
    pub(super) fn is_session_open(&self, session: &str) -> bool {
        self.sessions.get(session).is_some_and(|session_entry| !session_entry.is_ended)
    }

    fn find_open_session(&mut self, session: &str) -> Result<&mut SessionEntry, ConflictReason> {
        self.sessions
            .get_mut(session)
            .filter(|session_entry| !session_entry.is_ended)
            .ok_or(ConflictReason::SessionNotOpen)
    }

    fn find_undecided_question(&mut self, token: &str) -> Result<&mut QuestionEntry, ConflictReason> {
        let question = self.questions.get_mut(token).ok_or(ConflictReason::UnknownQuestion)?;
        if question.decision.is_some() { Err(ConflictReason::AlreadyDecided) } else { Ok(question) }
    }

    fn find_subscription(&mut self, id: &str) -> Result<&mut OpenSubscription, ConflictReason> {
        self.subscriptions.get_mut(id).ok_or(ConflictReason::SubscriptionNotOpen)
    }

    /// Applies one entry and returns how to undo it. On a conflict it changes nothing.
    pub(super) fn apply(&mut self, entry: &JournalEntry<'_>) -> Result<Undo, ConflictReason> {
        match *entry {
            JournalEntry::Event { position, session, event_id, at, is_critical, body } => {
                if position != self.last_position.next() {
                    return Err(ConflictReason::PositionGap { expected: self.last_position.next() });
                }
                if self.position_by_event_id.contains_key(event_id) {
                    return Err(ConflictReason::DuplicateEventId);
                }
                let session_entry = self.find_open_session(session)?;
                session_entry.positions.insert(position);
                let (session, id) = (session_entry.id.clone(), Arc::<str>::from(event_id));
                self.position_by_event_id.insert(id.clone(), position);
                self.events.insert(position, EventEntry { session, id, at, is_critical, body: body.into() });
                self.last_position = position;
                self.log_bytes += body.len();
                Ok(Box::new(MemoryJournal::undo_event))
            }
            JournalEntry::SessionOpened { id, agent, principal, lease_expires_at, record } => {
                if self.sessions.contains_key(id) {
                    return Err(ConflictReason::DuplicateSessionId);
                }
                self.last_session_number += 1;
                let id = id.to_owned();
                let session = OpenSession {
                    id: id.clone(),
                    agent: agent.to_owned(),
                    principal: principal.to_owned(),
                    lease_expires_at,
                    record: record.to_vec(),
                };
                let session_entry = SessionEntry {
                    id: id.as_str().into(),
                    number: self.last_session_number,
                    session,
                    is_ended: false,
                    positions: BTreeSet::new(),
                };
                self.sessions.insert(id.clone(), session_entry);
                Ok(Box::new(move |memory| drop(memory.sessions.remove(&id))))
            }
            JournalEntry::SessionTouched { id, lease_expires_at, record } => {
                let session_entry = self.find_open_session(id)?;
                let before = session_entry.session.clone();
                session_entry.session.lease_expires_at = lease_expires_at;
                if let Some(record) = record {
                    session_entry.session.record = record.to_vec();
                }
                Ok(Box::new(move |memory| {
                    if let Some(session_entry) = memory.sessions.get_mut(&before.id) {
                        session_entry.session = before;
                    }
                }))
            }
            JournalEntry::SessionEnded { id, at: _ } => {
                self.find_open_session(id)?;
                let mut session_questions =
                    self.questions.values().filter(|question| question.open.session == id);
                if session_questions.any(|question| question.decision.is_none()) {
                    return Err(ConflictReason::SessionHasOpenQuestion);
                }
                self.find_open_session(id)?.is_ended = true;
                let id = id.to_owned();
                Ok(Box::new(move |memory| {
                    if let Some(session_entry) = memory.sessions.get_mut(&id) {
                        session_entry.is_ended = false;
                    }
                }))
            }
            JournalEntry::QuestionOpened { token, session, deadline, record } => {
                if self.questions.contains_key(token) {
                    return Err(ConflictReason::DuplicateQuestionToken);
                }
                self.find_open_session(session)?;
                let (token, session) = (token.to_owned(), session.to_owned());
                let open = OpenQuestion { token: token.clone(), session, deadline, record: record.to_vec() };
                self.questions.insert(token.clone(), QuestionEntry { open, decision: None });
                Ok(Box::new(move |memory| drop(memory.questions.remove(&token))))
            }
            JournalEntry::DeadlineMoved { token, deadline } => {
                let before =
                    std::mem::replace(&mut self.find_undecided_question(token)?.open.deadline, deadline);
                let token = token.to_owned();
                Ok(Box::new(move |memory| {
                    if let Some(question) = memory.questions.get_mut(&token) {
                        question.open.deadline = before;
                    }
                }))
            }
            JournalEntry::QuestionDecided { token, decision, decided_by, receipt, at } => {
                self.find_undecided_question(token)?.decision = Some(DecisionEntry {
                    decision: decision.to_owned(),
                    decided_by: decided_by.to_owned(),
                    receipt: receipt.to_vec(),
                    decided_at: at,
                    spent_on: None,
                });
                let token = token.to_owned();
                Ok(Box::new(move |memory| {
                    if let Some(question) = memory.questions.get_mut(&token) {
                        question.decision = None;
                    }
                }))
            }
            JournalEntry::DecisionSpent { token, call, at } => {
                let question = self.questions.get(token).ok_or(ConflictReason::UnknownQuestion)?;
                let decision_entry = question.decision.as_ref().ok_or(ConflictReason::NotDecided)?;
                if decision_entry.spent_on.is_some() {
                    return Err(ConflictReason::AlreadySpent);
                }
                if !self.is_session_open(&question.open.session) {
                    return Err(ConflictReason::SessionNotOpen);
                }
                self.set_spent_on(token, Some(DecisionUse { call: call.to_vec(), at }));
                let token = token.to_owned();
                Ok(Box::new(move |memory| memory.set_spent_on(&token, None)))
            }
            JournalEntry::SubscriptionOpened { id, principal, record } => {
                if self.subscriptions.contains_key(id) {
                    return Err(ConflictReason::DuplicateSubscriptionId);
                }
                let (id, principal) = (id.to_owned(), principal.to_owned());
                let cursor = Position::START;
                let open = OpenSubscription { id: id.clone(), principal, record: record.to_vec(), cursor };
                self.subscriptions.insert(id.clone(), open);
                Ok(Box::new(move |memory| drop(memory.subscriptions.remove(&id))))
            }
            JournalEntry::SubscriptionChanged { id, record } => {
                let before = std::mem::replace(&mut self.find_subscription(id)?.record, record.to_vec());
                let id = id.to_owned();
                Ok(Box::new(move |memory| {
                    if let Ok(open) = memory.find_subscription(&id) {
                        open.record = before;
                    }
                }))
            }
            JournalEntry::SubscriptionClosed { id } => {
                let before = self.subscriptions.remove(id).ok_or(ConflictReason::SubscriptionNotOpen)?;
                Ok(Box::new(move |memory| drop(memory.subscriptions.insert(before.id.clone(), before))))
            }
            JournalEntry::CursorMoved { subscription, position } => {
                let last = self.last_position;
                let open = self.find_subscription(subscription)?;
                if position > last {
                    return Err(ConflictReason::CursorBeyondLastEvent);
                }
                let before = open.cursor;
                open.cursor = before.max(position);
                let id = subscription.to_owned();
                Ok(Box::new(move |memory| {
                    if let Ok(open) = memory.find_subscription(&id) {
                        open.cursor = before;
                    }
                }))
            }
            JournalEntry::ResponseStored { principal, key, request, response, at } => {
                let principal_and_key = (principal.to_owned(), key.to_owned());
                if self.stored_responses.contains_key(&principal_and_key) {
                    return Err(ConflictReason::IdempotencyKeyUsed);
                }
                let stored = StoredResponse { request: request.to_vec(), response: response.to_vec(), at };
                self.stored_responses.insert(principal_and_key.clone(), stored);
                Ok(Box::new(move |memory| drop(memory.stored_responses.remove(&principal_and_key))))
            }
            JournalEntry::ManifestStored { agent, record } => {
                let agent = agent.to_owned();
                let before = match record {
                    Some(record) => self.manifests.insert(agent.clone(), record.to_vec()),
                    None => self.manifests.remove(&agent),
                };
                Ok(Box::new(move |memory| match before {
                    Some(record) => drop(memory.manifests.insert(agent, record)),
                    None => drop(memory.manifests.remove(&agent)),
                }))
            }
            JournalEntry::ReplyAttempted { at, principal, details } => {
                self.attempts.push_back(AttemptEntry { at, bytes: principal.len() + details.len() });
                self.log_bytes += principal.len() + details.len();
                Ok(Box::new(|memory| {
                    let removed = memory.attempts.pop_back();
                    memory.log_bytes -= removed.map_or(0, |attempt| attempt.bytes);
                }))
            }
        }
    }

    fn undo_event(&mut self) {
        if let Some((position, event)) = self.events.pop_last() {
            self.position_by_event_id.remove(&event.id);
            if let Some(session_entry) = self.sessions.get_mut(&*event.session) {
                session_entry.positions.remove(&position);
            }
            self.last_position = Position::new(position.get() - 1);
            self.log_bytes -= event.body.len();
        }
    }

    fn set_spent_on(&mut self, token: &str, spent_on: Option<DecisionUse>) {
        if let Some(decision_entry) =
            self.questions.get_mut(token).and_then(|question| question.decision.as_mut())
        {
            decision_entry.spent_on = spent_on;
        }
    }
}
