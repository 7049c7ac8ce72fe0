//! The newest events, by id and session, before they are in the indices.
//!
//! Two more pages to write at every commit would cost more than the event. So the indices are brought up to date by the
//! thousand, in the transaction of whatever batch comes next; until then the newest events are found here, and after a
//! crash they are read from the log again. [`INDEXED`](super::rows::INDEXED) says how far the indices go.

use std::collections::{BTreeMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _};

use super::fault::fault;
use super::rows::{INDEXED, mark, newest, set_mark};
use super::{number, position};
use crate::{Error, Place, Position};

/// How many events wait for the indices.
const MANY: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Tail {
    /// By id, because in that order an index is written with the fewest pages.
    events: BTreeMap<String, Waiting>,
    /// No id in the index is greater: a new one that is need not be looked for.
    greatest: String,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    position: Position,
    session: i64,
}

impl Tail {
    pub(super) fn load(connection: &Connection) -> Result<Self, Error> {
        let sql = "SELECT coalesce(max(id), '') FROM event_ids";
        let greatest = connection.query_row(sql, (), |row| row.get(0)).map_err(fault)?;
        let mut tail = Self { events: BTreeMap::new(), greatest };
        let indexed = mark(connection, INDEXED)?;
        let sql = "SELECT position, session, id FROM events WHERE position > ? ORDER BY position";
        let mut statement = connection.prepare(sql).map_err(fault)?;
        let mut rows = statement.query([indexed]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            let place: i64 = row.get(0).map_err(fault)?;
            let (session, id) = (row.get(1).map_err(fault)?, row.get(2).map_err(fault)?);
            tail.add(id, position(place), session);
        }
        Ok(tail)
    }

    pub(super) fn add(&mut self, id: String, position: Position, session: i64) {
        self.events.insert(id, Waiting { position, session });
    }

    /// Takes back what came after this position.
    pub(super) fn shorten(&mut self, last: Position) {
        self.events.retain(|_, waiting| waiting.position <= last);
    }

    /// Takes out what was trimmed.
    pub(super) fn forget(&mut self, gone: &HashSet<i64>) {
        self.events.retain(|_, waiting| !gone.contains(&number(waiting.position)));
    }

    pub(super) fn find(&self, connection: &Connection, id: &str) -> Result<Option<Position>, Error> {
        if let Some(waiting) = self.events.get(id) {
            return Ok(Some(waiting.position));
        }
        if id > self.greatest.as_str() {
            return Ok(None);
        }
        let sql = "SELECT position FROM event_ids WHERE id = ?";
        let mut statement = connection.prepare_cached(sql).map_err(fault)?;
        let place: Option<i64> = statement.query_row([id], |row| row.get(0)).optional().map_err(fault)?;
        Ok(place.map(position))
    }

    /// Up to `limit` places of a session's events after this one.
    pub(super) fn places(
        &self,
        connection: &Connection,
        session: i64,
        after: Position,
        limit: usize,
    ) -> Result<Vec<i64>, Error> {
        let sql = "SELECT position FROM session_events WHERE session = ? AND position > ? ORDER BY position LIMIT ?";
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut statement = connection.prepare_cached(sql).map_err(fault)?;
        let rows = statement.query_map((session, number(after), most), |row| row.get(0)).map_err(fault)?;
        let mut places = rows.collect::<Result<Vec<i64>, _>>().map_err(fault)?;
        let of_it = self.events.values().filter(|it| it.session == session && it.position > after);
        let mut newest: Vec<i64> = of_it.map(|waiting| number(waiting.position)).collect();
        newest.sort_unstable();
        places.extend(newest);
        places.truncate(limit);
        Ok(places)
    }

    pub(super) fn is_long(&self) -> bool {
        self.events.len() >= MANY
    }

    /// Brings the indices up to date. Only when that is committed may the tail be [cleared](Self::clear).
    pub(super) fn store(&self, connection: &Connection) -> Result<(), Error> {
        let mut by_id = connection.prepare_cached("INSERT INTO event_ids VALUES (?, ?)").map_err(fault)?;
        let mut by_session =
            connection.prepare_cached("INSERT INTO session_events VALUES (?, ?)").map_err(fault)?;
        let mut sessions: Vec<(i64, i64)> = Vec::with_capacity(self.events.len());
        for (id, waiting) in &self.events {
            by_id.execute((id, number(waiting.position))).map_err(fault)?;
            sessions.push((waiting.session, number(waiting.position)));
        }
        sessions.sort_unstable();
        for pair in sessions {
            by_session.execute(pair).map_err(fault)?;
        }
        set_mark(connection, INDEXED, mark(connection, INDEXED)?.max(newest(connection)?))
    }

    /// Forgets what was stored: everything up to this position.
    pub(super) fn clear(&mut self, stored: Position) {
        let waiting = self.events.extract_if(.., |_, waiting| waiting.position <= stored);
        if let Some((greatest, _)) = waiting.last().filter(|(id, _)| *id > self.greatest) {
            self.greatest = greatest;
        }
    }
}

/// What is in an index is in the log too.
pub(super) fn missing() -> Error {
    Error::damaged(Place::Event)
}
