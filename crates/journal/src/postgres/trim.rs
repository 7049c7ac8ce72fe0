//! Retention: deletes the oldest data first.

use seal::UnixMillis;
use tokio_postgres::{Client, Error};

use super::PostgresJournal;
use super::database::{timed_out, wait};
use super::error_mapping::from_postgres;
use super::live_index::ShardCounters;
use super::plan::{position_from_sql, position_to_sql};
use super::read::sql_limit;
use crate::{JournalError, Retention, TrimReport};

/// Number of reply attempts that are deleted between two checks of the size.
const ATTEMPTS_PER_SIZE_CHECK: i64 = 64;

impl PostgresJournal {
    pub(super) fn trim_step(
        &mut self,
        retention: &Retention,
        now: UnixMillis,
    ) -> Result<TrimReport, JournalError> {
        let connection = self.connection()?;
        let (shard, epoch, limit) =
            (self.lease.shard(), self.lease.epoch(), self.lease.database().answer_timeout());
        let mut counters = self.index.counters;
        counters.commit_number += 1;
        // Unless the trim succeeds, the next call finds out whether it is stored.
        let confirmed = self.confirmed.take();
        let session = connection.session()?;
        let mut pass = TrimPass {
            client: &session.client,
            shard,
            retention,
            now,
            counters,
            report: TrimReport::default(),
        };
        let outcome = wait(pass.run(epoch), limit);
        let TrimPass { counters, mut report, .. } = pass;
        if !outcome.ok_or_else(timed_out)?.map_err(from_postgres)? {
            return Err(self.lease.mark_lost());
        }
        // Nobody was promised a deletion, so whether it is on the standby does not matter.
        if !session.take_warning() {
            self.confirmed = confirmed;
            connection.put_back();
        }
        self.index.counters = counters;
        report.trimmed_up_to = counters.trimmed_up_to;
        Ok(report)
    }
}

struct TrimPass<'a> {
    client: &'a Client,
    shard: i32,
    retention: &'a Retention,
    now: UnixMillis,
    counters: ShardCounters,
    report: TrimReport,
}

impl TrimPass<'_> {
    /// Runs the transaction. Returns `false` if another owner has the shard.
    async fn run(&mut self, epoch: i64) -> Result<bool, Error> {
        self.client.batch_execute("BEGIN").await?;
        let sql = "SELECT FROM sayso.shard WHERE id = $1 AND epoch = $2 FOR UPDATE";
        if self.client.query_opt(sql, &[&self.shard, &epoch]).await?.is_none() {
            self.client.batch_execute("ROLLBACK").await?;
            return Ok(false);
        }
        self.trim_events().await?;
        self.trim_sessions().await?;
        self.trim_attempts().await?;
        self.trim_decisions().await?;
        self.trim_idempotency_keys().await?;
        self.report.is_over_limit = !self.report.has_more && self.is_over_limit();
        let sql =
            "UPDATE sayso.shard SET commit_number = $2, trimmed_up_to = $3, stored_bytes = $4 WHERE id = $1";
        let ShardCounters { commit_number, trimmed_up_to, stored_bytes, .. } = self.counters;
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&self.shard, &commit_number, &position_to_sql(trimmed_up_to), &stored_bytes];
        self.client.execute(sql, &parameters).await?;
        self.client.batch_execute("COMMIT").await?;
        Ok(true)
    }

    /// Returns the time before which rows are too old.
    fn cutoff(&self, max_age_ms: Option<i64>) -> i64 {
        max_age_ms.map_or(i64::MIN, |age_ms| self.now.saturating_sub(age_ms).get())
    }

    fn is_over_limit(&self) -> bool {
        let stored_bytes = u64::try_from(self.counters.stored_bytes).unwrap_or(0);
        self.retention.max_bytes.is_some_and(|max_bytes| stored_bytes > max_bytes)
    }

    fn max_rows(&self) -> usize {
        self.retention.max_rows_per_step.max(1)
    }

    /// Advances `trimmed_up_to` past events that are too old or exceed the size limit. Deletes those whose session has
    /// ended.
    async fn trim_events(&mut self) -> Result<(), Error> {
        let cutoff = self.cutoff(self.retention.max_event_age_ms);
        let before = position_to_sql(self.counters.trimmed_up_to);
        let sql = "SELECT event.position, event.at, octet_length(event.id) + octet_length(event.body),
                   session.ended IS NOT NULL
                   FROM sayso.event JOIN sayso.session ON session.shard = event.shard AND session.number = event.session
                   WHERE event.shard = $1 AND event.position > $2 ORDER BY event.position LIMIT $3";
        // Reads one row more than may be deleted, to learn whether more rows remain.
        let limit = sql_limit(self.max_rows()).saturating_add(1);
        let mut trimmed_up_to = before;
        for (examined, row) in
            self.client.query(sql, &[&self.shard, &before, &limit]).await?.iter().enumerate()
        {
            if row.get::<_, i64>(1) >= cutoff && !self.is_over_limit() {
                break;
            }
            if examined == self.max_rows() {
                self.report.has_more = true;
                break;
            }
            trimmed_up_to = row.get(0);
            if row.get(3) {
                self.counters.stored_bytes -= i64::from(row.get::<_, i32>(2));
                self.report.events += 1;
            }
        }
        if trimmed_up_to > before {
            let sql = "DELETE FROM sayso.event USING sayso.session
                       WHERE event.shard = $1 AND event.position > $2 AND event.position <= $3
                       AND session.shard = event.shard AND session.number = event.session AND session.ended IS NOT NULL";
            self.client.execute(sql, &[&self.shard, &before, &trimmed_up_to]).await?;
            self.counters.trimmed_up_to = position_from_sql(trimmed_up_to);
        }
        Ok(())
    }

    /// Deletes events of ended sessions up to `trimmed_up_to`, then the sessions that nothing refers to.
    async fn trim_sessions(&mut self) -> Result<(), Error> {
        let trimmed_up_to = position_to_sql(self.counters.trimmed_up_to);
        let limit = sql_limit(self.max_rows());
        let sql = "SELECT number FROM sayso.session WHERE shard = $1 AND ended IS NOT NULL AND oldest <= $2
                   ORDER BY oldest LIMIT $3";
        let rows = self.client.query(sql, &[&self.shard, &trimmed_up_to, &limit]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        self.report.has_more |= rows.len() == self.max_rows();
        let numbers: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let sql = "WITH deleted AS (DELETE FROM sayso.event WHERE shard = $1 AND position IN
                   (SELECT position FROM sayso.event WHERE shard = $1 AND session = ANY ($2) AND position <= $3 LIMIT $4)
                   RETURNING octet_length(id) + octet_length(body) AS bytes)
                   SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM deleted";
        let row = self.client.query_one(sql, &[&self.shard, &numbers, &trimmed_up_to, &limit]).await?;
        self.report.events += self.count_deleted(&row);
        self.report.has_more |= row.get::<_, i64>(0) == limit;
        let sql = "UPDATE sayso.session SET oldest = (SELECT min(position) FROM sayso.event
                   WHERE event.shard = session.shard AND event.session = session.number)
                   WHERE shard = $1 AND number = ANY ($2)";
        self.client.execute(sql, &[&self.shard, &numbers]).await?;
        self.delete_unused_sessions(&numbers).await
    }

    async fn trim_attempts(&mut self) -> Result<(), Error> {
        let cutoff = self.cutoff(self.retention.max_event_age_ms);
        let limit = sql_limit(self.max_rows());
        self.report.attempts = self.delete_attempts(cutoff, limit).await?;
        self.report.has_more |= self.report.attempts == self.max_rows() as u64;
        while !self.report.has_more && self.is_over_limit() {
            let deleted = self.delete_attempts(i64::MAX, ATTEMPTS_PER_SIZE_CHECK).await?;
            if deleted == 0 {
                return Ok(());
            }
            self.report.attempts += deleted;
            self.report.has_more = self.report.attempts >= self.max_rows() as u64;
        }
        Ok(())
    }

    async fn delete_attempts(&mut self, cutoff: i64, limit: i64) -> Result<u64, Error> {
        let sql = "WITH deleted AS (DELETE FROM sayso.reply_attempt WHERE shard = $1 AND number IN
                   (SELECT number FROM sayso.reply_attempt WHERE shard = $1 AND at < $2 ORDER BY at LIMIT $3)
                   RETURNING octet_length(principal) + octet_length(details) AS bytes)
                   SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM deleted";
        let row = self.client.query_one(sql, &[&self.shard, &cutoff, &limit]).await?;
        Ok(self.count_deleted(&row))
    }

    async fn trim_decisions(&mut self) -> Result<(), Error> {
        let cutoff = self.cutoff(self.retention.max_decision_age_ms);
        let limit = sql_limit(self.max_rows());
        let sql = "DELETE FROM sayso.question WHERE ctid IN
                   (SELECT question.ctid FROM sayso.question JOIN sayso.session
                    ON session.shard = question.shard AND session.number = question.session
                    WHERE question.shard = $1 AND decided < $2 AND session.ended IS NOT NULL ORDER BY decided LIMIT $3)
                   RETURNING session, bytes";
        let rows = self.client.query(sql, &[&self.shard, &cutoff, &limit]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        self.report.has_more |= rows.len() == self.max_rows();
        self.report.decisions = rows.len() as u64;
        self.counters.stored_bytes -= rows.iter().map(|row| row.get::<_, i64>(1)).sum::<i64>();
        let sessions: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        self.delete_unused_sessions(&sessions).await
    }

    async fn trim_idempotency_keys(&mut self) -> Result<(), Error> {
        let cutoff = self.cutoff(self.retention.max_idempotency_key_age_ms);
        let limit = sql_limit(self.max_rows());
        let condition = "at < $2 ORDER BY at LIMIT $3";
        self.report.idempotency_keys = self.delete_keys(condition, &[&cutoff, &limit]).await?;
        self.report.has_more |= self.report.idempotency_keys == self.max_rows() as u64;
        if let Some(max) = self.retention.max_idempotency_keys_per_principal {
            self.delete_surplus_keys(i64::try_from(max).unwrap_or(i64::MAX)).await?;
        }
        Ok(())
    }

    /// Deletes the oldest idempotency keys of principals that have more than `max`.
    async fn delete_surplus_keys(&mut self, max: i64) -> Result<(), Error> {
        // Counting reads all keys. If their numbers span at most `max`, no principal can have more.
        let sql =
            "SELECT coalesce(max(number) - min(number) + 1, 0) FROM sayso.idempotency_key WHERE shard = $1";
        if self.client.query_one(sql, &[&self.shard]).await?.get::<_, i64>(0) <= max {
            return Ok(());
        }
        let sql = "SELECT principal, count(*) FROM sayso.idempotency_key WHERE shard = $1
                   GROUP BY principal HAVING count(*) > $2";
        let principals = self.client.query(sql, &[&self.shard, &max]).await?;
        let mut remaining = sql_limit(self.max_rows());
        for row in principals {
            let surplus = row.get::<_, i64>(1) - max;
            let (principal, limit): (&[u8], i64) = (row.get(0), surplus.min(remaining));
            let condition = "principal = $2 ORDER BY number LIMIT $3";
            self.report.idempotency_keys += self.delete_keys(condition, &[&principal, &limit]).await?;
            self.report.has_more |= surplus > remaining;
            remaining -= limit;
        }
        Ok(())
    }

    /// Deletes the idempotency keys that match a condition with the parameters `$2` and `$3`.
    async fn delete_keys(
        &mut self,
        condition: &str,
        parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<u64, Error> {
        let sql = format!(
            "WITH deleted AS (DELETE FROM sayso.idempotency_key WHERE shard = $1 AND number IN
             (SELECT number FROM sayso.idempotency_key WHERE shard = $1 AND {condition})
             RETURNING octet_length(principal) + octet_length(key) + octet_length(request) + octet_length(response) AS bytes)
             SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM deleted"
        );
        let shard = self.shard;
        let mut all: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![&shard];
        all.extend(parameters);
        let row = self.client.query_one(&sql, &all).await?;
        Ok(self.count_deleted(&row))
    }

    /// Deletes those of the sessions that have ended and have no more events and questions.
    async fn delete_unused_sessions(&mut self, numbers: &[i64]) -> Result<(), Error> {
        let sql = "WITH deleted AS (DELETE FROM sayso.session WHERE shard = $1 AND number = ANY ($2)
                   AND ended IS NOT NULL AND oldest IS NULL AND NOT EXISTS (SELECT FROM sayso.question
                   WHERE question.shard = session.shard AND question.session = session.number) RETURNING bytes)
                   SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM deleted";
        let row = self.client.query_one(sql, &[&self.shard, &numbers]).await?;
        self.count_deleted(&row);
        Ok(())
    }

    /// Subtracts the size of deleted rows, and returns their number. The row holds both.
    fn count_deleted(&mut self, row: &tokio_postgres::Row) -> u64 {
        self.counters.stored_bytes -= row.get::<_, i64>(1);
        u64::try_from(row.get::<_, i64>(0)).unwrap_or(0)
    }
}
