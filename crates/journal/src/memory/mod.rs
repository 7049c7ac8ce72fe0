//! The in-memory journal.

mod apply;
mod trim;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use seal::UnixMillis;

use crate::stored::{
    DecisionUse, LiveState, OpenQuestion, OpenSession, OpenSubscription, StoredDecision, StoredEvent,
    StoredManifest, StoredResponse, StoredSession,
};
use crate::{Conflict, Journal, JournalEntry, JournalError, Position, Retention, TrimReport};

/// A journal in memory. It follows the contract of [`Journal`], but its content is lost when the value is dropped.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    events: BTreeMap<Position, EventEntry>,
    /// A fast hash is safe here, because the caller generates the event ids. Untrusted peers cannot choose them.
    position_by_event_id: FxHashMap<Arc<str>, Position>,
    sessions: BTreeMap<String, SessionEntry>,
    /// The number of the session that was opened last. It stays the same when a batch is undone.
    last_session_number: u64,
    questions: BTreeMap<String, QuestionEntry>,
    subscriptions: BTreeMap<String, OpenSubscription>,
    /// The records of manifests, by agent.
    manifests: BTreeMap<String, Vec<u8>>,
    /// The stored responses, keyed by principal and idempotency key.
    stored_responses: HashMap<(String, String), StoredResponse>,
    attempts: VecDeque<AttemptEntry>,
    last_position: Position,
    trimmed_up_to: Position,
    /// The size of all event bodies and reply attempts, in bytes.
    log_bytes: usize,
}

/// An event. It shares the session's id with its [`SessionEntry`] and its own id with `position_by_event_id`.
#[derive(Debug)]
struct EventEntry {
    session: Arc<str>,
    id: Arc<str>,
    at: UnixMillis,
    is_critical: bool,
    body: Box<[u8]>,
}

#[derive(Debug)]
struct SessionEntry {
    id: Arc<str>,
    /// Sessions are numbered in the order in which they were opened.
    number: u64,
    session: OpenSession,
    is_ended: bool,
    positions: BTreeSet<Position>,
}

/// The age and size of a reply attempt. Its content is not stored, because nothing reads it back.
#[derive(Debug)]
struct AttemptEntry {
    at: UnixMillis,
    bytes: usize,
}

#[derive(Debug)]
struct QuestionEntry {
    open: OpenQuestion,
    decision: Option<DecisionEntry>,
}

#[derive(Debug)]
struct DecisionEntry {
    decision: String,
    decided_by: String,
    receipt: Vec<u8>,
    decided_at: UnixMillis,
    spent_on: Option<DecisionUse>,
}

/// Undoes one entry. Running the undo actions in reverse order restores the stored data from before the batch.
type Undo = Box<dyn FnOnce(&mut MemoryJournal)>;

impl Journal for MemoryJournal {
    fn commit(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError> {
        let conflict = |entry_index, reason| Err(JournalError::Conflict(Conflict { entry_index, reason }));
        // An entry that fails changes nothing, so a batch of one entry needs no undo actions.
        if let [entry] = batch {
            return self.apply(entry).map(drop).or_else(|reason| conflict(0, reason));
        }
        let mut undo_actions: Vec<Undo> = Vec::with_capacity(batch.len());
        for (index, entry) in batch.iter().enumerate() {
            match self.apply(entry) {
                Ok(undo) => undo_actions.push(undo),
                Err(reason) => {
                    undo_actions.into_iter().rev().for_each(|undo| undo(self));
                    return conflict(index, reason);
                }
            }
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<LiveState, JournalError> {
        let mut open: Vec<&SessionEntry> = self.sessions.values().filter(|entry| !entry.is_ended).collect();
        open.sort_by_key(|entry| entry.number);
        Ok(LiveState {
            sessions: open.into_iter().map(|entry| entry.session.clone()).collect(),
            questions: self
                .questions
                .values()
                .filter(|question| question.decision.is_none())
                .map(|question| question.open.clone())
                .collect(),
            unspent_decisions: self
                .questions
                .values()
                .filter(|question| self.is_session_open(&question.open.session))
                .filter_map(QuestionEntry::to_stored_decision)
                .filter(|decision| decision.spent_on.is_none())
                .collect(),
            subscriptions: self.subscriptions.values().cloned().collect(),
            manifests: self
                .manifests
                .iter()
                .map(|(agent, record)| StoredManifest { agent: agent.clone(), record: record.clone() })
                .collect(),
            last_position: self.last_position,
            trimmed_up_to: self.trimmed_up_to,
            must_void_consents: false,
        })
    }

    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, JournalError> {
        Ok(self
            .events
            .range(after.next()..)
            .take(limit)
            .map(|(position, event)| event.to_stored(*position))
            .collect())
    }

    fn session_events(
        &mut self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let Some(entry) = self.sessions.get(session) else { return Ok(Vec::new()) };
        let positions = entry.positions.range(after.next()..).take(limit);
        Ok(positions.filter_map(|position| Some(self.events.get(position)?.to_stored(*position))).collect())
    }

    fn event_position(&mut self, event_id: &str) -> Result<Option<Position>, JournalError> {
        Ok(self.position_by_event_id.get(event_id).copied())
    }

    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, JournalError> {
        let entry = self.sessions.get(id);
        Ok(entry.map(|entry| StoredSession { session: entry.session.clone(), is_ended: entry.is_ended }))
    }

    fn stored_response(
        &mut self,
        principal: &str,
        key: &str,
    ) -> Result<Option<StoredResponse>, JournalError> {
        Ok(self.stored_responses.get(&(principal.to_owned(), key.to_owned())).cloned())
    }

    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, JournalError> {
        Ok(self.questions.get(token).and_then(QuestionEntry::to_stored_decision))
    }

    fn trim(&mut self, retention: &Retention, now: UnixMillis) -> Result<TrimReport, JournalError> {
        Ok(self.trim_step(retention, now))
    }

    fn pause_checkpoints(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    fn resume_checkpoints(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    fn size_bytes(&mut self) -> Result<u64, JournalError> {
        Ok((self.log_bytes + self.state_bytes()) as u64)
    }
}

impl EventEntry {
    fn to_stored(&self, position: Position) -> StoredEvent {
        let Self { session, id, at, is_critical, body } = self;
        let (session, event_id) = (session.as_ref().to_owned(), id.as_ref().to_owned());
        StoredEvent { position, session, event_id, at: *at, is_critical: *is_critical, body: body.to_vec() }
    }
}

impl QuestionEntry {
    fn to_stored_decision(&self) -> Option<StoredDecision> {
        let decision = self.decision.as_ref()?;
        Some(StoredDecision {
            token: self.open.token.clone(),
            session: self.open.session.clone(),
            deadline: self.open.deadline,
            record: self.open.record.clone(),
            decision: decision.decision.clone(),
            decided_by: decision.decided_by.clone(),
            receipt: decision.receipt.clone(),
            decided_at: decision.decided_at,
            spent_on: decision.spent_on.clone(),
        })
    }
}
