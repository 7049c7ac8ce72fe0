//! The simulation: delivers messages, advances the clock, performs the escrow effects and narrates.

use asp::escrow::{Deposit, EscrowAnswer, EscrowId, EscrowLedger, EscrowProvider as _, EscrowRequest};
use asp::message::{Body, Constraints};
use asp::session::{Effect, ReceiverChecks, Transition};
use asp::state_machine::{Role, State};
use asp::{CommitmentId, Participant, ReceiveOutcome};
use seal::UnixMillis;

use super::actors::{Actor, Actors, RandomSource};
use crate::asp::narration;

/// Two agents, the simulated clock and the escrow ledger.
pub(super) struct Simulation<'s> {
    all_actors: &'s Actors,
    actors: [&'s Actor; 2],
    participants: [Participant; 2],
    random_source: &'s mut RandomSource,
    pub(super) now: UnixMillis,
    pub(super) ledger: EscrowLedger,
    pub(super) messages: Vec<String>,
    pub(super) narration: Vec<String>,
}

/// Why a scenario failed. Only a bug can cause this.
pub(super) type ScenarioError = String;

impl<'s> Simulation<'s> {
    /// Creates a session in which `inviter` invites `invited`.
    pub(super) fn new(
        all_actors: &'s Actors,
        inviter: &'s Actor,
        invited: &'s Actor,
        random_source: &'s mut RandomSource,
        now: UnixMillis,
    ) -> Result<Self, ScenarioError> {
        let describe_error = |error: asp::LocalError| error.to_string();
        let mut first = Actors::create_participant(inviter, invited).map_err(describe_error)?;
        let second = Actors::create_participant(invited, inviter).map_err(describe_error)?;
        first.invite(invited.card(), now, random_source).map_err(describe_error)?;
        Ok(Self {
            all_actors,
            actors: [inviter, invited],
            participants: [first, second],
            random_source,
            now,
            ledger: EscrowLedger::default(),
            messages: Vec::new(),
            narration: Vec::new(),
        })
    }

    pub(super) fn actor(&self, role: Role) -> &'s Actor {
        self.actors[index(role)]
    }

    pub(super) fn random_source(&mut self) -> &mut RandomSource {
        self.random_source
    }

    pub(super) fn state(&self) -> State {
        self.participants[0].session().map_or(State::Idle, asp::session::AspSession::state)
    }

    /// Adds a line to the narration. The line starts with the time of day.
    pub(super) fn narrate(&mut self, text: &str) {
        self.narration.push(format!("{} {text}", narration::format_clock(self.now)));
    }

    /// Advances the clock, and narrates the timers that expire.
    pub(super) fn advance_clock(&mut self, seconds: i64) {
        self.now += seconds * 1000;
        let transitions = self.participants[0].handle_timeout(self.now);
        self.participants[1].handle_timeout(self.now);
        for transition in &transitions {
            for effect in &transition.effects {
                if let Effect::TimerExpired { timer, .. } = effect {
                    self.narrate(&format!(
                        "The {timer} timeout has expired. ({} to {})",
                        transition.from, transition.to
                    ));
                }
            }
        }
        self.perform_effects(&transitions);
    }

    /// Advances the clock by two seconds, and delivers a message from the agent in this role to the other agent.
    pub(super) fn send(&mut self, role: Role, body: impl Into<Body>) -> Result<(), ScenarioError> {
        self.send_with_constraints(role, body, None)
    }

    /// Like [`Self::send`], with constraints for the reply.
    pub(super) fn send_with_constraints(
        &mut self,
        role: Role,
        body: impl Into<Body>,
        constraints: Option<Constraints>,
    ) -> Result<(), ScenarioError> {
        self.advance_clock(2);
        let (body, state) = (body.into(), self.state());
        let checks = ReceiverChecks { is_funded: self.is_funded(), ..ReceiverChecks::PASSED };
        let (sender, receiver) = (index(role), index(role.other()));
        let sent = self.participants[sender]
            .send_with(body.clone(), constraints, checks, self.now, self.random_source)
            .map_err(|error| error.to_string())?;
        let received = self.participants[receiver]
            .receive(&sent.text, checks, self.now, self.random_source)
            .map_err(|error| error.to_string())?;
        if !matches!(received, ReceiveOutcome::Accepted { .. }) {
            return Err(format!("the other side refused the message: {received:?}"));
        }
        self.participants[sender].settle(sent.message_id);
        let sentence = narration::describe_message(&body, state, self.actor(role.other()).name, |agent| {
            self.all_actors.name(agent)
        });
        let sentence = narration::to_sentence(&format!("{} {sentence}", self.actor(role).name));
        let transition = sent.transitions.last().filter(|transition| transition.from != transition.to);
        let transition = transition
            .map(|transition| format!(", {} to {}", transition.from, transition.to))
            .unwrap_or_default();
        self.narrate(&format!("{sentence} ({}{transition})", body.performative()));
        self.messages.push(sent.text.to_string());
        self.perform_effects(&sent.transitions);
        Ok(())
    }

    /// Returns whether the depositor can pay the escrow of the current commitment. Returns true if there is no escrow.
    fn is_funded(&self) -> bool {
        let commitment = self.participants[0].session().and_then(asp::session::AspSession::commitment);
        commitment.is_none_or(|commitment| {
            let depositor = self.actor(commitment.sender()).agent();
            let escrow = commitment.commit().escrow.as_ref();
            escrow.is_none_or(|escrow| self.ledger.can_cover(depositor, &escrow.amount, &escrow.currency))
        })
    }

    fn escrow_id(&self, commitment_id: &CommitmentId) -> Option<EscrowId> {
        let session_id = self.participants[0].record()?.session_id();
        Some(EscrowId { session_id, commitment_id: commitment_id.clone() })
    }

    fn perform_effects(&mut self, transitions: &[Transition]) {
        for effect in transitions.iter().flat_map(|transition| transition.effects.clone()) {
            match &effect {
                Effect::ActivateEscrow { commitment, depositor, amount, currency } => {
                    let deposit = Deposit {
                        depositor: self.actor(*depositor).agent().clone(),
                        beneficiary: self.actor(depositor.other()).agent().clone(),
                        amount: amount.clone(),
                        currency: currency.clone(),
                    };
                    let Some(id) = self.escrow_id(commitment) else { continue };
                    match self.ledger.submit(&EscrowRequest::Hold { id, deposit }, self.now) {
                        EscrowAnswer::Refused(error) => {
                            self.narrate(&format!("The escrow could not be held: {error}."));
                        }
                        _ => self.narrate(&format!("{amount} {currency} is held in escrow.")),
                    }
                }
                Effect::ReleaseEscrow { commitment, to } => {
                    let Some(id) = self.escrow_id(commitment) else { continue };
                    let request = EscrowRequest::Release { id, to: *to };
                    if let EscrowAnswer::Refused(error) = self.ledger.submit(&request, self.now) {
                        self.narrate(&format!("The escrow could not be paid out: {error}."));
                    }
                }
                Effect::NotifyHandler { handler, .. } => {
                    let handler = handler.as_deref().unwrap_or("Someone with the authority to decide");
                    self.narrate(&format!("{handler} has been asked. The session waits for the answer."));
                }
                Effect::SessionEnded(outcome) => {
                    if let Some(session) = self.participants[0].session() {
                        let lines = narration::describe_outcome(outcome, session, |agent| {
                            self.all_actors.name(agent)
                        });
                        self.narration.extend(lines);
                    }
                }
                _ => {}
            }
        }
    }
}

fn index(role: Role) -> usize {
    match role {
        Role::Inviter => 0,
        Role::Invited => 1,
    }
}
