//! Limits for stored data.

use crate::Position;

seal::defaults! {
    /// Limits for stored data. `None` means no limit.
    ///
    /// Live data is never deleted: open sessions with all their events and questions, decided or not, and open
    /// subscriptions. Everything else is deleted oldest first. An event is deleted even if a listener has not fetched
    /// it yet, because events kept for a listener that never returns would fill the disk. If a listener's cursor is
    /// before [`LiveState::trimmed_up_to`](crate::stored::LiveState::trimmed_up_to), the caller tells the listener about
    /// the gap.
    ///
    /// Decisions are deleted only by age, and idempotency keys by age and number, never to free space.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Retention {
        /// Maximum age of events and reply attempts, in milliseconds.
        pub max_event_age_ms: Option<i64> = None,
        /// Maximum age of decisions whose session has ended, in milliseconds.
        pub max_decision_age_ms: Option<i64> = None,
        /// Maximum age of idempotency keys, in milliseconds.
        pub max_idempotency_key_age_ms: Option<i64> = None,
        /// Maximum number of idempotency keys of one principal.
        pub max_idempotency_keys_per_principal: Option<u64> = None,
        /// Maximum size of the journal in bytes. Above this size, the oldest events and reply attempts are deleted.
        pub max_bytes: Option<u64> = None,
        /// How many rows of each kind one call examines, so that a commit never waits long. The limit is approximate. A
        /// journal in memory applies it only to events and reply attempts.
        pub max_rows_per_step: usize = 1000,
    }
}

/// The result of one call of [`trim`](crate::Journal::trim).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimReport {
    /// Number of deleted events.
    pub events: u64,
    /// Number of deleted reply attempts.
    pub attempts: u64,
    /// Number of deleted questions with their decisions.
    pub decisions: u64,
    /// Number of deleted idempotency keys.
    pub idempotency_keys: u64,
    /// Events up to this position may have been deleted; see
    /// [`LiveState::trimmed_up_to`](crate::stored::LiveState::trimmed_up_to).
    pub trimmed_up_to: Position,
    /// Whether there may be more to delete or more space to free. If so, call `trim` again when there is time.
    pub has_more: bool,
    /// Whether the journal exceeds [`Retention::max_bytes`] although nothing more can be deleted. To change this,
    /// end a session or raise the limit.
    pub is_over_limit: bool,
}
