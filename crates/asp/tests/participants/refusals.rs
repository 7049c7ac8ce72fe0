//! Refusals do not pass through the state machine (D6).

use asp::state_machine::State;
use asp::{ReceiveOutcome, RejectCode};
use proptest::prelude::*;

use super::participant_pair::{A, B, ParticipantPair};
use crate::support::bodies::{accept, close, commit, observe, propose, query};
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{RecordHarness, agent_for};
use crate::support::test_agents::{BUYER, SELLER};
use crate::support::test_signer::sign_envelope;
use testing::property::cases;

/// Creates a correctly signed message directly, bypassing the sender's participant, which might refuse to send it. The message
/// has the current head and sequence number.
fn message_bypassing_participant(
    pair: &mut ParticipantPair,
    sender: asp::state_machine::Role,
    performative: &str,
    body: &str,
) -> String {
    let (_, position) = pair.snapshot(sender);
    let mut harness = RecordHarness::new();
    harness.now = pair.now;
    harness.random.0 = pair.random.0 + 1_000_000;
    pair.random.0 += 10;
    let session = pair.side(sender).record().unwrap().session_id();
    let envelope = harness
        .envelope(sender, performative, body)
        .with_text("sessionId", &session.to_string())
        .with("sequenceNumber", &position.next_sequence_numbers[usize::from(sender == B)].to_string())
        .with_text("integrity/previousHash", &position.head.to_string());
    sign_envelope(&envelope, &agent_for(sender).keys).text
}

#[test]
fn a_reject_is_not_recorded_and_uses_no_sequence_number() {
    let mut pair = ParticipantPair::introduced();
    let disallowed = message_bypassing_participant(&mut pair, A, "ACCEPT", r#"{"referenceId":"prop_inv"}"#);
    let before = pair.snapshot(B);
    let (refusal, reject) = pair.deliver_refused(B, &disallowed);
    assert_eq!(refusal.code, RejectCode::InvalidStateTransition);
    let json = EditableJson::parse(&reject);
    let (_, position) = before.clone();
    assert_eq!(json.string("performative"), "REJECT");
    assert_eq!(
        json.get("sequenceNumber"),
        Some(&EditableJson::Leaf(position.next_sequence_numbers[1].to_string()))
    );
    assert_eq!(
        json.string("integrity/previousHash"),
        position.head.to_string(),
        "the head that the refusing side sees"
    );
    assert_eq!(json.string("content/body/referenceId"), EditableJson::parse(&disallowed).string("messageId"));
    assert_eq!(json.string("content/body/code"), "invalid_state_transition");
    assert_eq!(json.string("sender/agentId"), SELLER.agent().as_str());
    assert_eq!(json.string("recipient"), BUYER.agent().as_str());
    assert_eq!(pair.snapshot(B), before);
    // The other participant did not send the refused message, so it rolls nothing back.
    pair.deliver_ignored(A, &reject);
    // The next message uses the sequence number that the REJECT carried.
    let text = pair.send_and_deliver(B, query("qry_1"));
    assert_eq!(
        EditableJson::parse(&text).get("sequenceNumber"),
        Some(&EditableJson::Leaf(position.next_sequence_numbers[1].to_string()))
    );
}

#[test]
fn a_refused_message_is_rolled_back_and_may_be_sent_again() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(A, commit("cmt_1"));
    let before = pair.snapshot(B);
    let first = pair.send(B, accept("cmt_1"));
    assert_ne!(pair.snapshot(B), before);
    pair.checks.is_funded = false;
    let (_, reject) = pair.deliver_refused(A, &first);
    let (refusal, messages) = pair.deliver_rollback(B, &reject);
    assert_eq!(refusal.message_id.unwrap().to_string(), EditableJson::parse(&first).string("messageId"));
    assert_eq!(messages, [accept("cmt_1")]);
    assert_eq!(pair.snapshot(B), before, "as if it had never been sent");
    pair.checks.is_funded = true;
    let again = pair.send_and_deliver(B, accept("cmt_1"));
    assert_eq!(
        EditableJson::parse(&again).get("sequenceNumber"),
        EditableJson::parse(&first).get("sequenceNumber"),
        "the sequence number was not used"
    );
}

/// Messages after the refused one are rolled back with it; earlier ones stay.
#[test]
fn messages_after_a_refused_one_are_rolled_back_with_it() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(A, commit("cmt_1"));
    let first = pair.send(
        B,
        crate::support::bodies::body(
            asp::Performative::Clarify,
            r#"{"inReplyTo":"cmt_1","question":"when?"}"#,
        ),
    );
    let second = pair.send(B, accept("cmt_1"));
    let third = pair.send(B, query("qry_1"));
    pair.deliver_accepted(A, &first);
    pair.checks.is_funded = false;
    let (_, reject) = pair.deliver_refused(A, &second);
    let (_, messages) = pair.deliver_rollback(B, &reject);
    assert_eq!(messages, [accept("cmt_1"), query("qry_1")]);
    pair.assert_agreement();
    // The third message is still in transit. It is refused as stale, and the session stays alive.
    let (refusal, reject) = pair.deliver_refused(A, &third);
    assert_eq!(refusal.code, RejectCode::StaleHead);
    pair.deliver_ignored(B, &reject);
    pair.assert_agreement();
    pair.send_and_deliver(B, crate::support::bodies::reject("cmt_1"));
}

/// A refused message stays refused. Its sender has rolled it back, so a later copy must not be accepted.
#[test]
fn a_copy_of_a_refused_message_is_refused_too() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(A, commit("cmt_1"));
    let text = pair.send(B, accept("cmt_1"));
    pair.checks.is_funded = false;
    let (_, reject) = pair.deliver_refused(A, &text);
    pair.deliver_rollback(B, &reject);
    pair.checks.is_funded = true;
    let (_, reject) = pair.deliver_refused(A, &text);
    pair.deliver_ignored(B, &reject);
    pair.assert_agreement();
    pair.send_and_deliver(B, accept("cmt_1"));
}

/// A duplicate of a recorded message gets no REJECT, because the REJECT would make the sender roll the original back.
#[test]
fn a_duplicate_message_rolls_nothing_back() {
    let mut pair = ParticipantPair::conversing();
    let text = pair.send(A, propose("prop_1"));
    pair.deliver_accepted(B, &text);
    match pair.deliver(B, &text) {
        ReceiveOutcome::Refused { refusal, reject: None } => assert_eq!(refusal.code, RejectCode::Duplicate),
        other => panic!("{other:?}"),
    }
    pair.assert_agreement();
    pair.send_and_deliver(B, accept("prop_1"));
}

#[test]
fn a_reject_is_never_answered_with_a_reject() {
    let mut pair = ParticipantPair::introduced();
    let disallowed = message_bypassing_participant(&mut pair, A, "ACCEPT", r#"{"referenceId":"prop_inv"}"#);
    let (_, reject) = pair.deliver_refused(B, &disallowed);
    // The REJECT is delivered to its recipient several times, and back to its sender.
    for _ in 0..3 {
        pair.deliver_ignored(A, &reject);
    }
    let outcome = pair.deliver(B, &reject);
    let is_answered = matches!(&outcome, ReceiveOutcome::Refused { reject: Some(_), .. });
    assert!(!is_answered, "a returned REJECT must not be answered: {outcome:?}");
    // A REJECT is also not answered after the session has ended, or if it names a message that never existed.
    pair.send_and_deliver(A, close("enough"));
    pair.deliver_ignored(A, &reject);
    let unknown_reference = message_bypassing_participant(
        &mut pair,
        B,
        "REJECT",
        r#"{"code":"unspecified","reason":"no","referenceId":"01890a5d-ac96-774b-bcce-b302099a8057"}"#,
    );
    pair.deliver_ignored(A, &unknown_reference);
}

/// Our own message is not answered if the network returns it to us.
#[test]
fn our_own_message_is_not_answered() {
    let mut pair = ParticipantPair::conversing();
    let text = pair.send(A, observe("x"));
    let before = pair.snapshot(A);
    let outcome = pair.deliver(A, &text);
    assert!(
        matches!(outcome, ReceiveOutcome::Refused { reject: None, .. } | ReceiveOutcome::Dropped(_)),
        "{outcome:?}"
    );
    assert_eq!(pair.snapshot(A), before);
    pair.deliver_accepted(B, &text);
}

#[test]
fn a_reject_of_a_settled_message_is_ignored() {
    let mut pair = ParticipantPair::conversing();
    let text = pair.send_and_deliver(A, observe("x"));
    pair.send_and_deliver(B, observe("received"));
    let id = EditableJson::parse(&text).string("messageId");
    let body = format!(r#"{{"code":"unspecified","reason":"no","referenceId":"{id}"}}"#);
    let late_reject = message_bypassing_participant(&mut pair, B, "REJECT", &body);
    pair.deliver_ignored(A, &late_reject);
}

#[test]
fn an_unknown_reject_code_is_read_as_unspecified() {
    let mut pair = ParticipantPair::conversing();
    let text = pair.send(A, observe("x"));
    let id = EditableJson::parse(&text).string("messageId");
    let body = format!(r#"{{"code":"bad_mood","reason":"no","referenceId":"{id}"}}"#);
    let reject = message_bypassing_participant(&mut pair, B, "REJECT", &body);
    let (refusal, messages) = pair.deliver_rollback(A, &reject);
    assert_eq!((refusal.code, messages.len()), (RejectCode::Unspecified, 1));
    pair.assert_agreement();
}

/// If a REJECT arrives after the session has timed out, the rollback undoes the timeout. The next timeout call ends the
/// session again.
#[test]
fn a_session_times_out_again_after_a_late_reject() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(A, commit("cmt_1"));
    let deadline = pair.snapshot(A).0.next_deadline().unwrap();
    pair.now = deadline - 1;
    let text = pair.send(B, accept("cmt_1"));
    pair.checks.is_funded = false;
    let (_, reject) = pair.deliver_refused(A, &text);
    for role in [A, B] {
        pair.side(role).handle_timeout(deadline);
    }
    assert_eq!(pair.states(), [State::Failed; 2]);
    pair.deliver_rollback(B, &reject);
    pair.side(B).handle_timeout(deadline);
    pair.assert_agreement();
    assert_eq!(pair.states(), [State::Failed; 2]);
}

proptest! {
    #![proptest_config(cases(12))]

    /// In any state, a refused message causes at most two further messages.
    #[test]
    fn every_exchange_of_refusals_ends(attempts in proptest::collection::vec((any::<bool>(), 0..13_usize, 0..4_usize), 1..10)) {
        let mut pair = ParticipantPair::introduced();
        for (is_from_a, performative, advance) in attempts {
            let sender = if is_from_a { A } else { B };
            let performative = asp::Performative::ALL[performative];
            let body = crate::support::bodies::full_body(performative);
            let text = message_bypassing_participant(&mut pair, sender, performative.as_str(), body);
            let before = [pair.snapshot(A), pair.snapshot(B)];
            let outcome = pair.deliver(sender.other(), &text);
            match outcome {
                // The message was allowed after all. The sender's participant did not send it, so the two sides now differ.
                ReceiveOutcome::Accepted { .. } => break,
                ReceiveOutcome::Refused { reject, .. } => {
                    prop_assert_eq!([pair.snapshot(A), pair.snapshot(B)], before);
                    let mut in_flight: Vec<_> = reject.into_iter().map(|text| (sender, text)).collect();
                    let mut delivered_count = 0;
                    while let Some((to, text)) = in_flight.pop() {
                        delivered_count += 1;
                        prop_assert!(delivered_count < 3);
                        let outcome = pair.deliver(to, &text);
                        if let ReceiveOutcome::Refused { reject: Some(reject), .. } = outcome {
                            in_flight.push((to.other(), reject));
                        }
                    }
                    pair.assert_agreement();
                }
                ReceiveOutcome::Ignored => {}
                other => prop_assert!(false, "{other:?}"),
            }
            match advance {
                0 if pair.states() == [State::Introduced; 2] => { pair.send_and_deliver(A, query("qry_0")); }
                1 if pair.states() == [State::Conversing; 2] => { pair.send_and_deliver(A, commit("cmt_7")); }
                2 if pair.states() == [State::Agreeing; 2] => { pair.send_and_deliver(B, accept("cmt_7")); }
                _ => {}
            }
        }
    }
}

#[test]
fn a_message_that_the_transport_confirms_is_settled() {
    let mut pair = ParticipantPair::conversing();
    let first = pair.try_send(A, query("qry_1")).unwrap().message_id;
    let second = pair.try_send(A, query("qry_2")).unwrap().message_id;
    assert!(!pair.side(A).is_settled(first) && !pair.side(A).is_settled(second));
    pair.side(A).settle(first);
    assert!(pair.side(A).is_settled(first) && !pair.side(A).is_settled(second));
}
