//! Any single change to a lawful recording is found out, or stands on the list of lawful changes below, with its
//! reason. Whether it does is read off the change and its surroundings, never off the core.

use aaep::rule::Face;
use proptest::prelude::*;

use crate::support::choices::Choices;
use crate::support::decisions;
use crate::support::judge::errors;
use crate::support::line::{Kind, Line};
use crate::support::mutation::Mutation;
use crate::support::reading::{chains_hold, order_holds, outputs_add_up, questions_hold};
use crate::support::recording::Recording;
use testing::property::cases;

/// A lawful change: why, and when.
type Lawful = (&'static str, fn(&Scene<'_>) -> bool);

const DELETIONS: [Lawful; 6] = [
    ("nothing refers to progress", |scene| scene.deletes(&[Kind::Progress])),
    ("an extension's event has no place in AAEP's order", |scene| scene.deletes(&[Kind::Extension])),
    ("nothing refers to a handoff but the state that it implies", |scene| {
        scene.deletes(&[Kind::Handoff]) && chains_hold(&scene.after)
    }),
    (
        "a change of state may be missed where the chain closes without it, and others show what it showed",
        |scene| scene.deletes(&[Kind::State]) && chains_hold(&scene.after) && questions_hold(&scene.after),
    ),
    ("an empty chunk, or an output's only chunk, leaves no gap", |scene| {
        scene.deletes(&[Kind::Chunk]) && chains_hold(&scene.after) && outputs_add_up(&scene.after)
    }),
    ("a question that nobody answered may never have been asked", |scene| {
        scene.deletes(&[Kind::Confirmation, Kind::Clarification])
            && chains_hold(&scene.after)
            && questions_hold(&scene.after)
    }),
];

const REPLIES: [Lawful; 2] = [
    (
        "replies take another way than events, so a recording may lack one: what the agent does next tells",
        |scene| {
            matches!(scene.mutation, Mutation::Delete(_))
                && scene.kind().is_reply()
                && questions_hold(&scene.after)
        },
    ),
    ("the first reply counts, a second has no effect (§6.3.5)", |scene| {
        matches!(scene.mutation, Mutation::Repeat(_) | Mutation::RepeatAsNew(_)) && scene.kind().is_reply()
    }),
];

const REPETITIONS: [Lawful; 2] = [
    ("progress, a handoff or an extension's event may be said again", |scene| {
        scene.repeats_as_new(&[Kind::Progress, Kind::Handoff, Kind::Extension])
    }),
    ("a chunk that says nothing may be said again", |scene| {
        scene.repeats_as_new(&[Kind::Chunk]) && outputs_add_up(&scene.after)
    }),
];

const SWAPS: [Lawful; 3] = [
    ("sessions do not wait for each other", |scene| {
        scene
            .swapped()
            .is_some_and(|(a, b)| a.kind().is_event() && b.kind().is_event() && a.session() != b.session())
    }),
    ("replies come from elsewhere: only their question must stand before them", |scene| {
        scene.swapped().is_some_and(|(a, b)| a.kind().is_reply() || b.kind().is_reply())
            && questions_hold(&scene.after)
    }),
    ("of two unnumbered events of one instant either may come first, if neither needs the other", |scene| {
        scene.swapped().is_some_and(|(a, b)| a.session() == b.session() && a.millis() == b.millis())
            && order_holds(&scene.after)
    }),
];

const CHANGES: [Lawful; 2] = [
    ("a member that is not required may be missing, where nothing else needs it", |scene| {
        scene.edit().is_some_and(|edit| edit.value.is_none() && edit.sound) && order_holds(&scene.after)
    }),
    ("a member may have another value of its form, where nothing else needs this one", |scene| {
        scene.edit().is_some_and(|edit| edit.value.is_some() && edit.sound) && order_holds(&scene.after)
    }),
];

/// A change and what is around it.
struct Scene<'s> {
    before: &'s [Line],
    after: Vec<Line>,
    mutation: &'s Mutation,
}

impl Scene<'_> {
    fn line(&self) -> &Line {
        &self.before[self.mutation.place()]
    }

    fn kind(&self) -> Kind {
        self.line().kind()
    }

    /// Numbered events cannot go or come without a gap (§3.4.1).
    fn is_unnumbered(&self, kinds: &[Kind]) -> bool {
        kinds.contains(&self.kind()) && !self.line().has("sequence_number")
    }

    fn deletes(&self, kinds: &[Kind]) -> bool {
        matches!(self.mutation, Mutation::Delete(_)) && self.is_unnumbered(kinds)
    }

    fn repeats_as_new(&self, kinds: &[Kind]) -> bool {
        matches!(self.mutation, Mutation::RepeatAsNew(_)) && self.is_unnumbered(kinds)
    }

    fn swapped(&self) -> Option<(&Line, &Line)> {
        match self.mutation {
            Mutation::Swap(at) => Some((&self.before[*at], &self.before[at + 1])),
            _ => None,
        }
    }

    fn edit(&self) -> Option<&crate::support::edits::Edit> {
        match self.mutation {
            Mutation::Change(_, edit) => Some(edit),
            _ => None,
        }
    }

    /// Why the change is lawful, if it is.
    fn reason(&self) -> Option<&'static str> {
        let lists: [&[Lawful]; 5] = [&DELETIONS, &REPLIES, &REPETITIONS, &SWAPS, &CHANGES];
        lists.into_iter().flatten().find(|(_, applies)| applies(self)).map(|(reason, _)| *reason)
    }
}

proptest! {
    #![proptest_config(cases(1200))]

    #[test]
    fn every_change_is_found_out_or_on_the_list(bytes in decisions(240), picks in decisions(160)) {
        let recording = Recording::of(&bytes);
        let mut choices = Choices::new(&picks);
        for _ in 0..20 {
            let mutation = Mutation::any(&recording, &mut choices);
            let blame = verdict(&recording, &mutation).err().unwrap_or_default();
            prop_assert!(blame.is_empty(), "{}", blame);
        }
    }
}

/// Whether the core and the list agree on a change.
fn verdict(recording: &Recording, mutation: &Mutation) -> Result<(), String> {
    let before = &recording.lines;
    let scene = Scene { before, after: mutation.apply(before), mutation };
    let texts: Vec<_> = scene.after.iter().map(Line::to_json).collect();
    let found = errors(&texts, Face::Strict);
    let blame = match (scene.reason(), &*found) {
        (None, []) => "the core finds nothing, and no entry of the list says why".to_owned(),
        (Some(reason), [_, ..]) => format!("lawful, because {reason}; but the core finds {found:#?}"),
        _ => return Ok(()),
    };
    Err(format!("{blame}\n{mutation:?} of line {}, then\n{}", mutation.place() + 1, texts.join("\n")))
}
