//! The rows of a transition table, and their evaluation.

use std::borrow::Cow;

use super::facts::{Fact, Facts};
use super::state::{AnyStateInterpretation, State, Timer};
use crate::Performative;
use crate::error::RejectCode;

/// An input to the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// A message arrives.
    Message(Performative),
    /// A timer expires.
    TimerExpired(Timer),
    /// A participant's message links to a hash that the chain never had (D7).
    BrokenChain,
}

/// The result of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransitionTarget {
    /// Moves to this state.
    Move(State),
    /// Accepts the message and keeps the state.
    Stay,
    /// Returns to the state before the escalation.
    Return,
    /// Refuses the message.
    Refuse(RejectCode),
}

/// An action of a row, in addition to its state change. The session performs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransitionAction {
    /// Opens the session's channel.
    OpenChannel,
    /// Starts a timer.
    StartTimer(Timer),
    /// Stops a timer.
    StopTimer(Timer),
    /// Pauses the other timers while a third party decides.
    PauseTimers,
    /// Resumes the paused timers.
    ResumeTimers,
    /// Records that the invitation was accepted.
    NoteInvitationAccepted,
    /// Records that the sender has identified itself.
    NoteIdentity,
    /// Records that both sides have identified themselves.
    RecordIdentities,
    /// Allows each side the performatives of its conformance level.
    EnablePerformatives,
    /// Opens the proposal of the message.
    OpenProposal,
    /// Closes the proposal that the message refers to.
    CloseProposal,
    /// Records the commitment of the message as pending.
    RecordPending,
    /// Drops the pending commitment.
    DropPending,
    /// Makes the pending commitment binding.
    BindCommitment,
    /// Holds the money in escrow.
    ActivateEscrow,
    /// Records a work report.
    NoteWorkReport,
    /// Records that the sender contests a result, if the message is an error that names one (D22).
    NoteContest,
    /// Records that the sender accepts a result (D22).
    NoteResultAccepted,
    /// Records that the sender asks to close.
    NoteCloseRequest,
    /// Notifies the handler of the escalation.
    NotifyHandler,
    /// Ends the session: determines the outcome and releases the escrow. If the row leads to CLOSED, starts the LEARN phase.
    EndSession,
}

impl TransitionAction {
    /// Returns a short description for documentation. `target` is the target of the row that the action belongs to.
    pub fn description(self, target: TransitionTarget) -> Cow<'static, str> {
        match self {
            Self::OpenChannel => "open the channel".into(),
            Self::StartTimer(timer) => format!("start the {timer} timer").into(),
            Self::StopTimer(timer) => format!("stop the {timer} timer").into(),
            Self::PauseTimers => "pause the other timers".into(),
            Self::ResumeTimers => "resume the other timers".into(),
            Self::NoteInvitationAccepted => "note that the invitation is accepted".into(),
            Self::NoteIdentity => "note the identity".into(),
            Self::RecordIdentities => "record both identities".into(),
            Self::EnablePerformatives => {
                "allow each side the performatives of its conformance level (D12)".into()
            }
            Self::OpenProposal => "open the new proposal".into(),
            Self::CloseProposal => "close the proposal that the message names".into(),
            Self::RecordPending => "record the pending commitment".into(),
            Self::DropPending => "drop the pending commitment".into(),
            Self::BindCommitment => "record the agreement".into(),
            Self::ActivateEscrow => "activate escrow".into(),
            Self::NoteWorkReport => "note the work report".into(),
            Self::NoteContest => "note whether a result is contested (D22)".into(),
            Self::NoteResultAccepted => "note that the result is accepted (D22)".into(),
            Self::NoteCloseRequest => "note the close request".into(),
            Self::NotifyHandler => "notify the handler".into(),
            Self::EndSession if target == TransitionTarget::Move(State::Closed) => {
                "determine the outcome; release escrow; start the LEARN phase".into()
            }
            Self::EndSession => "determine the outcome; release escrow".into(),
        }
    }
}

/// A fact that a row requires, and the code of the refusal if the requirement is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The fact.
    pub fact: Fact,
    /// Whether the fact must hold (`true`) or must not hold (`false`).
    pub must_hold: bool,
    /// The code of the refusal.
    pub code: RejectCode,
}

/// One row of a transition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransitionRow {
    /// Its number on npayload's page; 0 if the page gives none.
    pub number: u8,
    /// The states it applies to.
    pub from: &'static [State],
    /// The input it applies to.
    pub trigger: Trigger,
    /// The facts that must hold (`true`) or not hold (`false`) for this row to apply.
    pub conditions: &'static [(Fact, bool)],
    /// Its requirements, in the order in which they are checked.
    pub requirements: &'static [Requirement],
    /// Its result.
    pub target: TransitionTarget,
    /// Its actions.
    pub actions: &'static [TransitionAction],
    /// Whether the list of performatives for the state, on npayload's page, contains this row's performative (D3).
    pub is_listed: bool,
}

impl TransitionRow {
    pub(crate) const fn new(number: u8, from: &'static [State], trigger: Trigger) -> Self {
        Self {
            number,
            from,
            trigger,
            conditions: &[],
            requirements: &[],
            target: TransitionTarget::Stay,
            actions: &[],
            is_listed: true,
        }
    }

    pub(crate) const fn when(mut self, conditions: &'static [(Fact, bool)]) -> Self {
        self.conditions = conditions;
        self
    }

    pub(crate) const fn needs(mut self, requirements: &'static [Requirement]) -> Self {
        self.requirements = requirements;
        self
    }

    pub(crate) const fn to(mut self, state: State) -> Self {
        self.target = TransitionTarget::Move(state);
        self
    }

    pub(crate) const fn back(mut self) -> Self {
        self.target = TransitionTarget::Return;
        self
    }

    pub(crate) const fn refused(mut self, code: RejectCode) -> Self {
        self.target = TransitionTarget::Refuse(code);
        self
    }

    pub(crate) const fn does(mut self, actions: &'static [TransitionAction]) -> Self {
        self.actions = actions;
        self
    }

    /// Restricts the row to [`AnyStateInterpretation::EveryLiveState`].
    pub(crate) const fn unlisted(mut self) -> Self {
        self.is_listed = false;
        self
    }
}

/// The result of evaluating the rows for a state and a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluation<'t> {
    /// This row applies.
    Matched(&'t TransitionRow),
    /// The message is refused with this code, because this requirement is not met. It is `None` if no row matched.
    Refused(RejectCode, Option<Requirement>),
}

/// A transition table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransitionTable(Cow<'static, [TransitionRow]>);

impl TransitionTable {
    /// Creates a table from rows. The protocol uses [`super::PROTOCOL_TABLE`]. Tests use broken tables to
    /// show that errors are detected.
    pub const fn new(rows: Cow<'static, [TransitionRow]>) -> Self {
        Self(rows)
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[TransitionRow] {
        &self.0
    }

    /// Evaluates the rows for a state and a trigger. Finds the first row whose conditions hold, then checks its requirements.
    pub fn evaluate(
        &self,
        any_state: AnyStateInterpretation,
        state: State,
        trigger: Trigger,
        facts: Facts,
    ) -> Evaluation<'_> {
        let row = self
            .matching_rows(any_state, state, trigger)
            .find(|row| row.conditions.iter().all(|(fact, holds)| facts.has(*fact) == *holds));
        let Some(row) = row else { return Evaluation::Refused(RejectCode::InvalidStateTransition, None) };
        match row.requirements.iter().find(|requirement| facts.has(requirement.fact) != requirement.must_hold)
        {
            Some(requirement) => Evaluation::Refused(requirement.code, Some(*requirement)),
            None => Evaluation::Matched(row),
        }
    }

    /// Returns the rows for a state and a trigger.
    pub fn matching_rows(
        &self,
        any_state: AnyStateInterpretation,
        state: State,
        trigger: Trigger,
    ) -> impl Iterator<Item = &TransitionRow> {
        self.0
            .iter()
            .filter(move |row| row.trigger == trigger && row.from.contains(&state))
            .filter(move |row| row.is_listed || any_state == AnyStateInterpretation::EveryLiveState)
    }

    /// Returns the performatives that have at least one row in that state.
    pub fn allowed_performatives(
        &self,
        any_state: AnyStateInterpretation,
        state: State,
    ) -> Vec<Performative> {
        Performative::ALL
            .into_iter()
            .filter(|performative| {
                self.matching_rows(any_state, state, Trigger::Message(*performative)).next().is_some()
            })
            .collect()
    }
}
