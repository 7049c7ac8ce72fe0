//! Effects of a transition, for the caller.

use seal::UnixMillis;

use crate::agent_card::ConformanceLevel;
use crate::amount::Amount;
use crate::commitment::Commitment;
use crate::id::{CommitmentId, Currency, MessageId, ProposalId, Reference};
use crate::message::Urgency;
use crate::state_machine::{Role, Timer};

use super::outcome::{Payee, SessionOutcome};

/// An effect for the caller to perform, or a change to take note of. The session has already updated itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Open the session's channel.
    OpenChannel,
    /// Call [`AspSession::handle_timeout`](super::AspSession::handle_timeout) at this time, unless a later effect
    /// stops, pauses or restarts the timer.
    StartTimer {
        /// The timer.
        timer: Timer,
        /// When it expires.
        expires_at: UnixMillis,
    },
    /// The timer is stopped.
    StopTimer(Timer),
    /// All timers except the escalation timer are paused.
    PauseTimers,
    /// The paused timers are resumed.
    ResumeTimers,
    /// A timer expired. If it was the response timer, the side that awaits a response may send CLOSE or try again.
    TimerExpired {
        /// The timer.
        timer: Timer,
        /// The side that awaits a response. `None` for other timers.
        awaiting_response: Option<Role>,
    },
    /// A message that set a response time was answered, in time or late.
    ResponseReceived {
        /// The side that awaited the response.
        awaited_by: Role,
        /// How long the response was allowed to take, in milliseconds.
        limit_ms: i64,
        /// When it was due. `None` if the timer was paused, so it is not late.
        due_at: Option<UnixMillis>,
        /// When the response was sent, according to its timestamp.
        answered_at: UnixMillis,
    },
    /// The session ended, or the same side asked again, while the response to a message was overdue.
    ResponseMissed {
        /// The side that awaited the response.
        awaited_by: Role,
        /// The message that was not answered.
        message_id: MessageId,
    },
    /// Record both identities.
    RecordIdentities,
    /// Each side may now send the performatives of its level.
    EnablePerformatives([ConformanceLevel; 2]),
    /// A proposal was opened.
    ProposalOpened {
        /// The proposal.
        id: ProposalId,
        /// The side that sent it.
        by: Role,
    },
    /// A proposal was closed.
    ProposalClosed(Reference),
    /// Record the pending commitment.
    RecordPendingCommitment(Commitment),
    /// The pending commitment was dropped.
    DropPendingCommitment(CommitmentId),
    /// Record the binding agreement.
    RecordAgreement(Commitment),
    /// Hold money in escrow.
    ActivateEscrow {
        /// The commitment it is held for.
        commitment: CommitmentId,
        /// The side that pays it in.
        depositor: Role,
        /// The amount.
        amount: Amount,
        /// Its currency.
        currency: Currency,
    },
    /// Pay out the held money.
    ReleaseEscrow {
        /// The commitment it was held for.
        commitment: CommitmentId,
        /// The side that receives it.
        to: Payee,
    },
    /// Notify the handler of an escalation.
    NotifyHandler {
        /// The side that escalated.
        by: Role,
        /// The handler, if the message names one.
        handler: Option<String>,
        /// The reason.
        reason: String,
        /// The urgency.
        urgency: Urgency,
    },
    /// The session has ended.
    SessionEnded(Box<SessionOutcome>),
    /// The session is closed, so ASP's last phase, LEARN, begins. It runs inside each participant: the application may, for
    /// example, update its trust in the other side.
    Learn,
}
