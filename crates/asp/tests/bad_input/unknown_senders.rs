//! Messages from agents outside the session. A participant drops and counts them and never answers them. They do not end
//! the session (D7).

use asp::session::ReceiverChecks;
use asp::state_machine::State;
use asp::{AuthenticationError, Participant, ReceiveOutcome, RejectCode, SessionRecord};
use seal::Digest;

use crate::support::bodies::{accept, close, inform, invitation, query};
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, HarnessOutcome, RecordHarness, START};
use crate::support::test_agents::{BUYER, CountingRandom, SELLER, STRANGER, THIRD, participant};
use crate::support::test_signer::{SigningOverrides, sign_envelope, sign_with};

#[test]
fn a_message_from_an_unknown_agent_is_dropped() {
    let mut harness = RecordHarness::at(State::Conversing);
    for link in [harness.record.transcript().head(), Digest::of(b"nothing")] {
        let envelope = harness
            .next(A, &close("unilateral"))
            .with_text("sender/agentId", STRANGER.agent().as_str())
            .with_text("integrity/previousHash", &link.to_string());
        let signed = sign_envelope(&envelope, &STRANGER.keys);
        let agent = STRANGER.agent().to_string();
        assert_eq!(
            harness.receive(&signed.text),
            HarnessOutcome::Dropped(AuthenticationError::UnknownSender(agent))
        );
        // The stranger signs the same message in the name of a participant.
        let envelope = envelope.with_text("sender/agentId", BUYER.agent().as_str());
        let signed = sign_envelope(&envelope, &STRANGER.keys);
        assert_eq!(
            harness.receive(&signed.text),
            HarnessOutcome::Dropped(AuthenticationError::InvalidSignature)
        );
    }
}

/// An agent that is not in the session cannot end it, even if its card is known and its link is broken.
#[test]
fn a_known_agent_outside_the_session_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    for link in [harness.record.transcript().head(), Digest::of(b"nothing")] {
        let envelope = harness
            .next(A, &close("unilateral"))
            .with_text("sender/agentId", THIRD.agent().as_str())
            .with_text("integrity/previousHash", &link.to_string());
        let signed = sign_envelope(&envelope, &THIRD.keys);
        assert_eq!(harness.receive(&signed.text), HarnessOutcome::Refused(RejectCode::Unauthorized));
    }
}

/// Creates two participants that know a third agent, after the identity exchange.
fn introduced_pair() -> (Participant, Participant, CountingRandom) {
    let mut random = CountingRandom(1000);
    let mut a = participant(&BUYER, &[&SELLER, &THIRD]);
    let mut b = participant(&SELLER, &[&BUYER, &THIRD]);
    a.invite(&SELLER.card, START, &mut random).unwrap();
    for (is_from_a, body) in [
        (true, invitation()),
        (false, accept("prop_inv")),
        (true, inform("identity")),
        (false, inform("identity")),
    ] {
        let (from, to) = if is_from_a { (&mut a, &mut b) } else { (&mut b, &mut a) };
        let sent = from.send(body, START, &mut random).unwrap();
        let outcome = to.receive(&sent.text, ReceiverChecks::PASSED, START, &mut random).unwrap();
        assert!(matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
    }
    (a, b, random)
}

#[test]
fn a_participant_counts_dropped_messages_and_does_not_answer() {
    let (mut a, mut b, mut random) = introduced_pair();
    let before = b.record().unwrap().checkpoint();
    let sent = a.send(query("qry_1"), START, &mut random).unwrap();
    let valid = EditableJson::parse(&sent.text);
    let invalid = [
        String::new(),
        "{}".to_owned(),
        valid.clone().with_text("sender/agentId", STRANGER.agent().as_str()).write(),
        valid.clone().with_text("integrity/hash", &Digest::ZERO.to_string()).write(),
        valid.clone().with_text("content/body/subject", "gold").write(),
        sign_envelope(&valid, &STRANGER.keys).text,
        sign_with(
            &valid,
            &BUYER.keys,
            &SigningOverrides { htm: Some("CLOSE".to_owned()), ..SigningOverrides::default() },
        )
        .text,
        "x".repeat(300_000),
    ];
    for (number, text) in invalid.iter().enumerate() {
        let outcome = b.receive(text, ReceiverChecks::PASSED, START, &mut random).unwrap();
        assert!(matches!(outcome, ReceiveOutcome::Dropped(_)), "{outcome:?}");
        assert_eq!(b.dropped_count(), number as u64 + 1);
    }
    let after = b.record().unwrap().checkpoint();
    assert_eq!((after.session, after.position), (before.session, before.position));
    let outcome = b.receive(&sent.text, ReceiverChecks::PASSED, START, &mut random).unwrap();
    assert!(matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
}

fn state_of(participant: &Participant) -> (State, asp::ChainPosition) {
    let record = participant.record().unwrap();
    (record.session().state(), record.transcript().position())
}

/// D7: messages from agents outside the session are dropped and counted, even if their card is known. A REJECT would
/// reveal the session's head to them.
#[test]
fn a_participant_drops_messages_of_a_known_agent_outside_the_session() {
    let (a, mut b, mut random) = introduced_pair();
    let mut harness = RecordHarness::new();
    let before = state_of(&b);
    for session in [a.record().unwrap().session_id(), harness.record.session_id()] {
        let envelope = harness
            .next(A, &query("qry_1"))
            .with_text("sessionId", &session.to_string())
            .with_text("sender/agentId", THIRD.agent().as_str());
        let text = sign_envelope(&envelope, &THIRD.keys).text;
        let dropped = b.dropped_count();
        let outcome = b.receive(&text, ReceiverChecks::PASSED, START + 1000, &mut random).unwrap();
        assert!(matches!(outcome, ReceiveOutcome::Dropped(_)), "{outcome:?}");
        assert_eq!(b.dropped_count(), dropped + 1);
        assert_eq!(state_of(&b), before);
    }
}

/// Only a REJECT from the other side rolls messages back.
#[test]
fn a_reject_from_a_third_party_rolls_nothing_back() {
    let (mut a, _, mut random) = introduced_pair();
    let sent = a.send(query("qry_1"), START, &mut random).unwrap();
    let before = state_of(&a);
    let mut harness = RecordHarness::new();
    let body = crate::support::bodies::reject(&sent.message_id.to_string());
    let envelope = harness
        .next(A, &body)
        .with_text("sessionId", &a.record().unwrap().session_id().to_string())
        .with_text("sender/agentId", THIRD.agent().as_str())
        .with_text("recipient", BUYER.agent().as_str());
    let text = sign_envelope(&envelope, &THIRD.keys).text;
    let outcome = a.receive(&text, ReceiverChecks::PASSED, START + 1000, &mut random).unwrap();
    assert!(!matches!(outcome, ReceiveOutcome::RolledBack { .. }), "{outcome:?}");
    assert_eq!(state_of(&a), before);
}

#[test]
fn an_invitation_to_another_agent_begins_no_session() {
    let mut random = CountingRandom(5);
    let mut a = participant(&BUYER, &[&SELLER, &THIRD]);
    let mut third = participant(&THIRD, &[&BUYER, &SELLER]);
    a.invite(&SELLER.card, START, &mut random).unwrap();
    let sent = a.send(invitation(), START, &mut random).unwrap();
    let outcome = third.receive(&sent.text, ReceiverChecks::PASSED, START, &mut random).unwrap();
    assert!(!matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
    assert!(third.record().is_none());
    // The third agent can still accept an invitation that is addressed to it.
    let mut a = participant(&BUYER, &[&SELLER, &THIRD]);
    a.invite(&THIRD.card, START, &mut random).unwrap();
    let sent = a.send(invitation(), START, &mut random).unwrap();
    let outcome = third.receive(&sent.text, ReceiverChecks::PASSED, START, &mut random).unwrap();
    assert!(matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
}

#[test]
fn an_agent_can_invite_neither_itself_nor_an_unpinned_agent() {
    let mut random = CountingRandom(5);
    let mut a = participant(&BUYER, &[&SELLER]);
    assert_eq!(a.invite(&BUYER.card, START, &mut random), Err(asp::LocalError::NoPeer));
    assert_eq!(a.invite(&STRANGER.card, START, &mut random), Err(asp::LocalError::NoPeer));
    let mut harness = RecordHarness::new();
    let envelope = harness.next(A, &invitation()).with_text("recipient", BUYER.agent().as_str());
    let message = harness.authenticate(&sign_envelope(&envelope, &BUYER.keys).text).unwrap();
    let record = SessionRecord::from_invitation(
        &message.envelope,
        &harness.cards,
        asp::session::SessionRules::default(),
        &harness.limits,
    );
    assert_eq!(record.map(|_| ()).unwrap_err().code, RejectCode::Unauthorized);
}
