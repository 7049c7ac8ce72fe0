//! A naive model of the contract. It searches lists from the front and copies them for every batch.

use journal::stored::{
    DecisionUse, LiveState, OpenQuestion, OpenSession, OpenSubscription, StoredDecision, StoredEvent,
    StoredManifest, StoredSession,
};
use journal::{Conflict, ConflictReason, JournalEntry, Position};
use seal::UnixMillis;

#[derive(Clone, Default)]
pub(crate) struct ModelJournal {
    pub(crate) events: Vec<StoredEvent>,
    /// Each session, and whether it has ended.
    sessions: Vec<(OpenSession, bool)>,
    questions: Vec<(OpenQuestion, Option<StoredDecision>)>,
    subscriptions: Vec<OpenSubscription>,
    manifests: Vec<StoredManifest>,
    pub(crate) idempotency_keys: Vec<(String, String)>,
    pub(crate) last_position: Position,
    trimmed_up_to: Position,
}

impl ModelJournal {
    pub(crate) fn commit(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), Conflict> {
        let mut next = self.clone();
        for (entry_index, entry) in batch.iter().enumerate() {
            next.apply(entry).map_err(|reason| Conflict { entry_index, reason })?;
        }
        *self = next;
        Ok(())
    }

    pub(crate) fn trim(&mut self, cutoff: i64) {
        let untrimmed = self.events.iter().filter(|event| event.position > self.trimmed_up_to);
        let newest_expired = untrimmed.take_while(|event| event.at < UnixMillis::new(cutoff)).last();
        self.trimmed_up_to = newest_expired.map_or(self.trimmed_up_to, |event| event.position);
        let Self { events, sessions, questions, trimmed_up_to, .. } = self;
        let is_session_open =
            |id: &str| sessions.iter().any(|(session, is_ended)| session.id == id && !is_ended);
        events.retain(|event| event.position > *trimmed_up_to || is_session_open(&event.session));
        questions.retain(|(question, decision)| {
            is_session_open(&question.session)
                || decision.as_ref().is_none_or(|decision| decision.decided_at >= UnixMillis::new(cutoff))
        });
        sessions.retain(|(session, is_ended)| {
            !is_ended
                || events.iter().any(|event| event.session == session.id)
                || questions.iter().any(|(question, _)| question.session == session.id)
        });
    }

    pub(crate) fn live_state(&self) -> LiveState {
        let open = self.sessions.iter().filter(|(_, is_ended)| !is_ended);
        let undecided = self.questions.iter().filter(|(_, decision)| decision.is_none());
        let decided = self.questions.iter().filter_map(|(_, decision)| decision.as_ref());
        let mut live_state = LiveState {
            sessions: open.map(|(session, _)| session.clone()).collect(),
            questions: undecided.map(|(question, _)| question.clone()).collect(),
            unspent_decisions: decided
                .filter(|decision| {
                    decision.spent_on.is_none() && self.open_session_index(&decision.session).is_ok()
                })
                .cloned()
                .collect(),
            subscriptions: self.subscriptions.clone(),
            manifests: self.manifests.clone(),
            last_position: self.last_position,
            trimmed_up_to: self.trimmed_up_to,
            must_void_consents: false,
        };
        live_state.questions.sort_by(|a, b| a.token.cmp(&b.token));
        live_state.unspent_decisions.sort_by(|a, b| a.token.cmp(&b.token));
        live_state.subscriptions.sort_by(|a, b| a.id.cmp(&b.id));
        live_state.manifests.sort_by(|a, b| a.agent.cmp(&b.agent));
        live_state
    }

    pub(crate) fn session(&self, id: &str) -> Option<StoredSession> {
        let (session, is_ended) = self.sessions.iter().find(|(session, _)| session.id == id)?;
        Some(StoredSession { session: session.clone(), is_ended: *is_ended })
    }

    pub(crate) fn decision(&self, token: &str) -> Option<StoredDecision> {
        self.questions.iter().find(|(question, _)| question.token == token)?.1.clone()
    }

    fn open_session_index(&self, id: &str) -> Result<usize, ConflictReason> {
        let index = self.sessions.iter().position(|(session, is_ended)| session.id == id && !is_ended);
        index.ok_or(ConflictReason::SessionNotOpen)
    }

    fn question_index(&self, token: &str) -> Result<usize, ConflictReason> {
        let index = self.questions.iter().position(|(question, _)| question.token == token);
        index.ok_or(ConflictReason::UnknownQuestion)
    }

    fn undecided_question_index(&self, token: &str) -> Result<usize, ConflictReason> {
        let index = self.question_index(token)?;
        if self.questions[index].1.is_some() { Err(ConflictReason::AlreadyDecided) } else { Ok(index) }
    }

    fn subscription_index(&self, id: &str) -> Result<usize, ConflictReason> {
        self.subscriptions.iter().position(|open| open.id == id).ok_or(ConflictReason::SubscriptionNotOpen)
    }

    fn apply(&mut self, entry: &JournalEntry<'_>) -> Result<(), ConflictReason> {
        match *entry {
            JournalEntry::Event { position, session, event_id, at, is_critical, body } => {
                ensure(
                    position == self.last_position.next(),
                    ConflictReason::PositionGap { expected: self.last_position.next() },
                )?;
                ensure(
                    self.events.iter().all(|event| event.event_id != event_id),
                    ConflictReason::DuplicateEventId,
                )?;
                self.open_session_index(session)?;
                let (session, event_id) = (session.to_owned(), event_id.to_owned());
                let body = body.to_vec();
                self.events.push(StoredEvent { position, session, event_id, at, is_critical, body });
                self.last_position = position;
            }
            JournalEntry::SessionOpened { id, agent, principal, lease_expires_at, record } => {
                ensure(
                    self.sessions.iter().all(|(session, _)| session.id != id),
                    ConflictReason::DuplicateSessionId,
                )?;
                let (id, agent, principal) = (id.to_owned(), agent.to_owned(), principal.to_owned());
                self.sessions.push((
                    OpenSession { id, agent, principal, lease_expires_at, record: record.to_vec() },
                    false,
                ));
            }
            JournalEntry::SessionTouched { id, lease_expires_at, record } => {
                let index = self.open_session_index(id)?;
                self.sessions[index].0.lease_expires_at = lease_expires_at;
                if let Some(record) = record {
                    self.sessions[index].0.record = record.to_vec();
                }
            }
            JournalEntry::SessionEnded { id, .. } => {
                let index = self.open_session_index(id)?;
                let blocks_end = |(question, decision): &(OpenQuestion, Option<StoredDecision>)| {
                    question.session == id && decision.is_none()
                };
                ensure(!self.questions.iter().any(blocks_end), ConflictReason::SessionHasOpenQuestion)?;
                self.sessions[index].1 = true;
            }
            JournalEntry::QuestionOpened { token, session, deadline, record } => {
                ensure(self.question_index(token).is_err(), ConflictReason::DuplicateQuestionToken)?;
                self.open_session_index(session)?;
                let (token, session) = (token.to_owned(), session.to_owned());
                self.questions
                    .push((OpenQuestion { token, session, deadline, record: record.to_vec() }, None));
            }
            JournalEntry::DeadlineMoved { token, deadline } => {
                let index = self.undecided_question_index(token)?;
                self.questions[index].0.deadline = deadline;
            }
            JournalEntry::QuestionDecided { token, decision, decided_by, receipt, at } => {
                let index = self.undecided_question_index(token)?;
                let OpenQuestion { token, session, deadline, record } = self.questions[index].0.clone();
                let (decision, decided_by, receipt) =
                    (decision.to_owned(), decided_by.to_owned(), receipt.to_vec());
                self.questions[index].1 = Some(StoredDecision {
                    token,
                    session,
                    deadline,
                    record,
                    decision,
                    decided_by,
                    receipt,
                    decided_at: at,
                    spent_on: None,
                });
            }
            JournalEntry::DecisionSpent { token, call, at } => {
                let index = self.question_index(token)?;
                let session = self.questions[index].0.session.clone();
                let open_session_index = self.open_session_index(&session);
                let decision = self.questions[index].1.as_mut().ok_or(ConflictReason::NotDecided)?;
                ensure(decision.spent_on.is_none(), ConflictReason::AlreadySpent)?;
                open_session_index?;
                decision.spent_on = Some(DecisionUse { call: call.to_vec(), at });
            }
            JournalEntry::SubscriptionOpened { id, principal, record } => {
                ensure(self.subscription_index(id).is_err(), ConflictReason::DuplicateSubscriptionId)?;
                let (id, principal) = (id.to_owned(), principal.to_owned());
                let (record, cursor) = (record.to_vec(), Position::START);
                self.subscriptions.push(OpenSubscription { id, principal, record, cursor });
            }
            JournalEntry::SubscriptionChanged { id, record } => {
                let index = self.subscription_index(id)?;
                self.subscriptions[index].record = record.to_vec();
            }
            JournalEntry::SubscriptionClosed { id } => {
                drop(self.subscriptions.remove(self.subscription_index(id)?));
            }
            JournalEntry::CursorMoved { subscription, position } => {
                let index = self.subscription_index(subscription)?;
                ensure(position <= self.last_position, ConflictReason::CursorBeyondLastEvent)?;
                let cursor = &mut self.subscriptions[index].cursor;
                *cursor = position.max(*cursor);
            }
            JournalEntry::ResponseStored { principal, key, .. } => {
                let principal_and_key = (principal.to_owned(), key.to_owned());
                ensure(
                    !self.idempotency_keys.contains(&principal_and_key),
                    ConflictReason::IdempotencyKeyUsed,
                )?;
                self.idempotency_keys.push(principal_and_key);
            }
            JournalEntry::ManifestStored { agent, record } => {
                self.manifests.retain(|manifest| manifest.agent != agent);
                let manifest =
                    record.map(|record| StoredManifest { agent: agent.to_owned(), record: record.to_vec() });
                self.manifests.extend(manifest);
            }
            JournalEntry::ReplyAttempted { .. } => {}
            _ => panic!("the model does not support this entry"),
        }
        Ok(())
    }
}

fn ensure(condition: bool, reason: ConflictReason) -> Result<(), ConflictReason> {
    if condition { Ok(()) } else { Err(reason) }
}
