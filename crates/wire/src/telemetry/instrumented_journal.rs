//! A journal wrapper that measures commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use journal::stored::{LiveState, StoredDecision, StoredEvent, StoredResponse, StoredSession};
use journal::{Journal, JournalEntry, JournalError, Position, Retention, TrimReport};
use seal::UnixMillis;

use super::{JournalMetrics, Telemetry, in_shard, log_record};

/// Minimum interval between two reads of the journal's size.
const SIZE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct InstrumentedJournal {
    inner: Box<dyn Journal>,
    telemetry: Arc<Telemetry>,
    metrics: Arc<JournalMetrics>,
    /// The number of the shard, if there are several.
    shard: Option<u16>,
    size_read_at: Instant,
}

impl InstrumentedJournal {
    pub(super) fn new(
        mut inner: Box<dyn Journal>,
        telemetry: Arc<Telemetry>,
        metrics: Arc<JournalMetrics>,
        shard: Option<u16>,
    ) -> Self {
        update_size(inner.as_mut(), &metrics);
        Self { inner, telemetry, metrics, shard, size_read_at: Instant::now() }
    }
}

fn update_size(journal: &mut dyn Journal, metrics: &JournalMetrics) {
    if let Ok(bytes) = journal.size_bytes() {
        metrics.bytes.set(usize::try_from(bytes).unwrap_or(usize::MAX));
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
        self.metrics.is_failing.store(result.is_err(), Ordering::Relaxed);
        if result.is_err() {
            storage.failures.add(1);
            let now = started_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            storage.last_failure_unix_seconds.set(usize::try_from(now).unwrap_or(usize::MAX));
        }
        in_shard(self.shard, || log_record::commit(batch.len(), elapsed.as_micros()));
        if self.size_read_at.elapsed() >= SIZE_INTERVAL {
            self.size_read_at = Instant::now();
            update_size(self.inner.as_mut(), &self.metrics);
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
