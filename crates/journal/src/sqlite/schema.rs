//! The tables, and how one version becomes the next.

use rusqlite::{Connection, TransactionBehavior};

use super::fault::fault;
use crate::{Error, Place};

/// "sayj": tells a journal from other SQLite files.
pub(super) const APPLICATION: i64 = 0x7361_796a;

/// One step a version: step 0 makes version 1 out of nothing. A step that was released is never changed; a new one is added.
pub(super) const STEPS: &[&str] = &[VERSION_1];

/// `sum` guards its row; see `sum.rs`. `event_ids` and `session_events` lag behind `events`; see `tail.rs`.
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

/// Brings the file to the newest version, all steps in one transaction; refuses a newer one.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), Error> {
    let found = version(connection)?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(Error::Newer { found, known });
    }
    let done = usize::try_from(found).map_err(|_| Error::damaged(Place::Schema))?;
    if found == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    for step in steps.iter().skip(done) {
        transaction.execute_batch(step).map_err(fault)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(fault)?;
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(fault)?;
    transaction.commit().map_err(fault)
}

/// Whether the tables are those that the steps make: a table that lost its `UNIQUE` to a flipped bit would still open.
pub(super) fn check(connection: &Connection) -> Result<(), Error> {
    let mut fresh = Connection::open_in_memory().map_err(fault)?;
    migrate(&mut fresh, STEPS)?;
    if describe(connection)? == describe(&fresh)? { Ok(()) } else { Err(Error::damaged(Place::Schema)) }
}

pub(super) fn version(connection: &Connection) -> Result<i64, Error> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(fault)
}

fn describe(connection: &Connection) -> Result<Vec<(String, String, Option<String>)>, Error> {
    let mut statement =
        connection.prepare("SELECT name, tbl_name, sql FROM sqlite_schema ORDER BY name").map_err(fault)?;
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).map_err(fault)?;
    rows.collect::<Result<_, _>>().map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(connection: &Connection) -> Vec<String> {
        describe(connection).unwrap().into_iter().map(|(name, ..)| name).collect()
    }

    #[test]
    fn steps_that_are_missing_are_made_in_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &["CREATE TABLE a (x)"]).unwrap();
        connection.execute("INSERT INTO a VALUES (7)", ()).unwrap();
        let steps = ["CREATE TABLE a (x)", "CREATE TABLE b (y)", "INSERT INTO b SELECT x + 1 FROM a"];
        migrate(&mut connection, &steps).unwrap();
        let value: i64 = connection.query_row("SELECT y FROM b", (), |row| row.get(0)).unwrap();
        assert_eq!((value, version(&connection).unwrap()), (8, 3));
        migrate(&mut connection, &steps).unwrap();
    }

    #[test]
    fn a_step_that_fails_leaves_the_old_version() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &["CREATE TABLE a (x)"]).unwrap();
        migrate(&mut connection, &["CREATE TABLE a (x)", "CREATE TABLE b (y)", "nonsense"]).unwrap_err();
        assert_eq!((names(&connection), version(&connection).unwrap()), (vec!["a".to_owned()], 1));
    }

    #[test]
    fn a_newer_version_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 9).unwrap();
        let refused = migrate(&mut connection, STEPS);
        assert!(matches!(refused, Err(Error::Newer { found: 9, known: 1 })), "{refused:?}");
    }
}
