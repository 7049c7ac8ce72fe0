//! The effect of a batch: checks the preconditions of its entries in order, and combines them into one change per row.
//!
//! Postgres writes a batch in one statement, in which every row can change only once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::live_index::{LiveIndex, LiveSubscription, ShardCounters};
use crate::{Conflict, ConflictReason, JournalEntry, Position};

/// The rows outside the [`LiveIndex`] to which a batch may refer. They are read only to explain a conflict.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) event_ids: HashSet<String>,
    /// Ended sessions.
    pub(super) sessions: HashSet<String>,
    /// Questions that are spent or whose session has ended, with whether they are spent.
    pub(super) questions: HashMap<String, bool>,
    /// Each is a principal and a key.
    pub(super) idempotency_keys: HashSet<(String, String)>,
}

/// The changes of a batch. The maps are small, and their order does not matter except for sessions.
#[derive(Debug)]
pub(super) struct BatchPlan<'a> {
    pub(super) events: Vec<EventRow<'a>>,
    pub(super) sessions: HashMap<&'a str, SessionChange<'a>>,
    pub(super) questions: HashMap<&'a str, QuestionChange<'a>>,
    pub(super) subscriptions: HashMap<&'a str, SubscriptionChange<'a>>,
    pub(super) idempotency_keys: Vec<KeyRow<'a>>,
    pub(super) manifests: HashMap<&'a str, Option<&'a [u8]>>,
    pub(super) attempts: Vec<AttemptRow<'a>>,
    /// The counters after the batch.
    pub(super) counters: ShardCounters,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EventRow<'a> {
    pub(super) position: i64,
    pub(super) session: i64,
    pub(super) id: &'a str,
    pub(super) at: i64,
    pub(super) is_critical: bool,
    pub(super) body: &'a [u8],
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionChange<'a> {
    pub(super) number: i64,
    /// The agent and the principal of a new session.
    pub(super) opened: Option<(&'a str, &'a str)>,
    pub(super) lease: Option<i64>,
    pub(super) record: Option<&'a [u8]>,
    pub(super) ended: Option<i64>,
    pub(super) bytes: i64,
}

#[derive(Clone, Debug)]
pub(super) struct QuestionChange<'a> {
    pub(super) session: Arc<str>,
    pub(super) session_number: i64,
    pub(super) is_new: bool,
    pub(super) was_decided: bool,
    pub(super) deadline: Option<i64>,
    pub(super) record: Option<&'a [u8]>,
    pub(super) decision: Option<DecisionChange<'a>>,
    pub(super) spent: Option<(&'a [u8], i64)>,
    /// The size that the change adds to the row.
    pub(super) bytes: i64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DecisionChange<'a> {
    pub(super) decision: &'a str,
    pub(super) decided_by: &'a str,
    pub(super) receipt: &'a [u8],
    pub(super) at: i64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum SubscriptionChange<'a> {
    Opened { principal: &'a str, record: &'a [u8], live: LiveSubscription, was_stored: bool },
    Changed { record: Option<&'a [u8]>, live: LiveSubscription },
    Closed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KeyRow<'a> {
    pub(super) principal: &'a str,
    pub(super) key: &'a str,
    pub(super) request: &'a [u8],
    pub(super) response: &'a [u8],
    pub(super) at: i64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptRow<'a> {
    pub(super) at: i64,
    pub(super) principal: &'a str,
    pub(super) details: &'a [u8],
}

impl<'a> BatchPlan<'a> {
    /// Plans a batch. Without a history, rows outside the index are assumed not to exist, so a conflict may have
    /// another index or reason than the contract demands, and the database may find further ones.
    pub(super) fn new(
        batch: &[JournalEntry<'a>],
        index: &LiveIndex,
        history: Option<&History>,
    ) -> Result<Self, Conflict> {
        let mut counters = index.counters;
        counters.commit_number += 1;
        let plan = Self {
            events: Vec::with_capacity(batch.len()),
            sessions: HashMap::new(),
            questions: HashMap::new(),
            subscriptions: HashMap::new(),
            idempotency_keys: Vec::new(),
            manifests: HashMap::new(),
            attempts: Vec::new(),
            counters,
        };
        let mut planner = Planner { plan, index, history, event_ids: HashSet::new(), keys: HashSet::new() };
        for (entry_index, entry) in batch.iter().enumerate() {
            planner.apply(entry).map_err(|reason| Conflict { entry_index, reason })?;
        }
        Ok(planner.plan)
    }

    /// Adds the changes to the index, after the database has stored them.
    pub(super) fn apply_to(self, index: &mut LiveIndex) {
        for (id, session) in &self.sessions {
            if session.opened.is_some() {
                index.add_session(id, session.number);
            }
        }
        for (token, question) in &self.questions {
            match (question.is_new, question.spent.is_some()) {
                (true, false) => index.add_question(token, &question.session, question.decision.is_some()),
                (false, true) => index.remove_question(token),
                (false, false) if question.decision.is_some() => index.decide_question(token),
                (false, false) | (true, true) => {}
            }
        }
        for (id, session) in &self.sessions {
            if session.ended.is_some() {
                index.remove_session(id);
            }
        }
        for (id, change) in &self.subscriptions {
            match change {
                SubscriptionChange::Opened { live, .. } | SubscriptionChange::Changed { live, .. } => {
                    index.subscriptions.insert((*id).into(), *live);
                }
                SubscriptionChange::Closed => drop(index.subscriptions.remove(*id)),
            }
        }
        index.counters = self.counters;
    }
}

struct Planner<'a, 'i> {
    plan: BatchPlan<'a>,
    index: &'i LiveIndex,
    history: Option<&'i History>,
    event_ids: HashSet<&'a str>,
    keys: HashSet<(&'a str, &'a str)>,
}

impl<'a> Planner<'a, '_> {
    fn apply(&mut self, entry: &JournalEntry<'a>) -> Result<(), ConflictReason> {
        match *entry {
            JournalEntry::Event { position, session, event_id, at, is_critical, body } => {
                let expected = self.plan.counters.last_position.next();
                if position != expected {
                    return Err(ConflictReason::PositionGap { expected });
                }
                let is_stored = self.history.is_some_and(|history| history.event_ids.contains(event_id));
                if is_stored || !self.event_ids.insert(event_id) {
                    return Err(ConflictReason::DuplicateEventId);
                }
                let session = self.find_open_session(session)?;
                let position = position_to_sql(position);
                self.plan.events.push(EventRow {
                    position,
                    session,
                    id: event_id,
                    at: at.get(),
                    is_critical,
                    body,
                });
                self.plan.counters.last_position = expected;
                self.add_bytes(size([event_id.as_bytes(), body]));
            }
            JournalEntry::SessionOpened { id, agent, principal, lease_expires_at, record } => {
                let is_used = self.plan.sessions.contains_key(id)
                    || self.index.sessions.contains_key(id)
                    || self.history.is_some_and(|history| history.sessions.contains(id));
                if is_used {
                    return Err(ConflictReason::DuplicateSessionId);
                }
                self.plan.counters.last_session += 1;
                let bytes = size([id.as_bytes(), agent.as_bytes(), principal.as_bytes(), record]);
                let change = SessionChange {
                    number: self.plan.counters.last_session,
                    opened: Some((agent, principal)),
                    lease: Some(lease_expires_at.get()),
                    record: Some(record),
                    ended: None,
                    bytes,
                };
                self.plan.sessions.insert(id, change);
                self.add_bytes(bytes);
            }
            JournalEntry::SessionTouched { id, lease_expires_at, record } => {
                let change = self.change_session(id)?;
                change.lease = Some(lease_expires_at.get());
                change.record = record.or(change.record);
            }
            JournalEntry::SessionEnded { id, at } => {
                self.find_open_session(id)?;
                if self.has_open_question(id) {
                    return Err(ConflictReason::SessionHasOpenQuestion);
                }
                self.change_session(id)?.ended = Some(at.get());
            }
            JournalEntry::QuestionOpened { token, session, deadline, record } => {
                let is_used = self.plan.questions.contains_key(token)
                    || self.index.questions.contains_key(token)
                    || self.history.is_some_and(|history| history.questions.contains_key(token));
                if is_used {
                    return Err(ConflictReason::DuplicateQuestionToken);
                }
                let session_number = self.find_open_session(session)?;
                let bytes = size([token.as_bytes(), session.as_bytes(), record]);
                let change = QuestionChange {
                    session: session.into(),
                    session_number,
                    is_new: true,
                    was_decided: false,
                    deadline: Some(deadline.get()),
                    record: Some(record),
                    decision: None,
                    spent: None,
                    bytes,
                };
                self.plan.questions.insert(token, change);
                self.add_bytes(bytes);
            }
            JournalEntry::DeadlineMoved { token, deadline } => {
                self.change_undecided_question(token)?.deadline = Some(deadline.get());
            }
            JournalEntry::QuestionDecided { token, decision, decided_by, receipt, at } => {
                let question = self.change_undecided_question(token)?;
                let bytes = size([receipt]);
                question.decision = Some(DecisionChange { decision, decided_by, receipt, at: at.get() });
                question.bytes += bytes;
                self.add_bytes(bytes);
            }
            JournalEntry::DecisionSpent { token, call, at } => {
                let question = self.change_question(token)?;
                if !question.was_decided && question.decision.is_none() {
                    return Err(ConflictReason::NotDecided);
                }
                if question.spent.is_some() {
                    return Err(ConflictReason::AlreadySpent);
                }
                let session = question.session.clone();
                self.find_open_session(&session)?;
                self.change_question(token)?.spent = Some((call, at.get()));
            }
            JournalEntry::SubscriptionOpened { id, principal, record } => {
                let was_stored = self.index.subscriptions.contains_key(id);
                let is_open = match self.plan.subscriptions.get(id) {
                    Some(change) => !matches!(change, SubscriptionChange::Closed),
                    None => was_stored,
                };
                if is_open {
                    return Err(ConflictReason::DuplicateSubscriptionId);
                }
                let bytes = size([id.as_bytes(), principal.as_bytes(), record]);
                let live = LiveSubscription { cursor: Position::START, bytes, record_bytes: size([record]) };
                self.plan
                    .subscriptions
                    .insert(id, SubscriptionChange::Opened { principal, record, live, was_stored });
                self.add_bytes(bytes);
            }
            JournalEntry::SubscriptionChanged { id, record: new_record } => {
                let difference = match self.change_subscription(id)? {
                    (live, Some(record)) => {
                        *record = new_record;
                        set_record_bytes(live, size([new_record]))
                    }
                    (live, None) => {
                        let difference = set_record_bytes(live, size([new_record]));
                        let live = *live;
                        self.plan
                            .subscriptions
                            .insert(id, SubscriptionChange::Changed { record: Some(new_record), live });
                        difference
                    }
                };
                self.add_bytes(difference);
            }
            JournalEntry::SubscriptionClosed { id } => {
                let bytes = self.change_subscription(id)?.0.bytes;
                let was_stored = match self.plan.subscriptions.get(id) {
                    Some(SubscriptionChange::Opened { was_stored, .. }) => *was_stored,
                    _ => true,
                };
                if was_stored {
                    self.plan.subscriptions.insert(id, SubscriptionChange::Closed);
                } else {
                    self.plan.subscriptions.remove(id);
                }
                self.add_bytes(-bytes);
            }
            JournalEntry::CursorMoved { subscription, position } => {
                let last_position = self.plan.counters.last_position;
                let (live, _) = self.change_subscription(subscription)?;
                if position > last_position {
                    return Err(ConflictReason::CursorBeyondLastEvent);
                }
                live.cursor = live.cursor.max(position);
            }
            JournalEntry::ResponseStored { principal, key, request, response, at } => {
                let is_stored = self.history.is_some_and(|history| {
                    history.idempotency_keys.contains(&(principal.to_owned(), key.to_owned()))
                });
                if is_stored || !self.keys.insert((principal, key)) {
                    return Err(ConflictReason::IdempotencyKeyUsed);
                }
                self.plan.idempotency_keys.push(KeyRow { principal, key, request, response, at: at.get() });
                self.add_bytes(size([principal.as_bytes(), key.as_bytes(), request, response]));
            }
            JournalEntry::ManifestStored { agent, record } => {
                self.plan.manifests.insert(agent, record);
            }
            JournalEntry::ReplyAttempted { at, principal, details } => {
                self.plan.attempts.push(AttemptRow { at: at.get(), principal, details });
                self.add_bytes(size([principal.as_bytes(), details]));
            }
        }
        Ok(())
    }

    fn add_bytes(&mut self, bytes: i64) {
        self.plan.counters.stored_bytes += bytes;
    }

    /// Returns the number of an open session.
    fn find_open_session(&self, id: &str) -> Result<i64, ConflictReason> {
        if let Some(change) = self.plan.sessions.get(id) {
            return if change.ended.is_none() {
                Ok(change.number)
            } else {
                Err(ConflictReason::SessionNotOpen)
            };
        }
        self.index.sessions.get(id).map(|session| session.number).ok_or(ConflictReason::SessionNotOpen)
    }

    fn change_session(&mut self, id: &'a str) -> Result<&mut SessionChange<'a>, ConflictReason> {
        let number = self.find_open_session(id)?;
        Ok(self.plan.sessions.entry(id).or_insert(SessionChange { number, ..SessionChange::default() }))
    }

    fn has_open_question(&self, session: &str) -> bool {
        let mut undecided = self.index.sessions.get(session).map_or(0, |live| live.undecided);
        for question in self.plan.questions.values().filter(|question| &*question.session == session) {
            match (question.is_new, question.decision.is_some()) {
                (true, false) => undecided += 1,
                (false, true) if !question.was_decided => undecided -= 1,
                _ => {}
            }
        }
        undecided > 0
    }

    fn change_question(&mut self, token: &'a str) -> Result<&mut QuestionChange<'a>, ConflictReason> {
        if !self.plan.questions.contains_key(token) {
            let Some(live) = self.index.questions.get(token) else {
                let is_spent = self.history.and_then(|history| history.questions.get(token));
                return Err(match is_spent {
                    None => ConflictReason::UnknownQuestion,
                    Some(true) => ConflictReason::AlreadySpent,
                    Some(false) => ConflictReason::SessionNotOpen,
                });
            };
            let change = QuestionChange {
                session: live.session.clone(),
                session_number: 0,
                is_new: false,
                was_decided: live.is_decided,
                deadline: None,
                record: None,
                decision: None,
                spent: None,
                bytes: 0,
            };
            self.plan.questions.insert(token, change);
        }
        self.plan.questions.get_mut(token).ok_or(ConflictReason::UnknownQuestion)
    }

    fn change_undecided_question(
        &mut self,
        token: &'a str,
    ) -> Result<&mut QuestionChange<'a>, ConflictReason> {
        let question = self.change_question(token).map_err(|reason| match reason {
            // The question exists and is decided.
            ConflictReason::AlreadySpent | ConflictReason::SessionNotOpen => ConflictReason::AlreadyDecided,
            reason => reason,
        })?;
        if question.was_decided || question.decision.is_some() {
            return Err(ConflictReason::AlreadyDecided);
        }
        Ok(question)
    }

    /// Returns the live data of an open subscription, and its record if the batch changes it.
    fn change_subscription(
        &mut self,
        id: &'a str,
    ) -> Result<(&mut LiveSubscription, Option<&mut &'a [u8]>), ConflictReason> {
        if !self.plan.subscriptions.contains_key(id) {
            let live = *self.index.subscriptions.get(id).ok_or(ConflictReason::SubscriptionNotOpen)?;
            self.plan.subscriptions.insert(id, SubscriptionChange::Changed { record: None, live });
        }
        match self.plan.subscriptions.get_mut(id) {
            Some(SubscriptionChange::Opened { record, live, .. }) => Ok((live, Some(record))),
            Some(SubscriptionChange::Changed { record, live }) => Ok((live, record.as_mut())),
            Some(SubscriptionChange::Closed) | None => Err(ConflictReason::SubscriptionNotOpen),
        }
    }
}

/// Sets the size of a subscription's record. Returns the difference.
fn set_record_bytes(live: &mut LiveSubscription, record_bytes: i64) -> i64 {
    let difference = record_bytes - std::mem::replace(&mut live.record_bytes, record_bytes);
    live.bytes += difference;
    difference
}

/// Returns the total size, in bytes.
pub(super) fn size<const N: usize>(parts: [&[u8]; N]) -> i64 {
    i64::try_from(parts.iter().map(|part| part.len()).sum::<usize>()).unwrap_or(i64::MAX)
}

/// Converts a position to the integer of Postgres. Positions above `i64::MAX` are never stored.
pub(super) fn position_to_sql(position: Position) -> i64 {
    i64::try_from(position.get()).unwrap_or(i64::MAX)
}

/// Converts the integer of Postgres to a position. Negative numbers are never stored, so they map to 0.
pub(super) fn position_from_sql(number: i64) -> Position {
    Position::new(u64::try_from(number).unwrap_or(0))
}
