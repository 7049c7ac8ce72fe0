//! Time: defaults when it is over, reminders before, and more of it for the person.

use aaep::consent::{Answer, By, Ignored, Left, Outcome};
use aaep::event::Decision;
use seal::UnixMillis;
use serde_json::json;

use super::hub::*;

fn reminders(outcomes: &[Outcome]) -> Vec<(Left, i64)> {
    let told = |outcome: &Outcome| match outcome {
        Outcome::Reminder(reminder) => Some((reminder.left, reminder.remaining)),
        _ => None,
    };
    outcomes.iter().filter_map(told).collect()
}

fn asked(event: &serde_json::Value) -> Hub {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(event, &["ada"]);
    hub
}

fn deadline(hub: &Hub) -> UnixMillis {
    hub.book.question(&token(1)).unwrap().deadline
}

#[test]
fn the_default_holds_when_time_is_over_and_not_before() {
    for (event, seconds, accepted) in [(confirmation(1), 180, false), (harmless(1), 30, true)] {
        let mut hub = asked(&event);
        let over = T0 + seconds * 1000;
        assert!(resolutions(&hub.wake(over - 1)).is_empty());
        let resolved = resolution(&hub.wake(over));
        assert_eq!((resolved.by, resolved.is_accepted(), resolved.replied), (By::Timeout, accepted, None));
        assert!(hub.wake(over).is_empty() && hub.wake(over + 86_400_000).is_empty(), "once");
        assert_eq!(hub.answer("ada", 1, "accept", over - 1).unwrap_err(), Ignored::Used);
    }
}

#[test]
fn time_runs_from_the_events_own_time() {
    let mut hub = Hub::with(&["ada"]);
    hub.try_ask(&confirmation(1), &["ada"], T0 + 100_000).unwrap();
    assert_eq!(deadline(&hub), T0 + 180_000);
}

#[test]
fn people_are_reminded_at_half_and_at_a_tenth_once() {
    let mut hub = asked(&confirmation(1));
    assert_eq!(hub.wake(T0 + 89_999), []);
    assert_eq!(reminders(&hub.wake(T0 + 90_000)), [(Left::Half, 90_000)]);
    assert_eq!(hub.book.next_deadline(), Some(T0 + 162_000));
    assert_eq!(hub.wake(T0 + 161_999), []);
    assert_eq!(reminders(&hub.wake(T0 + 162_500)), [(Left::Tenth, 17_500)]);
    assert_eq!(hub.wake(T0 + 170_000), []);
    assert_eq!(hub.book.next_deadline(), Some(T0 + 180_000));
}

#[test]
fn late_reminders_say_what_is_still_true() {
    let mut hub = asked(&confirmation(1));
    assert_eq!(reminders(&hub.wake(T0 + 170_000)), [(Left::Tenth, 10_000)]);
    assert_eq!(hub.wake(T0 + 170_001), []);
    let mut hub = asked(&confirmation(1));
    assert_eq!(hub.wake(T0 + 180_000).len(), 1, "only that it is over");
}

#[test]
fn nobody_is_reminded_when_less_than_five_seconds_are_left() {
    assert_eq!(aaep::consent::SHORTEST_REMINDER, 5_000);
    for (seconds, expected) in [
        (9, &[][..]),
        (10, &[(Left::Half, 5_000)]),
        (30, &[(Left::Half, 15_000)]),
        (49, &[(Left::Half, 24_500)]),
        (50, &[(Left::Half, 25_000), (Left::Tenth, 5_000)]),
        (60, &[(Left::Half, 30_000), (Left::Tenth, 6_000)]),
    ] {
        let mut hub = asked(&with(confirmation(1), &json!({"timeout_seconds": seconds})));
        let told: Vec<_> = (1..seconds * 2).flat_map(|half| hub.wake(T0 + half * 500)).collect();
        assert_eq!(reminders(&told), expected, "{seconds}");
    }
}

#[test]
fn more_time_makes_a_short_question_one_that_is_reminded_of_twice() {
    let mut hub = asked(&with(confirmation(1), &json!({"timeout_seconds": 30})));
    assert_eq!(reminders(&hub.wake(T0 + 15_000)), [(Left::Half, 15_000)]);
    hub.say("ada", &extend(1, "ada", None, T0 + 20_000), T0 + 20_000).unwrap();
    let told: Vec<_> = (21..60).flat_map(|second| hub.wake(T0 + second * 1000)).collect();
    assert_eq!(reminders(&told), [(Left::Half, 30_000), (Left::Tenth, 6_000)]);
}

#[test]
fn a_person_gets_more_time_up_to_ten_times_the_first() {
    let mut hub = asked(&confirmation(1));
    let mut now = T0;
    for times in 2..=10 {
        now = deadline(&hub) - 1;
        let outcomes = hub.say("ada", &extend(1, "ada", None, now), now).unwrap();
        let [Outcome::Extended(extended)] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!(extended.deadline, T0 + times * 180_000);
        assert_eq!(deadline(&hub), extended.deadline);
    }
    let before = hub.book.clone();
    let more = hub.say("ada", &extend(1, "ada", Some(1), now), now);
    assert_eq!(more.unwrap_err(), Ignored::NoMoreTime);
    assert!(hub.book == before);
    assert!(hub.answer("ada", 1, "accept", T0 + 1_799_999).unwrap().is_accepted());
}

#[test]
fn a_person_may_say_how_much_more() {
    let mut hub = asked(&confirmation(1));
    hub.say("ada", &extend(1, "ada", Some(5), T0 + 1), T0 + 1).unwrap();
    assert_eq!(deadline(&hub), T0 + 185_000);
    hub.say("ada", &extend(1, "ada", Some(864_000), T0 + 2), T0 + 2).unwrap();
    assert_eq!(deadline(&hub), T0 + 1_800_000, "and no more than there is");
    let resolved = resolution(&hub.wake(T0 + 1_800_000));
    assert_eq!((resolved.answer, resolved.by), (Answer::Decision(Decision::Reject), By::Timeout));
}

#[test]
fn more_time_is_for_those_who_may_answer_while_they_can() {
    let cases = [
        ("bob", extend(1, "bob", None, T0 + 1), T0 + 1, "not_entitled"),
        ("bob", extend(1, "ada", None, T0 + 1), T0 + 1, "other_identity"),
        ("eve", extend(1, "eve", None, T0 + 1), T0 + 1, "no_subscription"),
        ("ada", extend(9, "ada", None, T0 + 1), T0 + 1, "unknown"),
        ("ada", extend(1, "ada", None, T0 + 1), T0 + 180_000, "late"),
        ("ada", extend(1, "ada", None, T0 + 180_000), T0 + 1, "late_stamp"),
        ("ada", extend(1, "ada", Some(0), T0 + 1), T0 + 1, "malformed"),
        ("ada", extend(1, "ada", Some(864_001), T0 + 1), T0 + 1, "malformed"),
    ];
    for (who, text, now, why) in cases {
        let mut hub = asked(&confirmation(1));
        let before = hub.book.clone();
        assert_eq!(hub.say(who, &text, now).unwrap_err().as_str(), why);
        assert!(hub.book == before, "{why}");
    }
    let mut hub = asked(&confirmation(1));
    hub.answer("ada", 1, "reject", T0 + 1).unwrap();
    assert_eq!(hub.say("ada", &extend(1, "ada", None, T0 + 2), T0 + 2).unwrap_err(), Ignored::Used);
}

#[test]
fn who_has_more_time_is_reminded_again_when_it_runs_out() {
    let mut hub = asked(&confirmation(1));
    hub.wake(T0 + 90_000);
    hub.wake(T0 + 162_000);
    let now = T0 + 170_000;
    hub.say("ada", &extend(1, "ada", None, now), now).unwrap();
    assert_eq!(hub.book.next_deadline(), Some(T0 + 180_000), "half of twice the time");
    assert_eq!(reminders(&hub.wake(T0 + 180_000)), [(Left::Half, 180_000)]);
    assert_eq!(reminders(&hub.wake(T0 + 324_000)), [(Left::Tenth, 36_000)]);
    assert_eq!(resolution(&hub.wake(T0 + 360_000)).by, By::Timeout);
}

#[test]
fn the_next_deadline_is_the_earliest_of_all() {
    let mut hub = Hub::with(&["ada"]);
    assert_eq!(hub.book.next_deadline(), None);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&harmless(2), &["ada"]);
    assert_eq!(hub.book.next_deadline(), Some(T0 + 15_000), "half of its time");
    let decided = hub.book.subscription_lost(&sub("ada"), T0, 10_000);
    assert_eq!(decided.resolutions().count(), 1);
    hub.commit(decided);
    assert_eq!(hub.book.next_deadline(), Some(T0 + 10_000));
    hub.wake(T0 + 10_000);
    assert_eq!(hub.book.next_deadline(), None);
}
