//! Facts about a peer from which trust is computed.

use seal::UnixMillis;

use crate::dispute::Severity;
use crate::id::{AgentUri, CommitmentId, DisputeId, SessionId};
use crate::message::TrustScore;

/// One fact about a peer. The caller stores the events and replays them after a restart.
///
/// Record only what the peer's pinned keys prove, or what this side observed itself. A message that merely names the peer
/// proves nothing: otherwise any agent could lower the peer's score (D7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustEvent {
    /// The agent that the event is about.
    pub peer: AgentUri,
    /// When it happened, by this side's clock.
    pub at: UnixMillis,
    /// The session in which it happened, if any.
    pub session_id: Option<SessionId>,
    /// What happened.
    pub kind: TrustEventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustEventKind {
    /// A session with an agreement ended, and the peer did not break the agreement.
    SessionCompleted,
    /// A session without an agreement ended in an orderly way.
    SessionClosed,
    /// The peer withdrew from an agreement, let the session time out, or ended it with a fatal error.
    SessionAbandoned,
    /// The peer answered a message that set `maxResponseTimeMs`. It counts as late if it took longer.
    MessageAnswered {
        /// How long the answer took, in milliseconds.
        response_ms: u64,
        /// How long it was allowed to take, in milliseconds.
        limit_ms: u64,
    },
    /// The session ended without an answer to a message that set `maxResponseTimeMs`.
    ResponseMissed,
    /// The peer fulfilled all its obligations of a commitment in time.
    CommitmentKept(CommitmentId),
    /// The peer fulfilled all its obligations, some after their deadline.
    CommitmentLate(CommitmentId),
    /// The peer broke a commitment.
    CommitmentBroken(CommitmentId),
    /// A dispute against the peer was upheld (D28).
    DisputeLost {
        /// The dispute.
        dispute_id: DisputeId,
        /// The severity that was decided, not the one that was claimed.
        severity: Severity,
    },
    /// The peer sent an authentic message that is not allowed. Messages that lost a race (`stale_head`) do not count.
    ProtocolViolation,
    /// The peer sent an authentic message that links to an unknown hash (D7).
    ChainBroken,
    /// The connection was proven to be the peer's, but a message on it was not authentic.
    AuthenticationFailed,
    /// The operator of this side pinned the peer's card.
    CardPinned,
    /// The peer's card was pinned on first contact.
    CardTrustedOnFirstUse,
    /// The peer changed its keys, and both the old and the new keys signed the new card.
    CardRotated,
    /// The peer sent, in an authentic message, a card that is not the pinned one.
    CardMismatched,
    /// The peer's card was revoked. Its identity counts as unverified until a card is pinned again.
    CardRevoked,
    /// The peer funded the escrow of a commitment.
    EscrowFunded(CommitmentId),
    /// The peer promised an escrow that it could not cover.
    EscrowUnfunded(CommitmentId),
    /// The peer lost its escrow, because it broke a commitment.
    EscrowForfeited(CommitmentId),
    /// Another agent endorsed the peer. Use [`TrustBook::endorsement`](super::TrustBook::endorsement) to create this event.
    EndorsementReceived {
        /// The agent that endorses the peer.
        endorser: AgentUri,
        /// This side's own score of the endorser at that time, without the endorser's own endorsements.
        endorser_score: TrustScore,
        /// Whether both agents belong to the same organization.
        is_same_organization: bool,
    },
}

seal::string_enum! {
    /// The name under which an event is stored and counted.
    #[non_exhaustive]
    TrustEventName {
        /// [`TrustEventKind::SessionCompleted`].
        SessionCompleted "session_completed",
        /// [`TrustEventKind::SessionClosed`].
        SessionClosed "session_closed",
        /// [`TrustEventKind::SessionAbandoned`].
        SessionAbandoned "session_abandoned",
        /// [`TrustEventKind::MessageAnswered`] in time.
        MessageAnswered "message_answered",
        /// [`TrustEventKind::MessageAnswered`] after the limit.
        MessageAnsweredLate "message_answered_late",
        /// [`TrustEventKind::ResponseMissed`].
        ResponseMissed "response_missed",
        /// [`TrustEventKind::CommitmentKept`].
        CommitmentKept "commitment_kept",
        /// [`TrustEventKind::CommitmentLate`].
        CommitmentLate "commitment_late",
        /// [`TrustEventKind::CommitmentBroken`].
        CommitmentBroken "commitment_broken",
        /// [`TrustEventKind::DisputeLost`].
        DisputeLost "dispute_lost",
        /// [`TrustEventKind::ProtocolViolation`].
        ProtocolViolation "protocol_violation",
        /// [`TrustEventKind::ChainBroken`].
        ChainBroken "chain_broken",
        /// [`TrustEventKind::AuthenticationFailed`].
        AuthenticationFailed "authentication_failed",
        /// [`TrustEventKind::CardPinned`].
        CardPinned "card_pinned",
        /// [`TrustEventKind::CardTrustedOnFirstUse`].
        CardTrustedOnFirstUse "card_trusted_on_first_use",
        /// [`TrustEventKind::CardRotated`].
        CardRotated "card_rotated",
        /// [`TrustEventKind::CardMismatched`].
        CardMismatched "card_mismatched",
        /// [`TrustEventKind::CardRevoked`].
        CardRevoked "card_revoked",
        /// [`TrustEventKind::EscrowFunded`].
        EscrowFunded "escrow_funded",
        /// [`TrustEventKind::EscrowUnfunded`].
        EscrowUnfunded "escrow_unfunded",
        /// [`TrustEventKind::EscrowForfeited`].
        EscrowForfeited "escrow_forfeited",
        /// [`TrustEventKind::EndorsementReceived`].
        EndorsementReceived "endorsement_received",
    }
}

impl TrustEventKind {
    /// Returns the name under which the event is stored and counted.
    pub fn name(&self) -> TrustEventName {
        match self {
            Self::SessionCompleted => TrustEventName::SessionCompleted,
            Self::SessionClosed => TrustEventName::SessionClosed,
            Self::SessionAbandoned => TrustEventName::SessionAbandoned,
            Self::MessageAnswered { response_ms, limit_ms } if response_ms > limit_ms => {
                TrustEventName::MessageAnsweredLate
            }
            Self::MessageAnswered { .. } => TrustEventName::MessageAnswered,
            Self::ResponseMissed => TrustEventName::ResponseMissed,
            Self::CommitmentKept(_) => TrustEventName::CommitmentKept,
            Self::CommitmentLate(_) => TrustEventName::CommitmentLate,
            Self::CommitmentBroken(_) => TrustEventName::CommitmentBroken,
            Self::DisputeLost { .. } => TrustEventName::DisputeLost,
            Self::ProtocolViolation => TrustEventName::ProtocolViolation,
            Self::ChainBroken => TrustEventName::ChainBroken,
            Self::AuthenticationFailed => TrustEventName::AuthenticationFailed,
            Self::CardPinned => TrustEventName::CardPinned,
            Self::CardTrustedOnFirstUse => TrustEventName::CardTrustedOnFirstUse,
            Self::CardRotated => TrustEventName::CardRotated,
            Self::CardMismatched => TrustEventName::CardMismatched,
            Self::CardRevoked => TrustEventName::CardRevoked,
            Self::EscrowFunded(_) => TrustEventName::EscrowFunded,
            Self::EscrowUnfunded(_) => TrustEventName::EscrowUnfunded,
            Self::EscrowForfeited(_) => TrustEventName::EscrowForfeited,
            Self::EndorsementReceived { .. } => TrustEventName::EndorsementReceived,
        }
    }
}

impl TrustEventName {
    /// Returns whether the event raises trust. Such an event never lowers a score, and other events never raise one.
    pub fn is_good(self) -> bool {
        matches!(
            self,
            Self::SessionCompleted
                | Self::SessionClosed
                | Self::MessageAnswered
                | Self::CommitmentKept
                | Self::CardPinned
                | Self::CardTrustedOnFirstUse
                | Self::CardRotated
                | Self::EscrowFunded
                | Self::EndorsementReceived
        )
    }

    /// Returns whether the event shows that the peer itself is active, which stops the decay of its evidence.
    pub(super) fn is_activity(self) -> bool {
        matches!(
            self,
            Self::SessionCompleted
                | Self::SessionClosed
                | Self::MessageAnswered
                | Self::CommitmentKept
                | Self::EscrowFunded
        )
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}
