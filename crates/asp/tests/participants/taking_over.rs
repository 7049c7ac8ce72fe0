//! A side that has lost messages with its disk, and takes them over from the other side.

use asp::session::ReceiverChecks;
use asp::state_machine::State;
use asp::{AspError, RejectCode, StoredStep};

use super::participant_pair::{A, B, ParticipantPair};
use super::restart::{assert_same_participant, restore};
use crate::support::bodies::{accept, commit, observe};

fn received(text: &str) -> StoredStep {
    StoredStep::Received { text: text.into() }
}

#[test]
fn our_messages_that_the_other_side_does_not_have_are_rolled_back() {
    for (own, other) in [(A, B), (B, A)] {
        let mut pair = ParticipantPair::conversing();
        pair.send_and_deliver(other, observe("zero"));
        // This side has lost the other side's message, and has signed two others instead.
        pair.now += 1000;
        let lost = pair.send(other, observe("lost"));
        pair.send(own, observe("one"));
        pair.send(own, observe("two"));
        let first = pair.side(own).unsettled_messages().next().unwrap().0;
        for step in [StoredStep::Superseded { message_id: first }, received(&lost)] {
            pair.side(own).take_over(&step, ReceiverChecks::PASSED).unwrap();
            pair.steps[own as usize].push(step);
        }
        assert_eq!(pair.side(own).unsettled_messages().count(), 0);
        pair.assert_agreement();
        assert_same_participant(&restore(&pair, own), pair.side(own));
        pair.send_and_deliver(own, observe("three"));
        // Nothing is left that could be rolled back.
        let again = StoredStep::Superseded { message_id: first };
        assert!(pair.side(own).take_over(&again, ReceiverChecks::PASSED).is_err());
    }
}

#[test]
fn a_message_that_is_taken_over_must_pass_the_checks() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(B, commit("cmt_1"));
    let acceptance = pair.send(A, accept("cmt_1"));
    let before = pair.snapshot(B);
    let unfunded = ReceiverChecks { is_funded: false, ..ReceiverChecks::PASSED };
    let error = pair.side(B).take_over(&received(&acceptance), unfunded).unwrap_err();
    assert!(matches!(error, AspError::Refused(refusal) if refusal.code == RejectCode::BudgetExceeded));
    assert_eq!(pair.snapshot(B), before);
    pair.side(B).take_over(&received(&acceptance), ReceiverChecks::PASSED).unwrap();
    assert_eq!(pair.states(), [State::Executing; 2]);
}
