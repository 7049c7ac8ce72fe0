//! Opening, creating and checking the file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::checkpoints::{Checkpoints, WAL_AUTOCHECKPOINT_PAGES};
use super::error_mapping::{from_io, from_sqlite};
use super::high_water_mark::{HighWaterMark, MarkFile};
use super::index_buffer::IndexBuffer;
use super::{SqliteJournal, SqliteSettings, position_from_sql, rows, schema, wal};
use crate::{DamageLocation, JournalError, LossEvidence, Position, ShardRecord};

const PAGE_BYTES: u64 = 4096;

/// Maximum size of the WAL file after a checkpoint, in bytes.
const WAL_SIZE_LIMIT_BYTES: i64 = 16 << 20;

/// The tables that are checked completely when the file is opened. They hold consent and live state and are small. The
/// event log is large, so its rows are checked when they are read.
const TABLES_CHECKED_ON_OPEN: [&str; 6] =
    ["marks", "sessions", "questions", "subscriptions", "cursors", "manifests"];

pub(super) fn open(path: &Path, settings: &SqliteSettings) -> Result<SqliteJournal, JournalError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path, settings)?,
        Err(error) => return Err(from_io(error)),
        // This crate never leaves an empty file, and SQLite would treat one as a new database.
        Ok(metadata) if metadata.len() == 0 => return Err(JournalError::corrupt(DamageLocation::File)),
        Ok(_) => {}
    }
    let mut connection = connect(path)?;
    // The file must not change before it is known to be valid, but closing the connection would checkpoint the WAL into
    // the file.
    keep_wal_on_close(&connection, true)?;
    lock(&connection)?;
    wal::check(&sibling_path(path, "-wal"))?;
    check_application_id(&connection)?;
    configure(&connection, settings)?;
    schema::migrate(&mut connection, schema::MIGRATIONS)?;
    schema::check(&connection)?;
    check_shard(&connection, settings)?;
    for table in TABLES_CHECKED_ON_OPEN {
        run_check(&connection, &format!("PRAGMA integrity_check({table})"))?;
    }
    let trimmed_up_to = rows::read_mark(&connection, rows::TRIMMED_MARK)?;
    let newest = rows::max_position(&connection)?;
    let index_buffer = IndexBuffer::load(&connection)?;
    if rows::read_mark(&connection, rows::INDEXED_MARK)? > trimmed_up_to.max(newest) {
        return Err(JournalError::corrupt(DamageLocation::Event));
    }
    let (trimmed_up_to, last_position) =
        (position_from_sql(trimmed_up_to), position_from_sql(trimmed_up_to.max(newest)));
    let (high_water_mark, mark_file) = check_high_water_mark(&connection, path, last_position, settings)?;
    keep_wal_on_close(&connection, false)?;
    Ok(SqliteJournal {
        connection,
        path: path.to_owned(),
        high_water_mark,
        mark_file,
        checkpoints: Checkpoints::default(),
        trimmed_up_to,
        index_buffer,
        session_numbers: HashMap::new(),
    })
}

/// Returns which shard the journal belongs to. A journal without a record belongs to the only shard.
pub(super) fn read_shard(connection: &Connection) -> Result<ShardRecord, JournalError> {
    let Some(count) = rows::find_mark(connection, rows::SHARD_COUNT_MARK)? else {
        return Ok(ShardRecord::default());
    };
    let corrupt = |_| JournalError::corrupt(DamageLocation::BookkeepingValue);
    Ok(ShardRecord {
        index: u16::try_from(rows::read_mark(connection, rows::SHARD_MARK)?).map_err(corrupt)?,
        count: u16::try_from(count).map_err(corrupt)?,
        was_single: rows::read_mark(connection, rows::WAS_SINGLE_MARK)? != 0,
    })
}

pub(super) fn write_shard(connection: &Connection, shard: ShardRecord) -> Result<(), JournalError> {
    rows::set_mark(connection, rows::SHARD_MARK, i64::from(shard.index))?;
    rows::set_mark(connection, rows::SHARD_COUNT_MARK, i64::from(shard.count))?;
    rows::set_mark(connection, rows::WAS_SINGLE_MARK, i64::from(shard.was_single))
}

fn check_shard(connection: &Connection, settings: &SqliteSettings) -> Result<(), JournalError> {
    let Some(expected) = settings.shard else { return Ok(()) };
    let found = read_shard(connection)?;
    if found.is_same_shard(expected) { Ok(()) } else { Err(JournalError::WrongShard { found, expected }) }
}

/// Compares the journal with the file of its high-water mark. A journal without the row [`rows::EVENTLESS_MARK`] was written
/// before there were such files, so it gets its first one now.
fn check_high_water_mark(
    connection: &Connection,
    path: &Path,
    last_position: Position,
    settings: &SqliteSettings,
) -> Result<(HighWaterMark, MarkFile), JournalError> {
    let eventless_commits = rows::find_mark(connection, rows::EVENTLESS_MARK)?;
    let mut found = HighWaterMark {
        position: last_position,
        event_checksum: rows::event_checksum_at(connection, last_position)?.unwrap_or(0),
        eventless_commits: eventless_commits.unwrap_or(0),
        ledger_digest: rows::ledger_digest(connection)?,
        must_void_consents: false,
    };
    let loss = match HighWaterMark::read(path)? {
        Some(Ok(written)) => {
            found.must_void_consents = written.must_void_consents;
            written.find_loss(&found, |position| rows::event_checksum_at(connection, position))?
        }
        Some(Err(evidence)) => Some(evidence),
        None if eventless_commits.is_some() => Some(LossEvidence::HighWaterFileMissing),
        None => {
            MarkFile::replace(path, &found)?;
            None
        }
    };
    match loss {
        Some(evidence) if !settings.accept_loss => return Err(JournalError::EntriesLost(evidence)),
        Some(_) => {
            found.must_void_consents = true;
            MarkFile::replace(path, &found)?;
        }
        None => {}
    }
    if eventless_commits.is_none() {
        rows::set_mark(connection, rows::EVENTLESS_MARK, 0)?;
    }
    Ok((found, MarkFile::open(path)?))
}

/// Returns the path of a file next to the journal. Its name is the journal's name and a suffix, such as `-wal`.
pub(super) fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Runs one of SQLite's checks.
pub(super) fn run_check(connection: &Connection, check: &str) -> Result<(), JournalError> {
    let report: String = connection.query_row(check, (), |row| row.get(0)).map_err(from_sqlite)?;
    if report == "ok" {
        return Ok(());
    }
    // SQLite's report may have several lines; an error message has one.
    let report: Vec<_> = report.lines().collect();
    Err(JournalError::Corrupt(DamageLocation::File, Some(report.join(" ").into())))
}

pub(super) fn read_settings(connection: &Connection) -> Result<Vec<(&'static str, String)>, JournalError> {
    let names = ["journal_mode", "synchronous", "locking_mode", "auto_vacuum", "foreign_keys", "page_size"];
    let query = |name| {
        let value = connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        Ok(match value.map_err(from_sqlite)? {
            rusqlite::types::Value::Text(text) => (name, text),
            rusqlite::types::Value::Integer(number) => (name, number.to_string()),
            _ => (name, String::new()),
        })
    };
    names.into_iter().map(query).collect()
}

/// Creates the file under a temporary name and moves it into place when it is complete. A crash leaves either no file
/// or a valid one. Its high-water mark is created first. If there is already a mark of a journal with entries,
/// those entries have been lost, and the call fails unless the loss is accepted.
fn create(path: &Path, settings: &SqliteSettings) -> Result<(), JournalError> {
    let loss = match HighWaterMark::read(path)? {
        None => None,
        Some(Ok(written)) => written.find_loss(&HighWaterMark::START, |_| Ok(None))?,
        Some(Err(evidence)) => Some(evidence),
    };
    match loss {
        Some(evidence) if !settings.accept_loss => return Err(JournalError::EntriesLost(evidence)),
        _ => drop(MarkFile::replace(path, &HighWaterMark::START)?),
    }
    let draft = sibling_path(path, &format!("-new-{}", std::process::id()));
    let outcome =
        create_draft(&draft, settings.shard.unwrap_or_default()).and_then(|()| move_into_place(&draft, path));
    // The temporary name is no longer needed, whether or not the move succeeded.
    let _ = fs::remove_file(&draft);
    outcome
}

fn create_draft(draft: &Path, shard: ShardRecord) -> Result<(), JournalError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(draft).map_err(from_io)?);
    let mut connection = connect(draft)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES.cast_signed()).map_err(from_sqlite)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(from_sqlite)?;
    schema::migrate(&mut connection, schema::MIGRATIONS)?;
    for mark in [rows::TRIMMED_MARK, rows::INDEXED_MARK, rows::EVENTLESS_MARK] {
        rows::set_mark(&connection, mark, 0)?;
    }
    if shard != ShardRecord::default() {
        write_shard(&connection, shard)?;
    }
    connection.close().map_err(|(_, error)| from_sqlite(error))?;
    fs::File::open(draft).and_then(|file| file.sync_all()).map_err(from_io)
}

/// Moves the draft with a hard link, which does not replace a file that another process has created in the meantime. If hard
/// links are not supported, renames the draft.
fn move_into_place(draft: &Path, path: &Path) -> Result<(), JournalError> {
    match fs::hard_link(draft, path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(_) => fs::rename(draft, path).map_err(from_io)?,
    }
    sync_parent(path)
}

/// Syncs the folder of a file, so that a new name in it survives a power failure.
pub(super) fn sync_parent(path: &Path) -> Result<(), JournalError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if cfg!(unix) {
        let folder = fs::File::open(folder.unwrap_or(Path::new("."))).map_err(from_io)?;
        folder.sync_all().map_err(from_io)?;
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(from_sqlite)?;
    connection.busy_timeout(Duration::ZERO).map_err(from_sqlite)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn keep_wal_on_close(connection: &Connection, keep: bool) -> Result<(), JournalError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(drop).map_err(from_sqlite)
}

/// Locks the file exclusively until the connection is closed.
fn lock(connection: &Connection) -> Result<(), JournalError> {
    // If the file is not writable, SQLite opens it read-only and does not report the problem until later.
    if connection.is_readonly("main").map_err(from_sqlite)? {
        return Err(JournalError::ReadOnly);
    }
    set_pragma(connection, "locking_mode", "exclusive")?;
    match connection.execute_batch("BEGIN EXCLUSIVE; COMMIT") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => Err(JournalError::ReadOnly),
        outcome => outcome.map_err(from_sqlite),
    }
}

fn check_application_id(connection: &Connection) -> Result<(), JournalError> {
    let application_id: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(from_sqlite)?;
    if application_id == schema::APPLICATION_ID { Ok(()) } else { Err(JournalError::NotAJournal) }
}

/// Applies the settings. SQLite silently ignores settings that it cannot apply, so those that durability depends on are
/// read back.
fn configure(connection: &Connection, settings: &SqliteSettings) -> Result<(), JournalError> {
    set_pragma(connection, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(from_sqlite)?;
    let synchronous: i64 =
        connection.pragma_query_value(None, "synchronous", |row| row.get(0)).map_err(from_sqlite)?;
    if synchronous != 2 {
        return Err(JournalError::SettingRejected("synchronous=FULL"));
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(from_sqlite)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(from_sqlite)?;
    for (name, value) in [
        ("foreign_keys", 1),
        ("cell_size_check", 1),
        ("fullfsync", 1),
        ("wal_autocheckpoint", WAL_AUTOCHECKPOINT_PAGES),
        ("journal_size_limit", WAL_SIZE_LIMIT_BYTES),
        ("cache_size", -16_000),
        ("temp_store", 2),
    ] {
        connection.pragma_update(None, name, value).map_err(from_sqlite)?;
    }
    if let Some(max_bytes) = settings.max_bytes {
        let pages = i64::try_from(max_bytes / PAGE_BYTES).unwrap_or(i64::MAX).max(1);
        connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), (), |row| row.get::<_, i64>(0))
            .map_err(from_sqlite)?;
    }
    Ok(())
}

/// Sets a pragma and checks that SQLite accepted the value.
fn set_pragma(connection: &Connection, name: &'static str, value: &str) -> Result<(), JournalError> {
    let query = format!("PRAGMA {name} = {value}");
    let effective: String = connection.query_row(&query, (), |row| row.get(0)).map_err(from_sqlite)?;
    if effective == value { Ok(()) } else { Err(JournalError::SettingRejected(name)) }
}
