//! The properties that hold in every run, judged by an onlooker who knows the messages and never asks the table.

use asp::machine::{Role, State};
use asp::message::{Body, InformType};
use asp::{Commitment, CommitmentId, Reference};

use super::letters::Letter;
use super::world::World;

/// The properties of the decisions, by their numbers; the second is computed on the whole graph, the seventh is shown
/// elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Law {
    End,
    WayOut,
    Binding,
    Return,
    Refusal,
    Agreement,
    Single,
}

impl Law {
    pub(crate) const ALL: [Self; 7] =
        [Self::End, Self::WayOut, Self::Binding, Self::Return, Self::Refusal, Self::Agreement, Self::Single];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::End => "1: nothing leaves CLOSED or FAILED",
            Self::WayOut => {
                "2: from every live state a terminal one can be reached, by a timer or a lawful move"
            }
            Self::Binding => {
                "3: EXECUTING is entered only by an ACCEPT of the one pending COMMIT of the other side"
            }
            Self::Return => "4: an escalation returns to the state it left, or ends the session",
            Self::Refusal => "5: a refused message changes nothing",
            Self::Agreement => "6: both sides, fed the same, are in the same state",
            Self::Single => "8: never two accepted commitments at once",
        }
    }
}

/// What an onlooker keeps in mind, from the messages alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Notes {
    pub(crate) escalations: usize,
    /// What the escalation left, while there is one.
    left: Option<(State, Option<Commitment>)>,
    /// Commitments that were sent and not answered yet.
    pending: Vec<(CommitmentId, Role)>,
    accepted: Vec<CommitmentId>,
}

impl Notes {
    /// With a letter that both sides took, in that state and with that commitment.
    pub(crate) fn after(&self, letter: &Letter, state: State, commitment: Option<&Commitment>) -> Self {
        let mut notes = self.clone();
        match &letter.body {
            Body::Commit(body) => notes.pending.push((body.commitment_id.clone(), letter.sender)),
            Body::Accept(body) => {
                let answered = notes.answered(Some(&body.reference));
                notes.accepted.extend(answered.map(|(id, _)| id));
            }
            Body::Reject(body) => drop(notes.answered(body.reference.as_ref())),
            Body::Counter(body) => drop(notes.answered(Some(&body.counters))),
            Body::Escalate(_) => {
                notes.escalations += 1;
                notes.left = Some((state, commitment.cloned()));
            }
            _ => {}
        }
        notes
    }

    pub(crate) fn forget_escalation_unless(&mut self, escalated: bool) {
        if !escalated {
            self.left = None;
        }
    }

    /// Takes out the commitment that an answer names, or the last where it names none.
    fn answered(&mut self, reference: Option<&Reference>) -> Option<(CommitmentId, Role)> {
        let named = |id: &CommitmentId| reference.is_none_or(|name| name.as_str() == id.as_str());
        let at = self.pending.iter().rposition(|(id, _)| named(id))?;
        Some(self.pending.remove(at))
    }

    /// Whether this letter accepts the only commitment that is pending, and is not its sender's own.
    fn is_bound_by(&self, letter: &Letter) -> bool {
        match (&letter.body, &*self.pending) {
            (Body::Accept(body), [(id, by)]) => {
                body.reference.as_str() == id.as_str() && *by == letter.sender.other()
            }
            _ => false,
        }
    }
}

/// The laws that were broken between two moments; the letter is one that both sides took.
pub(crate) fn broken_laws(before: &World, after: &World, letter: Option<&Letter>) -> Vec<Law> {
    let mut broken = Vec::new();
    let mut hold = |law, holds: bool| {
        if !holds && !broken.contains(&law) {
            broken.push(law);
        }
    };
    for (old, new) in before.views.iter().zip(&after.views) {
        let (from, to) = (old.state(), new.state());
        let left = before.notes.left.as_ref();
        if from.is_terminal() {
            hold(Law::End, letter.is_none() && old == new);
            continue;
        }
        if to == State::Executing && from != State::Executing {
            let resumes = from == State::Escalated
                && left.is_some_and(|(state, _)| *state == State::Executing)
                && letter.is_some_and(is_resolution);
            hold(Law::Binding, resumes || letter.is_some_and(|letter| before.notes.is_bound_by(letter)));
        }
        if from == State::Escalated && to != State::Escalated {
            let returns = left.is_some_and(|(state, had)| *state == to && had.as_ref() == new.commitment());
            hold(Law::Return, returns || to.is_terminal());
        }
    }
    if after.behind.is_none() {
        let [one, other] = &after.views;
        hold(Law::Agreement, one.state() == other.state());
        hold(Law::Agreement, one.commitment() == other.commitment() && one.outcome() == other.outcome());
    }
    hold(Law::Single, after.notes.accepted.len() <= 1);
    broken
}

fn is_resolution(letter: &Letter) -> bool {
    matches!(&letter.body, Body::Inform(body) if body.kind == InformType::Resolution)
}
