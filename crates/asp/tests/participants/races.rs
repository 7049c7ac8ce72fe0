//! Both speak at once: the inviter's message wins, and the other side has its own back (D8).

use asp::machine::State;
use asp::session::Ending;
use asp::{Code, Received};

use super::pair::{A, B, Pair};
use crate::support::bodies::{accept, close, commit, counter, escalate, observe, propose, query};

#[test]
fn the_inviters_message_wins() {
    let mut pair = Pair::conversing();
    let a = pair.send(A, observe("from a"));
    let b = pair.send(B, observe("from b"));
    let (refusal, answer) = pair.refused(A, &b);
    assert_eq!(refusal.code, Code::StaleHead);
    assert!(refusal.reason.contains(&pair.shot(A).1.head.to_string()), "it tells the present head");
    assert_eq!(pair.taken(B, &a), [observe("from b")]);
    pair.agree();
    pair.ignored(B, &answer);
    pair.say(B, observe("from b"));
}

/// Whichever arrives first, the outcome is the same.
#[test]
fn the_refusal_may_come_before_the_winner() {
    let mut pair = Pair::conversing();
    let b = pair.send(B, observe("from b"));
    let a = pair.send(A, observe("from a"));
    let (_, answer) = pair.refused(A, &b);
    let (refusal, messages) = pair.undone(B, &answer);
    assert_eq!((refusal.code, messages), (Code::StaleHead, vec![observe("from b")]));
    assert!(pair.taken(B, &a).is_empty());
    pair.agree();
}

/// Several of the loser's, and its second links to its first, that the winner's chain never had: nobody's chain is broken.
#[test]
fn all_that_the_loser_sent_is_lost_and_nothing_fails() {
    let mut pair = Pair::conversing();
    let a = pair.send(A, observe("from a"));
    let b: Vec<_> = (0..3).map(|number| pair.send(B, observe(&format!("b{number}")))).collect();
    let mut answers = Vec::new();
    for text in &b {
        let (refusal, answer) = pair.refused(A, text);
        assert_eq!(refusal.code, Code::StaleHead);
        answers.push(answer);
    }
    assert_eq!(pair.taken(B, &a), [observe("b0"), observe("b1"), observe("b2")]);
    for answer in &answers {
        pair.ignored(B, answer);
    }
    pair.agree();
    pair.say(B, observe("b0"));
}

#[test]
fn the_winner_may_send_several_too() {
    let mut pair = Pair::conversing();
    let a: Vec<_> = (0..3).map(|number| pair.send(A, observe(&format!("a{number}")))).collect();
    let b: Vec<_> = (0..2).map(|number| pair.send(B, observe(&format!("b{number}")))).collect();
    assert_eq!(pair.taken(B, &a[0]).len(), 2);
    for text in &a[1..] {
        assert!(pair.taken(B, text).is_empty());
    }
    for text in &b {
        let (_, answer) = pair.refused(A, text);
        pair.ignored(B, &answer);
    }
    pair.agree();
}

/// The inviter has heard the first of two, and speaks while the second is on its way: that one alone is lost.
#[test]
fn the_race_may_begin_in_the_middle() {
    let mut pair = Pair::conversing();
    let b: Vec<_> = (0..2).map(|number| pair.send(B, observe(&format!("b{number}")))).collect();
    pair.taken(A, &b[0]);
    let a = pair.send(A, observe("from a"));
    let (_, answer) = pair.refused(A, &b[1]);
    assert_eq!(pair.taken(B, &a), [observe("b1")], "the inviter's wins here as anywhere");
    pair.ignored(B, &answer);
    pair.agree();
    pair.say(B, observe("b1"));
}

/// The winner is refused even in its place: then both are undone or the other stands, and both sides agree.
#[test]
fn a_winner_that_is_unlawful_wins_nothing() {
    let mut pair = Pair::conversing();
    pair.say(B, commit("cmt_1"));
    let a = pair.send(A, accept("cmt_1"));
    let b = pair.send(B, crate::support::bodies::withdraw());
    let (_, answer_to_b) = pair.refused(A, &b);
    pair.judgement.funded = false;
    let (refusal, answer_to_a) = pair.refused(B, &a);
    assert_eq!(refusal.code, Code::BudgetExceeded);
    pair.undone(A, &answer_to_a);
    pair.undone(B, &answer_to_b);
    pair.agree();
    assert_eq!(pair.states(), [State::Agreeing; 2]);
}

/// A CLOSE that lost a race is undone: the session was never closed.
#[test]
fn a_close_that_lost_is_undone() {
    let mut pair = Pair::conversing();
    let b = pair.send(B, close("enough"));
    assert_eq!(pair.states(), [State::Conversing, State::Closed]);
    let a = pair.send(A, query("qry_1"));
    let (_, answer) = pair.refused(A, &b);
    assert_eq!(pair.taken(B, &a), [close("enough")]);
    pair.ignored(B, &answer);
    pair.agree();
    assert_eq!(pair.states(), [State::Conversing; 2]);
    pair.say(B, close("enough"));
}

/// D4: CLOSE that crosses CLOSE.
#[test]
fn two_closes_that_cross() {
    let mut pair = Pair::conversing();
    let a = pair.send(A, close("mine"));
    let b = pair.send(B, close("yours"));
    let (_, answer) = pair.refused(A, &b);
    assert_eq!(pair.taken(B, &a), [close("yours")]);
    pair.ignored(B, &answer);
    pair.agree();
    assert_eq!(pair.states(), [State::Closed; 2]);
    assert_eq!(pair.shot(B).0.outcome().unwrap().ending, Ending::Closed(A));
}

#[test]
fn races_in_every_live_state_leave_one_transcript() {
    let ways: [&[(asp::machine::Role, asp::message::Body)]; 4] = [
        &[],
        &[(A, propose("prop_1")), (B, counter("prop_2", "prop_1"))],
        &[(A, commit("cmt_1"))],
        &[(A, escalate())],
    ];
    for way in ways {
        let mut pair = Pair::conversing();
        for (role, body) in way {
            pair.say(*role, body.clone());
        }
        let a = pair.send(A, close("a"));
        let b = pair.send(B, close("b"));
        let (_, answer) = pair.refused(A, &b);
        pair.taken(B, &a);
        pair.ignored(B, &answer);
        pair.agree();
    }
}

/// A message that overtakes the one before it on a network that does not keep the order links to nothing yet: D7 by its
/// letter. Transports must keep the order of each sender.
#[test]
fn a_message_that_overtakes_its_predecessor_breaks_the_chain() {
    let mut pair = Pair::conversing();
    pair.send(A, observe("first"));
    let second = pair.send(A, observe("second"));
    let heard = pair.deliver(B, &second);
    assert!(matches!(heard, Received::Failed(_)), "{heard:?}");
}

/// Nothing leaves FAILED: not by a race that would have been lost before, nor by a refusal of what was sent before.
#[test]
fn a_broken_chain_stays_broken() {
    let mut pair = Pair::conversing();
    let first = pair.send(A, observe("first"));
    let second = pair.send(A, observe("second"));
    let mine = pair.send(B, observe("mine"));
    pair.deliver(B, &second);
    let failed = pair.shot(B);
    assert_eq!(failed.0.state(), State::Failed);
    let (_, refusal) = pair.refused(A, &mine);
    for text in [&first, &refusal, &second] {
        pair.deliver(B, text);
        assert_eq!(pair.shot(B), failed);
    }
}
