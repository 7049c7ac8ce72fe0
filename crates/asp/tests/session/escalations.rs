//! What is preserved while somebody outside decides (D10).

use asp::Code;
use asp::machine::{Role, State, Timer};
use asp::message::Urgency;
use asp::session::{Effect, Ending};

use crate::session::life::*;

/// A session in each place that an escalation can leave, with something there to be lost.
fn places() -> Vec<(&'static str, Life)> {
    let mut waiting = Life::conversing();
    waiting.say(B, offer("prop_1"));
    waiting.say_within(A, query(), 60_000);
    vec![
        ("unanswered", Life::invited()),
        ("identifying", Life::identifying()),
        ("one is known", Life::identifying().after(&[(B, inform("identity"))])),
        ("introduced", Life::introduced()),
        ("a proposal is open, a response awaited", waiting),
        ("a commitment is pending", Life::agreeing()),
        ("agreed", Life::executing()),
        ("half done", Life::executing().after(&[(B, inform("result")), (A, close("done"))])),
    ]
}

#[test]
fn a_resolution_leads_back_with_everything_preserved() {
    for (place, before) in places() {
        let mut life = before.clone();
        let step = life.say(A, escalate(None));
        assert_eq!((step.from, step.to), (before.state(), State::Escalated), "{place}");
        let told = Effect::NotifyHandler {
            by: A,
            handler: None,
            reason: "too dear".to_owned(),
            urgency: Urgency::High,
        };
        assert!(step.effects.contains(&told), "{place}");
        assert_eq!(life.session.commitment(), before.session.commitment(), "{place}");
        let step = life.say(A, inform("resolution"));
        assert_eq!((step.row, step.from, step.to), (14, State::Escalated, before.state()), "{place}");
        assert_eq!(life.session, before.session, "{place}");
    }
}

#[test]
fn the_clocks_have_as_much_left_as_before() {
    for (place, before) in places() {
        let mut life = before.clone();
        life.say(A, escalate(Some(5000)));
        life.wait(4000);
        life.say(A, inform("resolution"));
        for timer in Timer::ALL {
            let later = before.session.deadline(timer).map(|at| at + 4_000_000);
            assert_eq!(life.session.deadline(timer), later, "{place}: {timer}");
        }
    }
}

#[test]
fn life_goes_on_where_it_was() {
    let away = |mut life: Life| {
        life.say(B, escalate(None));
        life.wait(100);
        life.say(B, inform("resolution"));
        life
    };

    let mut life = away(Life::invited());
    assert_eq!(life.refused(A, inform("identity")), Code::InvalidStateTransition, "still unanswered");
    life.say(B, accept("prop_inv"));

    let mut life = away(Life::identifying().after(&[(A, inform("identity"))]));
    assert_eq!(life.refused(A, inform("identity")), Code::Duplicate);
    assert_eq!(life.say(B, inform("identity")).to, State::Introduced);

    let mut life = away(Life::agreeing());
    assert_eq!(life.refused(A, accept("cmt_1")), Code::Unauthorized);
    assert_eq!(life.say(B, accept("cmt_1")).to, State::Executing);

    let mut life = away(Life::executing().after(&[(A, close("done"))]));
    assert_eq!(life.say(B, close("done")).to, State::Closed);
    assert_eq!(life.outcome().ending, Ending::Completed);
}

#[test]
fn only_the_side_that_escalated_tells_the_resolution() {
    for by in Role::ALL {
        let mut life = Life::conversing();
        life.say(by, escalate(None));
        assert_eq!(life.refused(by.other(), inform("resolution")), Code::Unauthorized);
        assert_eq!(life.refused(by, inform("progress")), Code::InvalidStateTransition);
        assert_eq!(life.refused(by, escalate(None)), Code::InvalidStateTransition);
        assert_eq!(life.say(by, inform("resolution")).to, State::Conversing);
    }
}

#[test]
fn a_session_can_be_escalated_again_by_the_other_side() {
    let mut life = Life::executing();
    for by in [A, B, A] {
        life.say(by, escalate(None));
        life.wait(1000);
        life.say(by, inform("resolution"));
        assert_eq!(life.state(), State::Executing);
    }
    assert_eq!(life.session.deadline(Timer::Session), Some(START + 3_600_000 + 3_000_000));
}

#[test]
fn an_escalation_that_nobody_decides_fails_the_session_wherever_it_came_from() {
    for (place, mut life) in places() {
        life.say(A, escalate(Some(10)));
        life.wait_exactly(10);
        assert_eq!(life.state(), State::Failed, "{place}");
        assert_eq!(life.outcome().ending, Ending::TimedOut(Timer::Escalation), "{place}");
    }
}
