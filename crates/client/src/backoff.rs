//! Exponential backoff.

use std::time::Duration;

/// Exponential backoff: a delay that doubles up to a maximum.
///
/// ```
/// use std::time::Duration;
/// let mut backoff = client::Backoff::new(Duration::from_secs(2), Duration::from_secs(3));
/// backoff.grow();
/// assert_eq!(backoff.delay(), Duration::from_secs(3));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    delay: Duration,
    max_delay: Duration,
}

impl Backoff {
    /// Creates a backoff that starts with `initial_delay`.
    pub const fn new(initial_delay: Duration, max_delay: Duration) -> Self {
        Self { delay: initial_delay, max_delay }
    }

    /// Returns the delay before the next attempt.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Doubles the delay, up to the maximum.
    pub fn grow(&mut self) {
        self.delay = (self.delay * 2).min(self.max_delay);
    }
}
