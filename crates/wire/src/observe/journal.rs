//! A journal that is watched while it commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use journal::stored::{Alive, Remembered, StoredDecision, StoredEvent, StoredSession};
use journal::{Entry, Error, Journal, Position, Retention, Trimmed};
use seal::UnixMillis;

use super::{Observe, record};

/// How often its size is looked at, at most.
const SIZED: Duration = Duration::from_secs(1);

pub(super) struct Watched {
    inner: Box<dyn Journal>,
    observe: Arc<Observe>,
    sized: Instant,
}

impl Watched {
    pub(super) fn new(mut inner: Box<dyn Journal>, observe: Arc<Observe>) -> Self {
        size(inner.as_mut(), &observe);
        Self { inner, observe, sized: Instant::now() }
    }
}

fn size(journal: &mut dyn Journal, observe: &Observe) {
    if let Ok(bytes) = journal.size() {
        observe.storage.bytes.set(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

impl Journal for Watched {
    #[allow(clippy::cast_precision_loss, reason = "a batch is never that large")]
    fn commit(&mut self, batch: &[Entry<'_>]) -> Result<(), Error> {
        let (begun_at, begun) = (SystemTime::now(), Instant::now());
        let done = self.inner.commit(batch);
        let took = begun.elapsed();
        let storage = &self.observe.storage;
        storage.seconds.add(took.as_secs_f64());
        storage.entries.add(batch.len() as f64);
        storage.fails.store(done.is_err(), Ordering::Relaxed);
        if done.is_err() {
            storage.failures.add(1);
            let now = begun_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            storage.last_failure.set(usize::try_from(now).unwrap_or(usize::MAX));
        }
        record::commit(batch.len(), took.as_micros());
        if self.sized.elapsed() >= SIZED {
            self.sized = Instant::now();
            size(self.inner.as_mut(), &self.observe);
        }
        done
    }

    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, Error> {
        self.inner.session(id)
    }

    fn restore(&mut self) -> Result<Alive, Error> {
        self.inner.restore()
    }

    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.inner.events(after, limit)
    }

    fn events_of(&mut self, session: &str, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.inner.events_of(session, after, limit)
    }

    fn position_of(&mut self, event_id: &str) -> Result<Option<Position>, Error> {
        self.inner.position_of(event_id)
    }

    fn idempotent(&mut self, principal: &str, key: &str) -> Result<Option<Remembered>, Error> {
        self.inner.idempotent(principal, key)
    }

    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, Error> {
        self.inner.decision(token)
    }

    fn trim(&mut self, keep: &Retention, now: UnixMillis) -> Result<Trimmed, Error> {
        self.inner.trim(keep, now)
    }

    fn size(&mut self) -> Result<u64, Error> {
        self.inner.size()
    }
}
