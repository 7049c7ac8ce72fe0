//! Errors, grouped by who is at fault.

use std::time::Duration;

use asp::{LocalError, Refusal, SessionId};
use journal::JournalError;
use thiserror::Error;

/// Why a request to the node failed. A failed request has no effect.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The session does not exist.
    #[error("there is no such session")]
    UnknownSession,
    /// The peer's card is neither pinned nor known.
    #[error("the card of {0} is not pinned")]
    UnknownPeer(String),
    /// The peer's card cannot be fetched or is invalid.
    #[error("the card at {0} cannot be used: {1}")]
    UnusableCard(String, String),
    /// The peer's card cannot be fetched now.
    #[error("the card at {0} cannot be fetched: {1}")]
    CardUnavailable(String, String),
    /// The request is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The message may not be sent now, or the peer or a person refused it.
    #[error("{0}")]
    Refused(Refusal),
    /// This node's own keys, clock or card do not permit the message.
    #[error(transparent)]
    Local(LocalError),
    /// Another message waits for a person's answer.
    #[error("another message of this session waits for a person's answer")]
    AwaitingConsent,
    /// A limit is reached.
    #[error("{0}")]
    LimitReached(&'static str),
    /// The journal cannot be written.
    #[error("the journal cannot be written: {0}")]
    Storage(#[from] JournalError),
    /// The stored session cannot be restored.
    #[error("the stored session {0} cannot be restored: {1}")]
    DamagedSession(SessionId, String),
    /// The message continues messages that this node has lost, and they cannot be fetched now.
    #[error("the messages before this one cannot be fetched now: {reason}")]
    CatchingUp {
        /// Why not.
        reason: String,
        /// When the sender should try again.
        retry_after: Duration,
    },
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
}

impl NodeError {
    pub(crate) fn catching_up(reason: &str, retry_after: Duration) -> Self {
        Self::CatchingUp { reason: reason.to_owned(), retry_after }
    }
}
