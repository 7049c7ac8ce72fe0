//! Rate limits by trust level.

use seal::UnixMillis;
use thiserror::Error;

use super::level::TrustLevel;

const MINUTE_MS: u64 = 60_000;

/// The rate limits of one trust level. 0 allows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelLimits {
    /// Maximum number of messages per minute, in all sessions with the peer.
    pub messages_per_minute: u32,
    /// Maximum number of invitations per minute.
    pub invitations_per_minute: u32,
    /// Maximum size of all messages per minute, in bytes. One larger message passes if none came in the minute before it.
    pub bytes_per_minute: u32,
}

/// The rate limits of each trust level (D26).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerLimits {
    /// The limits of levels 0 to 4.
    pub by_level: [LevelLimits; TrustLevel::ALL.len()],
}

impl Default for PeerLimits {
    fn default() -> Self {
        let limits = |messages_per_minute, invitations_per_minute, mebibytes: u32| LevelLimits {
            messages_per_minute,
            invitations_per_minute,
            bytes_per_minute: mebibytes * 1024 * 1024,
        };
        Self {
            by_level: [
                limits(30, 2, 2),
                limits(120, 10, 8),
                limits(600, 30, 32),
                limits(1_800, 60, 128),
                limits(6_000, 120, 512),
            ],
        }
    }
}

impl PeerLimits {
    /// Returns the limits of a level.
    pub fn of(&self, level: TrustLevel) -> LevelLimits {
        self.by_level[level.index()]
    }
}

/// The rate limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the rate limit is reached; try again in {retry_after_ms} ms")]
pub struct RateLimited {
    /// How long to wait, in milliseconds.
    pub retry_after_ms: u64,
}

/// A token bucket for one peer and one kind of action. It allows as many actions at once as it allows per minute. A clock that
/// goes back adds no tokens.
///
/// ```
/// use asp::trust::TokenBucket;
/// use seal::UnixMillis;
/// let mut bucket = TokenBucket::default();
/// assert!(bucket.take(1, UnixMillis::new(0)).is_ok());
/// assert_eq!(bucket.take(1, UnixMillis::new(0)).unwrap_err().retry_after_ms, 60_000);
/// assert!(bucket.take(1, UnixMillis::new(60_000)).is_ok());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// The used tokens, in 60 000ths of a token. A rate of `n` per minute gives back `n` of them per millisecond.
    used: u64,
    updated_at: Option<UnixMillis>,
}

impl TokenBucket {
    /// Takes one token. The rate may differ from call to call, because the peer's level may change.
    pub fn take(&mut self, per_minute: u32, now: UnixMillis) -> Result<(), RateLimited> {
        self.take_many(1, per_minute, now)
    }

    /// Takes several tokens at once. If they are more than a full bucket has, a full bucket is enough.
    pub fn take_many(&mut self, count: u32, per_minute: u32, now: UnixMillis) -> Result<(), RateLimited> {
        let rate = u64::from(per_minute);
        if rate == 0 {
            return Err(RateLimited { retry_after_ms: u64::MAX });
        }
        let elapsed_ms = self.updated_at.map_or(0, |at| now.millis_since(at).max(0).unsigned_abs());
        self.updated_at = self.updated_at.max(Some(now));
        let capacity = rate * MINUTE_MS;
        self.used = self.used.saturating_sub(elapsed_ms.saturating_mul(rate)).min(capacity);
        let used = self.used + u64::from(count.min(per_minute)) * MINUTE_MS;
        if used > capacity {
            return Err(RateLimited { retry_after_ms: (used - capacity).div_ceil(rate) });
        }
        self.used = used;
        Ok(())
    }
}
