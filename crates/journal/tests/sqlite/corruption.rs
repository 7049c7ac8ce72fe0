//! Flipped bits, truncated files and a damaged WAL. Either the journal is refused, or it returns only committed data.
//! Damage never turns a decision into an acceptance.

use journal::{DamageLocation, Journal, JournalEntry, JournalError, Position};
use seal::UnixMillis;

use crate::*;

/// Creates a journal with forty questions and events of increasing sizes. Every second question is rejected, none is
/// accepted.
fn create_journal_without_acceptances(path: &Path) -> SqliteJournal {
    let mut journal = open(path).unwrap();
    journal
        .commit(&[
            session_opened("s"),
            JournalEntry::SubscriptionOpened { id: "sub", principal: "p", record: b"" },
        ])
        .unwrap();
    for (number, size) in (1..=40).zip((150..).step_by(150)) {
        let token = token(number);
        let body = vec![b'x'; size];
        let event = event_parts(number, &body);
        let question_opened = JournalEntry::QuestionOpened {
            token: &token,
            session: "s",
            deadline: UnixMillis::new(9),
            record: b"accept or reject?",
        };
        journal.commit(&[question_opened, event_entry(&event)]).unwrap();
        if number % 2 == 0 {
            let question_decided = JournalEntry::QuestionDecided {
                token: &token,
                decision: "reject",
                decided_by: "reply",
                receipt: b"signed",
                at: UnixMillis::new(5),
            };
            journal.commit(&[question_decided]).unwrap();
        }
    }
    journal
}

fn token(number: u64) -> String {
    format!("token-{number:04}")
}

/// Asserts that all readable data is what was written and that the rest is reported as damaged. Returns whether
/// everything is intact.
fn assert_no_wrong_data(path: &Path) -> bool {
    let mut journal = match open(path) {
        Ok(journal) => journal,
        Err(
            JournalError::Corrupt(..)
            | JournalError::EntriesLost(_)
            | JournalError::NotAJournal
            | JournalError::NewerVersion { .. }
            | JournalError::SettingRejected(_)
            | JournalError::Io(_),
        ) => {
            return false;
        }
        Err(error) => panic!("{error:?}"),
    };
    let mut all_intact = true;
    for number in 1..=40 {
        match journal.decision(&token(number)) {
            Ok(Some(stored)) => {
                assert_eq!((&*stored.decision, number % 2, stored.spent_on), ("reject", 0, None), "{number}");
            }
            Ok(None) => all_intact &= number % 2 == 1,
            Err(JournalError::Corrupt(..)) => all_intact = false,
            Err(error) => panic!("{error:?}"),
        }
    }
    match journal.restore() {
        Ok(live_state) => {
            assert!(live_state.unspent_decisions.iter().all(|decision| decision.decision == "reject"));
        }
        Err(JournalError::Corrupt(..)) => all_intact = false,
        Err(error) => panic!("{error:?}"),
    }
    match journal.events(Position::START, 100) {
        Ok(events) => {
            for ((number, size), found) in (1..).zip((150..).step_by(150)).zip(&events) {
                assert_eq!((found.position.get(), found.body.len()), (number, size));
                assert!(found.body.iter().all(|byte| *byte == b'x'));
            }
            all_intact &= events.len() == 40;
        }
        Err(JournalError::Corrupt(..)) => all_intact = false,
        Err(error) => panic!("{error:?}"),
    }
    all_intact
}

/// Copies the journal and changes the copied file with this suffix. Returns whether everything is still intact.
fn is_intact_after_change(original: &Path, suffix: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = copy(original, folder.path());
    let changed = sibling_path(&path, suffix);
    let mut bytes = std::fs::read(&changed).unwrap();
    change(&mut bytes);
    std::fs::write(&changed, bytes).unwrap();
    assert_no_wrong_data(&path)
}

#[test]
fn a_copy_between_two_commits_contains_everything_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    journal.commit(&[session_opened("s")]).unwrap();
    for number in 1..=3000 {
        assert_eq!(write_events(&mut journal, number, 1, &[1; 500]).0, 1);
        if number % 250 == 0 {
            let copy_folder = tempfile::tempdir().unwrap();
            let mut copied = open(&copy(&path, copy_folder.path())).unwrap();
            assert_eq!(copied.restore().unwrap().last_position, Position::new(number));
            copied.check_integrity().unwrap();
        }
    }
}

#[test]
fn a_flipped_bit_never_creates_an_acceptance() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(create_journal_without_acceptances(&path));
    assert!(assert_no_wrong_data(&path));
    let size = usize::try_from(std::fs::metadata(&path).unwrap().len()).unwrap();
    let detected = (0..size)
        .step_by(997)
        .filter(|offset| !is_intact_after_change(&path, "", |bytes| bytes[*offset] ^= 1 << (offset % 8)))
        .count();
    assert!(detected > 20, "{detected}");
}

#[test]
fn replacing_reject_with_accept_in_the_file_never_creates_an_acceptance() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(create_journal_without_acceptances(&path));
    let original = std::fs::read(&path).unwrap();
    let offsets = (0..original.len() - 6).filter(|offset| &original[*offset..offset + 6] == b"reject");
    let mut detected = 0;
    for offset in offsets {
        let is_intact =
            is_intact_after_change(&path, "", |bytes| bytes[offset..offset + 6].copy_from_slice(b"accept"));
        detected += usize::from(!is_intact);
    }
    assert!(detected >= 20, "{detected}");
}

#[test]
fn a_truncated_file_is_refused_and_a_zeroed_page_never_returns_wrong_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(create_journal_without_acceptances(&path));
    let size = usize::try_from(std::fs::metadata(&path).unwrap().len()).unwrap();
    for length in [0, 1, 99, 100, 4095, 4096, size / 2, size - 4096, size - 1] {
        assert!(!is_intact_after_change(&path, "", |bytes| bytes.truncate(length)), "{length} of {size}");
    }
    for page in 0..size / 4096 {
        // The result is ignored, because a page may have been unused.
        is_intact_after_change(&path, "", |bytes| bytes[page * 4096..(page + 1) * 4096].fill(0));
    }
}

#[test]
fn a_wal_torn_in_a_batch_that_was_not_acknowledged_loses_only_that_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    journal.commit(&[session_opened("s")]).unwrap();
    write_events(&mut journal, 1, 19, b"acknowledged");
    // The mark is written after the batch, so a crash during the batch leaves the mark of the previous one.
    let mark = std::fs::read(sibling_path(&path, "-high-water")).unwrap();
    write_events(&mut journal, 20, 1, b"interrupted");
    let copy_folder = tempfile::tempdir().unwrap();
    let torn = copy(&path, copy_folder.path());
    std::fs::write(sibling_path(&torn, "-high-water"), mark).unwrap();
    let wal = sibling_path(&torn, "-wal");
    let bytes = std::fs::read(&wal).unwrap();
    std::fs::write(&wal, &bytes[..bytes.len() - 100]).unwrap();
    assert_eq!(open(&torn).unwrap().restore().unwrap().last_position, Position::new(19));
}

#[test]
fn a_wal_damaged_in_the_middle_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = create_journal_without_acceptances(&path);
    let wal_bytes = std::fs::metadata(sibling_path(&path, "-wal")).unwrap().len();
    let end = usize::try_from(wal_bytes).unwrap() * 3 / 4;
    for offset in (0..end).step_by(4999).chain(0..32).chain(32..56) {
        let copy_folder = tempfile::tempdir().unwrap();
        let broken = copy(&path, copy_folder.path());
        let mut bytes = std::fs::read(sibling_path(&broken, "-wal")).unwrap();
        bytes[offset] ^= 0x10;
        std::fs::write(sibling_path(&broken, "-wal"), &bytes).unwrap();
        match open(&broken) {
            Err(JournalError::Corrupt(DamageLocation::WriteAheadLog, _)) => {
                let found = std::fs::read(sibling_path(&broken, "-wal")).unwrap();
                assert!(found == bytes, "a refused file was changed");
            }
            // Some bytes of the header do not matter.
            Ok(mut journal) => {
                assert_eq!(journal.restore().unwrap().last_position, Position::new(40), "at {offset}");
            }
            Err(error) => panic!("{error:?} at {offset}"),
        }
    }
    drop(journal);
}
