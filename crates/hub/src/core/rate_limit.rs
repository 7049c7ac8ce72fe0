//! A rate limiter with one-minute windows, for critical events, questions and bytes. Critical events and questions
//! overtake other events, so an agent with too many of them would drown out the other agents (threat T4 of §10.2.2).

use std::collections::HashMap;

use seal::UnixMillis;

/// A counter for each key, in its current window.
#[derive(Debug, Default)]
pub(crate) struct PerMinuteLimiter(HashMap<Box<str>, MinuteWindow>);

#[derive(Clone, Copy, Debug)]
struct MinuteWindow {
    started_at: UnixMillis,
    count: usize,
}

const WINDOW_MS: i64 = 60_000;
/// Number of entries above which expired windows are removed.
const PRUNE_THRESHOLD: usize = 1_024;

impl PerMinuteLimiter {
    /// Whether the limit for this key allows this many more items now.
    pub(crate) fn allows(&self, key: &str, count: usize, max: usize, now: UnixMillis) -> bool {
        let used = self.0.get(key).filter(|window| window.contains(now)).map_or(0, |window| window.count);
        count == 0 || used.saturating_add(count) <= max
    }

    /// Counts this many more items for this key.
    pub(crate) fn record(&mut self, key: &str, count: usize, now: UnixMillis) {
        if count == 0 {
            return;
        }
        if let Some(window) = self.0.get_mut(key).filter(|window| window.contains(now)) {
            window.count = window.count.saturating_add(count);
            return;
        }
        if self.0.len() >= PRUNE_THRESHOLD {
            self.0.retain(|_, window| window.contains(now));
        }
        self.0.insert(key.into(), MinuteWindow { started_at: now, count });
    }

    /// Counts this many items less for this key, if its window has not ended.
    pub(crate) fn take_back(&mut self, key: &str, count: usize, now: UnixMillis) {
        if let Some(window) = self.0.get_mut(key).filter(|window| window.contains(now)) {
            window.count = window.count.saturating_sub(count);
        }
    }
}

impl MinuteWindow {
    /// Whether the window contains this time. A clock that went back also ends the window.
    fn contains(self, now: UnixMillis) -> bool {
        (self.started_at..self.started_at.saturating_add(WINDOW_MS)).contains(&now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_window() {
        let mut limiter = PerMinuteLimiter::default();
        let at = UnixMillis::new;
        let mut acquire = |key: &str, count, now| {
            let is_allowed = limiter.allows(key, count, 3, now);
            if is_allowed {
                limiter.record(key, count, now);
            }
            is_allowed
        };
        assert!(acquire("bank", 2, at(0)));
        assert!(!acquire("bank", 2, at(1)), "2 + 2 exceeds 3");
        assert!(acquire("bank", 1, at(59_999)));
        assert!(!acquire("bank", 1, at(59_999)));
        assert!(acquire("bank", 0, at(59_999)) && acquire("post", 3, at(59_999)));
        assert!(acquire("bank", 1, at(60_000)));
        assert!(acquire("bank", 3, at(-5)), "a clock that goes back starts a new window");
    }

    #[test]
    fn expired_windows_are_removed() {
        let mut limiter = PerMinuteLimiter::default();
        for number in 0..PRUNE_THRESHOLD {
            limiter.record(&number.to_string(), 1, UnixMillis::new(0));
        }
        limiter.record("new", 1, UnixMillis::new(WINDOW_MS));
        assert_eq!(limiter.0.len(), 1);
    }
}
