//! The journal in a Postgres database, in which every shard has one owner at a time.
//!
//! - `settings`: the address of the database and the time limits.
//! - `database`: connections, and the thread that drives them.
//! - `pool`: the connections that the shards share.
//! - `durability`: refuses a server whose settings could lose acknowledged entries.
//! - `schema`: the tables and their versions.
//! - `shard_count`: the number of shards, which is fixed when a database is first used.
//! - `lease`: the ownership of a shard.
//! - `cluster`: the table of nodes and shards, and one node's membership.
//! - `shared_text`: small texts that all nodes of a cluster share, such as the tokens.
//! - `live_index`: the live rows that the owner knows, so that a commit needs no reads.
//! - `plan`: checks the preconditions of a batch and combines its entries into one change per row.
//! - `write`: writes a batch in one statement, and resolves lost acknowledgements.
//! - `read`: reads the live state, events and decisions.
//! - `trim`: deletes old data.
//! - `import`: copies the journals of a stopped hub from files.
//! - `error_mapping`: maps errors of the database to journal errors.

mod cluster;
mod database;
mod durability;
mod error_mapping;
mod import;
mod lease;
mod live_index;
mod plan;
mod pool;
mod read;
mod schema;
mod settings;
mod shard_count;
mod shared_text;
mod trim;
mod write;

use seal::UnixMillis;

use crate::stored::{LiveState, StoredDecision, StoredEvent, StoredResponse, StoredSession};
use crate::{Journal, JournalEntry, JournalError, Position, Retention, TrimReport};
pub use cluster::{ClusterEvent, ClusterMember, ClusterNode, ClusterTable};
pub use database::PostgresDatabase;
use database::{Session, timed_out, wait};
use error_mapping::{from_postgres, is_rolled_back};
pub use import::{ImportReport, ImportedText};
pub use lease::{LeaseSettings, ShardLease, ShardOwner};
use live_index::LiveIndex;
use pool::BorrowedConnection;
pub use settings::{PostgresSettings, PostgresTimeouts};
pub use shared_text::{SharedText, SharedTexts};

/// The journal of one shard in a Postgres database. It owns the shard until it is dropped.
///
/// A commit is one statement and one round trip. It locks the row of the shard and checks that this journal still owns
/// it; see [`JournalError::OwnershipLost`]. If the connection breaks during a commit, the journal connects again and
/// asks whether the batch is stored, for at most [`PostgresTimeouts::outcome`]; see [`JournalError::OutcomeUnknown`].
///
/// [`Retention::max_bytes`] and [`size_bytes`](Journal::size_bytes) count the stored ids, records and bodies, because the
/// tables of Postgres do not shrink when rows are deleted. Postgres does its own backups, so pausing checkpoints does
/// nothing.
///
/// ```no_run
/// use journal::{Journal, LeaseSettings, PostgresDatabase, PostgresJournal, PostgresSettings, ShardOwner};
///
/// let settings = PostgresSettings::parse("postgres://sayso@db.example.com/sayso")?;
/// let database = PostgresDatabase::open(settings)?;
/// let owner = ShardOwner { name: "hub-1".to_owned(), address: None };
/// let mut journal = PostgresJournal::open(&database, 0, &owner, &LeaseSettings::default())?;
/// let live_state = journal.restore()?;
/// # Ok::<(), journal::JournalError>(())
/// ```
#[derive(Debug)]
pub struct PostgresJournal {
    /// The generation of connections on which this journal last confirmed its ownership. `None` if it must do so before its
    /// next call does anything, because the outcome of a write is unknown.
    confirmed: Option<u64>,
    index: LiveIndex,
    lease: ShardLease,
}

impl PostgresJournal {
    /// Acquires the shard, and creates it if it does not exist.
    pub fn open(
        database: &PostgresDatabase,
        shard: i32,
        owner: &ShardOwner,
        settings: &LeaseSettings,
    ) -> Result<Self, JournalError> {
        Self::open_acquired(ShardLease::acquire(database, shard, owner, settings)?)
    }

    /// Acquires the shards from 0 up to `count`, all of them or none.
    pub fn open_all(
        database: &PostgresDatabase,
        count: u16,
        owner: &ShardOwner,
        settings: &LeaseSettings,
    ) -> Result<Vec<Self>, JournalError> {
        let shards: Vec<i32> = (0..i32::from(count)).collect();
        let leases = ShardLease::acquire_all(database, &shards, owner, settings)?;
        leases.into_iter().map(Self::open_acquired).collect()
    }

    /// Opens the journal of a shard that is already acquired, such as by a cluster node.
    pub fn open_acquired(lease: ShardLease) -> Result<Self, JournalError> {
        let mut journal = Self { confirmed: None, index: LiveIndex::default(), lease };
        let (connection, _) = journal.confirm()?;
        connection.put_back();
        journal.read_live_state()?;
        Ok(journal)
    }

    /// Returns the ownership of the shard.
    pub fn lease(&self) -> &ShardLease {
        &self.lease
    }

    /// Borrows a connection on which the ownership is confirmed.
    fn connection(&mut self) -> Result<BorrowedConnection, JournalError> {
        loop {
            if self.lease.is_lost() {
                return Err(self.lease.mark_lost());
            }
            let connection = self.lease.database().borrow()?;
            if self.confirmed == Some(connection.generation()) {
                return Ok(connection);
            }
            let commit_number = self.confirm_on(&connection)?;
            if commit_number == self.index.counters.commit_number {
                return Ok(connection);
            }
            // The batch or trim whose outcome was unknown turned out to be stored.
            connection.put_back();
            self.read_live_state()?;
        }
    }

    /// Borrows a connection, confirms the ownership, and returns the number of the last commit.
    fn confirm(&mut self) -> Result<(BorrowedConnection, i64), JournalError> {
        if self.lease.is_lost() {
            return Err(self.lease.mark_lost());
        }
        let connection = self.lease.database().borrow()?;
        let commit_number = self.confirm_on(&connection)?;
        Ok((connection, commit_number))
    }

    fn confirm_on(&mut self, connection: &BorrowedConnection) -> Result<i64, JournalError> {
        self.confirmed = None;
        let commit_number = self.lease.confirm(connection.session()?)?;
        self.confirmed = Some(connection.generation());
        Ok(commit_number)
    }

    /// Runs a query that changes nothing. Repeats it once if the connection breaks.
    fn read<T>(
        &mut self,
        query: &impl AsyncFn(&Session) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, JournalError> {
        let limit = self.lease.database().answer_timeout();
        let mut is_repeated = false;
        loop {
            let connection = self.connection()?;
            // After an error, the connection is closed, because it may be inside a failed transaction.
            match wait(query(connection.session()?), limit).ok_or_else(timed_out)? {
                Ok(value) => {
                    connection.put_back();
                    return Ok(value);
                }
                Err(error) if is_rolled_back(&error) || is_repeated => return Err(from_postgres(error)),
                Err(_) => is_repeated = true,
            }
        }
    }
}

impl Drop for PostgresJournal {
    fn drop(&mut self) {
        self.lease.release();
    }
}

impl Journal for PostgresJournal {
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
        self.find_event(event_id)
    }

    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, JournalError> {
        self.find_session(id)
    }

    fn stored_response(
        &mut self,
        principal: &str,
        key: &str,
    ) -> Result<Option<StoredResponse>, JournalError> {
        self.find_response(principal, key)
    }

    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, JournalError> {
        self.find_decision(token)
    }

    fn trim(&mut self, retention: &Retention, now: UnixMillis) -> Result<TrimReport, JournalError> {
        self.trim_step(retention, now)
    }

    fn pause_checkpoints(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    fn resume_checkpoints(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    fn size_bytes(&mut self) -> Result<u64, JournalError> {
        self.connection()?.put_back();
        Ok(u64::try_from(self.index.counters.stored_bytes).unwrap_or(0))
    }
}
