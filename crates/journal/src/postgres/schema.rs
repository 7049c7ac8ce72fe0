//! The tables and their migrations.
//!
//! All tables are in the schema `sayso` and have a column `shard`. Ids and names are `bytea`, because the `text` of
//! Postgres cannot hold the character U+0000 and sorts by the collation of the database.

use std::fmt::Write;

use tokio_postgres::Client;

use super::error_mapping::{DatabaseFailure, from_postgres};
use crate::JournalError;

/// The migrations, one per version. The first one creates version 1. A released migration is never changed.
pub(super) const MIGRATIONS: &[&str] = &[VERSION_1, VERSION_2, VERSION_3, VERSION_4];

/// Serializes migrations by several nodes that start at the same time. "sayso" in ASCII.
const MIGRATION_LOCK: i64 = 0x0073_6179_736f;

/// Ids longer than this are indexed by their SHA-256 hash, because an index entry has a maximum size.
pub(super) const MAX_INDEXED_BYTES: usize = 200;

/// `shard` has one row per shard. Its free space keeps the update of every commit on the same page without touching an
/// index. `commit_number` counts commits, which shows whether a commit whose acknowledgement was lost is stored.
/// `instance` is a random number of the process that owns the shard. `bytes` is the size that a row adds to
/// `shard.stored_bytes`. `session.oldest` is the position of the oldest event of an ended session, or 0 until the first
/// trim.
const VERSION_1: &str = "
CREATE TABLE sayso.shard (
    id integer PRIMARY KEY,
    epoch bigint NOT NULL,
    owner text,
    address text,
    instance bytea,
    lease_until timestamptz,
    commit_number bigint NOT NULL,
    last_position bigint NOT NULL,
    trimmed_up_to bigint NOT NULL,
    last_session bigint NOT NULL,
    stored_bytes bigint NOT NULL
) WITH (fillfactor = 10);
CREATE TABLE sayso.session (
    shard integer NOT NULL,
    number bigint NOT NULL,
    id bytea NOT NULL,
    agent bytea NOT NULL,
    principal bytea NOT NULL,
    lease bigint NOT NULL,
    record bytea NOT NULL,
    ended bigint,
    oldest bigint,
    bytes bigint NOT NULL,
    PRIMARY KEY (shard, number)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX session_id ON sayso.session (shard, (KEY(id)));
CREATE INDEX session_open ON sayso.session (shard, number) WHERE ended IS NULL;
CREATE INDEX session_ended ON sayso.session (shard, oldest) WHERE ended IS NOT NULL;
CREATE TABLE sayso.event (
    position bigint NOT NULL,
    session bigint NOT NULL,
    at bigint NOT NULL,
    shard integer NOT NULL,
    critical boolean NOT NULL,
    id bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (shard, position)
);
CREATE UNIQUE INDEX event_id ON sayso.event (shard, (KEY(id)));
CREATE INDEX event_session ON sayso.event (shard, session, position);
CREATE TABLE sayso.question (
    shard integer NOT NULL,
    session bigint NOT NULL,
    token bytea NOT NULL,
    deadline bigint NOT NULL,
    record bytea NOT NULL,
    decision bytea,
    decided_by bytea,
    receipt bytea,
    decided bigint,
    call bytea,
    spent bigint,
    bytes bigint NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX question_token ON sayso.question (shard, (KEY(token)));
CREATE INDEX question_session ON sayso.question (shard, session);
CREATE INDEX question_undecided ON sayso.question (shard) WHERE decided IS NULL;
CREATE INDEX question_decided ON sayso.question (shard, decided) WHERE decided IS NOT NULL;
CREATE TABLE sayso.subscription (
    shard integer NOT NULL,
    id bytea NOT NULL,
    principal bytea NOT NULL,
    record bytea NOT NULL,
    cursor bigint NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX subscription_id ON sayso.subscription (shard, (KEY(id)));
CREATE TABLE sayso.idempotency_key (
    shard integer NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    principal bytea NOT NULL,
    key bytea NOT NULL,
    request bytea NOT NULL,
    response bytea NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (shard, number)
);
CREATE UNIQUE INDEX idempotency_key_key ON sayso.idempotency_key (shard, (KEY(principal)), (KEY(key)));
CREATE INDEX idempotency_key_at ON sayso.idempotency_key (shard, at);
CREATE TABLE sayso.manifest (shard integer NOT NULL, agent bytea NOT NULL, record bytea NOT NULL);
CREATE UNIQUE INDEX manifest_agent ON sayso.manifest (shard, (KEY(agent)));
CREATE TABLE sayso.reply_attempt (
    shard integer NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    at bigint NOT NULL,
    principal bytea NOT NULL,
    details bytea NOT NULL,
    PRIMARY KEY (shard, number)
);
CREATE INDEX reply_attempt_at ON sayso.reply_attempt (shard, at);
";

/// `cluster` has one row. `node.instance` is a random number of the node's process. `shared_text.version` counts the changes of
/// a text.
const VERSION_2: &str = "
CREATE TABLE sayso.cluster (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    shards integer NOT NULL,
    rebalance_requests bigint NOT NULL DEFAULT 0
);
CREATE TABLE sayso.node (
    name text PRIMARY KEY,
    instance bytea NOT NULL,
    address text NOT NULL,
    alive_until timestamptz NOT NULL,
    draining boolean NOT NULL,
    drain_requested boolean NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE sayso.shared_text (
    name text PRIMARY KEY,
    version bigint NOT NULL,
    content bytea NOT NULL
);
";

/// `shard_count` has one row, once the number of shards is fixed. Before this version, a hub without a cluster had one shard.
/// `was_single` says that the journal of shard 0 was imported from a hub with one shard. It can contain sessions of people whose new
/// sessions go to other shards.
const VERSION_3: &str = "
CREATE TABLE sayso.shard_count (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    count integer NOT NULL CHECK (count > 0),
    was_single boolean NOT NULL DEFAULT false
);
INSERT INTO sayso.shard_count (count)
    SELECT coalesce((SELECT shards FROM sayso.cluster), 1)
    WHERE EXISTS (SELECT FROM sayso.cluster) OR EXISTS (SELECT FROM sayso.shard);
";

/// `node.settings` are those of the node that must be the same at every node.
const VERSION_4: &str = "ALTER TABLE sayso.node ADD COLUMN IF NOT EXISTS settings text;";

/// Replaces every `KEY(column)` with the expression by which the column is indexed.
pub(super) fn expand_keys(sql: &str) -> String {
    let mut expanded = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once("KEY(") {
        // `PRIMARY KEY (` has a space before its bracket, so it does not match.
        let (column, after) = after.split_once(')').unwrap_or((after, ""));
        expanded.push_str(before);
        let _ = write!(
            expanded,
            "CASE WHEN octet_length({column}) <= {MAX_INDEXED_BYTES} THEN {column} ELSE sha256({column}) END"
        );
        rest = after;
    }
    expanded.push_str(rest);
    expanded
}

/// Creates the tables, or migrates them to the newest version. Refuses a newer version. If there is nothing to do, no
/// privilege to create tables is needed.
pub(super) async fn migrate(client: &mut Client, migrations: &[&str]) -> Result<(), JournalError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if read_version(client).await? == known {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(from_postgres)?;
    transaction
        .batch_execute(&format!(
            "SELECT pg_advisory_xact_lock({MIGRATION_LOCK});
             CREATE SCHEMA IF NOT EXISTS sayso;
             CREATE TABLE IF NOT EXISTS sayso.schema_version (version bigint NOT NULL)"
        ))
        .await
        .map_err(from_postgres)?;
    let row = transaction
        .query_one("SELECT coalesce(max(version), 0) FROM sayso.schema_version", &[])
        .await
        .map_err(from_postgres)?;
    let found: i64 = row.get(0);
    if found > known {
        return Err(JournalError::NewerVersion { found, known });
    }
    for migration in migrations.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.batch_execute(&expand_keys(migration)).await.map_err(from_postgres)?;
    }
    transaction
        .batch_execute(&format!(
            "DELETE FROM sayso.schema_version; INSERT INTO sayso.schema_version VALUES ({known})"
        ))
        .await
        .map_err(from_postgres)?;
    transaction.commit().await.map_err(from_postgres)
}

/// Checks whether [`migrate`] would succeed, without changing anything. Returns whether there is nothing to do.
pub(super) async fn check(client: &Client, migrations: &[&str]) -> Result<bool, JournalError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let found = read_version(client).await?;
    if found > known {
        return Err(JournalError::NewerVersion { found, known });
    }
    if found > 0 {
        return Ok(found == known);
    }
    let sql = "SELECT to_regnamespace('sayso') IS NOT NULL
               OR has_database_privilege(current_database(), 'CREATE')";
    let can_create: bool = client.query_one(sql, &[]).await.map_err(from_postgres)?.get(0);
    if can_create {
        return Ok(false);
    }
    let failure = DatabaseFailure::new("the user may not create the tables in this database");
    Err(JournalError::Io(failure.into()))
}

/// Returns the version of the tables, or 0 if there are none.
async fn read_version(client: &Client) -> Result<i64, JournalError> {
    let exists = client
        .query_one("SELECT to_regclass('sayso.schema_version') IS NOT NULL", &[])
        .await
        .map_err(from_postgres)?;
    if !exists.get::<_, bool>(0) {
        return Ok(0);
    }
    let row = client
        .query_one("SELECT coalesce(max(version), 0) FROM sayso.schema_version", &[])
        .await
        .map_err(from_postgres)?;
    Ok(row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_expressions_are_expanded() {
        let expanded = expand_keys("a (shard, (KEY(id))) PRIMARY KEY (x)");
        assert_eq!(
            expanded,
            "a (shard, (CASE WHEN octet_length(id) <= 200 THEN id ELSE sha256(id) END)) PRIMARY KEY (x)"
        );
    }
}
