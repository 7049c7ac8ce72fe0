//! The journal in a Postgres database, in which every shard has one owner at a time.
//!
//! - `settings`: the address of the database and the time limits.
//! - `database`: connections, and the thread that drives them.
//! - `durability`: refuses a server whose settings could lose acknowledged entries.
//! - `schema`: the tables and their versions.
//! - `lease`: the ownership of a shard.
//! - `cluster`: the table of nodes and shards, and one node's membership.
//! - `shared_text`: small texts that all nodes of a cluster share, such as the tokens.
//! - `live_index`: the live rows that the owner knows, so that a commit needs no reads.
//! - `plan`: checks the preconditions of a batch and combines its entries into one change per row.
//! - `write`: writes a batch in one statement, and resolves lost acknowledgements.
//! - `read`: reads the live state, events and decisions.
//! - `trim`: deletes old data.
//! - `error_mapping`: maps errors of the database to journal errors.

mod cluster;
mod database;
mod durability;
mod error_mapping;
mod lease;
mod live_index;
mod plan;
mod read;
mod schema;
mod settings;
mod shared_text;
mod trim;
mod write;

use std::collections::HashMap;
use std::time::Duration;

use seal::UnixMillis;
use tokio_postgres::Statement;

use crate::stored::{LiveState, StoredDecision, StoredEvent, StoredResponse, StoredSession};
use crate::{Journal, JournalEntry, JournalError, Position, Retention, TrimReport};
pub use cluster::{ClusterEvent, ClusterMember, ClusterNode, ClusterTable};
pub use database::PostgresDatabase;
use database::{Session, timed_out, wait};
use error_mapping::{from_postgres, is_rolled_back};
pub use lease::{LeaseSettings, ShardLease, ShardOwner};
use live_index::LiveIndex;
pub use settings::{PostgresSettings, PostgresTimeouts};
pub use shared_text::{SharedText, SharedTexts};
use write::BatchStatement;

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
    /// `None` if the connection is broken.
    session: Option<OpenSession>,
    index: LiveIndex,
    lease: ShardLease,
}

/// A connection with its prepared statements.
struct OpenSession {
    session: Session,
    /// Prepared statements, keyed by `BatchStatement::parts`.
    statements: HashMap<u16, Statement>,
}

impl PostgresJournal {
    /// Acquires the shard, and creates it if it does not exist.
    pub fn open(
        database: &PostgresDatabase,
        shard: i32,
        owner: &ShardOwner,
        settings: &LeaseSettings,
    ) -> Result<Self, JournalError> {
        let (lease, session) = ShardLease::acquire_with_session(database, shard, owner, settings)?;
        let session = Some(OpenSession { session, statements: HashMap::new() });
        let mut journal = Self { session, index: LiveIndex::default(), lease };
        journal.read_live_state()?;
        Ok(journal)
    }

    /// Opens the journal of a shard that a cluster node has acquired.
    pub fn open_acquired(lease: ShardLease) -> Result<Self, JournalError> {
        let mut journal = Self { session: None, index: LiveIndex::default(), lease };
        journal.open_session()?;
        journal.read_live_state()?;
        Ok(journal)
    }

    /// Returns the ownership of the shard.
    pub fn lease(&self) -> &ShardLease {
        &self.lease
    }

    /// Returns the connection, and opens a new one if it is broken.
    fn ensure_session(&mut self) -> Result<&mut OpenSession, JournalError> {
        if self.lease.is_lost() {
            return Err(self.lease.mark_lost());
        }
        if self.session.as_ref().is_none_or(|open| open.session.client.is_closed()) {
            let commit_number = self.open_session()?;
            if commit_number != self.index.counters.commit_number {
                // The batch or trim whose outcome was unknown turned out to be stored.
                self.read_live_state()?;
            }
        }
        self.session.as_mut().ok_or_else(timed_out)
    }

    /// Opens a connection, confirms the ownership, and returns the number of the last commit.
    fn open_session(&mut self) -> Result<i64, JournalError> {
        self.session = None;
        let session = self.lease.database().connect()?;
        let commit_number = self.lease.confirm(&session)?;
        self.session = Some(OpenSession { session, statements: HashMap::new() });
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
            let open = self.ensure_session()?;
            let Some(result) = wait(query(&open.session), limit) else {
                self.session = None;
                return Err(timed_out());
            };
            let Err(error) = result else { return result.map_err(from_postgres) };
            // The connection may be inside a failed transaction.
            self.session = None;
            if is_rolled_back(&error) || is_repeated {
                return Err(from_postgres(error));
            }
            is_repeated = true;
        }
    }
}

impl OpenSession {
    fn prepare_batch(
        &mut self,
        statement: &BatchStatement<'_>,
        limit: Duration,
    ) -> Result<Statement, JournalError> {
        if let Some(prepared) = self.statements.get(&statement.parts) {
            return Ok(prepared.clone());
        }
        if write::is_statement_cache_full(self.statements.len()) {
            self.statements.clear();
        }
        let sql = statement.sql();
        let prepare = async { self.session.client.prepare(&sql).await };
        let prepared = wait(prepare, limit).ok_or_else(timed_out)?.map_err(from_postgres)?;
        self.statements.insert(statement.parts, prepared.clone());
        Ok(prepared)
    }
}

impl std::fmt::Debug for OpenSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSession").field("statements", &self.statements.len()).finish_non_exhaustive()
    }
}

impl Drop for PostgresJournal {
    fn drop(&mut self) {
        self.session = None;
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
        self.ensure_session()?;
        Ok(u64::try_from(self.index.counters.stored_bytes).unwrap_or(0))
    }
}
