//! What the caller is to do.

use seal::UnixMillis;

use crate::amount::Amount;
use crate::card::Level;
use crate::commitment::Commitment;
use crate::id::{CommitmentId, Currency, ProposalId, Reference};
use crate::machine::{Role, Timer};
use crate::message::Urgency;

use super::outcome::{Outcome, Payee};

/// Something for the caller to do, or to know. The session has done its own part already.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Make the session's channel.
    OpenChannel,
    /// Wake the session then, unless it says otherwise before.
    StartTimer {
        /// Which.
        timer: Timer,
        /// When it runs out.
        at: UnixMillis,
    },
    /// That timer no longer matters.
    StopTimer(Timer),
    /// The invitation, session and response clocks stand still.
    FreezeTimers,
    /// They go on.
    ThawTimers,
    /// A timer ran out. For the response timer, `waiting` is the side that may now CLOSE or try again.
    Expired {
        /// Which.
        timer: Timer,
        /// Who waits for an answer, if somebody does.
        waiting: Option<Role>,
    },
    /// Record who both sides are.
    RecordIdentities,
    /// Each side may now send what its level allows.
    Enable([Level; 2]),
    /// A proposal is open to be answered.
    ProposalOpened {
        /// Which.
        id: ProposalId,
        /// Whose.
        by: Role,
    },
    /// A proposal is no longer open.
    ProposalShut(Reference),
    /// Record the pending commitment.
    RecordPending(Commitment),
    /// The pending commitment is void.
    DropPending(CommitmentId),
    /// Record the binding agreement.
    RecordAgreement(Commitment),
    /// Hold the money.
    ActivateEscrow {
        /// For which commitment.
        commitment: CommitmentId,
        /// Whose money.
        depositor: Role,
        /// How much.
        amount: Amount,
        /// Of what.
        currency: Currency,
    },
    /// Give the money out.
    ReleaseEscrow {
        /// Of which commitment.
        commitment: CommitmentId,
        /// To whom.
        to: Payee,
    },
    /// Tell whoever is to decide.
    NotifyHandler {
        /// Who asks.
        by: Role,
        /// Whom, where the message says so.
        handler: Option<String>,
        /// Why.
        reason: String,
        /// How urgent.
        urgency: Urgency,
    },
    /// The session has ended.
    Ended(Box<Outcome>),
    /// Each side learns from it, for itself.
    Learn,
}
