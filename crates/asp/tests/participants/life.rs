//! Whole lives.

use asp::machine::State;
use asp::session::{Ending, Judgement};
use asp::{Code, Error, Misuse, Participant, Received, Setup, Status};

use super::pair::{A, B, Pair, START};
use crate::support::bodies::{
    accept, close, commit, counter, escalate, inform, invitation, observe, propose, query,
};
use crate::support::cast::{BUYER, Dice, SELLER, participant, setup};
use crate::support::forge::digest;
use crate::support::json::Json;

#[test]
fn from_the_invitation_to_the_last_close() {
    let mut pair = Pair::introduced();
    pair.say(A, query("qry_1"));
    pair.say(B, inform("answer"));
    pair.say(A, propose("prop_1"));
    pair.say(B, counter("prop_2", "prop_1"));
    pair.say(A, accept("prop_2"));
    pair.say(A, commit("cmt_1"));
    assert_eq!(pair.states(), [State::Agreeing; 2]);
    pair.say(B, accept("cmt_1"));
    assert_eq!(pair.states(), [State::Executing; 2]);
    pair.say(B, inform("progress"));
    pair.say(B, inform("result"));
    pair.say(A, inform("result"));
    pair.say(A, close("done"));
    assert_eq!(pair.states(), [State::Executing; 2], "one CLOSE is a wish (D4)");
    pair.say(B, close("done"));
    assert_eq!(pair.states(), [State::Closed; 2]);
    let (session, _) = pair.shot(A);
    let outcome = session.outcome().unwrap();
    assert_eq!(outcome.ending, Ending::Completed);
    assert_eq!(outcome.commitment.as_ref().unwrap().status(), Status::Fulfilled);
    // Each message is the head that the next links to.
    let mut head = seal::Digest::ZERO;
    for text in pair.texts(B) {
        let json = Json::parse(&text);
        assert_eq!(json.string("integrity/previousHash"), head.to_string());
        head = digest(&json.without("integrity/hash").without("integrity/signature"));
    }
    assert_eq!(head, pair.shot(B).1.head);
    // After the end, nothing: neither of our own nor of the other.
    for role in [A, B] {
        let sent = pair.try_send(role, observe("x"));
        assert!(matches!(sent, Err(Error::Misuse(Misuse::Unlawful(_)))), "{sent:?}");
    }
    pair.agree();
}

#[test]
fn an_escalation_and_back() {
    let mut pair = Pair::conversing();
    pair.say(B, escalate());
    assert_eq!(pair.states(), [State::Escalated; 2]);
    pair.say(B, inform("resolution"));
    assert_eq!(pair.states(), [State::Conversing; 2]);
    pair.say(A, close("enough"));
    assert_eq!(pair.states(), [State::Closed; 2]);
}

#[test]
fn several_in_a_row_of_one_side() {
    let mut pair = Pair::conversing();
    let texts: Vec<_> = (0..5).map(|number| pair.send(A, observe(&format!("{number}")))).collect();
    for text in &texts {
        assert!(pair.taken(B, text).is_empty());
    }
    pair.agree();
    pair.say(B, observe("heard"));
}

#[test]
fn what_would_be_unlawful_is_not_sent() {
    let mut pair = Pair::introduced();
    for body in [commit("cmt_1"), accept("prop_inv"), invitation(), inform("resolution")] {
        let before = pair.shot(A);
        match pair.try_send(A, body) {
            Err(Error::Misuse(Misuse::Unlawful(refusal))) => assert!(!refusal.reason.is_empty()),
            Ok(_) => continue,
            other => panic!("{other:?}"),
        }
        assert_eq!(pair.shot(A), before);
    }
}

/// Trust too low: the inviter is told, goes on, and may try again.
#[test]
fn an_inviter_who_is_not_trusted_can_go_on() {
    let mut pair = Pair::new();
    let text = pair.send(A, invitation());
    pair.judgement = Judgement { trusted: false, ..Judgement::default() };
    let answer = match pair.deliver(B, &text) {
        Received::Refused { refusal, answer: Some(answer) } => {
            assert_eq!(refusal.code, Code::InsufficientTrustScore);
            answer
        }
        other => panic!("{other:?}"),
    };
    assert!(pair.side(B).record().is_none(), "a session that never began is not kept");
    let (refusal, messages) = pair.undone(A, &answer);
    assert_eq!(refusal.code, Code::InsufficientTrustScore);
    assert_eq!(messages, [invitation()]);
    assert_eq!(pair.shot(A).0.state(), State::Idle);
    assert_eq!(pair.shot(A).1, asp::Point::default());
    // A refusal that comes twice changes nothing.
    pair.ignored(A, &answer);
    // The score has changed meanwhile.
    pair.judgement.trusted = true;
    pair.say(A, invitation());
    assert_eq!(pair.states(), [State::Invited; 2]);
}

/// What is not for this session, while the inviter has not begun, takes nothing away from it.
#[test]
fn an_inviter_who_has_not_begun_stays_one() {
    let mut pair = Pair::new();
    let mut other = participant(&SELLER, &[&BUYER]);
    let mut dice = Dice(77);
    other.invite(&BUYER.card, START, &mut dice).unwrap();
    let stray = other.send(invitation(), START, &mut dice).unwrap();
    let heard = pair.deliver(A, &stray.text);
    assert!(matches!(heard, Received::Refused { .. }), "{heard:?}");
    pair.say(A, invitation());
}

#[test]
fn an_identity_that_is_not_trusted_is_refused() {
    let mut pair = Pair::new();
    pair.say(A, invitation());
    pair.say(B, accept("prop_inv"));
    let text = pair.send(A, inform("identity"));
    pair.judgement.trusted = false;
    let (refusal, answer) = pair.refused(B, &text);
    assert_eq!(refusal.code, Code::InsufficientTrustScore);
    pair.undone(A, &answer);
    pair.agree();
    assert_eq!(pair.states(), [State::Invited; 2]);
}

/// Escrow that the committer does not see covered: the ACCEPT is undone, and the other side may answer otherwise.
#[test]
fn escrow_that_is_not_covered_stops_the_agreement() {
    let mut pair = Pair::conversing();
    pair.say(A, commit("cmt_1"));
    let text = pair.send(B, accept("cmt_1"));
    pair.judgement = Judgement { funded: false, ..Judgement::default() };
    let (refusal, answer) = pair.refused(A, &text);
    assert_eq!(refusal.code, Code::BudgetExceeded);
    let (_, messages) = pair.undone(B, &answer);
    assert_eq!(messages, [accept("cmt_1")]);
    pair.agree();
    assert_eq!(pair.states(), [State::Agreeing; 2]);
    pair.judgement.funded = true;
    pair.say(B, accept("cmt_1"));
    assert_eq!(pair.states(), [State::Executing; 2]);
    // And by the accepting side's own knowledge it is not even sent.
    let mut pair = Pair::conversing();
    pair.say(A, commit("cmt_1"));
    let (now, mut dice) = (pair.now, Dice(500));
    let unfunded = Judgement { funded: false, ..Judgement::default() };
    let sent = pair.side(B).send_with(accept("cmt_1"), None, unfunded, now, &mut dice);
    match sent {
        Err(Error::Misuse(Misuse::Unlawful(refusal))) => assert_eq!(refusal.code, Code::BudgetExceeded),
        other => panic!("{other:?}"),
    }
    pair.agree();
}

/// A wake-up that comes late does what the one in time would have done; early and repeated ones do nothing.
#[test]
fn late_and_repeated_wake_ups() {
    let mut pair = Pair::new();
    pair.say(A, invitation());
    let due = pair.shot(A).0.next_deadline().unwrap();
    assert!(pair.side(A).wake(due - 1).is_empty());
    assert_eq!(pair.states(), [State::Invited; 2]);
    assert_eq!(pair.side(A).wake(due).len(), 1);
    assert_eq!(pair.side(B).wake(due + 86_400_000).len(), 1);
    pair.agree();
    assert_eq!(pair.states(), [State::Failed; 2]);
    for role in [A, B] {
        assert!(pair.side(role).wake(due + 90_000_000).is_empty());
    }
    let (session, _) = pair.shot(B);
    assert_eq!(
        session.outcome().unwrap().at,
        due,
        "it ended when the time ran out, not when somebody looked"
    );
}

/// An answer in time that arrives after the other side's clock has run out: both end alike.
#[test]
fn an_answer_that_crosses_the_end_of_time() {
    let mut pair = Pair::new();
    pair.say(A, invitation());
    let due = pair.shot(A).0.next_deadline().unwrap();
    pair.now = due - 1;
    let text = pair.send(B, accept("prop_inv"));
    pair.side(A).wake(due);
    pair.now = due + 1;
    let (_, answer) = pair.refused(A, &text);
    pair.undone(B, &answer);
    pair.side(B).wake(due + 1);
    pair.agree();
    assert_eq!(pair.states(), [State::Failed; 2]);
    // Nobody has woken the inviter: then it is still in time.
    let mut pair = Pair::new();
    pair.say(A, invitation());
    pair.now = due - 1;
    let text = pair.send(B, accept("prop_inv"));
    pair.now = due + 1;
    pair.taken(A, &text);
    pair.agree();
}

#[test]
fn the_keys_are_those_of_the_card() {
    let mixed = Setup { keys: SELLER.keys.clone(), ..setup(&BUYER, &[&SELLER]) };
    assert_eq!(Participant::new(mixed).map(|_| ()), Err(Misuse::Keys));
}

/// Whoever gives a card that is not the pinned one invites by the pinned one, or not at all.
#[test]
fn the_card_that_is_invited_is_the_pinned_one() {
    let mut dice = Dice(5);
    let false_card = crate::support::cast::actor(SELLER.agent().as_str(), 60).card;
    let mut a = participant(&BUYER, &[&SELLER]);
    if a.invite(&false_card, START, &mut dice).is_ok() {
        let card = a.record().unwrap().card(B);
        assert_eq!(card.as_str(), SELLER.card.as_str());
    }
}

#[test]
fn a_message_that_would_be_too_long_is_not_sent() {
    let mut pair = Pair::conversing();
    let before = pair.shot(A);
    let sent = pair.try_send(A, observe(&"x".repeat(300_000)));
    assert!(matches!(sent, Err(Error::Misuse(Misuse::TooLong(_)))));
    assert_eq!(pair.shot(A), before);
    pair.say(A, observe("short"));
}
