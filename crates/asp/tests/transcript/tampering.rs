//! Changing, dropping, doubling or swapping any message of a transcript is noticed (property 7).

use asp::machine::State;
use asp::message::Sealed;
use asp::session::Judgement;
use asp::{Admission, Record};

use crate::support::bodies::{close, inform};
use crate::support::forge::forge;
use crate::support::json::Json;
use crate::support::scene::{A, B, Scene, actor};
use crate::transcript::lawful::fresh;

/// A whole session, signed; and its messages as an auditor opens them.
fn audited() -> (Record, Vec<Sealed>) {
    let mut scene = Scene::at(State::Executing);
    scene.say(B, &inform("progress"));
    scene.say(B, &inform("result"));
    scene.say(A, &close("done"));
    scene.say(B, &close("done"));
    let texts: Vec<_> = scene.record.transcript().messages().map(str::to_owned).collect();
    let messages = texts.iter().map(|text| scene.open(text).unwrap()).collect();
    (scene.record, messages)
}

/// How many messages an auditor takes before something is wrong, and the record that he has then.
fn audit<'m>(messages: impl IntoIterator<Item = &'m Sealed>) -> (usize, bool, Record) {
    let mut record = fresh();
    for (index, message) in messages.into_iter().enumerate() {
        if !matches!(record.admit(message, Judgement::default(), None), Admission::Taken(_)) {
            return (index, false, record);
        }
    }
    (record.transcript().len(), true, record)
}

#[test]
fn the_whole_is_right_from_any_point() {
    let (record, messages) = audited();
    let (taken, fine, audited) = audit(&messages);
    assert!(fine);
    assert_eq!(taken, messages.len());
    assert_eq!(audited.session(), record.session());
    assert_eq!(audited.session().state(), State::Closed);
    for index in 0..=messages.len() {
        let (_, _, before) = audit(&messages[..index]);
        let mut resumed = fresh().resumed(before.checkpoint());
        for message in &messages[index..] {
            let admission = resumed.admit(message, Judgement::default(), None);
            assert!(matches!(admission, Admission::Taken(_)), "{admission:?}");
        }
        assert_eq!(resumed.session(), record.session());
        let (resumed, whole) = (resumed.transcript(), record.transcript());
        assert_eq!(resumed.point(), whole.point());
        for number in 0..messages.len() {
            assert_eq!(resumed.proof(number), whole.proof(number).filter(|_| number >= index));
        }
    }
}

#[test]
fn what_is_dropped_doubled_or_swapped_is_noticed() {
    let (_, messages) = audited();
    for index in 0..messages.len() {
        let mut dropped = messages.clone();
        dropped.remove(index);
        let (_, fine, record) = audit(&dropped);
        if index + 1 == messages.len() {
            assert!(fine && !record.session().state().is_terminal(), "a session that is still open");
        } else {
            assert!(!fine, "without message {index}");
        }
        let mut doubled = messages.clone();
        doubled.insert(index, messages[index].clone());
        assert!(!audit(&doubled).1, "message {index} twice");
        for other in index + 1..messages.len() {
            let mut swapped = messages.clone();
            swapped.swap(index, other);
            assert!(!audit(&swapped).1, "messages {index} and {other} swapped");
        }
    }
}

/// By somebody without the keys: the message does not authenticate.
#[test]
fn what_is_changed_is_noticed() {
    let mut scene = Scene::at(State::Introduced);
    let texts: Vec<_> = scene.record.transcript().messages().map(str::to_owned).collect();
    for text in &texts {
        // Every seventh character: every member is met, whatever its length.
        for (at, old) in text.char_indices().step_by(7) {
            let new = if old == '1' { '2' } else { '1' };
            let mut changed = text.clone();
            changed.replace_range(at..at + old.len_utf8(), &new.to_string());
            assert!(scene.open(&changed).is_err(), "{changed}");
        }
    }
}

/// By the one who signed it: every later message, also the other side's, links to what it was.
#[test]
fn what_its_sender_changes_later_is_noticed() {
    let (_, messages) = audited();
    let mut scene = Scene::new();
    for (index, message) in messages.iter().enumerate() {
        let sender = if message.envelope.sender.agent_id == *actor(A).agent() { A } else { B };
        let json = Json::parse(&message.text).with("afterthought", "true");
        let again = scene.open(&forge(&json, &actor(sender).keys).text).unwrap();
        let mut changed = messages.clone();
        changed[index] = again;
        let (taken, fine, _) = audit(&changed);
        if index + 1 == messages.len() {
            assert!(fine, "nothing follows it: only who knows the head can tell");
        } else {
            assert_eq!((taken, fine), (index + 1, false));
        }
    }
}
