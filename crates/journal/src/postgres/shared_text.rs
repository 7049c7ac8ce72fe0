//! Small texts that all nodes of a cluster share: the tokens and the signing key.

use tokio_postgres::Client;

use super::database::{PostgresDatabase, Session, timed_out, wait};
use super::error_mapping::{DatabaseFailure, from_postgres};
use crate::JournalError;

/// A text with its version, which counts its changes.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedText {
    /// The text. It may be secret.
    pub content: String,
    /// Counts the changes, from 1.
    pub version: i64,
}

impl std::fmt::Debug for SharedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedText").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The shared texts of a database, on a connection of its own.
#[derive(Debug)]
pub struct SharedTexts {
    database: PostgresDatabase,
    session: Option<Session>,
}

impl SharedTexts {
    /// Creates the access to the texts. The first call connects.
    pub fn new(database: &PostgresDatabase) -> Self {
        Self { database: database.clone(), session: None }
    }

    /// Returns the text with this name, if its version is not `known_version`.
    pub fn read(
        &mut self,
        name: &str,
        known_version: Option<i64>,
    ) -> Result<Option<SharedText>, JournalError> {
        let sql = "SELECT content, version FROM sayso.shared_text
                   WHERE name = $1 AND version IS DISTINCT FROM $2";
        let row = self.run(async |client| client.query_opt(sql, &[&name, &known_version]).await)?;
        row.map(|row| {
            let content = String::from_utf8(row.get(0)).map_err(|error| JournalError::Io(error.into()))?;
            Ok(SharedText { content, version: row.get(1) })
        })
        .transpose()
    }

    /// Stores the text, if its version is still `expected_version`, where `None` means that it must not exist. Returns whether
    /// it was stored.
    pub fn replace(
        &mut self,
        name: &str,
        content: &str,
        expected_version: Option<i64>,
    ) -> Result<bool, JournalError> {
        let content = content.as_bytes();
        let rows = self.run(async |client| {
            if let Some(version) = &expected_version {
                let sql = "UPDATE sayso.shared_text SET content = $2, version = version + 1
                           WHERE name = $1 AND version = $3";
                client.execute(sql, &[&name, &content, version]).await
            } else {
                let sql = "INSERT INTO sayso.shared_text (name, content, version) VALUES ($1, $2, 1)
                           ON CONFLICT DO NOTHING";
                client.execute(sql, &[&name, &content]).await
            }
        })?;
        if self.session.as_ref().is_some_and(Session::take_warning) {
            let failure = DatabaseFailure::new("the standby did not confirm the change");
            return Err(JournalError::Io(failure.into()));
        }
        Ok(rows > 0)
    }

    fn run<T>(
        &mut self,
        query: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, JournalError> {
        let session = match self.session.take() {
            Some(session) if !session.client.is_closed() => session,
            _ => self.database.connect()?,
        };
        session.take_warning();
        let result = wait(query(&session.client), self.database.answer_timeout());
        let value = result.ok_or_else(timed_out)?.map_err(from_postgres)?;
        self.session = Some(session);
        Ok(value)
    }
}
