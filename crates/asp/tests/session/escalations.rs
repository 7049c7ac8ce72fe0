//! What is preserved during an escalation (D9).

use asp::RejectCode;
use asp::message::Urgency;
use asp::session::{Effect, SessionEnding};
use asp::state_machine::{Role, State, Timer};

use crate::session::session_harness::*;

/// Returns sessions in every state that can be escalated, with data that must be preserved.
fn escalatable_sessions() -> Vec<(&'static str, SessionHarness)> {
    let mut awaiting_response = SessionHarness::conversing();
    awaiting_response.send(B, offer("prop_1"));
    awaiting_response.send_with_timeout(A, query(), 60_000);
    vec![
        ("invitation not answered", SessionHarness::invited()),
        ("identifying", SessionHarness::identifying()),
        ("one side identified", SessionHarness::identifying().after(&[(B, inform("identity"))])),
        ("introduced", SessionHarness::introduced()),
        ("a proposal is open, a response awaited", awaiting_response),
        ("a commitment is pending", SessionHarness::agreeing()),
        ("agreed", SessionHarness::executing()),
        ("partly fulfilled", SessionHarness::executing().after(&[(B, inform("result")), (A, close("done"))])),
    ]
}

#[test]
fn a_resolution_restores_the_previous_state() {
    for (case, before) in escalatable_sessions() {
        let mut harness = before.clone();
        let transition = harness.send(A, escalate(None));
        assert_eq!((transition.from, transition.to), (before.state(), State::Escalated), "{case}");
        let notification = Effect::NotifyHandler {
            by: A,
            handler: None,
            reason: "too expensive".to_owned(),
            urgency: Urgency::High,
        };
        assert!(transition.effects.contains(&notification), "{case}");
        assert_eq!(harness.session.commitment(), before.session.commitment(), "{case}");
        let transition = harness.send(A, inform("resolution"));
        assert_eq!(
            (transition.row_number, transition.from, transition.to),
            (14, State::Escalated, before.state()),
            "{case}"
        );
        assert_eq!(harness.session, before.session, "{case}");
    }
}

#[test]
fn the_timers_resume_with_their_remaining_time() {
    for (case, before) in escalatable_sessions() {
        let mut harness = before.clone();
        harness.send(A, escalate(Some(5000)));
        harness.wait(4000);
        harness.send(A, inform("resolution"));
        for timer in Timer::ALL {
            let shifted = before.session.deadline(timer).map(|at| at + 4_000_000);
            assert_eq!(harness.session.deadline(timer), shifted, "{case}: {timer}");
        }
    }
}

#[test]
fn the_session_continues_where_it_was_after_an_escalation() {
    let escalate_and_return = |mut harness: SessionHarness| {
        harness.send(B, escalate(None));
        harness.wait(100);
        harness.send(B, inform("resolution"));
        harness
    };

    let mut harness = escalate_and_return(SessionHarness::invited());
    assert_eq!(
        harness.expect_refusal(A, inform("identity")),
        RejectCode::InvalidStateTransition,
        "the invitation is still not answered"
    );
    harness.send(B, accept("prop_inv"));

    let mut harness = escalate_and_return(SessionHarness::identifying().after(&[(A, inform("identity"))]));
    assert_eq!(harness.expect_refusal(A, inform("identity")), RejectCode::Duplicate);
    assert_eq!(harness.send(B, inform("identity")).to, State::Introduced);

    let mut harness = escalate_and_return(SessionHarness::agreeing());
    assert_eq!(harness.expect_refusal(A, accept("cmt_1")), RejectCode::Unauthorized);
    assert_eq!(harness.send(B, accept("cmt_1")).to, State::Executing);

    let mut harness = escalate_and_return(SessionHarness::executing().after(&[(A, close("done"))]));
    assert_eq!(harness.send(B, close("done")).to, State::Closed);
    assert_eq!(harness.outcome().ending, SessionEnding::Completed);
}

#[test]
fn only_the_side_that_escalated_can_send_the_resolution() {
    for by in Role::ALL {
        let mut harness = SessionHarness::conversing();
        harness.send(by, escalate(None));
        assert_eq!(harness.expect_refusal(by.other(), inform("resolution")), RejectCode::Unauthorized);
        assert_eq!(harness.expect_refusal(by, inform("progress")), RejectCode::InvalidStateTransition);
        assert_eq!(harness.expect_refusal(by, escalate(None)), RejectCode::InvalidStateTransition);
        assert_eq!(harness.send(by, inform("resolution")).to, State::Conversing);
    }
}

#[test]
fn a_session_can_be_escalated_again_by_the_other_side() {
    let mut harness = SessionHarness::executing();
    for by in [A, B, A] {
        harness.send(by, escalate(None));
        harness.wait(1000);
        harness.send(by, inform("resolution"));
        assert_eq!(harness.state(), State::Executing);
    }
    assert_eq!(harness.session.deadline(Timer::Session), Some(START + 3_600_000 + 3_000_000));
}

#[test]
fn an_undecided_escalation_fails_the_session_from_every_state() {
    for (case, mut harness) in escalatable_sessions() {
        harness.send(A, escalate(Some(10)));
        harness.wait_exactly(10);
        assert_eq!(harness.state(), State::Failed, "{case}");
        assert_eq!(harness.outcome().ending, SessionEnding::TimedOut(Timer::Escalation), "{case}");
    }
}

#[test]
fn the_side_that_escalated_is_known_until_the_escalation_ends() {
    for side in [A, B] {
        let mut harness = SessionHarness::conversing();
        assert_eq!(harness.session.escalated_by(), None);
        harness.send(side, escalate(None));
        assert_eq!(harness.session.escalated_by(), Some(side));
        harness.send(side, inform("resolution"));
        assert_eq!(harness.session.escalated_by(), None);
    }
}

#[test]
fn each_side_must_identify_itself_once_the_invitation_is_accepted() {
    let awaited = |harness: &SessionHarness| [A, B].map(|side| harness.session.awaits_identity(side));
    assert_eq!(awaited(&SessionHarness::invited()), [false, false]);
    let mut harness = SessionHarness::identifying();
    assert_eq!(awaited(&harness), [true, true]);
    harness.send(B, inform("identity"));
    assert_eq!(awaited(&harness), [true, false]);
    harness.send(A, inform("identity"));
    assert_eq!(awaited(&harness), [false, false]);
}
