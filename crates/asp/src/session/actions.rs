//! Performs the actions of a transition, and determines the outcome of a session.

use seal::UnixMillis;

use super::effect::Effect;
use super::outcome::{ObligationOutcome, Payee, SessionEnding, SessionOutcome};
use super::proposals::Proposal;
use super::state_data::{EscalatedData, ExecutingData, InvitedData, StateData};
use super::{
    AspSession, DEFAULT_SESSION_DURATION_MS, ESCALATION_TIMEOUT_MS, INTRODUCTION_TIMEOUT_MS,
    INVITATION_TIMEOUT_MS, IncomingMessage,
};
use crate::commitment::{Commitment, CommitmentStatus, ResultReport, ResultVerdict};
use crate::message::{Body, Close, DurationSeconds, InformType, Obligation};
use crate::state_machine::{Role, State, Timer, TransitionAction, TransitionRow, Trigger};

impl AspSession {
    pub(super) fn perform(
        &mut self,
        action: TransitionAction,
        row: &TransitionRow,
        message: Option<&IncomingMessage<'_>>,
        now: UnixMillis,
        effects: &mut Vec<Effect>,
    ) {
        match action {
            TransitionAction::OpenChannel => effects.push(Effect::OpenChannel),
            TransitionAction::StartTimer(timer) => {
                let at = self.timer_deadline(timer, message, now);
                self.start_timer(timer, at, effects);
            }
            TransitionAction::StopTimer(timer) => {
                self.timers.stop(timer);
                effects.push(Effect::StopTimer(timer));
            }
            TransitionAction::PauseTimers => {
                self.timers.pause_all(now);
                effects.push(Effect::PauseTimers);
            }
            TransitionAction::ResumeTimers => {
                self.timers.resume_all(now);
                effects.push(Effect::ResumeTimers);
            }
            TransitionAction::RecordIdentities => effects.push(Effect::RecordIdentities),
            TransitionAction::EnablePerformatives => {
                effects.push(Effect::EnablePerformatives([self.parties[0].level, self.parties[1].level]));
            }
            TransitionAction::DropPending => {
                if let StateData::Agreeing(pending) = &self.state_data {
                    effects.push(Effect::DropPendingCommitment(pending.commit().commitment_id.clone()));
                }
            }
            TransitionAction::BindCommitment => {
                if let StateData::Agreeing(pending) = &mut self.state_data {
                    pending.accept();
                    effects.push(Effect::RecordAgreement(pending.clone()));
                }
            }
            TransitionAction::ActivateEscrow => self.activate_escrow(effects),
            TransitionAction::EndSession => self.end_session(row, message, now, effects),
            TransitionAction::NoteInvitationAccepted
            | TransitionAction::NoteIdentity
            | TransitionAction::OpenProposal
            | TransitionAction::CloseProposal
            | TransitionAction::RecordPending
            | TransitionAction::NoteWorkReport
            | TransitionAction::NoteContest
            | TransitionAction::NoteResultAccepted
            | TransitionAction::NoteCloseRequest
            | TransitionAction::NotifyHandler => {
                if let Some(message) = message {
                    self.perform_with_message(action, message, effects);
                }
            }
        }
    }

    /// Performs an action that needs data from a message.
    fn perform_with_message(
        &mut self,
        action: TransitionAction,
        message: &IncomingMessage<'_>,
        effects: &mut Vec<Effect>,
    ) {
        match (action, message.body, &mut self.state_data) {
            (TransitionAction::NoteInvitationAccepted, _, StateData::Invited(invited)) => {
                invited.is_accepted = true;
            }
            (TransitionAction::NoteIdentity, _, StateData::Invited(invited)) => {
                invited.is_identified[message.sender.index()] = true;
            }
            (TransitionAction::NoteCloseRequest, _, StateData::Executing(executing)) => {
                executing.close_requested[message.sender.index()] = true;
            }
            (TransitionAction::NoteWorkReport, Body::Inform(body), StateData::Executing(executing))
                if body.kind == InformType::Result =>
            {
                let party = &self.parties[message.sender.index()].agent;
                executing.agreement.report_result(message.sender, party, message.message_id, message.sent_at);
            }
            (TransitionAction::NoteContest, Body::Inform(body), StateData::Executing(executing))
                if body.kind == InformType::Error && executing.names_result(body, message.sender.other()) =>
            {
                executing.agreement.contest_results(&self.parties[message.sender.other().index()].agent);
            }
            (TransitionAction::NoteResultAccepted, _, StateData::Executing(executing)) => {
                executing.agreement.accept_results(&self.parties[message.sender.other().index()].agent);
            }
            (TransitionAction::RecordPending, Body::Commit(terms), _) => {
                self.proposals.mark_id_used(terms.commitment_id.as_str());
                effects.push(Effect::RecordPendingCommitment(Commitment::new(terms.clone(), message.sender)));
            }
            (TransitionAction::OpenProposal, Body::Propose(body), _) if body.is_invitation() => {
                self.duration_ms =
                    body.session_duration_ms().ok().flatten().unwrap_or(DEFAULT_SESSION_DURATION_MS);
                self.proposals.mark_id_used(body.proposal_id.as_str());
            }
            (TransitionAction::OpenProposal, Body::Propose(body), _) => {
                let (id, valid_until) = (body.proposal_id.clone(), body.valid_until);
                self.open_proposal(id, valid_until, message, effects);
            }
            (TransitionAction::OpenProposal, Body::Counter(body), _) => {
                let (id, valid_until) = (body.proposal_id.clone(), body.valid_until);
                self.open_proposal(id, valid_until, message, effects);
            }
            (TransitionAction::CloseProposal, body, _) => {
                let reference = match body {
                    Body::Accept(body) => Some(&body.reference),
                    Body::Reject(body) => body.reference.as_ref(),
                    Body::Counter(body) => Some(&body.counters),
                    _ => None,
                };
                if let Some(reference) = reference {
                    self.proposals.close(reference);
                    effects.push(Effect::ProposalClosed(reference.clone()));
                }
            }
            (TransitionAction::NotifyHandler, Body::Escalate(body), _) => {
                effects.push(Effect::NotifyHandler {
                    by: message.sender,
                    handler: body.handler.clone(),
                    reason: body.reason.clone(),
                    urgency: body.urgency,
                });
            }
            _ => {}
        }
    }

    fn open_proposal(
        &mut self,
        id: crate::id::ProposalId,
        valid_until: Option<seal::Timestamp>,
        message: &IncomingMessage<'_>,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::ProposalOpened { id: id.clone(), by: message.sender });
        let valid_until = valid_until.as_ref().map(seal::Timestamp::unix_millis);
        self.proposals.open(Proposal { id, proposed_by: message.sender, valid_until }, message.sent_at);
    }

    /// Returns when a timer that starts now expires (D9, D21).
    fn timer_deadline(
        &self,
        timer: Timer,
        message: Option<&IncomingMessage<'_>>,
        now: UnixMillis,
    ) -> UnixMillis {
        let duration_ms = match (timer, message.map(|message| message.body)) {
            (Timer::Invitation, Some(Body::Propose(body))) => match body.valid_until {
                Some(valid_until) => return valid_until.unix_millis(),
                None => INVITATION_TIMEOUT_MS,
            },
            (Timer::Invitation, _) => INVITATION_TIMEOUT_MS,
            (Timer::Introduction, _) => INTRODUCTION_TIMEOUT_MS,
            (Timer::Escalation, Some(Body::Escalate(body))) => {
                body.timeout.map_or(ESCALATION_TIMEOUT_MS, DurationSeconds::millis)
            }
            (Timer::Escalation, _) => ESCALATION_TIMEOUT_MS,
            (Timer::Session | Timer::Response, _) => self.duration_ms,
        };
        now.saturating_add(duration_ms)
    }

    /// Enters a state. `apply_row` handles the return from an escalation.
    pub(super) fn enter_state(&mut self, to: State, message: Option<&IncomingMessage<'_>>) {
        let previous = std::mem::replace(&mut self.state_data, StateData::Failed);
        self.state_data = match (to, previous, message) {
            (State::Idle, ..) => StateData::Idle,
            (State::Invited, _, Some(IncomingMessage { body: Body::Propose(body), .. })) => {
                StateData::Invited(InvitedData {
                    invitation: body.proposal_id.clone(),
                    is_accepted: false,
                    is_identified: [false; 2],
                })
            }
            (State::Introduced, ..) => StateData::Introduced,
            (State::Conversing, ..) => StateData::Conversing,
            (State::Agreeing, _, Some(IncomingMessage { body: Body::Commit(terms), sender, .. })) => {
                StateData::Agreeing(Commitment::new(terms.clone(), *sender))
            }
            (State::Executing, StateData::Agreeing(agreement), _) => {
                StateData::Executing(ExecutingData { agreement, close_requested: [false; 2] })
            }
            (State::Escalated, previous, Some(message)) => {
                StateData::Escalated(EscalatedData { by: message.sender, previous: Box::new(previous) })
            }
            (State::Closed, ..) => StateData::Closed,
            // The states other than FAILED get here only if the transition table is wrong. The session then fails, because an
            // error in the table must not count as an agreement.
            (State::Failed | State::Invited | State::Agreeing | State::Executing | State::Escalated, ..) => {
                StateData::Failed
            }
        };
    }

    fn activate_escrow(&self, effects: &mut Vec<Effect>) {
        if let Some(commitment) = self.commitment()
            && let Some(escrow) = &commitment.commit().escrow
        {
            effects.push(Effect::ActivateEscrow {
                commitment: commitment.commit().commitment_id.clone(),
                depositor: commitment.sender(),
                amount: escrow.amount.clone(),
                currency: escrow.currency.clone(),
            });
        }
    }

    fn end_session(
        &mut self,
        row: &TransitionRow,
        message: Option<&IncomingMessage<'_>>,
        now: UnixMillis,
        effects: &mut Vec<Effect>,
    ) {
        let mut commitment = self.commitment().cloned();
        let ending = determine_ending(row, message, commitment.as_ref());
        let mut outcome = SessionOutcome {
            ending,
            ended_at: now,
            reason: determine_end_reason(row, message),
            commitment: None,
            obligations: Vec::new(),
            broken_by: Vec::new(),
            escrow_payee: None,
        };
        if let Some(commitment) = &mut commitment {
            if commitment.status() == CommitmentStatus::Accepted {
                self.conclude_commitment(commitment, &mut outcome);
                if let (Some(to), id) = (outcome.escrow_payee, commitment.commit().commitment_id.clone()) {
                    effects.push(Effect::ReleaseEscrow { commitment: id, to });
                }
            } else {
                commitment.set_status(CommitmentStatus::Withdrawn);
                effects.push(Effect::DropPendingCommitment(commitment.commit().commitment_id.clone()));
            }
        }
        outcome.commitment = commitment;
        self.outcome = Some(outcome.clone());
        effects.push(Effect::SessionEnded(Box::new(outcome)));
        if matches!(row.target, crate::state_machine::TransitionTarget::Move(State::Closed)) {
            effects.push(Effect::Learn);
        }
    }

    /// Determines the outcome of each obligation, which sides broke the agreement, and which side gets the escrow (D4, D5, D22).
    fn conclude_commitment(&self, agreement: &mut Commitment, outcome: &mut SessionOutcome) {
        let leaver = leaver(outcome.ending);
        let is_depositor = |role: Role| agreement.sender() == role && agreement.commit().escrow.is_some();
        // A side that leaves while obligations are open breaks the agreement. The exception is a side that has obligations, has
        // reported a result for all of them, and has paid no money into escrow. The party of an overdue obligation always
        // breaks it.
        let responsible = leaver.filter(|leaver| {
            let mut own_obligations = agreement
                .obligations()
                .filter(|(obligation, _)| self.role_of(&obligation.party) == Some(*leaver))
                .peekable();
            own_obligations.peek().is_none()
                || own_obligations.any(|(_, report)| report.is_none())
                || is_depositor(*leaver)
        });
        let mut broken_by = Vec::new();
        for (obligation, report) in agreement.obligations() {
            let party = self.role_of(&obligation.party);
            let result = obligation_outcome(obligation, report, party, outcome);
            match result {
                ObligationOutcome::Broken => broken_by.extend(party),
                // A reported result is nobody's breach, even if it was not confirmed.
                ObligationOutcome::Open if report.is_none() => broken_by.extend(responsible),
                ObligationOutcome::Open
                | ObligationOutcome::Contested
                | ObligationOutcome::Fulfilled
                | ObligationOutcome::Late => {}
            }
            outcome.obligations.push((obligation.clone(), result));
        }
        // A side that withdraws breaks the agreement even if its obligations are fulfilled (D5).
        if let SessionEnding::Withdrawn(role) = outcome.ending {
            broken_by.push(role);
        }
        broken_by.sort_unstable();
        broken_by.dedup();
        outcome.broken_by = broken_by;
        let worst = outcome.obligations.iter().map(|(_, result)| *result).max();
        agreement.set_status(match worst {
            _ if !outcome.broken_by.is_empty() => CommitmentStatus::Broken,
            Some(ObligationOutcome::Broken) => CommitmentStatus::Broken,
            Some(ObligationOutcome::Contested) => CommitmentStatus::Contested,
            Some(ObligationOutcome::Open) => CommitmentStatus::Accepted,
            Some(ObligationOutcome::Late) => CommitmentStatus::Late,
            Some(ObligationOutcome::Fulfilled) | None => CommitmentStatus::Fulfilled,
        });
        outcome.escrow_payee =
            agreement.commit().escrow.as_ref().map(|_| self.determine_payee(agreement.sender(), outcome));
    }

    /// Determines which side receives the escrow. The side that sent the COMMIT has paid it in. If the other side has
    /// obligations, the escrow is the payment for them, and the other side receives it only if it kept all of them, or as
    /// compensation if the depositor left. Otherwise the escrow is a bond for the depositor's obligations. If both sides
    /// closed, there is no compensation.
    fn determine_payee(&self, depositor: Role, outcome: &SessionOutcome) -> Payee {
        let other = depositor.other();
        let mut other_results = outcome
            .obligations
            .iter()
            .filter(|(obligation, _)| self.role_of(&obligation.party) == Some(other))
            .map(|(_, result)| *result)
            .peekable();
        let is_payment = other_results.peek().is_some();
        let is_earned = is_payment
            && other_results
                .all(|result| matches!(result, ObligationOutcome::Fulfilled | ObligationOutcome::Late));
        let has_broken = |role| outcome.broken_by.contains(&role);
        let is_compensation = has_broken(depositor)
            && outcome.ending != SessionEnding::Completed
            && (!is_payment || leaver(outcome.ending) == Some(depositor));
        if !has_broken(other) && (is_earned || is_compensation) {
            Payee::Beneficiary
        } else {
            Payee::Depositor
        }
    }
}

/// Returns the side that ended the session while the agreement was in force, if one did.
fn leaver(ending: SessionEnding) -> Option<Role> {
    match ending {
        SessionEnding::Closed(role)
        | SessionEnding::Unilateral(role)
        | SessionEnding::Withdrawn(role)
        | SessionEnding::Fatal(role) => Some(role),
        _ => None,
    }
}

/// Determines the outcome of an obligation (D22). It is kept if its party reported a result that the other side accepted, or
/// did not contest although it could. The other side could not contest a result if the party itself ended the session, or if
/// the chain broke.
fn obligation_outcome(
    obligation: &Obligation,
    report: Option<&ResultReport>,
    party: Option<Role>,
    outcome: &SessionOutcome,
) -> ObligationOutcome {
    let deadline = obligation.deadline.unix_millis();
    let leaver = leaver(outcome.ending);
    let Some(report) = report else {
        let has_left = leaver.is_some() && party == leaver;
        return if has_left || outcome.ended_at > deadline {
            ObligationOutcome::Broken
        } else {
            ObligationOutcome::Open
        };
    };
    let could_contest = outcome.ending != SessionEnding::BrokenChain && (leaver.is_none() || party != leaver);
    match report.verdict {
        ResultVerdict::Contested => ObligationOutcome::Contested,
        ResultVerdict::Unanswered if !could_contest => ObligationOutcome::Open,
        ResultVerdict::Unanswered | ResultVerdict::Accepted if report.reported_at <= deadline => {
            ObligationOutcome::Fulfilled
        }
        ResultVerdict::Unanswered | ResultVerdict::Accepted => ObligationOutcome::Late,
    }
}

fn determine_ending(
    row: &TransitionRow,
    message: Option<&IncomingMessage<'_>>,
    commitment: Option<&Commitment>,
) -> SessionEnding {
    let is_binding = commitment.is_some_and(|commitment| commitment.status() == CommitmentStatus::Accepted);
    match (row.trigger, message) {
        (Trigger::TimerExpired(timer), _) => SessionEnding::TimedOut(timer),
        (Trigger::Message(_), Some(message)) => match message.body {
            // Row 11 ends the session only after both sides have asked to close. This confirms no obligation (D22).
            Body::Close(_) if row.number == 11 => SessionEnding::Completed,
            Body::Close(close) if is_binding && close.reason == Close::UNILATERAL_REASON => {
                SessionEnding::Unilateral(message.sender)
            }
            Body::Close(_) => SessionEnding::Closed(message.sender),
            Body::Withdraw(_) => SessionEnding::Withdrawn(message.sender),
            Body::Reject(_) => SessionEnding::Rejected(message.sender),
            _ => SessionEnding::Fatal(message.sender),
        },
        _ => SessionEnding::BrokenChain,
    }
}

fn determine_end_reason(row: &TransitionRow, message: Option<&IncomingMessage<'_>>) -> String {
    match (row.trigger, message.map(|message| message.body)) {
        (Trigger::TimerExpired(timer), _) => format!("timeout: the {timer} timer expired"),
        (_, Some(Body::Close(body))) => body.reason.clone(),
        (_, Some(Body::Withdraw(body))) => body.reason.clone(),
        (_, Some(Body::Reject(body))) => body.reason.clone(),
        (_, Some(_)) => "an unrecoverable error".to_owned(),
        (_, None) => "hash_chain_integrity: a message links to an unknown hash".to_owned(),
    }
}
