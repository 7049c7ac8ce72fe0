//! Cancelling, ending and stopping (§6.8; design, `sayso:session.stop`).

use aaep::consent::{Answer, By, Ignored, Link, NotAsked, NotGranted, Outcome, Said, Sender};
use serde_json::json;

use super::hub::*;

/// Two questions are open, one is accepted, one is of another session.
fn scene() -> Hub {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&clarification(2), &["ada"]);
    hub.ask(&confirmation(3), &["ada"]);
    hub.ask(&with(confirmation(4), &json!({"session_id": OTHER_SESSION})), &["ada"]);
    hub.answer("ada", 3, "accept", T0 + 1).unwrap();
    hub
}

fn assert_all_is_over(hub: &mut Hub, resolved: &[aaep::consent::Resolution], by: By) {
    let told: Vec<_> = resolved.iter().map(|it| (it.token.clone(), it.by)).collect();
    assert_eq!(told, [(token(1), by), (token(2), by)], "what was open, and nothing of another session");
    assert!(resolved.iter().all(|it| !it.is_accepted() && it.session == session()));
    assert_eq!(resolved[1].answer, Answer::Unavailable);
    for n in [1, 3] {
        assert_eq!(hub.answer("ada", n, "accept", T0 + 10).unwrap_err(), Ignored::Used, "tokens are dead");
    }
    let refused = hub.book.spend(&call(&session(), Some(&token(3)), None)).unwrap_err();
    assert_eq!(refused, NotGranted::SessionOver, "what was accepted covers nothing any more");
    let late = hub.try_ask(&confirmation(5), &["ada"], T0 + 10).unwrap_err();
    assert_eq!(late, NotAsked::SessionOver);
    assert!(hub.book.is_over(&session()) && hub.book.of_session(&session()).next().is_none());
    assert!(hub.answer("ada", 4, "accept", T0 + 10).unwrap().is_accepted(), "other sessions go on");
    assert_eq!(hub.wake(T0 + 1_000_000), []);
}

#[test]
fn the_end_of_a_session_cancels_its_questions() {
    let mut hub = scene();
    let decided = hub.book.end(&session(), T0 + 5);
    assert_eq!(decided.session_over(), Some(&session()));
    let resolved = resolutions(&hub.commit(decided));
    assert_all_is_over(&mut hub, &resolved, By::Cancelled);
    assert!(hub.book.end(&session(), T0 + 6).is_empty(), "once");
}

#[test]
fn the_person_can_stop_a_session() {
    let mut hub = scene();
    let outcomes = hub.say("ada", &stop("ada", T0 + 5), T0 + 6).unwrap();
    let resolved = resolutions(&outcomes);
    assert_eq!((resolved[0].principal.as_deref(), resolved[0].at), (Some("ada"), T0 + 6));
    let Some(Outcome::Stopped(stopped)) = outcomes.last() else { panic!("{outcomes:?}") };
    assert_eq!((&stopped.session, &stopped.subscription), (&session(), &sub("ada")));
    assert_eq!(
        (&*stopped.principal, stopped.reason.as_deref(), stopped.at),
        ("ada", Some("Enough."), T0 + 6)
    );
    assert_all_is_over(&mut hub, &resolved, By::Stopped);
}

#[test]
fn a_session_without_questions_can_be_stopped() {
    let mut hub = Hub::with(&["ada"]);
    assert!(matches!(hub.say("ada", &stop("ada", T0), T0).unwrap()[..], [Outcome::Stopped(_)]));
    assert_eq!(hub.say("ada", &stop("ada", T0), T0).unwrap_err(), Ignored::SessionOver);
}

#[test]
fn only_who_hears_a_session_can_stop_it() {
    let Said::Stop(wish) = Said::parse(&stop("ada", T0)).unwrap() else { panic!() };
    let (ada, bob) = (sub("ada"), sub("bob"));
    let cases = [
        ("ada", Link::Shared, false, Ignored::NotEntitled),
        ("bob", Link::Shared, true, Ignored::OtherIdentity),
        ("bob", Link::Of(&bob), true, Ignored::OtherConnection),
    ];
    for (principal, link, hears, why) in cases {
        let mut hub = scene();
        let before = hub.book.clone();
        let refused = hub.book.stop(&wish, &Sender { principal, link }, hears, T0 + 1).unwrap_err();
        assert_eq!(refused, why);
        assert!(hub.book == before);
    }
    assert!(
        scene().book.stop(&wish, &Sender { principal: "ada", link: Link::Of(&ada) }, true, T0 + 1).is_ok()
    );
}

#[test]
fn a_question_that_is_withdrawn_is_refused_and_its_token_dead() {
    let mut hub = scene();
    let decided = hub.book.cancel(&token(1), T0 + 5).unwrap();
    let resolved = resolution(&hub.commit(decided));
    assert_eq!((resolved.by, resolved.is_accepted()), (By::Cancelled, false));
    assert_eq!(hub.answer("ada", 1, "accept", T0 + 6).unwrap_err(), Ignored::Used);
    assert_eq!(hub.book.cancel(&token(1), T0 + 7).unwrap_err(), Ignored::Used);
    assert_eq!(hub.book.cancel(&token(3), T0 + 7).unwrap_err(), Ignored::Used, "accepted before");
    assert_eq!(hub.book.cancel(&token(9), T0 + 7).unwrap_err(), Ignored::Unknown);
}

#[test]
fn a_long_session_keeps_only_so_many_resolved_questions() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(0), &["ada"]);
    hub.answer("ada", 0, "accept", T0 + 1).unwrap();
    for n in 1..=200 {
        hub.ask(&confirmation(n), &["ada"]);
        hub.answer("ada", n, "reject", T0 + 1).unwrap();
    }
    assert_eq!(hub.book.of_session(&session()).count(), 64);
    assert_eq!(
        hub.answer("ada", 1, "accept", T0 + 2).unwrap_err(),
        Ignored::Used,
        "it is still known as used"
    );
    let gone = hub.book.spend(&call(&session(), Some(&token(1)), None)).unwrap_err();
    assert_eq!(gone, NotGranted::Gone);
    assert!(hub.spend(&call(&session(), Some(&token(0)), None)).is_ok(), "what can be used is kept longest");
}
