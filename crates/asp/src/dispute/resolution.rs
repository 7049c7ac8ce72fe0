//! The end of a dispute.

use seal::Timestamp;

use super::record::Dispute;
use super::severity::Severity;
use crate::id::DisputeId;
use crate::trust::{TrustEvent, TrustEventKind};

/// The end of a dispute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// The dispute.
    pub dispute_id: DisputeId,
    /// How it ended.
    pub verdict: Verdict,
    /// Who ended it.
    pub resolved_by: Resolver,
    /// The reason, for people.
    pub explanation: String,
    /// When it ended.
    pub resolved_at: Timestamp,
}

/// How a dispute ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The complaint is justified, with this severity.
    Upheld(Severity),
    /// The complaint is not justified.
    Dismissed,
    /// The parties agreed.
    Settled,
    /// The agent that complained withdrew the complaint.
    Withdrawn,
}

/// Who ended a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resolver {
    /// The rules of [`Dispute::decide`].
    Automatic,
    /// A person, by name or role.
    Person(String),
    /// The parties themselves, for disputes that are settled or withdrawn.
    Parties,
}

impl Resolution {
    /// Returns the event that lowers the trust in the accused agent. Only a dispute that was upheld has one: an agent that
    /// complains without success loses nothing.
    pub fn trust_event(&self, dispute: &Dispute) -> Option<TrustEvent> {
        let Verdict::Upheld(severity) = self.verdict else { return None };
        Some(TrustEvent {
            peer: dispute.filed_against.clone(),
            at: self.resolved_at.unix_millis(),
            session_id: Some(dispute.session_id),
            kind: TrustEventKind::DisputeLost { dispute_id: self.dispute_id.clone(), severity },
        })
    }
}
