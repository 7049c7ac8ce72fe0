//! The hub's durable log and consent ledger.
//!
//! - [`Journal`]: the trait. Its documentation is the contract, which `tests/contract` checks for every implementation.
//! - [`JournalEntry`]: the entries that can be written, and their preconditions.
//! - [`stored`]: the records that can be read back.
//! - [`Retention`]: the limits for stored data.
//! - [`JournalError`]: errors, grouped by how the caller can react.
//! - [`MemoryJournal`] and [`SqliteJournal`]: the implementations. `PostgresJournal` needs the feature `postgres`.
//!
//! Records, bodies, receipts and calls are opaque bytes. The journal does not know AAEP. It only tracks whether
//! sessions are open or ended, questions undecided or decided, and decisions unspent or spent.
//!
//! ```
//! use journal::{JournalEntry, Journal, MemoryJournal, Position};
//! use seal::UnixMillis;
//!
//! let mut journal = MemoryJournal::default();
//! journal.commit(&[
//!     JournalEntry::SessionOpened {
//!         id: "s",
//!         agent: "bank",
//!         principal: "token-1",
//!         lease_expires_at: UnixMillis::new(60_000),
//!         record: b"{}",
//!     },
//!     JournalEntry::Event {
//!         position: Position::new(1),
//!         session: "s",
//!         event_id: "e",
//!         at: UnixMillis::new(0),
//!         is_critical: false,
//!         body: b"{}",
//!     },
//! ])?;
//! assert_eq!(journal.event_position("e")?, Some(Position::new(1)));
//! # Ok::<(), journal::JournalError>(())
//! ```

mod entry;
mod error;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod retention;
mod shard_record;
mod sqlite;
pub mod stored;

pub use entry::{JournalEntry, Position};
pub use error::{Cause, Conflict, ConflictReason, DamageLocation, JournalError, LossEvidence};
pub use memory::MemoryJournal;
#[cfg(feature = "postgres")]
pub use postgres::{
    ClusterEvent, ClusterMember, ClusterNode, ClusterTable, ImportReport, ImportedText, LeaseSettings,
    PostgresDatabase, PostgresJournal, PostgresSettings, PostgresTimeouts, ShardLease, ShardOwner,
    SharedText, SharedTexts,
};
pub use retention::{Retention, TrimReport};
use seal::UnixMillis;
pub use shard_record::ShardRecord;
pub use sqlite::{SqliteJournal, SqliteSettings};
use stored::{LiveState, StoredDecision, StoredEvent, StoredResponse, StoredSession};

/// A log of events and a ledger of consent, written by one thread.
///
/// **Atomicity.** A batch is written completely or not at all, so a [`JournalEntry::QuestionDecided`] and the
/// [`JournalEntry::Event`] that reports the decision are never stored without each other. If an entry conflicts with
/// what is stored, or with an earlier entry of the same batch, no part of the batch is written.
/// [`Conflict::entry_index`] says which entry conflicted.
///
/// **Durability.** When [`commit`](Self::commit) returns `Ok`, the batch survives a crash of the process and a power
/// failure. A [`MemoryJournal`] loses all batches when it is dropped. For group commit, the caller puts all waiting
/// entries into one batch, which costs one fsync. When `commit` returns an error, no part of the batch can be read from
/// this journal. There are two exceptions. If the process crashes right after an error other than a conflict, the complete
/// batch may be present when the journal is reopened. After [`JournalError::OutcomeUnknown`], the complete batch may be
/// present when the journal answers again, so the caller must discard its state and call [`restore`](Self::restore).
///
/// **After an error** the journal continues if it can: always after [`JournalError::Conflict`], and after
/// [`JournalError::Full`] when there is space again. After [`JournalError::Corrupt`], nothing that is read from the
/// journal can be trusted. After [`JournalError::OwnershipLost`], every call fails with the same error.
///
/// **Repetition.** Reads can be repeated. [`JournalEntry::CursorMoved`], [`JournalEntry::SessionTouched`],
/// [`JournalEntry::SubscriptionChanged`], [`JournalEntry::DeadlineMoved`] and [`JournalEntry::ManifestStored`] can be
/// written again with the same content. Writing any other entry a second time is a conflict, except for [`JournalEntry::ReplyAttempted`], which
/// adds another attempt. [`restore`](Self::restore) can be called at any time and returns the current state.
///
/// **Order.** The caller assigns positions, each one more than the last, starting at 1. A position is never reused,
/// even after all events were trimmed. Reading returns events in position order.
pub trait Journal: Send {
    /// Writes the entire batch or nothing. The batch is durable when this returns `Ok`. An empty batch does nothing.
    fn commit(&mut self, batch: &[JournalEntry<'_>]) -> Result<(), JournalError>;

    /// Returns the live state. The time that this takes does not depend on the number of stored events.
    fn restore(&mut self) -> Result<LiveState, JournalError>;

    /// Returns up to `limit` events after this position. All events after [`LiveState::trimmed_up_to`] are stored. Up
    /// to that position, only the events of open sessions are certain to be stored.
    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, JournalError>;

    /// Returns up to `limit` events of one session after this position. Empty for an unknown session.
    fn session_events(
        &mut self,
        session: &str,
        after: Position,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError>;

    /// Returns the position of the event with this id, or `None` if it never existed or was trimmed.
    fn event_position(&mut self, event_id: &str) -> Result<Option<Position>, JournalError>;

    /// Returns the session with this id, open or ended, or `None` if it never existed or was trimmed. A session is
    /// stored at least as long as its questions.
    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, JournalError>;

    /// Returns the stored response for this principal and idempotency key, if any.
    fn stored_response(&mut self, principal: &str, key: &str)
    -> Result<Option<StoredResponse>, JournalError>;

    /// Returns the decision on this question, or `None` if the question is undecided, never existed or was trimmed.
    /// `None` never means acceptance.
    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, JournalError>;

    /// Deletes what exceeds the limits of `retention`, in one bounded step. See [`Retention`] for what is never
    /// deleted.
    fn trim(&mut self, retention: &Retention, now: UnixMillis) -> Result<TrimReport, JournalError>;

    /// Moves everything into the journal's main file and keeps that file unchanged until
    /// [`resume_checkpoints`](Self::resume_checkpoints), so that another process can copy it. During the pause,
    /// new entries make the write-ahead log longer. Does nothing if the journal has no file.
    fn pause_checkpoints(&mut self) -> Result<(), JournalError>;

    /// Ends the pause. Fails if there was no pause, or if the main file may have changed since
    /// [`pause_checkpoints`](Self::pause_checkpoints). In both cases, a copy of the file may be damaged.
    fn resume_checkpoints(&mut self) -> Result<(), JournalError>;

    /// Returns the size of the stored journal, in bytes.
    fn size_bytes(&mut self) -> Result<u64, JournalError>;
}
