//! Rows, and what a table of them answers.

use std::borrow::Cow;

use super::facts::{Fact, Facts};
use super::state::{Reading, State, Timer};
use crate::Performative;
use crate::error::Code;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum On {
    /// A message arrives.
    Message(Performative),
    /// A timer runs out.
    Expiry(Timer),
    /// A participant's message links to nothing that the chain has ever had (D7).
    BrokenChain,
}

/// Where a row leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Then {
    /// To this state.
    Move(State),
    /// Nowhere: the message is taken, the state stays.
    Stay,
    /// To the state that the escalation left.
    Back,
    /// Nowhere: the message is refused.
    Refuse(Code),
}

/// What a row does, beside moving. The session turns each into an effect with its particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Do {
    /// Make the session's channel.
    OpenChannel,
    /// Start a timer.
    Start(Timer),
    /// Stop a timer.
    Stop(Timer),
    /// Let the other clocks stand still while somebody outside decides.
    Freeze,
    /// Let them go on.
    Thaw,
    /// The invitation is accepted.
    NoteAnswer,
    /// The sender has said who it is.
    NoteIdentity,
    /// Both identities are known and recorded.
    RecordIdentities,
    /// The performatives of each side's level are enabled.
    Enable,
    /// The message opens a proposal.
    OpenProposal,
    /// The message shuts the proposal that it names.
    ShutProposal,
    /// The commitment of the message is pending.
    Pend,
    /// The pending commitment is dropped.
    DropPending,
    /// The pending commitment binds.
    Bind,
    /// The money is held.
    ActivateEscrow,
    /// A report on the work.
    NoteWork,
    /// The sender would close.
    NoteWish,
    /// Tell the handler of the escalation.
    NotifyHandler,
    /// The end: the outcome is drawn up, money is given out, each side learns for itself.
    End,
}

impl Do {
    /// In words.
    pub fn words(self) -> Cow<'static, str> {
        match self {
            Self::OpenChannel => "open the channel".into(),
            Self::Start(timer) => format!("start the {timer} timer").into(),
            Self::Stop(timer) => format!("stop the {timer} timer").into(),
            Self::Freeze => "the other clocks stand still".into(),
            Self::Thaw => "the other clocks go on".into(),
            Self::NoteAnswer => "the invitation is answered".into(),
            Self::NoteIdentity => "note the identity".into(),
            Self::RecordIdentities => "record both identities".into(),
            Self::Enable => "enable the performatives of each level".into(),
            Self::OpenProposal => "open the proposal".into(),
            Self::ShutProposal => "shut the proposal named".into(),
            Self::Pend => "record the pending commitment".into(),
            Self::DropPending => "drop the pending commitment".into(),
            Self::Bind => "record the agreement".into(),
            Self::ActivateEscrow => "activate escrow".into(),
            Self::NoteWork => "note the work".into(),
            Self::NoteWish => "note the wish to close".into(),
            Self::NotifyHandler => "notify the handler".into(),
            Self::End => "draw up the outcome, release escrow, learn".into(),
        }
    }
}

/// A fact that a row needs, and the code of the refusal where it is otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Need {
    /// The fact.
    pub fact: Fact,
    /// Whether it must hold, or must not.
    pub holds: bool,
    /// What the refusal says.
    pub code: Code,
}

/// One row: in these states, when this happens, if these facts choose it, and if what it needs is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// Its number on the page; 0 for what the page allows without a number.
    pub number: u8,
    /// Where it applies.
    pub from: &'static [State],
    /// What happens.
    pub on: On,
    /// The facts by which it is chosen among the rows of its cell.
    pub when: &'static [(Fact, bool)],
    /// What it needs, in the order in which it is asked for.
    pub needs: &'static [Need],
    /// Where it leads.
    pub then: Then,
    /// What it does.
    pub effects: &'static [Do],
    /// Whether the page's list of performatives for each state names it too (D3).
    pub listed: bool,
}

impl Row {
    pub(crate) const fn new(number: u8, from: &'static [State], on: On) -> Self {
        Self { number, from, on, when: &[], needs: &[], then: Then::Stay, effects: &[], listed: true }
    }

    pub(crate) const fn when(mut self, facts: &'static [(Fact, bool)]) -> Self {
        self.when = facts;
        self
    }

    pub(crate) const fn needs(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }

    pub(crate) const fn to(mut self, state: State) -> Self {
        self.then = Then::Move(state);
        self
    }

    pub(crate) const fn back(mut self) -> Self {
        self.then = Then::Back;
        self
    }

    pub(crate) const fn refused(mut self, code: Code) -> Self {
        self.then = Then::Refuse(code);
        self
    }

    pub(crate) const fn does(mut self, effects: &'static [Do]) -> Self {
        self.effects = effects;
        self
    }

    /// Only in the open reading.
    pub(crate) const fn unlisted(mut self) -> Self {
        self.listed = false;
        self
    }
}

/// What a table makes of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'t> {
    /// This row.
    Taken(&'t Row),
    /// Refused with this code; the need that was not met, if it was one.
    Refused(Code, Option<Need>),
}

/// A table of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(Cow<'static, [Row]>);

impl Table {
    /// A table of these rows. The protocol's own is [`super::PAGE`]; others are for showing that a broken one is noticed.
    pub const fn new(rows: Cow<'static, [Row]>) -> Self {
        Self(rows)
    }

    /// Its rows.
    pub fn rows(&self) -> &[Row] {
        &self.0
    }

    /// What is made of this cell: the first row that applies and is chosen, if its needs are met.
    pub fn answer(&self, reading: Reading, state: State, on: On, facts: Facts) -> Answer<'_> {
        let row = self
            .cell(reading, state, on)
            .find(|row| row.when.iter().all(|(fact, holds)| facts.has(*fact) == *holds));
        let Some(row) = row else { return Answer::Refused(Code::InvalidStateTransition, None) };
        match row.needs.iter().find(|need| facts.has(need.fact) != need.holds) {
            Some(need) => Answer::Refused(need.code, Some(*need)),
            None => Answer::Taken(row),
        }
    }

    /// The rows of one cell.
    pub fn cell(&self, reading: Reading, state: State, on: On) -> impl Iterator<Item = &Row> {
        self.0
            .iter()
            .filter(move |row| row.on == on && row.from.contains(&state))
            .filter(move |row| row.listed || reading == Reading::Open)
    }

    /// The performatives that some row takes in that state.
    pub fn allowed(&self, reading: Reading, state: State) -> Vec<Performative> {
        Performative::ALL
            .into_iter()
            .filter(|performative| self.cell(reading, state, On::Message(*performative)).next().is_some())
            .collect()
    }
}
