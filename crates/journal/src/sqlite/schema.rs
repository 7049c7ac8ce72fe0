//! The tables and their migrations.

use rusqlite::{Connection, TransactionBehavior};

use super::error_mapping::from_sqlite;
use crate::{DamageLocation, JournalError};

/// "sayj", which identifies a journal among SQLite files.
pub(super) const APPLICATION_ID: i64 = 0x7361_796a;

/// The migrations, one per version. The first one creates version 1. A released migration is never changed.
pub(super) const MIGRATIONS: &[&str] = &[VERSION_1, VERSION_2];

/// `sum` is the row's checksum; see `row_checksum.rs`. `event_ids` and `session_events` lag behind `events`; see
/// `index_buffer.rs`. The column `attempts.subscription` holds the name of a principal, and `marks` holds
/// `trimmed_up_to` under the name `floor`; the names cannot change because this version is released.
const VERSION_1: &str = "
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    principal TEXT NOT NULL,
    lease INTEGER NOT NULL,
    record BLOB NOT NULL,
    ended INTEGER,
    oldest INTEGER,
    sum INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_open ON sessions (number) WHERE ended IS NULL;
CREATE INDEX sessions_ended ON sessions (oldest) WHERE ended IS NOT NULL;
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    at INTEGER NOT NULL,
    critical INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE event_ids (id TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE session_events (
    session INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE questions (
    number INTEGER PRIMARY KEY,
    token TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions (number),
    deadline INTEGER NOT NULL,
    record BLOB NOT NULL,
    decision TEXT,
    decided_by TEXT,
    receipt BLOB,
    decided INTEGER,
    call BLOB,
    spent INTEGER,
    sum INTEGER NOT NULL
) STRICT;
CREATE INDEX questions_of ON questions (session);
CREATE INDEX questions_open ON questions (token) WHERE decided IS NULL;
CREATE INDEX questions_decided ON questions (decided) WHERE decided IS NOT NULL;
CREATE TABLE subscriptions (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    record BLOB NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
CREATE TABLE cursors (
    subscription TEXT PRIMARY KEY REFERENCES subscriptions (id),
    position INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE keys (
    number INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    request BLOB NOT NULL,
    response BLOB NOT NULL,
    at INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    UNIQUE (principal, key)
) STRICT;
CREATE INDEX keys_at ON keys (at);
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    subscription TEXT NOT NULL,
    what BLOB NOT NULL
) STRICT;
CREATE INDEX attempts_at ON attempts (at);
";

/// The manifests that agents publish.
const VERSION_2: &str = "
CREATE TABLE manifests (agent TEXT PRIMARY KEY, record BLOB NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// Migrates the file to the newest version, in one transaction. Refuses a newer version.
pub(super) fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), JournalError> {
    let found = read_version(connection)?;
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(JournalError::NewerVersion { found, known });
    }
    let completed = usize::try_from(found).map_err(|_| JournalError::corrupt(DamageLocation::Schema))?;
    if found == known {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(from_sqlite)?;
    for migration in migrations.iter().skip(completed) {
        transaction.execute_batch(migration).map_err(from_sqlite)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(from_sqlite)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(from_sqlite)?;
    transaction.commit().map_err(from_sqlite)
}

/// Checks that the tables match the schema. SQLite would still open a table whose `UNIQUE` constraint was lost to a
/// flipped bit.
pub(super) fn check(connection: &Connection) -> Result<(), JournalError> {
    let mut expected = Connection::open_in_memory().map_err(from_sqlite)?;
    migrate(&mut expected, MIGRATIONS)?;
    if read_schema(connection)? == read_schema(&expected)? {
        Ok(())
    } else {
        Err(JournalError::corrupt(DamageLocation::Schema))
    }
}

pub(super) fn read_version(connection: &Connection) -> Result<i64, JournalError> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(from_sqlite)
}

fn read_schema(connection: &Connection) -> Result<Vec<(String, String, Option<String>)>, JournalError> {
    let mut statement = connection
        .prepare("SELECT name, tbl_name, sql FROM sqlite_schema ORDER BY name")
        .map_err(from_sqlite)?;
    let rows =
        statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).map_err(from_sqlite)?;
    rows.collect::<Result<_, _>>().map_err(from_sqlite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_names(connection: &Connection) -> Vec<String> {
        read_schema(connection).unwrap().into_iter().map(|(name, ..)| name).collect()
    }

    #[test]
    fn missing_migrations_run_in_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &["CREATE TABLE a (x)"]).unwrap();
        connection.execute("INSERT INTO a VALUES (7)", ()).unwrap();
        let migrations = ["CREATE TABLE a (x)", "CREATE TABLE b (y)", "INSERT INTO b SELECT x + 1 FROM a"];
        migrate(&mut connection, &migrations).unwrap();
        let value: i64 = connection.query_row("SELECT y FROM b", (), |row| row.get(0)).unwrap();
        assert_eq!((value, read_version(&connection).unwrap()), (8, 3));
        migrate(&mut connection, &migrations).unwrap();
    }

    #[test]
    fn a_failed_migration_keeps_the_old_version() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &["CREATE TABLE a (x)"]).unwrap();
        migrate(&mut connection, &["CREATE TABLE a (x)", "CREATE TABLE b (y)", "nonsense"]).unwrap_err();
        assert_eq!((read_names(&connection), read_version(&connection).unwrap()), (vec!["a".to_owned()], 1));
    }

    #[test]
    fn a_newer_version_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 9).unwrap();
        let result = migrate(&mut connection, MIGRATIONS);
        assert!(matches!(result, Err(JournalError::NewerVersion { found: 9, known: 2 })), "{result:?}");
    }
}
