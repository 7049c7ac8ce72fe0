//! The session: the state machine with its proposals, commitments and timers.
//!
//! Call [`AspSession::handle_message`] for each message in chain order, [`AspSession::handle_timeout`] when time has
//! passed, and [`AspSession::handle_broken_chain`] when a participant's message links to an unknown hash. Each call
//! returns the effects that the caller must perform. For a message, it may return a [`Refusal`] instead; in that case
//! nothing has changed. [`AspSession::next_deadline`] returns when to call `handle_timeout`. Calling `handle_timeout` early,
//! late or twice is harmless. The session never reads a clock: time is an argument, in milliseconds since 1970.

mod actions;
mod answer_constraints;
mod effect;
mod facts;
mod outcome;
mod proposals;
mod state_data;
mod timers;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use answer_constraints::AnswerConstraints;
pub use effect::Effect;
pub use outcome::{ObligationOutcome, Payee, SessionEnding, SessionOutcome};
use proposals::Proposals;
use seal::UnixMillis;
use state_data::StateData;
use timers::Timers;

use crate::agent_card::ConformanceLevel;
use crate::commitment::Commitment;
use crate::error::{Refusal, RejectCode};
use crate::id::{AgentUri, MessageId};
use crate::limits::AspLimits;
use crate::message::{Body, Constraints, TrustScore};
use crate::state_machine::{
    AnyStateInterpretation, Evaluation, PROTOCOL_TABLE, Requirement, Role, State, Timer, TransitionRow,
    TransitionTable, TransitionTarget, Trigger,
};

/// One side of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    /// Its agent URI.
    pub agent: AgentUri,
    /// Its conformance level, from its card.
    pub level: ConformanceLevel,
}

/// The parts of a message that the session needs.
#[derive(Clone, Copy, Debug)]
pub struct IncomingMessage<'m> {
    /// Its id.
    pub message_id: MessageId,
    /// The side that sent the message.
    pub sender: Role,
    /// Its body.
    pub body: &'m Body,
    /// When it was sent, according to its timestamp. Both sides use this time, so they get the same result.
    pub sent_at: UnixMillis,
    /// How long the answer may take, in milliseconds.
    pub response_timeout_ms: Option<i64>,
    /// The constraints on the answer (D23).
    pub constraints: Option<&'m Constraints>,
    /// The number of tokens that the sender states it used for this message.
    pub tokens_used: Option<u64>,
    /// The results of the receiver's checks.
    pub checks: ReceiverChecks,
}

/// The results of checks that the receiver of a message made outside the session. There is no default, because a caller
/// that forgets a check must not trust the sender.
///
/// ```compile_fail
/// let checks = asp::session::ReceiverChecks::default();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReceiverChecks {
    /// The sender's trust meets the receiver's threshold. The caller decides this (D20).
    pub is_trusted: bool,
    /// The escrow of the pending commitment is covered.
    pub is_funded: bool,
    /// The message contains no card, or contains the pinned card (D17).
    pub is_card_pinned: bool,
    /// The message needs no consent of a person, or has the one that the receiver requires (D24).
    pub has_required_consent: bool,
    /// The sender's trust score, computed by the receiver; `None` if it is unknown. A message that answers a message with
    /// `requiredTrustScore` needs it (D23).
    pub trust_score: Option<TrustScore>,
}

impl ReceiverChecks {
    /// Every check passed. Also used where nothing remains to be checked: for own messages, and to read a transcript that
    /// both sides have already accepted.
    pub const PASSED: Self = Self {
        is_trusted: true,
        is_funded: true,
        is_card_pinned: true,
        has_required_consent: true,
        trust_score: Some(TrustScore::MAX),
    };
}

/// The transition table, and the meaning of "any state" in the specification.
#[derive(Clone, Copy, Debug)]
pub struct SessionRules {
    /// The table. Only tests use one other than [`PROTOCOL_TABLE`].
    pub table: &'static TransitionTable,
    /// Which states "any state" covers (D3).
    pub any_state: AnyStateInterpretation,
}

impl Default for SessionRules {
    fn default() -> Self {
        Self { table: &PROTOCOL_TABLE, any_state: AnyStateInterpretation::EveryLiveState }
    }
}

impl PartialEq for SessionRules {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.table, other.table) && self.any_state == other.any_state
    }
}

impl Eq for SessionRules {}

impl Hash for SessionRules {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.any_state.hash(state);
    }
}

/// The result of a message, an expired timer or a broken chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The number of the row on npayload's page; 0 if the page gives none.
    pub row_number: u8,
    /// The effects that the caller must perform.
    pub effects: Vec<Effect>,
}

/// A message that set a response time and is not answered (D9).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AwaitedResponse {
    /// The message.
    pub message_id: MessageId,
    /// The side that sent the message and awaits the response.
    pub awaited_by: Role,
    /// How long the response may take, in milliseconds.
    pub limit_ms: i64,
    /// When the response was due, once that time has passed.
    pub overdue_since: Option<UnixMillis>,
}

/// One session, as one side sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AspSession {
    rules: SessionRules,
    parties: Arc<[Party; 2]>,
    state_data: StateData,
    proposals: Proposals,
    timers: Timers,
    /// How long the session may last after it first reaches CONVERSING, in milliseconds.
    duration_ms: i64,
    /// The message that awaits a response.
    awaited: Option<AwaitedResponse>,
    /// The constraints on the next message of one side (D23).
    answer_constraints: Option<AnswerConstraints>,
    outcome: Option<SessionOutcome>,
}

/// Time to answer an invitation that sets no deadline (D9).
const INVITATION_TIMEOUT_MS: i64 = 30_000;
/// How long INTRODUCED may last, in milliseconds (D21).
const INTRODUCTION_TIMEOUT_MS: i64 = 300_000;
/// Duration of a session whose invitation sets none (D9).
const DEFAULT_SESSION_DURATION_MS: i64 = 3_600_000;
/// Time to decide an escalation that sets no timeout (D9).
const ESCALATION_TIMEOUT_MS: i64 = 3_600_000;

impl AspSession {
    /// Creates a session that has not begun.
    pub fn new(inviter: Party, invited: Party, rules: SessionRules, limits: &AspLimits) -> Self {
        Self {
            rules,
            parties: Arc::new([inviter, invited]),
            state_data: StateData::Idle,
            proposals: Proposals::new(limits.max_open_proposals),
            timers: Timers::default(),
            duration_ms: DEFAULT_SESSION_DURATION_MS,
            awaited: None,
            answer_constraints: None,
            outcome: None,
        }
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        self.state_data.state()
    }

    /// Returns the outcome, if the session has ended.
    pub fn outcome(&self) -> Option<&SessionOutcome> {
        self.outcome.as_ref()
    }

    /// Returns the pending or agreed commitment, even while the session is escalated.
    pub fn commitment(&self) -> Option<&Commitment> {
        self.state_data.commitment()
    }

    /// Returns whether this side must still identify itself: the invitation is accepted, and it has not done so (D2).
    pub fn awaits_identity(&self, role: Role) -> bool {
        matches!(&self.state_data, StateData::Invited(invited)
            if invited.is_accepted && !invited.is_identified[role.index()])
    }

    /// Returns the side that escalated, while the session is ESCALATED.
    pub fn escalated_by(&self) -> Option<Role> {
        match &self.state_data {
            StateData::Escalated(escalated) => Some(escalated.by),
            _ => None,
        }
    }

    /// Returns the role of an agent, if it takes part.
    pub fn role_of(&self, agent: &AgentUri) -> Option<Role> {
        Role::ALL.into_iter().find(|role| &self.party(*role).agent == agent)
    }

    /// Returns one side.
    pub fn party(&self, role: Role) -> &Party {
        &self.parties[role.index()]
    }

    /// Returns when [`Self::handle_timeout`] must be called next.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        self.timers.next_expiry().map(|(at, _)| at)
    }

    /// Returns when a timer expires; `None` while it is off or paused.
    pub fn deadline(&self, timer: Timer) -> Option<UnixMillis> {
        self.timers.deadline(timer)
    }

    /// Returns the message that awaits a response, even if the response is overdue.
    pub fn awaited_response(&self) -> Option<&AwaitedResponse> {
        self.awaited.as_ref()
    }

    /// Returns whether a timer is running or paused.
    pub fn is_timer_set(&self, timer: Timer) -> bool {
        self.timers.is_set(timer)
    }

    /// Handles a message, or refuses it and changes nothing. The caller must first call [`Self::handle_timeout`] with
    /// the message's time, so that timers that expired before it take effect.
    pub fn handle_message(&mut self, message: &IncomingMessage<'_>) -> Result<Transition, Refusal> {
        let trigger = Trigger::Message(message.body.performative());
        let facts = self.facts(message);
        let row = match self.rules.table.evaluate(self.rules.any_state, self.state(), trigger, facts) {
            Evaluation::Matched(row) => *row,
            Evaluation::Refused(code, requirement) => return Err(self.refusal(code, requirement, message)),
        };
        if !matches!(row.target, TransitionTarget::Refuse(_))
            && let Some(constraints) = &self.answer_constraints
        {
            constraints.check(message)?;
        }
        if !message.checks.has_required_consent {
            let reason = "this side requires the valid consent of a person";
            return Err(Refusal::new(RejectCode::EscalationRequired, reason));
        }
        let from = self.state();
        let mut effects = Vec::new();
        // A row can pause or stop the timers, so what the message answers is determined first.
        let answered = self.answered_by(message);
        self.apply_row(&row, Some(message), message.sent_at, &mut effects);
        if let TransitionTarget::Refuse(code) = row.target {
            return Err(self.refusal(code, None, message));
        }
        self.update_response_timer(message, answered, &mut effects);
        if !self.state().is_terminal() {
            self.answer_constraints = AnswerConstraints::after(self.answer_constraints.take(), message);
        }
        Ok(Transition { from, to: self.state(), row_number: row.number, effects })
    }

    /// Handles all timers that expired, the earliest first.
    pub fn handle_timeout(&mut self, now: UnixMillis) -> Vec<Transition> {
        let mut transitions = Vec::new();
        while let Some((at, timer)) = self.timers.next_expiry()
            && at <= now
        {
            self.timers.stop(timer);
            let trigger = Trigger::TimerExpired(timer);
            let facts = crate::state_machine::Facts::NONE;
            if let Evaluation::Matched(row) =
                self.rules.table.evaluate(self.rules.any_state, self.state(), trigger, facts)
            {
                let (row, from) = (*row, self.state());
                let awaited = self.awaited.as_mut().filter(|_| timer == Timer::Response);
                let awaiting_response = awaited.map(|awaited| {
                    awaited.overdue_since = Some(at);
                    awaited.awaited_by
                });
                let mut effects = vec![Effect::TimerExpired { timer, awaiting_response }];
                self.apply_row(&row, None, at, &mut effects);
                transitions.push(Transition { from, to: self.state(), row_number: row.number, effects });
            }
        }
        transitions
    }

    /// Fails the session because a participant's message links to a hash that the chain never had (D7).
    pub fn handle_broken_chain(&mut self, now: UnixMillis) -> Option<Transition> {
        let facts = crate::state_machine::Facts::NONE;
        let Evaluation::Matched(row) =
            self.rules.table.evaluate(self.rules.any_state, self.state(), Trigger::BrokenChain, facts)
        else {
            return None;
        };
        let (row, from) = (*row, self.state());
        let mut effects = Vec::new();
        self.apply_row(&row, None, now, &mut effects);
        Some(Transition { from, to: self.state(), row_number: row.number, effects })
    }

    /// Performs the actions of a row, then its state change.
    fn apply_row(
        &mut self,
        row: &TransitionRow,
        message: Option<&IncomingMessage<'_>>,
        now: UnixMillis,
        effects: &mut Vec<Effect>,
    ) {
        for action in row.actions {
            self.perform(*action, row, message, now, effects);
        }
        match row.target {
            TransitionTarget::Stay | TransitionTarget::Refuse(_) => {}
            TransitionTarget::Return => {
                if let StateData::Escalated(escalation) =
                    std::mem::replace(&mut self.state_data, StateData::Failed)
                {
                    self.state_data = *escalation.previous;
                }
            }
            TransitionTarget::Move(to) => self.enter_state(to, message),
        }
        if self.state().is_terminal() {
            self.timers.stop_all();
            let is_answer = |awaited: &AwaitedResponse| {
                message.is_some_and(|message| message.sender != awaited.awaited_by)
            };
            if let Some(awaited) = self.awaited.take().filter(|awaited| !is_answer(awaited)) {
                effects.extend(awaited.missed());
            }
            self.answer_constraints = None;
        }
    }

    /// Returns the effect on the message that awaits a response, if this message is the response (D9). Any message from the
    /// other side counts as one.
    fn answered_by(&self, message: &IncomingMessage<'_>) -> Option<Effect> {
        let awaited = self.awaited.as_ref().filter(|awaited| awaited.awaited_by != message.sender)?;
        Some(Effect::ResponseReceived {
            awaited_by: awaited.awaited_by,
            limit_ms: awaited.limit_ms,
            due_at: awaited.overdue_since.or_else(|| self.timers.deadline(Timer::Response)),
            answered_at: message.sent_at,
        })
    }

    /// Updates the response timer (D9). A message that sets a response time starts the timer.
    fn update_response_timer(
        &mut self,
        message: &IncomingMessage<'_>,
        answered: Option<Effect>,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(answered) = answered {
            self.awaited = None;
            self.timers.stop(Timer::Response);
            effects.extend([Effect::StopTimer(Timer::Response), answered]);
        }
        let is_inactive = matches!(self.state(), State::Escalated | State::Closed | State::Failed);
        if let Some(limit_ms) = message.response_timeout_ms.filter(|_| !is_inactive) {
            // A message that asks again replaces the one before it.
            effects.extend(self.awaited.take().and_then(AwaitedResponse::missed));
            let (message_id, awaited_by) = (message.message_id, message.sender);
            self.awaited = Some(AwaitedResponse { message_id, awaited_by, limit_ms, overdue_since: None });
            self.start_timer(Timer::Response, message.sent_at.saturating_add(limit_ms), effects);
        }
    }

    fn start_timer(&mut self, timer: Timer, expires_at: UnixMillis, effects: &mut Vec<Effect>) {
        self.timers.start(timer, expires_at);
        effects.push(Effect::StartTimer { timer, expires_at });
    }

    fn refusal(
        &self,
        code: RejectCode,
        requirement: Option<Requirement>,
        message: &IncomingMessage<'_>,
    ) -> Refusal {
        Refusal::new(code, facts::refusal_reason(self, requirement, message))
    }
}

impl AwaitedResponse {
    /// Returns the effect of giving up the wait. It has one only if the response is overdue.
    fn missed(self) -> Option<Effect> {
        let missed = Effect::ResponseMissed { awaited_by: self.awaited_by, message_id: self.message_id };
        self.overdue_since.map(|_| missed)
    }
}
