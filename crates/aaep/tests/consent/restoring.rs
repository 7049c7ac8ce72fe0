//! After a crash: what was open is open, what was decided stays decided, and what is over by now takes its default.

use std::hash::BuildHasherDefault;

use aaep::consent::{By, Ignored, Limits, NotAsked, NotGranted, Question, Questions, Status};
use seal::UnixMillis;
use serde_json::json;

use super::hub::*;

const WINDOW: i64 = 30_000;

/// The hub as its records make it again, with these people back.
fn crashed(hub: &Hub, back: &[&str], now: UnixMillis) -> Hub {
    let records: Vec<String> = hub.book.questions().map(Question::to_record).collect();
    let questions: Vec<Question> =
        records.iter().map(|record| Question::parse_record(record).expect(record)).collect();
    assert!(questions.iter().eq(hub.book.questions()), "records lose nothing");
    let mut book =
        Questions::restore(Limits::default(), BuildHasherDefault::default(), questions, now, WINDOW);
    for name in back {
        book.subscription_opened(&sub(name), name);
    }
    Hub { book }
}

fn status(hub: &Hub) -> Status {
    hub.book.question(&token(1)).unwrap().status
}

#[test]
fn at_every_point_of_its_life_a_question_survives() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", "{}"), &["ada"]);
    let mut hub = crashed(&hub, &["ada"], T0 + 1);
    hub.wake(T0 + 90_000);
    let mut hub = crashed(&hub, &["ada"], T0 + 90_001);
    assert_eq!(hub.wake(T0 + 90_002), [], "reminded once");
    hub.say("ada", &extend(1, "ada", None, T0 + 90_003), T0 + 90_003).unwrap();
    let mut hub = crashed(&hub, &["ada"], T0 + 90_004);
    assert_eq!(hub.book.question(&token(1)).unwrap().deadline, T0 + 360_000);
    hub.answer("ada", 1, "accept", T0 + 200_000).unwrap();
    let mut hub = crashed(&hub, &["ada"], T0 + 200_001);
    assert_eq!(status(&hub), Status::Accepted { silent: false });
    assert_eq!(
        hub.answer("ada", 1, "reject", T0 + 200_002).unwrap_err(),
        Ignored::Used,
        "nothing is decided twice"
    );
    let other = hub.book.spend(&call(&session(), None, Some("[]"))).unwrap_err();
    assert_eq!(other, NotGranted::OtherAction);
    hub.spend(&call(&session(), None, Some("{}"))).unwrap();
    let mut hub = crashed(&hub, &["ada"], T0 + 200_003);
    assert_eq!(hub.book.spend(&call(&session(), None, Some("{}"))).unwrap_err(), NotGranted::Spent);
    assert_eq!(hub.try_ask(&confirmation(1), &["ada"], T0 + 200_004).unwrap_err(), NotAsked::TokenUsed);
    assert_eq!(hub.wake(T0 + 9_000_000), []);
}

#[test]
fn every_way_to_be_resolved_stays() {
    type Way<'w> = &'w dyn Fn(&mut Hub);
    let modified = reply_with(1, "ada", "accept", T0 + 1, &json!({"modified_action": {}}));
    let ways: [(serde_json::Value, Way<'_>); 6] = [
        (confirmation(1), &|hub| drop(hub.answer("ada", 1, "reject", T0 + 1).unwrap())),
        (confirmation(1), &|hub| drop(hub.say("ada", &modified, T0 + 1).unwrap())),
        (harmless(1), &|hub| drop(hub.wake(T0 + 30_000))),
        (confirmation(1), &|hub| drop(hub.wake(T0 + 180_000))),
        (clarification(1), &|hub| drop(hub.wake(T0 + 180_000))),
        (clarification(1), &|hub| drop(hub.say("ada", &response(1, "ada", &json!("x"), T0), T0).unwrap())),
    ];
    for (event, resolve) in ways {
        let mut hub = Hub::with(&["ada"]);
        hub.ask(&event, &["ada"]);
        resolve(&mut hub);
        let mut again = crashed(&hub, &["ada"], T0 + 2);
        assert_eq!(status(&again), status(&hub));
        assert!(!again.book.question(&token(1)).unwrap().is_open());
        assert_eq!(again.wake(T0 + 9_000_000), [], "told once");
    }
}

#[test]
fn what_is_over_by_now_takes_its_default_at_the_first_wake() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    let mut hub = crashed(&hub, &["ada"], T0 + 200_000);
    assert_eq!(hub.book.next_deadline(), Some(T0 + 90_000));
    assert_eq!(hub.answer("ada", 1, "accept", T0 + 200_000).unwrap_err(), Ignored::Late, "even before it");
    let resolved = resolution(&hub.wake(T0 + 200_001));
    assert_eq!((resolved.by, resolved.is_accepted()), (By::Timeout, false));
}

#[test]
fn listeners_have_a_while_to_come_back_or_join_after_a_crash() {
    for event in [confirmation(1), with(harmless(1), &json!({"timeout_seconds": 180})), clarification(1)] {
        let mut hub = Hub::with(&["ada"]);
        hub.ask(&event, &["ada"]);
        let mut nobody = crashed(&hub, &[], T0 + 1000);
        assert_eq!(nobody.wake(T0 + 1000 + WINDOW - 1), []);
        assert_eq!(resolution(&nobody.wake(T0 + 1000 + WINDOW)).by, By::Closure);

        let mut joined = crashed(&hub, &["bob"], T0 + 1000);
        let decided = joined.book.entitle(&token(1), &sub("bob"), T0 + 2000).unwrap();
        joined.commit(decided);
        assert_eq!(resolutions(&joined.wake(T0 + 1000 + WINDOW)), []);

        let mut back = crashed(&hub, &["ada"], T0 + 1000);
        assert_eq!(resolutions(&back.wake(T0 + 1000 + WINDOW)), []);
        assert_ne!(back.book.next_deadline(), Some(T0 + 1000 + WINDOW), "and nothing is left to do then");
    }
}

#[test]
fn what_is_no_record_is_not_restored() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", "{}"), &["ada"]);
    let record = hub.book.question(&token(1)).unwrap().to_record();
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
    let yes = record.replace("\"accept_by_default\":false", "\"accept_by_default\":true");
    let tampered = Question::parse_record(&yes).unwrap();
    let answer = tampered.default_answer();
    assert_eq!(
        answer,
        aaep::consent::Answer::Decision(aaep::event::Decision::Reject),
        "what is irreversible is no"
    );
}
