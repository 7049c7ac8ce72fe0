//! Errors, sorted by who is at fault.

use seal::NotCanonical;
use seal::dpop::DpopError;
use seal::json::SyntaxError;

use crate::id::MessageId;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// We asked for what cannot be done; nothing was sent.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// What arrived does not authenticate. It is dropped and counted, and never answered (D7).
    #[error(transparent)]
    Peer(#[from] Misbehaviour),
    /// An authenticated message that is not taken. It is answered with a REJECT and changes nothing (D6).
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Our own fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The message would not be lawful now; the refusal that the other side would give.
    #[error("this cannot be sent now: {}", .0.reason)]
    Unlawful(#[source] Refusal),
    /// The message would be longer than the limit, in bytes.
    #[error("the message would be longer than {0} bytes")]
    TooLong(usize),
    /// The message has no canonical form.
    #[error("the message cannot be signed: {0}")]
    NotCanonical(#[source] NotCanonical),
    /// What was given as JSON is none.
    #[error("not JSON: {0}")]
    NotJson(#[source] SyntaxError),
    /// The keys are not those of the card.
    #[error("the keys are not those that the card publishes")]
    Keys,
    /// The system had no randomness to sign with.
    #[error("the system has no randomness to sign with")]
    NoRandomness,
    /// The card is not one of a participant.
    #[error("the card is that of neither participant")]
    NotAParticipant,
}

/// The fault of whoever sent these bytes; who that was is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// Longer than the limit, in bytes.
    #[error("longer than {0} bytes")]
    TooLong(usize),
    /// Not JSON.
    #[error("not JSON: {0}")]
    NotJson(#[source] SyntaxError),
    /// No canonical form, so nothing that could be signed.
    #[error("nothing that could be signed: {0}")]
    NotCanonical(#[source] NotCanonical),
    /// A member that authentication needs is missing or has another form.
    #[error("{0} is missing or not of its form")]
    Member(&'static str),
    /// The sender is none of those whose cards are known.
    #[error("no card is known for the sender {0:?}")]
    Stranger(String),
    /// `integrity.hash` is not the hash of the message.
    #[error("integrity.hash is not the hash of this message")]
    Hash,
    /// `integrity.signature` is not the sender's over the hash.
    #[error("integrity.signature is not the sender's over this hash")]
    Signature,
    /// `sender.dpopProof` does not prove that the sender made this message.
    #[error(transparent)]
    Proof(DpopError),
}

/// A plain refusal: what a REJECT says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct Refusal {
    /// The code for machines.
    pub code: Code,
    /// The reason for people.
    pub reason: String,
    /// The message that is refused, where it could be read.
    pub message: Option<MessageId>,
}

impl Refusal {
    pub(crate) fn new(code: Code, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: None }
    }
}

seal::word_enum! {
    /// Why something is refused: the published codes, and the two that the page and D8 add.
    #[non_exhaustive]
    Code word {
        /// The sender's trust is below the receiver's threshold.
        InsufficientTrustScore "insufficient_trust_score",
        /// Not the sender's to say.
        Unauthorized "unauthorized",
        /// The message is not of a form that is understood here.
        SchemaUnsupported "schema_unsupported",
        /// There is not enough money for it.
        BudgetExceeded "budget_exceeded",
        /// No room for more.
        CapacityUnavailable "capacity_unavailable",
        /// Against a rule of the receiver's house.
        PolicyViolation "policy_violation",
        /// Too late.
        Timeout "timeout",
        /// Said before.
        Duplicate "duplicate",
        /// Somebody else must decide first.
        EscalationRequired "escalation_required",
        /// See the reason.
        Unspecified "unspecified",
        /// Not lawful in the state that the session is in.
        InvalidStateTransition "invalid_state_transition",
        /// Lost a race: the chain went on meanwhile (D8). Sign it again on the present head.
        StaleHead "stale_head",
    }
}
