//! SQLite's errors in our words.

use std::io;

use rusqlite::ErrorCode;

use crate::{Error, Place};

/// `SQLITE_IOERR_SHORT_READ` and `SQLITE_IOERR_CORRUPTFS`: the file ends too early, or the file system says that it is damaged.
const DAMAGED_BELOW: [i32; 2] = [522, 8458];

pub(super) fn fault(error: rusqlite::Error) -> Error {
    use rusqlite::Error as Sql;
    match &error {
        Sql::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => Error::Full,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Error::ReadOnly,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Busy,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => {
                Error::Corrupt(Place::File, Some(error.into()))
            }
            _ if DAMAGED_BELOW.contains(&failure.extended_code) => {
                Error::Corrupt(Place::File, Some(error.into()))
            }
            _ => Error::Io(error.into()),
        },
        Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::InvalidColumnType(..)
        | Sql::Utf8Error(..) => Error::Corrupt(Place::File, Some(error.into())),
        _ => Error::Io(error.into()),
    }
}

pub(super) fn system(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Error::ReadOnly,
        _ => Error::Io(error.into()),
    }
}
