//! Reads the live state, events and decisions.

use std::collections::HashMap;

use super::rows::{self, EventRow, QuestionRow, SessionRow};
use super::{SqliteJournal, index_buffer};
use crate::stored::{LiveState, OpenQuestion, StoredDecision, StoredEvent};
use crate::{DamageLocation, JournalError, Position};

impl SqliteJournal {
    pub(super) fn read_live_state(&self) -> Result<LiveState, JournalError> {
        let connection = &self.connection;
        let sessions = SessionRow::read_open(connection)?;
        let ids: HashMap<i64, &str> = sessions.iter().map(|row| (row.number, &*row.session.id)).collect();
        let find_session_id = |number: i64| {
            ids.get(&number)
                .map(|id| (*id).to_owned())
                .ok_or_else(|| JournalError::corrupt(DamageLocation::Question))
        };
        let mut questions = Vec::new();
        for QuestionRow { token, session, deadline, record, decision, stored_checksum: _ } in
            QuestionRow::read_undecided(connection)?
        {
            if decision.is_some() {
                return Err(JournalError::corrupt(DamageLocation::Question));
            }
            questions.push(OpenQuestion { token, session: find_session_id(session)?, deadline, record });
        }
        let mut unspent_decisions: Vec<StoredDecision> = Vec::new();
        for session in &sessions {
            let questions = QuestionRow::read_for_session(connection, session.number)?;
            let decided = questions
                .into_iter()
                .filter_map(|question| question.into_stored_decision(session.session.id.clone()));
            unspent_decisions.extend(decided.filter(|decision| decision.spent_on.is_none()));
        }
        unspent_decisions.sort_by(|left, right| left.token.cmp(&right.token));
        let subscriptions = rows::read_subscriptions(connection)?;
        if subscriptions.iter().any(|open| open.cursor > self.high_water_mark.position) {
            return Err(JournalError::corrupt(DamageLocation::Event));
        }
        let sessions = sessions.into_iter().map(|row| row.session).collect();
        Ok(LiveState {
            sessions,
            questions,
            unspent_decisions,
            subscriptions,
            manifests: rows::read_manifests(connection)?,
            last_position: self.high_water_mark.position,
            trimmed_up_to: self.trimmed_up_to,
            must_void_consents: self.high_water_mark.must_void_consents,
        })
    }

    pub(super) fn read_events(
        &self,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let events = EventRow::read_after(&self.connection, after, limit)?;
        let mut session_ids = HashMap::new();
        let mut previous = after.max(self.trimmed_up_to);
        let mut stored = Vec::with_capacity(events.len());
        let is_limit_reached = events.len() == limit;
        for event in events {
            if event.position > self.trimmed_up_to {
                if event.position != previous.next() {
                    return Err(index_buffer::missing_event_error());
                }
                previous = event.position;
            }
            stored.push(self.with_session_id(event, &mut session_ids)?);
        }
        if !is_limit_reached && previous < self.high_water_mark.position {
            return Err(index_buffer::missing_event_error());
        }
        Ok(stored)
    }

    pub(super) fn read_session_events(
        &self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let Some(session) = SessionRow::find_by_id(&self.connection, session)? else { return Ok(Vec::new()) };
        let mut session_ids = HashMap::from([(session.number, session.session.id)]);
        let positions =
            self.index_buffer.session_positions(&self.connection, session.number, after, limit)?;
        let mut stored = Vec::with_capacity(positions.len());
        for position in positions {
            let event = EventRow::read_at(&self.connection, position)?
                .ok_or_else(index_buffer::missing_event_error)?;
            if event.session != session.number {
                return Err(index_buffer::missing_event_error());
            }
            stored.push(self.with_session_id(event, &mut session_ids)?);
        }
        Ok(stored)
    }

    pub(super) fn read_decision(&self, token: &str) -> Result<Option<StoredDecision>, JournalError> {
        let Some(question) = QuestionRow::find_by_token(&self.connection, token)? else { return Ok(None) };
        let session = SessionRow::get_by_number(&self.connection, question.session)?;
        Ok(question.into_stored_decision(session.session.id))
    }

    /// Adds the id of the event's session. `session_ids` caches ids by session number.
    fn with_session_id(
        &self,
        event: EventRow,
        session_ids: &mut HashMap<i64, String>,
    ) -> Result<StoredEvent, JournalError> {
        let session = if let Some(id) = session_ids.get(&event.session) {
            id.clone()
        } else {
            let id = SessionRow::get_by_number(&self.connection, event.session)?.session.id;
            session_ids.insert(event.session, id.clone());
            id
        };
        let EventRow { position, at, is_critical, id: event_id, body, .. } = event;
        Ok(StoredEvent { position, session, event_id, at, is_critical, body })
    }
}
