//! npayload ASP, the Agent Session Protocol, as values and machines.
//!
//! By ASP two agents negotiate and commit. This crate knows the protocol and nothing else: no sockets, no clock, no
//! threads. Time and randomness come in as arguments; effects and deadlines go out.
//!
//! - [`message`]: the envelope and the thirteen performatives, authenticated and signed.
//! - [`Card`]: who an agent is, by which keys.
//! - [`machine`]: the nine states and the one table of what moves them.
//! - [`session`]: the machine with its clocks, proposals and commitments.
//! - [`Transcript`]: the chain of messages; [`Record`]: chain and machine together, for whoever checks.
//! - [`Participant`]: one side of a live session, with its keys.
//! - [`escrow`]: money held until a promise is kept.
//! - [`Error`]: what went wrong, by who is at fault.
//!
//! `D1` to `D20` in comments are our decisions where the published page is silent or contradicts itself; `docs/asp.md`
//! has them.

mod amount;
mod card;
mod commitment;
mod error;
pub mod escrow;
mod id;
mod limits;
pub mod machine;
pub mod message;
mod participant;
mod performative;
mod record;
pub mod session;
mod transcript;

pub use amount::{Amount, AmountError};
pub use card::{Card, CardError, Level, Profile};
pub use commitment::{Commitment, Status};
pub use error::{Code, Error, Misbehaviour, Misuse, Refusal};
pub use id::{
    AgentUri, CommitmentId, Currency, IdError, MessageId, ProposalId, QueryId, Reference, SessionId,
};
pub use limits::{Limits, PROOF_SECONDS};
pub use participant::{Participant, Received, Sent, Setup};
pub use performative::Performative;
pub use record::{Admission, Checkpoint, Record};
pub use transcript::{Misfit, Point, Proof, Transcript};
