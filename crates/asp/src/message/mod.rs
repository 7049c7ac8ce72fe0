//! Messages: the envelope, the thirteen bodies, and how one becomes bytes that prove themselves.
//!
//! - [`Body`]: what is said, by performative.
//! - [`Envelope`]: who says it to whom, when, in which session, and after what.
//! - [`Authenticator`]: bytes in, a [`Sealed`] message out, or why not.
//! - [`Draft`]: what is to be said; a [`Sealer`] makes the proof, the hash and the signature.

mod authentic;
mod body;
mod draft;
mod envelope;
mod part;

pub(crate) use authentic::hash_of;
pub use authentic::{Authenticator, Cards, Sealed};
pub use body::{
    Accept, Authority, Body, Clarify, Close, Commit, CommitTerms, Counter, Delegate, Escalate, Escrow,
    Inform, InformType, Obligation, Observe, Penalties, Percent, Propose, Query, Reject, Seconds, Urgency,
    Withdraw,
};
pub use draft::{Draft, Sealer};
pub use envelope::{
    Constraints, Content, Envelope, Integrity, Millis, Recipient, Sender, TrustScore, Version,
};
pub use part::{Malformed, Others};
pub(crate) use part::{Object, Part};
