//! Doing what a row does, and drawing up the outcome.

use seal::UnixMillis;

use super::effect::Effect;
use super::outcome::{Ending, Fate, Outcome, Payee};
use super::place::{Escalated, Executing, Invited, Place};
use super::proposals::Proposal;
use super::{ESCALATION_MILLIS, INVITATION_MILLIS, Incoming, SESSION_MILLIS, Session};
use crate::commitment::{Commitment, Status};
use crate::machine::{Do, On, Role, Row, State, Timer};
use crate::message::{Body, Close, InformType, Obligation, Seconds};

impl Session {
    pub(super) fn perform(
        &mut self,
        what: Do,
        row: &Row,
        message: Option<&Incoming<'_>>,
        now: UnixMillis,
        effects: &mut Vec<Effect>,
    ) {
        match what {
            Do::OpenChannel => effects.push(Effect::OpenChannel),
            Do::Start(timer) => {
                let at = self.runs_out(timer, message, now);
                self.start(timer, at, effects);
            }
            Do::Stop(timer) => {
                self.timers.stop(timer);
                effects.push(Effect::StopTimer(timer));
            }
            Do::Freeze => {
                self.timers.freeze(now);
                effects.push(Effect::FreezeTimers);
            }
            Do::Thaw => {
                self.timers.thaw(now);
                effects.push(Effect::ThawTimers);
            }
            Do::RecordIdentities => effects.push(Effect::RecordIdentities),
            Do::Enable => effects.push(Effect::Enable([self.parties[0].level, self.parties[1].level])),
            Do::DropPending => {
                if let Place::Agreeing(pending) = &self.place {
                    effects.push(Effect::DropPending(pending.terms().commitment_id.clone()));
                }
            }
            Do::Bind => {
                if let Place::Agreeing(pending) = &mut self.place {
                    pending.accept();
                    effects.push(Effect::RecordAgreement(pending.clone()));
                }
            }
            Do::ActivateEscrow => self.activate_escrow(effects),
            Do::End => self.end(row, message, now, effects),
            Do::NoteAnswer
            | Do::NoteIdentity
            | Do::OpenProposal
            | Do::ShutProposal
            | Do::Pend
            | Do::NoteWork
            | Do::NoteWish
            | Do::NotifyHandler => {
                if let Some(message) = message {
                    self.note(what, message, effects);
                }
            }
        }
    }

    /// What a message leaves behind.
    fn note(&mut self, what: Do, message: &Incoming<'_>, effects: &mut Vec<Effect>) {
        match (what, message.body, &mut self.place) {
            (Do::NoteAnswer, _, Place::Invited(invited)) => invited.answered = true,
            (Do::NoteIdentity, _, Place::Invited(invited)) => {
                invited.identified[message.sender.index()] = true;
            }
            (Do::NoteWish, _, Place::Executing(executing)) => executing.wishes[message.sender.index()] = true,
            (Do::NoteWork, Body::Inform(body), Place::Executing(executing))
                if body.kind == InformType::Result =>
            {
                executing.agreement.fulfil(&self.parties[message.sender.index()].agent, message.at);
            }
            (Do::Pend, Body::Commit(terms), _) => {
                self.proposals.use_up(terms.commitment_id.as_str());
                effects.push(Effect::RecordPending(Commitment::new(terms.clone(), message.sender)));
            }
            (Do::OpenProposal, Body::Propose(body), _) if body.is_invitation() => {
                self.duration = body.duration().ok().flatten().unwrap_or(SESSION_MILLIS);
                self.proposals.use_up(body.proposal_id.as_str());
            }
            (Do::OpenProposal, Body::Propose(body), _) => {
                let (id, until) = (body.proposal_id.clone(), body.valid_until);
                self.open_proposal(id, until, message, effects);
            }
            (Do::OpenProposal, Body::Counter(body), _) => {
                let (id, until) = (body.proposal_id.clone(), body.valid_until);
                self.open_proposal(id, until, message, effects);
            }
            (Do::ShutProposal, body, _) => {
                let reference = match body {
                    Body::Accept(body) => Some(&body.reference),
                    Body::Reject(body) => body.reference.as_ref(),
                    Body::Counter(body) => Some(&body.counters),
                    _ => None,
                };
                if let Some(reference) = reference {
                    self.proposals.shut(reference);
                    effects.push(Effect::ProposalShut(reference.clone()));
                }
            }
            (Do::NotifyHandler, Body::Escalate(body), _) => effects.push(Effect::NotifyHandler {
                by: message.sender,
                handler: body.handler.clone(),
                reason: body.reason.clone(),
                urgency: body.urgency,
            }),
            _ => {}
        }
    }

    fn open_proposal(
        &mut self,
        id: crate::id::ProposalId,
        until: Option<seal::Timestamp>,
        message: &Incoming<'_>,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::ProposalOpened { id: id.clone(), by: message.sender });
        let valid_until = until.as_ref().map(seal::Timestamp::unix_millis);
        self.proposals.open(Proposal { id, by: message.sender, valid_until }, message.at);
    }

    /// D9
    fn runs_out(&self, timer: Timer, message: Option<&Incoming<'_>>, now: UnixMillis) -> UnixMillis {
        let after = match (timer, message.map(|message| message.body)) {
            (Timer::Invitation, Some(Body::Propose(body))) => match body.valid_until {
                Some(until) => return until.unix_millis(),
                None => INVITATION_MILLIS,
            },
            (Timer::Invitation, _) => INVITATION_MILLIS,
            (Timer::Escalation, Some(Body::Escalate(body))) => {
                body.timeout.map_or(ESCALATION_MILLIS, Seconds::millis)
            }
            (Timer::Escalation, _) => ESCALATION_MILLIS,
            (Timer::Session | Timer::Response, _) => self.duration,
        };
        now.saturating_add(after)
    }

    /// Goes to a state that is not the one before an escalation.
    pub(super) fn go(&mut self, to: State, message: Option<&Incoming<'_>>) {
        let old = std::mem::replace(&mut self.place, Place::Failed);
        self.place = match (to, old, message) {
            (State::Idle, ..) => Place::Idle,
            (State::Invited, _, Some(Incoming { body: Body::Propose(body), .. })) => {
                Place::Invited(Invited {
                    invitation: body.proposal_id.clone(),
                    answered: false,
                    identified: [false; 2],
                })
            }
            (State::Introduced, ..) => Place::Introduced,
            (State::Conversing, ..) => Place::Conversing,
            (State::Agreeing, old, Some(Incoming { body: Body::Commit(terms), sender, .. })) => {
                drop(old);
                Place::Agreeing(Commitment::new(terms.clone(), *sender))
            }
            (State::Executing, Place::Agreeing(agreement), _) => {
                Place::Executing(Executing { agreement, wishes: [false; 2] })
            }
            (State::Escalated, old, Some(message)) => {
                Place::Escalated(Escalated { by: message.sender, from: Box::new(old) })
            }
            (State::Closed, ..) => Place::Closed,
            // A table that leads where nothing can be is broken; what is undecided is no.
            (State::Failed | State::Invited | State::Agreeing | State::Executing | State::Escalated, ..) => {
                Place::Failed
            }
        };
    }

    fn activate_escrow(&self, effects: &mut Vec<Effect>) {
        if let Some(commitment) = self.commitment()
            && let Some(escrow) = &commitment.terms().escrow
        {
            effects.push(Effect::ActivateEscrow {
                commitment: commitment.terms().commitment_id.clone(),
                depositor: commitment.by(),
                amount: escrow.amount.clone(),
                currency: escrow.currency.clone(),
            });
        }
    }

    fn end(&mut self, row: &Row, message: Option<&Incoming<'_>>, now: UnixMillis, effects: &mut Vec<Effect>) {
        let mut agreed = self.commitment().cloned();
        let ending = ending(row, message, agreed.as_ref());
        let mut outcome = Outcome {
            ending,
            at: now,
            reason: reason(row, message),
            commitment: None,
            obligations: Vec::new(),
            broken_by: Vec::new(),
            escrow_to: None,
        };
        if let Some(commitment) = &mut agreed {
            if commitment.status() == Status::Accepted {
                self.settle(commitment, &mut outcome);
                if let (Some(to), id) = (outcome.escrow_to, commitment.terms().commitment_id.clone()) {
                    effects.push(Effect::ReleaseEscrow { commitment: id, to });
                }
            } else {
                commitment.set(Status::Withdrawn);
                effects.push(Effect::DropPending(commitment.terms().commitment_id.clone()));
            }
        }
        outcome.commitment = agreed;
        self.outcome = Some(outcome.clone());
        effects.push(Effect::Ended(Box::new(outcome)));
        if matches!(row.then, crate::machine::Then::Move(State::Closed)) {
            effects.push(Effect::Learn);
        }
    }

    /// Who kept and who broke what, and who gets the money (D4, D5).
    fn settle(&self, agreement: &mut Commitment, outcome: &mut Outcome) {
        let left = match outcome.ending {
            Ending::Closed(role)
            | Ending::Unilateral(role)
            | Ending::Withdrawn(role)
            | Ending::Fatal(role) => Some(role),
            _ => None,
        };
        let is_of = |role: Role, obligation: &Obligation| self.role_of(&obligation.party) == Some(role);
        let has_money_in = |role: Role| agreement.by() == role && agreement.terms().escrow.is_some();
        // Whoever leaves while work is open and in time is to blame, unless all that he had to do is done and he has no
        // money in it to take back.
        let to_blame = left.filter(|left| {
            let mut own = agreement.obligations().filter(|(one, _)| is_of(*left, one)).peekable();
            own.peek().is_none() || own.any(|(_, done)| done.is_none()) || has_money_in(*left)
        });
        let mut broken_by = Vec::new();
        for (obligation, done) in agreement.obligations() {
            let deadline = obligation.deadline.unix_millis();
            let party = self.role_of(&obligation.party);
            let fate = match done {
                Some(at) if at <= deadline => Fate::Kept,
                Some(_) => Fate::Late,
                // Both closed: both confirm that all is done.
                None if outcome.ending == Ending::Completed => Fate::Kept,
                None if party == left || outcome.at > deadline => Fate::Broken,
                None => Fate::Open,
            };
            match fate {
                Fate::Broken => broken_by.extend(party),
                Fate::Open => broken_by.extend(to_blame),
                Fate::Kept | Fate::Late => {}
            }
            outcome.obligations.push((obligation.clone(), fate));
        }
        // So has whoever withdraws, also with nothing left to do (D5).
        if let Ending::Withdrawn(role) = outcome.ending {
            broken_by.push(role);
        }
        broken_by.sort_unstable();
        broken_by.dedup();
        outcome.broken_by = broken_by;
        let worst = outcome.obligations.iter().map(|(_, fate)| *fate).max();
        agreement.set(match worst {
            _ if !outcome.broken_by.is_empty() => Status::Broken,
            Some(Fate::Broken) => Status::Broken,
            Some(Fate::Open) => Status::Accepted,
            Some(Fate::Late) => Status::Late,
            Some(Fate::Kept) | None => Status::Fulfilled,
        });
        outcome.escrow_to = agreement.terms().escrow.as_ref().map(|_| self.payee(agreement.by(), outcome));
    }

    /// The side that sent the COMMIT has paid the money in. If the other side has something to do, the money is its pay;
    /// if not, it is a bond for what the depositor has to do.
    fn payee(&self, depositor: Role, outcome: &Outcome) -> Payee {
        let other = depositor.other();
        let mut work = outcome
            .obligations
            .iter()
            .filter(|(obligation, _)| self.role_of(&obligation.party) == Some(other))
            .map(|(_, fate)| *fate)
            .peekable();
        let is_pay = work.peek().is_some();
        let is_earned = is_pay && work.all(|fate| matches!(fate, Fate::Kept | Fate::Late));
        let broke = |role| outcome.broken_by.contains(&role);
        if !broke(other) && (is_earned || broke(depositor)) { Payee::Beneficiary } else { Payee::Depositor }
    }
}

fn ending(row: &Row, message: Option<&Incoming<'_>>, agreed: Option<&Commitment>) -> Ending {
    let binding = agreed.is_some_and(|commitment| commitment.status() == Status::Accepted);
    match (row.on, message) {
        (On::Expiry(timer), _) => Ending::TimedOut(timer),
        (On::Message(_), Some(message)) => match message.body {
            Body::Close(_) if row.number == 11 => Ending::Completed,
            Body::Close(close) if binding && close.reason == Close::UNILATERAL => {
                Ending::Unilateral(message.sender)
            }
            Body::Close(_) => Ending::Closed(message.sender),
            Body::Withdraw(_) => Ending::Withdrawn(message.sender),
            Body::Reject(_) => Ending::Rejected(message.sender),
            _ => Ending::Fatal(message.sender),
        },
        _ => Ending::BrokenChain,
    }
}

fn reason(row: &Row, message: Option<&Incoming<'_>>) -> String {
    match (row.on, message.map(|message| message.body)) {
        (On::Expiry(timer), _) => format!("timeout: the {timer} time ran out"),
        (_, Some(Body::Close(body))) => body.reason.clone(),
        (_, Some(Body::Withdraw(body))) => body.reason.clone(),
        (_, Some(Body::Reject(body))) => body.reason.clone(),
        (_, Some(_)) => "an error that cannot be recovered".to_owned(),
        (_, None) => {
            "hash_chain_integrity: a message links to nothing that the chain has ever had".to_owned()
        }
    }
}
