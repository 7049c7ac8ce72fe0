//! Keeps the main file unchanged while another process copies it.
//!
//! SQLite changes the main file only when it moves the write-ahead log into it (a checkpoint). The copying process must
//! not be this one: closing a second descriptor of the file would release SQLite's lock on it.

use super::SqliteJournal;
use super::error_mapping::from_sqlite;
use crate::JournalError;

/// Number of WAL pages (8 MB) after which SQLite checkpoints the WAL. A short WAL makes recovery after a crash fast.
pub(super) const WAL_AUTOCHECKPOINT_PAGES: i64 = 2000;

/// Whether checkpoints may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Checkpoints {
    #[default]
    Running,
    Paused,
    /// A failed write needed a checkpoint during the pause.
    PauseInterrupted,
}

impl Checkpoints {
    pub(super) fn are_paused(self) -> bool {
        self == Self::Paused
    }

    pub(super) fn end_pause(&mut self) {
        if *self == Self::Paused {
            *self = Self::PauseInterrupted;
        }
    }
}

pub(super) fn pause(journal: &mut SqliteJournal) -> Result<(), JournalError> {
    set_auto_checkpoint(journal, 0)?;
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    let busy_flag = journal.connection.query_row(checkpoint, (), |row| row.get::<_, i64>(0));
    match busy_flag.map_err(from_sqlite) {
        Ok(0) => {
            journal.checkpoints = Checkpoints::Paused;
            Ok(())
        }
        outcome => {
            set_auto_checkpoint(journal, WAL_AUTOCHECKPOINT_PAGES)?;
            outcome.and(Err(JournalError::Busy))
        }
    }
}

pub(super) fn resume(journal: &mut SqliteJournal) -> Result<(), JournalError> {
    let previous = std::mem::take(&mut journal.checkpoints);
    set_auto_checkpoint(journal, WAL_AUTOCHECKPOINT_PAGES)?;
    if previous == Checkpoints::Paused { Ok(()) } else { Err(JournalError::CopyInterrupted) }
}

fn set_auto_checkpoint(journal: &SqliteJournal, pages: i64) -> Result<(), JournalError> {
    journal.connection.pragma_update(None, "wal_autocheckpoint", pages).map_err(from_sqlite)
}
