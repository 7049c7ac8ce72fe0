//! Transcripts: two who read one agree at every step, it can be taken up anywhere, and no message in it can be changed.

mod lawful;
mod proofs;
mod tampering;

use asp::machine::State;
use asp::session::Judgement;
use asp::{Admission, Record, Status};
use proptest::prelude::*;

use lawful::{Attempt, attempts, fresh, play};
use testing::property::cases;

proptest! {
    #![proptest_config(cases(300))]

    /// Fed the same messages, lawful or not, two records say the same of each, and are in one place after each.
    #[test]
    fn two_who_read_one_transcript_agree(attempts in attempts(40)) {
        let (mut one, mut two) = (fresh(), fresh());
        play(&attempts, &mut one, |before, message, admission, after| {
            let same = two.admit(message, Judgement::default(), None);
            assert_eq!(&same, admission);
            assert_eq!(two.session(), after.session());
            assert_eq!(two.session().commitment(), after.session().commitment());
            assert_eq!(two.transcript().point(), after.transcript().point());
            check(before, admission, after);
        });
        let texts: Vec<_> = one.transcript().messages().collect();
        prop_assert_eq!(texts, two.transcript().messages().collect::<Vec<_>>());
    }
}

/// What must hold of every step.
fn check(before: &Record, admission: &Admission, after: &Record) {
    let (was, is) = (before.session().state(), after.session().state());
    match admission {
        Admission::Taken(steps) => {
            assert!(!was.is_terminal(), "nothing leaves {was}");
            assert_eq!(after.transcript().len(), before.transcript().len() + 1);
            assert_eq!(steps.first().map(|step| step.from), Some(was));
            assert_eq!(steps.last().map(|step| step.to), Some(is));
            if was == State::Agreeing && is == State::Executing {
                let (pending, agreed) = (before.session().commitment(), after.session().commitment());
                assert_eq!(pending.map(asp::Commitment::terms), agreed.map(asp::Commitment::terms));
                assert_eq!(agreed.map(asp::Commitment::status), Some(Status::Accepted));
            } else if is == State::Executing {
                assert!(matches!(was, State::Executing | State::Escalated), "{was}");
            }
            assert_eq!(is.is_terminal(), after.session().outcome().is_some());
            assert!(is.is_terminal() || after.session().next_deadline().is_some() || is == State::Introduced);
        }
        Admission::Refused(refusal) => {
            assert_eq!(before.session(), after.session(), "{refusal}");
            assert_eq!(before.transcript().point(), after.transcript().point(), "{refusal}");
        }
        Admission::Broken(step) => panic!("{step:?}"),
    }
}

proptest! {
    #![proptest_config(cases(40))]

    /// Taken up at any message, a record comes to the same end as one that has read all.
    #[test]
    fn it_can_be_taken_up_anywhere(attempts in attempts(30)) {
        let mut whole = fresh();
        let mut messages = Vec::new();
        let mut checkpoints = vec![whole.checkpoint()];
        play(&attempts, &mut whole, |_, message, admission, after| {
            if matches!(admission, Admission::Taken(_)) {
                messages.push(message.clone());
                checkpoints.push(after.checkpoint());
            }
        });
        for (index, checkpoint) in checkpoints.into_iter().enumerate() {
            let mut record = fresh().resumed(checkpoint);
            for message in &messages[index..] {
                let admission = record.admit(message, Judgement::default(), None);
                prop_assert!(matches!(admission, Admission::Taken(_)), "{:?}", admission);
            }
            prop_assert_eq!(record.session(), whole.session());
            prop_assert_eq!(record.transcript().point(), whole.transcript().point());
            let since: Vec<_> = record.transcript().messages().collect();
            prop_assert_eq!(since, whole.transcript().messages().skip(index).collect::<Vec<_>>());
            // What came before is refused as old, and breaks nothing.
            for message in &messages[..index] {
                let admission = record.admit(message, Judgement::default(), None);
                prop_assert!(matches!(admission, Admission::Refused(_)), "{:?}", admission);
            }
            prop_assert_eq!(record.session(), whole.session());
        }
    }
}

/// The random sessions reach every state: what holds of them says something.
#[test]
fn the_random_sessions_go_everywhere() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::new();
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..60 {
        let choices: Vec<Attempt> = attempts(40).new_tree(&mut runner).unwrap().current();
        let mut record = fresh();
        play(&choices, &mut record, |_, _, admission, after| {
            *seen.entry(after.session().state()).or_insert(0) += 1;
            match admission {
                Admission::Taken(_) => taken += 1,
                _ => refused += 1,
            }
        });
    }
    for state in State::ALL.into_iter().filter(|state| *state != State::Idle) {
        assert!(seen.get(&state).is_some_and(|count| *count > 3), "{state}: {seen:?}");
    }
    assert!(taken > 400 && refused > 100, "{taken} taken, {refused} refused");
}
