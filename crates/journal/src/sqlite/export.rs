//! Reads whole tables, in the order of their row numbers, to copy them into another journal.

use seal::UnixMillis;

use super::SqliteJournal;
use super::rows::{self, EventRow, QuestionRow, SessionRow, query_all};
use crate::stored::LiveState;
use crate::{DamageLocation, JournalError, Position};

/// An idempotency key with its stored response.
#[derive(Debug)]
pub(crate) struct KeyRow {
    pub(crate) principal: String,
    pub(crate) key: String,
    pub(crate) request: Vec<u8>,
    pub(crate) response: Vec<u8>,
    pub(crate) at: UnixMillis,
}

/// A recorded reply.
#[derive(Debug)]
pub(crate) struct AttemptRow {
    pub(crate) at: UnixMillis,
    pub(crate) principal: String,
    pub(crate) details: Vec<u8>,
}

/// The rows of a table, a few at a time. Every row's checksum is checked.
impl SqliteJournal {
    /// Returns up to `limit` sessions with a greater number than `after`.
    pub(crate) fn export_sessions(&self, after: i64, limit: usize) -> Result<Vec<SessionRow>, JournalError> {
        let sql = "SELECT * FROM sessions WHERE number > ? ORDER BY number LIMIT ?";
        query_all(&self.connection, DamageLocation::Session, sql, (after, sql_limit(limit)), SessionRow::read)
    }

    /// Returns up to `limit` questions with a greater number than `after`, each with its number.
    pub(crate) fn export_questions(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, QuestionRow)>, JournalError> {
        let sql = "SELECT * FROM questions WHERE number > ? ORDER BY number LIMIT ?";
        query_all(&self.connection, DamageLocation::Question, sql, (after, sql_limit(limit)), |row| {
            let (question, is_valid) = QuestionRow::read(row)?;
            Ok(((row.get(0)?, question), is_valid))
        })
    }

    /// Returns up to `limit` events after this position.
    pub(crate) fn export_events(&self, after: Position, limit: usize) -> Result<Vec<EventRow>, JournalError> {
        EventRow::read_after(&self.connection, after, limit)
    }

    /// Returns up to `limit` idempotency keys with a greater number than `after`, each with its number.
    pub(crate) fn export_keys(&self, after: i64, limit: usize) -> Result<Vec<(i64, KeyRow)>, JournalError> {
        let sql = "SELECT request, response, at, sum, principal, key, number FROM keys
                   WHERE number > ? ORDER BY number LIMIT ?";
        query_all(&self.connection, DamageLocation::IdempotencyKey, sql, (after, sql_limit(limit)), |row| {
            let (principal, key): (String, String) = (row.get(4)?, row.get(5)?);
            let (stored, is_valid) = rows::response_from_row(row, &principal, &key)?;
            let (request, response, at) = (stored.request, stored.response, stored.at);
            Ok(((row.get(6)?, KeyRow { principal, key, request, response, at }), is_valid))
        })
    }

    /// Returns up to `limit` recorded replies with a greater number than `after`, each with its number.
    pub(crate) fn export_attempts(
        &self,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, AttemptRow)>, JournalError> {
        let sql =
            "SELECT number, at, subscription, what FROM attempts WHERE number > ? ORDER BY number LIMIT ?";
        query_all(&self.connection, DamageLocation::BookkeepingValue, sql, (after, sql_limit(limit)), |row| {
            let attempt =
                AttemptRow { at: UnixMillis::new(row.get(1)?), principal: row.get(2)?, details: row.get(3)? };
            Ok(((row.get(0)?, attempt), true))
        })
    }

    /// Returns the live state, with the subscriptions and manifests.
    pub(crate) fn export_live_state(&self) -> Result<LiveState, JournalError> {
        self.read_live_state()
    }

    /// Returns the position of the last event ever written, and the one up to which events may have been deleted.
    pub(crate) fn export_positions(&self) -> (Position, Position) {
        (self.high_water_mark.position, self.trimmed_up_to)
    }
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
