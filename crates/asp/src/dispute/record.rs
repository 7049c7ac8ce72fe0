//! The record of a dispute, and the checks before it is filed.

use seal::{Timestamp, UnixMillis};
use thiserror::Error;

use super::evidence::Evidence;
use super::severity::Severity;
use crate::commitment::{Commitment, CommitmentStatus};
use crate::id::{AgentUri, CommitmentId, DisputeId, MessageId, SessionId};
use crate::session_record::SessionRecord;
use crate::state_machine::Role;
use crate::transcript::max_clock_skew_ms;

seal::string_enum! {
    /// The reason for a dispute.
    DisputeReason {
        /// A deadline passed, and the accused agent sent no INFORM(result). Decided automatically.
        DeadlinePassed "deadline-passed",
        /// The result differs from the agreed terms.
        FulfillmentMismatch "fulfillment-mismatch",
        /// The result was announced, but not delivered.
        NonDelivery "non-delivery",
        /// The accused agent got the escrow without fulfilling its obligations. Decided automatically.
        ReleaseWithoutFulfillment "release-without-fulfillment",
        /// The accused agent changed the terms without consent.
        TermsChanged "terms-changed",
    }
}

/// A dispute that an agent wants to file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisputeFiling {
    /// The id of the new dispute.
    pub dispute_id: DisputeId,
    /// The commitment.
    pub commitment_id: CommitmentId,
    /// The agent that complains.
    pub filed_by: AgentUri,
    /// The reason.
    pub reason: DisputeReason,
    /// The severity that the agent claims. The decision can be less severe, but not more.
    pub severity: Severity,
    /// An explanation, for people.
    pub statement: Option<String>,
    /// Messages of the session that support the complaint, besides the COMMIT, its ACCEPT and the result.
    pub messages: Vec<MessageId>,
    /// When it is filed.
    pub filed_at: Timestamp,
}

/// The record of a dispute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispute {
    /// Its id.
    pub dispute_id: DisputeId,
    /// The session.
    pub session_id: SessionId,
    /// The commitment.
    pub commitment_id: CommitmentId,
    /// The agent that complains.
    pub filed_by: AgentUri,
    /// The accused agent: the other party of the session.
    pub filed_against: AgentUri,
    /// The reason.
    pub reason: DisputeReason,
    /// The severity that the agent claims.
    pub severity: Severity,
    /// An explanation, for people.
    pub statement: Option<String>,
    /// The messages that prove the complaint.
    pub evidence: Evidence,
    /// When it was filed.
    pub filed_at: Timestamp,
}

/// Why a dispute cannot be filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FilingError {
    /// The dispute is about another session.
    #[error("the dispute is about another session")]
    OtherSession,
    /// The agent is not a party of the session.
    #[error("only a party of the session can file a dispute")]
    NotAParty,
    /// The accused agent is not the other party of the session.
    #[error("a dispute is filed against the other party of the session")]
    NotTheOtherParty,
    /// The commitment was not accepted in this session.
    #[error("a dispute can only be filed about a commitment that was accepted in this session")]
    NotAccepted,
    /// The reason is a passed deadline, but no deadline of the accused agent has passed.
    #[error("no deadline of the accused agent has passed")]
    NoDeadlinePassed,
    /// The reason is about a result, but the accused agent sent none.
    #[error("the accused agent sent no result")]
    NoResult,
    /// The reason is about an escrow, but the commitment has none.
    #[error("the commitment has no escrow")]
    NoEscrow,
    /// `filedAt` is more than 300 s in the future, so a deadline could seem to have passed.
    #[error("the dispute was filed in the future")]
    FiledInFuture,
    /// A message is not in the transcript, or its hash differs, or there are too many messages.
    #[error("the evidence does not match the transcript")]
    EvidenceNotInTranscript,
}

impl Dispute {
    /// Files a dispute about an accepted commitment of a session. The evidence is collected from the transcript.
    pub fn file(filing: DisputeFiling, record: &SessionRecord) -> Result<Self, FilingError> {
        let role = record.role_of(&filing.filed_by).ok_or(FilingError::NotAParty)?;
        let filed_against = record.session().party(role.other()).agent.clone();
        accepted_commitment(record, &filing.commitment_id)?;
        let evidence =
            Evidence::collect(record.transcript(), &filing.commitment_id, &filed_against, &filing.messages)?;
        let dispute = Self {
            dispute_id: filing.dispute_id,
            session_id: record.session_id(),
            commitment_id: filing.commitment_id,
            filed_by: filing.filed_by,
            filed_against,
            reason: filing.reason,
            severity: filing.severity,
            statement: filing.statement,
            evidence,
            filed_at: filing.filed_at,
        };
        dispute.check_reason(record)?;
        Ok(dispute)
    }

    /// Checks a dispute from the other side, using this side's own record of the session.
    pub fn check(&self, record: &SessionRecord, now: UnixMillis) -> Result<(), FilingError> {
        if self.session_id != record.session_id() {
            return Err(FilingError::OtherSession);
        }
        let role = record.role_of(&self.filed_by).ok_or(FilingError::NotAParty)?;
        if record.session().party(role.other()).agent != self.filed_against {
            return Err(FilingError::NotTheOtherParty);
        }
        if self.filed_at.unix_millis() > now.saturating_add(max_clock_skew_ms()) {
            return Err(FilingError::FiledInFuture);
        }
        accepted_commitment(record, &self.commitment_id)?;
        self.evidence.check(record.transcript(), &self.commitment_id, &self.filed_against)?;
        self.check_reason(record)
    }

    /// Checks that the reason can apply to the commitment at all.
    fn check_reason(&self, record: &SessionRecord) -> Result<(), FilingError> {
        let commitment = accepted_commitment(record, &self.commitment_id)?;
        match self.reason {
            DisputeReason::DeadlinePassed => {
                let filed_at = self.filed_at.unix_millis();
                let mut obligations = commitment.obligations();
                let has_passed = obligations.any(|(obligation, _)| {
                    obligation.party == self.filed_against && obligation.deadline.unix_millis() < filed_at
                });
                if has_passed { Ok(()) } else { Err(FilingError::NoDeadlinePassed) }
            }
            DisputeReason::FulfillmentMismatch | DisputeReason::NonDelivery => {
                self.evidence.delivered_result.map(|_| ()).ok_or(FilingError::NoResult)
            }
            DisputeReason::ReleaseWithoutFulfillment => {
                commitment.commit().escrow.as_ref().map(|_| ()).ok_or(FilingError::NoEscrow)
            }
            DisputeReason::TermsChanged => Ok(()),
        }
    }

    pub(super) fn accused_role(&self, record: &SessionRecord) -> Option<Role> {
        record.role_of(&self.filed_against)
    }
}

/// Returns the commitment, if it was accepted in this session.
pub(super) fn accepted_commitment<'r>(
    record: &'r SessionRecord,
    id: &CommitmentId,
) -> Result<&'r Commitment, FilingError> {
    let session = record.session();
    let ended = session.outcome().and_then(|outcome| outcome.commitment.as_ref());
    session
        .commitment()
        .or(ended)
        .filter(|commitment| commitment.commit().commitment_id == *id)
        .filter(|commitment| {
            !matches!(commitment.status(), CommitmentStatus::Pending | CommitmentStatus::Withdrawn)
        })
        .ok_or(FilingError::NotAccepted)
}
