//! The proposals of a session: which are open, whose they are, until when; and the names that are used up.

use std::collections::BTreeSet;

use seal::UnixMillis;

use crate::id::{ProposalId, Reference};
use crate::machine::Role;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Proposal {
    pub(super) id: ProposalId,
    pub(super) by: Role,
    pub(super) valid_until: Option<UnixMillis>,
}

impl Proposal {
    pub(super) fn is_valid(&self, now: UnixMillis) -> bool {
        self.valid_until.is_none_or(|until| now < until)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Proposals {
    open: Vec<Proposal>,
    /// Names of proposals and commitments, never to be used again.
    used: BTreeSet<Box<str>>,
    limit: usize,
}

impl Proposals {
    pub(super) fn new(limit: usize) -> Self {
        Self { open: Vec::new(), used: BTreeSet::new(), limit }
    }

    /// One that has run out can no longer be answered, and takes no room.
    pub(super) fn has_room(&self, now: UnixMillis) -> bool {
        self.open.iter().filter(|proposal| proposal.is_valid(now)).count() < self.limit
    }

    pub(super) fn is_fresh(&self, name: &str) -> bool {
        !self.used.contains(name)
    }

    pub(super) fn use_up(&mut self, name: &str) {
        self.used.insert(name.into());
    }

    pub(super) fn open(&mut self, proposal: Proposal, now: UnixMillis) {
        if self.open.len() >= self.limit {
            self.open.retain(|proposal| proposal.is_valid(now));
        }
        self.use_up(proposal.id.as_str());
        self.open.push(proposal);
    }

    pub(super) fn shut(&mut self, reference: &Reference) {
        self.open.retain(|proposal| proposal.id.as_str() != reference.as_str());
    }

    pub(super) fn find(&self, reference: &Reference) -> Option<&Proposal> {
        self.open.iter().find(|proposal| proposal.id.as_str() == reference.as_str())
    }
}
