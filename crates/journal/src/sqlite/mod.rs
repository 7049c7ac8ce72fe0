//! The journal in one SQLite file with its write-ahead log.
//!
//! - `open`: creates, locks, configures and checks the file.
//! - `schema`: the tables and their versions.
//! - `wal`: detects acknowledged batches that the write-ahead log lost.
//! - `high_water_mark`: a file that records how much was written, to detect any other loss.
//! - `checkpoints`: keeps the main file unchanged while it is copied.
//! - `rows` and `row_checksum`: stored rows, each with a checksum.
//! - `write`: writes a batch in one transaction with one fsync.
//! - `index_buffer`: the newest events, which are indexed about a thousand at a time.
//! - `read`: reads the live state, events and decisions.
//! - `export`: reads whole tables, to copy them into a database.
//! - `trim`: deletes old data and frees its space.
//! - `error_mapping`: maps SQLite's errors to journal errors.

mod checkpoints;
mod error_mapping;
#[cfg(feature = "postgres")]
pub(crate) mod export;
mod high_water_mark;
mod index_buffer;
mod open;
mod read;
mod row_checksum;
pub(crate) mod rows;
mod schema;
mod trim;
mod wal;
mod write;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use seal::UnixMillis;

use crate::stored::{LiveState, StoredDecision, StoredEvent, StoredResponse, StoredSession};
use crate::{Journal, JournalEntry, JournalError, Position, Retention, ShardRecord, TrimReport};
use checkpoints::Checkpoints;
use high_water_mark::{HighWaterMark, MarkFile};
use index_buffer::IndexBuffer;

/// A journal in an SQLite file. The file stays locked until the journal is dropped.
///
/// Opening takes time proportional to the stored sessions, questions and subscriptions, not to the events. A file that is
/// damaged, too new, not a journal, read-only or open elsewhere is refused and left unchanged. So is a file that has
/// lost acknowledged entries, unless [`SqliteSettings::accept_loss`] is set.
///
/// ```
/// use journal::{JournalEntry, Journal, SqliteSettings, SqliteJournal};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("journal.db");
///
/// let mut journal = SqliteJournal::open(&path, &SqliteSettings::default())?;
/// journal.commit(&[JournalEntry::SubscriptionOpened { id: "sub", principal: "anna", record: b"{}" }])?;
/// drop(journal);
///
/// let mut reopened = SqliteJournal::open(&path, &SqliteSettings::default())?;
/// assert_eq!(reopened.restore()?.subscriptions[0].principal, "anna");
/// # Ok::<(), journal::JournalError>(())
/// ```
#[derive(Debug)]
pub struct SqliteJournal {
    connection: Connection,
    path: PathBuf,
    /// How much is written. Contains the last position.
    high_water_mark: HighWaterMark,
    mark_file: MarkFile,
    checkpoints: Checkpoints,
    trimmed_up_to: Position,
    index_buffer: IndexBuffer,
    /// Cached numbers of open sessions.
    session_numbers: HashMap<String, i64>,
}

/// Settings of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqliteSettings {
    /// Maximum size of the file, in bytes. A batch that would exceed it fails with [`JournalError::Full`]. `None`
    /// means no limit.
    pub max_bytes: Option<u64>,
    /// Whether to open a journal that has lost acknowledged entries, which is otherwise refused with
    /// [`JournalError::EntriesLost`]. [`LiveState::must_void_consents`] is then set, unless the
    /// entire journal is missing.
    pub accept_loss: bool,
    /// The shard that the journal must belong to, and that a new one is created for. `None` accepts any shard, and creates
    /// the journal of a hub with one shard.
    pub shard: Option<ShardRecord>,
}

impl SqliteJournal {
    /// Opens the file. Creates it, readable by its owner only, if it does not exist.
    pub fn open(path: impl AsRef<Path>, settings: &SqliteSettings) -> Result<Self, JournalError> {
        open::open(path.as_ref(), settings)
    }

    /// Returns the SQLite settings that durability, locking and space depend on, as SQLite reports them.
    pub fn effective_settings(&self) -> Result<Vec<(&'static str, String)>, JournalError> {
        open::read_settings(&self.connection)
    }

    /// Returns which shard the journal belongs to.
    pub fn shard(&self) -> Result<ShardRecord, JournalError> {
        open::read_shard(&self.connection)
    }

    /// Whether nothing was ever written to the journal.
    pub fn is_unused(&self) -> bool {
        self.high_water_mark == HighWaterMark::START
    }

    /// Records that the journal of a single shard is from now on shard 0 of several. Other changes are refused.
    pub fn make_first_of(&mut self, count: u16) -> Result<(), JournalError> {
        let found = self.shard()?;
        let expected = ShardRecord::default();
        if !found.is_same_shard(expected) {
            return Err(JournalError::WrongShard { found, expected });
        }
        let transaction = self.connection.transaction().map_err(error_mapping::from_sqlite)?;
        open::write_shard(&transaction, ShardRecord { index: 0, count, was_single: true })?;
        transaction.commit().map_err(error_mapping::from_sqlite)
    }

    /// Reads and checks everything: the file's structure, its indices and the checksum of every row. This is slow.
    /// For normal operation, the checks during opening and reading are enough.
    pub fn check_integrity(&mut self) -> Result<(), JournalError> {
        open::run_check(&self.connection, "PRAGMA integrity_check(1)")?;
        self.restore()?;
        rows::check_ledger(&self.connection)?;
        let mut after = Position::START;
        loop {
            let events = self.events(after, 1000)?;
            let Some(last) = events.last() else { return Ok(()) };
            after = last.position;
        }
    }
}

impl Journal for SqliteJournal {
    fn commit(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError> {
        if batch.is_empty() { Ok(()) } else { self.write_batch(batch) }
    }

    fn restore(&mut self) -> Result<LiveState, JournalError> {
        self.read_live_state()
    }

    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, JournalError> {
        self.read_events(after, limit)
    }

    fn session_events(
        &mut self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.read_session_events(session, after, limit)
    }

    fn event_position(&mut self, event_id: &str) -> Result<Option<Position>, JournalError> {
        self.index_buffer.find(&self.connection, event_id)
    }

    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, JournalError> {
        let row = rows::SessionRow::find_by_id(&self.connection, id)?;
        Ok(row.map(|row| StoredSession { session: row.session, is_ended: row.ended_at.is_some() }))
    }

    fn stored_response(
        &mut self,
        principal: &str,
        key: &str,
    ) -> Result<Option<StoredResponse>, JournalError> {
        rows::find_response(&self.connection, principal, key)
    }

    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, JournalError> {
        self.read_decision(token)
    }

    fn trim(&mut self, retention: &Retention, now: UnixMillis) -> Result<TrimReport, JournalError> {
        self.trim_step(retention, now)
    }

    fn pause_checkpoints(&mut self) -> Result<(), JournalError> {
        checkpoints::pause(self)
    }

    fn resume_checkpoints(&mut self) -> Result<(), JournalError> {
        checkpoints::resume(self)
    }

    fn size_bytes(&mut self) -> Result<u64, JournalError> {
        let file = fs::metadata(&self.path).map_err(error_mapping::from_io)?.len();
        let wal = fs::metadata(open::sibling_path(&self.path, "-wal")).map_or(0, |metadata| metadata.len());
        Ok(file + wal)
    }
}

/// Converts a position to SQLite's integer. Positions above `i64::MAX` are never stored, so they map to the maximum.
fn position_to_sql(position: Position) -> i64 {
    i64::try_from(position.get()).unwrap_or(i64::MAX)
}

/// Converts SQLite's integer to a position. Negative numbers are never stored, so they map to 0.
fn position_from_sql(number: i64) -> Position {
    Position::new(u64::try_from(number).unwrap_or(0))
}
