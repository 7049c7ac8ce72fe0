//! After random batches, trims and crashes, the journal must match a model of the acknowledged batches.

use journal::{Journal, JournalEntry, JournalError, Position, Retention};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use seal::UnixMillis;

use crate::Behaviour;
use crate::fixture::{JournalFixture, positions};
use crate::model_journal::ModelJournal;

pub(crate) const BEHAVIOURS: &[Behaviour] =
    &[("random batches, trims and crashes match a naive model", matches_model)];

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const EVENT_IDS: [&str; 12] = ["k", "c", "x", "a", "z", "m", "b", "y", "l", "w", "d", "n"];

/// Random numbers for one entry. Their meaning depends on the kind of the entry.
type Choice = (u8, u8, u8, bool);

#[derive(Clone, Debug)]
enum RandomStep {
    Batch(Vec<Choice>),
    Trim(i64),
    Reopen,
    Crash,
}

fn matches_model(fixture: &dyn JournalFixture) {
    let steps = proptest::collection::vec(
        prop_oneof![
            12 => proptest::collection::vec(any::<Choice>(), 0..7).prop_map(RandomStep::Batch),
            1 => (0..40i64).prop_map(RandomStep::Trim),
            1 => Just(RandomStep::Reopen),
            1 => Just(RandomStep::Crash),
        ],
        0..60,
    );
    let outcome =
        TestRunner::new(testing::property::cases(60)).run(&steps, |steps| run_steps(fixture, &steps));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn run_steps(fixture: &dyn JournalFixture, steps: &[RandomStep]) -> Result<(), TestCaseError> {
    let (mut journal, mut model) = (fixture.create_empty(), ModelJournal::default());
    for (now, step) in (0..).zip(steps) {
        match step {
            RandomStep::Batch(choices) => {
                let mut last_position = model.last_position;
                let batch: Vec<_> = choices
                    .iter()
                    .map(|choice| random_entry(*choice, &mut last_position, UnixMillis::new(now)))
                    .collect();
                match (journal.commit(&batch), model.commit(&batch)) {
                    (Ok(()), Ok(())) => {}
                    (Err(JournalError::Conflict(found)), Err(expected)) => {
                        prop_assert_eq!(found, expected, "{:?}", batch);
                    }
                    other => return Err(TestCaseError::fail(format!("{other:?} for {batch:?}"))),
                }
            }
            RandomStep::Trim(age) => {
                journal
                    .trim(
                        &Retention {
                            max_event_age_ms: Some(*age),
                            max_decision_age_ms: Some(*age),
                            ..Retention::default()
                        },
                        UnixMillis::new(now),
                    )
                    .unwrap();
                model.trim(now - age);
            }
            RandomStep::Reopen => journal = fixture.reopen(journal),
            RandomStep::Crash => journal = fixture.crash_and_reopen(journal),
        }
        prop_assert_eq!(journal.restore().unwrap(), model.live_state());
    }
    compare(&mut *journal, &model)?;
    compare(&mut *fixture.crash_and_reopen(journal), &model)
}

fn compare(journal: &mut dyn Journal, model: &ModelJournal) -> Result<(), TestCaseError> {
    prop_assert_eq!(journal.restore().unwrap(), model.live_state());
    prop_assert_eq!(journal.events(Position::START, usize::MAX).unwrap(), &*model.events);
    prop_assert_eq!(positions(journal).len(), model.events.len());
    for name in NAMES {
        prop_assert_eq!(journal.session(name).unwrap(), model.session(name));
        prop_assert_eq!(journal.decision(name).unwrap(), model.decision(name));
        let session_events: Vec<_> =
            model.events.iter().filter(|event| event.session == name).cloned().collect();
        prop_assert_eq!(journal.session_events(name, Position::START, usize::MAX).unwrap(), session_events);
        for key in NAMES {
            let is_used = model.idempotency_keys.contains(&(name.to_owned(), key.to_owned()));
            prop_assert_eq!(journal.stored_response(name, key).unwrap().is_some(), is_used);
        }
    }
    for id in EVENT_IDS {
        let found = model.events.iter().find(|event| event.event_id == id).map(|event| event.position);
        prop_assert_eq!(journal.event_position(id).unwrap(), found);
    }
    Ok(())
}

/// Creates an entry that often succeeds, because most events are in order and there are few names.
fn random_entry(
    (kind, first, second, flag): Choice,
    last_position: &mut Position,
    now: UnixMillis,
) -> JournalEntry<'static> {
    let pick = |number: u8| NAMES[usize::from(number) % NAMES.len()];
    let (name, other_name, body) = (pick(first), pick(second), pick(first ^ second).as_bytes());
    match kind % 21 {
        0..=4 => {
            let position = if first > 250 { Position::new(u64::from(second)) } else { last_position.next() };
            *last_position = position;
            let event_id = EVENT_IDS[usize::from(second) % EVENT_IDS.len()];
            JournalEntry::Event { position, session: name, event_id, at: now, is_critical: flag, body }
        }
        5..=6 => JournalEntry::SessionOpened {
            id: name,
            agent: other_name,
            principal: other_name,
            lease_expires_at: now,
            record: body,
        },
        7 => JournalEntry::SessionTouched { id: name, lease_expires_at: now, record: flag.then_some(body) },
        8 => JournalEntry::SessionEnded { id: name, at: now },
        9..=10 => {
            JournalEntry::QuestionOpened { token: name, session: other_name, deadline: now, record: body }
        }
        11 => JournalEntry::DeadlineMoved { token: name, deadline: now },
        12..=13 => JournalEntry::QuestionDecided {
            token: name,
            decision: other_name,
            decided_by: other_name,
            receipt: body,
            at: now,
        },
        14 => JournalEntry::DecisionSpent { token: name, call: body, at: now },
        15 => JournalEntry::SubscriptionOpened { id: name, principal: other_name, record: body },
        16 if flag => JournalEntry::SubscriptionChanged { id: name, record: body },
        16 => JournalEntry::SubscriptionClosed { id: name },
        17 => {
            JournalEntry::CursorMoved { subscription: name, position: Position::new(u64::from(second % 8)) }
        }
        18 => JournalEntry::ResponseStored {
            principal: name,
            key: other_name,
            request: body,
            response: body,
            at: now,
        },
        19 => JournalEntry::ManifestStored { agent: name, record: flag.then_some(body) },
        _ => JournalEntry::ReplyAttempted { at: now, principal: name, details: body },
    }
}
