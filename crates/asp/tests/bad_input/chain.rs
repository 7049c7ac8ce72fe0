//! Sequence numbers, chain links, timestamps and session ids.

use asp::session::SessionEnding;
use asp::state_machine::State;
use asp::{MessageId, RejectCode, SessionId};
use seal::{Digest, UnixMillis};

use crate::support::bodies::{inform, invitation, observe, query};
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, B, HarnessOutcome, RecordHarness, START, agent_for, time};
use crate::support::test_agents::{BUYER, CountingRandom};
use crate::support::test_signer::{SigningOverrides, sign_envelope, sign_with};

fn with_number(envelope: EditableJson, number: u64) -> EditableJson {
    envelope.with("sequenceNumber", &number.to_string())
}

#[test]
fn a_gap_in_the_sequence_numbers_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    for ahead in [1, 2, 1000, (1 << 53) - 4] {
        let next = harness.record.transcript().next_sequence_number(A);
        let envelope = with_number(harness.next(A, &query("qry_1")), next + ahead);
        harness.assert_refused(A, &envelope, RejectCode::InvalidStateTransition);
    }
}

#[test]
fn a_repeated_sequence_number_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    for sender in [A, B] {
        for used in 0..harness.record.transcript().next_sequence_number(sender) {
            let envelope = with_number(harness.next(sender, &query("qry_1")), used);
            harness.assert_refused(sender, &envelope, RejectCode::Duplicate);
        }
    }
}

/// Each sender counts its own messages, so the other side's next number is refused.
#[test]
fn sequence_numbers_are_counted_per_sender() {
    let mut harness = RecordHarness::at(State::Conversing);
    harness.send(A, &observe("one"));
    harness.send(A, &observe("two"));
    let [a, b] = [A, B].map(|role| harness.record.transcript().next_sequence_number(role));
    assert_ne!(a, b);
    let envelope = with_number(harness.next(B, &query("qry_1")), a);
    harness.assert_refused(B, &envelope, RejectCode::InvalidStateTransition);
}

#[test]
fn the_first_sequence_number_is_zero() {
    let mut harness = RecordHarness::new();
    let envelope = with_number(harness.next(A, &invitation()), 1);
    harness.assert_refused(A, &envelope, RejectCode::InvalidStateTransition);
}

#[test]
fn a_repeated_message_is_a_duplicate() {
    let mut harness = RecordHarness::at(State::Introduced);
    let signed = harness.sign_next(A, &query("qry_1"));
    assert_eq!(harness.receive(&signed.text), HarnessOutcome::Accepted);
    assert_eq!(harness.receive(&signed.text), HarnessOutcome::Refused(RejectCode::Duplicate));
    // Another message with the same id is a duplicate too.
    let id = EditableJson::parse(&signed.text).string("messageId");
    let envelope = harness.next(A, &observe("x")).with_text("messageId", &id);
    harness.assert_refused(A, &envelope, RejectCode::Duplicate);
    let envelope = harness.next(B, &observe("x")).with_text("messageId", &id.to_uppercase());
    harness.assert_refused(B, &envelope, RejectCode::Duplicate);
}

#[test]
fn a_message_from_another_session_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    let other = SessionId::generate(START, &mut CountingRandom(77)).to_string();
    let envelope = harness.next(A, &query("qry_1")).with_text("sessionId", &other);
    harness.assert_refused(A, &envelope, RejectCode::InvalidStateTransition);
    // Such a message does not fail this session, even if its link is unknown.
    let envelope = envelope.with_text("integrity/previousHash", &Digest::of(b"other").to_string());
    harness.assert_refused(A, &envelope, RejectCode::InvalidStateTransition);
}

/// D8: a message that links to an earlier hash of the chain has lost a race.
#[test]
fn a_stale_link_is_refused_as_stale() {
    let mut harness = RecordHarness::at(State::Executing);
    let texts: Vec<_> = harness.record.transcript().messages().map(str::to_owned).collect();
    let links = texts.iter().map(|text| EditableJson::parse(text).string("integrity/previousHash"));
    for link in links.collect::<Vec<_>>() {
        for sender in [A, B] {
            let envelope = harness.next(sender, &query("qry_1")).with_text("integrity/previousHash", &link);
            harness.assert_refused(sender, &envelope, RejectCode::StaleHead);
        }
    }
    harness.send(A, &query("qry_1"));
}

/// D7: a participant's message that links to an unknown hash fails the session.
#[test]
fn an_unknown_link_fails_the_session() {
    for state in State::LIVE {
        for sender in [A, B] {
            let mut harness = RecordHarness::at(state);
            let position = harness.record.transcript().position();
            let link = Digest::of(b"nothing").to_string();
            let envelope = harness.next(sender, &query("qry_1")).with_text("integrity/previousHash", &link);
            let signed = sign_envelope(&envelope, &agent_for(sender).keys);
            assert_eq!(harness.receive(&signed.text), HarnessOutcome::ChainBroken, "{state}");
            assert_eq!(harness.state(), State::Failed);
            assert_eq!(harness.record.session().outcome().unwrap().ending, SessionEnding::BrokenChain);
            assert_eq!(harness.record.transcript().position(), position, "the message is not recorded");
            assert_eq!(harness.record.session().next_deadline(), None);
            // FAILED is final, even for another broken link.
            assert_eq!(
                harness.receive(&signed.text),
                HarnessOutcome::Refused(RejectCode::InvalidStateTransition)
            );
            let envelope = harness.next(sender, &query("qry_2"));
            harness.assert_refused(sender, &envelope, RejectCode::InvalidStateTransition);
        }
    }
}

#[test]
fn an_unknown_link_without_a_valid_signature_has_no_effect() {
    let mut harness = RecordHarness::at(State::Conversing);
    let link = Digest::of(b"nothing").to_string();
    let envelope = harness.next(A, &query("qry_1")).with_text("integrity/previousHash", &link);
    let signed = sign_envelope(&envelope, &agent_for(B).keys);
    assert!(matches!(harness.receive(&signed.text), HarnessOutcome::Dropped(_)));
    assert_eq!(harness.state(), State::Conversing);
}

#[test]
fn an_unknown_link_does_not_fail_a_session_that_has_not_begun() {
    let mut harness = RecordHarness::new();
    let link = Digest::of(b"nothing").to_string();
    let envelope = harness.next(A, &invitation()).with_text("integrity/previousHash", &link);
    harness.assert_refused(A, &envelope, RejectCode::InvalidStateTransition);
}

fn message_at(harness: &mut RecordHarness, at: UnixMillis) -> EditableJson {
    let envelope = harness.next(A, &observe("x"));
    envelope.with_text("timestamp", &time(at).to_string())
}

/// D16: on live receipt, a timestamp must be within 300 s of the clock.
#[test]
fn a_timestamp_far_from_the_clock_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    let now = harness.now + 200_000;
    for (at, is_accepted) in [
        (now + 300_000, true),
        (now + 300_001, false),
        (now + 86_400_000, false),
        (UnixMillis::new(253_402_300_799_000), false),
        (now - 300_001, false),
        (now - 300_000, true),
        (UnixMillis::new(0), false),
        (UnixMillis::new(-62_167_219_200_000), false),
    ] {
        harness.now = now;
        let envelope = message_at(&mut harness, at);
        if is_accepted {
            harness.clone().assert_accepted(A, &envelope);
        } else {
            harness.assert_refused(A, &envelope, RejectCode::Timeout);
        }
    }
    // Without a clock, as in an audit, future timestamps are accepted within the session's duration.
    harness.is_live = false;
    let envelope = message_at(&mut harness, now + 1_000_000);
    harness.assert_accepted(A, &envelope);
}

#[test]
fn a_timestamp_long_before_the_previous_message_is_refused() {
    for is_live in [true, false] {
        let mut harness = RecordHarness::at(State::Conversing);
        harness.is_live = is_live;
        let last = harness.record.transcript().position().last_sent_at;
        let envelope = message_at(&mut harness, last - 300_001);
        harness.now = last - 1;
        harness.assert_refused(A, &envelope, RejectCode::Timeout);
        let envelope = message_at(&mut harness, last - 300_000);
        harness.assert_accepted(A, &envelope);
    }
}

/// D16: this check applies with and without a clock.
#[test]
fn a_proof_must_be_made_within_300_seconds_of_its_message() {
    for is_live in [true, false] {
        let mut harness = RecordHarness::at(State::Conversing);
        harness.is_live = is_live;
        let second = harness.now.seconds();
        for (iat, is_accepted) in [
            (second + 301, false),
            (second - 301, false),
            (0, false),
            (-1, false),
            (9_007_199_254_740_991, false),
            (second + 300, true),
            (second - 300, true),
        ] {
            let envelope = harness.next(A, &observe("x"));
            let signed = sign_with(
                &envelope,
                &BUYER.keys,
                &SigningOverrides { iat: Some(iat), ..SigningOverrides::default() },
            );
            let outcome = harness.receive(&signed.text);
            let error = asp::AuthenticationError::InvalidProof(seal::dpop::DpopError::InvalidClaim("iat"));
            assert_eq!(
                outcome,
                if is_accepted { HarnessOutcome::Accepted } else { HarnessOutcome::Dropped(error) },
                "{iat}"
            );
        }
    }
}

/// A message that was sent after a timer expired is too late, even if the timeout was not handled yet.
#[test]
fn a_message_after_the_deadline_is_refused() {
    let mut harness = RecordHarness::at(State::Invited);
    harness.now += 30_000;
    let envelope = harness.next(B, &crate::support::bodies::accept("prop_inv"));
    harness.assert_refused(B, &envelope, RejectCode::Timeout);
    let mut harness = RecordHarness::at(State::Executing);
    harness.now += 3_600_000;
    let envelope = harness.next(B, &inform("result"));
    harness.assert_refused(B, &envelope, RejectCode::Timeout);
}

#[test]
fn message_ids_may_contain_any_time() {
    let mut harness = RecordHarness::at(State::Conversing);
    let id = MessageId::generate(UnixMillis::new(0), &mut CountingRandom(3)).to_string();
    let envelope = harness.next(A, &observe("x")).with_text("messageId", &id);
    harness.assert_accepted(A, &envelope);
}
