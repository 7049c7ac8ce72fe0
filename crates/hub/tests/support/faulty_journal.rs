//! A journal for tests that survives a restart of the hub, fails on demand, and records calls and entries.

use std::sync::{Arc, Mutex};

use journal::stored::{LiveState, StoredDecision, StoredEvent, StoredResponse, StoredSession};
use journal::{Journal, JournalEntry, JournalError, MemoryJournal, Position, Retention, TrimReport};
use seal::UnixMillis;

/// A journal that survives a restart of the hub and can fail on demand.
#[derive(Clone, Default)]
pub(crate) struct FaultyJournal(Arc<Mutex<Inner>>);

struct Inner {
    journal: Box<dyn Journal>,
    fails_writes: bool,
    fails_reads: bool,
    /// Changes what `restore` returns.
    alter_restored: Option<fn(&mut LiveState)>,
    written: Vec<RecordedEntry>,
    calls: Vec<&'static str>,
}

impl Inner {
    /// Records a call and returns the inner journal.
    fn record_call(&mut self, name: &'static str) -> &mut dyn Journal {
        self.calls.push(name);
        &mut *self.journal
    }
}

impl Default for Inner {
    fn default() -> Self {
        let journal = Box::new(MemoryJournal::default());
        Self {
            journal,
            fails_writes: false,
            fails_reads: false,
            alter_restored: None,
            written: Vec::new(),
            calls: Vec::new(),
        }
    }
}

/// An entry that was written, for assertions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordedEntry {
    Event {
        position: u64,
        id: String,
        body: String,
    },
    QuestionOpened {
        token: String,
        deadline: UnixMillis,
    },
    DeadlineMoved {
        token: String,
        deadline: UnixMillis,
    },
    QuestionDecided {
        token: String,
        decision: String,
        by: String,
    },
    DecisionSpent {
        token: String,
        call: String,
    },
    ReplyAttempted {
        result: String,
    },
    /// The end of a batch.
    BatchEnd,
}

impl RecordedEntry {
    fn of(entry: &JournalEntry<'_>) -> Option<Self> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Some(match *entry {
            JournalEntry::Event { position, event_id, body, .. } => {
                Self::Event { position: position.get(), id: event_id.into(), body: text(body) }
            }
            JournalEntry::QuestionOpened { token, deadline, .. } => {
                Self::QuestionOpened { token: token.into(), deadline }
            }
            JournalEntry::DeadlineMoved { token, deadline } => {
                Self::DeadlineMoved { token: token.into(), deadline }
            }
            JournalEntry::QuestionDecided { token, decision, decided_by: by, .. } => {
                Self::QuestionDecided { token: token.into(), decision: decision.into(), by: by.into() }
            }
            JournalEntry::DecisionSpent { token, call, .. } => {
                Self::DecisionSpent { token: token.into(), call: text(call) }
            }
            JournalEntry::ReplyAttempted { details, .. } => Self::ReplyAttempted { result: text(details) },
            _ => return None,
        })
    }
}

impl FaultyJournal {
    /// Wraps a journal other than the in-memory one.
    pub(crate) fn over(journal: Box<dyn Journal>) -> Self {
        Self(Arc::new(Mutex::new(Inner { journal, ..Inner::default() })))
    }

    /// Sets whether `commit` fails.
    pub(crate) fn fail_writes(&self, fails: bool) {
        self.0.lock().unwrap().fails_writes = fails;
    }

    /// Sets whether `restore` fails.
    pub(crate) fn fail_reads(&self, fails: bool) {
        self.0.lock().unwrap().fails_reads = fails;
    }

    /// Sets how what `restore` returns is changed, as by a damaged or an older journal.
    pub(crate) fn alter_restored(&self, alter: Option<fn(&mut LiveState)>) {
        self.0.lock().unwrap().alter_restored = alter;
    }

    /// Takes the entries that were written since the last call.
    pub(crate) fn take_written(&self) -> Vec<RecordedEntry> {
        std::mem::take(&mut self.0.lock().unwrap().written)
    }

    /// Takes the names of the journal calls since the last call.
    pub(crate) fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap().calls)
    }

    pub(crate) fn position_of(&self, event_id: &str) -> Option<u64> {
        self.0.lock().unwrap().journal.event_position(event_id).unwrap().map(Position::get)
    }

    pub(crate) fn decision(&self, token: &str) -> Option<StoredDecision> {
        self.0.lock().unwrap().journal.decision(token).unwrap()
    }

    pub(crate) fn size(&self) -> u64 {
        self.0.lock().unwrap().journal.size_bytes().unwrap()
    }

    pub(crate) fn events(&self) -> Vec<StoredEvent> {
        self.0.lock().unwrap().journal.events(Position::START, 100_000).unwrap()
    }
}

impl Journal for FaultyJournal {
    fn commit(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError> {
        let mut inner = self.0.lock().unwrap();
        inner.calls.push("commit");
        if inner.fails_writes {
            return Err(JournalError::Full);
        }
        inner.journal.commit(batch)?;
        inner.written.extend(batch.iter().filter_map(RecordedEntry::of));
        inner.written.push(RecordedEntry::BatchEnd);
        Ok(())
    }
    fn restore(&mut self) -> Result<LiveState, JournalError> {
        let mut inner = self.0.lock().unwrap();
        inner.calls.push("restore");
        if inner.fails_reads {
            return Err(JournalError::Full);
        }
        let mut state = inner.journal.restore()?;
        if let Some(alter) = inner.alter_restored {
            alter(&mut state);
        }
        Ok(state)
    }
    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, JournalError> {
        self.0.lock().unwrap().record_call("events").events(after, limit)
    }
    fn session_events(
        &mut self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.0.lock().unwrap().record_call("session_events").session_events(session, after, limit)
    }
    fn event_position(&mut self, event_id: &str) -> Result<Option<Position>, JournalError> {
        self.0.lock().unwrap().record_call("event_position").event_position(event_id)
    }
    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, JournalError> {
        self.0.lock().unwrap().journal.session(id)
    }
    fn stored_response(
        &mut self,
        principal: &str,
        key: &str,
    ) -> Result<Option<StoredResponse>, JournalError> {
        self.0.lock().unwrap().record_call("stored_response").stored_response(principal, key)
    }
    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, JournalError> {
        self.0.lock().unwrap().record_call("decision").decision(token)
    }
    fn trim(&mut self, retention: &Retention, now: UnixMillis) -> Result<TrimReport, JournalError> {
        self.0.lock().unwrap().record_call("trim").trim(retention, now)
    }
    fn pause_checkpoints(&mut self) -> Result<(), JournalError> {
        self.0.lock().unwrap().record_call("pause_checkpoints").pause_checkpoints()
    }
    fn resume_checkpoints(&mut self) -> Result<(), JournalError> {
        self.0.lock().unwrap().record_call("resume_checkpoints").resume_checkpoints()
    }
    fn size_bytes(&mut self) -> Result<u64, JournalError> {
        self.0.lock().unwrap().record_call("size_bytes").size_bytes()
    }
}
