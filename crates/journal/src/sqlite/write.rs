//! Writes a batch in one transaction with one fsync.

use std::collections::HashMap;

use rusqlite::{Connection, TransactionBehavior};
use seal::UnixMillis;

use super::error_mapping::from_sqlite;
use super::high_water_mark::HighWaterMark;
use super::index_buffer::IndexBuffer;
use super::row_checksum::{self, LedgerDigest};
use super::rows::{self, DecisionColumns, QuestionRow, SessionRow};
use super::{SqliteJournal, position_to_sql};
use crate::stored::{DecisionUse, OpenSession, StoredResponse};
use crate::{Conflict, ConflictReason, JournalEntry, JournalError, Position};

impl SqliteJournal {
    pub(super) fn write_batch(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError> {
        let outcome = self.write_transaction(batch);
        match &outcome {
            Ok(mark) => {
                self.high_water_mark = *mark;
                self.mark_file.record(mark);
            }
            Err(error) => {
                self.index_buffer.truncate_after(self.high_water_mark.position);
                self.session_numbers.clear();
                if !matches!(error, JournalError::Conflict(_)) {
                    self.reset_after_failure();
                }
            }
        }
        outcome.map(drop)
    }

    fn write_transaction(&mut self, batch: &[JournalEntry<'_>]) -> Result<HighWaterMark, JournalError> {
        let Self { connection, index_buffer, session_numbers, high_water_mark, .. } = self;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(from_sqlite)?;
        let must_flush_index = index_buffer.needs_flush();
        if must_flush_index {
            index_buffer.flush(&transaction)?;
        }
        let mut writer = BatchWriter {
            connection: &transaction,
            index_buffer,
            session_numbers,
            last_position: high_water_mark.position,
            last_event_checksum: high_water_mark.event_checksum,
            ledger_digest: high_water_mark.ledger_digest,
        };
        for (entry_index, entry) in batch.iter().enumerate() {
            match writer.apply(entry) {
                Ok(()) => {}
                Err(ApplyError::Conflict(reason)) => {
                    return Err(JournalError::Conflict(Conflict { entry_index, reason }));
                }
                Err(ApplyError::Failed(error)) => return Err(error),
            }
        }
        let mut mark = HighWaterMark {
            position: writer.last_position,
            event_checksum: writer.last_event_checksum,
            ledger_digest: writer.ledger_digest,
            must_void_consents: false,
            ..*high_water_mark
        };
        if mark.position == high_water_mark.position {
            mark.eventless_commits += 1;
            rows::set_mark(&transaction, rows::EVENTLESS_MARK, mark.eventless_commits)?;
        }
        transaction.commit().map_err(from_sqlite)?;
        if must_flush_index {
            self.index_buffer.drop_flushed(self.high_water_mark.position);
        }
        Ok(mark)
    }

    /// Cleans up after a failed write. Rolls back the transaction and truncates the WAL, so that the remains of the
    /// failed batch cannot be mistaken for an acknowledged batch. If the cleanup fails too, the next write reports an
    /// error.
    fn reset_after_failure(&mut self) {
        self.checkpoints.end_pause();
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
    }
}

enum ApplyError {
    Conflict(ConflictReason),
    Failed(JournalError),
}

impl From<JournalError> for ApplyError {
    fn from(error: JournalError) -> Self {
        Self::Failed(error)
    }
}

impl From<ConflictReason> for ApplyError {
    fn from(reason: ConflictReason) -> Self {
        Self::Conflict(reason)
    }
}

struct BatchWriter<'a> {
    connection: &'a Connection,
    index_buffer: &'a mut IndexBuffer,
    session_numbers: &'a mut HashMap<String, i64>,
    last_position: Position,
    last_event_checksum: i64,
    ledger_digest: LedgerDigest,
}

impl BatchWriter<'_> {
    fn apply(&mut self, entry: &JournalEntry<'_>) -> Result<(), ApplyError> {
        let connection = self.connection;
        match *entry {
            JournalEntry::Event { position, session, event_id, at, is_critical, body } => {
                self.insert_event(position, session, event_id, at, is_critical, body)?;
            }
            JournalEntry::SessionOpened { id, agent, principal, lease_expires_at, record } => {
                if SessionRow::find_by_id(connection, id)?.is_some() {
                    return Err(ConflictReason::DuplicateSessionId.into());
                }
                let session = OpenSession {
                    id: id.to_owned(),
                    agent: agent.to_owned(),
                    principal: principal.to_owned(),
                    lease_expires_at,
                    record: record.to_vec(),
                };
                let number = SessionRow::next_number(connection)?;
                let (ended_at, oldest_position, stored_checksum) = (None, None, 0);
                SessionRow { number, session, ended_at, oldest_position, stored_checksum }
                    .write(connection, &mut self.ledger_digest)?;
                self.session_numbers.insert(id.to_owned(), number);
            }
            JournalEntry::SessionTouched { id, lease_expires_at, record } => {
                let mut session = self.find_open_session(id)?;
                session.session.lease_expires_at = lease_expires_at;
                if let Some(record) = record {
                    session.session.record = record.to_vec();
                }
                session.write(connection, &mut self.ledger_digest)?;
            }
            JournalEntry::SessionEnded { id, at } => {
                let mut session = self.find_open_session(id)?;
                if QuestionRow::read_for_session(connection, session.number)?
                    .iter()
                    .any(|question| question.decision.is_none())
                {
                    return Err(ConflictReason::SessionHasOpenQuestion.into());
                }
                session.ended_at = Some(at);
                let positions =
                    self.index_buffer.session_positions(connection, session.number, Position::START, 1)?;
                session.oldest_position = Some(positions.first().copied().unwrap_or(0));
                session.write(connection, &mut self.ledger_digest)?;
                self.session_numbers.remove(id);
            }
            JournalEntry::QuestionOpened { token, session, deadline, record } => {
                if QuestionRow::find_by_token(connection, token)?.is_some() {
                    return Err(ConflictReason::DuplicateQuestionToken.into());
                }
                let session = self.find_session_number(session)?;
                let (token, record) = (token.to_owned(), record.to_vec());
                let (decision, stored_checksum) = (None, 0);
                QuestionRow { token, session, deadline, record, decision, stored_checksum }
                    .write(connection, &mut self.ledger_digest)?;
            }
            JournalEntry::DeadlineMoved { token, deadline } => {
                let mut question = self.find_undecided_question(token)?;
                question.deadline = deadline;
                question.write(connection, &mut self.ledger_digest)?;
            }
            JournalEntry::QuestionDecided { token, decision, decided_by, receipt, at } => {
                let mut question = self.find_undecided_question(token)?;
                let (decision, decided_by, receipt) =
                    (decision.to_owned(), decided_by.to_owned(), receipt.to_vec());
                question.decision =
                    Some(DecisionColumns { decision, decided_by, receipt, decided_at: at, spent_on: None });
                question.write(connection, &mut self.ledger_digest)?;
            }
            JournalEntry::DecisionSpent { token, call, at } => {
                self.spend(token, DecisionUse { call: call.to_vec(), at })?;
            }
            JournalEntry::SubscriptionOpened { id, principal, record } => {
                if rows::find_subscription(connection, id)?.is_some() {
                    return Err(ConflictReason::DuplicateSubscriptionId.into());
                }
                rows::set_subscription(connection, id, principal, record)?;
                rows::set_cursor(connection, id, Position::START)?;
            }
            JournalEntry::SubscriptionChanged { id, record } => {
                let open =
                    rows::find_subscription(connection, id)?.ok_or(ConflictReason::SubscriptionNotOpen)?;
                rows::set_subscription(connection, id, &open.principal, record)?;
            }
            JournalEntry::SubscriptionClosed { id } => {
                rows::find_subscription(connection, id)?.ok_or(ConflictReason::SubscriptionNotOpen)?;
                rows::remove_subscription(connection, id)?;
            }
            JournalEntry::CursorMoved { subscription, position } => {
                let cursor = rows::read_cursor(connection, subscription)?
                    .ok_or(ConflictReason::SubscriptionNotOpen)?;
                if position > self.last_position {
                    return Err(ConflictReason::CursorBeyondLastEvent.into());
                }
                if position > cursor {
                    rows::set_cursor(connection, subscription, position)?;
                }
            }
            JournalEntry::ResponseStored { principal, key, request, response, at } => {
                if rows::find_response(connection, principal, key)?.is_some() {
                    return Err(ConflictReason::IdempotencyKeyUsed.into());
                }
                let stored = StoredResponse { request: request.to_vec(), response: response.to_vec(), at };
                rows::insert_response(connection, principal, key, &stored)?;
            }
            JournalEntry::ManifestStored { agent, record: Some(record) } => {
                rows::set_manifest(connection, agent, record)?;
            }
            JournalEntry::ManifestStored { agent, record: None } => {
                rows::execute(connection, "DELETE FROM manifests WHERE agent = ?", [agent])?;
            }
            JournalEntry::ReplyAttempted { at, principal, details } => {
                let sql = "INSERT INTO attempts VALUES (NULL, ?, ?, ?)";
                rows::execute(connection, sql, (at.get(), principal, details))?;
            }
        }
        Ok(())
    }

    fn insert_event(
        &mut self,
        position: Position,
        session: &str,
        id: &str,
        at: UnixMillis,
        is_critical: bool,
        body: &[u8],
    ) -> Result<(), ApplyError> {
        if position != self.last_position.next() || i64::try_from(position.get()).is_err() {
            return Err(ConflictReason::PositionGap { expected: self.last_position.next() }.into());
        }
        if self.index_buffer.find(self.connection, id)?.is_some() {
            return Err(ConflictReason::DuplicateEventId.into());
        }
        let session = self.find_session_number(session)?;
        let position_number = position_to_sql(position);
        let checksum =
            row_checksum::event_checksum(position_number, session, at.get(), is_critical, id, body);
        let sql = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)";
        let mut statement = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        statement
            .execute((position_number, session, at.get(), is_critical, checksum, id, body))
            .map_err(from_sqlite)?;
        self.index_buffer.add(id.to_owned(), position, session);
        self.last_position = position;
        self.last_event_checksum = checksum;
        Ok(())
    }

    fn spend(&mut self, token: &str, usage: DecisionUse) -> Result<(), ApplyError> {
        let mut question =
            QuestionRow::find_by_token(self.connection, token)?.ok_or(ConflictReason::UnknownQuestion)?;
        let decision = question.decision.as_mut().ok_or(ConflictReason::NotDecided)?;
        if decision.spent_on.is_some() {
            return Err(ConflictReason::AlreadySpent.into());
        }
        decision.spent_on = Some(usage);
        if SessionRow::get_by_number(self.connection, question.session)?.ended_at.is_some() {
            return Err(ConflictReason::SessionNotOpen.into());
        }
        Ok(question.write(self.connection, &mut self.ledger_digest)?)
    }

    fn find_undecided_question(&self, token: &str) -> Result<QuestionRow, ApplyError> {
        let question =
            QuestionRow::find_by_token(self.connection, token)?.ok_or(ConflictReason::UnknownQuestion)?;
        if question.decision.is_some() { Err(ConflictReason::AlreadyDecided.into()) } else { Ok(question) }
    }

    fn find_open_session(&self, id: &str) -> Result<SessionRow, ApplyError> {
        let session = SessionRow::find_by_id(self.connection, id)?.ok_or(ConflictReason::SessionNotOpen)?;
        if session.ended_at.is_some() { Err(ConflictReason::SessionNotOpen.into()) } else { Ok(session) }
    }

    fn find_session_number(&mut self, id: &str) -> Result<i64, ApplyError> {
        if let Some(number) = self.session_numbers.get(id) {
            return Ok(*number);
        }
        let number = self.find_open_session(id)?.number;
        self.session_numbers.insert(id.to_owned(), number);
        Ok(number)
    }
}
