//! Maps SQLite and I/O errors to journal errors.

use std::io;

use rusqlite::ErrorCode;

use crate::{DamageLocation, JournalError};

/// `SQLITE_IOERR_SHORT_READ` and `SQLITE_IOERR_CORRUPTFS`: the file is too short, or the file system reports damage.
const CORRUPTION_IO_CODES: [i32; 2] = [522, 8458];

pub(super) fn from_sqlite(error: rusqlite::Error) -> JournalError {
    use rusqlite::Error as Sql;
    match &error {
        Sql::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => JournalError::Full,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => JournalError::ReadOnly,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => JournalError::Busy,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => {
                JournalError::Corrupt(DamageLocation::File, Some(error.into()))
            }
            _ if CORRUPTION_IO_CODES.contains(&failure.extended_code) => {
                JournalError::Corrupt(DamageLocation::File, Some(error.into()))
            }
            _ => JournalError::Io(error.into()),
        },
        Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::InvalidColumnType(..)
        | Sql::Utf8Error(..) => JournalError::Corrupt(DamageLocation::File, Some(error.into())),
        _ => JournalError::Io(error.into()),
    }
}

pub(super) fn from_io(error: io::Error) -> JournalError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => JournalError::Full,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => JournalError::ReadOnly,
        _ => JournalError::Io(error.into()),
    }
}
