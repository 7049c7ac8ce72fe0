//! What a connection of the dialect may make the hub remember.

use std::time::Duration;

/// What is taken of a connection of the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Questions that are remembered as told to it; an answer to a forgotten one speaks for its present terms.
    pub questions: usize,
    /// Events that are remembered as told, so that a change of terms tells none of them again.
    pub told: usize,
    /// Earlier subscriptions that wait for answers; beyond that they do not.
    pub earlier: usize,
    /// Answers to a handshake that may wait for their stream.
    pub answers: usize,
    /// Whoever posts before its stream is open has so long to open it, and then misses nothing.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { questions: 64, told: 256, earlier: 16, answers: 16, patience: Duration::from_secs(2) }
    }
}
