//! What SQLite says of itself, the file's mode, versions, locks.

use std::process::Command;

use journal::{Entry, Error, Journal, Position, Retention};
use rusqlite::Connection;
use seal::UnixMillis;

use crate::*;

/// Version 1 as it was released. It is never changed; what follows must be able to read it.
const VERSION_1: &str = include_str!("version_1.sql");

#[test]
fn the_file_stays_at_what_durability_stands_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path).unwrap();
    let said = format!("{:?}", journal.settings().unwrap());
    for expected in
        ["(\"journal_mode\", \"wal\")", "(\"synchronous\", \"2\")", "(\"locking_mode\", \"exclusive\")"]
    {
        assert!(said.contains(expected), "{said}");
    }
    assert!(
        said.contains("(\"auto_vacuum\", \"2\")") && said.contains("(\"foreign_keys\", \"1\")"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn the_file_and_its_log_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    journal.commit(&[opened("s")]).unwrap();
    let found: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    for file in found {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    drop(journal);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_second_opener_is_told_that_it_is_open_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    assert!(matches!(open(&path), Err(Error::Busy)));
    journal.commit(&[opened("s")]).unwrap();
    assert!(matches!(open(&path), Err(Error::Busy)));
    journal.commit(&[opened("t")]).unwrap();
    // Another process, too.
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "settings::only_when_asked_opens_a_journal", "--nocapture"])
        .env("JOURNAL_TO_OPEN", &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stdout);
    assert!(said.contains("open in another process"), "{said}");
    drop(journal);
    assert_eq!(open(&path).unwrap().restore().unwrap().sessions.len(), 2);
}

#[test]
fn only_when_asked_opens_a_journal() {
    if let Some(path) = std::env::var_os("JOURNAL_TO_OPEN") {
        match open(path.as_ref()) {
            Ok(_) => println!("opened"),
            Err(error) => println!("{error}"),
        }
    }
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 77).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 77, .. }), "{error:?}");
    assert!(error.to_string().contains("version 77"), "{error}");
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn another_programs_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE bookmarks (url)").unwrap();
    assert!(matches!(open(&path), Err(Error::Foreign)));
    std::fs::write(&path, "just a text, and not even a short one, over and over again, to fill a header ")
        .unwrap();
    assert!(matches!(open(&path), Err(Error::Corrupt(..))));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(open(&path), Err(Error::Corrupt(..))));
}

#[test]
fn a_file_of_version_1_opens_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    Connection::open(&path).unwrap().execute_batch(VERSION_1).unwrap();
    let mut journal = open(&path).unwrap();
    let alive = journal.restore().unwrap();
    assert_eq!((&*alive.sessions[0].id, &*alive.unspent[0].decision), ("old", "accept"));
    assert_eq!((alive.last, alive.floor), (Position::new(2), Position::START));
    assert_eq!(journal.position_of("evt_2").unwrap(), Some(Position::new(2)));
    journal.commit(&[Entry::Spent { token: "q", call: b"pay", at: UnixMillis::new(9) }]).unwrap();
    journal.check().unwrap();
}

#[test]
fn a_trim_makes_the_file_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    journal.commit(&[opened("s")]).unwrap();
    assert_eq!(publish(&mut journal, 1, 3000, &[7; 1500]).0, 3000);
    journal.commit(&[Entry::SessionEnded { id: "s", at: UnixMillis::new(0) }]).unwrap();
    let keep = Retention { events: Some(1), ..Retention::default() };
    while journal.trim(&keep, UnixMillis::new(1_000_000)).unwrap().more {}
    let file = std::fs::metadata(&path).unwrap().len();
    let log = std::fs::metadata(beside(&path, "-wal")).unwrap().len();
    assert!(file < 200_000 && log == 0, "{file} {log}");
    journal.check().unwrap();
}
