//! Sessions from the invitation to the end.

use asp::message::{Constraints, TrustScore};
use asp::session::{ReceiverChecks, SessionEnding};
use asp::state_machine::State;
use asp::{
    AspError, CommitmentStatus, LocalError, OutgoingMessage, Participant, ParticipantConfig, ReceiveOutcome,
    RejectCode,
};

use super::participant_pair::{A, B, ParticipantPair, START};
use crate::support::bodies::{
    accept, close, commit, counter, escalate, inform, invitation, observe, propose, query,
};
use crate::support::editable_json::EditableJson;
use crate::support::test_agents::{BUYER, CountingRandom, SELLER, participant, participant_config};
use crate::support::test_signer::digest;

#[test]
fn a_session_runs_from_the_invitation_to_the_last_close() {
    let mut pair = ParticipantPair::introduced();
    pair.send_and_deliver(A, query("qry_1"));
    pair.send_and_deliver(B, inform("answer"));
    pair.send_and_deliver(A, propose("prop_1"));
    pair.send_and_deliver(B, counter("prop_2", "prop_1"));
    pair.send_and_deliver(A, accept("prop_2"));
    pair.send_and_deliver(A, commit("cmt_1"));
    assert_eq!(pair.states(), [State::Agreeing; 2]);
    pair.send_and_deliver(B, accept("cmt_1"));
    assert_eq!(pair.states(), [State::Executing; 2]);
    pair.send_and_deliver(B, inform("progress"));
    pair.send_and_deliver(B, inform("result"));
    pair.send_and_deliver(A, inform("result"));
    pair.send_and_deliver(A, close("done"));
    assert_eq!(pair.states(), [State::Executing; 2], "one CLOSE is a request (D4)");
    pair.send_and_deliver(B, close("done"));
    assert_eq!(pair.states(), [State::Closed; 2]);
    let (session, _) = pair.snapshot(A);
    let outcome = session.outcome().unwrap();
    assert_eq!(outcome.ending, SessionEnding::Completed);
    assert_eq!(outcome.commitment.as_ref().unwrap().status(), CommitmentStatus::Fulfilled);
    // Each message links to the previous one.
    let mut head = seal::Digest::ZERO;
    for text in pair.texts(B) {
        let json = EditableJson::parse(&text);
        assert_eq!(json.string("integrity/previousHash"), head.to_string());
        head = digest(&json.without("integrity/hash").without("integrity/signature"));
    }
    assert_eq!(head, pair.snapshot(B).1.head);
    // Nothing can be sent after the end.
    for role in [A, B] {
        let sent = pair.try_send(role, observe("x"));
        assert!(matches!(sent, Err(AspError::Local(LocalError::NotAllowed(_)))), "{sent:?}");
    }
    pair.assert_agreement();
}

#[test]
fn a_session_returns_from_an_escalation() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(B, escalate());
    assert_eq!(pair.states(), [State::Escalated; 2]);
    pair.send_and_deliver(B, inform("resolution"));
    assert_eq!(pair.states(), [State::Conversing; 2]);
    pair.send_and_deliver(A, close("enough"));
    assert_eq!(pair.states(), [State::Closed; 2]);
}

#[test]
fn one_side_can_send_several_messages_in_a_row() {
    let mut pair = ParticipantPair::conversing();
    let texts: Vec<_> = (0..5).map(|number| pair.send(A, observe(&format!("{number}")))).collect();
    for text in &texts {
        assert!(pair.deliver_accepted(B, text).is_empty());
    }
    pair.assert_agreement();
    pair.send_and_deliver(B, observe("received"));
}

#[test]
fn a_message_that_is_not_allowed_is_not_sent() {
    let mut pair = ParticipantPair::introduced();
    for body in [commit("cmt_1"), accept("prop_inv"), invitation()] {
        let before = pair.snapshot(A);
        match pair.try_send(A, body) {
            Err(AspError::Local(LocalError::NotAllowed(refusal))) => assert!(!refusal.reason.is_empty()),
            other => panic!("{other:?}"),
        }
        assert_eq!(pair.snapshot(A), before);
    }
}

/// If the inviter's trust is too low, it gets a REJECT, rolls its invitation back and may try again.
#[test]
fn an_untrusted_inviter_can_try_again() {
    let mut pair = ParticipantPair::new();
    let text = pair.send(A, invitation());
    pair.checks = ReceiverChecks { is_trusted: false, ..ReceiverChecks::PASSED };
    let reject = match pair.deliver(B, &text) {
        ReceiveOutcome::Refused { refusal, reject: Some(reject) } => {
            assert_eq!(refusal.code, RejectCode::InsufficientTrustScore);
            reject
        }
        other => panic!("{other:?}"),
    };
    assert!(pair.side(B).record().is_none(), "the record of a session that did not begin is discarded");
    let (refusal, messages) = pair.deliver_rollback(A, &reject);
    assert_eq!(refusal.code, RejectCode::InsufficientTrustScore);
    assert_eq!(messages, [invitation()]);
    assert_eq!(pair.snapshot(A).0.state(), State::Idle);
    assert_eq!(pair.snapshot(A).1, asp::ChainPosition::default());
    // A duplicate REJECT changes nothing.
    pair.deliver_ignored(A, &reject);
    // The receiver trusts the inviter now.
    pair.checks.is_trusted = true;
    pair.send_and_deliver(A, invitation());
    assert_eq!(pair.states(), [State::Invited; 2]);
}

/// An inviter that has not sent its invitation yet is not affected by a message from another session.
#[test]
fn a_stray_invitation_does_not_stop_a_pending_inviter() {
    let mut pair = ParticipantPair::new();
    let mut other = participant(&SELLER, &[&BUYER]);
    let mut random = CountingRandom(77);
    other.invite(&BUYER.card, START, &mut random).unwrap();
    let stray = other.send(invitation(), START, &mut random).unwrap();
    let outcome = pair.deliver(A, &stray.text);
    assert!(matches!(outcome, ReceiveOutcome::Refused { .. }), "{outcome:?}");
    pair.send_and_deliver(A, invitation());
}

#[test]
fn an_untrusted_identity_is_refused() {
    let mut pair = ParticipantPair::new();
    pair.send_and_deliver(A, invitation());
    pair.send_and_deliver(B, accept("prop_inv"));
    let text = pair.send(A, inform("identity"));
    pair.checks.is_trusted = false;
    let (refusal, reject) = pair.deliver_refused(B, &text);
    assert_eq!(refusal.code, RejectCode::InsufficientTrustScore);
    pair.deliver_rollback(A, &reject);
    pair.assert_agreement();
    assert_eq!(pair.states(), [State::Invited; 2]);
}

/// If the committing side does not consider the escrow covered, the ACCEPT is rolled back and the other side may
/// answer again.
#[test]
fn uncovered_escrow_prevents_the_agreement() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(A, commit("cmt_1"));
    let text = pair.send(B, accept("cmt_1"));
    pair.checks = ReceiverChecks { is_funded: false, ..ReceiverChecks::PASSED };
    let (refusal, reject) = pair.deliver_refused(A, &text);
    assert_eq!(refusal.code, RejectCode::BudgetExceeded);
    let (_, messages) = pair.deliver_rollback(B, &reject);
    assert_eq!(messages, [accept("cmt_1")]);
    pair.assert_agreement();
    assert_eq!(pair.states(), [State::Agreeing; 2]);
    pair.checks.is_funded = true;
    pair.send_and_deliver(B, accept("cmt_1"));
    assert_eq!(pair.states(), [State::Executing; 2]);
    // If the accepting side knows that the escrow is not covered, it does not send the ACCEPT.
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(A, commit("cmt_1"));
    let (now, mut random) = (pair.now, CountingRandom(500));
    let unfunded = ReceiverChecks { is_funded: false, ..ReceiverChecks::PASSED };
    let sent = pair.side(B).send_with(accept("cmt_1"), None, unfunded, now, &mut random);
    match sent {
        Err(AspError::Local(LocalError::NotAllowed(refusal))) => {
            assert_eq!(refusal.code, RejectCode::BudgetExceeded);
        }
        other => panic!("{other:?}"),
    }
    pair.assert_agreement();
}

/// The receiver checks the answer to its own constrained message (D23). Its own score of the sender counts, not what the sender
/// states about itself.
#[test]
fn a_refused_answer_is_rolled_back_and_another_one_accepted() {
    let mut pair = ParticipantPair::conversing();
    pair.constraints = Some(Constraints {
        required_trust_score: TrustScore::new(40.0),
        max_token_budget: Some(100),
        allowed_performatives: Some(vec![asp::Performative::Inform]),
        ..Constraints::new()
    });
    pair.send_and_deliver(A, query("qry_1"));
    pair.constraints = None;
    // The answering side knows the constraints and does not send what they forbid.
    let (now, mut random) = (pair.now, CountingRandom(500));
    let outgoing = |body, tokens_used| OutgoingMessage {
        body,
        constraints: None,
        tokens_used,
        checks: ReceiverChecks::PASSED,
    };
    for (message, code) in [
        (outgoing(observe("no"), None), RejectCode::PolicyViolation),
        (outgoing(inform("answer"), Some(101)), RejectCode::BudgetExceeded),
    ] {
        match pair.side(B).send_message(message, now, &mut random) {
            Err(AspError::Local(LocalError::NotAllowed(refusal))) => assert_eq!(refusal.code, code),
            other => panic!("{other:?}"),
        }
    }
    // It does not know its trust score at the other side.
    let text = pair.send(B, inform("answer"));
    pair.checks.trust_score = TrustScore::new(39.0);
    let (refusal, reject) = pair.deliver_refused(A, &text);
    assert_eq!(refusal.code, RejectCode::InsufficientTrustScore);
    pair.deliver_rollback(B, &reject);
    pair.assert_agreement();

    pair.checks.trust_score = TrustScore::new(40.0);
    let sent = pair.side(B).send_message(outgoing(inform("answer"), Some(100)), now, &mut random).unwrap();
    assert!(sent.text.contains(r#""tokensUsed":100"#));
    pair.deliver_accepted(A, &sent.text);
    pair.assert_agreement();
    // The answer was accepted, so the constraints have ended.
    pair.checks.trust_score = None;
    pair.send_and_deliver(B, observe("free again"));
}

/// A late timeout call has the same effect as a timely one. Early and repeated calls have no effect.
#[test]
fn late_timeout_calls_take_effect_and_repeated_ones_do_nothing() {
    let mut pair = ParticipantPair::new();
    pair.send_and_deliver(A, invitation());
    let deadline = pair.snapshot(A).0.next_deadline().unwrap();
    assert!(pair.side(A).handle_timeout(deadline - 1).is_empty());
    assert_eq!(pair.states(), [State::Invited; 2]);
    assert_eq!(pair.side(A).handle_timeout(deadline).len(), 1);
    assert_eq!(pair.side(B).handle_timeout(deadline + 86_400_000).len(), 1);
    pair.assert_agreement();
    assert_eq!(pair.states(), [State::Failed; 2]);
    for role in [A, B] {
        assert!(pair.side(role).handle_timeout(deadline + 90_000_000).is_empty());
    }
    let (session, _) = pair.snapshot(B);
    assert_eq!(
        session.outcome().unwrap().ended_at,
        deadline,
        "it ended at the deadline, not at the late call"
    );
}

/// A timely answer arrives after the deadline. Both sides agree, whether or not the receiver has handled its timeout.
#[test]
fn both_sides_agree_if_an_answer_crosses_a_timeout() {
    let mut pair = ParticipantPair::new();
    pair.send_and_deliver(A, invitation());
    let deadline = pair.snapshot(A).0.next_deadline().unwrap();
    pair.now = deadline - 1;
    let text = pair.send(B, accept("prop_inv"));
    pair.side(A).handle_timeout(deadline);
    pair.now = deadline + 1;
    let (_, reject) = pair.deliver_refused(A, &text);
    pair.deliver_rollback(B, &reject);
    pair.side(B).handle_timeout(deadline + 1);
    pair.assert_agreement();
    assert_eq!(pair.states(), [State::Failed; 2]);
    // If the inviter has not handled its timeout yet, the answer is accepted.
    let mut pair = ParticipantPair::new();
    pair.send_and_deliver(A, invitation());
    pair.now = deadline - 1;
    let text = pair.send(B, accept("prop_inv"));
    pair.now = deadline + 1;
    pair.deliver_accepted(A, &text);
    pair.assert_agreement();
}

#[test]
fn the_keys_must_match_the_card() {
    let mismatched =
        ParticipantConfig { keys: SELLER.keys.clone(), ..participant_config(&BUYER, &[&SELLER]) };
    assert_eq!(Participant::new(mismatched).map(|_| ()), Err(LocalError::KeyMismatch));
}

/// If the caller passes a card that is not pinned, the pinned card of the same agent is used.
#[test]
fn an_invitation_uses_the_pinned_card() {
    let mut random = CountingRandom(5);
    let unpinned_card = crate::support::test_agents::test_agent(SELLER.agent().as_str(), 60).card;
    let mut a = participant(&BUYER, &[&SELLER]);
    a.invite(&unpinned_card, START, &mut random).unwrap();
    assert_eq!(a.record().unwrap().card(B).as_str(), SELLER.card.as_str());
}

#[test]
fn a_message_that_is_too_long_is_not_sent() {
    let mut pair = ParticipantPair::conversing();
    let before = pair.snapshot(A);
    let sent = pair.try_send(A, observe(&"x".repeat(300_000)));
    assert!(matches!(sent, Err(AspError::Local(LocalError::TooLong(_)))));
    assert_eq!(pair.snapshot(A), before);
    pair.send_and_deliver(A, observe("short"));
}
