//! Maps errors of the database to journal errors.

use std::fmt;

use tokio_postgres::error::{Severity, SqlState};

use crate::{DamageLocation, JournalError};

/// A failure of the database, in one line. Neither Postgres nor this function puts a password into it.
#[derive(Debug)]
pub(super) struct DatabaseFailure(String);

impl DatabaseFailure {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for DatabaseFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DatabaseFailure {}

/// Maps an error to what the caller can do about it.
#[expect(clippy::needless_pass_by_value, reason = "used as `map_err(from_postgres)`")]
pub(super) fn from_postgres(error: tokio_postgres::Error) -> JournalError {
    let failure = describe(&error);
    let Some(code) = error.code() else { return JournalError::Io(failure.into()) };
    match *code {
        SqlState::DISK_FULL => JournalError::Full,
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => {
            JournalError::Io(DatabaseFailure(format!("the database refuses to write: {failure}")).into())
        }
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => {
            JournalError::Corrupt(DamageLocation::File, Some(failure.into()))
        }
        _ => JournalError::Io(failure.into()),
    }
}

/// Describes an error in one line, with its cause. `tokio_postgres::Error` alone says only "db error".
pub(super) fn describe(error: &tokio_postgres::Error) -> DatabaseFailure {
    if let Some(error) = error.as_db_error() {
        let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return DatabaseFailure(format!("{}{detail}, SQLSTATE {}", error.message(), error.code().code()));
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    DatabaseFailure(text)
}

/// Returns whether the statement certainly had no effect. After any other error, the server may have committed.
pub(super) fn is_rolled_back(error: &tokio_postgres::Error) -> bool {
    // FATAL and PANIC end the connection, even while a finished commit waits for a standby.
    error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Error))
}

pub(super) fn is_unique_violation(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}
