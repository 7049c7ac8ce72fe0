//! When each timer starts, expires, pauses and stops (D9).

use asp::ConformanceLevel;
use asp::session::{Effect, SessionEnding, Transition};
use asp::state_machine::{Role, State, Timer};
use seal::UnixMillis;

use crate::session::session_harness::*;

#[test]
fn an_invitation_without_a_deadline_expires_after_thirty_seconds() {
    let mut harness = SessionHarness::invited();
    assert_eq!(harness.session.next_deadline(), Some(START + 30_000));
    let start = Effect::StartTimer { timer: Timer::Invitation, expires_at: START + 30_000 };
    assert_eq!(harness.effects, [Effect::OpenChannel, start]);
    let transitions = harness.wait_exactly(30);
    assert_failed_by(&harness, &transitions, Timer::Invitation, 3);
    assert_eq!(harness.outcome().ended_at, START + 30_000);
}

#[test]
fn valid_until_sets_the_deadline_of_an_invitation() {
    for seconds in [5, 90] {
        let mut harness = SessionHarness::new().after(&[(A, invitation("{}", Some(START + seconds * 1000)))]);
        let transitions = harness.wait_exactly(seconds);
        assert_failed_by(&harness, &transitions, Timer::Invitation, 3);
    }
}

#[test]
fn the_invitation_timer_runs_until_both_sides_are_identified() {
    let mut harness = SessionHarness::identifying();
    harness.wait(29);
    harness.send(B, inform("identity"));
    assert_eq!(harness.session.deadline(Timer::Invitation), Some(START + 30_000));

    let mut expired = harness.clone();
    let transitions = expired.wait_exactly(1);
    assert_failed_by(&expired, &transitions, Timer::Invitation, 3);

    let transition = harness.send(A, inform("identity"));
    assert_eq!((transition.row_number, transition.to), (2, State::Introduced));
    assert!(transition.effects.contains(&Effect::RecordIdentities));
    assert!(transition.effects.contains(&Effect::StopTimer(Timer::Invitation)));
    assert!(!harness.session.is_timer_set(Timer::Invitation));
}

/// A peer that says nothing after the introduction does not keep the session open (D21).
#[test]
fn the_introduction_timer_runs_until_the_conversation_begins() {
    let mut identifying = SessionHarness::identifying();
    identifying.wait(10);
    identifying.send(B, inform("identity"));
    let transition = identifying.send(A, inform("identity"));
    let started = Effect::StartTimer { timer: Timer::Introduction, expires_at: START + 310_000 };
    assert!(transition.effects.contains(&started), "{transition:?}");
    assert_eq!(identifying.session.next_deadline(), Some(START + 310_000));
    assert_eq!(identifying.wait(299), []);
    let transitions = identifying.wait_exactly(1);
    assert_failed_by(&identifying, &transitions, Timer::Introduction, 18);

    for body in [query(), propose("prop_1", "service-agreement", "{}", None), inform("answer"), observe()] {
        let mut harness = SessionHarness::introduced();
        harness.wait(200);
        let transition = harness.send(A, body);
        assert_eq!(transition.to, State::Conversing);
        assert!(transition.effects.contains(&Effect::StopTimer(Timer::Introduction)), "{transition:?}");
        assert!(!harness.session.is_timer_set(Timer::Introduction));
        assert_eq!(harness.wait(200), []);
        assert_eq!(harness.state(), State::Conversing);
    }
}

#[test]
fn a_session_expires_one_hour_after_entering_conversing() {
    for body in [offer("prop_1"), query(), inform("answer"), observe()] {
        let mut harness = SessionHarness::introduced();
        harness.wait(100);
        let transition = harness.send(B, body);
        assert_eq!((transition.row_number, transition.to), (4, State::Conversing));
        assert!(transition.effects.contains(&Effect::EnablePerformatives([ConformanceLevel::Standard; 2])));
        assert_eq!(harness.session.deadline(Timer::Session), Some(START + 3_700_000));
        let transitions = harness.wait_exactly(3600);
        assert_failed_by(&harness, &transitions, Timer::Session, 8);
        assert!(harness.outcome().reason.starts_with("timeout"), "{}", harness.outcome().reason);
    }
}

#[test]
fn the_terms_of_the_invitation_set_the_session_duration() {
    for (terms, seconds) in
        [(r#"{"proposed_duration":120}"#, 120), (r#"{"proposedDuration":120000}"#, 120), ("{}", 3600)]
    {
        let mut harness = SessionHarness::new().after(&[
            (A, invitation(terms, None)),
            (B, accept("prop_inv")),
            (B, inform("identity")),
            (A, inform("identity")),
            (A, query()),
        ]);
        let transitions = harness.wait_exactly(seconds);
        assert_failed_by(&harness, &transitions, Timer::Session, 8);
    }
}

#[test]
fn the_duration_in_another_proposal_does_not_change_the_session() {
    let mut harness = SessionHarness::introduced();
    harness.send(A, propose("prop_1", "service-agreement", r#"{"proposed_duration":5}"#, None));
    assert_eq!(harness.session.deadline(Timer::Session), Some(START + 3_600_000));
}

#[test]
fn the_session_timer_keeps_running_in_agreeing_and_executing() {
    let mut harness = SessionHarness::conversing();
    for round in 0..3 {
        harness.wait(100);
        let id = format!("cmt_{round}");
        harness.send(A, commit(&id, &[(SELLER, 1000)], None));
        harness.send(B, reject(&id));
    }
    assert_eq!(harness.session.deadline(Timer::Session), Some(START + 3_600_000), "started once");

    let mut agreeing = SessionHarness::agreeing();
    let transitions = agreeing.wait_exactly(3600);
    assert_failed_by(&agreeing, &transitions, Timer::Session, 18);

    let mut executing = SessionHarness::executing();
    let transitions = executing.wait_exactly(3600);
    assert_failed_by(&executing, &transitions, Timer::Session, 18);
}

#[test]
fn an_escalation_expires_after_one_hour_or_its_own_timeout() {
    for (timeout, seconds) in [(None, 3600), (Some(7), 7), (Some(90_000), 90_000)] {
        let mut harness = SessionHarness::conversing();
        harness.send(B, escalate(timeout));
        assert_eq!(harness.session.next_deadline(), Some(START + seconds * 1000));
        let transitions = harness.wait_exactly(seconds);
        assert_failed_by(&harness, &transitions, Timer::Escalation, 18);
    }
}

#[test]
fn the_other_timers_are_paused_during_an_escalation() {
    let identifying = SessionHarness::identifying();
    let conversing = SessionHarness::conversing();
    let agreeing = SessionHarness::agreeing();
    let executing = SessionHarness::executing();
    for (mut harness, timer) in [
        (identifying, Timer::Invitation),
        (SessionHarness::introduced(), Timer::Introduction),
        (conversing, Timer::Session),
        (agreeing, Timer::Session),
        (executing, Timer::Session),
    ] {
        harness.wait(10);
        let state = harness.state();
        let deadline = harness.session.deadline(timer).unwrap();
        let transition = harness.send(B, escalate(Some(50_000)));
        assert!(transition.effects.contains(&Effect::PauseTimers));
        assert_eq!(harness.session.deadline(timer), None, "{state}");
        assert!(harness.session.is_timer_set(timer), "{state}");
        assert_eq!(harness.wait(49_000), [], "{state}");

        let transition = harness.send(B, inform("resolution"));
        assert!(transition.effects.contains(&Effect::ResumeTimers));
        assert!(transition.effects.contains(&Effect::StopTimer(Timer::Escalation)));
        assert_eq!(harness.state(), state);
        assert!(!harness.session.is_timer_set(Timer::Escalation));
        assert_eq!(harness.session.deadline(timer), Some(deadline + 49_000_000), "{state}");
        let remaining_seconds = (deadline + 49_000_000 - harness.now) / 1000;
        let transitions = harness.wait_exactly(remaining_seconds);
        assert_eq!(transitions.len(), 1);
        assert_eq!(harness.outcome().ending, SessionEnding::TimedOut(timer));
    }
}

#[test]
fn the_response_timer_is_paused_too() {
    let mut harness = SessionHarness::conversing();
    harness.send_with_timeout(A, query(), 60_000);
    harness.wait(10);
    harness.send(A, escalate(None));
    assert_eq!(harness.session.deadline(Timer::Response), None);
    assert_eq!(harness.wait(1000), []);
    harness.send(A, inform("resolution"));
    let transitions = harness.wait_exactly(50);
    assert_response_overdue(&transitions, A);
    assert_eq!(harness.state(), State::Conversing);
}

#[test]
fn an_overdue_response_is_reported_and_changes_no_state() {
    for (mut harness, sender, body) in [
        (SessionHarness::new(), A, invitation("{}", None)),
        (SessionHarness::conversing(), B, query()),
        (SessionHarness::agreeing(), A, clarify()),
        (SessionHarness::executing(), B, inform("progress")),
    ] {
        let transition = harness.send_with_timeout(sender, body, 5000);
        let started = Effect::StartTimer { timer: Timer::Response, expires_at: START + 5000 };
        assert!(transition.effects.contains(&started), "{transition:?}");
        let state = harness.state();
        let transitions = harness.wait_exactly(5);
        assert_response_overdue(&transitions, sender);
        assert_eq!(harness.state(), state);
        assert!(harness.session.outcome().is_none());
        assert!(!harness.session.is_timer_set(Timer::Response));
        assert_eq!(harness.expire_timers(), [], "reported once");
    }
}

#[test]
fn a_commit_can_set_a_response_time() {
    let mut harness = SessionHarness::conversing();
    harness.send_with_timeout(B, commit("cmt_1", &[(SELLER, 1000)], None), 5000);
    assert_eq!(harness.state(), State::Agreeing);
    let transitions = harness.wait_exactly(5);
    assert_response_overdue(&transitions, B);
    harness.send(A, accept("cmt_1"));
    assert_eq!(harness.state(), State::Executing, "a late answer still counts");
}

#[test]
fn only_a_message_from_the_other_side_counts_as_a_response() {
    let mut harness = SessionHarness::conversing();
    harness.send_with_timeout(A, query(), 60_000);
    harness.send(A, observe());
    assert_eq!(harness.session.deadline(Timer::Response), Some(START + 60_000));
    let transition = harness.send(B, observe());
    assert!(transition.effects.contains(&Effect::StopTimer(Timer::Response)));
    assert!(!harness.session.is_timer_set(Timer::Response));

    harness.send_with_timeout(A, query(), 60_000);
    harness.wait(20);
    harness.send_with_timeout(B, query(), 60_000);
    let transitions = harness.wait_exactly(60);
    assert_response_overdue(&transitions, B);
}

#[test]
fn a_message_that_ends_or_escalates_the_session_starts_no_response_timer() {
    for body in [close("done"), withdraw(), escalate(None)] {
        let mut harness = SessionHarness::conversing();
        harness.send_with_timeout(A, body, 5000);
        assert!(!harness.session.is_timer_set(Timer::Response), "{}", harness.state());
    }
}

#[test]
fn a_late_timeout_call_expires_each_timer_in_order_at_its_own_time() {
    let mut harness = SessionHarness::conversing();
    harness.send_with_timeout(A, query(), 60_000);
    let transitions = harness.wait(1_000_000);
    assert_eq!(transitions.len(), 2);
    assert_response_overdue(&transitions[..1], A);
    assert_failed_by(&harness, &transitions[1..], Timer::Session, 8);
    assert_eq!(harness.outcome().ended_at, START + 3_600_000, "at the deadline, not at the late call");
}

#[test]
fn early_and_repeated_timeout_calls_change_nothing() {
    for harness in [
        SessionHarness::new(),
        SessionHarness::invited(),
        SessionHarness::identifying(),
        SessionHarness::introduced(),
        SessionHarness::conversing(),
        SessionHarness::agreeing(),
        SessionHarness::executing(),
        SessionHarness::escalated(),
    ] {
        let mut copy = harness.clone();
        for at in [UnixMillis::MIN, UnixMillis::new(0), START - 1, START, START, START + 29_999, START] {
            assert_eq!(copy.session.handle_timeout(at), [], "{} at {at}", harness.state());
            assert_eq!(copy.session, harness.session);
        }
        copy.wait(i64::from(u32::MAX));
        let ended = copy.session.clone();
        for at in [0, START.get(), i64::MAX] {
            assert_eq!(copy.session.handle_timeout(UnixMillis::new(at)), []);
            assert_eq!(copy.session, ended);
        }
    }
}

#[test]
fn no_timer_runs_after_the_session_ended() {
    for body in [close("done"), withdraw(), fatal()] {
        let mut harness = SessionHarness::conversing();
        harness.send_with_timeout(A, query(), 60_000);
        harness.send(B, body);
        assert!(harness.state().is_terminal());
        assert!(Timer::ALL.into_iter().all(|timer| !harness.session.is_timer_set(timer)));
        assert_eq!(harness.session.next_deadline(), None);
    }
}

fn assert_failed_by(harness: &SessionHarness, transitions: &[Transition], timer: Timer, row: u8) {
    let [transition] = transitions else { panic!("{transitions:?}") };
    assert_eq!((transition.to, transition.row_number), (State::Failed, row), "{transition:?}");
    assert!(
        transition.effects.contains(&Effect::TimerExpired { timer, awaiting_response: None }),
        "{transition:?}"
    );
    assert!(!transition.effects.contains(&Effect::Learn), "LEARN starts only after CLOSED");
    assert_eq!(harness.state(), State::Failed);
    assert_eq!(harness.outcome().ending, SessionEnding::TimedOut(timer));
    assert_eq!(harness.session.next_deadline(), None);
}

fn assert_response_overdue(transitions: &[Transition], waiting_side: Role) {
    let [transition] = transitions else { panic!("{transitions:?}") };
    assert_eq!(transition.from, transition.to);
    assert_eq!(
        transition.effects,
        [Effect::TimerExpired { timer: Timer::Response, awaiting_response: Some(waiting_side) }]
    );
}

/// Returns the effects about responses of a transition.
fn response_effects(transition: &Transition) -> Vec<Effect> {
    let is_about_responses =
        |effect: &&Effect| matches!(effect, Effect::ResponseReceived { .. } | Effect::ResponseMissed { .. });
    transition.effects.iter().filter(is_about_responses).cloned().collect()
}

fn received(due_at: Option<UnixMillis>, answered_at: UnixMillis) -> Effect {
    Effect::ResponseReceived { awaited_by: A, limit_ms: 60_000, due_at, answered_at }
}

#[test]
fn a_response_is_reported_with_the_time_when_it_was_due() {
    for (delay, is_overdue) in [(10, false), (70, true)] {
        let mut harness = SessionHarness::conversing();
        harness.send_with_timeout(A, query(), 60_000);
        harness.wait(delay);
        let awaited = harness.session.awaited_response().unwrap();
        assert_eq!((awaited.awaited_by, awaited.limit_ms), (A, 60_000));
        assert_eq!(awaited.overdue_since, is_overdue.then_some(START + 60_000));
        let transition = harness.send(B, observe());
        let expected = received(Some(START + 60_000), START + delay * 1000);
        assert_eq!(response_effects(&transition), [expected]);
        assert_eq!(harness.session.awaited_response(), None);
        assert_eq!(response_effects(&harness.send(B, observe())), [], "a response counts once");
    }
}

#[test]
fn a_response_while_the_timers_are_paused_is_not_late() {
    let mut harness = SessionHarness::conversing();
    harness.send_with_timeout(A, query(), 60_000);
    harness.send(A, escalate(None));
    harness.wait(1000);
    // The other side can only end the session now.
    let transition = harness.send(B, close("done"));
    assert_eq!(response_effects(&transition), [received(None, START + 1_000_000)]);
}

#[test]
fn a_response_is_missed_if_it_is_overdue_when_the_wait_ends() {
    let message_id = |harness: &SessionHarness| harness.session.awaited_response().unwrap().message_id;
    // The side that waits ends the session, asks again, or lets the session time out.
    for end in [close("enough"), query()] {
        for (delay, is_missed) in [(10, false), (70, true)] {
            let mut harness = SessionHarness::conversing();
            harness.send_with_timeout(A, query(), 60_000);
            let missed = Effect::ResponseMissed { awaited_by: A, message_id: message_id(&harness) };
            harness.wait(delay);
            let transition = harness.send_with_timeout(A, end.clone(), 60_000);
            let expected: Vec<_> = is_missed.then_some(missed).into_iter().collect();
            assert_eq!(response_effects(&transition), expected);
        }
    }
    let mut harness = SessionHarness::conversing();
    harness.send_with_timeout(A, query(), 60_000);
    let missed = Effect::ResponseMissed { awaited_by: A, message_id: message_id(&harness) };
    let transitions = harness.wait(10_000);
    assert_eq!(transitions.iter().flat_map(response_effects).collect::<Vec<_>>(), [missed]);
    assert_eq!(harness.session.awaited_response(), None);
    // The other side ends the session, which is a late response.
    let mut harness = SessionHarness::conversing();
    harness.send_with_timeout(A, query(), 60_000);
    harness.wait(70);
    let transition = harness.send(B, close("enough"));
    assert_eq!(response_effects(&transition), [received(Some(START + 60_000), START + 70_000)]);
}
