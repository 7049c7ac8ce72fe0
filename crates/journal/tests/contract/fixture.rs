//! Journal fixtures, and helpers that create entries.

use std::cell::RefCell;

use journal::{
    Conflict, ConflictReason, Journal, JournalEntry, JournalError, MemoryJournal, Position, SqliteJournal,
    SqliteSettings,
};
use seal::UnixMillis;
use tempfile::TempDir;

pub(crate) trait JournalFixture {
    /// Creates an empty journal.
    fn create_empty(&self) -> Box<dyn Journal>;
    /// Closes the journal properly and opens it again.
    fn reopen(&self, journal: Box<dyn Journal>) -> Box<dyn Journal>;
    /// Opens the journal in the state that a killed process leaves behind.
    fn crash_and_reopen(&self, journal: Box<dyn Journal>) -> Box<dyn Journal>;
}

/// A fixture for the in-memory journal. It has no storage, so reopening returns the same journal, even after a crash.
#[derive(Default)]
pub(crate) struct MemoryFixture;

impl JournalFixture for MemoryFixture {
    fn create_empty(&self) -> Box<dyn Journal> {
        Box::new(MemoryJournal::default())
    }

    fn reopen(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        journal
    }

    fn crash_and_reopen(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        journal
    }
}

#[derive(Default)]
pub(crate) struct SqliteFixture {
    folder: RefCell<Option<TempDir>>,
}

impl SqliteFixture {
    fn open(&self) -> Box<dyn Journal> {
        let folder = self.folder.borrow();
        let path = folder.as_ref().unwrap().path().join("journal.db");
        Box::new(SqliteJournal::open(path, &SqliteSettings::default()).unwrap())
    }
}

impl JournalFixture for SqliteFixture {
    fn create_empty(&self) -> Box<dyn Journal> {
        *self.folder.borrow_mut() = Some(tempfile::tempdir().unwrap());
        self.open()
    }

    fn reopen(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        drop(journal);
        self.open()
    }

    /// Opens a copy of the journal's files as they are now. A killed process leaves the same files.
    fn crash_and_reopen(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(self.folder.borrow().as_ref().unwrap().path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        drop(journal);
        *self.folder.borrow_mut() = Some(copy);
        self.open()
    }
}

/// A fixture for the journal in Postgres. All tests share a server, and each journal has its own shard.
#[cfg(feature = "postgres")]
pub(crate) struct PostgresFixture {
    database: journal::PostgresDatabase,
    shard: std::cell::Cell<i32>,
}

#[cfg(feature = "postgres")]
static SERVER: std::sync::Mutex<Option<testing::postgres::PostgresServer>> = std::sync::Mutex::new(None);

#[cfg(feature = "postgres")]
impl PostgresFixture {
    /// Starts the server, unless Postgres is not installed or no test needs it. The second value says whether the tests
    /// can run.
    pub(crate) fn factory(
        arguments: &libtest_mimic::Arguments,
    ) -> (&'static str, bool, crate::FixtureFactory) {
        let is_needed = !arguments.list
            && arguments.filter.as_ref().is_none_or(|filter| {
                !["memory:", "sqlite:"]
                    .iter()
                    .any(|kind| filter.starts_with(kind) || kind.starts_with(&**filter))
            });
        let is_available = testing::postgres::is_installed("the contract of the journal in Postgres");
        if !is_needed || !is_available {
            return ("postgres", is_available, std::sync::Arc::new(|| panic!("Postgres is not running")));
        }
        let server = testing::postgres::PostgresServer::start();
        let settings = journal::PostgresSettings::parse(&server.address()).unwrap();
        *SERVER.lock().unwrap() = Some(server);
        let database = journal::PostgresDatabase::open(settings).unwrap();
        let factory = move || -> Box<dyn JournalFixture> {
            Box::new(PostgresFixture { database: database.clone(), shard: std::cell::Cell::new(-1) })
        };
        ("postgres", true, std::sync::Arc::new(factory))
    }

    pub(crate) fn stop_server() {
        drop(SERVER.lock().unwrap().take());
    }

    fn open(&self, take_over: bool) -> Box<dyn Journal> {
        let owner = journal::ShardOwner { name: "test".to_owned(), address: None };
        let settings = journal::LeaseSettings { take_over, ..journal::LeaseSettings::default() };
        Box::new(journal::PostgresJournal::open(&self.database, self.shard.get(), &owner, &settings).unwrap())
    }
}

#[cfg(feature = "postgres")]
impl JournalFixture for PostgresFixture {
    fn create_empty(&self) -> Box<dyn Journal> {
        static NEXT_SHARD: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
        self.shard.set(NEXT_SHARD.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
        self.open(false)
    }

    fn reopen(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        drop(journal);
        self.open(false)
    }

    /// Takes over the shard while the old journal still holds its lease, as after a crash.
    fn crash_and_reopen(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        let reopened = self.open(true);
        drop(journal);
        reopened
    }
}

pub(crate) fn position(number: u64) -> Position {
    Position::new(number)
}

pub(crate) fn event<'a>(position: u64, session: &'a str, event_id: &'a str) -> JournalEntry<'a> {
    event_at(position, session, event_id, 0)
}

pub(crate) fn event_at<'a>(
    position: u64,
    session: &'a str,
    event_id: &'a str,
    at_ms: i64,
) -> JournalEntry<'a> {
    JournalEntry::Event {
        position: self::position(position),
        session,
        event_id,
        at: UnixMillis::new(at_ms),
        is_critical: false,
        body: event_id.as_bytes(),
    }
}

pub(crate) fn session_opened(id: &str) -> JournalEntry<'_> {
    JournalEntry::SessionOpened {
        id,
        agent: "agent",
        principal: "owner",
        lease_expires_at: UnixMillis::new(60),
        record: b"{}",
    }
}

pub(crate) fn session_ended(id: &str) -> JournalEntry<'_> {
    JournalEntry::SessionEnded { id, at: UnixMillis::new(9) }
}

pub(crate) fn question_opened<'a>(token: &'a str, session: &'a str) -> JournalEntry<'a> {
    JournalEntry::QuestionOpened { token, session, deadline: UnixMillis::new(30), record: b"pay?" }
}

pub(crate) fn question_decided<'a>(token: &'a str, decision: &'a str) -> JournalEntry<'a> {
    JournalEntry::QuestionDecided {
        token,
        decision,
        decided_by: "reply",
        receipt: b"signed",
        at: UnixMillis::new(5),
    }
}

pub(crate) fn decision_spent(token: &str) -> JournalEntry<'_> {
    JournalEntry::DecisionSpent { token, call: b"pay(7)", at: UnixMillis::new(6) }
}

pub(crate) fn subscription_opened(id: &str) -> JournalEntry<'_> {
    JournalEntry::SubscriptionOpened { id, principal: "anna", record: b"terms" }
}

pub(crate) fn cursor_moved(subscription: &str, position: u64) -> JournalEntry<'_> {
    JournalEntry::CursorMoved { subscription, position: self::position(position) }
}

pub(crate) fn response_stored<'a>(principal: &'a str, key: &'a str) -> JournalEntry<'a> {
    JournalEntry::ResponseStored {
        principal,
        key,
        request: b"digest",
        response: b"201",
        at: UnixMillis::new(5),
    }
}

/// Returns the positions of all events.
pub(crate) fn positions(journal: &mut dyn Journal) -> Vec<u64> {
    journal.events(Position::START, usize::MAX).unwrap().iter().map(|event| event.position.get()).collect()
}

/// Asserts that the batch is refused because of this entry and reason.
#[track_caller]
pub(crate) fn assert_conflict(
    journal: &mut dyn Journal,
    batch: &[JournalEntry<'_>],
    entry_index: usize,
    reason: ConflictReason,
) {
    match journal.commit(batch) {
        Err(JournalError::Conflict(conflict)) => {
            assert_eq!(conflict, Conflict { entry_index, reason });
        }
        other => panic!("{other:?} instead of {reason:?}"),
    }
}
