//! Accounts and postings.

use std::fmt;

use crate::id::{AgentUri, CommitmentId, Currency, SessionId};

/// The commitment that money is held for. The session is part of it, because agents choose the ids of their commitments and
/// may use the same id in several sessions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EscrowId {
    /// The session.
    pub session_id: SessionId,
    /// The commitment.
    pub commitment_id: CommitmentId,
}

/// An account of the ledger. It has one balance per currency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The money of an agent. Its balance is never negative.
    Agent(AgentUri),
    /// The money that is held for a commitment. Its balance is never negative.
    Escrow(EscrowId),
    /// Where money comes from and goes to. Its balance is minus the sum of all other balances.
    Outside,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "agent:{agent}"),
            Self::Escrow(id) => write!(f, "escrow:{}/{}", id.session_id, id.commitment_id),
            Self::Outside => f.write_str("outside"),
        }
    }
}

/// A change of one balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The account.
    pub account: Account,
    /// The currency.
    pub currency: Currency,
    /// The change, in billionths of the currency unit. It is negative if money leaves the account.
    pub billionths: i128,
}
