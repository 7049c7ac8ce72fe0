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

/// Creates a journal with an open session, an ended session, an open question, and a decision that was spent.
fn create_journal_with_decisions(path: &Path) -> SqliteJournal {
    let at = UnixMillis::new(5);
    let mut journal = open(path).unwrap();
    journal.commit(&[session_opened("open"), session_opened("ended")]).unwrap();
    journal.commit(&[JournalEntry::SessionEnded { id: "ended", at }]).unwrap();
    for token in ["decided", "undecided"] {
        let opened = JournalEntry::QuestionOpened { token, session: "open", deadline: at, record: b"q" };
        journal.commit(&[opened]).unwrap();
    }
    let decided = JournalEntry::QuestionDecided {
        token: "decided",
        decision: "accept",
        decided_by: "ada",
        receipt: b"r",
        at,
    };
    journal.commit(&[decided]).unwrap();
    journal
}

#[test]
fn changed_or_missing_decisions_questions_and_sessions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(create_journal_with_decisions(&path));
    let unspent = std::fs::read(&path).unwrap();
    let spent = JournalEntry::DecisionSpent { token: "decided", call: b"call", at: UnixMillis::new(6) };
    open(&path).unwrap().commit(&[spent]).unwrap();

    let older = folder.path().join("older.db");
    std::fs::write(&older, unspent).unwrap();
    let older = older.to_str().unwrap();
    let attached = format!("ATTACH '{older}' AS older");
    let valid_older_row = "UPDATE questions SET (call, spent, sum) =
        (SELECT call, spent, sum FROM older.questions WHERE token = 'decided') WHERE token = 'decided'";
    for change in [
        valid_older_row,
        "DELETE FROM questions WHERE token = 'decided'",
        "DELETE FROM questions WHERE token = 'undecided'",
        "DELETE FROM sessions WHERE id = 'ended'",
        "DELETE FROM questions; DELETE FROM sessions",
    ] {
        let copy_folder = tempfile::tempdir().unwrap();
        let changed = copy(&path, copy_folder.path());
        let connection = Connection::open(&changed).unwrap();
        connection.execute_batch(&attached).unwrap();
        connection.execute_batch(change).unwrap();
        drop(connection);
        assert_refused(&changed, LossEvidence::OtherLedger);
    }
    assert!(!open(&path).unwrap().restore().unwrap().must_void_consents);
}

#[test]
fn a_journal_that_is_newer_than_its_mark_opens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mark = sibling_path(&path, "-high-water");
    let mut journal = create_journal_with_decisions(&path);
    let older_mark = std::fs::read(&mark).unwrap();
    let spent = JournalEntry::DecisionSpent { token: "decided", call: b"call", at: UnixMillis::new(6) };
    journal.commit(&[spent]).unwrap();
    drop(journal);
    std::fs::write(&mark, &older_mark).unwrap();
    assert!(!open(&path).unwrap().restore().unwrap().must_void_consents);

    // The same after a deletion.
    let mut journal = open(&path).unwrap();
    journal.commit(&[REPLY_ATTEMPTED]).unwrap();
    let older_mark = std::fs::read(&mark).unwrap();
    let retention = Retention { max_event_age_ms: Some(1), ..Retention::default() };
    journal.trim(&retention, UnixMillis::new(1_000_000)).unwrap();
    assert!(journal.session("ended").unwrap().is_none(), "an ended session was deleted");
    drop(journal);
    assert!(!open(&path).unwrap().restore().unwrap().must_void_consents);
    std::fs::write(&mark, &older_mark).unwrap();
    assert!(!open(&path).unwrap().restore().unwrap().must_void_consents);
}

#[test]
fn a_mark_of_the_first_version_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mark = sibling_path(&path, "-high-water");
    drop(create_journal_with_decisions(&path));
    let body = std::fs::read(&mark).unwrap();
    let mut first_version = [b"sayjhwm1", &body[8..32], &body[40..48]].concat();
    let checksum = seal::Digest::of(&first_version);
    first_version.extend_from_slice(&checksum.as_bytes()[..8]);
    std::fs::write(&mark, first_version).unwrap();
    let mut journal = open(&path).unwrap();
    assert!(!journal.restore().unwrap().must_void_consents);
    journal.commit(&[REPLY_ATTEMPTED]).unwrap();
    drop(journal);
    Connection::open(&path).unwrap().execute("DELETE FROM questions", ()).unwrap();
    assert_refused(&path, LossEvidence::OtherLedger);
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
