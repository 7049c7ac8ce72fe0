//! Timing: defaults at the deadline, reminders before the deadline, and extensions of the deadline.

use aaep::consent::{ConsentOutcome, IgnoreReason, QuestionAnswer, ReminderThreshold, ResolvedBy};
use aaep::event::Decision;
use seal::UnixMillis;
use serde_json::json;

use super::consent_hub::*;

fn reminders(outcomes: &[ConsentOutcome]) -> Vec<(ReminderThreshold, i64)> {
    let threshold_and_remaining = |outcome: &ConsentOutcome| match outcome {
        ConsentOutcome::Reminder(reminder) => Some((reminder.threshold, reminder.remaining_ms)),
        _ => None,
    };
    outcomes.iter().filter_map(threshold_and_remaining).collect()
}

fn hub_with_question(event: &serde_json::Value) -> ConsentHub {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(event, &["ada"]);
    hub
}

fn deadline(hub: &ConsentHub) -> UnixMillis {
    hub.registry.question(&token(1)).unwrap().deadline
}

#[test]
fn the_default_applies_at_the_deadline_and_not_before() {
    for (event, seconds, accepted) in [(confirmation(1), 180, false), (harmless_confirmation(1), 30, true)] {
        let mut hub = hub_with_question(&event);
        let deadline = T0 + seconds * 1000;
        assert!(resolutions(&hub.wake(deadline - 1)).is_empty());
        let resolved = resolution(&hub.wake(deadline));
        assert_eq!(
            (resolved.resolved_by, resolved.is_accepted(), resolved.replied_at),
            (ResolvedBy::Timeout, accepted, None)
        );
        assert!(hub.wake(deadline).is_empty() && hub.wake(deadline + 86_400_000).is_empty(), "only once");
        assert_eq!(hub.answer("ada", 1, "accept", deadline - 1).unwrap_err(), IgnoreReason::AlreadyResolved);
    }
}

#[test]
fn the_timeout_starts_at_the_event_timestamp() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.try_ask(&confirmation(1), &["ada"], T0 + 100_000).unwrap();
    assert_eq!(deadline(&hub), T0 + 180_000);
}

#[test]
fn one_reminder_is_sent_when_half_and_one_when_a_tenth_of_the_time_remains() {
    let mut hub = hub_with_question(&confirmation(1));
    assert_eq!(hub.wake(T0 + 89_999), []);
    assert_eq!(reminders(&hub.wake(T0 + 90_000)), [(ReminderThreshold::Half, 90_000)]);
    assert_eq!(hub.registry.next_deadline(), Some(T0 + 162_000));
    assert_eq!(hub.wake(T0 + 161_999), []);
    assert_eq!(reminders(&hub.wake(T0 + 162_500)), [(ReminderThreshold::Tenth, 17_500)]);
    assert_eq!(hub.wake(T0 + 170_000), []);
    assert_eq!(hub.registry.next_deadline(), Some(T0 + 180_000));
}

#[test]
fn a_late_wake_sends_only_the_current_reminder() {
    let mut hub = hub_with_question(&confirmation(1));
    assert_eq!(reminders(&hub.wake(T0 + 170_000)), [(ReminderThreshold::Tenth, 10_000)]);
    assert_eq!(hub.wake(T0 + 170_001), []);
    let mut hub = hub_with_question(&confirmation(1));
    assert_eq!(hub.wake(T0 + 180_000).len(), 1, "only the timeout");
}

#[test]
fn no_reminder_is_sent_with_less_than_five_seconds_left() {
    assert_eq!(aaep::consent::MIN_REMINDER_MILLIS, 5_000);
    for (seconds, expected) in [
        (9, &[][..]),
        (10, &[(ReminderThreshold::Half, 5_000)]),
        (30, &[(ReminderThreshold::Half, 15_000)]),
        (49, &[(ReminderThreshold::Half, 24_500)]),
        (50, &[(ReminderThreshold::Half, 25_000), (ReminderThreshold::Tenth, 5_000)]),
        (60, &[(ReminderThreshold::Half, 30_000), (ReminderThreshold::Tenth, 6_000)]),
    ] {
        let mut hub = hub_with_question(&with(confirmation(1), &json!({"timeout_seconds": seconds})));
        let outcomes: Vec<_> =
            (1..seconds * 2).flat_map(|half_second| hub.wake(T0 + half_second * 500)).collect();
        assert_eq!(reminders(&outcomes), expected, "{seconds}");
    }
}

#[test]
fn an_extension_gives_a_short_question_a_second_reminder() {
    let mut hub = hub_with_question(&with(confirmation(1), &json!({"timeout_seconds": 30})));
    assert_eq!(reminders(&hub.wake(T0 + 15_000)), [(ReminderThreshold::Half, 15_000)]);
    hub.send("ada", &extend_request(1, "ada", None, T0 + 20_000), T0 + 20_000).unwrap();
    let outcomes: Vec<_> = (21..60).flat_map(|second| hub.wake(T0 + second * 1000)).collect();
    assert_eq!(reminders(&outcomes), [(ReminderThreshold::Half, 30_000), (ReminderThreshold::Tenth, 6_000)]);
}

#[test]
fn a_deadline_can_be_extended_to_ten_times_the_timeout() {
    let mut hub = hub_with_question(&confirmation(1));
    let mut now = T0;
    for factor in 2..=10 {
        now = deadline(&hub) - 1;
        let outcomes = hub.send("ada", &extend_request(1, "ada", None, now), now).unwrap();
        let [ConsentOutcome::DeadlineExtended(extended)] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!(extended.deadline, T0 + factor * 180_000);
        assert_eq!(deadline(&hub), extended.deadline);
    }
    let before = hub.registry.clone();
    let extension = hub.send("ada", &extend_request(1, "ada", Some(1), now), now);
    assert_eq!(extension.unwrap_err(), IgnoreReason::ExtensionExhausted);
    assert!(hub.registry == before);
    assert!(hub.answer("ada", 1, "accept", T0 + 1_799_999).unwrap().is_accepted());
}

#[test]
fn an_extension_can_request_a_number_of_seconds() {
    let mut hub = hub_with_question(&confirmation(1));
    hub.send("ada", &extend_request(1, "ada", Some(5), T0 + 1), T0 + 1).unwrap();
    assert_eq!(deadline(&hub), T0 + 185_000);
    hub.send("ada", &extend_request(1, "ada", Some(864_000), T0 + 2), T0 + 2).unwrap();
    assert_eq!(deadline(&hub), T0 + 1_800_000, "capped at the maximum");
    let resolved = resolution(&hub.wake(T0 + 1_800_000));
    assert_eq!(
        (resolved.answer, resolved.resolved_by),
        (QuestionAnswer::Decision(Decision::Reject), ResolvedBy::Timeout)
    );
}

#[test]
fn only_an_entitled_listener_can_extend_and_only_before_the_deadline() {
    let cases = [
        ("bob", extend_request(1, "bob", None, T0 + 1), T0 + 1, "not_entitled"),
        ("bob", extend_request(1, "ada", None, T0 + 1), T0 + 1, "other_identity"),
        ("eve", extend_request(1, "eve", None, T0 + 1), T0 + 1, "no_subscription"),
        ("ada", extend_request(9, "ada", None, T0 + 1), T0 + 1, "unknown"),
        ("ada", extend_request(1, "ada", None, T0 + 1), T0 + 180_000, "late"),
        ("ada", extend_request(1, "ada", None, T0 + 180_000), T0 + 1, "late_stamp"),
        ("ada", extend_request(1, "ada", Some(0), T0 + 1), T0 + 1, "malformed"),
        ("ada", extend_request(1, "ada", Some(864_001), T0 + 1), T0 + 1, "malformed"),
    ];
    for (listener, text, now, reason) in cases {
        let mut hub = hub_with_question(&confirmation(1));
        let before = hub.registry.clone();
        assert_eq!(hub.send(listener, &text, now).unwrap_err().as_str(), reason);
        assert!(hub.registry == before, "{reason}");
    }
    let mut hub = hub_with_question(&confirmation(1));
    hub.answer("ada", 1, "reject", T0 + 1).unwrap();
    assert_eq!(
        hub.send("ada", &extend_request(1, "ada", None, T0 + 2), T0 + 2).unwrap_err(),
        IgnoreReason::AlreadyResolved
    );
}

#[test]
fn reminders_are_sent_again_after_an_extension() {
    let mut hub = hub_with_question(&confirmation(1));
    hub.wake(T0 + 90_000);
    hub.wake(T0 + 162_000);
    let now = T0 + 170_000;
    hub.send("ada", &extend_request(1, "ada", None, now), now).unwrap();
    assert_eq!(hub.registry.next_deadline(), Some(T0 + 180_000), "half of the doubled time");
    assert_eq!(reminders(&hub.wake(T0 + 180_000)), [(ReminderThreshold::Half, 180_000)]);
    assert_eq!(reminders(&hub.wake(T0 + 324_000)), [(ReminderThreshold::Tenth, 36_000)]);
    assert_eq!(resolution(&hub.wake(T0 + 360_000)).resolved_by, ResolvedBy::Timeout);
}

#[test]
fn next_deadline_is_the_earliest_time_at_which_a_question_needs_attention() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    assert_eq!(hub.registry.next_deadline(), None);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&harmless_confirmation(2), &["ada"]);
    assert_eq!(hub.registry.next_deadline(), Some(T0 + 15_000), "half the timeout of question 2");
    let staged = hub.registry.subscription_lost(&sub("ada"), T0, 10_000);
    assert_eq!(staged.resolutions().count(), 1);
    hub.commit(staged);
    assert_eq!(hub.registry.next_deadline(), Some(T0 + 10_000));
    hub.wake(T0 + 10_000);
    assert_eq!(hub.registry.next_deadline(), None);
}
