//! The invariants, checked by an observer that knows the messages and never consults the state machine's
//! transition table.

use asp::message::{Body, InformType};
use asp::session::{ObligationOutcome, Payee, SessionEnding, SessionOutcome};
use asp::state_machine::{Role, State};
use asp::{AgentUri, Commitment, CommitmentId, Reference};

use super::model_messages::{INVITER, ModelMessage};
use super::model_state::ModelState;

/// The invariants. The second one is checked on the complete graph. Number 7, that tampering with a transcript is detected,
/// is not in this list; `transcript/tampering.rs` tests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Invariant {
    TerminalIsFinal,
    TerminalReachable,
    CommitmentBeforeExecuting,
    EscalationReturns,
    RefusalChangesNothing,
    SidesAgree,
    SingleAcceptedCommitment,
    OnlyKeptObligationsCount,
}

impl Invariant {
    pub(crate) const ALL: [Self; 8] = [
        Self::TerminalIsFinal,
        Self::TerminalReachable,
        Self::CommitmentBeforeExecuting,
        Self::EscalationReturns,
        Self::RefusalChangesNothing,
        Self::SidesAgree,
        Self::SingleAcceptedCommitment,
        Self::OnlyKeptObligationsCount,
    ];

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::TerminalIsFinal => "1: nothing leaves CLOSED or FAILED",
            Self::TerminalReachable => {
                "2: from every live state a terminal state can be reached, and every live state has a running timer"
            }
            Self::CommitmentBeforeExecuting => {
                "3: EXECUTING is entered only by an ACCEPT of the other side's only pending COMMIT, or after an escalation"
            }
            Self::EscalationReturns => "4: an escalation returns to the state it left, or ends the session",
            Self::RefusalChangesNothing => "5: a refused message changes nothing",
            Self::SidesAgree => "6: both sides are in the same state after the same input",
            Self::OnlyKeptObligationsCount => {
                "9: an obligation counts as fulfilled, and pays its party, only after an uncontested result of its party"
            }
            Self::SingleAcceptedCommitment => "8: there are never two accepted commitments at the same time",
        }
    }
}

/// The observer's memory of earlier steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ObserverState {
    pub(crate) escalations: usize,
    /// During an escalation, the state and commitment before it.
    before_escalation: Option<(State, Option<Commitment>)>,
    /// Commitments that are not answered yet, with their senders.
    pending: Vec<(CommitmentId, Role)>,
    accepted: Vec<CommitmentId>,
    /// For each side, whether its last result is uncontested; `None` without a result.
    results: [Option<ObservedResult>; 2],
}

/// The observer's knowledge of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ObservedResult {
    Uncontested,
    Accepted,
    Contested,
}

impl ObserverState {
    /// Returns the observer's state after a message that both sides accepted, given the state and commitment before
    /// it.
    pub(crate) fn after(
        &self,
        message: &ModelMessage,
        state: State,
        commitment: Option<&Commitment>,
    ) -> Self {
        let mut observer = self.clone();
        match &message.body {
            Body::Commit(body) => observer.pending.push((body.commitment_id.clone(), message.sender)),
            Body::Accept(body) => {
                let answered = observer.take_answered(Some(&body.reference));
                observer.accepted.extend(answered.map(|(id, _)| id));
            }
            Body::Reject(body) => drop(observer.take_answered(body.reference.as_ref())),
            Body::Counter(body) => drop(observer.take_answered(Some(&body.counters))),
            Body::Inform(body) if state == State::Executing => {
                let (own, other) = (message.sender as usize, message.sender.other() as usize);
                let has_obligation = commitment.is_some_and(|commitment| {
                    commitment
                        .obligations()
                        .any(|(obligation, _)| role_of(&obligation.party) == message.sender)
                });
                match (body.kind, body.in_reply_to.is_some()) {
                    (InformType::Result, _) if !has_obligation => {}
                    (InformType::Result, _) if observer.results[own] != Some(ObservedResult::Accepted) => {
                        observer.results[own] = Some(ObservedResult::Uncontested);
                    }
                    (InformType::Answer, true) => observer.results[other] = Some(ObservedResult::Accepted),
                    (InformType::Error, true)
                        if observer.results[other] == Some(ObservedResult::Uncontested) =>
                    {
                        observer.results[other] = Some(ObservedResult::Contested);
                    }
                    _ => {}
                }
            }
            Body::Escalate(_) => {
                observer.escalations += 1;
                observer.before_escalation = Some((state, commitment.cloned()));
            }
            _ => {}
        }
        observer
    }

    pub(crate) fn forget_escalation(&mut self) {
        self.before_escalation = None;
    }

    /// Removes and returns the commitment that an answer refers to, or the last one if the answer names none.
    fn take_answered(&mut self, reference: Option<&Reference>) -> Option<(CommitmentId, Role)> {
        let matches = |id: &CommitmentId| reference.is_none_or(|reference| reference.as_str() == id.as_str());
        let index = self.pending.iter().rposition(|(id, _)| matches(id))?;
        Some(self.pending.remove(index))
    }

    /// Returns true if every fulfilled obligation has an uncontested result of its party and, when both sides close, the escrow
    /// pays only such a party.
    fn is_outcome_earned(&self, outcome: &SessionOutcome) -> bool {
        let has_result = |role: Role| {
            matches!(
                self.results[role as usize],
                Some(ObservedResult::Uncontested | ObservedResult::Accepted)
            )
        };
        let is_counted_correctly = outcome.obligations.iter().all(|(obligation, result)| {
            let is_fulfilled = matches!(result, ObligationOutcome::Fulfilled | ObligationOutcome::Late);
            !is_fulfilled || has_result(role_of(&obligation.party))
        });
        let is_paid_correctly = match (&outcome.commitment, outcome.escrow_payee) {
            (Some(agreement), Some(Payee::Beneficiary)) if outcome.ending == SessionEnding::Completed => {
                has_result(agreement.sender().other())
            }
            _ => true,
        };
        is_counted_correctly && is_paid_correctly
    }

    /// Returns whether this message accepts the only pending commitment, and the other side sent that commitment.
    fn accepts_only_pending(&self, message: &ModelMessage) -> bool {
        match (&message.body, &*self.pending) {
            (Body::Accept(body), [(id, sender)]) => {
                body.reference.as_str() == id.as_str() && *sender == message.sender.other()
            }
            _ => false,
        }
    }
}

/// Returns the invariants that a step violates. `message` is the message that both sides accepted, if the step was a
/// message.
pub(crate) fn violated_invariants(
    before: &ModelState,
    after: &ModelState,
    message: Option<&ModelMessage>,
) -> Vec<Invariant> {
    let mut violated = Vec::new();
    let mut check = |invariant, holds: bool| {
        if !holds && !violated.contains(&invariant) {
            violated.push(invariant);
        }
    };
    for (old, new) in before.sessions.iter().zip(&after.sessions) {
        let (from, to) = (old.state(), new.state());
        let before_escalation = before.observer.before_escalation.as_ref();
        if from.is_terminal() {
            check(Invariant::TerminalIsFinal, message.is_none() && old == new);
            continue;
        }
        if to == State::Executing && from != State::Executing {
            let resumes = from == State::Escalated
                && before_escalation.is_some_and(|(state, _)| *state == State::Executing)
                && message.is_some_and(is_resolution);
            check(
                Invariant::CommitmentBeforeExecuting,
                resumes || message.is_some_and(|message| before.observer.accepts_only_pending(message)),
            );
        }
        if from == State::Escalated && to != State::Escalated {
            let returns = before_escalation
                .is_some_and(|(state, commitment)| *state == to && commitment.as_ref() == new.commitment());
            check(Invariant::EscalationReturns, returns || to.is_terminal());
        }
    }
    if after.late_timer.is_none() {
        let [first, second] = &after.sessions;
        check(Invariant::SidesAgree, first.state() == second.state());
        check(
            Invariant::SidesAgree,
            first.commitment() == second.commitment() && first.outcome() == second.outcome(),
        );
    }
    for outcome in after.sessions.iter().filter_map(|session| session.outcome()) {
        check(Invariant::OnlyKeptObligationsCount, after.observer.is_outcome_earned(outcome));
    }
    check(Invariant::SingleAcceptedCommitment, after.observer.accepted.len() <= 1);
    violated
}

fn role_of(party: &AgentUri) -> Role {
    if party.as_str() == INVITER { Role::Inviter } else { Role::Invited }
}

fn is_resolution(message: &ModelMessage) -> bool {
    matches!(&message.body, Body::Inform(body) if body.kind == InformType::Resolution)
}
