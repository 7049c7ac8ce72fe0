//! The session: the machine with its memory of proposals, commitments and clocks.
//!
//! Feed it what happens: [`Session::feed`] for each message in the order of the chain, [`Session::wake`] when time has
//! passed, [`Session::break_chain`] when a participant's link is none. Each gives the effects that the caller is to
//! perform, or, for a message, a [`Refusal`]: then nothing has changed. [`Session::next_deadline`] says when to wake it; to
//! wake it early, late or twice does no harm. It never reads a clock: time is an argument, in milliseconds since 1970.

mod effect;
mod ending;
mod facts;
mod outcome;
mod place;
mod proposals;
mod timers;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use effect::Effect;
pub use outcome::{Ending, Fate, Outcome, Payee};
use place::Place;
use proposals::Proposals;
use seal::UnixMillis;
use timers::Timers;

use crate::card::Level;
use crate::commitment::Commitment;
use crate::error::{Code, Refusal};
use crate::id::AgentUri;
use crate::limits::Limits;
use crate::machine::{Answer, Need, On, PAGE, Reading, Role, Row, State, Table, Then, Timer};
use crate::message::Body;

/// One side, as the session needs to know it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    /// Its name.
    pub agent: AgentUri,
    /// How much of the protocol it speaks, by its card.
    pub level: Level,
}

/// A message, as the session needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'m> {
    /// Who sent it.
    pub sender: Role,
    /// What it says.
    pub body: &'m Body,
    /// When it was sent, by its own timestamp: so both sides judge it alike.
    pub at: UnixMillis,
    /// How long its answer may take, in milliseconds.
    pub answer_within: Option<i64>,
    /// What only the receiver can know.
    pub judgement: Judgement,
}

seal::defaults! {
    /// What the receiver of a message has found out about it outside of the session.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Judgement {
        /// The sender's trust meets the receiver's threshold, whoever computes it (D20).
        pub trusted: bool = true,
        /// The escrow of the pending commitment is covered.
        pub funded: bool = true,
        /// A card in the message is the pinned one (D17).
        pub card_pinned: bool = true,
    }
}

/// Which table, and how "any state" is read.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The rows; [`PAGE`] unless something is to be shown.
    pub table: &'static Table,
    /// D3
    pub reading: Reading,
}

impl Default for Rules {
    fn default() -> Self {
        Self { table: &PAGE, reading: Reading::Open }
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.table, other.table) && self.reading == other.reading
    }
}

impl Eq for Rules {}

impl Hash for Rules {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.reading.hash(state);
    }
}

/// What came of a message or of a wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The number of the row on the page; 0 for what has none.
    pub row: u8,
    /// What the caller is to do.
    pub effects: Vec<Effect>,
}

/// One session, as one side knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    rules: Rules,
    parties: Arc<[Party; 2]>,
    place: Place,
    proposals: Proposals,
    timers: Timers,
    /// How long the session is to last once it converses, in milliseconds.
    duration: i64,
    /// Who waits for the answer that the response timer is about.
    waiting: Option<Role>,
    outcome: Option<Outcome>,
}

/// D9
const INVITATION_MILLIS: i64 = 30_000;
/// D9
const SESSION_MILLIS: i64 = 3_600_000;
/// D9
const ESCALATION_MILLIS: i64 = 3_600_000;

impl Session {
    /// A session that is yet to begin: the first side will invite the second.
    pub fn new(inviter: Party, invited: Party, rules: Rules, limits: &Limits) -> Self {
        Self {
            rules,
            parties: Arc::new([inviter, invited]),
            place: Place::Idle,
            proposals: Proposals::new(limits.open_proposals),
            timers: Timers::default(),
            duration: SESSION_MILLIS,
            waiting: None,
            outcome: None,
        }
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.place.state()
    }

    /// What came of it, once it has ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// The commitment that is pending or agreed; also while escalated.
    pub fn commitment(&self) -> Option<&Commitment> {
        self.place.commitment()
    }

    /// The side with that name.
    pub fn role_of(&self, agent: &AgentUri) -> Option<Role> {
        Role::ALL.into_iter().find(|role| &self.party(*role).agent == agent)
    }

    /// One side.
    pub fn party(&self, role: Role) -> &Party {
        &self.parties[role.index()]
    }

    /// When to wake it.
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        self.timers.next().map(|(at, _)| at)
    }

    /// When that timer runs out; `None` while it does not run or stands still.
    pub fn deadline(&self, timer: Timer) -> Option<UnixMillis> {
        self.timers.deadline(timer)
    }

    /// Whether that timer runs or stands still, rather than being off.
    pub fn has_timer(&self, timer: Timer) -> bool {
        self.timers.is_set(timer)
    }

    /// Takes a message, or refuses it and stays as it was. Timers that ran out before the message was sent come first:
    /// wake the session up to its time before feeding it.
    pub fn feed(&mut self, message: &Incoming<'_>) -> Result<Step, Refusal> {
        let on = On::Message(message.body.performative());
        let facts = self.facts(message);
        let row = match self.rules.table.answer(self.rules.reading, self.state(), on, facts) {
            Answer::Taken(row) => *row,
            Answer::Refused(code, need) => return Err(self.refusal(code, need, message)),
        };
        let from = self.state();
        let mut effects = Vec::new();
        self.move_by(&row, Some(message), message.at, &mut effects);
        if let Then::Refuse(code) = row.then {
            return Err(self.refusal(code, None, message));
        }
        self.note_response(message, &mut effects);
        Ok(Step { from, to: self.state(), row: row.number, effects })
    }

    /// Lets timers run out that are due, the earliest first.
    pub fn wake(&mut self, now: UnixMillis) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some((at, timer)) = self.timers.next()
            && at <= now
        {
            self.timers.stop(timer);
            let on = On::Expiry(timer);
            let facts = crate::machine::Facts::NONE;
            if let Answer::Taken(row) = self.rules.table.answer(self.rules.reading, self.state(), on, facts) {
                let (row, from) = (*row, self.state());
                let waiting = self.waiting.take_if(|_| timer == Timer::Response);
                let mut effects = vec![Effect::Expired { timer, waiting }];
                self.move_by(&row, None, at, &mut effects);
                steps.push(Step { from, to: self.state(), row: row.number, effects });
            }
        }
        steps
    }

    /// A participant's message links to nothing that the chain has ever had: the session fails (D7).
    pub fn break_chain(&mut self, now: UnixMillis) -> Option<Step> {
        let facts = crate::machine::Facts::NONE;
        let Answer::Taken(row) =
            self.rules.table.answer(self.rules.reading, self.state(), On::BrokenChain, facts)
        else {
            return None;
        };
        let (row, from) = (*row, self.state());
        let mut effects = Vec::new();
        self.move_by(&row, None, now, &mut effects);
        Some(Step { from, to: self.state(), row: row.number, effects })
    }

    /// Does what the row does, then goes where it leads.
    fn move_by(
        &mut self,
        row: &Row,
        message: Option<&Incoming<'_>>,
        now: UnixMillis,
        effects: &mut Vec<Effect>,
    ) {
        for what in row.effects {
            self.perform(*what, row, message, now, effects);
        }
        match row.then {
            Then::Stay | Then::Refuse(_) => {}
            Then::Back => {
                if let Place::Escalated(escalation) = std::mem::replace(&mut self.place, Place::Failed) {
                    self.place = *escalation.from;
                }
            }
            Then::Move(to) => self.go(to, message),
        }
        if self.state().is_terminal() {
            self.timers.stop_all();
            self.waiting = None;
        }
    }

    /// D9: any message of the other side is an answer; a message that sets a time starts the clock.
    fn note_response(&mut self, message: &Incoming<'_>, effects: &mut Vec<Effect>) {
        if self.waiting.is_some_and(|waiting| waiting != message.sender) {
            self.waiting = None;
            self.timers.stop(Timer::Response);
            effects.push(Effect::StopTimer(Timer::Response));
        }
        let resting = matches!(self.state(), State::Escalated | State::Closed | State::Failed);
        if let Some(within) = message.answer_within.filter(|_| !resting) {
            self.waiting = Some(message.sender);
            self.start(Timer::Response, message.at.saturating_add(within), effects);
        }
    }

    fn start(&mut self, timer: Timer, at: UnixMillis, effects: &mut Vec<Effect>) {
        self.timers.start(timer, at);
        effects.push(Effect::StartTimer { timer, at });
    }

    fn refusal(&self, code: Code, need: Option<Need>, message: &Incoming<'_>) -> Refusal {
        Refusal::new(code, facts::why(self, need, message))
    }
}
