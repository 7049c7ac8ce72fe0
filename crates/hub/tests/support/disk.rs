//! A journal that outlives the hub, can be told to fail, and can be watched.

use std::sync::{Arc, Mutex};

use journal::stored::{Alive, Remembered, StoredDecision, StoredEvent, StoredSession};
use journal::{Entry, Error, Journal, Memory, Position, Retention, Trimmed};
use seal::UnixMillis;

/// A journal that outlives the hub, and can be told to fail.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Inner>>);

struct Inner {
    memory: Box<dyn Journal>,
    full: bool,
    unreadable: bool,
    seen: Vec<Seen>,
    calls: Vec<&'static str>,
}

impl Inner {
    /// A call of the journal.
    fn called(&mut self, name: &'static str) -> &mut dyn Journal {
        self.calls.push(name);
        &mut *self.memory
    }
}

impl Default for Inner {
    fn default() -> Self {
        let memory = Box::new(Memory::default());
        Self { memory, full: false, unreadable: false, seen: Vec::new(), calls: Vec::new() }
    }
}

/// What was written, for whoever watches the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Event {
        position: u64,
        id: String,
        body: String,
    },
    Asked {
        token: String,
        deadline: UnixMillis,
    },
    Moved {
        token: String,
        deadline: UnixMillis,
    },
    Decided {
        token: String,
        decision: String,
        by: String,
    },
    Spent {
        token: String,
        call: String,
    },
    Attempt {
        what: String,
    },
    /// A batch was whole.
    Batch,
}

impl Seen {
    fn of(entry: &Entry<'_>) -> Option<Self> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Some(match *entry {
            Entry::Event { position, event_id, body, .. } => {
                Self::Event { position: position.get(), id: event_id.into(), body: text(body) }
            }
            Entry::QuestionOpened { token, deadline, .. } => Self::Asked { token: token.into(), deadline },
            Entry::DeadlineMoved { token, deadline } => Self::Moved { token: token.into(), deadline },
            Entry::Decided { token, decision, by, .. } => {
                Self::Decided { token: token.into(), decision: decision.into(), by: by.into() }
            }
            Entry::Spent { token, call, .. } => Self::Spent { token: token.into(), call: text(call) },
            Entry::Attempt { what, .. } => Self::Attempt { what: text(what) },
            _ => return None,
        })
    }
}

impl Disk {
    /// Over another journal than one in memory.
    pub(crate) fn over(journal: Box<dyn Journal>) -> Self {
        Self(Arc::new(Mutex::new(Inner { memory: journal, ..Inner::default() })))
    }

    pub(crate) fn fill(&self, full: bool) {
        self.0.lock().unwrap().full = full;
    }

    /// Nothing can be read either.
    pub(crate) fn fail(&self, unreadable: bool) {
        self.0.lock().unwrap().unreadable = unreadable;
    }

    /// What was written since this was last asked.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.0.lock().unwrap().seen)
    }

    /// Which calls the hub made since this was last asked.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap().calls)
    }

    pub(crate) fn position_of(&self, event_id: &str) -> Option<u64> {
        self.0.lock().unwrap().memory.position_of(event_id).unwrap().map(Position::get)
    }

    pub(crate) fn decision(&self, token: &str) -> Option<StoredDecision> {
        self.0.lock().unwrap().memory.decision(token).unwrap()
    }

    pub(crate) fn size(&self) -> u64 {
        self.0.lock().unwrap().memory.size().unwrap()
    }

    pub(crate) fn events(&self) -> Vec<StoredEvent> {
        self.0.lock().unwrap().memory.events(Position::START, 100_000).unwrap()
    }
}

impl Journal for Disk {
    fn commit(&mut self, batch: &[Entry<'_>]) -> Result<(), Error> {
        let mut inner = self.0.lock().unwrap();
        inner.calls.push("commit");
        if inner.full {
            return Err(Error::Full);
        }
        inner.memory.commit(batch)?;
        inner.seen.extend(batch.iter().filter_map(Seen::of));
        inner.seen.push(Seen::Batch);
        Ok(())
    }
    fn restore(&mut self) -> Result<Alive, Error> {
        let mut inner = self.0.lock().unwrap();
        inner.calls.push("restore");
        if inner.unreadable { Err(Error::Full) } else { inner.memory.restore() }
    }
    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.0.lock().unwrap().called("events").events(after, limit)
    }
    fn events_of(&mut self, session: &str, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.0.lock().unwrap().called("events_of").events_of(session, after, limit)
    }
    fn position_of(&mut self, event_id: &str) -> Result<Option<Position>, Error> {
        self.0.lock().unwrap().called("position_of").position_of(event_id)
    }
    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, Error> {
        self.0.lock().unwrap().memory.session(id)
    }
    fn idempotent(&mut self, principal: &str, key: &str) -> Result<Option<Remembered>, Error> {
        self.0.lock().unwrap().called("idempotent").idempotent(principal, key)
    }
    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, Error> {
        self.0.lock().unwrap().called("decision").decision(token)
    }
    fn trim(&mut self, keep: &Retention, now: UnixMillis) -> Result<Trimmed, Error> {
        self.0.lock().unwrap().called("trim").trim(keep, now)
    }
    fn size(&mut self) -> Result<u64, Error> {
        self.0.lock().unwrap().called("size").size()
    }
}
