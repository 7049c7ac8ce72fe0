//! Points in time as milliseconds since 1970.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::{Duration, SystemTime};

/// A point in time, as milliseconds since 1970-01-01T00:00:00Z. Earlier times are negative. Arithmetic saturates.
///
/// Durations are `i64` milliseconds, with names that end in `_ms`.
///
/// ```
/// use seal::UnixMillis;
/// let asked_at = UnixMillis::new(1_000);
/// let deadline = asked_at.saturating_add(30_000);
/// assert_eq!(deadline.millis_since(asked_at), 30_000);
/// assert!(UnixMillis::MAX.saturating_add(1) == UnixMillis::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(i64);

impl UnixMillis {
    /// The earliest point in time.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest point in time.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates the point in time this many milliseconds after 1970-01-01T00:00:00Z.
    pub const fn new(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since 1970.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns the point in time this many milliseconds later.
    #[must_use]
    pub const fn saturating_add(self, duration_ms: i64) -> Self {
        Self(self.0.saturating_add(duration_ms))
    }

    /// Returns the point in time this many milliseconds earlier.
    #[must_use]
    pub const fn saturating_sub(self, duration_ms: i64) -> Self {
        Self(self.0.saturating_sub(duration_ms))
    }

    /// Returns the milliseconds from `earlier` to this point. Negative if this point is before `earlier`.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<i64> for UnixMillis {
    type Output = Self;

    fn add(self, duration_ms: i64) -> Self {
        self.saturating_add(duration_ms)
    }
}

impl AddAssign<i64> for UnixMillis {
    fn add_assign(&mut self, duration_ms: i64) {
        *self = *self + duration_ms;
    }
}

impl Sub<i64> for UnixMillis {
    type Output = Self;

    fn sub(self, duration_ms: i64) -> Self {
        self.saturating_sub(duration_ms)
    }
}

impl SubAssign<i64> for UnixMillis {
    fn sub_assign(&mut self, duration_ms: i64) {
        *self = *self - duration_ms;
    }
}

/// Subtracts two points, as [`UnixMillis::millis_since`] does.
impl Sub for UnixMillis {
    type Output = i64;

    fn sub(self, earlier: Self) -> i64 {
        self.millis_since(earlier)
    }
}

impl From<SystemTime> for UnixMillis {
    fn from(time: SystemTime) -> Self {
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self(millis(after)),
            Err(before) => Self(0_i64.saturating_sub(millis(before.duration()))),
        }
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
