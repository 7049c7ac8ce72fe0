//! The open proposals of a session, and the ids that are already used.

use std::collections::BTreeSet;

use seal::UnixMillis;

use crate::id::{ProposalId, Reference};
use crate::state_machine::Role;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Proposal {
    pub(super) id: ProposalId,
    pub(super) proposed_by: Role,
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
    /// Ids of proposals and commitments, which must not be reused.
    used_ids: BTreeSet<Box<str>>,
    max_open: usize,
}

impl Proposals {
    pub(super) fn new(max_open: usize) -> Self {
        Self { open: Vec::new(), used_ids: BTreeSet::new(), max_open }
    }

    /// Returns whether one more proposal may be opened. Expired proposals do not count.
    pub(super) fn has_capacity(&self, now: UnixMillis) -> bool {
        self.open.iter().filter(|proposal| proposal.is_valid(now)).count() < self.max_open
    }

    pub(super) fn is_id_unused(&self, id: &str) -> bool {
        !self.used_ids.contains(id)
    }

    pub(super) fn mark_id_used(&mut self, id: &str) {
        self.used_ids.insert(id.into());
    }

    pub(super) fn open(&mut self, proposal: Proposal, now: UnixMillis) {
        if self.open.len() >= self.max_open {
            self.open.retain(|proposal| proposal.is_valid(now));
        }
        self.mark_id_used(proposal.id.as_str());
        self.open.push(proposal);
    }

    pub(super) fn close(&mut self, reference: &Reference) {
        self.open.retain(|proposal| proposal.id.as_str() != reference.as_str());
    }

    pub(super) fn find(&self, reference: &Reference) -> Option<&Proposal> {
        self.open.iter().find(|proposal| proposal.id.as_str() == reference.as_str())
    }
}
