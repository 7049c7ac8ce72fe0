//! SQLite's settings, file modes, versions and locks.

use std::process::Command;

use journal::{Journal, JournalEntry, JournalError, Position, Retention};
use rusqlite::Connection;
use seal::UnixMillis;

use crate::*;

/// Version 1 as released. This file never changes; later versions must be able to read it.
const VERSION_1: &str = include_str!("version_1.sql");

#[test]
fn durability_settings_are_in_effect() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path).unwrap();
    let settings = format!("{:?}", journal.effective_settings().unwrap());
    for expected in
        ["(\"journal_mode\", \"wal\")", "(\"synchronous\", \"2\")", "(\"locking_mode\", \"exclusive\")"]
    {
        assert!(settings.contains(expected), "{settings}");
    }
    assert!(
        settings.contains("(\"auto_vacuum\", \"2\")") && settings.contains("(\"foreign_keys\", \"1\")"),
        "{settings}"
    );
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_file_its_wal_and_its_high_water_mark() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    journal.commit(&[session_opened("s")]).unwrap();
    let found: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    for file in found {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    drop(journal);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_second_opener_is_refused_as_busy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    assert!(matches!(open(&path), Err(JournalError::Busy)));
    journal.commit(&[session_opened("s")]).unwrap();
    assert!(matches!(open(&path), Err(JournalError::Busy)));
    journal.commit(&[session_opened("t")]).unwrap();
    // Another process is refused as well.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "settings::open_a_journal_if_requested", "--nocapture"])
        .env("JOURNAL_TO_OPEN", &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("the journal is already open"), "{text}");
    drop(journal);
    assert_eq!(open(&path).unwrap().restore().unwrap().sessions.len(), 2);
}

/// Runs in the child processes of other tests. Does nothing otherwise.
#[test]
fn open_a_journal_if_requested() {
    if let Some(path) = std::env::var_os("JOURNAL_TO_OPEN") {
        match open(path.as_ref()) {
            Ok(_) => println!("opened"),
            Err(error) => println!("{error}"),
        }
    }
}

#[test]
fn a_newer_version_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 77).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, JournalError::NewerVersion { found: 77, .. }), "{error:?}");
    assert!(error.to_string().contains("version 77"), "{error}");
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn a_file_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE bookmarks (url)").unwrap();
    assert!(matches!(open(&path), Err(JournalError::NotAJournal)));
    std::fs::write(&path, "a text file that is long enough to be read as the header of an SQLite database")
        .unwrap();
    assert!(matches!(open(&path), Err(JournalError::Corrupt(..))));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(open(&path), Err(JournalError::Corrupt(..))));
}

#[test]
fn a_version_1_file_opens_and_accepts_entries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    Connection::open(&path).unwrap().execute_batch(VERSION_1).unwrap();
    let mut journal = open(&path).unwrap();
    let live_state = journal.restore().unwrap();
    assert_eq!((&*live_state.sessions[0].id, &*live_state.unspent_decisions[0].decision), ("old", "accept"));
    assert_eq!((live_state.last_position, live_state.trimmed_up_to), (Position::new(2), Position::START));
    assert_eq!(journal.event_position("evt_2").unwrap(), Some(Position::new(2)));
    journal
        .commit(&[JournalEntry::DecisionSpent { token: "q", call: b"pay", at: UnixMillis::new(9) }])
        .unwrap();
    journal.check_integrity().unwrap();
}

#[test]
fn trimming_shrinks_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    journal.commit(&[session_opened("s")]).unwrap();
    assert_eq!(write_events(&mut journal, 1, 3000, &[7; 1500]).0, 3000);
    journal.commit(&[JournalEntry::SessionEnded { id: "s", at: UnixMillis::new(0) }]).unwrap();
    let retention = Retention { max_event_age_ms: Some(1), ..Retention::default() };
    while journal.trim(&retention, UnixMillis::new(1_000_000)).unwrap().has_more {}
    let file = std::fs::metadata(&path).unwrap().len();
    let wal = std::fs::metadata(sibling_path(&path, "-wal")).unwrap().len();
    assert!(file < 200_000 && wal == 0, "{file} {wal}");
    journal.check_integrity().unwrap();
}
