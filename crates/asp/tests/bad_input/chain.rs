//! Numbers, links, times and sessions.

use asp::machine::State;
use asp::session::Ending;
use asp::{Code, MessageId, SessionId};
use seal::{Digest, UnixMillis};

use crate::support::bodies::{inform, invitation, observe, query};
use crate::support::cast::{BUYER, Dice};
use crate::support::forge::{Lie, forge, forge_with};
use crate::support::json::Json;
use crate::support::scene::{A, B, Heard, START, Scene, actor, time};

fn number(envelope: Json, number: u64) -> Json {
    envelope.with("sequenceNumber", &number.to_string())
}

#[test]
fn a_gap_in_the_numbers_is_refused() {
    let mut scene = Scene::at(State::Conversing);
    for ahead in [1, 2, 1000, (1 << 53) - 4] {
        let next = scene.record.transcript().next_number(A);
        let envelope = number(scene.next(A, &query("qry_1")), next + ahead);
        scene.refuses(A, &envelope, Code::InvalidStateTransition);
    }
}

#[test]
fn a_repeated_number_is_refused() {
    let mut scene = Scene::at(State::Conversing);
    for sender in [A, B] {
        for used in 0..scene.record.transcript().next_number(sender) {
            let envelope = number(scene.next(sender, &query("qry_1")), used);
            scene.refuses(sender, &envelope, Code::Duplicate);
        }
    }
}

/// The count is each sender's own: the other side's next number is no good.
#[test]
fn the_numbers_are_counted_per_sender() {
    let mut scene = Scene::at(State::Conversing);
    scene.say(A, &observe("one"));
    scene.say(A, &observe("two"));
    let [a, b] = [A, B].map(|role| scene.record.transcript().next_number(role));
    assert_ne!(a, b);
    let envelope = number(scene.next(B, &query("qry_1")), a);
    scene.refuses(B, &envelope, Code::InvalidStateTransition);
}

#[test]
fn the_first_number_is_nought() {
    let mut scene = Scene::new();
    let envelope = number(scene.next(A, &invitation()), 1);
    scene.refuses(A, &envelope, Code::InvalidStateTransition);
}

#[test]
fn a_message_twice_is_a_duplicate() {
    let mut scene = Scene::at(State::Introduced);
    let forged = scene.forge(A, &query("qry_1"));
    assert_eq!(scene.hear(&forged.text), Heard::Taken);
    assert_eq!(scene.hear(&forged.text), Heard::Refused(Code::Duplicate));
    // Its name alone, on another message that would be lawful.
    let id = Json::parse(&forged.text).string("messageId");
    let envelope = scene.next(A, &observe("x")).with_text("messageId", &id);
    scene.refuses(A, &envelope, Code::Duplicate);
    let envelope = scene.next(B, &observe("x")).with_text("messageId", &id.to_uppercase());
    scene.refuses(B, &envelope, Code::Duplicate);
}

#[test]
fn another_sessions_message_is_refused() {
    let mut scene = Scene::at(State::Conversing);
    let other = SessionId::generate(START, &mut Dice(77)).to_string();
    let envelope = scene.next(A, &query("qry_1")).with_text("sessionId", &other);
    scene.refuses(A, &envelope, Code::InvalidStateTransition);
    // Also where it would break the chain: what another session links to is no business of this one.
    let envelope = envelope.with_text("integrity/previousHash", &Digest::of(b"other").to_string());
    scene.refuses(A, &envelope, Code::InvalidStateTransition);
}

/// D8: a link that the chain has had lost a race.
#[test]
fn a_stale_link_is_told_so() {
    let mut scene = Scene::at(State::Executing);
    let texts: Vec<_> = scene.record.transcript().messages().map(str::to_owned).collect();
    let links = texts.iter().map(|text| Json::parse(text).string("integrity/previousHash"));
    for link in links.collect::<Vec<_>>() {
        for sender in [A, B] {
            let envelope = scene.next(sender, &query("qry_1")).with_text("integrity/previousHash", &link);
            scene.refuses(sender, &envelope, Code::StaleHead);
        }
    }
    scene.say(A, &query("qry_1"));
}

/// D7: a link that the chain has never had, from a participant, fails the session.
#[test]
fn a_link_that_is_none_fails_the_session() {
    for state in State::LIVE {
        for sender in [A, B] {
            let mut scene = Scene::at(state);
            let point = scene.record.transcript().point();
            let link = Digest::of(b"nothing").to_string();
            let envelope = scene.next(sender, &query("qry_1")).with_text("integrity/previousHash", &link);
            let forged = forge(&envelope, &actor(sender).keys);
            assert_eq!(scene.hear(&forged.text), Heard::Broken, "{state}");
            assert_eq!(scene.state(), State::Failed);
            assert_eq!(scene.record.session().outcome().unwrap().ending, Ending::BrokenChain);
            assert_eq!(scene.record.transcript().point(), point, "it is not on record");
            assert_eq!(scene.record.session().next_deadline(), None);
            // And nothing leaves FAILED, another broken link least of all.
            assert_eq!(scene.hear(&forged.text), Heard::Refused(Code::InvalidStateTransition));
            let envelope = scene.next(sender, &query("qry_2"));
            scene.refuses(sender, &envelope, Code::InvalidStateTransition);
        }
    }
}

/// The same link with a signature that does not hold does nothing at all.
#[test]
fn a_link_that_is_none_does_nothing_unsigned() {
    let mut scene = Scene::at(State::Conversing);
    let link = Digest::of(b"nothing").to_string();
    let envelope = scene.next(A, &query("qry_1")).with_text("integrity/previousHash", &link);
    let forged = forge(&envelope, &actor(B).keys);
    assert!(matches!(scene.hear(&forged.text), Heard::Dropped(_)));
    assert_eq!(scene.state(), State::Conversing);
}

#[test]
fn before_it_begins_no_link_fails_a_session() {
    let mut scene = Scene::new();
    let link = Digest::of(b"nothing").to_string();
    let envelope = scene.next(A, &invitation()).with_text("integrity/previousHash", &link);
    scene.refuses(A, &envelope, Code::InvalidStateTransition);
}

fn timed(scene: &mut Scene, at: UnixMillis) -> Json {
    let envelope = scene.next(A, &observe("x"));
    envelope.with_text("timestamp", &time(at).to_string())
}

/// D16: live, a timestamp is within 300 s of the clock.
#[test]
fn a_time_far_from_the_clock_is_refused() {
    let mut scene = Scene::at(State::Conversing);
    let now = scene.now + 200_000;
    for (at, lawful) in [
        (now + 300_000, true),
        (now + 300_001, false),
        (now + 86_400_000, false),
        (UnixMillis::new(253_402_300_799_000), false),
        (now - 300_001, false),
        (now - 300_000, true),
        (UnixMillis::new(0), false),
        (UnixMillis::new(-62_167_219_200_000), false),
    ] {
        scene.now = now;
        let envelope = timed(&mut scene, at);
        if lawful {
            scene.clone().takes(A, &envelope);
        } else {
            scene.refuses(A, &envelope, Code::Timeout);
        }
    }
    // Without a clock, as an auditor has none, the future is lawful as long as the session lasts.
    scene.live = false;
    let envelope = timed(&mut scene, now + 1_000_000);
    scene.takes(A, &envelope);
}

#[test]
fn a_time_long_before_the_message_that_it_follows_is_refused() {
    for live in [true, false] {
        let mut scene = Scene::at(State::Conversing);
        scene.live = live;
        let last = scene.record.transcript().point().at;
        let envelope = timed(&mut scene, last - 300_001);
        scene.now = last - 1;
        scene.refuses(A, &envelope, Code::Timeout);
        let envelope = timed(&mut scene, last - 300_000);
        scene.takes(A, &envelope);
    }
}

/// D16: always, clock or none.
#[test]
fn a_proof_is_made_when_its_message_is() {
    for live in [true, false] {
        let mut scene = Scene::at(State::Conversing);
        scene.live = live;
        let second = scene.now.seconds();
        for (iat, lawful) in [
            (second + 301, false),
            (second - 301, false),
            (0, false),
            (-1, false),
            (9_007_199_254_740_991, false),
            (second + 300, true),
            (second - 300, true),
        ] {
            let envelope = scene.next(A, &observe("x"));
            let forged = forge_with(&envelope, &BUYER.keys, &Lie { iat: Some(iat), ..Lie::default() });
            let heard = scene.hear(&forged.text);
            let wrong = asp::Misbehaviour::Proof(seal::dpop::DpopError::Claim("iat"));
            assert_eq!(heard, if lawful { Heard::Taken } else { Heard::Dropped(wrong) }, "{iat}");
        }
    }
}

/// A message that was sent after a timer ran out is too late, though nobody has woken the session.
#[test]
fn a_message_after_the_end_of_time_is_too_late() {
    let mut scene = Scene::at(State::Invited);
    scene.now += 30_000;
    let envelope = scene.next(B, &crate::support::bodies::accept("prop_inv"));
    scene.refuses(B, &envelope, Code::Timeout);
    let mut scene = Scene::at(State::Executing);
    scene.now += 3_600_000;
    let envelope = scene.next(B, &inform("result"));
    scene.refuses(B, &envelope, Code::Timeout);
}

#[test]
fn names_of_messages_may_be_of_any_time() {
    let mut scene = Scene::at(State::Conversing);
    let id = MessageId::generate(UnixMillis::new(0), &mut Dice(3)).to_string();
    let envelope = scene.next(A, &observe("x")).with_text("messageId", &id);
    scene.takes(A, &envelope);
}
