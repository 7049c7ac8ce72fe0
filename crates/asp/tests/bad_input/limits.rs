//! Every limit: at it, and just beyond.

use asp::machine::State;
use asp::{Code, Limits, Misbehaviour};

use crate::support::bodies::{counter, observe, propose, query, reject};
use crate::support::cast::BUYER;
use crate::support::forge::forge;
use crate::support::scene::{A, B, Heard, Scene};

#[test]
fn bytes_of_a_message() {
    let mut scene = Scene::at(State::Conversing);
    let envelope = scene.next(A, &query("qry_1"));
    let least = forge(&envelope.clone().with("pad", "\"\""), &BUYER.keys).text.len();
    let padded = |bytes: usize| envelope.clone().with_text("pad", &"p".repeat(bytes - least));
    let limit = scene.limits.message_bytes;
    assert_eq!(limit, 256 * 1024, "npayload's own");
    let forged = forge(&padded(limit + 1), &BUYER.keys);
    assert_eq!(forged.text.len(), limit + 1);
    assert_eq!(scene.hear(&forged.text), Heard::Dropped(Misbehaviour::TooLong(limit)));
    let forged = forge(&padded(limit), &BUYER.keys);
    assert_eq!(scene.hear(&forged.text), Heard::Taken);
}

#[test]
fn open_proposals() {
    let limits = Limits { open_proposals: 3, ..Limits::default() };
    let mut scene = Scene::with(limits).brought_to(State::Conversing);
    scene.say(A, &propose("prop_3"));
    for sender in [A, B] {
        let envelope = scene.next(sender, &propose("prop_4"));
        scene.refuses(sender, &envelope, Code::CapacityUnavailable);
    }
    // One for another is lawful, and one less makes room.
    scene.say(B, &counter("prop_5", "prop_a"));
    let envelope = scene.next(B, &propose("prop_6"));
    scene.refuses(B, &envelope, Code::CapacityUnavailable);
    scene.say(A, &reject("prop_b"));
    scene.say(B, &propose("prop_6"));
}

#[test]
fn a_proposal_that_has_run_out_takes_no_room() {
    let limits = Limits { open_proposals: 3, ..Limits::default() };
    let mut scene = Scene::with(limits).brought_to(State::Conversing);
    let until = crate::support::scene::time(scene.now + 2000);
    let body =
        format!(r#"{{"proposalId":"prop_t","type":"x","subject":"x","terms":{{}},"validUntil":"{until}"}}"#);
    let envelope = scene.envelope(A, "PROPOSE", &body);
    scene.takes(A, &envelope);
    scene.now += 60_000;
    scene.say(A, &propose("prop_4"));
}

#[test]
fn messages_of_a_session() {
    let limits = Limits { messages: 8, ..Limits::default() };
    let mut scene = Scene::with(limits).brought_to(State::Conversing);
    scene.say(A, &observe("seven"));
    scene.say(B, &observe("eight"));
    for sender in [A, B] {
        let envelope = scene.next(sender, &observe("nine"));
        scene.refuses(sender, &envelope, Code::CapacityUnavailable);
    }
}

#[test]
fn proofs_that_are_remembered() {
    let limits = Limits { proofs: 8, ..Limits::default() };
    let mut scene = Scene::with(limits).brought_to(State::Conversing);
    scene.say(A, &observe("seven"));
    scene.say(B, &observe("eight"));
    let envelope = scene.next(A, &observe("nine"));
    scene.refuses(A, &envelope, Code::CapacityUnavailable);
    // None is forgotten to make room, before its time.
    scene.now += 590_000;
    let envelope = scene.next(A, &observe("nine"));
    scene.refuses(A, &envelope, Code::CapacityUnavailable);
    scene.now += 12_000;
    scene.say(A, &observe("nine"));
}
