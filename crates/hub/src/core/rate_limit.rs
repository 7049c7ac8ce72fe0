//! A rate limiter with one-minute windows per agent and person. Critical events and questions overtake other events,
//! so an agent with too many of them would drown out the others (threat T4 of §10.2.2).

use std::collections::HashMap;

use seal::UnixMillis;

/// A counter for each pair of agent and person, in its current window.
#[derive(Debug, Default)]
pub(super) struct PerMinuteLimiter(HashMap<Box<str>, MinuteWindow>);

#[derive(Clone, Copy, Debug)]
struct MinuteWindow {
    started_at: UnixMillis,
    count: usize,
}

const WINDOW_MS: i64 = 60_000;
/// Number of entries above which expired windows are removed.
const PRUNE_THRESHOLD: usize = 1_024;

impl PerMinuteLimiter {
    /// Whether the limit for this key allows one more item now.
    pub(super) fn allows_one_more(&self, key: &str, max: usize, now: UnixMillis) -> bool {
        self.0.get(key).filter(|window| window.contains(now)).is_none_or(|window| window.count < max)
    }

    /// Counts `count` more items for this key. If that would exceed `max` in this window, counts nothing and returns
    /// `false`.
    pub(super) fn try_acquire(&mut self, key: &str, count: usize, max: usize, now: UnixMillis) -> bool {
        if count == 0 {
            return true;
        }
        let window = self.0.get(key).filter(|window| window.contains(now)).copied();
        let window = window.unwrap_or(MinuteWindow { started_at: now, count: 0 });
        let count = window.count.saturating_add(count);
        if count > max {
            return false;
        }
        if self.0.len() >= PRUNE_THRESHOLD {
            self.0.retain(|_, window| window.contains(now));
        }
        self.0.insert(key.into(), MinuteWindow { count, ..window });
        true
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
    fn each_agent_has_its_own_window() {
        let mut limiter = PerMinuteLimiter::default();
        let (bank, post) = ("bank", "post");
        assert!(limiter.try_acquire(bank, 2, 3, UnixMillis::new(0)));
        assert!(!limiter.try_acquire(bank, 2, 3, UnixMillis::new(1)), "2 + 2 exceeds 3");
        assert!(limiter.try_acquire(bank, 1, 3, UnixMillis::new(59_999)));
        assert!(!limiter.try_acquire(bank, 1, 3, UnixMillis::new(59_999)));
        assert!(
            limiter.try_acquire(bank, 0, 3, UnixMillis::new(59_999))
                && limiter.try_acquire(post, 3, 3, UnixMillis::new(59_999))
        );
        assert!(
            !limiter.allows_one_more(bank, 3, UnixMillis::new(59_999))
                && limiter.allows_one_more(post, 4, UnixMillis::new(59_999))
        );
        assert!(
            limiter.allows_one_more(bank, 3, UnixMillis::new(60_000))
                && limiter.try_acquire(bank, 1, 3, UnixMillis::new(60_000))
        );
        assert!(
            limiter.try_acquire(bank, 3, 3, UnixMillis::new(-5)),
            "a clock that goes back starts a new window"
        );
    }

    #[test]
    fn expired_windows_are_removed() {
        let mut limiter = PerMinuteLimiter::default();
        for number in 0..PRUNE_THRESHOLD {
            assert!(limiter.try_acquire(&number.to_string(), 1, 1, UnixMillis::new(0)));
        }
        assert!(limiter.try_acquire("new", 1, 1, UnixMillis::new(WINDOW_MS)));
        assert_eq!(limiter.0.len(), 1);
    }
}
