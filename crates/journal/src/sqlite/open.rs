//! From a path to a journal that can be trusted.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::{fault, system};
use super::tail::Tail;
use super::{Settings, Sqlite, position, rows, schema, wal};
use crate::{Error, Place};

const PAGE: u64 = 4096;

/// Pages of the log after which it is carried over into the file: 8 MB, so that a crash costs little to read again.
const CARRY_OVER: i64 = 2000;

/// What the log may keep of the disk after a large batch, in bytes.
const LOG_KEEPS: i64 = 16 << 20;

/// What holds consent and who is there; small, so it is checked whole at every start. The log of events is not: its rows
/// are checked when they are read.
const LEDGER: [&str; 5] = ["marks", "sessions", "questions", "subscriptions", "cursors"];

pub(super) fn open(path: &Path, settings: &Settings) -> Result<Sqlite, Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path)?,
        Err(error) => return Err(system(error)),
        // We never leave an empty file, and SQLite would take one for a new journal.
        Ok(found) if found.len() == 0 => return Err(Error::damaged(Place::File)),
        Ok(_) => {}
    }
    let mut connection = connect(path)?;
    // Until it is known to be sound, nothing is changed: closing would carry the log over into the file.
    keep_log(&connection, true)?;
    lock(&connection)?;
    wal::check(&beside(path, "-wal"))?;
    recognise(&connection)?;
    configure(&connection, settings)?;
    schema::migrate(&mut connection, schema::STEPS)?;
    schema::check(&connection)?;
    for table in LEDGER {
        examine(&connection, &format!("PRAGMA integrity_check({table})"))?;
    }
    let floor = rows::mark(&connection, rows::FLOOR)?;
    let newest = rows::newest(&connection)?;
    let tail = Tail::load(&connection)?;
    if rows::mark(&connection, rows::INDEXED)? > floor.max(newest) {
        return Err(Error::damaged(Place::Event));
    }
    keep_log(&connection, false)?;
    let (floor, last) = (position(floor), position(floor.max(newest)));
    Ok(Sqlite { connection, path: path.to_owned(), last, floor, tail, numbers: HashMap::new() })
}

/// The file beside the journal that SQLite calls so.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// Runs one of SQLite's checks.
pub(super) fn examine(connection: &Connection, check: &str) -> Result<(), Error> {
    let verdict: String = connection.query_row(check, (), |row| row.get(0)).map_err(fault)?;
    if verdict == "ok" {
        return Ok(());
    }
    // It may be a report of several lines, and an error is one.
    let verdict: Vec<_> = verdict.lines().collect();
    Err(Error::Corrupt(Place::File, Some(verdict.join(" ").into())))
}

pub(super) fn settings(connection: &Connection) -> Result<Vec<(&'static str, String)>, Error> {
    let names = ["journal_mode", "synchronous", "locking_mode", "auto_vacuum", "foreign_keys", "page_size"];
    let ask = |name| {
        let value = connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        Ok(match value.map_err(fault)? {
            rusqlite::types::Value::Text(text) => (name, text),
            rusqlite::types::Value::Integer(number) => (name, number.to_string()),
            _ => (name, String::new()),
        })
    };
    names.into_iter().map(ask).collect()
}

/// Makes the file under another name and gives it its own when it is whole, so that a crash leaves none or a good one.
fn make(path: &Path) -> Result<(), Error> {
    let draft = beside(path, &format!("-new-{}", std::process::id()));
    let outcome = draw_up(&draft).and_then(|()| publish(&draft, path));
    // Already moved, or of no use.
    let _ = fs::remove_file(&draft);
    outcome
}

fn draw_up(draft: &Path) -> Result<(), Error> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(draft).map_err(system)?);
    let mut connection = connect(draft)?;
    connection.pragma_update(None, "page_size", PAGE.cast_signed()).map_err(fault)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(fault)?;
    schema::migrate(&mut connection, schema::STEPS)?;
    for mark in [rows::FLOOR, rows::INDEXED] {
        rows::set_mark(&connection, mark, 0)?;
    }
    connection.close().map_err(|(_, error)| fault(error))?;
    fs::File::open(draft).and_then(|file| file.sync_all()).map_err(system)
}

/// A link does not replace what another process made meanwhile. Where there are no links, the name is moved.
fn publish(draft: &Path, path: &Path) -> Result<(), Error> {
    match fs::hard_link(draft, path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(_) => fs::rename(draft, path).map_err(system)?,
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if cfg!(unix) {
        let folder = fs::File::open(folder.unwrap_or(Path::new("."))).map_err(system)?;
        folder.sync_all().map_err(system)?;
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fault)?;
    connection.busy_timeout(Duration::ZERO).map_err(fault)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn keep_log(connection: &Connection, keep: bool) -> Result<(), Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(drop).map_err(fault)
}

/// Takes the file for this value alone, until it is closed.
fn lock(connection: &Connection) -> Result<(), Error> {
    // SQLite opens what it may not write for reading only, and says so late.
    if connection.is_readonly("main").map_err(fault)? {
        return Err(Error::ReadOnly);
    }
    set(connection, "locking_mode", "exclusive")?;
    match connection.execute_batch("BEGIN EXCLUSIVE; COMMIT") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => Err(Error::ReadOnly),
        outcome => outcome.map_err(fault),
    }
}

fn recognise(connection: &Connection) -> Result<(), Error> {
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(fault)?;
    if application == schema::APPLICATION { Ok(()) } else { Err(Error::Foreign) }
}

/// What durability stands on is read back: SQLite ignores in silence what it cannot do.
fn configure(connection: &Connection, settings: &Settings) -> Result<(), Error> {
    set(connection, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(fault)?;
    let full: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).map_err(fault)?;
    if full != 2 {
        return Err(Error::NotDurable("synchronous=FULL"));
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(fault)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(fault)?;
    for (name, value) in [
        ("foreign_keys", 1),
        ("cell_size_check", 1),
        ("fullfsync", 1),
        ("wal_autocheckpoint", CARRY_OVER),
        ("journal_size_limit", LOG_KEEPS),
        ("cache_size", -16_000),
        ("temp_store", 2),
    ] {
        connection.pragma_update(None, name, value).map_err(fault)?;
    }
    if let Some(most) = settings.most_bytes {
        let pages = i64::try_from(most / PAGE).unwrap_or(i64::MAX).max(1);
        connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), (), |row| row.get::<_, i64>(0))
            .map_err(fault)?;
    }
    Ok(())
}

/// A setting whose answer must be what was asked for.
fn set(connection: &Connection, name: &'static str, value: &str) -> Result<(), Error> {
    let ask = format!("PRAGMA {name} = {value}");
    let answer: String = connection.query_row(&ask, (), |row| row.get(0)).map_err(fault)?;
    if answer == value { Ok(()) } else { Err(Error::NotDurable(name)) }
}
