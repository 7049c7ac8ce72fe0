//! The stage: carries messages, moves the clock, pays and tells.

use asp::escrow::{Deposit, EscrowAgent, Ledger};
use asp::machine::{Role, State};
use asp::message::{Body, Constraints};
use asp::session::{Effect, Judgement, Step};
use asp::{Participant, Received};
use seal::UnixMillis;

use super::cast::{Actor, Cast, Source};
use crate::asp::story;

/// Two agents and what is between them.
pub(super) struct Stage<'s> {
    cast: &'s Cast,
    actors: [&'s Actor; 2],
    sides: [Participant; 2],
    source: &'s mut Source,
    pub(super) now: UnixMillis,
    pub(super) ledger: Ledger,
    pub(super) messages: Vec<String>,
    pub(super) told: Vec<String>,
}

/// Why the play stops: only a fault of ours can do that.
pub(super) type Stopped = String;

impl<'s> Stage<'s> {
    /// The first actor will invite the second.
    pub(super) fn new(
        cast: &'s Cast,
        inviter: &'s Actor,
        invited: &'s Actor,
        source: &'s mut Source,
        now: UnixMillis,
    ) -> Result<Self, Stopped> {
        let told = |error: asp::Misuse| error.to_string();
        let mut first = Cast::participant(inviter, invited).map_err(told)?;
        let second = Cast::participant(invited, inviter).map_err(told)?;
        first.invite(invited.card(), now, source).map_err(told)?;
        Ok(Self {
            cast,
            actors: [inviter, invited],
            sides: [first, second],
            source,
            now,
            ledger: Ledger::default(),
            messages: Vec::new(),
            told: Vec::new(),
        })
    }

    pub(super) fn actor(&self, role: Role) -> &'s Actor {
        self.actors[index(role)]
    }

    pub(super) fn source(&mut self) -> &mut Source {
        self.source
    }

    pub(super) fn state(&self) -> State {
        self.sides[0].session().map_or(State::Idle, asp::session::Session::state)
    }

    /// A line that is no message.
    pub(super) fn tell(&mut self, text: &str) {
        self.told.push(format!("{} {text}", story::clock(self.now)));
    }

    /// Time passes; timers that run out are told.
    pub(super) fn wait(&mut self, seconds: i64) {
        self.now += seconds * 1000;
        let steps = self.sides[0].wake(self.now);
        self.sides[1].wake(self.now);
        for step in &steps {
            for effect in &step.effects {
                if let Effect::Expired { timer, .. } = effect {
                    self.tell(&format!("The {timer} time runs out. ({} to {})", step.from, step.to));
                }
            }
        }
        self.perform(&steps);
    }

    /// One side says something to the other, two seconds later.
    pub(super) fn say(&mut self, role: Role, body: impl Into<Body>) -> Result<(), Stopped> {
        self.say_within(role, body, None)
    }

    /// As [`Self::say`], with what is asked of the answer.
    pub(super) fn say_within(
        &mut self,
        role: Role,
        body: impl Into<Body>,
        constraints: Option<Constraints>,
    ) -> Result<(), Stopped> {
        self.wait(2);
        let (body, state) = (body.into(), self.state());
        let judgement = Judgement { funded: self.is_funded(), ..Judgement::default() };
        let (speaker, hearer) = (index(role), index(role.other()));
        let sent = self.sides[speaker]
            .send_with(body.clone(), constraints, judgement, self.now, self.source)
            .map_err(|error| error.to_string())?;
        let heard = self.sides[hearer]
            .receive(&sent.text, judgement, self.now, self.source)
            .map_err(|error| error.to_string())?;
        if !matches!(heard, Received::Taken { .. }) {
            return Err(format!("the other side did not take it: {heard:?}"));
        }
        self.sides[speaker].settle(sent.message_id);
        let act = story::act(&body, state, self.actor(role.other()).name, |agent| self.cast.name(agent));
        let act = story::sentence(&format!("{} {act}", self.actor(role).name));
        let moved = sent.steps.last().filter(|step| step.from != step.to);
        let moved = moved.map(|step| format!(", {} to {}", step.from, step.to)).unwrap_or_default();
        self.tell(&format!("{act} ({}{moved})", body.performative()));
        self.messages.push(sent.text.to_string());
        self.perform(&sent.steps);
        Ok(())
    }

    fn is_funded(&self) -> bool {
        let commitment = self.sides[0].session().and_then(asp::session::Session::commitment);
        commitment.is_none_or(|commitment| {
            let depositor = self.actor(commitment.by()).agent();
            let escrow = commitment.terms().escrow.as_ref();
            escrow.is_none_or(|escrow| self.ledger.covers(depositor, &escrow.amount, &escrow.currency))
        })
    }

    /// Does what the session asks for.
    fn perform(&mut self, steps: &[Step]) {
        for effect in steps.iter().flat_map(|step| step.effects.clone()) {
            match &effect {
                Effect::ActivateEscrow { commitment, depositor, amount, currency } => {
                    let deposit = Deposit {
                        depositor: self.actor(*depositor).agent().clone(),
                        beneficiary: self.actor(depositor.other()).agent().clone(),
                        amount: amount.clone(),
                        currency: currency.clone(),
                    };
                    match self.ledger.hold(commitment, deposit) {
                        Ok(()) => self.tell(&format!("{amount} {currency} is held in escrow.")),
                        Err(why) => self.tell(&format!("The escrow could not be held: {why}.")),
                    }
                }
                Effect::ReleaseEscrow { commitment, to } => {
                    if let Err(why) = self.ledger.release(commitment, *to) {
                        self.tell(&format!("The escrow could not be given out: {why}."));
                    }
                }
                Effect::NotifyHandler { handler, .. } => {
                    let handler = handler.as_deref().unwrap_or("Somebody with the authority");
                    self.tell(&format!(
                        "{handler} is asked. Until there is an answer, everything stands still."
                    ));
                }
                Effect::Ended(outcome) => {
                    if let Some(session) = self.sides[0].session() {
                        let lines = story::outcome(outcome, session, |agent| self.cast.name(agent));
                        self.told.extend(lines);
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
