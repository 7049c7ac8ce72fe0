//! Automatic decisions.

use seal::Timestamp;

use super::record::{Dispute, DisputeReason, FilingError, accepted_commitment};
use super::resolution::{Resolution, Resolver, Verdict};
use super::severity::Severity;
use crate::commitment::Commitment;
use crate::escrow::EscrowStatus;
use crate::session::Payee;
use crate::session_record::SessionRecord;

/// The result of [`Dispute::decide`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The dispute is decided.
    Decided(Resolution),
    /// A person must decide.
    NeedsPerson,
}

impl Dispute {
    /// Decides the dispute from the session, if its reason allows that (D28). `escrow` is the status of the escrow; `None`
    /// if that is not known. The result depends only on facts that both sides have, so both sides reach the same decision.
    pub fn decide(
        &self,
        record: &SessionRecord,
        escrow: Option<EscrowStatus>,
        now: Timestamp,
    ) -> Result<Decision, FilingError> {
        if self.session_id != record.session_id() {
            return Err(FilingError::OtherSession);
        }
        let commitment = accepted_commitment(record, &self.commitment_id)?;
        let verdict = match self.reason {
            DisputeReason::DeadlinePassed => Some(self.decide_deadline(commitment)),
            DisputeReason::ReleaseWithoutFulfillment => self.decide_release(commitment, record, escrow),
            DisputeReason::FulfillmentMismatch | DisputeReason::NonDelivery | DisputeReason::TermsChanged => {
                None
            }
        };
        Ok(verdict.map_or(Decision::NeedsPerson, |(verdict, explanation)| {
            Decision::Decided(Resolution {
                dispute_id: self.dispute_id.clone(),
                verdict,
                resolved_by: Resolver::Automatic,
                explanation: explanation.to_owned(),
                resolved_at: now,
            })
        }))
    }

    /// Decides a dispute about a deadline. It is upheld if a deadline passed without a result. It is dismissed if a result was
    /// reported before the dispute was filed, even a late one. A late result lowers trust in any case.
    fn decide_deadline(&self, commitment: &Commitment) -> (Verdict, &'static str) {
        let filed_at = self.filed_at.unix_millis();
        let is_overdue = commitment.obligations().any(|(obligation, result)| {
            obligation.party == self.filed_against
                && obligation.deadline.unix_millis() < filed_at
                && result.is_none_or(|result| result.reported_at > filed_at)
        });
        if is_overdue {
            (self.upheld(Severity::MODERATE), "a deadline passed without a result")
        } else {
            (Verdict::Dismissed, "the result was sent before the dispute was filed")
        }
    }

    /// The accused agent got the escrow, did not fulfil its obligations, and the depositor did not break the agreement: upheld.
    fn decide_release(
        &self,
        commitment: &Commitment,
        record: &SessionRecord,
        escrow: Option<EscrowStatus>,
    ) -> Option<(Verdict, &'static str)> {
        let depositor = commitment.sender();
        let accused = self.accused_role(record)?;
        let to = match escrow? {
            EscrowStatus::Held => return Some((Verdict::Dismissed, "the escrow was not paid out")),
            EscrowStatus::Released(to) => to,
        };
        let payee = if to == Payee::Depositor { depositor } else { depositor.other() };
        if payee != accused {
            return Some((Verdict::Dismissed, "the accused agent did not get the escrow"));
        }
        if payee == depositor {
            // The money went back. Whether the other side had earned it is for a person to decide.
            return None;
        }
        let broken_by = record.session().outcome().map_or(&[][..], |outcome| &outcome.broken_by);
        if broken_by.contains(&depositor) {
            return Some((Verdict::Dismissed, "the depositor broke the agreement"));
        }
        let mut own = commitment
            .obligations()
            .filter(|(obligation, _)| obligation.party == self.filed_against)
            .peekable();
        let is_earned = own.peek().is_some() && own.all(|(_, result)| result.is_some());
        Some(if is_earned {
            (Verdict::Dismissed, "the accused agent sent a result")
        } else {
            (self.upheld(Severity::SERIOUS), "the accused agent got the escrow without a result")
        })
    }

    /// Never more severe than claimed.
    fn upheld(&self, severity: Severity) -> Verdict {
        Verdict::Upheld(severity.min(self.severity))
    }
}
