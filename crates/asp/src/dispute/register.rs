//! The disputes that one agent has filed or received.

use std::collections::{HashMap, HashSet};

use thiserror::Error;

use super::record::{Dispute, DisputeReason};
use super::resolution::{Resolution, Resolver, Verdict};
use crate::id::{AgentUri, CommitmentId, DisputeId, SessionId};
use crate::trust::TrustEvent;

/// The disputes that one agent has filed or received, rebuilt from stored [`Dispute`]s and [`Resolution`]s. Each party can file
/// one dispute per commitment and reason, so a commitment has at most ten disputes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisputeRegister {
    disputes: HashMap<DisputeId, (Dispute, Option<Resolution>)>,
    claims: HashSet<(SessionId, CommitmentId, AgentUri, DisputeReason)>,
}

/// Why a dispute or a resolution cannot be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The id was used before.
    #[error("the id of the dispute was used before")]
    DuplicateId,
    /// The agent has already filed a dispute about this commitment for the same reason.
    #[error("this agent has already filed a dispute about this commitment for this reason")]
    DuplicateClaim,
    /// There is no such dispute.
    #[error("there is no dispute with this id")]
    Unknown,
    /// The dispute has ended.
    #[error("the dispute is already resolved")]
    AlreadyResolved,
    /// The severity that was decided is higher than the one that was claimed.
    #[error("a dispute cannot be decided with a higher severity than claimed")]
    SeverityExceeded,
    /// The verdict is not one that this resolver can give.
    #[error("the parties can settle or withdraw a dispute; others uphold or dismiss it")]
    WrongResolver,
}

impl DisputeRegister {
    /// Adds a dispute that this agent filed, or one that it received and checked.
    pub fn file(&mut self, dispute: Dispute) -> Result<(), RegisterError> {
        if self.disputes.contains_key(&dispute.dispute_id) {
            return Err(RegisterError::DuplicateId);
        }
        let claim =
            (dispute.session_id, dispute.commitment_id.clone(), dispute.filed_by.clone(), dispute.reason);
        if !self.claims.insert(claim) {
            return Err(RegisterError::DuplicateClaim);
        }
        self.disputes.insert(dispute.dispute_id.clone(), (dispute, None));
        Ok(())
    }

    /// Ends a dispute. Returns the event that lowers the trust in the accused agent, if the dispute was upheld.
    pub fn resolve(&mut self, resolution: Resolution) -> Result<Option<TrustEvent>, RegisterError> {
        let (dispute, known) = self.disputes.get_mut(&resolution.dispute_id).ok_or(RegisterError::Unknown)?;
        if known.is_some() {
            return Err(RegisterError::AlreadyResolved);
        }
        if matches!(resolution.verdict, Verdict::Upheld(severity) if severity > dispute.severity) {
            return Err(RegisterError::SeverityExceeded);
        }
        let is_by_parties = resolution.resolved_by == Resolver::Parties;
        if is_by_parties != matches!(resolution.verdict, Verdict::Settled | Verdict::Withdrawn) {
            return Err(RegisterError::WrongResolver);
        }
        let event = resolution.trust_event(dispute);
        *known = Some(resolution);
        Ok(event)
    }

    /// Returns a dispute, and its resolution if it has ended.
    pub fn get(&self, id: &DisputeId) -> Option<(&Dispute, Option<&Resolution>)> {
        self.disputes.get(id).map(|(dispute, resolution)| (dispute, resolution.as_ref()))
    }

    /// Returns all disputes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&Dispute, Option<&Resolution>)> {
        self.disputes.values().map(|(dispute, resolution)| (dispute, resolution.as_ref()))
    }
}
