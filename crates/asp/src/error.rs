//! Errors, sorted by who is at fault.

use std::fmt;

use seal::NotCanonical;
use seal::dpop::DpopError;
use seal::json::SyntaxError;

use crate::id::MessageId;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// We asked for what cannot be done; nothing was sent.
    Misuse(Misuse),
    /// What arrived does not authenticate. It is dropped and counted, and never answered (D7).
    Peer(Misbehaviour),
    /// An authenticated message that is not taken. It is answered with a REJECT and changes nothing (D6).
    Refused(Refusal),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(why) => why.fmt(f),
            Self::Peer(why) => why.fmt(f),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Misuse> for Error {
    fn from(why: Misuse) -> Self {
        Self::Misuse(why)
    }
}

impl From<Misbehaviour> for Error {
    fn from(why: Misbehaviour) -> Self {
        Self::Peer(why)
    }
}

impl From<Refusal> for Error {
    fn from(why: Refusal) -> Self {
        Self::Refused(why)
    }
}

/// Our own fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// The message would not be lawful now; the refusal that the other side would give.
    Unlawful(Refusal),
    /// The message would be longer than the limit, in bytes.
    TooLong(usize),
    /// The message has no canonical form.
    NotCanonical(NotCanonical),
    /// What was given as JSON is none.
    NotJson(SyntaxError),
    /// The keys are not those of the card.
    Keys,
    /// The system had no randomness to sign with.
    NoRandomness,
    /// The card is not one of a participant.
    NotAParticipant,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlawful(why) => write!(f, "this cannot be sent now: {}", why.reason),
            Self::TooLong(limit) => write!(f, "the message would be longer than {limit} bytes"),
            Self::NotCanonical(why) => write!(f, "the message cannot be signed: {why}"),
            Self::NotJson(why) => write!(f, "not JSON: {why}"),
            Self::Keys => f.write_str("the keys are not those that the card publishes"),
            Self::NoRandomness => f.write_str("the system has no randomness to sign with"),
            Self::NotAParticipant => f.write_str("the card is that of neither participant"),
        }
    }
}

impl std::error::Error for Misuse {}

/// The fault of whoever sent these bytes; who that was is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// Longer than the limit, in bytes.
    TooLong(usize),
    /// Not JSON.
    NotJson(SyntaxError),
    /// No canonical form, so nothing that could be signed.
    NotCanonical(NotCanonical),
    /// A member that authentication needs is missing or has another form.
    Member(&'static str),
    /// The sender is none of those whose cards are known.
    Stranger(String),
    /// `integrity.hash` is not the hash of the message.
    Hash,
    /// `integrity.signature` is not the sender's over the hash.
    Signature,
    /// `sender.dpopProof` does not prove that the sender made this message.
    Proof(DpopError),
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(limit) => write!(f, "longer than {limit} bytes"),
            Self::NotJson(why) => write!(f, "not JSON: {why}"),
            Self::NotCanonical(why) => write!(f, "nothing that could be signed: {why}"),
            Self::Member(name) => write!(f, "{name} is missing or not of its form"),
            Self::Stranger(who) => write!(f, "no card is known for the sender {who:?}"),
            Self::Hash => f.write_str("integrity.hash is not the hash of this message"),
            Self::Signature => f.write_str("integrity.signature is not the sender's over this hash"),
            Self::Proof(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for Misbehaviour {}

/// A plain refusal: what a REJECT says.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for Refusal {}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $word:literal $retry:literal;)*) => {
        /// Why something is refused: the published codes, and the two that the page and D8 add.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word on the wire.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Whether the same thing may be tried again.
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$name => $retry,)* }
            }
        }
    };
}

codes! {
    /// The sender's trust is below the receiver's threshold.
    InsufficientTrustScore "insufficient_trust_score" false;
    /// Not the sender's to say.
    Unauthorized "unauthorized" false;
    /// The message is not of a form that is understood here.
    SchemaUnsupported "schema_unsupported" false;
    /// There is not enough money for it.
    BudgetExceeded "budget_exceeded" true;
    /// No room for more.
    CapacityUnavailable "capacity_unavailable" true;
    /// Against a rule of the receiver's house.
    PolicyViolation "policy_violation" false;
    /// Too late.
    Timeout "timeout" true;
    /// Said before.
    Duplicate "duplicate" false;
    /// Somebody else must decide first.
    EscalationRequired "escalation_required" true;
    /// See the reason.
    Unspecified "unspecified" false;
    /// Not lawful in the state that the session is in.
    InvalidStateTransition "invalid_state_transition" false;
    /// Lost a race: the chain went on meanwhile (D8). Sign it again on the present head.
    StaleHead "stale_head" true;
}

impl Code {
    /// The code of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.word() == word)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
