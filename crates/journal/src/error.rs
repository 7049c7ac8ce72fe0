//! What can go wrong, sorted by what can be done about it.

use std::{error, fmt};

use crate::Position;

/// What an error came from.
pub type Cause = Box<dyn error::Error + Send + Sync>;

/// Why a call failed. In every case nothing of it is visible.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No space left. The same call may be made again when there is room.
    Full,
    /// The file or its folder cannot be written.
    ReadOnly,
    /// What is stored is damaged. Nothing was changed; the files are left for whoever repairs them.
    Corrupt(Place, Option<Cause>),
    /// The batch contradicts what is stored, or itself.
    Conflict(Conflict),
    /// Another process, or another value in this one, has the journal open.
    Busy,
    /// The file was written by a newer version.
    Newer {
        /// The file's version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// A sound file, but of something else.
    Foreign,
    /// SQLite did not accept a setting that durability stands on.
    NotDurable(&'static str),
    /// Anything else that the system reports.
    Io(Cause),
}

/// Where damage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The file's own structure.
    File,
    /// Acknowledged batches are missing from the write-ahead log.
    WriteAheadLog,
    /// The tables are not those that this version makes.
    Schema,
    /// An event, or one that should be there.
    Event,
    /// A session.
    Session,
    /// A question or its decision.
    Question,
    /// A subscription or its cursor.
    Subscription,
    /// An idempotency key.
    Key,
    /// The journal's own marks.
    Mark,
}

/// Which entry contradicts what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The place of the entry in its batch, from 0.
    pub entry: usize,
    /// What it contradicts.
    pub reason: Reason,
}

/// What an entry contradicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The position is not the next one.
    Gap {
        /// The next one.
        expected: Position,
    },
    /// The event's id is used.
    EventKnown,
    /// The session is open already, or was.
    SessionKnown,
    /// There is no open session of that id.
    SessionNotOpen,
    /// The session still has an undecided question.
    SessionStillAsks,
    /// The token is used.
    QuestionKnown,
    /// No such question was asked.
    QuestionUnknown,
    /// The question is decided.
    AlreadyDecided,
    /// The question is not decided.
    NotDecided,
    /// The decision is spent.
    AlreadySpent,
    /// The subscription is open already.
    SubscriptionKnown,
    /// There is no open subscription of that id.
    SubscriptionNotOpen,
    /// The cursor is beyond the last event.
    BeyondLast,
    /// The idempotency key is used.
    KeyUsed,
}

impl Error {
    pub(crate) fn damaged(place: Place) -> Self {
        Self::Corrupt(place, None)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("no space left for the journal"),
            Self::ReadOnly => f.write_str("the journal cannot be written: its file or folder is read-only"),
            Self::Corrupt(place, None) => write!(f, "the journal is damaged: {place}"),
            Self::Corrupt(place, Some(cause)) => write!(f, "the journal is damaged: {place} ({cause})"),
            Self::Conflict(conflict) => conflict.fmt(f),
            Self::Busy => f.write_str("the journal is open in another process"),
            Self::Newer { found, known } => {
                write!(f, "the journal has version {found}, and this program knows versions up to {known}")
            }
            Self::Foreign => f.write_str("the file is not a journal"),
            Self::NotDurable(setting) => write!(f, "SQLite did not accept {setting}"),
            Self::Io(cause) => cause.fmt(f),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Corrupt(_, Some(cause)) | Self::Io(cause) => Some(cause.as_ref()),
            _ => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "the file's structure is broken",
            Self::WriteAheadLog => "acknowledged entries are missing from the write-ahead log",
            Self::Schema => "its tables are not as they were made",
            Self::Event => "an event is changed or missing",
            Self::Session => "a session is changed or missing",
            Self::Question => "a question or its decision is changed",
            Self::Subscription => "a subscription or its cursor is changed",
            Self::Key => "an idempotency key is changed",
            Self::Mark => "its own marks are changed",
        })
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} of the batch: {}", self.entry, self.reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gap { expected } => return write!(f, "the next position is {}", expected.get()),
            Self::EventKnown => "the event's id is used",
            Self::SessionKnown => "the session exists already",
            Self::SessionNotOpen => "the session is not open",
            Self::SessionStillAsks => "the session has an undecided question",
            Self::QuestionKnown => "the token is used",
            Self::QuestionUnknown => "no such question was asked",
            Self::AlreadyDecided => "the question is decided",
            Self::NotDecided => "the question is not decided",
            Self::AlreadySpent => "the decision is spent",
            Self::SubscriptionKnown => "the subscription is open already",
            Self::SubscriptionNotOpen => "the subscription is not open",
            Self::BeyondLast => "the cursor is beyond the last event",
            Self::KeyUsed => "the idempotency key is used",
        })
    }
}
