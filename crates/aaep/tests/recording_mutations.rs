//! Every single change to a valid recording is detected, or it is on the list of allowed changes below, with
//! a reason. The list depends only on the change and its context, never on the checker's result.

use aaep::rule::ValidationMode;
use proptest::prelude::*;

use crate::support::byte_choices::RandomChoices;
use crate::support::mutation::Mutation;
use crate::support::random_bytes;
use crate::support::recording_check::errors;
use crate::support::recording_line::{LineKind, RecordingLine};
use crate::support::reference_rules::{
    follows_question_rules, order_holds, output_positions_hold, state_chains_hold,
};
use crate::support::sample_recording::SampleRecording;
use testing::property::cases;

/// An allowed change: the reason, and the condition.
type AllowedChange = (&'static str, fn(&MutationContext<'_>) -> bool);

const DELETIONS: [AllowedChange; 6] = [
    ("nothing refers to progress", |context| context.deletes(&[LineKind::Progress])),
    ("the order of extension events is not defined by AAEP", |context| {
        context.deletes(&[LineKind::Extension])
    }),
    ("nothing refers to a handoff except the state that it implies", |context| {
        context.deletes(&[LineKind::Handoff]) && state_chains_hold(&context.after)
    }),
    (
        "a state change may be missing if the chain is intact without it and no question depends on it",
        |context| {
            context.deletes(&[LineKind::State])
                && state_chains_hold(&context.after)
                && follows_question_rules(&context.after)
        },
    ),
    ("an empty chunk, or an output's only chunk, leaves no gap when removed", |context| {
        context.deletes(&[LineKind::Chunk])
            && state_chains_hold(&context.after)
            && output_positions_hold(&context.after)
    }),
    ("an unanswered question can be removed", |context| {
        context.deletes(&[LineKind::Confirmation, LineKind::Clarification])
            && state_chains_hold(&context.after)
            && follows_question_rules(&context.after)
    }),
];

const REPLIES: [AllowedChange; 2] = [
    (
        "replies travel separately from events, so a reply may be missing if the next events of the agent imply it",
        |context| {
            matches!(context.mutation, Mutation::Delete(_))
                && context.kind().is_reply()
                && follows_question_rules(&context.after)
        },
    ),
    ("the first reply counts, a second has no effect (§6.3.5)", |context| {
        matches!(context.mutation, Mutation::Repeat(_) | Mutation::RepeatAsNew(_))
            && context.kind().is_reply()
    }),
];

const REPETITIONS: [AllowedChange; 2] = [
    ("progress, a handoff or an extension's event may be repeated", |context| {
        context.repeats_as_new(&[LineKind::Progress, LineKind::Handoff, LineKind::Extension])
    }),
    ("an empty chunk may be repeated", |context| {
        context.repeats_as_new(&[LineKind::Chunk]) && output_positions_hold(&context.after)
    }),
];

const SWAPS: [AllowedChange; 3] = [
    ("sessions are independent", |context| {
        context
            .swapped()
            .is_some_and(|(a, b)| a.kind().is_event() && b.kind().is_event() && a.session() != b.session())
    }),
    ("replies travel separately from events and only need to follow their question", |context| {
        context.swapped().is_some_and(|(a, b)| a.kind().is_reply() || b.kind().is_reply())
            && follows_question_rules(&context.after)
    }),
    ("two unnumbered events with the same timestamp may swap if neither depends on the other", |context| {
        context.swapped().is_some_and(|(a, b)| a.session() == b.session() && a.millis() == b.millis())
            && order_holds(&context.after)
    }),
];

const EDITS: [AllowedChange; 2] = [
    ("an optional member may be missing if nothing depends on it", |context| {
        context.edit().is_some_and(|edit| edit.value.is_none() && edit.is_valid_alone)
            && order_holds(&context.after)
    }),
    ("a member may have another valid value if nothing depends on it", |context| {
        context.edit().is_some_and(|edit| edit.value.is_some() && edit.is_valid_alone)
            && order_holds(&context.after)
    }),
];

/// A change and its context.
struct MutationContext<'s> {
    before: &'s [RecordingLine],
    after: Vec<RecordingLine>,
    mutation: &'s Mutation,
}

impl MutationContext<'_> {
    fn line(&self) -> &RecordingLine {
        &self.before[self.mutation.line_index()]
    }

    fn kind(&self) -> LineKind {
        self.line().kind()
    }

    /// Returns whether the line is of one of these kinds and has no sequence number. Numbered events cannot be
    /// removed or added without a gap (§3.4.1).
    fn is_unnumbered(&self, kinds: &[LineKind]) -> bool {
        kinds.contains(&self.kind()) && !self.line().has("sequence_number")
    }

    fn deletes(&self, kinds: &[LineKind]) -> bool {
        matches!(self.mutation, Mutation::Delete(_)) && self.is_unnumbered(kinds)
    }

    fn repeats_as_new(&self, kinds: &[LineKind]) -> bool {
        matches!(self.mutation, Mutation::RepeatAsNew(_)) && self.is_unnumbered(kinds)
    }

    fn swapped(&self) -> Option<(&RecordingLine, &RecordingLine)> {
        match self.mutation {
            Mutation::Swap(at) => Some((&self.before[*at], &self.before[at + 1])),
            _ => None,
        }
    }

    fn edit(&self) -> Option<&crate::support::member_edits::MemberEdit> {
        match self.mutation {
            Mutation::Change(_, edit) => Some(edit),
            _ => None,
        }
    }

    /// Returns why the change is allowed, if it is.
    fn allowed_reason(&self) -> Option<&'static str> {
        let lists: [&[AllowedChange]; 5] = [&DELETIONS, &REPLIES, &REPETITIONS, &SWAPS, &EDITS];
        lists.into_iter().flatten().find(|(_, applies)| applies(self)).map(|(reason, _)| *reason)
    }
}

proptest! {
    #![proptest_config(cases(1200))]

    #[test]
    fn every_change_is_detected_or_allowed(bytes in random_bytes(240), mutation_bytes in random_bytes(160)) {
        let recording = SampleRecording::of(&bytes);
        let mut choices = RandomChoices::new(&mutation_bytes);
        for _ in 0..20 {
            let mutation = Mutation::random(&recording, &mut choices);
            let failure = check_mutation(&recording, &mutation).err().unwrap_or_default();
            prop_assert!(failure.is_empty(), "{}", failure);
        }
    }
}

/// Returns an error if the checker and the list disagree on a change.
fn check_mutation(recording: &SampleRecording, mutation: &Mutation) -> Result<(), String> {
    let before = &recording.lines;
    let context = MutationContext { before, after: mutation.apply(before), mutation };
    let texts: Vec<_> = context.after.iter().map(RecordingLine::to_json).collect();
    let found = errors(&texts, ValidationMode::Strict);
    let failure = match (context.allowed_reason(), &*found) {
        (None, []) => "the checker finds nothing, but the change is not on the list".to_owned(),
        (Some(reason), [_, ..]) => {
            format!("the change is allowed ({reason}), but the checker finds {found:#?}")
        }
        _ => return Ok(()),
    };
    Err(format!("{failure}\n{mutation:?} of line {}, then\n{}", mutation.line_index() + 1, texts.join("\n")))
}
