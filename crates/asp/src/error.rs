//! Errors: failed calls of this side, messages that fail authentication, and refused messages.

use seal::CanonicalError;
use seal::dpop::DpopError;
use seal::json::SyntaxError;

use crate::id::MessageId;

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AspError {
    /// A call failed on this side. Nothing was sent.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// A received message failed authentication. It is dropped, counted and never answered (D7).
    #[error(transparent)]
    Unauthenticated(#[from] AuthenticationError),
    /// An authenticated message was refused. It is answered with a REJECT and changes nothing (D6).
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// An error on this side, before anything was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The message is malformed or not allowed now. Contains the refusal that the other side would send.
    #[error("the message cannot be sent: {}", .0.reason)]
    NotAllowed(#[source] Refusal),
    /// The message would exceed the limit, in bytes.
    #[error("the message would be longer than {0} bytes")]
    TooLong(usize),
    /// The message has no canonical form.
    #[error("the message cannot be signed: {0}")]
    NotCanonical(#[source] CanonicalError),
    /// The draft contains invalid JSON.
    #[error("the message contains invalid JSON: {0}")]
    NotJson(#[source] SyntaxError),
    /// The keys do not match the card.
    #[error("the keys do not match the card")]
    KeyMismatch,
    /// The system provided no randomness to sign with.
    #[error("the system provided no randomness to sign with")]
    NoRandomness,
    /// No session has begun, or the agent to invite has no pinned card or is this agent itself.
    #[error("there is no peer: no session has begun, or no card is pinned for the agent to invite")]
    NoPeer,
}

/// Why received bytes failed authentication. Their sender is therefore unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// The message exceeds the limit, in bytes.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// The message is not JSON.
    #[error("not JSON: {0}")]
    NotJson(#[source] SyntaxError),
    /// The message has no canonical form, so its hash cannot be computed.
    #[error("the message has no canonical form: {0}")]
    NotCanonical(#[source] CanonicalError),
    /// A member that authentication needs is missing or malformed.
    #[error("{0} is missing or malformed")]
    InvalidMember(&'static str),
    /// No card is known for the sender.
    #[error("no card is known for the sender {0:?}")]
    UnknownSender(String),
    /// `integrity.hash` is not the hash of the message.
    #[error("integrity.hash is not the hash of this message")]
    HashMismatch,
    /// `integrity.signature` is not the sender's signature over the hash.
    #[error("integrity.signature is not the sender's signature over this hash")]
    InvalidSignature,
    /// `sender.dpopProof` does not prove that the sender created this message.
    #[error(transparent)]
    InvalidProof(DpopError),
}

/// Why a message was refused. The REJECT contains the same information.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct Refusal {
    /// The machine-readable code.
    pub code: RejectCode,
    /// The reason, for people.
    pub reason: String,
    /// The refused message, if its id could be read.
    pub message_id: Option<MessageId>,
}

impl Refusal {
    /// Creates a refusal that names no message.
    pub fn new(code: RejectCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message_id: None }
    }
}

seal::string_enum! {
    /// The code of a refusal. The last two are not in the published list of codes: the page about the state machine uses
    /// `invalid_state_transition`, and D8 adds `stale_head`.
    #[non_exhaustive]
    RejectCode {
        /// The sender's trust is below the receiver's threshold.
        InsufficientTrustScore "insufficient_trust_score",
        /// The sender is not authorized to send this.
        Unauthorized "unauthorized",
        /// The message is malformed or has an unsupported format.
        SchemaUnsupported "schema_unsupported",
        /// There is not enough money.
        BudgetExceeded "budget_exceeded",
        /// The receiver has reached a limit.
        CapacityUnavailable "capacity_unavailable",
        /// A policy of the receiver forbids the message.
        PolicyViolation "policy_violation",
        /// The message came too late.
        Timeout "timeout",
        /// The message was received before.
        Duplicate "duplicate",
        /// Another authority must decide first.
        EscalationRequired "escalation_required",
        /// None of the other codes applies. The text states the reason.
        Unspecified "unspecified",
        /// The message is not allowed in the current state of the session.
        InvalidStateTransition "invalid_state_transition",
        /// The message lost a race: the chain has advanced (D8). Sign it again on the current head.
        StaleHead "stale_head",
    }
}
