//! Writes a batch in one statement, and finds out whether it was stored if the acknowledgement is lost.

use std::collections::HashSet;
use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use seal::Digest;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use super::PostgresJournal;
use super::database::{Session, timed_out, wait};
use super::durability::{self, Commit, SETTINGS, commit_result};
use super::error_mapping::{DatabaseFailure, describe, from_postgres, is_rolled_back, is_unique_violation};
use super::plan::{BatchPlan, History, SessionChange, SubscriptionChange, position_to_sql};
use super::pool::BorrowedConnection;
use super::read::text_from_sql;
use super::schema::{MAX_INDEXED_BYTES, expand_keys};
use crate::{JournalEntry, JournalError};

/// Pause between attempts to find out the outcome of a commit.
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(20);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of prepared statements of one connection. Each combination of entry kinds has its own.
const MAX_STATEMENTS: usize = 256;

/// The outcome of one attempt to write a batch.
enum Outcome {
    Stored,
    /// The batch is certainly not stored.
    Refused(tokio_postgres::Error),
    OwnershipLost,
    /// The settings of the server have changed, so the batch is certainly not stored.
    SettingsChanged,
    /// The batch may be stored, completely or not at all.
    Unknown(DatabaseFailure),
}

/// The certain outcome of writing a batch.
enum Written {
    Stored,
    /// The database has refused it, because an id in it is already in use.
    Duplicate(tokio_postgres::Error),
}

impl PostgresJournal {
    pub(super) fn write_batch(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError> {
        let limit = self.lease.database().answer_timeout();
        let mut is_repeated = false;
        loop {
            // Confirming the ownership may replace the index, so it comes before planning.
            let connection = self.connection()?;
            let Ok(plan) = BatchPlan::new(batch, &self.index, None) else {
                connection.put_back();
                return Err(self.explain_conflict(batch)?.unwrap_or_else(timed_out));
            };
            let mut statement = BatchStatement::new(&plan);
            let mut connection = connection;
            // Nothing is sent before the statement is prepared, so this error is certain.
            let prepared = match connection.prepare_batch(&statement, limit) {
                Ok(prepared) => prepared,
                // An idle connection breaks unnoticed.
                Err(_) if connection.session()?.client.is_closed() && !is_repeated => {
                    is_repeated = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            match self.write_planned(&plan, &mut statement, connection, prepared)? {
                Written::Stored => {
                    plan.apply_to(&mut self.index);
                    return Ok(());
                }
                Written::Duplicate(error) => {
                    return Err(self.explain_conflict(batch)?.unwrap_or_else(|| from_postgres(error)));
                }
            }
        }
    }

    /// Sends the statement, and again whenever its acknowledgement is lost and the batch turns out not to be stored.
    fn write_planned(
        &mut self,
        plan: &BatchPlan<'_>,
        statement: &mut BatchStatement<'_>,
        mut connection: BorrowedConnection,
        mut prepared: Statement,
    ) -> Result<Written, JournalError> {
        let limit = self.lease.database().answer_timeout();
        let mut deadline = None;
        loop {
            let session = connection.session()?;
            statement.set_fence(self.lease.shard(), self.lease.epoch(), &session.settings);
            let failure = match execute(session, &prepared, statement, limit) {
                Outcome::Unknown(failure) => failure,
                Outcome::SettingsChanged => {
                    connection = self.replace_connection(connection)?;
                    prepared = connection.prepare_batch(statement, limit)?;
                    continue;
                }
                outcome => {
                    connection.put_back();
                    return match outcome {
                        Outcome::OwnershipLost => Err(self.lease.mark_lost()),
                        Outcome::Refused(error) if is_unique_violation(&error) => {
                            Ok(Written::Duplicate(error))
                        }
                        Outcome::Refused(error) => Err(from_postgres(error)),
                        Outcome::Stored | Outcome::Unknown(_) | Outcome::SettingsChanged => {
                            Ok(Written::Stored)
                        }
                    };
                }
            };
            drop(connection);
            let deadline = *deadline
                .get_or_insert_with(|| Instant::now() + self.lease.database().settings().timeouts.outcome);
            let Some(next) = self.find_outcome(plan.counters.commit_number, failure, deadline)? else {
                return Ok(Written::Stored);
            };
            connection = next;
            prepared = connection.prepare_batch(statement, limit)?;
        }
    }

    /// Closes a connection that has stored nothing because the settings of the server have changed. Returns another one, if the
    /// new settings are safe.
    fn replace_connection(
        &mut self,
        connection: BorrowedConnection,
    ) -> Result<BorrowedConnection, JournalError> {
        drop(connection);
        let (connection, found) = self.confirm()?;
        if found == self.index.counters.commit_number {
            return Ok(connection);
        }
        self.confirmed = None;
        Err(timed_out())
    }

    /// Confirms the ownership until the database says whether it has the commit with this number. Returns `None` if it has, and
    /// otherwise the connection on which to write it again.
    fn find_outcome(
        &mut self,
        commit_number: i64,
        mut failure: DatabaseFailure,
        deadline: Instant,
    ) -> Result<Option<BorrowedConnection>, JournalError> {
        self.confirmed = None;
        let mut pause = MIN_RETRY_PAUSE;
        loop {
            match self.confirm() {
                Ok((connection, found)) if found == commit_number => {
                    connection.put_back();
                    return Ok(None);
                }
                Ok((connection, found))
                    if found == self.index.counters.commit_number && Instant::now() < deadline =>
                {
                    return Ok(Some(connection));
                }
                Ok(_) => {
                    self.confirmed = None;
                    return Err(JournalError::OutcomeUnknown(failure.into()));
                }
                Err(error @ JournalError::OwnershipLost { .. }) => return Err(error),
                Err(error) => {
                    if let JournalError::UnsafeSetting(reason) = error {
                        failure = DatabaseFailure::new(reason);
                    }
                    if Instant::now() >= deadline {
                        return Err(JournalError::OutcomeUnknown(failure.into()));
                    }
                }
            }
            thread::sleep(pause);
            pause = (pause * 2).min(MAX_RETRY_PAUSE);
        }
    }

    /// Reads the rows to which the batch refers, and returns the first conflict in the order of the entries.
    fn explain_conflict(&mut self, batch: &[JournalEntry<'_>]) -> Result<Option<JournalError>, JournalError> {
        let shard = self.lease.shard();
        let history =
            self.read(&async |session: &Session| read_history(&session.client, shard, batch).await)?;
        Ok(BatchPlan::new(batch, &self.index, Some(&history)).err().map(JournalError::Conflict))
    }
}

fn execute(
    session: &Session,
    prepared: &Statement,
    statement: &BatchStatement<'_>,
    limit: Duration,
) -> Outcome {
    session.take_warning();
    let parameters = statement.parameters();
    match wait(durability::commit(session, prepared, &parameters), limit) {
        None => Outcome::Unknown(DatabaseFailure::new("the database did not answer in time")),
        Some(Err(error)) if is_rolled_back(&error) => Outcome::Refused(error),
        Some(Err(error)) => Outcome::Unknown(describe(&error)),
        Some(Ok(Commit::Fenced)) => Outcome::OwnershipLost,
        Some(Ok(Commit::SettingsChanged)) => Outcome::SettingsChanged,
        Some(Ok(_)) if session.take_warning() => {
            Outcome::Unknown(DatabaseFailure::new("the standby did not confirm the commit"))
        }
        Some(Ok(Commit::SettingsChangedMeanwhile)) => {
            Outcome::Unknown(DatabaseFailure::new("the settings of the database changed during the commit"))
        }
        Some(Ok(Commit::Stored(_))) => Outcome::Stored,
    }
}

/// Reads what exists of the ids in the batch.
async fn read_history(
    client: &tokio_postgres::Client,
    shard: i32,
    batch: &[JournalEntry<'_>],
) -> Result<History, tokio_postgres::Error> {
    let (mut event_ids, mut sessions, mut tokens) = (HashSet::new(), HashSet::new(), HashSet::new());
    let (mut principals, mut keys) = (Vec::new(), Vec::new());
    for entry in batch {
        match *entry {
            JournalEntry::Event { event_id, .. } => drop(event_ids.insert(index_key(event_id))),
            JournalEntry::SessionOpened { id, .. } => drop(sessions.insert(index_key(id))),
            JournalEntry::QuestionOpened { token, .. }
            | JournalEntry::DeadlineMoved { token, .. }
            | JournalEntry::QuestionDecided { token, .. }
            | JournalEntry::DecisionSpent { token, .. } => drop(tokens.insert(index_key(token))),
            JournalEntry::ResponseStored { principal, key, .. } => {
                principals.push(index_key(principal));
                keys.push(index_key(key));
            }
            _ => {}
        }
    }
    let mut history = History::default();
    if !event_ids.is_empty() {
        let sql = expand_keys("SELECT id FROM sayso.event WHERE shard = $1 AND KEY(id) = ANY ($2)");
        let ids: Vec<_> = event_ids.into_iter().collect();
        for row in client.query(&sql, &[&shard, &ids]).await? {
            history.event_ids.insert(text_from_sql(row.get(0)));
        }
    }
    if !sessions.is_empty() {
        let sql = expand_keys("SELECT id FROM sayso.session WHERE shard = $1 AND KEY(id) = ANY ($2)");
        let ids: Vec<_> = sessions.into_iter().collect();
        for row in client.query(&sql, &[&shard, &ids]).await? {
            history.sessions.insert(text_from_sql(row.get(0)));
        }
    }
    if !tokens.is_empty() {
        let sql = expand_keys(
            "SELECT token, spent IS NOT NULL FROM sayso.question WHERE shard = $1 AND KEY(token) = ANY ($2)",
        );
        let tokens: Vec<_> = tokens.into_iter().collect();
        for row in client.query(&sql, &[&shard, &tokens]).await? {
            history.questions.insert(text_from_sql(row.get(0)), row.get(1));
        }
    }
    if !keys.is_empty() {
        let sql = expand_keys(
            "SELECT principal, key FROM sayso.idempotency_key WHERE shard = $1
             AND (KEY(principal), KEY(key)) IN (SELECT * FROM unnest($2::bytea[], $3::bytea[]))",
        );
        for row in client.query(&sql, &[&shard, &principals, &keys]).await? {
            history.idempotency_keys.insert((text_from_sql(row.get(0)), text_from_sql(row.get(1))));
        }
    }
    Ok(history)
}

/// Returns the value by which an id is indexed; see [`expand_keys`].
pub(super) fn index_key(id: &str) -> Vec<u8> {
    if id.len() <= MAX_INDEXED_BYTES {
        id.as_bytes().to_vec()
    } else {
        Digest::of(id.as_bytes()).as_bytes().to_vec()
    }
}

type Column<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// The parts of a statement, each of which changes one table. `@1` and so on are its own parameters. The order of the
/// parts is the order of the bits in [`BatchStatement::parts`].
const PARTS: [&str; 13] = [
    "INSERT INTO sayso.event (shard, position, session, at, critical, id, body)
     SELECT fence.id, rows.* FROM fence, unnest(@1::bigint[], @2::bigint[], @3::bigint[], @4::boolean[], @5::bytea[], @6::bytea[]) AS rows",
    "INSERT INTO sayso.session (shard, number, id, agent, principal, lease, record, ended, oldest, bytes)
     SELECT fence.id, rows.* FROM fence, unnest(@1::bigint[], @2::bytea[], @3::bytea[], @4::bytea[], @5::bigint[], @6::bytea[],
     @7::bigint[], @8::bigint[], @9::bigint[]) AS rows",
    "UPDATE sayso.session SET lease = coalesce(rows.lease, session.lease), record = coalesce(rows.record, session.record)
     FROM fence, unnest(@1::bigint[], @2::bigint[], @3::bytea[]) AS rows (number, lease, record)
     WHERE session.shard = fence.id AND session.number = rows.number",
    "UPDATE sayso.session SET lease = coalesce(rows.lease, session.lease), record = coalesce(rows.record, session.record),
     ended = rows.ended, oldest = coalesce((SELECT min(position) FROM sayso.event
     WHERE event.shard = session.shard AND event.session = session.number), rows.first)
     FROM fence, unnest(@1::bigint[], @2::bigint[], @3::bytea[], @4::bigint[], @5::bigint[])
     AS rows (number, lease, record, ended, first)
     WHERE session.shard = fence.id AND session.number = rows.number",
    "INSERT INTO sayso.question
     (shard, session, token, deadline, record, decision, decided_by, receipt, decided, call, spent, bytes)
     SELECT fence.id, rows.* FROM fence, unnest(@1::bigint[], @2::bytea[], @3::bigint[], @4::bytea[], @5::bytea[], @6::bytea[],
     @7::bytea[], @8::bigint[], @9::bytea[], @10::bigint[], @11::bigint[]) AS rows",
    "UPDATE sayso.question SET deadline = coalesce(rows.deadline, question.deadline),
     decision = coalesce(rows.decision, question.decision), decided_by = coalesce(rows.decided_by, question.decided_by),
     receipt = coalesce(rows.receipt, question.receipt), decided = coalesce(rows.decided, question.decided),
     call = rows.call, spent = rows.spent, bytes = question.bytes + rows.bytes
     FROM fence, unnest(@1::bytea[], @2::bigint[], @3::bytea[], @4::bytea[], @5::bytea[], @6::bigint[], @7::bytea[], @8::bigint[],
     @9::bigint[]) AS rows (key, deadline, decision, decided_by, receipt, decided, call, spent, bytes)
     WHERE question.shard = fence.id AND KEY(question.token) = rows.key",
    "INSERT INTO sayso.subscription AS stored (shard, id, principal, record, cursor)
     SELECT fence.id, rows.* FROM fence, unnest(@1::bytea[], @2::bytea[], @3::bytea[], @4::bigint[]) AS rows
     ON CONFLICT (shard, (KEY(id))) DO UPDATE
     SET principal = excluded.principal, record = excluded.record, cursor = excluded.cursor",
    "UPDATE sayso.subscription SET record = coalesce(rows.record, subscription.record), cursor = rows.cursor
     FROM fence, unnest(@1::bytea[], @2::bytea[], @3::bigint[]) AS rows (key, record, cursor)
     WHERE subscription.shard = fence.id AND KEY(subscription.id) = rows.key",
    "DELETE FROM sayso.subscription USING fence, unnest(@1::bytea[]) AS rows (key)
     WHERE subscription.shard = fence.id AND KEY(subscription.id) = rows.key",
    "INSERT INTO sayso.idempotency_key (shard, principal, key, request, response, at)
     SELECT fence.id, rows.* FROM fence, unnest(@1::bytea[], @2::bytea[], @3::bytea[], @4::bytea[], @5::bigint[]) AS rows",
    "INSERT INTO sayso.manifest AS stored (shard, agent, record)
     SELECT fence.id, rows.* FROM fence, unnest(@1::bytea[], @2::bytea[]) AS rows
     ON CONFLICT (shard, (KEY(agent))) DO UPDATE SET record = excluded.record",
    "DELETE FROM sayso.manifest USING fence, unnest(@1::bytea[]) AS rows (key)
     WHERE manifest.shard = fence.id AND KEY(manifest.agent) = rows.key",
    "INSERT INTO sayso.reply_attempt (shard, at, principal, details)
     SELECT fence.id, rows.* FROM fence, unnest(@1::bigint[], @2::bytea[], @3::bytea[]) AS rows",
];

/// The first part of every statement locks the row of the shard, and checks the epoch and the settings of the server. If it
/// finds no row, no other part writes anything.
fn fence() -> String {
    format!(
        "WITH fence AS (UPDATE sayso.shard SET commit_number = $3, last_position = $4, last_session = $5,
         stored_bytes = $6 WHERE id = $1 AND epoch = $2 AND {SETTINGS} = $7 RETURNING epoch, id)"
    )
}
const FENCE_PARAMETERS: usize = 7;

/// The statement that writes a batch, with its parameters.
pub(super) struct BatchStatement<'a> {
    fence: (i32, i64, String),
    counters: [i64; 4],
    /// Which parts the statement has, as a bit set.
    pub(super) parts: u16,
    /// The parameters of its parts, in order.
    columns: Vec<Column<'a>>,
}

impl<'a> BatchStatement<'a> {
    fn new(plan: &BatchPlan<'a>) -> Self {
        let counters = plan.counters;
        let counters = [
            counters.commit_number,
            position_to_sql(counters.last_position),
            counters.last_session,
            counters.stored_bytes,
        ];
        let mut statement = Self { fence: (0, 0, String::new()), counters, parts: 0, columns: Vec::new() };
        statement.add_events(plan);
        statement.add_sessions(plan);
        statement.add_questions(plan);
        statement.add_subscriptions(plan);
        statement.add_others(plan);
        statement
    }

    fn set_fence(&mut self, shard: i32, epoch: i64, settings: &str) {
        self.fence = (shard, epoch, settings.to_owned());
    }

    fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&self.fence.0, &self.fence.1];
        parameters.extend(self.counters.iter().map(|counter| counter as &(dyn ToSql + Sync)));
        parameters.push(&self.fence.2);
        parameters.extend(self.columns.iter().map(|column| &**column as &(dyn ToSql + Sync)));
        parameters
    }

    pub(super) fn sql(&self) -> String {
        let mut sql = fence();
        let mut parameters = FENCE_PARAMETERS;
        for (number, part) in PARTS.iter().enumerate().filter(|(number, _)| self.parts & 1 << number != 0) {
            let count = part.matches('@').count();
            let mut part = expand_keys(part);
            // From the highest number down, because `@1` is the beginning of `@10`.
            for parameter in (1..=count).rev() {
                part = part.replace(&format!("@{parameter}"), &format!("${}", parameters + parameter));
            }
            parameters += count;
            let _ = write!(sql, ", part_{number} AS ({part})");
        }
        sql.push(' ');
        sql.push_str(&commit_result("fence", "$7"));
        sql
    }

    fn add_part<const N: usize>(&mut self, number: u16, columns: [Column<'a>; N]) {
        self.parts |= 1 << number;
        self.columns.extend(columns);
    }

    fn add_events(&mut self, plan: &BatchPlan<'a>) {
        let rows = &plan.events;
        if rows.is_empty() {
            return;
        }
        self.add_part(
            0,
            [
                column(rows, |row| row.position),
                column(rows, |row| row.session),
                column(rows, |row| row.at),
                column(rows, |row| row.is_critical),
                column(rows, |row| row.id.as_bytes()),
                column(rows, |row| row.body),
            ],
        );
    }

    fn add_sessions(&mut self, plan: &BatchPlan<'a>) {
        let first_position = |number: i64| {
            plan.events.iter().find(|event| event.session == number).map_or(0, |event| event.position)
        };
        let mut opened: Vec<_> = plan.sessions.iter().filter(|(_, change)| change.opened.is_some()).collect();
        opened.sort_by_key(|(_, change)| change.number);
        if !opened.is_empty() {
            self.add_part(
                1,
                [
                    column(&opened, |(_, change)| change.number),
                    column(&opened, |(id, _)| id.as_bytes()),
                    column(&opened, |(_, change)| change.opened.unwrap_or_default().0.as_bytes()),
                    column(&opened, |(_, change)| change.opened.unwrap_or_default().1.as_bytes()),
                    column(&opened, |(_, change)| change.lease),
                    column(&opened, |(_, change)| change.record),
                    column(&opened, |(_, change)| change.ended),
                    column(&opened, |(_, change)| change.ended.map(|_| first_position(change.number))),
                    column(&opened, |(_, change)| change.bytes),
                ],
            );
        }
        let stored: Vec<_> = plan.sessions.values().filter(|change| change.opened.is_none()).collect();
        let (ended, touched): (Vec<&SessionChange<'a>>, Vec<&SessionChange<'a>>) =
            stored.into_iter().partition(|change| change.ended.is_some());
        if !touched.is_empty() {
            self.add_part(
                2,
                [
                    column(&touched, |change| change.number),
                    column(&touched, |change| change.lease),
                    column(&touched, |change| change.record),
                ],
            );
        }
        if !ended.is_empty() {
            self.add_part(
                3,
                [
                    column(&ended, |change| change.number),
                    column(&ended, |change| change.lease),
                    column(&ended, |change| change.record),
                    column(&ended, |change| change.ended),
                    column(&ended, |change| first_position(change.number)),
                ],
            );
        }
    }

    fn add_questions(&mut self, plan: &BatchPlan<'a>) {
        let (opened, stored): (Vec<_>, Vec<_>) = plan.questions.iter().partition(|(_, change)| change.is_new);
        if !opened.is_empty() {
            self.add_part(
                4,
                [
                    column(&opened, |(_, change)| change.session_number),
                    column(&opened, |(token, _)| token.as_bytes()),
                    column(&opened, |(_, change)| change.deadline),
                    column(&opened, |(_, change)| change.record),
                    column(&opened, |(_, change)| {
                        change.decision.map(|decision| decision.decision.as_bytes())
                    }),
                    column(&opened, |(_, change)| {
                        change.decision.map(|decision| decision.decided_by.as_bytes())
                    }),
                    column(&opened, |(_, change)| change.decision.map(|decision| decision.receipt)),
                    column(&opened, |(_, change)| change.decision.map(|decision| decision.at)),
                    column(&opened, |(_, change)| change.spent.map(|(call, _)| call)),
                    column(&opened, |(_, change)| change.spent.map(|(_, at)| at)),
                    column(&opened, |(_, change)| change.bytes),
                ],
            );
        }
        if !stored.is_empty() {
            self.add_part(
                5,
                [
                    column(&stored, |(token, _)| index_key(token)),
                    column(&stored, |(_, change)| change.deadline),
                    column(&stored, |(_, change)| {
                        change.decision.map(|decision| decision.decision.as_bytes())
                    }),
                    column(&stored, |(_, change)| {
                        change.decision.map(|decision| decision.decided_by.as_bytes())
                    }),
                    column(&stored, |(_, change)| change.decision.map(|decision| decision.receipt)),
                    column(&stored, |(_, change)| change.decision.map(|decision| decision.at)),
                    column(&stored, |(_, change)| change.spent.map(|(call, _)| call)),
                    column(&stored, |(_, change)| change.spent.map(|(_, at)| at)),
                    column(&stored, |(_, change)| change.bytes),
                ],
            );
        }
    }

    fn add_subscriptions(&mut self, plan: &BatchPlan<'a>) {
        let (mut opened, mut changed, mut closed) = (Vec::new(), Vec::new(), Vec::new());
        for (id, change) in &plan.subscriptions {
            match *change {
                SubscriptionChange::Opened { principal, record, live, .. } => {
                    opened.push((*id, principal, record, position_to_sql(live.cursor)));
                }
                SubscriptionChange::Changed { record, live } => {
                    changed.push((index_key(id), record, position_to_sql(live.cursor)));
                }
                SubscriptionChange::Closed => closed.push(index_key(id)),
            }
        }
        if !opened.is_empty() {
            self.add_part(
                6,
                [
                    column(&opened, |(id, ..)| id.as_bytes()),
                    column(&opened, |(_, principal, ..)| principal.as_bytes()),
                    column(&opened, |(_, _, record, _)| *record),
                    column(&opened, |(.., cursor)| *cursor),
                ],
            );
        }
        if !changed.is_empty() {
            self.add_part(
                7,
                [
                    column(&changed, |(key, ..)| key.clone()),
                    column(&changed, |(_, record, _)| *record),
                    column(&changed, |(.., cursor)| *cursor),
                ],
            );
        }
        if !closed.is_empty() {
            self.add_part(8, [Box::new(closed)]);
        }
    }

    fn add_others(&mut self, plan: &BatchPlan<'a>) {
        let rows = &plan.idempotency_keys;
        if !rows.is_empty() {
            self.add_part(
                9,
                [
                    column(rows, |row| row.principal.as_bytes()),
                    column(rows, |row| row.key.as_bytes()),
                    column(rows, |row| row.request),
                    column(rows, |row| row.response),
                    column(rows, |row| row.at),
                ],
            );
        }
        let (stored, deleted): (Vec<_>, Vec<_>) =
            plan.manifests.iter().partition(|(_, record)| record.is_some());
        if !stored.is_empty() {
            self.add_part(
                10,
                [column(&stored, |(agent, _)| agent.as_bytes()), column(&stored, |(_, record)| **record)],
            );
        }
        if !deleted.is_empty() {
            self.add_part(11, [column(&deleted, |(agent, _)| index_key(agent))]);
        }
        let rows = &plan.attempts;
        if !rows.is_empty() {
            self.add_part(
                12,
                [
                    column(rows, |row| row.at),
                    column(rows, |row| row.principal.as_bytes()),
                    column(rows, |row| row.details),
                ],
            );
        }
    }
}

/// Returns one column of the rows as an array parameter.
fn column<'a, R, T: ToSql + Sync + Send + 'a>(rows: &[R], value: impl Fn(&R) -> T) -> Column<'a> {
    Box::new(rows.iter().map(value).collect::<Vec<T>>())
}

/// Keeps the number of prepared statements below the limit.
pub(super) fn is_statement_cache_full(statements: usize) -> bool {
    statements >= MAX_STATEMENTS
}
