//! Every limit: values at the limit, and just beyond it.

use asp::state_machine::State;
use asp::{AspLimits, AuthenticationError, LEAVING_RESERVE_BYTES, RejectCode};

use crate::support::bodies::{close, counter, observe, propose, query, reject};
use crate::support::record_harness::{A, B, HarnessOutcome, RecordHarness};
use crate::support::test_agents::BUYER;
use crate::support::test_signer::sign_envelope;

#[test]
fn the_size_of_a_message_is_limited() {
    let mut harness = RecordHarness::at(State::Conversing);
    let envelope = harness.next(A, &query("qry_1"));
    let unpadded_length = sign_envelope(&envelope.clone().with("pad", "\"\""), &BUYER.keys).text.len();
    let padded = |bytes: usize| envelope.clone().with_text("pad", &"p".repeat(bytes - unpadded_length));
    let limit = harness.limits.max_message_bytes;
    assert_eq!(limit, 256 * 1024, "npayload's own limit");
    let signed = sign_envelope(&padded(limit + 1), &BUYER.keys);
    assert_eq!(signed.text.len(), limit + 1);
    assert_eq!(harness.receive(&signed.text), HarnessOutcome::Dropped(AuthenticationError::TooLong(limit)));
    let signed = sign_envelope(&padded(limit), &BUYER.keys);
    assert_eq!(harness.receive(&signed.text), HarnessOutcome::Accepted);
}

#[test]
fn the_number_of_open_proposals_is_limited() {
    let limits = AspLimits { max_open_proposals: 3, ..AspLimits::default() };
    let mut harness = RecordHarness::with(limits).advanced_to(State::Conversing);
    harness.send(A, &propose("prop_3"));
    for sender in [A, B] {
        let envelope = harness.next(sender, &propose("prop_4"));
        harness.assert_refused(sender, &envelope, RejectCode::CapacityUnavailable);
    }
    // A counter-proposal replaces a proposal, so the session is still at the limit. A rejection frees a slot.
    harness.send(B, &counter("prop_5", "prop_a"));
    let envelope = harness.next(B, &propose("prop_6"));
    harness.assert_refused(B, &envelope, RejectCode::CapacityUnavailable);
    harness.send(A, &reject("prop_b"));
    harness.send(B, &propose("prop_6"));
}

#[test]
fn an_expired_proposal_does_not_count_as_open() {
    let limits = AspLimits { max_open_proposals: 3, ..AspLimits::default() };
    let mut harness = RecordHarness::with(limits).advanced_to(State::Conversing);
    let valid_until = crate::support::record_harness::time(harness.now + 2000);
    let body = format!(
        r#"{{"proposalId":"prop_t","type":"x","subject":"x","terms":{{}},"validUntil":"{valid_until}"}}"#
    );
    let envelope = harness.envelope(A, "PROPOSE", &body);
    harness.assert_accepted(A, &envelope);
    harness.now += 60_000;
    harness.send(A, &propose("prop_4"));
}

#[test]
fn the_number_of_messages_is_limited() {
    let limits = AspLimits { max_messages: 8, ..AspLimits::default() };
    let mut harness = RecordHarness::with(limits).advanced_to(State::Conversing);
    harness.send(A, &observe("seven"));
    harness.send(B, &observe("eight"));
    for sender in [A, B] {
        let envelope = harness.next(sender, &observe("nine"));
        harness.assert_refused(sender, &envelope, RejectCode::CapacityUnavailable);
    }
}

#[test]
fn the_size_of_each_sides_messages_is_limited_and_each_side_can_leave() {
    let limits = AspLimits { max_session_bytes: 20_000, ..AspLimits::default() };
    let mut harness = RecordHarness::with(limits).advanced_to(State::Conversing);
    let offers = ["prop_b1", "prop_b2", "prop_b3", "prop_b4", "prop_b5"];
    for offer in offers {
        harness.send(B, &propose(offer));
    }
    let small = observe(&"x".repeat(100));
    let refused = RejectCode::CapacityUnavailable;
    while harness.record.transcript().bytes_of(A) < 17_000 {
        harness.send(A, &small);
    }
    let envelope = harness.next(A, &observe(&"x".repeat(2_000)));
    harness.assert_refused(A, &envelope, refused);
    // The other side has its own share.
    harness.send(B, &observe(&"x".repeat(2_000)));
    let room = 20_000 - harness.record.transcript().bytes_of(A);
    let length = harness.sign_next(A, &observe("x")).text.len() - 1;
    harness.send(A, &observe(&"x".repeat(room - length)));
    assert_eq!(harness.record.transcript().bytes_of(A), 20_000, "the limit itself is reached");
    for body in [small, propose("prop_a1"), query("qry_9")] {
        let envelope = harness.next(A, &body);
        harness.assert_refused(A, &envelope, refused);
    }
    // A person can still decline and leave, and messages that were accepted earlier can still be read.
    let long_reject = |harness: &mut RecordHarness, offer: &str| {
        harness.next(A, &reject(offer)).with_text("pad", &"p".repeat(250_000))
    };
    for offer in &offers[..4] {
        let envelope = long_reject(&mut harness, offer);
        harness.assert_accepted(A, &envelope);
    }
    let envelope = long_reject(&mut harness, offers[4]);
    harness.assert_refused(A, &envelope, refused);
    assert!(harness.record.transcript().bytes_of(A) <= 20_000 + LEAVING_RESERVE_BYTES);
    harness.send(A, &reject(offers[4]));
    let mut earlier = harness.clone();
    earlier.is_live = false;
    earlier.send(A, &propose("prop_a1"));
    harness.send(A, &close("done"));
}

#[test]
fn the_number_of_remembered_proofs_is_limited() {
    let limits = AspLimits { max_remembered_proofs: 8, ..AspLimits::default() };
    let mut harness = RecordHarness::with(limits).advanced_to(State::Conversing);
    harness.send(A, &observe("seven"));
    harness.send(B, &observe("eight"));
    let envelope = harness.next(A, &observe("nine"));
    harness.assert_refused(A, &envelope, RejectCode::CapacityUnavailable);
    // Proofs are not forgotten early, even if the memory is full.
    harness.now += 590_000;
    let envelope = harness.next(A, &observe("nine"));
    harness.assert_refused(A, &envelope, RejectCode::CapacityUnavailable);
    harness.now += 12_000;
    harness.send(A, &observe("nine"));
}
