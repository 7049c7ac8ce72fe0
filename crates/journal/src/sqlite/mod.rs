//! The journal in one SQLite file, with its write-ahead log beside it.
//!
//! - `open`: making the file, locking it, settings that are read back, what is checked at the start.
//! - `schema`: the tables and their versions.
//! - `wal`: whether the write-ahead log lost anything that was acknowledged.
//! - `rows` and `sum`: rows as they are stored, each guarded by a sum.
//! - `write`: one batch, one transaction, one synchronisation.
//! - `tail`: the newest events, whose two indices are written by the thousand.
//! - `read`, `trim`: the rest of the trait.
//! - `fault`: SQLite's errors in our words.

mod fault;
mod open;
mod read;
mod rows;
mod schema;
mod sum;
mod tail;
mod trim;
mod wal;
mod write;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use seal::UnixMillis;

use crate::stored::{Alive, Remembered, StoredDecision, StoredEvent, StoredSession};
use crate::{Entry, Error, Journal, Position, Retention, Trimmed};
use tail::Tail;

/// A journal in an SQLite file. The file is locked as long as the value lives; dropping it closes the file.
///
/// Opening takes time proportional to what is alive and to the decisions kept, not to the events. It refuses a file that is
/// damaged, newer, of something else, read-only or open elsewhere, and then leaves it as it was.
///
/// ```
/// use journal::{Entry, Journal, Settings, Sqlite};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("journal.db");
///
/// let mut journal = Sqlite::open(&path, &Settings::default())?;
/// journal.commit(&[Entry::SubscriptionOpened { id: "sub", principal: "anna", record: b"{}" }])?;
/// drop(journal);
///
/// let mut again = Sqlite::open(&path, &Settings::default())?;
/// assert_eq!(again.restore()?.subscriptions[0].principal, "anna");
/// # Ok::<(), journal::Error>(())
/// ```
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    last: Position,
    floor: Position,
    tail: Tail,
    /// Numbers of open sessions that were looked up.
    numbers: HashMap<String, i64>,
}

/// How the file is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How large the file may get; a batch that needs more ends in [`Error::Full`]. `None`: as large as the disk.
    pub most_bytes: Option<u64>,
}

impl Sqlite {
    /// Opens the file, or makes it (readable for its owner only) if there is none.
    pub fn open(path: impl AsRef<Path>, settings: &Settings) -> Result<Self, Error> {
        open::open(path.as_ref(), settings)
    }

    /// What SQLite says of the settings that durability, locking and space stand on, by name.
    pub fn settings(&self) -> Result<Vec<(&'static str, String)>, Error> {
        open::settings(&self.connection)
    }

    /// Reads everything and checks it: the file's structure, its indices and the sum of every event. This takes its time;
    /// what opening checks, and what reading checks by the way, is enough to go on.
    pub fn check(&mut self) -> Result<(), Error> {
        open::examine(&self.connection, "PRAGMA integrity_check(1)")?;
        self.restore()?;
        let mut after = Position::START;
        loop {
            let some = self.events(after, 1000)?;
            let Some(last) = some.last() else { return Ok(()) };
            after = last.position;
        }
    }
}

impl Journal for Sqlite {
    fn commit(&mut self, batch: &[Entry<'_>]) -> Result<(), Error> {
        if batch.is_empty() { Ok(()) } else { self.write(batch) }
    }

    fn restore(&mut self) -> Result<Alive, Error> {
        self.alive()
    }

    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.read_events(after, limit)
    }

    fn events_of(&mut self, session: &str, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.read_events_of(session, after, limit)
    }

    fn position_of(&mut self, event_id: &str) -> Result<Option<Position>, Error> {
        self.tail.find(&self.connection, event_id)
    }

    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, Error> {
        let known = rows::Session::named(&self.connection, id)?;
        Ok(known.map(|known| StoredSession { opened: known.of, ended: known.ended.is_some() }))
    }

    fn idempotent(&mut self, principal: &str, key: &str) -> Result<Option<Remembered>, Error> {
        rows::key(&self.connection, principal, key)
    }

    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, Error> {
        self.read_decision(token)
    }

    fn trim(&mut self, keep: &Retention, now: UnixMillis) -> Result<Trimmed, Error> {
        self.forget(keep, now)
    }

    fn size(&mut self) -> Result<u64, Error> {
        let file = fs::metadata(&self.path).map_err(fault::system)?.len();
        let log = fs::metadata(open::beside(&self.path, "-wal")).map_or(0, |log| log.len());
        Ok(file + log)
    }
}

/// A position as SQLite's number. Beyond what it can hold nothing is stored, so the greatest will do.
fn number(position: Position) -> i64 {
    i64::try_from(position.get()).unwrap_or(i64::MAX)
}

/// SQLite's number as a position. A negative one was never written.
fn position(number: i64) -> Position {
    Position::new(u64::try_from(number).unwrap_or(0))
}
