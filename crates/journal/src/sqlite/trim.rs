//! Retention: deletes the oldest data first and frees its space.

use std::collections::HashSet;

use rusqlite::{Connection, Params, Row, Transaction, TransactionBehavior};
use seal::UnixMillis;

use super::error_mapping::from_sqlite;
use super::high_water_mark::HighWaterMark;
use super::index_buffer::{IndexBuffer, missing_event_error};
use super::row_checksum::LedgerDigest;
use super::rows::{self, EventRow, SessionRow, TRIMMED_MARK, execute};
use super::{SqliteJournal, position_from_sql, position_to_sql};
use crate::{JournalError, Position, Retention, TrimReport};

/// Number of events that are examined between two checks of the size.
const EVENTS_PER_SIZE_CHECK: usize = 64;

impl SqliteJournal {
    pub(super) fn trim_step(
        &mut self,
        retention: &Retention,
        now: UnixMillis,
    ) -> Result<TrimReport, JournalError> {
        let mut report = TrimReport::default();
        let Self { connection, index_buffer, trimmed_up_to, high_water_mark, .. } = self;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(from_sqlite)?;
        let open_sessions =
            SessionRow::read_open(&transaction)?.iter().map(|session| session.number).collect();
        let mut pass = TrimPass {
            transaction: &transaction,
            index_buffer,
            open_sessions,
            retention,
            now,
            trimmed_up_to: position_to_sql(*trimmed_up_to),
            deleted_positions: HashSet::new(),
            ledger_digest: high_water_mark.ledger_digest,
            report: &mut report,
        };
        pass.trim_events()?;
        pass.trim_sessions()?;
        pass.trim_attempts()?;
        pass.trim_decisions()?;
        pass.trim_idempotency_keys()?;
        let TrimPass { trimmed_up_to: new_trimmed_up_to, deleted_positions, ledger_digest, .. } = pass;
        if new_trimmed_up_to != position_to_sql(*trimmed_up_to) {
            rows::set_mark(&transaction, TRIMMED_MARK, new_trimmed_up_to)?;
        }
        let mut mark = HighWaterMark { ledger_digest, ..*high_water_mark };
        if mark != *high_water_mark {
            // The count tells a mark from before the deletion apart from one after it.
            mark.eventless_commits += 1;
            rows::set_mark(&transaction, rows::EVENTLESS_MARK, mark.eventless_commits)?;
        }
        report.is_over_limit = !report.has_more && is_over_limit(&transaction, retention)?;
        transaction.commit().map_err(from_sqlite)?;
        self.high_water_mark = mark;
        self.mark_file.record(&mark);
        index_buffer.remove_positions(&deleted_positions);
        *trimmed_up_to = position_from_sql(new_trimmed_up_to);
        report.trimmed_up_to = *trimmed_up_to;
        report.has_more |= self.reclaim_space(retention.max_rows_per_step)?;
        Ok(report)
    }

    /// Releases free pages of the file and truncates the WAL. Returns whether there is more to release. Does nothing while
    /// checkpoints are paused.
    fn reclaim_space(&mut self, max_pages: usize) -> Result<bool, JournalError> {
        let connection = &self.connection;
        if self.checkpoints.are_paused() {
            return Ok(false);
        }
        if read_pragma(connection, "freelist_count")? > 0 {
            let mut statement = connection
                .prepare(&format!("PRAGMA incremental_vacuum({})", max_pages.max(1)))
                .map_err(from_sqlite)?;
            let mut rows = statement.query(()).map_err(from_sqlite)?;
            while rows.next().map_err(from_sqlite)?.is_some() {}
        }
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).map_err(from_sqlite)?;
        Ok(read_pragma(connection, "freelist_count")? > 0)
    }
}

struct TrimPass<'a> {
    transaction: &'a Transaction<'a>,
    /// Trimming does not flush the buffer, because flushing needs space and trimming must work on a full disk.
    index_buffer: &'a IndexBuffer,
    /// Numbers of open sessions.
    open_sessions: HashSet<i64>,
    retention: &'a Retention,
    now: UnixMillis,
    trimmed_up_to: i64,
    /// Positions of deleted events, which the index buffer may still contain.
    deleted_positions: HashSet<i64>,
    ledger_digest: LedgerDigest,
    report: &'a mut TrimReport,
}

struct OldestEvent {
    position: i64,
    session: i64,
    at: i64,
    id: String,
}

impl TrimPass<'_> {
    /// Returns the time before which rows are too old.
    fn cutoff(&self, max_age_ms: Option<i64>) -> i64 {
        max_age_ms.map_or(i64::MIN, |age_ms| self.now.saturating_sub(age_ms).get())
    }

    /// Advances `trimmed_up_to` past events that are too old or exceed the size limit. Deletes those whose session has
    /// ended.
    fn trim_events(&mut self) -> Result<(), JournalError> {
        let cutoff = self.cutoff(self.retention.max_event_age_ms);
        let mut remaining = self.retention.max_rows_per_step.max(1);
        loop {
            let is_too_large = is_over_limit(self.transaction, self.retention)?;
            let oldest = self.read_oldest(remaining.min(EVENTS_PER_SIZE_CHECK))?;
            if oldest.is_empty() {
                return Ok(());
            }
            for event in oldest {
                if event.at >= cutoff && !is_too_large {
                    return Ok(());
                }
                if remaining == 0 {
                    self.report.has_more = true;
                    return Ok(());
                }
                remaining -= 1;
                self.trimmed_up_to = event.position;
                if !self.open_sessions.contains(&event.session) {
                    self.delete_event(event.position, event.session, &event.id)?;
                }
            }
        }
    }

    /// Returns up to `limit` events after `trimmed_up_to`. Reads at least one even if `limit` is 0, so that the
    /// caller sees whether there is more to do.
    fn read_oldest(&self, limit: usize) -> Result<Vec<OldestEvent>, JournalError> {
        let sql = "SELECT position, session, at, id FROM events WHERE position > ? ORDER BY position LIMIT ?";
        self.query_list(sql, (self.trimmed_up_to, sql_limit(limit.max(1))), |row| {
            Ok(OldestEvent { position: row.get(0)?, session: row.get(1)?, at: row.get(2)?, id: row.get(3)? })
        })
    }

    /// Deletes events of ended sessions up to `trimmed_up_to`, then the sessions that nothing refers to.
    fn trim_sessions(&mut self) -> Result<(), JournalError> {
        let mut remaining = self.retention.max_rows_per_step.max(1);
        let sql =
            "SELECT number FROM sessions WHERE ended IS NOT NULL AND oldest <= ? ORDER BY oldest LIMIT ?";
        let ended: Vec<i64> =
            self.query_list(sql, (self.trimmed_up_to, sql_limit(remaining)), |row| row.get(0))?;
        self.report.has_more |= ended.len() == remaining;
        for session in ended {
            // The index buffer may still contain deleted events.
            let limit = remaining + self.deleted_positions.len() + 1;
            let mut positions =
                self.index_buffer.session_positions(self.transaction, session, Position::START, limit)?;
            positions.retain(|position| !self.deleted_positions.contains(position));
            let deletable_count =
                positions.partition_point(|position| *position <= self.trimmed_up_to).min(remaining);
            for position in positions.drain(..deletable_count) {
                let event = EventRow::read_at(self.transaction, position)?.ok_or_else(missing_event_error)?;
                self.delete_event(position, session, &event.id)?;
            }
            remaining -= deletable_count;
            if remaining == 0 {
                self.report.has_more = true;
                return Ok(());
            }
            let mut row = SessionRow::get_by_number(self.transaction, session)?;
            row.oldest_position = positions.first().copied();
            row.write(self.transaction, &mut self.ledger_digest)?;
            self.delete_session_if_unused(session)?;
        }
        Ok(())
    }

    fn trim_attempts(&mut self) -> Result<(), JournalError> {
        let cutoff = self.cutoff(self.retention.max_event_age_ms);
        self.report.attempts = self.delete_older_than("attempts", cutoff)?;
        while !self.report.has_more && is_over_limit(self.transaction, self.retention)? {
            let sql =
                "DELETE FROM attempts WHERE number IN (SELECT number FROM attempts ORDER BY at LIMIT 64)";
            let deleted = execute(self.transaction, sql, ())? as u64;
            if deleted == 0 {
                return Ok(());
            }
            self.report.attempts += deleted;
            self.report.has_more = self.report.attempts >= self.retention.max_rows_per_step as u64;
        }
        Ok(())
    }

    fn trim_decisions(&mut self) -> Result<(), JournalError> {
        let limit = self.retention.max_rows_per_step.max(1);
        let sql = "SELECT number, session FROM questions WHERE decided IS NOT NULL AND decided < ?
                   AND session IN (SELECT number FROM sessions WHERE ended IS NOT NULL) ORDER BY decided LIMIT ?";
        let cutoff = self.cutoff(self.retention.max_decision_age_ms);
        let expired =
            self.query_list(sql, (cutoff, sql_limit(limit)), |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.report.has_more |= expired.len() == limit;
        for (question, session) in expired {
            let question: i64 = question;
            let sql = "DELETE FROM questions WHERE number = ? RETURNING sum";
            rows::delete_from_ledger(self.transaction, sql, [question], &mut self.ledger_digest)?;
            self.delete_session_if_unused(session)?;
            self.report.decisions += 1;
        }
        Ok(())
    }

    fn trim_idempotency_keys(&mut self) -> Result<(), JournalError> {
        self.report.idempotency_keys =
            self.delete_older_than("keys", self.cutoff(self.retention.max_idempotency_key_age_ms))?;
        if let Some(max) = self.retention.max_idempotency_keys_per_principal {
            self.delete_surplus_keys(i64::try_from(max).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }

    /// Deletes the oldest idempotency keys of principals that have more than `max`.
    fn delete_surplus_keys(&mut self, max: i64) -> Result<(), JournalError> {
        // Counting the keys reads the entire index. If the row numbers span at most `max`, no principal can have more keys,
        // so nothing is counted.
        let number_range = "SELECT COALESCE(MAX(number) - MIN(number) + 1, 0) FROM keys";
        let ranges: Vec<i64> = self.query_list(number_range, (), |row| row.get(0))?;
        if ranges.first().is_none_or(|range| *range <= max) {
            return Ok(());
        }
        let sql = "SELECT principal, COUNT(*) FROM keys GROUP BY principal HAVING COUNT(*) > ?";
        let principals: Vec<(String, i64)> =
            self.query_list(sql, [max], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut remaining = sql_limit(self.retention.max_rows_per_step.max(1));
        for (principal, count) in principals {
            let surplus = count - max;
            let sql = "DELETE FROM keys WHERE number IN
                       (SELECT number FROM keys WHERE principal = ? ORDER BY number LIMIT ?)";
            let deleted = execute(self.transaction, sql, (&principal, surplus.min(remaining)))?;
            self.report.idempotency_keys += deleted as u64;
            self.report.has_more |= surplus > remaining;
            remaining -= surplus.min(remaining);
        }
        Ok(())
    }

    fn delete_older_than(&mut self, table: &str, cutoff: i64) -> Result<u64, JournalError> {
        let sql = format!(
            "DELETE FROM {table} WHERE number IN (SELECT number FROM {table} WHERE at < ? ORDER BY at LIMIT ?)"
        );
        let limit = self.retention.max_rows_per_step.max(1);
        let deleted = execute(self.transaction, &sql, (cutoff, sql_limit(limit)))?;
        self.report.has_more |= deleted == limit;
        Ok(deleted as u64)
    }

    /// Deletes an ended session if it has no more events (`oldest` is `NULL`) and no more questions.
    fn delete_session_if_unused(&mut self, session: i64) -> Result<(), JournalError> {
        let sql = "DELETE FROM sessions WHERE number = ?1 AND ended IS NOT NULL AND oldest IS NULL
                   AND NOT EXISTS (SELECT 1 FROM questions WHERE session = ?1) RETURNING sum";
        rows::delete_from_ledger(self.transaction, sql, [session], &mut self.ledger_digest)
    }

    fn delete_event(&mut self, position: i64, session: i64, id: &str) -> Result<(), JournalError> {
        execute(self.transaction, "DELETE FROM events WHERE position = ?", [position])?;
        execute(self.transaction, "DELETE FROM event_ids WHERE id = ?", [id])?;
        execute(
            self.transaction,
            "DELETE FROM session_events WHERE session = ? AND position = ?",
            (session, position),
        )?;
        self.deleted_positions.insert(position);
        self.report.events += 1;
        Ok(())
    }

    fn query_list<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, JournalError> {
        let mut statement = self.transaction.prepare_cached(sql).map_err(from_sqlite)?;
        let rows = statement.query_map(parameters, read).map_err(from_sqlite)?;
        rows.collect::<Result<_, _>>().map_err(from_sqlite)
    }
}

fn sql_limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// Returns whether the pages in use exceed the size limit. Free pages do not count.
fn is_over_limit(connection: &Connection, retention: &Retention) -> Result<bool, JournalError> {
    let Some(max_bytes) = retention.max_bytes else { return Ok(false) };
    let pages = read_pragma(connection, "page_count")? - read_pragma(connection, "freelist_count")?;
    let bytes = pages.saturating_mul(read_pragma(connection, "page_size")?);
    Ok(u64::try_from(bytes).unwrap_or(0) > max_bytes)
}

fn read_pragma(connection: &Connection, name: &str) -> Result<i64, JournalError> {
    connection.pragma_query_value(None, name, |row| row.get(0)).map_err(from_sqlite)
}
