//! Transcripts. Two readers agree at every step, a transcript can be resumed at any message, and a changed message is
//! detected.

mod inclusion_proofs;
mod random_sessions;
mod tampering;

use asp::session::ReceiverChecks;
use asp::state_machine::State;
use asp::{Admission, CommitmentStatus, SessionRecord};
use proptest::prelude::*;

use random_sessions::{SendAttempt, attempts, new_record, run_attempts};
use testing::property::cases;

proptest! {
    #![proptest_config(cases(300))]

    /// Two records that receive the same messages, allowed or not, give the same results and always have equal states.
    #[test]
    fn two_readers_of_one_transcript_agree(attempts in attempts(40)) {
        let (mut first, mut second) = (new_record(), new_record());
        run_attempts(&attempts, &mut first, |before, message, admission, after| {
            let second_admission = second.admit(message, ReceiverChecks::PASSED, None);
            assert_eq!(&second_admission, admission);
            assert_eq!(second.session(), after.session());
            assert_eq!(second.session().commitment(), after.session().commitment());
            assert_eq!(second.transcript().position(), after.transcript().position());
            check_step(before, admission, after);
        });
        let texts: Vec<_> = first.transcript().messages().collect();
        prop_assert_eq!(texts, second.transcript().messages().collect::<Vec<_>>());
    }
}

/// Checks the invariants of one step.
fn check_step(before: &SessionRecord, admission: &Admission, after: &SessionRecord) {
    let (from, to) = (before.session().state(), after.session().state());
    match admission {
        Admission::Accepted(transitions) => {
            assert!(!from.is_terminal(), "a message was accepted in the terminal state {from}");
            assert_eq!(after.transcript().len(), before.transcript().len() + 1);
            assert_eq!(transitions.first().map(|transition| transition.from), Some(from));
            assert_eq!(transitions.last().map(|transition| transition.to), Some(to));
            if from == State::Agreeing && to == State::Executing {
                let (pending, agreed) = (before.session().commitment(), after.session().commitment());
                assert_eq!(pending.map(asp::Commitment::commit), agreed.map(asp::Commitment::commit));
                assert_eq!(agreed.map(asp::Commitment::status), Some(CommitmentStatus::Accepted));
            } else if to == State::Executing {
                assert!(matches!(from, State::Executing | State::Escalated), "{from}");
            }
            assert_eq!(to.is_terminal(), after.session().outcome().is_some());
            assert!(to.is_terminal() || after.session().next_deadline().is_some() || to == State::Introduced);
        }
        Admission::Refused(refusal) => {
            assert_eq!(before.session(), after.session(), "{refusal}");
            assert_eq!(before.transcript().position(), after.transcript().position(), "{refusal}");
        }
        Admission::ChainBroken(transition) => panic!("{transition:?}"),
    }
}

proptest! {
    #![proptest_config(cases(40))]

    /// A record that resumes at any message ends in the same state as one that read all messages.
    #[test]
    fn a_record_can_be_resumed_at_any_message(attempts in attempts(30)) {
        let mut complete = new_record();
        let mut messages = Vec::new();
        let mut checkpoints = vec![complete.checkpoint()];
        run_attempts(&attempts, &mut complete, |_, message, admission, after| {
            if matches!(admission, Admission::Accepted(_)) {
                messages.push(message.clone());
                checkpoints.push(after.checkpoint());
            }
        });
        for (index, checkpoint) in checkpoints.into_iter().enumerate() {
            let mut record = new_record().resume_from(checkpoint);
            for message in &messages[index..] {
                let admission = record.admit(message, ReceiverChecks::PASSED, None);
                prop_assert!(matches!(admission, Admission::Accepted(_)), "{:?}", admission);
            }
            prop_assert_eq!(record.session(), complete.session());
            prop_assert_eq!(record.transcript().position(), complete.transcript().position());
            let messages_since: Vec<_> = record.transcript().messages().collect();
            prop_assert_eq!(messages_since, complete.transcript().messages().skip(index).collect::<Vec<_>>());
            // Earlier messages are refused, and the chain is not broken.
            for message in &messages[..index] {
                let admission = record.admit(message, ReceiverChecks::PASSED, None);
                prop_assert!(matches!(admission, Admission::Refused(_)), "{:?}", admission);
            }
            prop_assert_eq!(record.session(), complete.session());
        }
    }
}

/// The random sessions reach every state, so the properties above are meaningful.
#[test]
fn the_random_sessions_reach_every_state() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::new();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..60 {
        let random_attempts: Vec<SendAttempt> = attempts(40).new_tree(&mut runner).unwrap().current();
        let mut record = new_record();
        run_attempts(&random_attempts, &mut record, |_, _, admission, after| {
            *seen.entry(after.session().state()).or_insert(0) += 1;
            match admission {
                Admission::Accepted(_) => accepted += 1,
                _ => refused += 1,
            }
        });
    }
    for state in State::ALL.into_iter().filter(|state| *state != State::Idle) {
        assert!(seen.get(&state).is_some_and(|count| *count > 3), "{state}: {seen:?}");
    }
    assert!(accepted > 400 && refused > 100, "{accepted} accepted, {refused} refused");
}
