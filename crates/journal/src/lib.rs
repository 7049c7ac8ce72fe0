//! The hub's durable log and consent ledger.
//!
//! - [`Journal`]: the trait, and in its comment the contract that `tests/contract` holds every implementation to.
//! - [`Entry`]: what can be written, and when an entry is refused.
//! - [`stored`]: what can be read back.
//! - [`Retention`]: what may be forgotten.
//! - [`Error`]: sorted by what can be done about it.
//! - [`Memory`] and [`Sqlite`]: the implementations.
//!
//! Records, bodies, receipts and calls are bytes that only the caller understands. The journal knows disks, not AAEP: it
//! keeps apart open and ended, undecided and decided, unspent and spent, and nothing else.
//!
//! ```
//! use journal::{Entry, Journal, Memory, Position};
//! use seal::UnixMillis;
//!
//! let (at, lease) = (UnixMillis::new(0), UnixMillis::new(60_000));
//! let mut journal = Memory::default();
//! journal.commit(&[
//!     Entry::SessionOpened { id: "s", agent: "bank", principal: "token-1", lease, record: b"{}" },
//!     Entry::Event { position: Position::new(1), session: "s", event_id: "e", at, critical: false, body: b"{}" },
//! ])?;
//! assert_eq!(journal.position_of("e")?, Some(Position::new(1)));
//! # Ok::<(), journal::Error>(())
//! ```

mod entry;
mod error;
mod memory;
mod retention;
mod sqlite;
pub mod stored;

pub use entry::{Entry, Position};
pub use error::{Cause, Conflict, Error, Place, Reason};
pub use memory::Memory;
pub use retention::{Retention, Trimmed};
use seal::UnixMillis;
pub use sqlite::{Settings, Sqlite};
use stored::{Alive, Remembered, StoredDecision, StoredEvent, StoredSession};

/// A log of events and a ledger of consent, written by one thread.
///
/// **Atomic.** A batch is all or nothing. When one entry conflicts with what is stored, or with an earlier entry of the
/// same batch, nothing of the batch is there, and [`Conflict::entry`] says which one it was. To consume a token, decide and
/// record is one batch: [`Entry::Decided`] beside the [`Entry::Event`] that tells of it.
///
/// **Durable.** When [`commit`](Self::commit) returns `Ok`, the batch outlives the process and the power ([`Memory`]: it
/// lives as long as the value). Group commit is the caller's: whatever waits goes into one batch, which costs one
/// synchronisation. When it returns an error, nothing of the batch is visible through this value. Only after a crash right
/// then may a batch that failed for another reason than a conflict turn out to be there, and then whole.
///
/// **After an error** the journal goes on if it can: after [`Error::Conflict`] always, after [`Error::Full`] when there is
/// room again. After [`Error::Corrupt`] nothing read from it should be believed.
///
/// **Twice.** Reading may be repeated at will. [`Entry::Cursor`], [`Entry::SessionTouched`], [`Entry::SubscriptionChanged`]
/// and [`Entry::DeadlineMoved`] may be written again with the same content. Every other entry happens once, and a second
/// time is a conflict. [`restore`](Self::restore) may be called at any time and tells the state of now.
///
/// **Order.** Positions are given by the caller, each one more than the last, beginning at 1; they are never used again,
/// even when everything was trimmed. Reading gives events in the order of their positions.
pub trait Journal: Send {
    /// Writes all of the batch or nothing; it is durable when this returns `Ok`. An empty batch does nothing.
    fn commit(&mut self, batch: &[Entry<'_>]) -> Result<(), Error>;

    /// What is alive, in time proportional to it and not to what is stored.
    fn restore(&mut self) -> Result<Alive, Error>;

    /// Up to `limit` events after this position. Beyond [`Alive::floor`] none is missing; up to it, only events of open
    /// sessions may be left.
    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error>;

    /// Up to `limit` events of one session after this position. An unknown session has none.
    fn events_of(&mut self, session: &str, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error>;

    /// Where the event with this id is; `None` if it never was or was trimmed.
    fn position_of(&mut self, event_id: &str) -> Result<Option<Position>, Error>;

    /// The session of this id, open or ended; `None` if it never was or was trimmed. One with questions that are kept is kept.
    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, Error>;

    /// What was answered when this principal used this key before.
    fn idempotent(&mut self, principal: &str, key: &str) -> Result<Option<Remembered>, Error>;

    /// The decision on this question; `None` if it is open, never was, or was trimmed. `None` never means yes.
    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, Error>;

    /// Forgets what is older or more than `keep` says, a bounded step at a time; see [`Retention`] for what it spares.
    fn trim(&mut self, keep: &Retention, now: UnixMillis) -> Result<Trimmed, Error>;

    /// The bytes that the journal takes where it is stored.
    fn size(&mut self) -> Result<u64, Error>;
}
