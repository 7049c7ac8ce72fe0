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
    longest: Duration,
}

impl Backoff {
    /// Starts at `shortest`.
    pub const fn new(shortest: Duration, longest: Duration) -> Self {
        Self { delay: shortest, longest }
    }

    /// Returns the delay before the next attempt.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Doubles the delay.
    pub fn grow(&mut self) {
        self.delay = (self.delay * 2).min(self.longest);
    }
}
