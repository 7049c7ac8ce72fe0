//! Intact files that hold less than was acknowledged are refused, or opened with all consents void.

use journal::{Journal, JournalEntry, JournalError, LossEvidence, Position, Retention};
use rusqlite::Connection;
use seal::UnixMillis;

use crate::*;

/// An entry that is not an event and can be written any number of times.
const REPLY_ATTEMPTED: JournalEntry<'_> =
    JournalEntry::ReplyAttempted { at: UnixMillis::new(0), principal: "p", details: b"" };

fn open_accepting_loss(path: &Path) -> SqliteJournal {
    SqliteJournal::open(path, &SqliteSettings { accept_loss: true, ..SqliteSettings::default() }).unwrap()
}

/// Asserts that the journal is refused for this reason, and that it opens with all consents void if the loss is
/// accepted. The next commit ends that state.
fn assert_refused(path: &Path, expected: LossEvidence) {
    let before = std::fs::read(path).unwrap();
    match open(path) {
        Err(JournalError::EntriesLost(evidence)) => assert_eq!(evidence, expected),
        other => panic!("{other:?}"),
    }
    assert!(std::fs::read(path).unwrap() == before, "a refused file was changed");
    let mut journal = open_accepting_loss(path);
    assert!(journal.restore().unwrap().must_void_consents);
    drop(journal);
    let mut journal = open(path).unwrap();
    assert!(
        journal.restore().unwrap().must_void_consents,
        "reopening before the first commit changes nothing"
    );
    journal.commit(&[REPLY_ATTEMPTED]).unwrap();
    assert!(!journal.restore().unwrap().must_void_consents);
    drop(journal);
    assert!(!open(path).unwrap().restore().unwrap().must_void_consents);
}

fn create_journal_with_events(path: &Path, count: u64) -> SqliteJournal {
    let mut journal = open(path).unwrap();
    journal.commit(&[session_opened("s")]).unwrap();
    assert_eq!(write_events(&mut journal, 1, count, b"acknowledged").0, count);
    journal
}

#[test]
fn a_wal_cut_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = create_journal_with_events(&path, 20);
    let length = usize::try_from(std::fs::metadata(sibling_path(&path, "-wal")).unwrap().len()).unwrap();
    for end in (0..length).step_by(2060).chain([length - 1]) {
        let copy_folder = tempfile::tempdir().unwrap();
        let cut = copy(&path, copy_folder.path());
        let wal = sibling_path(&cut, "-wal");
        let bytes = std::fs::read(&wal).unwrap();
        std::fs::write(&wal, &bytes[..end]).unwrap();
        assert!(matches!(open(&cut), Err(JournalError::EntriesLost(_))), "{end} of {length}");
    }
    drop(journal);
}

#[test]
fn deleted_rows_at_the_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(create_journal_with_events(&path, 20));
    Connection::open(&path).unwrap().execute("DELETE FROM events WHERE position > 18", ()).unwrap();
    assert_refused(&path, LossEvidence::Position { written: Position::new(20), found: Position::new(18) });
}

#[test]
fn an_older_copy_of_the_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(create_journal_with_events(&path, 5));
    let older = std::fs::read(&path).unwrap();
    let mut journal = open(&path).unwrap();
    journal.commit(&[JournalEntry::SubscriptionOpened { id: "sub", principal: "p", record: b"" }]).unwrap();
    drop(journal);
    let newer = std::fs::read(&path).unwrap();
    std::fs::write(&path, &older).unwrap();
    assert_refused(&path, LossEvidence::EventlessCommits { missing: 1 });
    std::fs::write(&path, &newer).unwrap();
    assert_eq!(write_events(&mut open(&path).unwrap(), 6, 1, b"more").0, 1);
    std::fs::write(&path, &older).unwrap();
    assert_refused(&path, LossEvidence::Position { written: Position::new(6), found: Position::new(5) });
}

#[test]
fn a_file_with_a_different_history_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("journal.db"), folder.path().join("other.db"));
    drop(create_journal_with_events(&path, 5));
    let mut journal = open(&other).unwrap();
    journal.commit(&[session_opened("s")]).unwrap();
    write_events(&mut journal, 1, 9, b"another event");
    drop(journal);
    std::fs::copy(&other, &path).unwrap();
    assert_refused(&path, LossEvidence::OtherEvent { position: Position::new(5) });
}

#[test]
fn a_missing_or_damaged_mark_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(create_journal_with_events(&path, 5));
    let mark = sibling_path(&path, "-high-water");
    let bytes = std::fs::read(&mark).unwrap();
    std::fs::remove_file(&mark).unwrap();
    assert_refused(&path, LossEvidence::HighWaterFileMissing);
    for offset in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 1;
        std::fs::write(&mark, damaged).unwrap();
        assert!(
            matches!(open(&path), Err(JournalError::EntriesLost(LossEvidence::HighWaterFileDamaged))),
            "{offset}"
        );
    }
    std::fs::write(&mark, &bytes[..10]).unwrap();
    assert_refused(&path, LossEvidence::HighWaterFileDamaged);
}

#[test]
fn a_deleted_journal_is_refused_unless_it_was_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(open(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    drop(create_journal_with_events(&path, 5));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(open(&path), Err(JournalError::EntriesLost(LossEvidence::Position { .. }))));
    assert_eq!(open_accepting_loss(&path).restore().unwrap().last_position, Position::START);
}

#[test]
fn trimmed_events_are_not_lost_events() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = create_journal_with_events(&path, 20);
    journal.commit(&[JournalEntry::SessionEnded { id: "s", at: UnixMillis::new(0) }]).unwrap();
    let retention = Retention { max_event_age_ms: Some(1), ..Retention::default() };
    while journal.trim(&retention, UnixMillis::new(1_000_000)).unwrap().has_more {}
    drop(journal);
    for _ in 0..2 {
        let mut journal = open(&path).unwrap();
        let live_state = journal.restore().unwrap();
        assert_eq!((live_state.last_position, live_state.must_void_consents), (Position::new(20), false));
        journal.commit(&[REPLY_ATTEMPTED]).unwrap();
    }
}

#[test]
fn the_file_stays_unchanged_while_checkpoints_are_paused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = create_journal_with_events(&path, 5);
    assert!(matches!(journal.resume_checkpoints(), Err(JournalError::CopyInterrupted)));
    journal.pause_checkpoints().unwrap();
    let before = std::fs::read(&path).unwrap();
    // This writes enough for several checkpoints.
    assert_eq!(write_events(&mut journal, 6, 6000, &[7; 1500]).0, 6000);
    let retention = Retention { max_event_age_ms: Some(1), ..Retention::default() };
    journal.trim(&retention, UnixMillis::new(1_000_000)).unwrap();
    assert!(std::fs::read(&path).unwrap() == before, "the file has changed");
    journal.resume_checkpoints().unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::write(&copy, before).unwrap();
    let mut copied = open_accepting_loss(&copy);
    copied.check_integrity().unwrap();
    assert_eq!(copied.restore().unwrap().last_position, Position::new(5));
    assert_eq!(write_events(&mut journal, 6006, 1, b"after the pause").0, 1);
    assert!(std::fs::metadata(&path).unwrap().len() > 1_000_000, "checkpoints run again");
}
