//! Refusals stand outside the machine (D6).

use asp::machine::State;
use asp::{Code, Received};
use proptest::prelude::*;

use super::pair::{A, B, Pair};
use crate::support::bodies::{accept, close, commit, observe, propose, query, reject};
use crate::support::cast::{BUYER, SELLER};
use crate::support::forge::forge;
use crate::support::json::Json;
use crate::support::scene::{Scene, actor};
use testing::property::cases;

/// A message of the inviter that its own participant would never send, on the head and with the number of now.
fn unlawful(pair: &mut Pair, sender: asp::machine::Role, performative: &str, body: &str) -> String {
    let (_, point) = pair.shot(sender);
    let mut scene = Scene::new();
    scene.now = pair.now;
    scene.dice.0 = pair.dice.0 + 1_000_000;
    pair.dice.0 += 10;
    let session = pair.side(sender).record().unwrap().session_id();
    let envelope = scene
        .envelope(sender, performative, body)
        .with_text("sessionId", &session.to_string())
        .with("sequenceNumber", &point.next[usize::from(sender == B)].to_string())
        .with_text("integrity/previousHash", &point.head.to_string());
    forge(&envelope, &actor(sender).keys).text
}

#[test]
fn a_refusal_is_not_on_record_and_uses_no_number() {
    let mut pair = Pair::introduced();
    let bad = unlawful(&mut pair, A, "ACCEPT", r#"{"referenceId":"prop_inv"}"#);
    let before = pair.shot(B);
    let (refusal, answer) = pair.refused(B, &bad);
    assert_eq!(refusal.code, Code::InvalidStateTransition);
    let json = Json::parse(&answer);
    let (_, point) = before.clone();
    assert_eq!(json.string("performative"), "REJECT");
    assert_eq!(json.get("sequenceNumber"), Some(&Json::Leaf(point.next[1].to_string())));
    assert_eq!(json.string("integrity/previousHash"), point.head.to_string(), "the head that its sender saw");
    assert_eq!(json.string("content/body/referenceId"), Json::parse(&bad).string("messageId"));
    assert_eq!(json.string("content/body/code"), "invalid_state_transition");
    assert_eq!(json.string("sender/agentId"), SELLER.agent().as_str());
    assert_eq!(json.string("recipient"), BUYER.agent().as_str());
    assert_eq!(pair.shot(B), before);
    // It is not the other participant's message either: nothing of its own is undone.
    pair.ignored(A, &answer);
    // The number that it carried is used by the next message.
    let text = pair.say(B, query("qry_1"));
    assert_eq!(Json::parse(&text).get("sequenceNumber"), Some(&Json::Leaf(point.next[1].to_string())));
}

#[test]
fn what_is_refused_is_undone_and_may_be_sent_again() {
    let mut pair = Pair::conversing();
    pair.say(A, commit("cmt_1"));
    let before = pair.shot(B);
    let first = pair.send(B, accept("cmt_1"));
    assert_ne!(pair.shot(B), before);
    pair.judgement.funded = false;
    let (_, answer) = pair.refused(A, &first);
    let (refusal, messages) = pair.undone(B, &answer);
    assert_eq!(refusal.message.unwrap().to_string(), Json::parse(&first).string("messageId"));
    assert_eq!(messages, [accept("cmt_1")]);
    assert_eq!(pair.shot(B), before, "as if it had never been sent");
    pair.judgement.funded = true;
    let again = pair.say(B, accept("cmt_1"));
    assert_eq!(
        Json::parse(&again).get("sequenceNumber"),
        Json::parse(&first).get("sequenceNumber"),
        "the number was not used up"
    );
}

/// With the refused message, those that were sent after it fall too; those before it stand.
#[test]
fn what_followed_the_refused_message_is_undone_with_it() {
    let mut pair = Pair::conversing();
    pair.say(A, commit("cmt_1"));
    let first = pair.send(
        B,
        crate::support::bodies::body(
            asp::Performative::Clarify,
            r#"{"inReplyTo":"cmt_1","question":"when?"}"#,
        ),
    );
    let second = pair.send(B, accept("cmt_1"));
    let third = pair.send(B, query("qry_1"));
    pair.taken(A, &first);
    pair.judgement.funded = false;
    let (_, answer) = pair.refused(A, &second);
    let (_, messages) = pair.undone(B, &answer);
    assert_eq!(messages, [accept("cmt_1"), query("qry_1")]);
    pair.agree();
    // What was sent after it is on its way all the same. It lost by no fault of its sender: the session lives.
    let (refusal, answer) = pair.refused(A, &third);
    assert_eq!(refusal.code, Code::StaleHead);
    pair.ignored(B, &answer);
    pair.agree();
    pair.say(B, reject("cmt_1"));
}

/// A message that was refused stays refused: its sender has undone it, so a copy that comes later must not be taken.
#[test]
fn a_refused_message_is_refused_for_good() {
    let mut pair = Pair::conversing();
    pair.say(A, commit("cmt_1"));
    let text = pair.send(B, accept("cmt_1"));
    pair.judgement.funded = false;
    let (_, answer) = pair.refused(A, &text);
    pair.undone(B, &answer);
    pair.judgement.funded = true;
    let (_, answer) = pair.refused(A, &text);
    pair.ignored(B, &answer);
    pair.agree();
    pair.say(B, accept("cmt_1"));
}

/// A message that comes twice is on record: to refuse the second would undo the first at its sender.
#[test]
fn a_doubled_message_undoes_nothing() {
    let mut pair = Pair::conversing();
    let text = pair.send(A, propose("prop_1"));
    pair.taken(B, &text);
    match pair.deliver(B, &text) {
        Received::Refused { refusal, answer } => {
            assert_eq!(refusal.code, Code::Duplicate);
            if let Some(answer) = answer {
                pair.deliver(A, &answer);
            }
        }
        other => panic!("{other:?}"),
    }
    pair.agree();
    pair.say(B, accept("prop_1"));
}

#[test]
fn a_refusal_is_never_refused() {
    let mut pair = Pair::introduced();
    let bad = unlawful(&mut pair, A, "ACCEPT", r#"{"referenceId":"prop_inv"}"#);
    let (_, answer) = pair.refused(B, &bad);
    // To its addressee, often; and back to the one who made it.
    for _ in 0..3 {
        pair.ignored(A, &answer);
    }
    let heard = pair.deliver(B, &answer);
    let loops = matches!(&heard, Received::Refused { answer: Some(_), .. });
    assert!(!loops, "a refusal that is sent back is answered, and so is the answer: {heard:?}");
    // Even in a session that has ended, or of a message that never was.
    pair.say(A, close("enough"));
    pair.ignored(A, &answer);
    let made_up = unlawful(
        &mut pair,
        B,
        "REJECT",
        r#"{"code":"unspecified","reason":"no","referenceId":"01890a5d-ac96-774b-bcce-b302099a8057"}"#,
    );
    pair.ignored(A, &made_up);
}

/// Our own message, sent back to us by the network, is not answered.
#[test]
fn our_own_message_is_not_answered() {
    let mut pair = Pair::conversing();
    let text = pair.send(A, observe("x"));
    let before = pair.shot(A);
    let heard = pair.deliver(A, &text);
    assert!(matches!(heard, Received::Refused { answer: None, .. } | Received::Dropped(_)), "{heard:?}");
    assert_eq!(pair.shot(A), before);
    pair.taken(B, &text);
}

/// What is settled cannot be refused any more.
#[test]
fn a_refusal_of_what_is_settled_is_ignored() {
    let mut pair = Pair::conversing();
    let text = pair.say(A, observe("x"));
    pair.say(B, observe("heard"));
    let id = Json::parse(&text).string("messageId");
    let body = format!(r#"{{"code":"unspecified","reason":"no","referenceId":"{id}"}}"#);
    let late = unlawful(&mut pair, B, "REJECT", &body);
    pair.ignored(A, &late);
}

/// Unknown codes are read as unspecified.
#[test]
fn a_refusal_with_a_code_of_its_own() {
    let mut pair = Pair::conversing();
    let text = pair.send(A, observe("x"));
    let id = Json::parse(&text).string("messageId");
    let body = format!(r#"{{"code":"bad_mood","reason":"no","referenceId":"{id}"}}"#);
    let refusal = unlawful(&mut pair, B, "REJECT", &body);
    let (refusal, messages) = pair.undone(A, &refusal);
    assert_eq!((refusal.code, messages.len()), (Code::Unspecified, 1));
    pair.agree();
}

/// A refusal that arrives after the sender's own clock ran out: the end comes again at the next wake-up.
#[test]
fn a_refusal_after_the_end_of_time() {
    let mut pair = Pair::conversing();
    pair.say(A, commit("cmt_1"));
    let due = pair.shot(A).0.next_deadline().unwrap();
    pair.now = due - 1;
    let text = pair.send(B, accept("cmt_1"));
    pair.judgement.funded = false;
    let (_, answer) = pair.refused(A, &text);
    for role in [A, B] {
        pair.side(role).wake(due);
    }
    assert_eq!(pair.states(), [State::Failed; 2]);
    pair.undone(B, &answer);
    pair.side(B).wake(due);
    pair.agree();
    assert_eq!(pair.states(), [State::Failed; 2]);
}

proptest! {
    #![proptest_config(cases(12))]

    /// Whatever unlawful things are sent, in whatever state: each is answered at most once, and nobody answers an answer.
    #[test]
    fn exchanges_end(steps in proptest::collection::vec((any::<bool>(), 0..13_usize, 0..4_usize), 1..10)) {
        let mut pair = Pair::introduced();
        for (by_a, performative, advance) in steps {
            let sender = if by_a { A } else { B };
            let performative = asp::Performative::ALL[performative];
            let body = crate::support::bodies::full(performative);
            let text = unlawful(&mut pair, sender, performative.word(), body);
            let before = [pair.shot(A), pair.shot(B)];
            let probe = pair.deliver(sender.other(), &text);
            match probe {
                // It was lawful after all: then its sender, who never sent it, is not asked on; the case ends here.
                Received::Taken { .. } => break,
                Received::Refused { answer, .. } => {
                    prop_assert_eq!([pair.shot(A), pair.shot(B)], before);
                    let mut mail: Vec<_> = answer.into_iter().map(|text| (sender, text)).collect();
                    let mut exchanged = 0;
                    while let Some((to, text)) = mail.pop() {
                        exchanged += 1;
                        prop_assert!(exchanged < 3);
                        let heard = pair.deliver(to, &text);
                        if let Received::Refused { answer: Some(answer), .. } = heard {
                            mail.push((to.other(), answer));
                        }
                    }
                    pair.agree();
                }
                Received::Ignored => {}
                other => prop_assert!(false, "{other:?}"),
            }
            match advance {
                0 if pair.states() == [State::Introduced; 2] => { pair.say(A, query("qry_0")); }
                1 if pair.states() == [State::Conversing; 2] => { pair.say(A, commit("cmt_7")); }
                2 if pair.states() == [State::Agreeing; 2] => { pair.say(B, accept("cmt_7")); }
                _ => {}
            }
        }
    }
}

#[test]
fn what_the_transport_says_was_taken_can_no_longer_be_undone() {
    let mut pair = Pair::conversing();
    let first = pair.try_send(A, query("qry_1")).unwrap().message_id;
    let second = pair.try_send(A, query("qry_2")).unwrap().message_id;
    assert!(!pair.side(A).is_settled(first) && !pair.side(A).is_settled(second));
    pair.side(A).settle(first);
    assert!(pair.side(A).is_settled(first) && !pair.side(A).is_settled(second));
}
