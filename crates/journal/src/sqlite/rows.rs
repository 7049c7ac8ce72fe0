//! Stored rows. Reading checks the checksum; writing updates it.

use rusqlite::{Connection, OptionalExtension as _, Params, Row};
use seal::UnixMillis;

use super::error_mapping::from_sqlite;
use super::row_checksum::{self, LedgerDigest, RowChecksum};
use super::{position_from_sql, position_to_sql};
use crate::stored::{
    DecisionUse, OpenSession, OpenSubscription, StoredDecision, StoredManifest, StoredResponse,
};
use crate::{DamageLocation, JournalError, Position};

/// The name of the mark that holds `trimmed_up_to`: the position up to which events may have been deleted.
pub(super) const TRIMMED_MARK: &str = "floor";
/// The name of the mark that holds the position up to which events are in the indices.
pub(super) const INDEXED_MARK: &str = "indexed";

/// The name of the mark that holds the number of commits without an event. A journal that was written
/// before there was a high-water mark file does not have this mark.
pub(super) const EVENTLESS_MARK: &str = "eventless";
/// The number of the journal's shard, the number of shards, and whether there was only one before. Missing in the journal
/// of a hub's only shard.
pub(super) const SHARD_MARK: &str = "shard";
pub(super) const SHARD_COUNT_MARK: &str = "shards";
pub(super) const WAS_SINGLE_MARK: &str = "was_single";

/// Returns one row or none. `read` returns a value and whether its checksum is right; a wrong checksum is an error.
fn query_optional<T>(
    connection: &Connection,
    location: DamageLocation,
    sql: &str,
    parameters: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<(T, bool)>,
) -> Result<Option<T>, JournalError> {
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    match statement.query_row(parameters, read).optional().map_err(from_sqlite)? {
        Some((_, false)) => Err(JournalError::corrupt(location)),
        row => Ok(row.map(|(value, _)| value)),
    }
}

/// Returns all rows. `read` returns a value and whether its checksum is right; a wrong checksum is an error.
pub(super) fn query_all<T>(
    connection: &Connection,
    location: DamageLocation,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<(T, bool)>,
) -> Result<Vec<T>, JournalError> {
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let rows = statement.query_map(parameters, read).map_err(from_sqlite)?;
    rows.map(|row| match row.map_err(from_sqlite)? {
        (_, false) => Err(JournalError::corrupt(location)),
        (value, true) => Ok(value),
    })
    .collect()
}

/// Checks the checksum of every session, question, manifest and idempotency key, including those of ended sessions.
pub(super) fn check_ledger(connection: &Connection) -> Result<(), JournalError> {
    check_rows(connection, DamageLocation::Session, "SELECT * FROM sessions", SessionRow::read)?;
    check_rows(connection, DamageLocation::Question, "SELECT * FROM questions", QuestionRow::read)?;
    read_manifests(connection)?;
    let sql = "SELECT request, response, at, sum, principal, key FROM keys";
    check_rows(connection, DamageLocation::IdempotencyKey, sql, |row| {
        let (principal, key): (String, String) = (row.get(4)?, row.get(5)?);
        response_from_row(row, &principal, &key)
    })
}

/// Returns the digest of all stored sessions and questions. Does not check their checksums.
pub(super) fn ledger_digest(connection: &Connection) -> Result<LedgerDigest, JournalError> {
    let mut digest = LedgerDigest::EMPTY;
    let sql = "SELECT sum FROM sessions UNION ALL SELECT sum FROM questions";
    let mut statement = connection.prepare(sql).map_err(from_sqlite)?;
    let mut rows = statement.query(()).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        digest.add(row.get(0).map_err(from_sqlite)?);
    }
    Ok(digest)
}

/// Deletes the sessions or questions that `sql` selects. It must return the column `sum` of each row that it deletes.
pub(super) fn delete_from_ledger(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    digest: &mut LedgerDigest,
) -> Result<(), JournalError> {
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let mut deleted = statement.query(parameters).map_err(from_sqlite)?;
    while let Some(row) = deleted.next().map_err(from_sqlite)? {
        digest.remove(row.get(0).map_err(from_sqlite)?);
    }
    Ok(())
}

fn check_rows<T>(
    connection: &Connection,
    location: DamageLocation,
    sql: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<(T, bool)>,
) -> Result<(), JournalError> {
    let mut statement = connection.prepare(sql).map_err(from_sqlite)?;
    let mut rows = statement.query(()).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        if !read(row).map_err(from_sqlite)?.1 {
            return Err(JournalError::corrupt(location));
        }
    }
    Ok(())
}

pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<usize, JournalError> {
    connection.prepare_cached(sql).map_err(from_sqlite)?.execute(parameters).map_err(from_sqlite)
}

/// Returns the value of a mark that must exist.
pub(super) fn read_mark(connection: &Connection, name: &str) -> Result<i64, JournalError> {
    find_mark(connection, name)?.ok_or_else(|| JournalError::corrupt(DamageLocation::BookkeepingValue))
}

pub(super) fn find_mark(connection: &Connection, name: &str) -> Result<Option<i64>, JournalError> {
    query_optional(
        connection,
        DamageLocation::BookkeepingValue,
        "SELECT value, sum FROM marks WHERE name = ?",
        [name],
        |row| {
            let value = row.get(0)?;
            Ok((
                value,
                row.get::<_, i64>(1)? == RowChecksum::for_table("marks").text(name).number(value).finish(),
            ))
        },
    )
}

pub(super) fn set_mark(connection: &Connection, name: &str, value: i64) -> Result<(), JournalError> {
    let sum = RowChecksum::for_table("marks").text(name).number(value).finish();
    execute(connection, "INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (name, value, sum)).map(drop)
}

/// Returns the position of the newest event, or 0 if there is none.
pub(super) fn max_position(connection: &Connection) -> Result<i64, JournalError> {
    let sql = "SELECT coalesce(max(position), 0) FROM events";
    connection.query_row(sql, (), |row| row.get(0)).map_err(from_sqlite)
}

/// Returns the stored checksum of the event at this position.
pub(super) fn event_checksum_at(
    connection: &Connection,
    position: Position,
) -> Result<Option<i64>, JournalError> {
    let sql = "SELECT sum FROM events WHERE position = ?";
    connection.query_row(sql, [position_to_sql(position)], |row| row.get(0)).optional().map_err(from_sqlite)
}

/// A stored event, which refers to its session by number.
pub(crate) struct EventRow {
    pub(crate) position: Position,
    /// The number of the session.
    pub(crate) session: i64,
    pub(crate) at: UnixMillis,
    pub(crate) is_critical: bool,
    pub(crate) id: String,
    pub(crate) body: Vec<u8>,
}

impl EventRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<(Self, bool)> {
        let (position, session, at, is_critical) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let (sum, id, body): (i64, String, Vec<u8>) = (row.get(4)?, row.get(5)?, row.get(6)?);
        let is_valid = sum == row_checksum::event_checksum(position, session, at, is_critical, &id, &body);
        let at = UnixMillis::new(at);
        Ok((Self { position: position_from_sql(position), session, at, is_critical, id, body }, is_valid))
    }

    pub(super) fn read_after(
        connection: &Connection,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Self>, JournalError> {
        let sql = "SELECT * FROM events WHERE position > ? ORDER BY position LIMIT ?";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        query_all(connection, DamageLocation::Event, sql, (position_to_sql(after), limit), Self::read)
    }

    pub(super) fn read_at(connection: &Connection, position: i64) -> Result<Option<Self>, JournalError> {
        query_optional(
            connection,
            DamageLocation::Event,
            "SELECT * FROM events WHERE position = ?",
            [position],
            Self::read,
        )
    }
}

pub(crate) struct SessionRow {
    pub(crate) number: i64,
    pub(crate) session: OpenSession,
    pub(crate) ended_at: Option<UnixMillis>,
    /// Position of the oldest stored event of an ended session, or 0 if it never had one. `None` while the session is open,
    /// and after all its events were deleted.
    pub(crate) oldest_position: Option<i64>,
    /// The checksum of the stored row, or 0 if it is not stored yet.
    pub(crate) stored_checksum: i64,
}

impl SessionRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<(Self, bool)> {
        let open_session = OpenSession {
            id: row.get(1)?,
            agent: row.get(2)?,
            principal: row.get(3)?,
            lease_expires_at: UnixMillis::new(row.get(4)?),
            record: row.get(5)?,
        };
        let session = Self {
            number: row.get(0)?,
            session: open_session,
            ended_at: row.get::<_, Option<i64>>(6)?.map(UnixMillis::new),
            oldest_position: row.get(7)?,
            stored_checksum: row.get(8)?,
        };
        let is_valid = session.checksum() == session.stored_checksum;
        Ok((session, is_valid))
    }

    fn checksum(&self) -> i64 {
        let OpenSession { id, agent, principal, lease_expires_at, record } = &self.session;
        let checksum = RowChecksum::for_table("sessions")
            .number(self.number)
            .text(id)
            .text(agent)
            .text(principal)
            .number(lease_expires_at.get());
        checksum
            .bytes(record)
            .optional_number(self.ended_at.map(UnixMillis::get))
            .optional_number(self.oldest_position)
            .finish()
    }

    pub(super) fn find_by_id(connection: &Connection, id: &str) -> Result<Option<Self>, JournalError> {
        query_optional(
            connection,
            DamageLocation::Session,
            "SELECT * FROM sessions WHERE id = ?",
            [id],
            Self::read,
        )
    }

    pub(super) fn get_by_number(connection: &Connection, number: i64) -> Result<Self, JournalError> {
        query_optional(
            connection,
            DamageLocation::Session,
            "SELECT * FROM sessions WHERE number = ?",
            [number],
            Self::read,
        )?
        .ok_or_else(|| JournalError::corrupt(DamageLocation::Session))
    }

    pub(super) fn read_open(connection: &Connection) -> Result<Vec<Self>, JournalError> {
        let sql = "SELECT * FROM sessions WHERE ended IS NULL ORDER BY number";
        query_all(connection, DamageLocation::Session, sql, (), Self::read)
    }

    /// Returns a number for a new session. Numbers can be reused, because a session is deleted only after all rows that
    /// refer to it.
    pub(super) fn next_number(connection: &Connection) -> Result<i64, JournalError> {
        let sql = "SELECT 1 + coalesce(max(number), 0) FROM sessions";
        connection
            .prepare_cached(sql)
            .map_err(from_sqlite)?
            .query_row((), |row| row.get(0))
            .map_err(from_sqlite)
    }

    /// Inserts or updates the row.
    pub(super) fn write(
        &self,
        connection: &Connection,
        digest: &mut LedgerDigest,
    ) -> Result<(), JournalError> {
        let checksum = self.checksum();
        digest.remove(self.stored_checksum);
        digest.add(checksum);
        let OpenSession { id, agent, principal, lease_expires_at, record } = &self.session;
        execute(
            connection,
            "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (number) DO UPDATE
             SET lease = ?5, record = ?6, ended = ?7, oldest = ?8, sum = ?9",
            (
                self.number,
                id,
                agent,
                principal,
                lease_expires_at.get(),
                record,
                self.ended_at.map(UnixMillis::get),
                self.oldest_position,
                checksum,
            ),
        )
        .map(drop)
    }
}

/// A question, its decision, and the call on which the decision was spent.
pub(crate) struct QuestionRow {
    pub(crate) token: String,
    /// The number of the session.
    pub(crate) session: i64,
    pub(crate) deadline: UnixMillis,
    pub(crate) record: Vec<u8>,
    pub(crate) decision: Option<DecisionColumns>,
    /// The checksum of the stored row, or 0 if it is not stored yet.
    pub(crate) stored_checksum: i64,
}

pub(crate) struct DecisionColumns {
    pub(crate) decision: String,
    pub(crate) decided_by: String,
    pub(crate) receipt: Vec<u8>,
    pub(crate) decided_at: UnixMillis,
    pub(crate) spent_on: Option<DecisionUse>,
}

impl QuestionRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<(Self, bool)> {
        let spent_at: Option<i64> = row.get(10)?;
        let spent_on = spent_at
            .map(|at| Ok::<_, rusqlite::Error>(DecisionUse { call: row.get(9)?, at: UnixMillis::new(at) }))
            .transpose()?;
        let decided_at: Option<i64> = row.get(8)?;
        let decision = decided_at.map(|at| {
            let (decision, decided_by, receipt) = (row.get(5)?, row.get(6)?, row.get(7)?);
            Ok::<_, rusqlite::Error>(DecisionColumns {
                decision,
                decided_by,
                receipt,
                decided_at: UnixMillis::new(at),
                spent_on,
            })
        });
        let question = Self {
            token: row.get(1)?,
            session: row.get(2)?,
            deadline: UnixMillis::new(row.get(3)?),
            record: row.get(4)?,
            decision: decision.transpose()?,
            stored_checksum: row.get(11)?,
        };
        let is_valid = question.checksum() == question.stored_checksum;
        Ok((question, is_valid))
    }

    fn checksum(&self) -> i64 {
        let checksum = RowChecksum::for_table("questions")
            .text(&self.token)
            .number(self.session)
            .number(self.deadline.get());
        let checksum = checksum
            .bytes(&self.record)
            .optional_number(self.decision.as_ref().map(|decision| decision.decided_at.get()));
        let Some(DecisionColumns { decision, decided_by, receipt, decided_at: _, spent_on }) = &self.decision
        else {
            return checksum.finish();
        };
        let checksum = checksum.text(decision).text(decided_by).bytes(receipt);
        checksum
            .optional_bytes(spent_on.as_ref().map(|usage| &*usage.call))
            .optional_number(spent_on.as_ref().map(|usage| usage.at.get()))
            .finish()
    }

    pub(super) fn find_by_token(connection: &Connection, token: &str) -> Result<Option<Self>, JournalError> {
        query_optional(
            connection,
            DamageLocation::Question,
            "SELECT * FROM questions WHERE token = ?",
            [token],
            Self::read,
        )
    }

    pub(super) fn read_undecided(connection: &Connection) -> Result<Vec<Self>, JournalError> {
        let sql = "SELECT * FROM questions WHERE decided IS NULL ORDER BY token";
        query_all(connection, DamageLocation::Question, sql, (), Self::read)
    }

    pub(super) fn read_for_session(connection: &Connection, session: i64) -> Result<Vec<Self>, JournalError> {
        query_all(
            connection,
            DamageLocation::Question,
            "SELECT * FROM questions WHERE session = ?",
            [session],
            Self::read,
        )
    }

    /// Inserts or updates the row.
    pub(super) fn write(
        &self,
        connection: &Connection,
        digest: &mut LedgerDigest,
    ) -> Result<(), JournalError> {
        let checksum = self.checksum();
        digest.remove(self.stored_checksum);
        digest.add(checksum);
        let decision = self.decision.as_ref();
        let spent_on = decision.and_then(|decision| decision.spent_on.as_ref());
        execute(
            connection,
            "INSERT INTO questions VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (token) DO UPDATE SET deadline = ?3, decision = ?5, decided_by = ?6, receipt = ?7,
             decided = ?8, call = ?9, spent = ?10, sum = ?11",
            (
                &self.token,
                self.session,
                self.deadline.get(),
                &self.record,
                decision.map(|decision| &decision.decision),
                decision.map(|decision| &decision.decided_by),
                decision.map(|decision| &decision.receipt),
                decision.map(|decision| decision.decided_at.get()),
                spent_on.map(|usage| &usage.call),
                spent_on.map(|usage| usage.at.get()),
                checksum,
            ),
        )
        .map(drop)
    }

    /// Returns the decision, or `None` while the question is undecided.
    pub(super) fn into_stored_decision(self, session: String) -> Option<StoredDecision> {
        let DecisionColumns { decision, decided_by, receipt, decided_at, spent_on } = self.decision?;
        let Self { token, deadline, record, .. } = self;
        Some(StoredDecision {
            token,
            session,
            deadline,
            record,
            decision,
            decided_by,
            receipt,
            decided_at,
            spent_on,
        })
    }
}

pub(super) fn read_cursor(
    connection: &Connection,
    subscription: &str,
) -> Result<Option<Position>, JournalError> {
    let sql = "SELECT position, sum FROM cursors WHERE subscription = ?";
    query_optional(connection, DamageLocation::Subscription, sql, [subscription], |row| {
        let position = row.get(0)?;
        let is_valid = row.get::<_, i64>(1)? == cursor_checksum(subscription, position);
        Ok((position_from_sql(position), is_valid))
    })
}

pub(super) fn set_cursor(
    connection: &Connection,
    subscription: &str,
    position: Position,
) -> Result<(), JournalError> {
    let sum = cursor_checksum(subscription, position_to_sql(position));
    execute(
        connection,
        "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)",
        (subscription, position_to_sql(position), sum),
    )
    .map(drop)
}

fn cursor_checksum(subscription: &str, position: i64) -> i64 {
    RowChecksum::for_table("cursors").text(subscription).number(position).finish()
}

pub(super) fn read_subscriptions(connection: &Connection) -> Result<Vec<OpenSubscription>, JournalError> {
    let sql = "SELECT id, principal, record, sum FROM subscriptions ORDER BY id";
    let mut subscriptions =
        query_all(connection, DamageLocation::Subscription, sql, (), subscription_from_row)?;
    for subscription in &mut subscriptions {
        subscription.cursor = read_cursor(connection, &subscription.id)?
            .ok_or_else(|| JournalError::corrupt(DamageLocation::Subscription))?;
    }
    Ok(subscriptions)
}

pub(super) fn find_subscription(
    connection: &Connection,
    id: &str,
) -> Result<Option<OpenSubscription>, JournalError> {
    let sql = "SELECT id, principal, record, sum FROM subscriptions WHERE id = ?";
    query_optional(connection, DamageLocation::Subscription, sql, [id], subscription_from_row)
}

fn subscription_from_row(row: &Row<'_>) -> rusqlite::Result<(OpenSubscription, bool)> {
    let (id, principal, record): (String, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let is_valid = row.get::<_, i64>(3)? == subscription_checksum(&id, &principal, &record);
    Ok((OpenSubscription { id, principal, record, cursor: Position::START }, is_valid))
}

pub(super) fn set_subscription(
    connection: &Connection,
    id: &str,
    principal: &str,
    record: &[u8],
) -> Result<(), JournalError> {
    let sql = "INSERT INTO subscriptions VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET record = ?3, sum = ?4";
    execute(connection, sql, (id, principal, record, subscription_checksum(id, principal, record))).map(drop)
}

pub(super) fn remove_subscription(connection: &Connection, id: &str) -> Result<(), JournalError> {
    execute(connection, "DELETE FROM cursors WHERE subscription = ?", [id])?;
    execute(connection, "DELETE FROM subscriptions WHERE id = ?", [id]).map(drop)
}

fn subscription_checksum(id: &str, principal: &str, record: &[u8]) -> i64 {
    RowChecksum::for_table("subscriptions").text(id).text(principal).bytes(record).finish()
}

pub(super) fn read_manifests(connection: &Connection) -> Result<Vec<StoredManifest>, JournalError> {
    let sql = "SELECT agent, record, sum FROM manifests ORDER BY agent";
    query_all(connection, DamageLocation::Manifest, sql, (), |row| {
        let (agent, record): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let is_valid = row.get::<_, i64>(2)? == manifest_checksum(&agent, &record);
        Ok((StoredManifest { agent, record }, is_valid))
    })
}

pub(super) fn set_manifest(connection: &Connection, agent: &str, record: &[u8]) -> Result<(), JournalError> {
    let sum = manifest_checksum(agent, record);
    execute(connection, "INSERT OR REPLACE INTO manifests VALUES (?, ?, ?)", (agent, record, sum)).map(drop)
}

fn manifest_checksum(agent: &str, record: &[u8]) -> i64 {
    RowChecksum::for_table("manifests").text(agent).bytes(record).finish()
}

pub(super) fn find_response(
    connection: &Connection,
    principal: &str,
    key: &str,
) -> Result<Option<StoredResponse>, JournalError> {
    let sql = "SELECT request, response, at, sum FROM keys WHERE principal = ? AND key = ?";
    query_optional(connection, DamageLocation::IdempotencyKey, sql, (principal, key), |row| {
        response_from_row(row, principal, key)
    })
}

pub(super) fn response_from_row(
    row: &Row<'_>,
    principal: &str,
    key: &str,
) -> rusqlite::Result<(StoredResponse, bool)> {
    let stored =
        StoredResponse { request: row.get(0)?, response: row.get(1)?, at: UnixMillis::new(row.get(2)?) };
    let is_valid = row.get::<_, i64>(3)? == response_checksum(principal, key, &stored);
    Ok((stored, is_valid))
}

pub(super) fn insert_response(
    connection: &Connection,
    principal: &str,
    key: &str,
    stored: &StoredResponse,
) -> Result<(), JournalError> {
    let StoredResponse { request, response, at } = stored;
    let sum = response_checksum(principal, key, stored);
    let sql = "INSERT INTO keys VALUES (NULL, ?, ?, ?, ?, ?, ?)";
    execute(connection, sql, (principal, key, request, response, at.get(), sum)).map(drop)
}

fn response_checksum(principal: &str, key: &str, stored: &StoredResponse) -> i64 {
    RowChecksum::for_table("keys")
        .text(principal)
        .text(key)
        .bytes(&stored.request)
        .bytes(&stored.response)
        .number(stored.at.get())
        .finish()
}
