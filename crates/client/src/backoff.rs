//! Pauses between attempts.

use std::time::Duration;

/// A pause between attempts that doubles each time, up to a longest one.
///
/// ```
/// use std::time::Duration;
/// let mut backoff = client::Backoff::new(Duration::from_secs(2), Duration::from_secs(3));
/// backoff.grow();
/// assert_eq!(backoff.pause(), Duration::from_secs(3));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pause: Duration,
    longest: Duration,
}

impl Backoff {
    /// Begins with the shortest pause.
    pub const fn new(shortest: Duration, longest: Duration) -> Self {
        Self { pause: shortest, longest }
    }

    /// The pause before the next attempt.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// Doubles the pause.
    pub fn grow(&mut self) {
        self.pause = (self.pause * 2).min(self.longest);
    }
}
