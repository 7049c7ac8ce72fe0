//! What runs out, when, and what does not (D9).

use asp::Level;
use asp::machine::{Role, State, Timer};
use asp::session::{Effect, Ending, Step};
use seal::UnixMillis;

use crate::session::life::*;

#[test]
fn an_invitation_without_a_time_of_its_own_lasts_thirty_seconds() {
    let mut life = Life::invited();
    assert_eq!(life.session.next_deadline(), Some(START + 30_000));
    let timer = Effect::StartTimer { timer: Timer::Invitation, at: START + 30_000 };
    assert_eq!(life.effects, [Effect::OpenChannel, timer]);
    let steps = life.wait_exactly(30);
    failed_by(&life, &steps, Timer::Invitation, 3);
    assert_eq!(life.outcome().at, START + 30_000);
}

#[test]
fn valid_until_says_how_long_an_invitation_lasts() {
    for seconds in [5, 90] {
        let mut life = Life::new().after(&[(A, invitation("{}", Some(START + seconds * 1000)))]);
        let steps = life.wait_exactly(seconds);
        failed_by(&life, &steps, Timer::Invitation, 3);
    }
}

#[test]
fn the_invitation_runs_until_both_sides_are_known() {
    let mut life = Life::identifying();
    life.wait(29);
    life.say(B, inform("identity"));
    assert_eq!(life.session.deadline(Timer::Invitation), Some(START + 30_000));

    let mut late = life.clone();
    let steps = late.wait_exactly(1);
    failed_by(&late, &steps, Timer::Invitation, 3);

    let step = life.say(A, inform("identity"));
    assert_eq!((step.row, step.to), (2, State::Introduced));
    assert!(step.effects.contains(&Effect::RecordIdentities));
    assert!(step.effects.contains(&Effect::StopTimer(Timer::Invitation)));
    assert_eq!(life.session.next_deadline(), None);
    assert_eq!(life.wait(1_000_000), []);
    assert_eq!(life.state(), State::Introduced);
}

#[test]
fn a_session_lasts_an_hour_from_when_it_converses() {
    for body in [offer("prop_1"), query(), inform("answer"), observe()] {
        let mut life = Life::introduced();
        life.wait(100);
        let step = life.say(B, body);
        assert_eq!((step.row, step.to), (4, State::Conversing));
        assert!(step.effects.contains(&Effect::Enable([Level::Standard; 2])));
        assert_eq!(life.session.deadline(Timer::Session), Some(START + 3_700_000));
        let steps = life.wait_exactly(3600);
        failed_by(&life, &steps, Timer::Session, 8);
        assert!(life.outcome().reason.starts_with("timeout"), "{}", life.outcome().reason);
    }
}

#[test]
fn the_terms_of_the_invitation_say_how_long_a_session_lasts() {
    for (terms, seconds) in
        [(r#"{"proposed_duration":120}"#, 120), (r#"{"proposedDuration":120000}"#, 120), ("{}", 3600)]
    {
        let mut life = Life::new().after(&[
            (A, invitation(terms, None)),
            (B, accept("prop_inv")),
            (B, inform("identity")),
            (A, inform("identity")),
            (A, query()),
        ]);
        let steps = life.wait_exactly(seconds);
        failed_by(&life, &steps, Timer::Session, 8);
    }
}

#[test]
fn the_duration_of_another_proposal_means_nothing_to_the_session() {
    let mut life = Life::introduced();
    life.say(A, propose("prop_1", "service-agreement", r#"{"proposed_duration":5}"#, None));
    assert_eq!(life.session.deadline(Timer::Session), Some(START + 3_600_000));
}

#[test]
fn the_session_runs_on_through_agreeing_and_executing() {
    let mut life = Life::conversing();
    for round in 0..3 {
        life.wait(100);
        let name = format!("cmt_{round}");
        life.say(A, commit(&name, &[(SELLER, 1000)], None));
        life.say(B, reject(&name));
    }
    assert_eq!(life.session.deadline(Timer::Session), Some(START + 3_600_000), "begun once");

    let mut agreeing = Life::agreeing();
    let steps = agreeing.wait_exactly(3600);
    failed_by(&agreeing, &steps, Timer::Session, 18);

    let mut executing = Life::executing();
    let steps = executing.wait_exactly(3600);
    failed_by(&executing, &steps, Timer::Session, 18);
}

#[test]
fn an_escalation_waits_an_hour_or_as_long_as_it_says() {
    for (given, seconds) in [(None, 3600), (Some(7), 7), (Some(90_000), 90_000)] {
        let mut life = Life::conversing();
        life.say(B, escalate(given));
        assert_eq!(life.session.next_deadline(), Some(START + seconds * 1000));
        let steps = life.wait_exactly(seconds);
        failed_by(&life, &steps, Timer::Escalation, 18);
    }
}

#[test]
fn the_other_clocks_stand_still_while_somebody_decides() {
    let invited = Life::identifying();
    let conversing = Life::conversing();
    let agreeing = Life::agreeing();
    let executing = Life::executing();
    for (mut life, timer) in [
        (invited, Timer::Invitation),
        (conversing, Timer::Session),
        (agreeing, Timer::Session),
        (executing, Timer::Session),
    ] {
        life.wait(10);
        let state = life.state();
        let deadline = life.session.deadline(timer).unwrap();
        let step = life.say(B, escalate(Some(50_000)));
        assert!(step.effects.contains(&Effect::FreezeTimers));
        assert_eq!(life.session.deadline(timer), None, "{state}");
        assert!(life.session.has_timer(timer), "{state}");
        assert_eq!(life.wait(49_000), [], "{state}");

        let step = life.say(B, inform("resolution"));
        assert!(step.effects.contains(&Effect::ThawTimers));
        assert!(step.effects.contains(&Effect::StopTimer(Timer::Escalation)));
        assert_eq!(life.state(), state);
        assert!(!life.session.has_timer(Timer::Escalation));
        assert_eq!(life.session.deadline(timer), Some(deadline + 49_000_000), "{state}");
        let left = (deadline + 49_000_000 - life.now) / 1000;
        let steps = life.wait_exactly(left);
        assert_eq!(steps.len(), 1);
        assert_eq!(life.outcome().ending, Ending::TimedOut(timer));
    }
}

#[test]
fn the_response_clock_stands_still_too() {
    let mut life = Life::conversing();
    life.say_within(A, query(), 60_000);
    life.wait(10);
    life.say(A, escalate(None));
    assert_eq!(life.session.deadline(Timer::Response), None);
    assert_eq!(life.wait(1000), []);
    life.say(A, inform("resolution"));
    let steps = life.wait_exactly(50);
    overdue(&steps, A);
    assert_eq!(life.state(), State::Conversing);
}

#[test]
fn an_overdue_response_is_told_to_the_waiting_side_and_moves_nothing() {
    for (mut life, waiting, body) in [
        (Life::new(), A, invitation("{}", None)),
        (Life::conversing(), B, query()),
        (Life::agreeing(), A, clarify()),
        (Life::executing(), B, inform("progress")),
    ] {
        let step = life.say_within(waiting, body, 5000);
        let started = Effect::StartTimer { timer: Timer::Response, at: START + 5000 };
        assert!(step.effects.contains(&started), "{step:?}");
        let state = life.state();
        let steps = life.wait_exactly(5);
        overdue(&steps, waiting);
        assert_eq!(life.state(), state);
        assert!(life.session.outcome().is_none());
        assert!(!life.session.has_timer(Timer::Response));
        assert_eq!(life.wake(), [], "told once");
    }
}

#[test]
fn a_commitment_can_set_a_time_for_its_answer() {
    let mut life = Life::conversing();
    life.say_within(B, commit("cmt_1", &[(SELLER, 1000)], None), 5000);
    assert_eq!(life.state(), State::Agreeing);
    let steps = life.wait_exactly(5);
    overdue(&steps, B);
    life.say(A, accept("cmt_1"));
    assert_eq!(life.state(), State::Executing, "an answer that is late is still one");
}

#[test]
fn only_the_other_side_answers() {
    let mut life = Life::conversing();
    life.say_within(A, query(), 60_000);
    life.say(A, observe());
    assert_eq!(life.session.deadline(Timer::Response), Some(START + 60_000));
    let step = life.say(B, observe());
    assert!(step.effects.contains(&Effect::StopTimer(Timer::Response)));
    assert!(!life.session.has_timer(Timer::Response));

    life.say_within(A, query(), 60_000);
    life.wait(20);
    life.say_within(B, query(), 60_000);
    let steps = life.wait_exactly(60);
    overdue(&steps, B);
}

#[test]
fn a_message_that_ends_or_pauses_the_session_sets_no_time_for_an_answer() {
    for body in [close("done"), withdraw(), escalate(None)] {
        let mut life = Life::conversing();
        life.say_within(A, body, 5000);
        assert!(!life.session.has_timer(Timer::Response), "{}", life.state());
    }
}

#[test]
fn a_late_wake_up_lets_each_timer_run_out_in_its_turn_at_its_own_time() {
    let mut life = Life::conversing();
    life.say_within(A, query(), 60_000);
    let steps = life.wait(1_000_000);
    assert_eq!(steps.len(), 2);
    overdue(&steps[..1], A);
    failed_by(&life, &steps[1..], Timer::Session, 8);
    assert_eq!(life.outcome().at, START + 3_600_000, "when it ran out, not when somebody noticed");
}

#[test]
fn to_wake_it_early_or_again_does_no_harm() {
    for life in [
        Life::new(),
        Life::invited(),
        Life::identifying(),
        Life::introduced(),
        Life::conversing(),
        Life::agreeing(),
        Life::executing(),
        Life::escalated(),
    ] {
        let mut woken = life.clone();
        for at in [UnixMillis::MIN, UnixMillis::new(0), START - 1, START, START, START + 29_999, START] {
            assert_eq!(woken.session.wake(at), [], "{} at {at}", life.state());
            assert_eq!(woken.session, life.session);
        }
        woken.wait(i64::from(u32::MAX));
        let ended = woken.session.clone();
        for at in [0, START.get(), i64::MAX] {
            assert_eq!(woken.session.wake(UnixMillis::new(at)), []);
            assert_eq!(woken.session, ended);
        }
    }
}

#[test]
fn nothing_runs_after_the_end() {
    for body in [close("done"), withdraw(), fatal()] {
        let mut life = Life::conversing();
        life.say_within(A, query(), 60_000);
        life.say(B, body);
        assert!(life.state().is_terminal());
        assert!(Timer::ALL.into_iter().all(|timer| !life.session.has_timer(timer)));
        assert_eq!(life.session.next_deadline(), None);
    }
}

fn failed_by(life: &Life, steps: &[Step], timer: Timer, row: u8) {
    let [step] = steps else { panic!("{steps:?}") };
    assert_eq!((step.to, step.row), (State::Failed, row), "{step:?}");
    assert!(step.effects.contains(&Effect::Expired { timer, waiting: None }), "{step:?}");
    assert!(!step.effects.contains(&Effect::Learn), "LEARN runs after CLOSED");
    assert_eq!(life.state(), State::Failed);
    assert_eq!(life.outcome().ending, Ending::TimedOut(timer));
    assert_eq!(life.session.next_deadline(), None);
}

fn overdue(steps: &[Step], waiting: Role) {
    let [step] = steps else { panic!("{steps:?}") };
    assert_eq!(step.from, step.to);
    assert_eq!(step.effects, [Effect::Expired { timer: Timer::Response, waiting: Some(waiting) }]);
}
