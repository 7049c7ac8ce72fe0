//! Where a session is, with what exists only there.

use crate::commitment::Commitment;
use crate::id::ProposalId;
use crate::machine::{Role, State};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Idle,
    Invited(Invited),
    Introduced,
    Conversing,
    Agreeing(Commitment),
    Executing(Executing),
    Escalated(Escalated),
    Closed,
    Failed,
}

/// D2
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Invited {
    pub(super) invitation: ProposalId,
    pub(super) answered: bool,
    pub(super) identified: [bool; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Executing {
    pub(super) agreement: Commitment,
    /// Who has asked to close (D4).
    pub(super) wishes: [bool; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Escalated {
    pub(super) by: Role,
    /// What is preserved, to come back to.
    pub(super) from: Box<Place>,
}

impl Place {
    pub(super) fn state(&self) -> State {
        match self {
            Self::Idle => State::Idle,
            Self::Invited(_) => State::Invited,
            Self::Introduced => State::Introduced,
            Self::Conversing => State::Conversing,
            Self::Agreeing(_) => State::Agreeing,
            Self::Executing(_) => State::Executing,
            Self::Escalated(_) => State::Escalated,
            Self::Closed => State::Closed,
            Self::Failed => State::Failed,
        }
    }

    pub(super) fn commitment(&self) -> Option<&Commitment> {
        match self {
            Self::Agreeing(commitment) => Some(commitment),
            Self::Executing(executing) => Some(&executing.agreement),
            Self::Escalated(escalated) => escalated.from.commitment(),
            _ => None,
        }
    }
}
