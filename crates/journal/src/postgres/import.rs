//! Copies the journals of a stopped hub from files into a database.
//!
//! Everything is copied in one transaction, so an import that fails leaves the database as it was. Like every commit, it
//! checks that this process owns the shards.

use std::future::Future;
use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::PostgresJournal;
use super::database::{Session, timed_out, wait};
use super::error_mapping::{DatabaseFailure, from_postgres};
use super::plan::{position_to_sql, size};
use crate::sqlite::export::{AttemptRow, KeyRow};
use crate::sqlite::rows::{DecisionColumns, EventRow, QuestionRow, SessionRow};
use crate::stored::OpenSubscription;
use crate::{JournalError, Position, SqliteJournal};

/// Number of rows that one statement inserts. Bodies can be large, so it is small.
const ROWS_PER_STATEMENT: usize = 256;

/// What an import has copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Events.
    pub events: u64,
    /// Sessions, open or ended.
    pub sessions: u64,
    /// Questions, decided or not.
    pub questions: u64,
}

/// A text for [`SharedTexts`](super::SharedTexts) that an import stores. The import fails if the database has one with this name.
#[derive(Clone, Copy)]
pub struct ImportedText<'a> {
    /// Its name.
    pub name: &'a str,
    /// The text. It may be secret.
    pub content: &'a str,
}

impl PostgresJournal {
    /// Copies journals from files, one for each shard, in the order of the shards. `journals` must be unused.
    /// Call [`SqliteJournal::check_integrity`] first: an import notices damaged rows, but not every other damage.
    /// `was_single` says whether the sources had only one shard before. The import fixes the number of shards. On an error, nothing
    /// was copied and the number is not fixed, except perhaps after [`JournalError::OutcomeUnknown`].
    pub fn import(
        journals: &[Self],
        sources: &[SqliteJournal],
        was_single: bool,
        texts: &[ImportedText<'_>],
    ) -> Result<ImportReport, JournalError> {
        let Some(first) = journals.first() else { return Ok(ImportReport::default()) };
        let database = first.lease.database().clone();
        let connection = database.borrow()?;
        let session = connection.session()?;
        let mut import =
            Import { session, limit: database.answer_timeout(), report: ImportReport::default() };
        session.take_warning();
        import.run(session.client.batch_execute("BEGIN"))?;
        import.fix_shard_count(i32::try_from(journals.len()).unwrap_or(i32::MAX), was_single)?;
        for (journal, source) in journals.iter().zip(sources) {
            import.copy(journal, source)?;
        }
        import.store_texts(texts)?;
        let commit = wait(session.client.batch_execute("COMMIT"), import.limit);
        if !matches!(commit, Some(Ok(()))) || session.take_warning() {
            let failure = DatabaseFailure::new("the database did not confirm the import");
            return Err(JournalError::OutcomeUnknown(failure.into()));
        }
        let report = import.report;
        connection.put_back();
        Ok(report)
    }
}

struct Import<'a> {
    session: &'a Session,
    /// How long one statement may take.
    limit: Duration,
    report: ImportReport,
}

impl Import<'_> {
    /// Waits for the answer to one statement.
    fn run<T>(
        &self,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, JournalError> {
        wait(statement, self.limit).ok_or_else(timed_out)?.map_err(from_postgres)
    }

    fn insert(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<(), JournalError> {
        let client: &Client = &self.session.client;
        self.run(client.execute(sql, parameters)).map(drop)
    }

    /// Fixes the number of shards in the transaction of the import, so that a failed import leaves it open. A hub that starts at the
    /// same time waits for the end of the transaction.
    fn fix_shard_count(&self, count: i32, was_single: bool) -> Result<(), JournalError> {
        let client = &self.session.client;
        let sql = "INSERT INTO sayso.shard_count (count, was_single) VALUES ($1, $2)
                   ON CONFLICT (id) DO UPDATE SET was_single = $2 RETURNING count";
        let stored: i32 = self.run(client.query_one(sql, &[&count, &was_single]))?.get(0);
        if stored == count {
            return Ok(());
        }
        Err(JournalError::ShardCount { stored, configured: count })
    }

    /// Copies everything of one shard.
    fn copy(&mut self, journal: &PostgresJournal, source: &SqliteJournal) -> Result<(), JournalError> {
        let (shard, epoch) = (journal.lease.shard(), journal.lease.epoch());
        let sql = "SELECT commit_number FROM sayso.shard WHERE id = $1 AND epoch = $2 FOR UPDATE";
        let row = self.run(self.session.client.query_opt(sql, &[&shard, &epoch]))?;
        let Some(row) = row else { return Err(journal.lease.mark_lost()) };
        if row.get::<_, i64>(0) != 0 {
            let failure = DatabaseFailure::new(format!(
                "shard {shard} of the database is already in use; choose a database that no hub has used"
            ));
            return Err(JournalError::Io(failure.into()));
        }
        let mut stored_bytes = 0;
        let (last_session, bytes) = self.copy_sessions(shard, source)?;
        stored_bytes += bytes + self.copy_events(shard, source)?;
        stored_bytes += self.copy_questions(shard, source)? + self.copy_subscriptions(shard, source)?;
        stored_bytes += self.copy_keys(shard, source)? + self.copy_attempts(shard, source)?;
        let (last_position, trimmed_up_to) = source.export_positions();
        self.insert(
            "UPDATE sayso.shard SET commit_number = 1, last_position = $2, trimmed_up_to = $3, last_session = $4,
             stored_bytes = $5 WHERE id = $1",
            &[&shard, &position_to_sql(last_position), &position_to_sql(trimmed_up_to), &last_session, &stored_bytes],
        )
    }

    /// Returns the greatest number of a session, and the size of all.
    fn copy_sessions(&mut self, shard: i32, source: &SqliteJournal) -> Result<(i64, i64), JournalError> {
        let sql = "INSERT INTO sayso.session (shard, number, id, agent, principal, lease, record, ended, oldest, bytes)
                   SELECT $1, rows.* FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bigint[],
                   $7::bytea[], $8::bigint[], $9::bigint[], $10::bigint[]) AS rows";
        let (mut last, mut total) = (0, 0);
        loop {
            let rows = source.export_sessions(last, ROWS_PER_STATEMENT)?;
            let Some(newest) = rows.last() else { return Ok((last, total)) };
            last = newest.number;
            let bytes: Vec<i64> = rows
                .iter()
                .map(|SessionRow { session, .. }| {
                    size([
                        session.id.as_bytes(),
                        session.agent.as_bytes(),
                        session.principal.as_bytes(),
                        &session.record,
                    ])
                })
                .collect();
            total += bytes.iter().sum::<i64>();
            self.report.sessions += rows.len() as u64;
            self.insert(
                sql,
                &[
                    &shard,
                    &column(&rows, |row| row.number),
                    &column(&rows, |row| row.session.id.as_bytes()),
                    &column(&rows, |row| row.session.agent.as_bytes()),
                    &column(&rows, |row| row.session.principal.as_bytes()),
                    &column(&rows, |row| row.session.lease_expires_at.get()),
                    &column(&rows, |row| &*row.session.record),
                    &column(&rows, |row| row.ended_at.map(seal::UnixMillis::get)),
                    &column(&rows, |row| row.oldest_position),
                    &bytes,
                ],
            )?;
        }
    }

    fn copy_events(&mut self, shard: i32, source: &SqliteJournal) -> Result<i64, JournalError> {
        let sql = "INSERT INTO sayso.event (shard, position, session, at, critical, id, body)
                   SELECT $1, rows.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::bytea[],
                   $7::bytea[]) AS rows";
        let (mut after, mut total) = (Position::START, 0);
        loop {
            let rows = source.export_events(after, ROWS_PER_STATEMENT)?;
            let Some(newest) = rows.last() else { return Ok(total) };
            after = newest.position;
            total += rows.iter().map(|EventRow { id, body, .. }| size([id.as_bytes(), body])).sum::<i64>();
            self.report.events += rows.len() as u64;
            self.insert(
                sql,
                &[
                    &shard,
                    &column(&rows, |row| position_to_sql(row.position)),
                    &column(&rows, |row| row.session),
                    &column(&rows, |row| row.at.get()),
                    &column(&rows, |row| row.is_critical),
                    &column(&rows, |row| row.id.as_bytes()),
                    &column(&rows, |row| &*row.body),
                ],
            )?;
        }
    }

    fn copy_questions(&mut self, shard: i32, source: &SqliteJournal) -> Result<i64, JournalError> {
        // The size of a question contains the id of its session, as if it had been written here.
        let sql = "INSERT INTO sayso.question
                   (shard, session, token, deadline, record, decision, decided_by, receipt, decided, call, spent, bytes)
                   SELECT $1, rows.session, token, deadline, rows.record, decision, decided_by, receipt, decided, call, spent,
                   rows.bytes + octet_length(session.id)
                   FROM unnest($2::bigint[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[],
                   $9::bigint[], $10::bytea[], $11::bigint[], $12::bigint[])
                   AS rows (session, token, deadline, record, decision, decided_by, receipt, decided, call, spent, bytes)
                   JOIN sayso.session ON session.shard = $1 AND session.number = rows.session";
        let mut last = 0;
        loop {
            let rows = source.export_questions(last, ROWS_PER_STATEMENT)?;
            let Some((newest, _)) = rows.last() else { break };
            last = *newest;
            let rows: Vec<QuestionRow> = rows.into_iter().map(|(_, row)| row).collect();
            let decisions: Vec<Option<DecisionValues<'_>>> =
                column(&rows, |row| row.decision.as_ref().map(DecisionValues::new));
            let decided = |value: fn(&DecisionValues<'_>) -> Option<i64>| -> Vec<Option<i64>> {
                decisions.iter().map(|decision| decision.as_ref().and_then(value)).collect()
            };
            let receipt_bytes =
                |row: &QuestionRow| row.decision.as_ref().map_or(0, |decision| size([&decision.receipt]));
            self.report.questions += rows.len() as u64;
            let inserted = self.run(self.session.client.execute(
                sql,
                &[
                    &shard,
                    &column(&rows, |row| row.session),
                    &column(&rows, |row| row.token.as_bytes()),
                    &column(&rows, |row| row.deadline.get()),
                    &column(&rows, |row| &*row.record),
                    &column(&decisions, |row| row.as_ref().map(|decision| decision.decision)),
                    &column(&decisions, |row| row.as_ref().map(|decision| decision.decided_by)),
                    &column(&decisions, |row| row.as_ref().map(|decision| decision.receipt)),
                    &decided(|decision| Some(decision.decided_at)),
                    &column(&decisions, |row| row.as_ref().and_then(|decision| decision.call)),
                    &decided(|decision| decision.spent_at),
                    &column(&rows, |row| size([row.token.as_bytes(), &row.record]) + receipt_bytes(row)),
                ],
            ))?;
            // A question without its session would be dropped by the join.
            if inserted != rows.len() as u64 {
                return Err(JournalError::corrupt(crate::DamageLocation::Question));
            }
        }
        let sql = "SELECT coalesce(sum(bytes), 0)::bigint FROM sayso.question WHERE shard = $1";
        Ok(self.run(self.session.client.query_one(sql, &[&shard]))?.get(0))
    }

    fn copy_subscriptions(&mut self, shard: i32, source: &SqliteJournal) -> Result<i64, JournalError> {
        let live_state = source.export_live_state()?;
        let mut total = 0;
        for rows in live_state.subscriptions.chunks(ROWS_PER_STATEMENT) {
            let bytes = |OpenSubscription { id, principal, record, .. }: &OpenSubscription| {
                size([id.as_bytes(), principal.as_bytes(), record])
            };
            total += rows.iter().map(bytes).sum::<i64>();
            self.insert(
                "INSERT INTO sayso.subscription (shard, id, principal, record, cursor)
                 SELECT $1, rows.* FROM unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::bigint[]) AS rows",
                &[
                    &shard,
                    &column(rows, |row| row.id.as_bytes()),
                    &column(rows, |row| row.principal.as_bytes()),
                    &column(rows, |row| &*row.record),
                    &column(rows, |row| position_to_sql(row.cursor)),
                ],
            )?;
        }
        for rows in live_state.manifests.chunks(ROWS_PER_STATEMENT) {
            self.insert(
                "INSERT INTO sayso.manifest (shard, agent, record)
                 SELECT $1, rows.* FROM unnest($2::bytea[], $3::bytea[]) AS rows",
                &[&shard, &column(rows, |row| row.agent.as_bytes()), &column(rows, |row| &*row.record)],
            )?;
        }
        Ok(total)
    }

    fn copy_keys(&mut self, shard: i32, source: &SqliteJournal) -> Result<i64, JournalError> {
        let sql = "INSERT INTO sayso.idempotency_key (shard, principal, key, request, response, at)
                   SELECT $1, rows.* FROM unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bigint[]) AS rows";
        let (mut last, mut total) = (0, 0);
        loop {
            let rows = source.export_keys(last, ROWS_PER_STATEMENT)?;
            let Some((newest, _)) = rows.last() else { return Ok(total) };
            last = *newest;
            let bytes = |KeyRow { principal, key, request, response, .. }: &KeyRow| {
                size([principal.as_bytes(), key.as_bytes(), request, response])
            };
            total += rows.iter().map(|(_, row)| bytes(row)).sum::<i64>();
            self.insert(
                sql,
                &[
                    &shard,
                    &column(&rows, |(_, row)| row.principal.as_bytes()),
                    &column(&rows, |(_, row)| row.key.as_bytes()),
                    &column(&rows, |(_, row)| &*row.request),
                    &column(&rows, |(_, row)| &*row.response),
                    &column(&rows, |(_, row)| row.at.get()),
                ],
            )?;
        }
    }

    fn copy_attempts(&mut self, shard: i32, source: &SqliteJournal) -> Result<i64, JournalError> {
        let sql = "INSERT INTO sayso.reply_attempt (shard, at, principal, details)
                   SELECT $1, rows.* FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS rows";
        let (mut last, mut total) = (0, 0);
        loop {
            let rows = source.export_attempts(last, ROWS_PER_STATEMENT)?;
            let Some((newest, _)) = rows.last() else { return Ok(total) };
            last = *newest;
            let bytes =
                |AttemptRow { principal, details, .. }: &AttemptRow| size([principal.as_bytes(), details]);
            total += rows.iter().map(|(_, row)| bytes(row)).sum::<i64>();
            self.insert(
                sql,
                &[
                    &shard,
                    &column(&rows, |(_, row)| row.at.get()),
                    &column(&rows, |(_, row)| row.principal.as_bytes()),
                    &column(&rows, |(_, row)| &*row.details),
                ],
            )?;
        }
    }

    fn store_texts(&self, texts: &[ImportedText<'_>]) -> Result<(), JournalError> {
        for ImportedText { name, content } in texts {
            let sql = "INSERT INTO sayso.shared_text (name, content, version) VALUES ($1, $2, 1)
                       ON CONFLICT DO NOTHING";
            let stored = self.run(self.session.client.execute(sql, &[name, &content.as_bytes()]))?;
            if stored == 0 {
                let failure = DatabaseFailure::new(format!(
                    "the database already has its own {name}; choose a database that no hub has used"
                ));
                return Err(JournalError::Io(failure.into()));
            }
        }
        Ok(())
    }
}

/// The columns of a decision.
struct DecisionValues<'a> {
    decision: &'a [u8],
    decided_by: &'a [u8],
    receipt: &'a [u8],
    decided_at: i64,
    call: Option<&'a [u8]>,
    spent_at: Option<i64>,
}

impl<'a> DecisionValues<'a> {
    fn new(columns: &'a DecisionColumns) -> Self {
        let spent_on = columns.spent_on.as_ref();
        Self {
            decision: columns.decision.as_bytes(),
            decided_by: columns.decided_by.as_bytes(),
            receipt: &columns.receipt,
            decided_at: columns.decided_at.get(),
            call: spent_on.map(|usage| &*usage.call),
            spent_at: spent_on.map(|usage| usage.at.get()),
        }
    }
}

/// Returns one column of the rows.
fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
