//! Rows as they are stored: read with their sum checked, written with it.

use rusqlite::{Connection, OptionalExtension as _, Params, Row};
use seal::UnixMillis;

use super::fault::fault;
use super::sum::{self, Sum};
use super::{number, position};
use crate::stored::{OpenSession, OpenSubscription, Remembered, Spending, StoredDecision};
use crate::{Error, Place, Position};

/// The mark up to which events may be missing.
pub(super) const FLOOR: &str = "floor";
/// The mark up to which events are in the indices.
pub(super) const INDEXED: &str = "indexed";

/// One row or none, and whatever it is, it is sound.
fn one<T>(
    connection: &Connection,
    place: Place,
    sql: &str,
    parameters: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<(T, bool)>,
) -> Result<Option<T>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    match statement.query_row(parameters, read).optional().map_err(fault)? {
        Some((_, false)) => Err(Error::damaged(place)),
        found => Ok(found.map(|(value, _)| value)),
    }
}

/// Every row, each of them sound.
fn all<T>(
    connection: &Connection,
    place: Place,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<(T, bool)>,
) -> Result<Vec<T>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let rows = statement.query_map(parameters, read).map_err(fault)?;
    rows.map(|row| match row.map_err(fault)? {
        (_, false) => Err(Error::damaged(place)),
        (value, true) => Ok(value),
    })
    .collect()
}

pub(super) fn run(connection: &Connection, sql: &str, parameters: impl Params) -> Result<usize, Error> {
    connection.prepare_cached(sql).map_err(fault)?.execute(parameters).map_err(fault)
}

pub(super) fn mark(connection: &Connection, name: &str) -> Result<i64, Error> {
    one(connection, Place::Mark, "SELECT value, sum FROM marks WHERE name = ?", [name], |row| {
        let value = row.get(0)?;
        Ok((value, row.get::<_, i64>(1)? == Sum::of("marks").text(name).number(value).done()))
    })?
    .ok_or_else(|| Error::damaged(Place::Mark))
}

pub(super) fn set_mark(connection: &Connection, name: &str, value: i64) -> Result<(), Error> {
    let sum = Sum::of("marks").text(name).number(value).done();
    run(connection, "INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (name, value, sum)).map(drop)
}

pub(super) fn newest(connection: &Connection) -> Result<i64, Error> {
    let sql = "SELECT coalesce(max(position), 0) FROM events";
    connection.query_row(sql, (), |row| row.get(0)).map_err(fault)
}

/// An event as it is stored: its session is a number.
pub(super) struct Event {
    pub(super) position: Position,
    pub(super) session: i64,
    pub(super) at: UnixMillis,
    pub(super) critical: bool,
    pub(super) id: String,
    pub(super) body: Vec<u8>,
}

impl Event {
    fn read(row: &Row<'_>) -> rusqlite::Result<(Self, bool)> {
        let (place, session, at, critical) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let (sum, id, body): (i64, String, Vec<u8>) = (row.get(4)?, row.get(5)?, row.get(6)?);
        let sound = sum == sum::event(place, session, at, critical, &id, &body);
        let at = UnixMillis::new(at);
        Ok((Self { position: position(place), session, at, critical, id, body }, sound))
    }

    pub(super) fn after(connection: &Connection, after: Position, limit: usize) -> Result<Vec<Self>, Error> {
        let sql = "SELECT * FROM events WHERE position > ? ORDER BY position LIMIT ?";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        all(connection, Place::Event, sql, (number(after), limit), Self::read)
    }

    pub(super) fn at(connection: &Connection, place: i64) -> Result<Option<Self>, Error> {
        one(connection, Place::Event, "SELECT * FROM events WHERE position = ?", [place], Self::read)
    }
}

pub(super) struct Session {
    pub(super) number: i64,
    pub(super) of: OpenSession,
    pub(super) ended: Option<UnixMillis>,
    /// When it has ended, the place of its oldest event; none when all have been forgotten.
    pub(super) oldest: Option<i64>,
}

impl Session {
    fn read(row: &Row<'_>) -> rusqlite::Result<(Self, bool)> {
        let of = OpenSession {
            id: row.get(1)?,
            agent: row.get(2)?,
            principal: row.get(3)?,
            lease: UnixMillis::new(row.get(4)?),
            record: row.get(5)?,
        };
        let session = Self {
            number: row.get(0)?,
            of,
            ended: row.get::<_, Option<i64>>(6)?.map(UnixMillis::new),
            oldest: row.get(7)?,
        };
        let sound = session.sum() == row.get::<_, i64>(8)?;
        Ok((session, sound))
    }

    fn sum(&self) -> i64 {
        let OpenSession { id, agent, principal, lease, record } = &self.of;
        let sum =
            Sum::of("sessions").number(self.number).text(id).text(agent).text(principal).number(lease.get());
        sum.bytes(record).maybe_number(self.ended.map(UnixMillis::get)).maybe_number(self.oldest).done()
    }

    pub(super) fn named(connection: &Connection, id: &str) -> Result<Option<Self>, Error> {
        one(connection, Place::Session, "SELECT * FROM sessions WHERE id = ?", [id], Self::read)
    }

    pub(super) fn numbered(connection: &Connection, number: i64) -> Result<Self, Error> {
        one(connection, Place::Session, "SELECT * FROM sessions WHERE number = ?", [number], Self::read)?
            .ok_or_else(|| Error::damaged(Place::Session))
    }

    pub(super) fn open(connection: &Connection) -> Result<Vec<Self>, Error> {
        let sql = "SELECT * FROM sessions WHERE ended IS NULL ORDER BY number";
        all(connection, Place::Session, sql, (), Self::read)
    }

    /// A session goes only after everything that has its number, so the number may be given again.
    pub(super) fn next_number(connection: &Connection) -> Result<i64, Error> {
        let sql = "SELECT 1 + coalesce(max(number), 0) FROM sessions";
        connection.prepare_cached(sql).map_err(fault)?.query_row((), |row| row.get(0)).map_err(fault)
    }

    pub(super) fn write(&self, connection: &Connection) -> Result<(), Error> {
        let OpenSession { id, agent, principal, lease, record } = &self.of;
        run(
            connection,
            "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (number) DO UPDATE
             SET lease = ?5, record = ?6, ended = ?7, oldest = ?8, sum = ?9",
            (
                self.number,
                id,
                agent,
                principal,
                lease.get(),
                record,
                self.ended.map(UnixMillis::get),
                self.oldest,
                self.sum(),
            ),
        )
        .map(drop)
    }
}

/// A question, its decision and what that was spent on.
pub(super) struct Question {
    pub(super) token: String,
    pub(super) session: i64,
    pub(super) deadline: UnixMillis,
    pub(super) record: Vec<u8>,
    pub(super) decided: Option<Decision>,
}

pub(super) struct Decision {
    pub(super) answer: String,
    pub(super) by: String,
    pub(super) receipt: Vec<u8>,
    pub(super) at: UnixMillis,
    pub(super) spent: Option<Spending>,
}

impl Question {
    fn read(row: &Row<'_>) -> rusqlite::Result<(Self, bool)> {
        let spent: Option<i64> = row.get(10)?;
        let spent = spent
            .map(|at| Ok::<_, rusqlite::Error>(Spending { call: row.get(9)?, at: UnixMillis::new(at) }))
            .transpose()?;
        let decided: Option<i64> = row.get(8)?;
        let decided = decided.map(|at| {
            let (answer, by, receipt) = (row.get(5)?, row.get(6)?, row.get(7)?);
            Ok::<_, rusqlite::Error>(Decision { answer, by, receipt, at: UnixMillis::new(at), spent })
        });
        let question = Self {
            token: row.get(1)?,
            session: row.get(2)?,
            deadline: UnixMillis::new(row.get(3)?),
            record: row.get(4)?,
            decided: decided.transpose()?,
        };
        let sound = question.sum() == row.get::<_, i64>(11)?;
        Ok((question, sound))
    }

    fn sum(&self) -> i64 {
        let sum = Sum::of("questions").text(&self.token).number(self.session).number(self.deadline.get());
        let sum = sum.bytes(&self.record).maybe_number(self.decided.as_ref().map(|it| it.at.get()));
        let Some(Decision { answer, by, receipt, at: _, spent }) = &self.decided else { return sum.done() };
        let sum = sum.text(answer).text(by).bytes(receipt);
        sum.maybe(spent.as_ref().map(|it| &*it.call))
            .maybe_number(spent.as_ref().map(|it| it.at.get()))
            .done()
    }

    pub(super) fn named(connection: &Connection, token: &str) -> Result<Option<Self>, Error> {
        one(connection, Place::Question, "SELECT * FROM questions WHERE token = ?", [token], Self::read)
    }

    pub(super) fn undecided(connection: &Connection) -> Result<Vec<Self>, Error> {
        let sql = "SELECT * FROM questions WHERE decided IS NULL ORDER BY token";
        all(connection, Place::Question, sql, (), Self::read)
    }

    pub(super) fn of(connection: &Connection, session: i64) -> Result<Vec<Self>, Error> {
        all(connection, Place::Question, "SELECT * FROM questions WHERE session = ?", [session], Self::read)
    }

    pub(super) fn write(&self, connection: &Connection) -> Result<(), Error> {
        let decided = self.decided.as_ref();
        let spent = decided.and_then(|it| it.spent.as_ref());
        run(
            connection,
            "INSERT INTO questions VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (token) DO UPDATE SET deadline = ?3, decision = ?5, decided_by = ?6, receipt = ?7,
             decided = ?8, call = ?9, spent = ?10, sum = ?11",
            (
                &self.token,
                self.session,
                self.deadline.get(),
                &self.record,
                decided.map(|it| &it.answer),
                decided.map(|it| &it.by),
                decided.map(|it| &it.receipt),
                decided.map(|it| it.at.get()),
                spent.map(|it| &it.call),
                spent.map(|it| it.at.get()),
                self.sum(),
            ),
        )
        .map(drop)
    }

    /// `None` while it is undecided.
    pub(super) fn decision(self, session: String) -> Option<StoredDecision> {
        let Decision { answer: decision, by, receipt, at, spent } = self.decided?;
        let Self { token, deadline, record, .. } = self;
        Some(StoredDecision { token, session, deadline, record, decision, by, receipt, at, spent })
    }
}

pub(super) fn cursor(connection: &Connection, subscription: &str) -> Result<Option<Position>, Error> {
    let sql = "SELECT position, sum FROM cursors WHERE subscription = ?";
    one(connection, Place::Subscription, sql, [subscription], |row| {
        let place = row.get(0)?;
        let sound = row.get::<_, i64>(1)? == cursor_sum(subscription, place);
        Ok((position(place), sound))
    })
}

pub(super) fn set_cursor(connection: &Connection, subscription: &str, to: Position) -> Result<(), Error> {
    let sum = cursor_sum(subscription, number(to));
    run(connection, "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)", (subscription, number(to), sum))
        .map(drop)
}

fn cursor_sum(subscription: &str, place: i64) -> i64 {
    Sum::of("cursors").text(subscription).number(place).done()
}

pub(super) fn subscriptions(connection: &Connection) -> Result<Vec<OpenSubscription>, Error> {
    let sql = "SELECT id, principal, record, sum FROM subscriptions ORDER BY id";
    let mut found = all(connection, Place::Subscription, sql, (), read_subscription)?;
    for open in &mut found {
        open.cursor = cursor(connection, &open.id)?.ok_or_else(|| Error::damaged(Place::Subscription))?;
    }
    Ok(found)
}

pub(super) fn subscription(connection: &Connection, id: &str) -> Result<Option<OpenSubscription>, Error> {
    let sql = "SELECT id, principal, record, sum FROM subscriptions WHERE id = ?";
    one(connection, Place::Subscription, sql, [id], read_subscription)
}

fn read_subscription(row: &Row<'_>) -> rusqlite::Result<(OpenSubscription, bool)> {
    let (id, principal, record): (String, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let sound = row.get::<_, i64>(3)? == subscription_sum(&id, &principal, &record);
    Ok((OpenSubscription { id, principal, record, cursor: Position::START }, sound))
}

pub(super) fn set_subscription(
    connection: &Connection,
    id: &str,
    principal: &str,
    record: &[u8],
) -> Result<(), Error> {
    let sql = "INSERT INTO subscriptions VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET record = ?3, sum = ?4";
    run(connection, sql, (id, principal, record, subscription_sum(id, principal, record))).map(drop)
}

pub(super) fn remove_subscription(connection: &Connection, id: &str) -> Result<(), Error> {
    run(connection, "DELETE FROM cursors WHERE subscription = ?", [id])?;
    run(connection, "DELETE FROM subscriptions WHERE id = ?", [id]).map(drop)
}

fn subscription_sum(id: &str, principal: &str, record: &[u8]) -> i64 {
    Sum::of("subscriptions").text(id).text(principal).bytes(record).done()
}

pub(super) fn key(connection: &Connection, principal: &str, key: &str) -> Result<Option<Remembered>, Error> {
    let sql = "SELECT request, response, at, sum FROM keys WHERE principal = ? AND key = ?";
    one(connection, Place::Key, sql, (principal, key), |row| {
        let kept =
            Remembered { request: row.get(0)?, response: row.get(1)?, at: UnixMillis::new(row.get(2)?) };
        let sound = row.get::<_, i64>(3)? == key_sum(principal, key, &kept);
        Ok((kept, sound))
    })
}

pub(super) fn set_key(
    connection: &Connection,
    principal: &str,
    key: &str,
    kept: &Remembered,
) -> Result<(), Error> {
    let Remembered { request, response, at } = kept;
    let sum = key_sum(principal, key, kept);
    let sql = "INSERT INTO keys VALUES (NULL, ?, ?, ?, ?, ?, ?)";
    run(connection, sql, (principal, key, request, response, at.get(), sum)).map(drop)
}

fn key_sum(principal: &str, key: &str, kept: &Remembered) -> i64 {
    let sum = Sum::of("keys").text(principal).text(key).bytes(&kept.request).bytes(&kept.response);
    sum.number(kept.at.get()).done()
}
