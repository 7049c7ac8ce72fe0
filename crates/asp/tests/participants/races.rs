//! Both sides send at the same time. The inviter's message wins, and the other side's message is rolled back (D8).

use asp::session::SessionEnding;
use asp::state_machine::State;
use asp::{ReceiveOutcome, RejectCode};

use super::participant_pair::{A, B, ParticipantPair};
use crate::support::bodies::{accept, close, commit, counter, escalate, observe, propose, query};

#[test]
fn the_inviters_message_wins_a_race() {
    let mut pair = ParticipantPair::conversing();
    let a = pair.send(A, observe("from a"));
    let b = pair.send(B, observe("from b"));
    let (refusal, reject) = pair.deliver_refused(A, &b);
    assert_eq!(refusal.code, RejectCode::StaleHead);
    assert!(
        refusal.reason.contains(&pair.snapshot(A).1.head.to_string()),
        "the reason contains the current head"
    );
    assert_eq!(pair.deliver_accepted(B, &a), [observe("from b")]);
    pair.assert_agreement();
    pair.deliver_ignored(B, &reject);
    pair.send_and_deliver(B, observe("from b"));
}

/// The outcome does not depend on whether the REJECT or the winning message arrives first.
#[test]
fn the_reject_may_arrive_before_the_winning_message() {
    let mut pair = ParticipantPair::conversing();
    let b = pair.send(B, observe("from b"));
    let a = pair.send(A, observe("from a"));
    let (_, reject) = pair.deliver_refused(A, &b);
    let (refusal, messages) = pair.deliver_rollback(B, &reject);
    assert_eq!((refusal.code, messages), (RejectCode::StaleHead, vec![observe("from b")]));
    assert!(pair.deliver_accepted(B, &a).is_empty());
    pair.assert_agreement();
}

/// The loser sent several messages. The second one links to the first one, which is not in the winner's chain. This does
/// not count as a broken chain.
#[test]
fn all_messages_of_the_loser_are_rolled_back_and_nothing_fails() {
    let mut pair = ParticipantPair::conversing();
    let a = pair.send(A, observe("from a"));
    let b: Vec<_> = (0..3).map(|number| pair.send(B, observe(&format!("b{number}")))).collect();
    let mut rejects = Vec::new();
    for text in &b {
        let (refusal, reject) = pair.deliver_refused(A, text);
        assert_eq!(refusal.code, RejectCode::StaleHead);
        rejects.push(reject);
    }
    assert_eq!(pair.deliver_accepted(B, &a), [observe("b0"), observe("b1"), observe("b2")]);
    for reject in &rejects {
        pair.deliver_ignored(B, reject);
    }
    pair.assert_agreement();
    pair.send_and_deliver(B, observe("b0"));
}

#[test]
fn the_winner_may_send_several_messages() {
    let mut pair = ParticipantPair::conversing();
    let a: Vec<_> = (0..3).map(|number| pair.send(A, observe(&format!("a{number}")))).collect();
    let b: Vec<_> = (0..2).map(|number| pair.send(B, observe(&format!("b{number}")))).collect();
    assert_eq!(pair.deliver_accepted(B, &a[0]).len(), 2);
    for text in &a[1..] {
        assert!(pair.deliver_accepted(B, text).is_empty());
    }
    for text in &b {
        let (_, reject) = pair.deliver_refused(A, text);
        pair.deliver_ignored(B, &reject);
    }
    pair.assert_agreement();
}

/// The inviter has received the first of two messages and sends while the second is in transit. Only the second one
/// loses the race.
#[test]
fn a_race_may_begin_after_the_first_of_several_messages() {
    let mut pair = ParticipantPair::conversing();
    let b: Vec<_> = (0..2).map(|number| pair.send(B, observe(&format!("b{number}")))).collect();
    pair.deliver_accepted(A, &b[0]);
    let a = pair.send(A, observe("from a"));
    let (_, reject) = pair.deliver_refused(A, &b[1]);
    assert_eq!(pair.deliver_accepted(B, &a), [observe("b1")], "the inviter's message wins");
    pair.deliver_ignored(B, &reject);
    pair.assert_agreement();
    pair.send_and_deliver(B, observe("b1"));
}

/// If the inviter's message is refused for another reason, both sides roll back and still agree.
#[test]
fn if_the_inviters_message_is_refused_neither_message_wins() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(B, commit("cmt_1"));
    let a = pair.send(A, accept("cmt_1"));
    let b = pair.send(B, crate::support::bodies::withdraw());
    let (_, reject_of_b) = pair.deliver_refused(A, &b);
    pair.checks.is_funded = false;
    let (refusal, reject_of_a) = pair.deliver_refused(B, &a);
    assert_eq!(refusal.code, RejectCode::BudgetExceeded);
    pair.deliver_rollback(A, &reject_of_a);
    pair.deliver_rollback(B, &reject_of_b);
    pair.assert_agreement();
    assert_eq!(pair.states(), [State::Agreeing; 2]);
}

/// A CLOSE that lost a race is rolled back, so the session was never closed.
#[test]
fn a_close_that_lost_a_race_is_rolled_back() {
    let mut pair = ParticipantPair::conversing();
    let b = pair.send(B, close("enough"));
    assert_eq!(pair.states(), [State::Conversing, State::Closed]);
    let a = pair.send(A, query("qry_1"));
    let (_, reject) = pair.deliver_refused(A, &b);
    assert_eq!(pair.deliver_accepted(B, &a), [close("enough")]);
    pair.deliver_ignored(B, &reject);
    pair.assert_agreement();
    assert_eq!(pair.states(), [State::Conversing; 2]);
    pair.send_and_deliver(B, close("enough"));
}

/// D4: two CLOSE messages cross.
#[test]
fn two_crossing_closes_end_the_session_once() {
    let mut pair = ParticipantPair::conversing();
    let a = pair.send(A, close("mine"));
    let b = pair.send(B, close("yours"));
    let (_, reject) = pair.deliver_refused(A, &b);
    assert_eq!(pair.deliver_accepted(B, &a), [close("yours")]);
    pair.deliver_ignored(B, &reject);
    pair.assert_agreement();
    assert_eq!(pair.states(), [State::Closed; 2]);
    assert_eq!(pair.snapshot(B).0.outcome().unwrap().ending, SessionEnding::Closed(A));
}

#[test]
fn crossing_closes_lead_to_the_same_transcript_on_both_sides() {
    let preludes: [&[(asp::state_machine::Role, asp::message::Body)]; 4] = [
        &[],
        &[(A, propose("prop_1")), (B, counter("prop_2", "prop_1"))],
        &[(A, commit("cmt_1"))],
        &[(A, escalate())],
    ];
    for prelude in preludes {
        let mut pair = ParticipantPair::conversing();
        for (role, body) in prelude {
            pair.send_and_deliver(*role, body.clone());
        }
        let a = pair.send(A, close("a"));
        let b = pair.send(B, close("b"));
        let (_, reject) = pair.deliver_refused(A, &b);
        pair.deliver_accepted(B, &a);
        pair.deliver_ignored(B, &reject);
        pair.assert_agreement();
    }
}

/// A message that overtakes its predecessor links to a hash that is still unknown, which D7 treats as a broken chain.
/// Therefore transports must keep the order of each sender's messages.
#[test]
fn a_message_that_overtakes_its_predecessor_breaks_the_chain() {
    let mut pair = ParticipantPair::conversing();
    pair.send(A, observe("first"));
    let second = pair.send(A, observe("second"));
    let outcome = pair.deliver(B, &second);
    assert!(matches!(outcome, ReceiveOutcome::Failed(_)), "{outcome:?}");
}

/// FAILED is final. Neither a race nor a REJECT changes it.
#[test]
fn a_broken_chain_stays_broken() {
    let mut pair = ParticipantPair::conversing();
    let first = pair.send(A, observe("first"));
    let second = pair.send(A, observe("second"));
    let own = pair.send(B, observe("mine"));
    pair.deliver(B, &second);
    let failed = pair.snapshot(B);
    assert_eq!(failed.0.state(), State::Failed);
    let (_, reject) = pair.deliver_refused(A, &own);
    for text in [&first, &reject, &second] {
        pair.deliver(B, text);
        assert_eq!(pair.snapshot(B), failed);
    }
}
