//! Single changes to a recording: a line is deleted, repeated or swapped with its neighbour, or one member is
//! changed.

use serde_json::{Value, json};

use super::byte_choices::RandomChoices;
use super::member_edits::{self, MemberEdit};
use super::recording_line::RecordingLine;
use super::sample_recording::SampleRecording;

/// One change to a recording. The number is the index of the line.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    /// Deletes the line.
    Delete(usize),
    /// Repeats the line, byte for byte.
    Repeat(usize),
    /// Repeats the line under a new event id.
    RepeatAsNew(usize),
    /// Swaps the line with the next one.
    Swap(usize),
    /// Changes one member of the line.
    Change(usize, MemberEdit),
}

impl Mutation {
    /// Returns the deletion, both repetitions and the swap for every line after the handshake.
    pub(crate) fn line_mutations(recording: &SampleRecording) -> Vec<Mutation> {
        let last = recording.lines.len() - 1;
        (recording.handshake_len..=last)
            .flat_map(|at| {
                let swap = (at < last).then_some(Mutation::Swap(at));
                [Mutation::Delete(at), Mutation::Repeat(at), Mutation::RepeatAsNew(at)]
                    .into_iter()
                    .chain(swap)
            })
            .collect()
    }

    /// Returns all changes to a single member of the line.
    pub(crate) fn member_mutations(recording: &SampleRecording, at: usize) -> Vec<Mutation> {
        member_edits::edits_of_line(recording, at)
            .into_iter()
            .map(|edit| Mutation::Change(at, edit))
            .collect()
    }

    /// Returns a random mutation of a line or a member. A third of the time, it changes a member such that the line
    /// stays valid by itself and only the rules about order can reject the change.
    pub(crate) fn random(recording: &SampleRecording, choices: &mut RandomChoices<'_>) -> Mutation {
        let category = choices.below(3);
        if category == 0 {
            let mutations = Self::line_mutations(recording);
            return mutations[choices.below_large(mutations.len())].clone();
        }
        let lines = recording.lines.len() - recording.handshake_len;
        let mut changes =
            Self::member_mutations(recording, recording.handshake_len + choices.below_large(lines));
        changes.retain(
            |change| matches!(change, Mutation::Change(_, edit) if category == 1 || edit.is_valid_alone),
        );
        changes.swap_remove(choices.below_large(changes.len()))
    }

    /// Returns the index of the affected line.
    pub(crate) fn line_index(&self) -> usize {
        match self {
            Mutation::Delete(at)
            | Mutation::Repeat(at)
            | Mutation::RepeatAsNew(at)
            | Mutation::Swap(at)
            | Mutation::Change(at, _) => *at,
        }
    }

    /// Returns the recording after the mutation.
    pub(crate) fn apply(&self, before: &[RecordingLine]) -> Vec<RecordingLine> {
        let mut lines = before.to_vec();
        match self {
            Mutation::Delete(at) => drop(lines.remove(*at)),
            Mutation::Repeat(at) => lines.insert(at + 1, before[*at].clone()),
            Mutation::RepeatAsNew(at) => {
                let mut copy = before[*at].clone();
                if copy.has("event_id") {
                    copy.set("event_id", unused_id("evt_"));
                }
                lines.insert(at + 1, copy);
            }
            Mutation::Swap(at) => lines.swap(*at, at + 1),
            Mutation::Change(at, edit) => lines[*at].change(&edit.pointer, edit.value.clone()),
        }
        lines
    }
}

/// Returns an id that no generated recording contains.
pub(crate) fn unused_id(prefix: &str) -> Value {
    json!(format!("{prefix}ffff00000000aaaaffff00000000bbbb"))
}
