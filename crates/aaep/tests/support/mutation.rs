//! Every single change that can be made to a recording: a line less, twice or in its neighbour's place, or one member
//! of it changed.

use serde_json::{Value, json};

use super::choices::Choices;
use super::edits::{self, Edit};
use super::line::Line;
use super::recording::Recording;

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    /// The line is gone.
    Delete(usize),
    /// The line stands twice, letter for letter.
    Repeat(usize),
    /// The line stands twice, the second time under a new event id.
    RepeatAsNew(usize),
    /// The line has changed places with the next one.
    Swap(usize),
    /// One member is another.
    Change(usize, Edit),
}

impl Mutation {
    /// Every line after the handshake gone, twice, or in its neighbour's place.
    pub(crate) fn moves(recording: &Recording) -> Vec<Mutation> {
        let last = recording.lines.len() - 1;
        (recording.head..=last)
            .flat_map(|at| {
                let next = (at < last).then_some(Mutation::Swap(at));
                [Mutation::Delete(at), Mutation::Repeat(at), Mutation::RepeatAsNew(at)]
                    .into_iter()
                    .chain(next)
            })
            .collect()
    }

    /// Every change of one member of one line.
    pub(crate) fn changes(recording: &Recording, at: usize) -> Vec<Mutation> {
        edits::of(recording, at).into_iter().map(|edit| Mutation::Change(at, edit)).collect()
    }

    /// Any of them, as the choices fall: a move, a change, or a change after which the line is lawful by itself, so that
    /// order alone decides.
    pub(crate) fn any(recording: &Recording, choices: &mut Choices<'_>) -> Mutation {
        let which = choices.below(3);
        if which == 0 {
            let moves = Self::moves(recording);
            return moves[choices.place(moves.len())].clone();
        }
        let lines = recording.lines.len() - recording.head;
        let mut changes = Self::changes(recording, recording.head + choices.place(lines));
        changes.retain(|change| matches!(change, Mutation::Change(_, edit) if which == 1 || edit.sound));
        changes.swap_remove(choices.place(changes.len()))
    }

    /// The line that it is about.
    pub(crate) fn place(&self) -> usize {
        match self {
            Mutation::Delete(at)
            | Mutation::Repeat(at)
            | Mutation::RepeatAsNew(at)
            | Mutation::Swap(at)
            | Mutation::Change(at, _) => *at,
        }
    }

    /// The recording after it.
    pub(crate) fn apply(&self, before: &[Line]) -> Vec<Line> {
        let mut lines = before.to_vec();
        match self {
            Mutation::Delete(at) => drop(lines.remove(*at)),
            Mutation::Repeat(at) => lines.insert(at + 1, before[*at].clone()),
            Mutation::RepeatAsNew(at) => {
                let mut again = before[*at].clone();
                if again.has("event_id") {
                    again.set("event_id", fresh("evt_"));
                }
                lines.insert(at + 1, again);
            }
            Mutation::Swap(at) => lines.swap(*at, at + 1),
            Mutation::Change(at, edit) => lines[*at].change(&edit.pointer, edit.value.clone()),
        }
        lines
    }
}

/// An id that no generated recording has.
pub(crate) fn fresh(prefix: &str) -> Value {
    json!(format!("{prefix}ffff00000000aaaaffff00000000bbbb"))
}
