//! Constraints of a message on its answer (D23).

use asp::message::{Body, Constraints, TrustScore};
use asp::session::{IncomingMessage, ReceiverChecks};
use asp::state_machine::{Role, State};
use asp::{Performative, RejectCode};

use crate::session::session_harness::*;

/// Sends a message with constraints that must be accepted.
fn send_constrained(harness: &mut SessionHarness, sender: Role, body: &Body, constraints: &Constraints) {
    let incoming = IncomingMessage {
        constraints: Some(constraints),
        ..harness.incoming(sender, body, None, ReceiverChecks::PASSED)
    };
    harness.session.handle_message(&incoming).unwrap();
}

/// Sends a message and returns the code of the refusal, or `None` if it was accepted. A refusal must change nothing.
fn answer(
    harness: &mut SessionHarness,
    body: &Body,
    checks: ReceiverChecks,
    tokens_used: Option<u64>,
) -> Option<RejectCode> {
    let before = harness.session.clone();
    let incoming = IncomingMessage { tokens_used, ..harness.incoming(B, body, None, checks) };
    let code = harness.session.handle_message(&incoming).err().map(|refusal| refusal.code);
    assert!(code.is_none() || harness.session == before);
    code
}

fn constrained_to(allowed: &[Performative]) -> Constraints {
    Constraints { allowed_performatives: Some(allowed.to_vec()), ..Constraints::new() }
}

/// Returns a session in CONVERSING in which the inviter has sent a QUERY with these constraints.
fn asked(constraints: &Constraints) -> SessionHarness {
    let mut harness = SessionHarness::conversing();
    send_constrained(&mut harness, A, &query(), constraints);
    harness
}

#[test]
fn an_answer_must_have_an_allowed_performative() {
    let harness = asked(&constrained_to(&[Performative::Inform, Performative::Clarify]));
    let passed = ReceiverChecks::PASSED;
    for (body, expected) in [
        (inform("answer"), None),
        (clarify(), None),
        (query(), Some(RejectCode::PolicyViolation)),
        (observe(), Some(RejectCode::PolicyViolation)),
        (offer("prop_1"), Some(RejectCode::PolicyViolation)),
        (commit("cmt_1", &[(SELLER, 1000)], None), Some(RejectCode::PolicyViolation)),
        // A message that is not allowed at all is refused for that reason.
        (accept("prop_9"), Some(RejectCode::InvalidStateTransition)),
    ] {
        assert_eq!(answer(&mut harness.clone(), &body, passed, None), expected, "{body:?}");
    }
    // A side may always escalate and leave.
    for body in [escalate(None), withdraw(), close("done")] {
        assert_eq!(answer(&mut harness.clone(), &body, passed, None), None, "{body:?}");
    }
    // An empty list allows only that.
    assert_eq!(
        answer(&mut asked(&constrained_to(&[])), &inform("answer"), passed, None),
        Some(RejectCode::PolicyViolation)
    );
}

#[test]
fn constraints_bind_only_the_next_message_from_the_other_side() {
    let passed = ReceiverChecks::PASSED;
    let mut harness = asked(&constrained_to(&[Performative::Inform]));
    // The side that set the constraints is free, and its messages without constraints do not end them.
    harness.send(A, observe());
    harness.send(A, offer("prop_1"));
    assert_eq!(answer(&mut harness, &observe(), passed, None), Some(RejectCode::PolicyViolation));
    assert_eq!(answer(&mut harness, &observe(), passed, None), Some(RejectCode::PolicyViolation), "still");
    // New constraints replace them.
    let mut replaced = harness.clone();
    send_constrained(&mut replaced, A, &query(), &constrained_to(&[Performative::Observe]));
    assert_eq!(answer(&mut replaced, &inform("answer"), passed, None), Some(RejectCode::PolicyViolation));
    assert_eq!(answer(&mut replaced, &observe(), passed, None), None);
    // The answer ends them.
    assert_eq!(answer(&mut harness, &inform("answer"), passed, None), None);
    assert_eq!(answer(&mut harness, &observe(), passed, None), None);
    // So does an escalation, after which the session goes on.
    let mut harness = asked(&constrained_to(&[Performative::Inform]));
    harness.send(B, escalate(None));
    harness.send(B, inform("resolution"));
    assert_eq!(answer(&mut harness, &observe(), passed, None), None);
    // The answer may have constraints of its own.
    let mut harness = asked(&constrained_to(&[Performative::Inform]));
    send_constrained(&mut harness, B, &inform("answer"), &constrained_to(&[Performative::Close]));
    assert_eq!(harness.expect_refusal(A, observe()), RejectCode::PolicyViolation);
    harness.send(A, close("done"));
    assert_eq!(harness.state(), State::Closed);
}

#[test]
fn an_answer_needs_the_required_trust_score() {
    let score = |score| TrustScore::new(score);
    let constraints = Constraints { required_trust_score: score(50.0), ..Constraints::new() };
    for (trust_score, expected) in [
        (None, Some(RejectCode::InsufficientTrustScore)),
        (score(0.0), Some(RejectCode::InsufficientTrustScore)),
        (score(49.9), Some(RejectCode::InsufficientTrustScore)),
        (score(50.0), None),
        (score(100.0), None),
    ] {
        let checks = ReceiverChecks { trust_score, ..ReceiverChecks::PASSED };
        assert_eq!(answer(&mut asked(&constraints), &inform("answer"), checks, None), expected);
        assert_eq!(answer(&mut asked(&constraints), &close("done"), checks, None), None);
        assert_eq!(answer(&mut SessionHarness::conversing(), &inform("answer"), checks, None), None);
    }
    // The inviter requires a score of the side that accepts the invitation.
    let mut harness = SessionHarness::new();
    send_constrained(&mut harness, A, &invitation("{}", None), &constraints);
    let unknown = ReceiverChecks { trust_score: None, ..ReceiverChecks::PASSED };
    assert_eq!(
        answer(&mut harness, &accept("prop_inv"), unknown, None),
        Some(RejectCode::InsufficientTrustScore)
    );
    assert_eq!(answer(&mut harness, &accept("prop_inv"), ReceiverChecks::PASSED, None), None);
}

#[test]
fn an_answer_must_stay_within_the_token_budget() {
    let passed = ReceiverChecks::PASSED;
    let budget = |tokens| Constraints { max_token_budget: Some(tokens), ..Constraints::new() };
    let body = inform("answer");
    let estimate = (body.to_json().len() as u64).div_ceil(4);
    for (allowed, stated, expected) in [
        (1000, Some(1000), None),
        (1000, Some(1001), Some(RejectCode::BudgetExceeded)),
        (1000, Some(u64::MAX), Some(RejectCode::BudgetExceeded)),
        (estimate, None, None),
        (estimate - 1, None, Some(RejectCode::BudgetExceeded)),
        // The stated number cannot be lower than what the body needs.
        (estimate - 1, Some(0), Some(RejectCode::BudgetExceeded)),
        (estimate, Some(0), None),
    ] {
        let code = answer(&mut asked(&budget(allowed)), &body, passed, stated);
        assert_eq!(code, expected, "{stated:?} of {allowed}");
    }
    assert_eq!(answer(&mut asked(&budget(0)), &close("done"), passed, Some(5)), None);
    assert_eq!(answer(&mut SessionHarness::conversing(), &body, passed, Some(u64::MAX)), None);
}
