//! A journal wrapper that measures commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use journal::stored::{LiveState, StoredDecision, StoredEvent, StoredResponse, StoredSession};
use journal::{Journal, JournalEntry, JournalError, Position, Retention, TrimReport};
use seal::UnixMillis;

use super::{Telemetry, log_record};

/// Minimum interval between two reads of the journal's size.
const SIZE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct InstrumentedJournal {
    inner: Box<dyn Journal>,
    telemetry: Arc<Telemetry>,
    size_read_at: Instant,
}

impl InstrumentedJournal {
    pub(super) fn new(mut inner: Box<dyn Journal>, telemetry: Arc<Telemetry>) -> Self {
        update_size(inner.as_mut(), &telemetry);
        Self { inner, telemetry, size_read_at: Instant::now() }
    }
}

fn update_size(journal: &mut dyn Journal, telemetry: &Telemetry) {
    if let Ok(bytes) = journal.size_bytes() {
        telemetry.storage.journal_bytes.set(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

impl Journal for InstrumentedJournal {
    #[allow(clippy::cast_precision_loss, reason = "a batch is never that large")]
    fn commit(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError> {
        let (started_at, started) = (SystemTime::now(), Instant::now());
        let result = self.inner.commit(batch);
        let elapsed = started.elapsed();
        let storage = &self.telemetry.storage;
        storage.commit_seconds.add(elapsed.as_secs_f64());
        storage.commit_entries.add(batch.len() as f64);
        storage.is_failing.store(result.is_err(), Ordering::Relaxed);
        if result.is_err() {
            storage.failures.add(1);
            let now = started_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            storage.last_failure_unix_seconds.set(usize::try_from(now).unwrap_or(usize::MAX));
        }
        log_record::commit(batch.len(), elapsed.as_micros());
        if self.size_read_at.elapsed() >= SIZE_INTERVAL {
            self.size_read_at = Instant::now();
            update_size(self.inner.as_mut(), &self.telemetry);
        }
        result
    }

    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, JournalError> {
        self.inner.session(id)
    }

    fn restore(&mut self) -> Result<LiveState, JournalError> {
        self.inner.restore()
    }

    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, JournalError> {
        self.inner.events(after, limit)
    }

    fn session_events(
        &mut self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.inner.session_events(session, after, limit)
    }

    fn event_position(&mut self, event_id: &str) -> Result<Option<Position>, JournalError> {
        self.inner.event_position(event_id)
    }

    fn stored_response(
        &mut self,
        principal: &str,
        key: &str,
    ) -> Result<Option<StoredResponse>, JournalError> {
        self.inner.stored_response(principal, key)
    }

    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, JournalError> {
        self.inner.decision(token)
    }

    fn trim(&mut self, retention: &Retention, now: UnixMillis) -> Result<TrimReport, JournalError> {
        self.inner.trim(retention, now)
    }

    fn pause_checkpoints(&mut self) -> Result<(), JournalError> {
        self.inner.pause_checkpoints()
    }

    fn resume_checkpoints(&mut self) -> Result<(), JournalError> {
        self.inner.resume_checkpoints()
    }

    fn size_bytes(&mut self) -> Result<u64, JournalError> {
        self.inner.size_bytes()
    }
}
