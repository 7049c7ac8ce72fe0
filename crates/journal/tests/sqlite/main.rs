//! What only the journal on a disk can show.
//!
//! - `settings`: what SQLite says of itself, the file's mode, versions, locks.
//! - `damage`: flipped bits, cut files, a broken log: a refusal, or what was acknowledged; never a wrong yes.
//! - `disk`: full, read-only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod damage;
mod disk;
mod settings;

use std::path::{Path, PathBuf};

use journal::{Entry, Error, Journal, Position, Settings, Sqlite};
use seal::UnixMillis;

fn open(path: &Path) -> Result<Sqlite, Error> {
    Sqlite::open(path, &Settings::default())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The file and its log as they are now: what a killed process leaves.
fn copy(path: &Path, to: &Path) -> PathBuf {
    let copy = to.join("journal.db");
    std::fs::copy(path, &copy).unwrap();
    let log = beside(path, "-wal");
    if log.exists() {
        std::fs::copy(log, beside(&copy, "-wal")).unwrap();
    }
    copy
}

fn opened(id: &str) -> Entry<'_> {
    Entry::SessionOpened { id, agent: "agent", principal: "owner", lease: UnixMillis::new(60), record: b"{}" }
}

fn event(number: u64, body: &[u8]) -> (String, Vec<u8>, u64) {
    (format!("e{number:06}"), body.to_vec(), number)
}

fn entry((event_id, body, number): &(String, Vec<u8>, u64)) -> Entry<'_> {
    Entry::Event {
        position: Position::new(*number),
        session: "s",
        event_id,
        at: UnixMillis::new(0),
        critical: false,
        body,
    }
}

/// Writes events one by one, from `first` on; returns how many were acknowledged and what ended it.
fn publish(journal: &mut Sqlite, first: u64, count: u64, body: &[u8]) -> (u64, Option<Error>) {
    for number in first..first + count {
        if let Err(error) = journal.commit(&[entry(&event(number, body))]) {
            return (number - first, Some(error));
        }
    }
    (count, None)
}
