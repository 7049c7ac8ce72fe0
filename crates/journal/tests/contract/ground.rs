//! Where a journal stands, and short words for what the behaviours do with it.

use std::cell::RefCell;

use journal::{Conflict, Entry, Error, Journal, Memory, Position, Reason, Settings, Sqlite};
use seal::UnixMillis;
use tempfile::TempDir;

pub(crate) trait Ground {
    /// A new journal with nothing in it.
    fn fresh(&self) -> Box<dyn Journal>;
    /// The same journal, closed properly and opened again.
    fn again(&self, journal: Box<dyn Journal>) -> Box<dyn Journal>;
    /// The same journal after its process was killed.
    fn after_crash(&self, journal: Box<dyn Journal>) -> Box<dyn Journal>;
}

/// A journal in memory is as durable as the value.
#[derive(Default)]
pub(crate) struct InMemory;

impl Ground for InMemory {
    fn fresh(&self) -> Box<dyn Journal> {
        Box::new(Memory::default())
    }

    fn again(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        journal
    }

    fn after_crash(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        journal
    }
}

#[derive(Default)]
pub(crate) struct OnDisk {
    folder: RefCell<Option<TempDir>>,
}

impl OnDisk {
    fn open(&self) -> Box<dyn Journal> {
        let folder = self.folder.borrow();
        let path = folder.as_ref().unwrap().path().join("journal.db");
        Box::new(Sqlite::open(path, &Settings::default()).unwrap())
    }
}

impl Ground for OnDisk {
    fn fresh(&self) -> Box<dyn Journal> {
        *self.folder.borrow_mut() = Some(tempfile::tempdir().unwrap());
        self.open()
    }

    fn again(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        drop(journal);
        self.open()
    }

    /// What the file and its log hold at this moment is what a killed process leaves.
    fn after_crash(&self, journal: Box<dyn Journal>) -> Box<dyn Journal> {
        let left = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(self.folder.borrow().as_ref().unwrap().path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), left.path().join(file.file_name())).unwrap();
        }
        drop(journal);
        *self.folder.borrow_mut() = Some(left);
        self.open()
    }
}

pub(crate) fn at(number: u64) -> Position {
    Position::new(number)
}

pub(crate) fn event<'a>(position: u64, session: &'a str, event_id: &'a str) -> Entry<'a> {
    event_at(position, session, event_id, 0)
}

pub(crate) fn event_at<'a>(position: u64, session: &'a str, event_id: &'a str, when: i64) -> Entry<'a> {
    Entry::Event {
        position: at(position),
        session,
        event_id,
        at: UnixMillis::new(when),
        critical: false,
        body: event_id.as_bytes(),
    }
}

pub(crate) fn opened(id: &str) -> Entry<'_> {
    Entry::SessionOpened { id, agent: "agent", principal: "owner", lease: UnixMillis::new(60), record: b"{}" }
}

pub(crate) fn ended(id: &str) -> Entry<'_> {
    Entry::SessionEnded { id, at: UnixMillis::new(9) }
}

pub(crate) fn asked<'a>(token: &'a str, session: &'a str) -> Entry<'a> {
    Entry::QuestionOpened { token, session, deadline: UnixMillis::new(30), record: b"pay?" }
}

pub(crate) fn decided<'a>(token: &'a str, decision: &'a str) -> Entry<'a> {
    Entry::Decided { token, decision, by: "reply", receipt: b"signed", at: UnixMillis::new(5) }
}

pub(crate) fn spent(token: &str) -> Entry<'_> {
    Entry::Spent { token, call: b"pay(7)", at: UnixMillis::new(6) }
}

pub(crate) fn subscribed(id: &str) -> Entry<'_> {
    Entry::SubscriptionOpened { id, principal: "anna", record: b"terms" }
}

pub(crate) fn cursor(subscription: &str, position: u64) -> Entry<'_> {
    Entry::Cursor { subscription, position: at(position) }
}

pub(crate) fn key<'a>(principal: &'a str, key: &'a str) -> Entry<'a> {
    Entry::Idempotent { principal, key, request: b"digest", response: b"201", at: UnixMillis::new(5) }
}

/// The positions of all events.
pub(crate) fn positions(journal: &mut dyn Journal) -> Vec<u64> {
    journal.events(Position::START, usize::MAX).unwrap().iter().map(|event| event.position.get()).collect()
}

/// The batch is refused for this entry and reason.
#[track_caller]
pub(crate) fn refused(journal: &mut dyn Journal, batch: &[Entry<'_>], entry: usize, reason: Reason) {
    match journal.commit(batch) {
        Err(Error::Conflict(conflict)) => assert_eq!(conflict, Conflict { entry, reason }),
        other => panic!("{other:?} instead of {reason:?}"),
    }
}
