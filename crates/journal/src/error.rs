//! What can go wrong, sorted by what can be done about it.

use std::error;

use crate::Position;

/// What an error came from.
pub type Cause = Box<dyn error::Error + Send + Sync>;

/// Why a call failed. In every case nothing of it is visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No space left. The same call may be made again when there is room.
    #[error("no space left for the journal")]
    Full,
    /// The file or its folder cannot be written.
    #[error("the journal cannot be written: its file or folder is read-only")]
    ReadOnly,
    /// What is stored is damaged. Nothing was changed; the files are left for whoever repairs them.
    #[error("the journal is damaged: {0}{cause}", cause = .1.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default())]
    Corrupt(Place, #[source] Option<Cause>),
    /// The batch contradicts what is stored, or itself.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// Another process, or another value in this one, has the journal open.
    #[error("the journal is open in another process")]
    Busy,
    /// The file was written by a newer version.
    #[error("the journal has version {found}, and this program knows versions up to {known}")]
    Newer {
        /// The file's version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// A sound file, but of something else.
    #[error("the file is not a journal")]
    Foreign,
    /// SQLite did not accept a setting that durability stands on.
    #[error("SQLite did not accept {0}")]
    NotDurable(&'static str),
    /// Anything else that the system reports.
    #[error("{0}")]
    Io(#[source] Cause),
}

/// Where damage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Place {
    /// The file's own structure.
    #[error("the file's structure is broken")]
    File,
    /// Acknowledged batches are missing from the write-ahead log.
    #[error("acknowledged entries are missing from the write-ahead log")]
    WriteAheadLog,
    /// The tables are not those that this version makes.
    #[error("its tables are not as they were made")]
    Schema,
    /// An event, or one that should be there.
    #[error("an event is changed or missing")]
    Event,
    /// A session.
    #[error("a session is changed or missing")]
    Session,
    /// A question or its decision.
    #[error("a question or its decision is changed")]
    Question,
    /// A subscription or its cursor.
    #[error("a subscription or its cursor is changed")]
    Subscription,
    /// An idempotency key.
    #[error("an idempotency key is changed")]
    Key,
    /// The journal's own marks.
    #[error("its own marks are changed")]
    Mark,
}

/// Which entry contradicts what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {entry} of the batch: {reason}")]
pub struct Conflict {
    /// The place of the entry in its batch, from 0.
    pub entry: usize,
    /// What it contradicts.
    pub reason: Reason,
}

/// What an entry contradicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The position is not the next one.
    #[error("the next position is {}", .expected.get())]
    Gap {
        /// The next one.
        expected: Position,
    },
    /// The event's id is used.
    #[error("the event's id is used")]
    EventKnown,
    /// The session is open already, or was.
    #[error("the session exists already")]
    SessionKnown,
    /// There is no open session of that id.
    #[error("the session is not open")]
    SessionNotOpen,
    /// The session still has an undecided question.
    #[error("the session has an undecided question")]
    SessionStillAsks,
    /// The token is used.
    #[error("the token is used")]
    QuestionKnown,
    /// No such question was asked.
    #[error("no such question was asked")]
    QuestionUnknown,
    /// The question is decided.
    #[error("the question is decided")]
    AlreadyDecided,
    /// The question is not decided.
    #[error("the question is not decided")]
    NotDecided,
    /// The decision is spent.
    #[error("the decision is spent")]
    AlreadySpent,
    /// The subscription is open already.
    #[error("the subscription is open already")]
    SubscriptionKnown,
    /// There is no open subscription of that id.
    #[error("the subscription is not open")]
    SubscriptionNotOpen,
    /// The cursor is beyond the last event.
    #[error("the cursor is beyond the last event")]
    BeyondLast,
    /// The idempotency key is used.
    #[error("the idempotency key is used")]
    KeyUsed,
}

impl Error {
    pub(crate) fn damaged(place: Place) -> Self {
        Self::Corrupt(place, None)
    }
}
