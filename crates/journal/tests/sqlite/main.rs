//! Tests that need the journal on a disk.
//!
//! - `settings`: SQLite's settings, file modes, versions and locks.
//! - `corruption`: flipped bits, truncated files and a damaged WAL.
//! - `lost_entries`: intact files that hold less than was acknowledged.
//! - `disk_errors`: full and read-only disks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test reports a failure by panicking"
)]

mod corruption;
mod disk_errors;
mod lost_entries;
mod settings;

use std::path::{Path, PathBuf};

use journal::{Journal, JournalEntry, JournalError, Position, SqliteJournal, SqliteSettings};
use seal::UnixMillis;

fn open(path: &Path) -> Result<SqliteJournal, JournalError> {
    SqliteJournal::open(path, &SqliteSettings::default())
}

fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Copies the file, its WAL and its high-water mark as they are now. A killed process leaves the same files.
fn copy(path: &Path, to: &Path) -> PathBuf {
    let copy = to.join("journal.db");
    std::fs::copy(path, &copy).unwrap();
    for suffix in ["-wal", "-high-water"] {
        let sibling = sibling_path(path, suffix);
        if sibling.exists() {
            std::fs::copy(sibling, sibling_path(&copy, suffix)).unwrap();
        }
    }
    copy
}

fn session_opened(id: &str) -> JournalEntry<'_> {
    JournalEntry::SessionOpened {
        id,
        agent: "agent",
        principal: "owner",
        lease_expires_at: UnixMillis::new(60),
        record: b"{}",
    }
}

/// Returns the id, the body and the position of an event.
fn event_parts(number: u64, body: &[u8]) -> (String, Vec<u8>, u64) {
    (format!("e{number:06}"), body.to_vec(), number)
}

fn event_entry((event_id, body, number): &(String, Vec<u8>, u64)) -> JournalEntry<'_> {
    JournalEntry::Event {
        position: Position::new(*number),
        session: "s",
        event_id,
        at: UnixMillis::new(0),
        is_critical: false,
        body,
    }
}

/// Writes up to `count` events one by one, starting at position `first`, until one fails. Returns how many were
/// acknowledged, and the error if one failed.
fn write_events(
    journal: &mut SqliteJournal,
    first: u64,
    count: u64,
    body: &[u8],
) -> (u64, Option<JournalError>) {
    for number in first..first + count {
        if let Err(error) = journal.commit(&[event_entry(&event_parts(number, body))]) {
            return (number - first, Some(error));
        }
    }
    (count, None)
}
