//! After a crash, open questions stay open, decisions stay decided, and expired questions take their default.

use std::hash::BuildHasherDefault;

use aaep::consent::{
    AskError, ConsentLimits, IgnoreReason, Question, QuestionRegistry, QuestionStatus, ResolvedBy, SpendError,
};
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
    hub.send("ada", &extend(1, "ada", None, T0 + 90_003), T0 + 90_003).unwrap();
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
        ("\"told\":[false,false]", "\"told\":[false]"),
        ("sha256:", "sha1:"),
        ("\"accept_by_default\":false", "\"accept_by_default\":0"),
    ] {
        assert_eq!(Question::parse_record(&record.replace(from, to)), None, "{from} -> {to}");
    }
    let tampered_record = record.replace("\"accept_by_default\":false", "\"accept_by_default\":true");
    let tampered = Question::parse_record(&tampered_record).unwrap();
    let answer = tampered.default_answer();
    assert_eq!(
        answer,
        aaep::consent::QuestionAnswer::Decision(aaep::event::Decision::Reject),
        "the default of an irreversible action is reject"
    );
}
