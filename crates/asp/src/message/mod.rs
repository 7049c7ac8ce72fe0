//! Messages: the envelope, the thirteen bodies, authentication and signing.
//!
//! - [`Body`]: the content of a message, by performative.
//! - [`Envelope`]: the sender, recipient, time, session and chain link of a message.
//! - [`Authenticator`]: turns received bytes into an [`AuthenticatedMessage`].
//! - [`MessageDraft`]: an unsigned message. A [`MessageSigner`] adds the proof, the hash and the signature.

mod authentication;
mod body;
mod codec;
mod draft;
mod envelope;

pub(crate) use authentication::message_hash;
pub use authentication::{AuthenticatedMessage, Authenticator, PinnedCards};
pub use body::{
    Accept, Authority, Body, Clarify, Close, Commit, CommitTerms, Consent, Counter, Delegate,
    DurationSeconds, Escalate, Escrow, Inform, InformType, Obligation, Observe, Penalties, Percent, Propose,
    Query, Reject, Urgency, Withdraw,
};
pub use codec::{ExtraMembers, MalformedMessage};
pub(crate) use codec::{JsonCodec, ObjectReader};
pub use draft::{MessageDraft, MessageSigner};
pub use envelope::{
    Constraints, Content, DurationMillis, Envelope, Integrity, ProtocolVersion, Recipient, Sender, TrustScore,
};
