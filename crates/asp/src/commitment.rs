//! Commitments and their status.

use seal::UnixMillis;

use crate::id::AgentUri;
use crate::message::{Commit, Obligation};
use crate::state_machine::Role;

seal::string_enum! {
    /// The status of a commitment.
    CommitmentStatus {
        /// The commitment was sent, but not answered yet.
        Pending "pending",
        /// The commitment was accepted and is binding.
        Accepted "accepted",
        /// All obligations were fulfilled in time.
        Fulfilled "fulfilled",
        /// All obligations were fulfilled, some after their deadline.
        Late "late",
        /// A side broke the agreement, for example by not fulfilling an obligation.
        Broken "broken",
        /// The session ended before the commitment was accepted.
        Withdrawn "withdrawn",
    }
}

/// A commitment and its status. Once accepted, it is also called an agreement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commitment {
    commit: Commit,
    sender: Role,
    status: CommitmentStatus,
    /// For each obligation, the time when it was reported as fulfilled, if it was.
    fulfilled_at: Vec<Option<UnixMillis>>,
}

impl Commitment {
    pub(crate) fn new(commit: Commit, sender: Role) -> Self {
        let fulfilled_at = vec![None; commit.terms.obligations.len()];
        Self { commit, sender, status: CommitmentStatus::Pending, fulfilled_at }
    }

    /// Returns the COMMIT.
    pub fn commit(&self) -> &Commit {
        &self.commit
    }

    /// Returns the side that sent the COMMIT.
    pub fn sender(&self) -> Role {
        self.sender
    }

    /// Returns the status.
    pub fn status(&self) -> CommitmentStatus {
        self.status
    }

    /// Returns each obligation, with the time when it was reported as fulfilled, if it was.
    pub fn obligations(&self) -> impl Iterator<Item = (&Obligation, Option<UnixMillis>)> {
        self.commit.terms.obligations.iter().zip(self.fulfilled_at.iter().copied())
    }

    pub(crate) fn accept(&mut self) {
        self.status = CommitmentStatus::Accepted;
    }

    pub(crate) fn set_status(&mut self, status: CommitmentStatus) {
        self.status = status;
    }

    /// Marks all obligations of a party as fulfilled, because the party has sent INFORM(result).
    pub(crate) fn mark_fulfilled(&mut self, party: &AgentUri, at: UnixMillis) {
        for (obligation, fulfilled_at) in self.commit.terms.obligations.iter().zip(&mut self.fulfilled_at) {
            if &obligation.party == party {
                fulfilled_at.get_or_insert(at);
            }
        }
    }
}
