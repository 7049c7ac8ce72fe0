//! Errors, grouped by how the caller can react.

use std::error;

use crate::{Position, ShardRecord};

/// The underlying error.
pub type Cause = Box<dyn error::Error + Send + Sync>;

/// Why a call failed. A failed call has no visible effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// No space is left. The caller can retry when there is space again.
    #[error("no space left for the journal")]
    Full,
    /// The file or its folder cannot be written.
    #[error("the journal cannot be written: its file or folder is read-only")]
    ReadOnly,
    /// The stored data is damaged. Nothing was changed; the files stay as they are for repair.
    #[error("the journal is damaged: {0}{cause}", cause = .1.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default())]
    Corrupt(DamageLocation, #[source] Option<Cause>),
    /// The journal is intact, but acknowledged entries are missing. Nothing was changed.
    #[error("acknowledged entries are missing from the journal: {0}")]
    EntriesLost(LossEvidence),
    /// The main file may have changed while it was copied.
    #[error("the journal's file changed while it was copied")]
    CopyInterrupted,
    /// The batch conflicts with stored data or with itself.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The journal is already open, in another process or in this one.
    #[error("the journal is already open, in this process or in another one; close it there first")]
    Busy,
    /// The file was written by a newer version.
    #[error("the journal has version {found}, but this program supports versions up to {known}")]
    NewerVersion {
        /// The file's version.
        found: i64,
        /// The newest version that this program supports.
        known: i64,
    },
    /// A valid SQLite file that is not a journal.
    #[error("the file is not a journal")]
    NotAJournal,
    /// The journal belongs to another shard, or to a hub with another number of shards.
    #[error("the journal is {found}, not {expected}")]
    WrongShard {
        /// The shard that is recorded in the journal.
        found: ShardRecord,
        /// The shard that was asked for.
        expected: ShardRecord,
    },
    /// SQLite did not accept a setting that durability depends on.
    #[error("SQLite did not accept {0}")]
    SettingRejected(&'static str),
    /// A setting of the database server would let it lose acknowledged entries.
    #[error("the database could lose acknowledged entries: {0}")]
    UnsafeSetting(String),
    /// The address of the database is invalid. The text never contains the password.
    #[error("{0}")]
    InvalidAddress(String),
    /// Another owner holds the lease of the shard.
    #[error("shard {shard} belongs to {owner} until its lease ends; stop that hub, or wait")]
    OwnedElsewhere {
        /// The shard.
        shard: i32,
        /// The owner's name.
        owner: String,
    },
    /// The database was created for another number of shards.
    #[error(
        "the database has {stored} shards, but {configured} are configured; the number is fixed when a database is first used"
    )]
    ShardCount {
        /// The number of shards of the database.
        stored: i32,
        /// The configured number.
        configured: i32,
    },
    /// Another owner has taken the shard. No part of the failed call is stored, and the journal stays unusable.
    #[error("another hub has taken over shard {shard}, so this one can no longer write to it")]
    OwnershipLost {
        /// The shard.
        shard: i32,
    },
    /// The connection broke during a commit, and the database did not answer in time whether it has the batch. The
    /// complete batch or no part of it is stored. The journal finds out before its next call does anything.
    #[error("it is not known whether the database stored the last entries: {0}")]
    OutcomeUnknown(#[source] Cause),
    /// Any other error of the database, or an I/O error.
    #[error("{0}")]
    Io(#[source] Cause),
}

/// Where damage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DamageLocation {
    /// The structure of the SQLite file.
    #[error("the file's structure is invalid")]
    File,
    /// The write-ahead log. Acknowledged entries after the damage cannot be read.
    #[error("the write-ahead log is damaged, and acknowledged entries after the damage cannot be read")]
    WriteAheadLog,
    /// The tables differ from those that this version creates.
    #[error("its tables differ from the schema")]
    Schema,
    /// An event.
    #[error("an event was altered or is missing")]
    Event,
    /// A session.
    #[error("a session was altered or is missing")]
    Session,
    /// A question or its decision.
    #[error("a question or its decision was altered")]
    Question,
    /// A subscription or its cursor.
    #[error("a subscription or its cursor was altered")]
    Subscription,
    /// An idempotency key.
    #[error("an idempotency key was altered")]
    IdempotencyKey,
    /// The manifest of an agent.
    #[error("the manifest of an agent was altered")]
    Manifest,
    /// The journal's own bookkeeping values.
    #[error("its bookkeeping values were altered or are missing")]
    BookkeepingValue,
}

/// How it is known that acknowledged entries are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LossEvidence {
    /// The journal ends before the last position that was written.
    #[error("it ends at position {}, but position {} was written", .found.get(), .written.get())]
    Position {
        /// The last position that was written.
        written: Position,
        /// The last position that was found.
        found: Position,
    },
    /// Commits without an event, such as new subscriptions, are missing.
    #[error("{missing} commits without an event are missing")]
    EventlessCommits {
        /// How many are missing.
        missing: u64,
    },
    /// The journal contains a different event at this position, so its history differs.
    #[error("the event at position {} is not the one that was written", .position.get())]
    OtherEvent {
        /// The position of the event.
        position: Position,
    },
    /// Sessions or questions are missing, or are not as they were written.
    #[error("sessions or questions are missing, or are not as they were written")]
    OtherLedger,
    /// The file that records how much was written is missing.
    #[error("the file ending in -high-water, which says how much was written, is missing")]
    HighWaterFileMissing,
    /// The file that records how much was written is damaged.
    #[error("the file ending in -high-water, which says how much was written, is damaged")]
    HighWaterFileDamaged,
}

/// A batch entry that conflicts with what is stored or with an earlier entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {entry_index} of the batch: {reason}")]
pub struct Conflict {
    /// The index of the entry in its batch, from 0.
    pub entry_index: usize,
    /// The reason for the conflict.
    pub reason: ConflictReason,
}

/// Why an entry conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConflictReason {
    /// The position is not the next one.
    #[error("its position must be {}, the next one", .expected.get())]
    PositionGap {
        /// The next position.
        expected: Position,
    },
    /// The event's id is in use.
    #[error("the event's id is already in use")]
    DuplicateEventId,
    /// A session with this id is stored, open or ended.
    #[error("the session already exists")]
    DuplicateSessionId,
    /// No open session has this id.
    #[error("the session is not open")]
    SessionNotOpen,
    /// The session still has an undecided question.
    #[error("the session has an undecided question")]
    SessionHasOpenQuestion,
    /// The token is in use.
    #[error("the token is already in use")]
    DuplicateQuestionToken,
    /// No question has this token.
    #[error("there is no such question")]
    UnknownQuestion,
    /// The question is already decided.
    #[error("the question is already decided")]
    AlreadyDecided,
    /// The question is not decided.
    #[error("the question is not decided")]
    NotDecided,
    /// The decision is already spent.
    #[error("the decision is already spent")]
    AlreadySpent,
    /// A subscription with this id is open.
    #[error("the subscription is already open")]
    DuplicateSubscriptionId,
    /// No open subscription has this id.
    #[error("the subscription is not open")]
    SubscriptionNotOpen,
    /// The cursor is beyond the last event.
    #[error("the cursor is beyond the last event")]
    CursorBeyondLastEvent,
    /// The principal has used this idempotency key before, and the response is still stored.
    #[error("the idempotency key is already in use")]
    IdempotencyKeyUsed,
}

impl JournalError {
    pub(crate) fn corrupt(location: DamageLocation) -> Self {
        Self::Corrupt(location, None)
    }
}
