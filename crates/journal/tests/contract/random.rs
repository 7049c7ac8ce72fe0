//! Random batches, trims and crashes: what is there is what the model says of the acknowledged batches.

use journal::{Entry, Error, Journal, Position, Retention};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use seal::UnixMillis;

use crate::Behaviour;
use crate::ground::{Ground, positions};
use crate::model::Model;

pub(crate) const BEHAVIOURS: &[Behaviour] =
    &[("random batches, trims and crashes leave what a naive model says", like_the_model)];

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const EVENTS: [&str; 12] = ["k", "c", "x", "a", "z", "m", "b", "y", "l", "w", "d", "n"];

/// One decision of the generator for each field; what it means depends on the entry.
type Choice = (u8, u8, u8, bool);

#[derive(Clone, Debug)]
enum Step {
    Batch(Vec<Choice>),
    Trim(i64),
    Again,
    Crash,
}

fn like_the_model(ground: &dyn Ground) {
    let steps = proptest::collection::vec(
        prop_oneof![
            12 => proptest::collection::vec(any::<Choice>(), 0..7).prop_map(Step::Batch),
            1 => (0..40i64).prop_map(Step::Trim),
            1 => Just(Step::Again),
            1 => Just(Step::Crash),
        ],
        0..60,
    );
    let outcome = TestRunner::new(testing::property::cases(60)).run(&steps, |steps| follow(ground, &steps));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn follow(ground: &dyn Ground, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut journal, mut model) = (ground.fresh(), Model::default());
    for (now, step) in (0..).zip(steps) {
        match step {
            Step::Batch(choices) => {
                let mut next = model.last;
                let batch: Vec<_> =
                    choices.iter().map(|choice| entry(*choice, &mut next, UnixMillis::new(now))).collect();
                match (journal.commit(&batch), model.commit(&batch)) {
                    (Ok(()), Ok(())) => {}
                    (Err(Error::Conflict(found)), Err(expected)) => {
                        prop_assert_eq!(found, expected, "{:?}", batch);
                    }
                    other => return Err(TestCaseError::fail(format!("{other:?} for {batch:?}"))),
                }
            }
            Step::Trim(age) => {
                let (events, decisions) = (Some(*age), Some(*age));
                journal
                    .trim(&Retention { events, decisions, ..Retention::default() }, UnixMillis::new(now))
                    .unwrap();
                model.trim(now - age);
            }
            Step::Again => journal = ground.again(journal),
            Step::Crash => journal = ground.after_crash(journal),
        }
        prop_assert_eq!(journal.restore().unwrap(), model.alive());
    }
    compare(&mut *journal, &model)?;
    compare(&mut *ground.after_crash(journal), &model)
}

fn compare(journal: &mut dyn Journal, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(journal.restore().unwrap(), model.alive());
    prop_assert_eq!(journal.events(Position::START, usize::MAX).unwrap(), &*model.events);
    prop_assert_eq!(positions(journal).len(), model.events.len());
    for name in NAMES {
        prop_assert_eq!(journal.session(name).unwrap(), model.session(name));
        prop_assert_eq!(journal.decision(name).unwrap(), model.decision(name));
        let of: Vec<_> = model.events.iter().filter(|event| event.session == name).cloned().collect();
        prop_assert_eq!(journal.events_of(name, Position::START, usize::MAX).unwrap(), of);
        for key in NAMES {
            let used = model.keys.contains(&(name.to_owned(), key.to_owned()));
            prop_assert_eq!(journal.idempotent(name, key).unwrap().is_some(), used);
        }
    }
    for id in EVENTS {
        let found = model.events.iter().find(|event| event.event_id == id).map(|event| event.position);
        prop_assert_eq!(journal.position_of(id).unwrap(), found);
    }
    Ok(())
}

/// Mostly entries that can succeed: events in order, few names.
fn entry((kind, one, other, odd): Choice, next: &mut Position, now: UnixMillis) -> Entry<'static> {
    let pick = |number: u8| NAMES[usize::from(number) % NAMES.len()];
    let (name, second, body) = (pick(one), pick(other), pick(one ^ other).as_bytes());
    match kind % 20 {
        0..=4 => {
            let position = if one > 250 { Position::new(u64::from(other)) } else { next.next() };
            *next = position;
            let event_id = EVENTS[usize::from(other) % EVENTS.len()];
            Entry::Event { position, session: name, event_id, at: now, critical: odd, body }
        }
        5..=6 => {
            Entry::SessionOpened { id: name, agent: second, principal: second, lease: now, record: body }
        }
        7 => Entry::SessionTouched { id: name, lease: now, record: odd.then_some(body) },
        8 => Entry::SessionEnded { id: name, at: now },
        9..=10 => Entry::QuestionOpened { token: name, session: second, deadline: now, record: body },
        11 => Entry::DeadlineMoved { token: name, deadline: now },
        12..=13 => Entry::Decided { token: name, decision: second, by: second, receipt: body, at: now },
        14 => Entry::Spent { token: name, call: body, at: now },
        15 => Entry::SubscriptionOpened { id: name, principal: second, record: body },
        16 if odd => Entry::SubscriptionChanged { id: name, record: body },
        16 => Entry::SubscriptionClosed { id: name },
        17 => Entry::Cursor { subscription: name, position: Position::new(u64::from(other % 8)) },
        18 => Entry::Idempotent { principal: name, key: second, request: body, response: body, at: now },
        _ => Entry::Attempt { at: now, subscription: name, what: body },
    }
}
