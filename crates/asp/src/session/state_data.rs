//! The state of a session, with the data that exists only in that state.

use crate::commitment::Commitment;
use crate::id::ProposalId;
use crate::message::Inform;
use crate::state_machine::{Role, State};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum StateData {
    Idle,
    Invited(InvitedData),
    Introduced,
    Conversing,
    Agreeing(Commitment),
    Executing(ExecutingData),
    Escalated(EscalatedData),
    Closed,
    Failed,
}

/// The data of INVITED. The invitation is accepted first, then both sides identify themselves (D2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct InvitedData {
    pub(super) invitation: ProposalId,
    pub(super) is_accepted: bool,
    /// Whether each side has identified itself.
    pub(super) is_identified: [bool; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ExecutingData {
    pub(super) agreement: Commitment,
    /// Whether each side has asked to close (D4).
    pub(super) close_requested: [bool; 2],
}

impl ExecutingData {
    /// Returns whether an INFORM names a result of this side.
    pub(super) fn names_result(&self, inform: &Inform, side: Role) -> bool {
        inform.in_reply_to.as_ref().is_some_and(|reference| self.agreement.has_result(side, reference))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EscalatedData {
    /// The side that escalated.
    pub(super) by: Role,
    /// The state to return to.
    pub(super) previous: Box<StateData>,
}

impl StateData {
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
            Self::Escalated(escalated) => escalated.previous.commitment(),
            _ => None,
        }
    }
}
