//! Changing, dropping, duplicating or swapping a message of a transcript is detected (invariant 7). The last message is an
//! exception: if it is dropped, or if its sender changes it, the transcript is still valid.

use asp::message::AuthenticatedMessage;
use asp::session::ReceiverChecks;
use asp::state_machine::State;
use asp::{Admission, SessionRecord};

use crate::support::bodies::{close, inform};
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, B, RecordHarness, agent_for};
use crate::support::test_signer::sign_envelope;
use crate::transcript::random_sessions::new_record;

/// Returns a complete signed session, and its messages as an auditor authenticates them.
fn completed_session() -> (SessionRecord, Vec<AuthenticatedMessage>) {
    let mut harness = RecordHarness::at(State::Executing);
    harness.send(B, &inform("progress"));
    harness.send(B, &inform("result"));
    harness.send(A, &close("done"));
    harness.send(B, &close("done"));
    let texts: Vec<_> = harness.record.transcript().messages().map(str::to_owned).collect();
    let messages = texts.iter().map(|text| harness.authenticate(text).unwrap()).collect();
    (harness.record, messages)
}

/// Returns how many messages an auditor accepts, whether all were accepted, and the resulting record.
fn audit<'m>(messages: impl IntoIterator<Item = &'m AuthenticatedMessage>) -> (usize, bool, SessionRecord) {
    let mut record = new_record();
    for (index, message) in messages.into_iter().enumerate() {
        if !matches!(record.admit(message, ReceiverChecks::PASSED, None), Admission::Accepted(_)) {
            return (index, false, record);
        }
    }
    (record.transcript().len(), true, record)
}

#[test]
fn a_complete_transcript_verifies_from_any_checkpoint() {
    let (record, messages) = completed_session();
    let (accepted_count, is_valid, audited) = audit(&messages);
    assert!(is_valid);
    assert_eq!(accepted_count, messages.len());
    assert_eq!(audited.session(), record.session());
    assert_eq!(audited.session().state(), State::Closed);
    for index in 0..=messages.len() {
        let (_, _, before) = audit(&messages[..index]);
        let mut resumed = new_record().resume_from(before.checkpoint());
        for message in &messages[index..] {
            let admission = resumed.admit(message, ReceiverChecks::PASSED, None);
            assert!(matches!(admission, Admission::Accepted(_)), "{admission:?}");
        }
        assert_eq!(resumed.session(), record.session());
        let (resumed, complete) = (resumed.transcript(), record.transcript());
        assert_eq!(resumed.position(), complete.position());
        for number in 0..messages.len() {
            assert_eq!(
                resumed.inclusion_proof(number),
                complete.inclusion_proof(number).filter(|_| number >= index)
            );
        }
    }
}

#[test]
fn dropped_duplicated_and_swapped_messages_are_detected() {
    let (_, messages) = completed_session();
    for index in 0..messages.len() {
        let mut dropped = messages.clone();
        dropped.remove(index);
        let (_, is_valid, record) = audit(&dropped);
        if index + 1 == messages.len() {
            assert!(is_valid && !record.session().state().is_terminal(), "the session is still open");
        } else {
            assert!(!is_valid, "without message {index}");
        }
        let mut duplicated = messages.clone();
        duplicated.insert(index, messages[index].clone());
        assert!(!audit(&duplicated).1, "message {index} twice");
        for other in index + 1..messages.len() {
            let mut swapped = messages.clone();
            swapped.swap(index, other);
            assert!(!audit(&swapped).1, "messages {index} and {other} swapped");
        }
    }
}

/// If someone without the keys changes a message, authentication fails.
#[test]
fn a_changed_message_does_not_authenticate() {
    let mut harness = RecordHarness::at(State::Introduced);
    let texts: Vec<_> = harness.record.transcript().messages().map(str::to_owned).collect();
    for text in &texts {
        // Every member is longer than seven characters, so each one is changed at least once.
        for (offset, old) in text.char_indices().step_by(7) {
            let new = if old == '1' { '2' } else { '1' };
            let mut changed = text.clone();
            changed.replace_range(offset..offset + old.len_utf8(), &new.to_string());
            assert!(harness.authenticate(&changed).is_err(), "{changed}");
        }
    }
}

/// If the sender changes an earlier message and signs it again, this is detected, because the next message links to the
/// original.
#[test]
fn a_later_change_by_the_sender_is_detected() {
    let (_, messages) = completed_session();
    let mut harness = RecordHarness::new();
    for (index, message) in messages.iter().enumerate() {
        let sender = if message.envelope.sender.agent_id == *agent_for(A).agent() { A } else { B };
        let json = EditableJson::parse(&message.text).with("afterthought", "true");
        let signed_again = harness.authenticate(&sign_envelope(&json, &agent_for(sender).keys).text).unwrap();
        let mut changed = messages.clone();
        changed[index] = signed_again;
        let (accepted_count, is_valid, _) = audit(&changed);
        if index + 1 == messages.len() {
            assert!(is_valid, "no later message links to it, so only a known head would reveal the change");
        } else {
            assert_eq!((accepted_count, is_valid), (index + 1, false));
        }
    }
}
