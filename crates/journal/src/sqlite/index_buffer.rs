//! Finds the newest events by id and by session until they are added to the indices.
//!
//! Updating both indices at every commit would write two more pages, which costs more than the event. So the indices
//! are updated about once per thousand events, in the transaction of the next batch. Until then, this buffer finds the
//! newest events. When the journal is opened, the buffer is rebuilt from the event log. [`INDEXED_MARK`] holds the last
//! indexed position.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _};

use super::error_mapping::from_sqlite;
use super::rows::{INDEXED_MARK, max_position, read_mark, set_mark};
use super::{position_from_sql, position_to_sql};
use crate::{DamageLocation, JournalError, Position};

/// Number of buffered events at which the indices are updated.
const FLUSH_THRESHOLD: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct IndexBuffer {
    /// Ordered by id, because writing an index in that order touches the fewest pages.
    events: BTreeMap<String, UnindexedEvent>,
    /// The greatest id in the index. An id greater than this one needs no lookup.
    greatest_indexed_id: String,
}

#[derive(Clone, Copy, Debug)]
struct UnindexedEvent {
    position: Position,
    /// The number of the session.
    session: i64,
}

impl IndexBuffer {
    pub(super) fn load(connection: &Connection) -> Result<Self, JournalError> {
        let sql = "SELECT coalesce(max(id), '') FROM event_ids";
        let greatest_indexed_id = connection.query_row(sql, (), |row| row.get(0)).map_err(from_sqlite)?;
        let mut buffer = Self { events: BTreeMap::new(), greatest_indexed_id };
        let last_indexed = read_mark(connection, INDEXED_MARK)?;
        let sql = "SELECT position, session, id FROM events WHERE position > ? ORDER BY position";
        let mut statement = connection.prepare(sql).map_err(from_sqlite)?;
        let mut rows = statement.query([last_indexed]).map_err(from_sqlite)?;
        while let Some(row) = rows.next().map_err(from_sqlite)? {
            let number: i64 = row.get(0).map_err(from_sqlite)?;
            let (session, id) = (row.get(1).map_err(from_sqlite)?, row.get(2).map_err(from_sqlite)?);
            buffer.add(id, position_from_sql(number), session);
        }
        Ok(buffer)
    }

    pub(super) fn add(&mut self, id: String, position: Position, session: i64) {
        self.events.insert(id, UnindexedEvent { position, session });
    }

    /// Removes the events after this position.
    pub(super) fn truncate_after(&mut self, last: Position) {
        self.events.retain(|_, event| event.position <= last);
    }

    /// Removes trimmed events.
    pub(super) fn remove_positions(&mut self, deleted: &HashSet<i64>) {
        self.events.retain(|_, event| !deleted.contains(&position_to_sql(event.position)));
    }

    pub(super) fn find(&self, connection: &Connection, id: &str) -> Result<Option<Position>, JournalError> {
        if let Some(event) = self.events.get(id) {
            return Ok(Some(event.position));
        }
        if id > self.greatest_indexed_id.as_str() {
            return Ok(None);
        }
        let sql = "SELECT position FROM event_ids WHERE id = ?";
        let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
        let number: Option<i64> =
            statement.query_row([id], |row| row.get(0)).optional().map_err(from_sqlite)?;
        Ok(number.map(position_from_sql))
    }

    /// Returns the positions of up to `limit` events of a session after the position `after`.
    pub(super) fn session_positions(
        &self,
        connection: &Connection,
        session: i64,
        after: Position,
        limit: usize,
    ) -> Result<Vec<i64>, JournalError> {
        let sql = "SELECT position FROM session_events WHERE session = ? AND position > ? ORDER BY position LIMIT ?";
        let sql_limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
        let rows = statement
            .query_map((session, position_to_sql(after), sql_limit), |row| row.get(0))
            .map_err(from_sqlite)?;
        let mut positions = rows.collect::<Result<Vec<i64>, _>>().map_err(from_sqlite)?;
        let unindexed =
            self.events.values().filter(|event| event.session == session && event.position > after);
        let mut newest: Vec<i64> = unindexed.map(|event| position_to_sql(event.position)).collect();
        newest.sort_unstable();
        positions.extend(newest);
        positions.truncate(limit);
        Ok(positions)
    }

    pub(super) fn needs_flush(&self) -> bool {
        self.events.len() >= FLUSH_THRESHOLD
    }

    /// Adds the events to the indices. Call [`Self::drop_flushed`] after the transaction is committed, not before.
    pub(super) fn flush(&self, connection: &Connection) -> Result<(), JournalError> {
        let mut insert_event_id =
            connection.prepare_cached("INSERT INTO event_ids VALUES (?, ?)").map_err(from_sqlite)?;
        let mut insert_session_event =
            connection.prepare_cached("INSERT INTO session_events VALUES (?, ?)").map_err(from_sqlite)?;
        let mut session_events: Vec<(i64, i64)> = Vec::with_capacity(self.events.len());
        for (id, event) in &self.events {
            insert_event_id.execute((id, position_to_sql(event.position))).map_err(from_sqlite)?;
            session_events.push((event.session, position_to_sql(event.position)));
        }
        session_events.sort_unstable();
        for session_event in session_events {
            insert_session_event.execute(session_event).map_err(from_sqlite)?;
        }
        set_mark(
            connection,
            INDEXED_MARK,
            read_mark(connection, INDEXED_MARK)?.max(max_position(connection)?),
        )
    }

    /// Removes the events up to this position, which are now indexed.
    pub(super) fn drop_flushed(&mut self, last_flushed: Position) {
        let flushed = self.events.extract_if(.., |_, event| event.position <= last_flushed);
        if let Some((greatest_id, _)) = flushed.last().filter(|(id, _)| *id > self.greatest_indexed_id) {
            self.greatest_indexed_id = greatest_id;
        }
    }
}

/// Returns the error for an event that should be in the log but is not.
pub(super) fn missing_event_error() -> JournalError {
    JournalError::corrupt(DamageLocation::Event)
}
