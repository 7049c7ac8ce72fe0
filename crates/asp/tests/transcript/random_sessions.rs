//! Random sessions: either side attempts any message, and the accepted ones form the session.

use asp::message::{AuthenticatedMessage, Body};
use asp::session::{ReceiverChecks, SessionRules};
use asp::state_machine::{Role, State};
use asp::{Admission, AspLimits, SessionId, SessionRecord};
use proptest::prelude::*;

use crate::support::bodies::{
    accept, body, close, commit, counter, escalate, full_body, inform, invitation, observe, propose, query,
    reject, withdraw,
};
use crate::support::record_harness::{A, B, RecordHarness, START, with_dummy_signature};
use crate::support::test_agents::{BUYER, CountingRandom, SELLER};

/// An attempt to send a message after a delay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendAttempt {
    is_from_inviter: bool,
    /// Selects the kind of message.
    choice: u8,
    /// Selects the item that the message refers to.
    reference: u8,
    delay_ms: i64,
}

pub(crate) fn attempts(max_attempts: usize) -> impl Strategy<Value = Vec<SendAttempt>> {
    let delay_ms = prop_oneof![20 => 0..2000_i64, 1 => 10_000..40_000_i64, 1 => 1_000_000..2_000_000_i64];
    let attempt = (any::<bool>(), any::<u8>(), any::<u8>(), delay_ms).prop_map(
        |(is_from_inviter, choice, reference, delay_ms)| SendAttempt {
            is_from_inviter,
            choice,
            reference,
            delay_ms,
        },
    );
    proptest::collection::vec(attempt, 1..=max_attempts)
}

/// Creates an empty record.
pub(crate) fn new_record() -> SessionRecord {
    let id = SessionId::generate(START, &mut CountingRandom(0));
    SessionRecord::new(
        id,
        BUYER.card.clone(),
        SELLER.card.clone(),
        SessionRules::default(),
        &AspLimits::default(),
    )
}

/// Runs the attempts on a record. Calls `inspect` with the record before, the message, its admission and the record
/// after.
pub(crate) fn run_attempts(
    attempts: &[SendAttempt],
    record: &mut SessionRecord,
    mut inspect: impl FnMut(&SessionRecord, &AuthenticatedMessage, &Admission, &SessionRecord),
) {
    let mut harness = RecordHarness::new();
    harness.record = record.clone();
    for (number, attempt) in attempts.iter().enumerate() {
        harness.now += attempt.delay_ms;
        let sender = if attempt.is_from_inviter { A } else { B };
        let (sender, body) = choose_message(&harness.record, sender, *attempt, number);
        let message = with_dummy_signature(harness.next(sender, &body));
        let before = harness.record.clone();
        let admission = harness.record.admit(&message, ReceiverChecks::PASSED, None);
        inspect(&before, &message, &admission, &harness.record);
    }
    *record = harness.record;
}

/// Chooses a message. In INVITED and before, it is usually the next step of the handshake. In ESCALATED, it is usually a
/// resolution. Otherwise it can be any message.
fn choose_message(record: &SessionRecord, sender: Role, attempt: SendAttempt, number: usize) -> (Role, Body) {
    let session = record.session();
    let is_arbitrary = attempt.choice.is_multiple_of(8);
    match (session.state(), record.transcript().len()) {
        (State::Idle, _) if !is_arbitrary => return (A, invitation()),
        (State::Invited, 1) if !is_arbitrary => return (B, accept("prop_inv")),
        (State::Invited, 2 | 3) if !is_arbitrary => return (sender, inform("identity")),
        (State::Escalated, _) if !is_arbitrary => return (sender, inform("resolution")),
        _ => {}
    }
    let earlier_id = |kind: &str| format!("{kind}_{}", usize::from(attempt.reference) % (number + 1));
    let new_id = |kind: &str| format!("{kind}_{number}");
    let pending = session.commitment().map(|pending| pending.commit().commitment_id.to_string());
    let target = || pending.clone().unwrap_or_else(|| earlier_id("prop"));
    let body = match attempt.choice / 8 {
        0..3 => propose(&new_id("prop")),
        3 => propose(&earlier_id("prop")),
        4..9 => accept(&target()),
        9..11 => reject(&target()),
        11..13 => counter(&new_id("prop"), &target()),
        13..16 => commit(&new_id("cmt")),
        16 => commit(&earlier_id("cmt")),
        17..19 => query(&new_id("qry")),
        19 => observe("something"),
        20 => inform("answer"),
        21..23 => inform("result"),
        23 => inform("identity"),
        24 => body(asp::Performative::Clarify, full_body(asp::Performative::Clarify)),
        25 => body(asp::Performative::Delegate, full_body(asp::Performative::Delegate)),
        26..28 => escalate(),
        28 if attempt.reference < 40 => withdraw(),
        29 if attempt.reference < 40 => {
            body(asp::Performative::Inform, r#"{"informType":"error","recoverable":false}"#)
        }
        30 if attempt.reference < 80 => close(if attempt.reference < 20 { "unilateral" } else { "done" }),
        _ => inform("progress"),
    };
    (sender, body)
}
