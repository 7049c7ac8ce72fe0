//! Limits that hold for all shards of a hub together.
//!
//! An agent chooses the people of its sessions, and so their shards. If each shard counted for itself, an agent could
//! multiply its limits by the number of shards.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use seal::UnixMillis;

use crate::core::{PerMinuteLimiter, RateLimit};

/// The counters that all shards of a hub in one process share.
#[derive(Debug, Default)]
pub struct SharedLimits {
    /// Critical events.
    pub(crate) criticals: SharedLimiter,
    /// Questions.
    pub(crate) questions: SharedLimiter,
    /// Bytes that each token publishes.
    pub(crate) bytes: SharedLimiter,
    counts: Mutex<FxHashMap<(CountKind, Box<str>), usize>>,
}

/// A rate limiter that several threads share.
#[derive(Debug, Default)]
pub(crate) struct SharedLimiter(Mutex<PerMinuteLimiter>);

impl SharedLimiter {
    /// Whether the limit for this key allows this many more items now.
    pub(crate) fn allows(&self, key: &str, count: usize, max: usize, now: UnixMillis) -> bool {
        self.lock().allows(key, count, max, now)
    }

    /// Counts this many more items for every limit, or for none if one of them is reached, which is returned.
    pub(crate) fn acquire<'l>(
        &self,
        limits: &'l [RateLimit],
        count: usize,
        now: UnixMillis,
    ) -> Result<(), &'l RateLimit> {
        // Another shard must not count between the check and the counting.
        let mut limiter = self.lock();
        if let Some(reached) = limits.iter().find(|limit| !limiter.allows(&limit.key, count, limit.max, now))
        {
            return Err(reached);
        }
        for limit in limits {
            limiter.record(&limit.key, count, now);
        }
        Ok(())
    }

    /// Takes back what [`Self::acquire`] counted.
    pub(crate) fn release(&self, limits: &[RateLimit], count: usize, now: UnixMillis) {
        let mut limiter = self.lock();
        for limit in limits {
            limiter.take_back(&limit.key, count, now);
        }
    }

    /// Counts this many more items for this key.
    pub(crate) fn record(&self, key: &str, count: usize, now: UnixMillis) {
        self.lock().record(key, count, now);
    }

    fn lock(&self) -> MutexGuard<'_, PerMinuteLimiter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The kinds of counters. A total has an empty key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CountKind {
    /// Open sessions.
    Sessions,
    /// Open sessions of an owner.
    SessionsOfOwner,
    /// Open subscriptions.
    Subscriptions,
    /// Open questions.
    Questions,
    /// Open questions of an agent.
    QuestionsOfAgent,
    /// Open hand-offs.
    Handoffs,
    /// Open hand-offs of an agent.
    HandoffsOfAgent,
    /// Waiting requests of a principal.
    WaitsOfPrincipal,
}

/// One item to count, and the maximum for its key.
pub(crate) struct CountRequest<'k> {
    pub(crate) kind: CountKind,
    pub(crate) key: &'k str,
    pub(crate) max: usize,
}

impl SharedLimits {
    /// Counts an item under several keys until the returned guard is dropped. If a maximum is reached, counts nothing and
    /// returns its kind.
    pub(crate) fn acquire(self: &Arc<Self>, requests: &[CountRequest<'_>]) -> Result<CountGuard, CountKind> {
        let mut counts = self.lock_counts();
        for CountRequest { kind, key, max } in requests {
            if counts.get(&(*kind, Box::from(*key))).is_some_and(|count| count >= max) {
                return Err(*kind);
            }
        }
        let keys: Vec<_> =
            requests.iter().map(|request| (request.kind, Box::<str>::from(request.key))).collect();
        for key in &keys {
            *counts.entry(key.clone()).or_default() += 1;
        }
        drop(counts);
        Ok(CountGuard { limits: self.clone(), keys })
    }

    fn lock_counts(&self) -> MutexGuard<'_, FxHashMap<(CountKind, Box<str>), usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts an item until it is dropped.
#[derive(Debug)]
pub(crate) struct CountGuard {
    limits: Arc<SharedLimits>,
    keys: Vec<(CountKind, Box<str>)>,
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        let mut counts = self.limits.lock_counts();
        for key in &self.keys {
            if let Some(count) = counts.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_that_count_at_the_same_time_never_exceed_a_limit() {
        const MAX: usize = 5;
        let limit = || RateLimit {
            key: "bank".to_owned(),
            max: MAX,
            refusal: crate::command::LimitReached::Sessions,
        };
        for _ in 0..200 {
            let limiter = SharedLimiter::default();
            let acquire = || limiter.acquire(&[limit()], 1, UnixMillis::new(0)).is_ok();
            let accepted: usize = std::thread::scope(|scope| {
                let shards: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| (0..4).filter(|_| acquire()).count())).collect();
                shards.into_iter().map(|shard| shard.join().unwrap()).sum()
            });
            assert_eq!(accepted, MAX);
            limiter.release(&[limit()], 2, UnixMillis::new(1));
            assert!(limiter.acquire(&[limit()], 3, UnixMillis::new(1)).is_err());
            assert!(limiter.acquire(&[limit()], 2, UnixMillis::new(1)).is_ok());
        }
    }

    #[test]
    fn an_item_counts_under_all_its_keys_until_its_guard_is_dropped() {
        let limits = Arc::new(SharedLimits::default());
        let acquire = |owner| {
            limits.acquire(&[
                CountRequest { kind: CountKind::Sessions, key: "", max: 3 },
                CountRequest { kind: CountKind::SessionsOfOwner, key: owner, max: 2 },
            ])
        };
        let (first, _second) = (acquire("a").unwrap(), acquire("a").unwrap());
        assert_eq!(acquire("a").unwrap_err(), CountKind::SessionsOfOwner);
        let _third = acquire("b").unwrap();
        assert_eq!(acquire("b").unwrap_err(), CountKind::Sessions);
        drop(first);
        let _fourth = acquire("a").unwrap();
        assert_eq!(limits.lock_counts().len(), 3);
    }
}
