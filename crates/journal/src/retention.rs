//! What may be forgotten.

use crate::Position;

seal::defaults! {
    /// How much is kept. `None` keeps all.
    ///
    /// What is alive is never forgotten: open sessions with all their events, their questions, decided or not, and open
    /// subscriptions. Everything else goes oldest first. That a listener has not fetched an event yet does not keep it, or one
    /// that never returns would fill the disk: the caller sees that a cursor is before [`Alive::floor`](crate::stored::Alive),
    /// and tells the listener that there is a gap.
    ///
    /// Decisions and keys go by their own age only, never for want of space.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Retention {
        /// How old events and attempts may get, in milliseconds.
        pub events: Option<i64> = None,
        /// How old decisions may get once their session has ended.
        pub decisions: Option<i64> = None,
        /// How old idempotency keys may get.
        pub keys: Option<i64> = None,
        /// How many bytes the journal may take; beyond that the oldest events and attempts go.
        pub bytes: Option<u64> = None,
        /// How many rows of a kind one call looks at, so that a commit need not wait long for it.
        pub step: usize = 1000,
    }
}

/// What one call of [`trim`](crate::Journal::trim) did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Events forgotten.
    pub events: u64,
    /// Attempts forgotten.
    pub attempts: u64,
    /// Questions with their decisions forgotten.
    pub decisions: u64,
    /// Idempotency keys forgotten.
    pub keys: u64,
    /// Up to here events may be missing from now on, as [`Alive::floor`](crate::stored::Alive) says.
    pub floor: Position,
    /// There is more to do: call again when there is time.
    pub more: bool,
    /// More than [`Retention::bytes`], and nothing is left that may go: end a session, or allow more.
    pub over: bool,
}
