//! Commitments: what was promised, by whom, and what became of it.

use seal::UnixMillis;

use crate::id::AgentUri;
use crate::machine::Role;
use crate::message::{Commit, Obligation};

seal::word_enum! {
    /// Where a commitment stands.
    Status word {
        /// Sent, and waiting for its answer.
        Pending "pending",
        /// Binding.
        Accepted "accepted",
        /// All of it was done in time.
        Fulfilled "fulfilled",
        /// All of it was done, some of it after its deadline.
        Late "late",
        /// Some of it was not done.
        Broken "broken",
        /// Taken back, or overtaken by the session's end, before it bound anybody.
        Withdrawn "withdrawn",
    }
}

/// A commitment and its state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commitment {
    terms: Commit,
    by: Role,
    status: Status,
    /// When each obligation was reported as done.
    done: Vec<Option<UnixMillis>>,
}

impl Commitment {
    pub(crate) fn new(terms: Commit, by: Role) -> Self {
        let done = vec![None; terms.terms.obligations.len()];
        Self { terms, by, status: Status::Pending, done }
    }

    /// What was promised.
    pub fn terms(&self) -> &Commit {
        &self.terms
    }

    /// Who sent the COMMIT.
    pub fn by(&self) -> Role {
        self.by
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The obligations, and when each was reported as done.
    pub fn obligations(&self) -> impl Iterator<Item = (&Obligation, Option<UnixMillis>)> {
        self.terms.terms.obligations.iter().zip(self.done.iter().copied())
    }

    pub(crate) fn accept(&mut self) {
        self.status = Status::Accepted;
    }

    pub(crate) fn set(&mut self, status: Status) {
        self.status = status;
    }

    /// INFORM(result) of a party: what it had to do is done.
    pub(crate) fn fulfil(&mut self, party: &AgentUri, at: UnixMillis) {
        for (obligation, done) in self.terms.terms.obligations.iter().zip(&mut self.done) {
            if &obligation.party == party {
                done.get_or_insert(at);
            }
        }
    }
}
