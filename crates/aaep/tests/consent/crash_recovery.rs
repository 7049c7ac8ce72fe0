//! After a crash, open questions stay open, decisions stay decided, and expired questions take their default.

use std::hash::BuildHasherDefault;

use aaep::consent::{
    AskError, ConsentLimits, IgnoreReason, Question, QuestionAnswer, QuestionRegistry, QuestionStatus,
    ResolvedBy, SpendError,
};
use aaep::event::Decision;
use seal::UnixMillis;
use serde_json::json;

use super::consent_hub::*;

const RESUME_WINDOW_MS: i64 = 30_000;

/// Returns the hub restored from its records, with these listeners reconnected.
fn restart(hub: &ConsentHub, reconnected: &[&str], now: UnixMillis) -> ConsentHub {
    let records: Vec<String> = hub.registry.questions().map(Question::to_record).collect();
    let questions: Vec<Question> =
        records.iter().map(|record| Question::parse_record(record).expect(record)).collect();
    assert!(questions.iter().eq(hub.registry.questions()), "records are lossless");
    let mut registry = QuestionRegistry::restore(
        ConsentLimits::default(),
        BuildHasherDefault::default(),
        questions,
        now,
        RESUME_WINDOW_MS,
    );
    for name in reconnected {
        registry.subscription_opened(&sub(name), name);
    }
    ConsentHub { registry }
}

fn status(hub: &ConsentHub) -> QuestionStatus {
    hub.registry.question(&token(1)).unwrap().status
}

#[test]
fn a_question_survives_a_crash_at_every_stage() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", "{}"), &["ada"]);
    let mut hub = restart(&hub, &["ada"], T0 + 1);
    hub.wake(T0 + 90_000);
    let mut hub = restart(&hub, &["ada"], T0 + 90_001);
    assert_eq!(hub.wake(T0 + 90_002), [], "only one reminder");
    hub.send("ada", &extend_request(1, "ada", None, T0 + 90_003), T0 + 90_003).unwrap();
    let mut hub = restart(&hub, &["ada"], T0 + 90_004);
    assert_eq!(hub.registry.question(&token(1)).unwrap().deadline, T0 + 360_000);
    hub.answer("ada", 1, "accept", T0 + 200_000).unwrap();
    let mut hub = restart(&hub, &["ada"], T0 + 200_001);
    assert_eq!(status(&hub), QuestionStatus::Accepted { by_default: false });
    assert_eq!(
        hub.answer("ada", 1, "reject", T0 + 200_002).unwrap_err(),
        IgnoreReason::AlreadyResolved,
        "a question is decided only once"
    );
    let wrong_arguments = hub.registry.spend(&call(&session(), None, Some("[]")), T0 + 1).unwrap_err();
    assert_eq!(wrong_arguments, SpendError::WrongAction);
    hub.spend(&call(&session(), None, Some("{}"))).unwrap();
    let mut hub = restart(&hub, &["ada"], T0 + 200_003);
    assert_eq!(
        hub.registry.spend(&call(&session(), None, Some("{}")), T0 + 1).unwrap_err(),
        SpendError::AlreadySpent
    );
    assert_eq!(hub.try_ask(&confirmation(1), &["ada"], T0 + 200_004).unwrap_err(), AskError::TokenUsed);
    assert_eq!(hub.wake(T0 + 9_000_000), []);
}

#[test]
fn every_resolution_survives_a_crash() {
    type ResolveFn<'f> = &'f dyn Fn(&mut ConsentHub);
    let modified = reply_with(1, "ada", "accept", T0 + 1, &json!({"modified_action": {}}));
    let cases: [(serde_json::Value, ResolveFn<'_>); 6] = [
        (confirmation(1), &|hub| drop(hub.answer("ada", 1, "reject", T0 + 1).unwrap())),
        (confirmation(1), &|hub| drop(hub.send("ada", &modified, T0 + 1).unwrap())),
        (harmless_confirmation(1), &|hub| drop(hub.wake(T0 + 30_000))),
        (confirmation(1), &|hub| drop(hub.wake(T0 + 180_000))),
        (clarification(1), &|hub| drop(hub.wake(T0 + 180_000))),
        (clarification(1), &|hub| drop(hub.send("ada", &response(1, "ada", &json!("x"), T0), T0).unwrap())),
    ];
    for (event, resolve) in cases {
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        hub.ask(&event, &["ada"]);
        resolve(&mut hub);
        let mut restarted = restart(&hub, &["ada"], T0 + 2);
        assert_eq!(status(&restarted), status(&hub));
        assert!(!restarted.registry.question(&token(1)).unwrap().is_open());
        assert_eq!(restarted.wake(T0 + 9_000_000), [], "reported only once");
    }
}

#[test]
fn an_expired_question_takes_its_default_at_the_first_wake() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    let mut hub = restart(&hub, &["ada"], T0 + 200_000);
    assert_eq!(hub.registry.next_deadline(), Some(T0 + 90_000));
    assert_eq!(
        hub.answer("ada", 1, "accept", T0 + 200_000).unwrap_err(),
        IgnoreReason::Late,
        "even before the first wake"
    );
    let resolved = resolution(&hub.wake(T0 + 200_001));
    assert_eq!((resolved.resolved_by, resolved.is_accepted()), (ResolvedBy::Timeout, false));
}

#[test]
fn listeners_can_return_or_join_within_a_window_after_a_crash() {
    for event in
        [confirmation(1), with(harmless_confirmation(1), &json!({"timeout_seconds": 180})), clarification(1)]
    {
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        hub.ask(&event, &["ada"]);
        let mut without_listeners = restart(&hub, &[], T0 + 1000);
        assert_eq!(without_listeners.wake(T0 + 1000 + RESUME_WINDOW_MS - 1), []);
        assert_eq!(
            resolution(&without_listeners.wake(T0 + 1000 + RESUME_WINDOW_MS)).resolved_by,
            ResolvedBy::Closure
        );

        let mut with_bob = restart(&hub, &["bob"], T0 + 1000);
        let staged = with_bob.registry.add_replier(&token(1), &sub("bob"), T0 + 2000).unwrap();
        with_bob.commit(staged);
        assert_eq!(resolutions(&with_bob.wake(T0 + 1000 + RESUME_WINDOW_MS)), []);

        let mut with_ada = restart(&hub, &["ada"], T0 + 1000);
        assert_eq!(resolutions(&with_ada.wake(T0 + 1000 + RESUME_WINDOW_MS)), []);
        assert_ne!(
            with_ada.registry.next_deadline(),
            Some(T0 + 1000 + RESUME_WINDOW_MS),
            "nothing is due at the end of the window"
        );
    }
}

#[test]
fn an_invalid_record_is_not_restored() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", "{}"), &["ada"]);
    let record = hub.registry.question(&token(1)).unwrap().to_record();
    for (from, to) in [
        ("{", "["),
        ("rpl_", "rpl-"),
        ("\"open\"", "\"opened\""),
        ("\"deadline\":", "\"later\":"),
        ("\"reminders_sent\":[false,false]", "\"reminders_sent\":[false]"),
        ("sha256:", "sha1:"),
        ("\"accept_by_default\":false", "\"accept_by_default\":0"),
    ] {
        assert_eq!(Question::parse_record(&record.replace(from, to)), None, "{from} -> {to}");
    }
    let old_name = record.replace("\"reminders_sent\":", "\"told\":");
    assert!(old_name != record && Question::parse_record(&old_name) == Question::parse_record(&record));
}

#[test]
fn a_changed_record_cannot_make_accept_the_default_of_a_dangerous_action() {
    for danger in [
        json!({"risk_level": "low"}),
        json!({"irreversible": false, "reversibility": "reversible"}),
        json!({"irreversible": null, "reversibility": null}),
    ] {
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        hub.ask(&with(confirmation(1), &danger), &["ada"]);
        let record = hub.registry.question(&token(1)).unwrap().to_record();
        let changed_record = record.replace("\"accept_by_default\":false", "\"accept_by_default\":true");
        assert_ne!(changed_record, record);
        let answer = Question::parse_record(&changed_record).unwrap().default_answer();
        assert_eq!(answer, QuestionAnswer::Decision(Decision::Reject), "{danger}");
    }
}

#[test]
fn a_reminder_neither_shortens_nor_repeats_the_window_after_a_crash() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    let window_end = T0 + 80_000 + RESUME_WINDOW_MS;
    let mut without_listeners = restart(&hub, &[], T0 + 80_000);
    assert_eq!(without_listeners.wake(T0 + 90_000).len(), 1, "the reminder");
    assert_eq!(without_listeners.registry.next_deadline(), Some(window_end));
    assert_eq!(without_listeners.wake(window_end - 1), []);
    assert_eq!(resolution(&without_listeners.wake(window_end)).resolved_by, ResolvedBy::Closure);

    let mut with_ada = restart(&hub, &["ada"], T0);
    assert_eq!(with_ada.wake(T0 + 90_000).len(), 1, "the reminder, after the window");
    assert_eq!(with_ada.registry.next_deadline(), Some(T0 + 162_000), "the window is over");
}

#[test]
fn an_ended_session_and_its_tokens_stay_used_after_a_crash() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.registry.restore_ended_session(&session(), [token(1)]);
    assert!(hub.registry.is_session_ended(&session()));
    assert_eq!(hub.answer("ada", 1, "accept", T0).unwrap_err(), IgnoreReason::AlreadyResolved);
    assert_eq!(hub.answer("ada", 2, "accept", T0).unwrap_err(), IgnoreReason::UnknownToken);
    assert_eq!(hub.try_ask(&confirmation(2), &["ada"], T0).unwrap_err(), AskError::SessionEnded);
    let in_other_session = with(confirmation(1), &json!({"session_id": OTHER_SESSION}));
    assert_eq!(hub.try_ask(&in_other_session, &["ada"], T0).unwrap_err(), AskError::TokenUsed);
}
