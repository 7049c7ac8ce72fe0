//! Bytes of people who are not in the session: dropped and counted, never answered, and they end nothing (D7).

use asp::machine::State;
use asp::session::Judgement;
use asp::{Code, Misbehaviour, Participant, Received, Record};
use seal::Digest;

use crate::support::bodies::{accept, close, inform, invitation, query};
use crate::support::cast::{BUYER, Dice, SELLER, STRANGER, THIRD, participant};
use crate::support::forge::{Lie, forge, forge_with};
use crate::support::json::Json;
use crate::support::scene::{A, Heard, START, Scene};

#[test]
fn a_strangers_message_is_dropped() {
    let mut scene = Scene::at(State::Conversing);
    for link in [scene.record.transcript().head(), Digest::of(b"nothing")] {
        let envelope = scene
            .next(A, &close("unilateral"))
            .with_text("sender/agentId", STRANGER.agent().as_str())
            .with_text("integrity/previousHash", &link.to_string());
        let forged = forge(&envelope, &STRANGER.keys);
        let who = STRANGER.agent().to_string();
        assert_eq!(scene.hear(&forged.text), Heard::Dropped(Misbehaviour::Stranger(who)));
        // In somebody else's name.
        let envelope = envelope.with_text("sender/agentId", BUYER.agent().as_str());
        let forged = forge(&envelope, &STRANGER.keys);
        assert_eq!(scene.hear(&forged.text), Heard::Dropped(Misbehaviour::Signature));
    }
}

/// One whose card is known, but who is not in this session: even with a link that is none, he ends nothing.
#[test]
fn a_known_agent_outside_of_the_session_is_refused() {
    let mut scene = Scene::at(State::Conversing);
    for link in [scene.record.transcript().head(), Digest::of(b"nothing")] {
        let envelope = scene
            .next(A, &close("unilateral"))
            .with_text("sender/agentId", THIRD.agent().as_str())
            .with_text("integrity/previousHash", &link.to_string());
        let forged = forge(&envelope, &THIRD.keys);
        assert_eq!(scene.hear(&forged.text), Heard::Refused(Code::Unauthorized));
    }
}

/// Two participants who know a third, after the identity exchange.
fn pair() -> (Participant, Participant, Dice) {
    let mut dice = Dice(1000);
    let mut a = participant(&BUYER, &[&SELLER, &THIRD]);
    let mut b = participant(&SELLER, &[&BUYER, &THIRD]);
    a.invite(&SELLER.card, START, &mut dice).unwrap();
    for (by_a, body) in [
        (true, invitation()),
        (false, accept("prop_inv")),
        (true, inform("identity")),
        (false, inform("identity")),
    ] {
        let (from, to) = if by_a { (&mut a, &mut b) } else { (&mut b, &mut a) };
        let sent = from.send(body, START, &mut dice).unwrap();
        let heard = to.receive(&sent.text, Judgement::default(), START, &mut dice).unwrap();
        assert!(matches!(heard, Received::Taken { .. }), "{heard:?}");
    }
    (a, b, dice)
}

#[test]
fn a_participant_counts_what_it_drops_and_does_not_answer() {
    let (mut a, mut b, mut dice) = pair();
    let before = b.record().unwrap().checkpoint();
    let sent = a.send(query("qry_1"), START, &mut dice).unwrap();
    let good = Json::parse(&sent.text);
    let bad = [
        String::new(),
        "{}".to_owned(),
        good.clone().with_text("sender/agentId", STRANGER.agent().as_str()).write(),
        good.clone().with_text("integrity/hash", &Digest::ZERO.to_string()).write(),
        good.clone().with_text("content/body/subject", "gold").write(),
        forge(&good, &STRANGER.keys).text,
        forge_with(&good, &BUYER.keys, &Lie { htm: Some("CLOSE".to_owned()), ..Lie::default() }).text,
        "x".repeat(300_000),
    ];
    for (number, text) in bad.iter().enumerate() {
        let heard = b.receive(text, Judgement::default(), START, &mut dice).unwrap();
        assert!(matches!(heard, Received::Dropped(_)), "{heard:?}");
        assert_eq!(b.dropped(), number as u64 + 1);
    }
    let after = b.record().unwrap().checkpoint();
    assert_eq!((after.session, after.point), (before.session, before.point));
    let heard = b.receive(&sent.text, Judgement::default(), START, &mut dice).unwrap();
    assert!(matches!(heard, Received::Taken { .. }), "{heard:?}");
}

fn state_of(who: &Participant) -> (State, asp::Point) {
    let record = who.record().unwrap();
    (record.session().state(), record.transcript().point())
}

/// D7: a foreign sender's bytes are dropped and counted, also when his card is known from elsewhere. No answer tells him
/// the session's head.
#[test]
fn a_known_agent_outside_of_the_session_is_dropped_by_a_participant() {
    let (a, mut b, mut dice) = pair();
    let mut scene = Scene::new();
    let before = state_of(&b);
    for session in [a.record().unwrap().session_id(), scene.record.session_id()] {
        let envelope = scene
            .next(A, &query("qry_1"))
            .with_text("sessionId", &session.to_string())
            .with_text("sender/agentId", THIRD.agent().as_str());
        let text = forge(&envelope, &THIRD.keys).text;
        let dropped = b.dropped();
        let heard = b.receive(&text, Judgement::default(), START + 1000, &mut dice).unwrap();
        assert!(matches!(heard, Received::Dropped(_)), "{heard:?}");
        assert_eq!(b.dropped(), dropped + 1);
        assert_eq!(state_of(&b), before);
    }
}

/// A refusal is the other side's to give: that of anybody else undoes nothing.
#[test]
fn a_refusal_by_a_third_party_undoes_nothing() {
    let (mut a, _, mut dice) = pair();
    let sent = a.send(query("qry_1"), START, &mut dice).unwrap();
    let before = state_of(&a);
    let mut scene = Scene::new();
    let body = crate::support::bodies::reject(&sent.message_id.to_string());
    let envelope = scene
        .next(A, &body)
        .with_text("sessionId", &a.record().unwrap().session_id().to_string())
        .with_text("sender/agentId", THIRD.agent().as_str())
        .with_text("recipient", BUYER.agent().as_str());
    let text = forge(&envelope, &THIRD.keys).text;
    let heard = a.receive(&text, Judgement::default(), START + 1000, &mut dice).unwrap();
    assert!(!matches!(heard, Received::Undone { .. }), "{heard:?}");
    assert_eq!(state_of(&a), before);
}

/// An invitation that was meant for somebody else is not ours to take.
#[test]
fn an_invitation_to_somebody_else_begins_nothing() {
    let mut dice = Dice(5);
    let mut a = participant(&BUYER, &[&SELLER, &THIRD]);
    let mut third = participant(&THIRD, &[&BUYER, &SELLER]);
    a.invite(&SELLER.card, START, &mut dice).unwrap();
    let sent = a.send(invitation(), START, &mut dice).unwrap();
    let heard = third.receive(&sent.text, Judgement::default(), START, &mut dice).unwrap();
    assert!(!matches!(heard, Received::Taken { .. }), "{heard:?}");
    assert!(third.record().is_none());
    // It is still free for one that is meant for it.
    let mut a = participant(&BUYER, &[&SELLER, &THIRD]);
    a.invite(&THIRD.card, START, &mut dice).unwrap();
    let sent = a.send(invitation(), START, &mut dice).unwrap();
    let heard = third.receive(&sent.text, Judgement::default(), START, &mut dice).unwrap();
    assert!(matches!(heard, Received::Taken { .. }), "{heard:?}");
}

#[test]
fn nobody_invites_himself() {
    let mut dice = Dice(5);
    let mut a = participant(&BUYER, &[&SELLER]);
    assert_eq!(a.invite(&BUYER.card, START, &mut dice), Err(asp::Misuse::NotAParticipant));
    assert_eq!(a.invite(&STRANGER.card, START, &mut dice), Err(asp::Misuse::NotAParticipant));
    let mut scene = Scene::new();
    let envelope = scene.next(A, &invitation()).with_text("recipient", BUYER.agent().as_str());
    let sealed = scene.open(&forge(&envelope, &BUYER.keys).text).unwrap();
    let begun =
        Record::beginning(&sealed.envelope, &scene.cards, asp::session::Rules::default(), &scene.limits);
    assert_eq!(begun.map(|_| ()).unwrap_err().code, Code::Unauthorized);
}
