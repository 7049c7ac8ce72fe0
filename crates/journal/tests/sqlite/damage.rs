//! Flipped bits, cut files, a broken log: a refusal, or what was acknowledged; never a wrong yes.

use journal::{Entry, Error, Journal, Place, Position};
use seal::UnixMillis;

use crate::*;

/// Forty questions, every second one refused, none ever accepted; events of all sizes between.
fn refusals(path: &Path) -> Sqlite {
    let mut journal = open(path).unwrap();
    journal
        .commit(&[opened("s"), Entry::SubscriptionOpened { id: "sub", principal: "p", record: b"" }])
        .unwrap();
    for (number, size) in (1..=40).zip((150..).step_by(150)) {
        let token = token(number);
        let body = vec![b'x'; size];
        let happened = event(number, &body);
        let asked = Entry::QuestionOpened {
            token: &token,
            session: "s",
            deadline: UnixMillis::new(9),
            record: b"accept or reject?",
        };
        journal.commit(&[asked, entry(&happened)]).unwrap();
        if number % 2 == 0 {
            let no = Entry::Decided {
                token: &token,
                decision: "reject",
                by: "reply",
                receipt: b"signed",
                at: UnixMillis::new(5),
            };
            journal.commit(&[no]).unwrap();
        }
    }
    journal
}

fn token(number: u64) -> String {
    format!("token-{number:04}")
}

/// Whatever can be read is what was written; whatever cannot is said to be damaged. Returns whether all was well.
fn only_the_truth(path: &Path) -> bool {
    let mut journal = match open(path) {
        Ok(journal) => journal,
        Err(
            Error::Corrupt(..) | Error::Foreign | Error::Newer { .. } | Error::NotDurable(_) | Error::Io(_),
        ) => {
            return false;
        }
        Err(error) => panic!("{error:?}"),
    };
    let mut well = true;
    for number in 1..=40 {
        match journal.decision(&token(number)) {
            Ok(Some(it)) => {
                assert_eq!((&*it.decision, number % 2, it.spent), ("reject", 0, None), "{number}");
            }
            Ok(None) => well &= number % 2 == 1,
            Err(Error::Corrupt(..)) => well = false,
            Err(error) => panic!("{error:?}"),
        }
    }
    match journal.restore() {
        Ok(alive) => assert!(alive.unspent.iter().all(|it| it.decision == "reject")),
        Err(Error::Corrupt(..)) => well = false,
        Err(error) => panic!("{error:?}"),
    }
    match journal.events(Position::START, 100) {
        Ok(events) => {
            for ((number, size), found) in (1..).zip((150..).step_by(150)).zip(&events) {
                assert_eq!((found.position.get(), found.body.len()), (number, size));
                assert!(found.body.iter().all(|byte| *byte == b'x'));
            }
            well &= events.len() == 40;
        }
        Err(Error::Corrupt(..)) => well = false,
        Err(error) => panic!("{error:?}"),
    }
    well
}

fn with_change(whole: &Path, ending: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = copy(whole, folder.path());
    let changed = beside(&path, ending);
    let mut bytes = std::fs::read(&changed).unwrap();
    change(&mut bytes);
    std::fs::write(&changed, bytes).unwrap();
    only_the_truth(&path)
}

#[test]
fn a_copy_made_between_two_commits_has_everything_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    journal.commit(&[opened("s")]).unwrap();
    for number in 1..=3000 {
        assert_eq!(publish(&mut journal, number, 1, &[1; 500]).0, 1);
        if number % 250 == 0 {
            let left = tempfile::tempdir().unwrap();
            let mut other = open(&copy(&path, left.path())).unwrap();
            assert_eq!(other.restore().unwrap().last, Position::new(number));
            other.check().unwrap();
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_in_the_file_never_makes_a_yes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(refusals(&path));
    assert!(only_the_truth(&path));
    let size = usize::try_from(std::fs::metadata(&path).unwrap().len()).unwrap();
    let noticed = (0..size)
        .step_by(997)
        .filter(|place| !with_change(&path, "", |bytes| bytes[*place] ^= 1 << (place % 8)))
        .count();
    assert!(noticed > 20, "{noticed}");
}

#[test]
fn words_swapped_in_the_file_never_make_a_yes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(refusals(&path));
    let whole = std::fs::read(&path).unwrap();
    let places = (0..whole.len() - 6).filter(|place| &whole[*place..place + 6] == b"reject");
    let mut noticed = 0;
    for place in places {
        let well = with_change(&path, "", |bytes| bytes[place..place + 6].copy_from_slice(b"accept"));
        noticed += usize::from(!well);
    }
    assert!(noticed >= 20, "{noticed}");
}

#[test]
fn a_file_cut_short_or_blanked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    drop(refusals(&path));
    let size = usize::try_from(std::fs::metadata(&path).unwrap().len()).unwrap();
    for left in [0, 1, 99, 100, 4095, 4096, size / 2, size - 4096, size - 1] {
        assert!(!with_change(&path, "", |bytes| bytes.truncate(left)), "{left} of {size}");
    }
    for page in 0..size / 4096 {
        with_change(&path, "", |bytes| bytes[page * 4096..(page + 1) * 4096].fill(0));
    }
}

#[test]
fn a_log_torn_in_its_last_batch_loses_only_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut journal = open(&path).unwrap();
    journal.commit(&[opened("s")]).unwrap();
    publish(&mut journal, 1, 20, b"acknowledged");
    let left = tempfile::tempdir().unwrap();
    let torn = copy(&path, left.path());
    let log = beside(&torn, "-wal");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() - 100]).unwrap();
    assert_eq!(open(&torn).unwrap().restore().unwrap().last, Position::new(19));
}

#[test]
fn a_log_broken_in_the_middle_is_refused_instead_of_losing_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = refusals(&path);
    let log = std::fs::metadata(beside(&path, "-wal")).unwrap().len();
    let middle = usize::try_from(log).unwrap() * 3 / 4;
    for place in (0..middle).step_by(4999).chain(0..32).chain(32..56) {
        let left = tempfile::tempdir().unwrap();
        let broken = copy(&path, left.path());
        let mut bytes = std::fs::read(beside(&broken, "-wal")).unwrap();
        bytes[place] ^= 0x10;
        std::fs::write(beside(&broken, "-wal"), &bytes).unwrap();
        match open(&broken) {
            Err(Error::Corrupt(Place::WriteAheadLog, _)) => {
                let kept = std::fs::read(beside(&broken, "-wal")).unwrap();
                assert!(kept == bytes, "a refusal changes nothing");
            }
            // Not every byte of the header counts.
            Ok(mut fine) => assert_eq!(fine.restore().unwrap().last, Position::new(40), "at {place}"),
            Err(error) => panic!("{error:?} at {place}"),
        }
    }
    drop(journal);
}
