//! npayload ASP, the Agent Session Protocol, without I/O.
//!
//! ASP lets two agents negotiate and make commitments. This crate implements the protocol only: it has no sockets, no
//! clock and no threads. Time and randomness are arguments; effects and deadlines are return values.
//!
//! - [`message`]: the envelope and the thirteen performatives, authenticated and signed.
//! - [`AgentCard`]: an agent's name and keys, signed.
//! - [`state_machine`]: the nine states and the transition table.
//! - [`session`]: the state machine with its timers, proposals and commitments.
//! - [`Transcript`]: the hash chain of messages; [`SessionRecord`]: the transcript and the session together.
//! - [`Participant`]: one side of a live session, with its keys.
//! - [`consent`]: the proof that a person agreed to a commitment.
//! - [`escrow`]: money that is held until a commitment is fulfilled.
//! - [`trust`]: how much this side trusts other agents, from its own history.
//! - [`dispute`]: complaints about accepted commitments.
//! - [`message_pack`]: a shorter encoding of messages for transports.
//! - [`AspError`]: failed calls, messages that fail authentication, and refused messages.
//!
//! In comments, "the page" is the web page on which npayload publishes the state machine. `D1` to `D34` are our decisions
//! where the page is silent or contradicts itself. They are listed in `docs/asp.md`.

mod agent_card;
mod amount;
mod commitment;
pub mod consent;
pub mod dispute;
mod error;
pub mod escrow;
mod id;
mod limits;
pub mod message;
pub mod message_pack;
mod participant;
mod performative;
pub mod session;
mod session_record;
pub mod state_machine;
mod transcript;
pub mod trust;

pub use agent_card::{AgentCard, AgentCardError, AgentEndpoints, AgentProfile, ConformanceLevel};
pub use amount::{Amount, AmountError};
pub use commitment::{Commitment, CommitmentStatus, ResultReport, ResultVerdict};
pub use error::{AspError, AuthenticationError, LocalError, Refusal, RejectCode};
pub use id::{
    AgentUri, CommitmentId, Currency, DisputeId, IdError, MessageId, ProposalId, QueryId, Reference,
    SessionId,
};
pub use limits::{AspLimits, LEAVING_RESERVE_BYTES, MAX_CLOCK_SKEW_SECONDS};
pub use participant::{
    OutgoingMessage, Participant, ParticipantConfig, ReceiveOutcome, RestoreError, SentMessage, StoredStep,
};
pub use performative::Performative;
pub use session_record::{Admission, Checkpoint, SessionRecord};
pub use transcript::{AppendError, ChainPosition, InclusionProof, Transcript};
