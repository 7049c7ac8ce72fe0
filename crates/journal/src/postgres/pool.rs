//! The connections that the journals of a database share.
//!
//! A journal borrows a connection for one call, so a few connections serve many shards. Waiting journals get one in the
//! order in which they asked.
//!
//! Connections belong to a generation. A new generation begins when a connection reaches another server than before, such
//! as a promoted standby; connections of earlier generations are closed. A journal confirms its ownership before it uses a
//! generation for the first time, so it never reads from one server what it has written to another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Statement;

use super::database::{PostgresDatabase, Session, timed_out, wait};
use super::error_mapping::{DatabaseFailure, from_postgres};
use super::write::{BatchStatement, is_statement_cache_full};
use crate::JournalError;

/// The shared connections of a database.
pub(super) struct ConnectionPool {
    permits: Arc<Semaphore>,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<PooledConnection>,
    generation: u64,
    /// The server of the current generation.
    server: String,
}

/// A connection with its prepared statements.
struct PooledConnection {
    session: Session,
    /// Prepared statements, keyed by `BatchStatement::parts`.
    statements: HashMap<u16, Statement>,
    generation: u64,
}

/// A connection that only its holder uses. Dropping it closes it, because it may still be running a statement.
pub(super) struct BorrowedConnection {
    /// `None` after it was returned.
    connection: Option<PooledConnection>,
    database: PostgresDatabase,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPool {
    /// Creates a pool without connections. They are opened when they are needed.
    pub(super) fn new(max_connections: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(max_connections.max(1))), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Option<PooledConnection> {
        let mut state = self.lock();
        while let Some(connection) = state.idle.pop() {
            if state.is_usable(&connection) {
                return Some(connection);
            }
        }
        None
    }

    /// Adds a new connection to its generation, which is a new one if it reached another server.
    fn admit(&self, session: Session) -> PooledConnection {
        let mut state = self.lock();
        if state.server != session.server {
            state.server.clone_from(&session.server);
            state.generation += 1;
            state.idle.clear();
        }
        PooledConnection { session, statements: HashMap::new(), generation: state.generation }
    }
}

impl PoolState {
    fn is_usable(&self, connection: &PooledConnection) -> bool {
        connection.generation == self.generation && !connection.session.client.is_closed()
    }
}

impl PostgresDatabase {
    /// Borrows a connection. Waits until one is free if the maximum is in use, for at most the time of a statement.
    pub(super) fn borrow(&self) -> Result<BorrowedConnection, JournalError> {
        let permit = wait(self.pool().permits.clone().acquire_owned(), self.answer_timeout());
        let Some(Ok(permit)) = permit else { return Err(all_in_use()) };
        let connection = match self.pool().take_idle() {
            Some(connection) => connection,
            None => self.pool().admit(self.connect()?),
        };
        Ok(BorrowedConnection { connection: Some(connection), database: self.clone(), _permit: permit })
    }
}

impl BorrowedConnection {
    /// Returns the generation of the connection.
    pub(super) fn generation(&self) -> u64 {
        self.connection.as_ref().map_or(0, |connection| connection.generation)
    }

    /// Returns the connection. It is there until [`put_back`](Self::put_back).
    pub(super) fn session(&self) -> Result<&Session, JournalError> {
        self.connection.as_ref().map(|connection| &connection.session).ok_or_else(timed_out)
    }

    /// Returns the connection to the pool. Only for a connection that runs no statement and is in no transaction.
    pub(super) fn put_back(mut self) {
        let Some(connection) = self.connection.take() else { return };
        let mut state = self.database.pool().lock();
        if state.is_usable(&connection) {
            state.idle.push(connection);
        }
    }

    /// Prepares the statement that writes a batch, unless this connection has prepared it before.
    pub(super) fn prepare_batch(
        &mut self,
        statement: &BatchStatement<'_>,
        limit: Duration,
    ) -> Result<Statement, JournalError> {
        let connection = self.connection.as_mut().ok_or_else(timed_out)?;
        if let Some(prepared) = connection.statements.get(&statement.parts) {
            return Ok(prepared.clone());
        }
        if is_statement_cache_full(connection.statements.len()) {
            connection.statements.clear();
        }
        let sql = statement.sql();
        let prepare = async { connection.session.client.prepare(&sql).await };
        let prepared = wait(prepare, limit).ok_or_else(timed_out)?.map_err(from_postgres)?;
        connection.statements.insert(statement.parts, prepared.clone());
        Ok(prepared)
    }
}

impl Drop for BorrowedConnection {
    fn drop(&mut self) {
        if self.connection.is_some() {
            // What broke this connection has probably broken the idle ones, too.
            self.database.pool().lock().idle.clear();
        }
    }
}

impl std::fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        f.debug_struct("ConnectionPool")
            .field("idle", &state.idle.len())
            .field("generation", &state.generation)
            .finish_non_exhaustive()
    }
}

fn all_in_use() -> JournalError {
    let text = "all connections to the database are in use; journal_connections sets their number";
    JournalError::Io(DatabaseFailure::new(text).into())
}
