//! Asking: what may be asked, how silence is read, and how much.

use aaep::ReplyToken;
use std::hash::BuildHasherDefault;

use aaep::consent::{Action, Answer, By, Full, Limits, NotAsked, Outcome, Questions, Status};
use aaep::event::Decision;
use serde_json::json;

use super::hub::*;

/// The table of the digest's section 7, row by row, with C-B2 and C-B5.
#[test]
fn silence_means_yes_only_where_the_table_lets_it() {
    let rows = [
        (json!({"irreversible": true, "risk_level": "high"}), Some("AAEP-6.4.1-1")),
        (json!({"irreversible": true, "risk_level": "medium"}), Some("AAEP-6.4.1-2")),
        (json!({"irreversible": true, "risk_level": "low"}), Some("AAEP-6.4.1-3")),
        (json!({"irreversible": false, "risk_level": "high"}), None),
        (json!({"irreversible": false, "risk_level": "medium"}), None),
        (json!({"irreversible": false, "risk_level": "low"}), None),
        (json!({"irreversible": true, "risk_level": null}), Some("AAEP-6.4.1-1")),
        (json!({"reversibility": "irreversible", "risk_level": "low"}), Some("AAEP-6.4.1-3")),
        (json!({"reversibility": "irreversible", "risk_level": null}), Some("AAEP-6.4.1-1")),
    ];
    for (row, forbidden) in rows {
        let plain =
            with(confirmation(1), &json!({"irreversible": null, "reversibility": null, "risk_level": null}));
        let accepting = with(with(plain.clone(), &row), &json!({"default_decision": "accept"}));
        let mut hub = Hub::with(&["ada"]);
        let before = hub.book.clone();
        let asked = hub.try_ask(&accepting, &["ada"], T0);
        assert_eq!(
            asked.as_ref().err().and_then(NotAsked::rule).map(aaep::rule::Rule::id),
            forbidden,
            "{row}"
        );
        assert!(asked.is_ok() || hub.book == before, "{row}: a refused question leaves no trace");
        let mut hub = Hub::with(&["ada"]);
        hub.ask(&with(plain, &row), &["ada"]);
        let resolved = resolution(&hub.wake(T0 + 180_000));
        assert_eq!(resolved.answer, Answer::Decision(Decision::Reject), "{row}: reject is always lawful");
    }
}

#[test]
fn what_breaks_a_rule_is_not_asked() {
    let edits = [
        (json!({"timeout_seconds": 0}), "AAEP-4.4.1s-1"),
        (json!({"timeout_seconds": 86_401}), "AAEP-4.4.1s-1"),
        (json!({"irreversible": false}), "C-B5"),
        (json!({"allowed_replies": ["accept"]}), "C-D5"),
        (json!({"allowed_replies": ["accept", "reject", "later"]}), "C-D5"),
        (json!({"urgency": "normal"}), "AAEP-4.4.1-7"),
        (json!({"action": ""}), "AAEP-4.4.1s-2"),
        (json!({"reply_token": "rpl_1"}), "AAEP-6.2.1-2"),
        (json!({"reply_token": "rpl_4F8A2E7D9C1B6A3F4F8A2E7D9C1B6A3F"}), "AAEP-6.2.1-2"),
        (json!({"reply_token": "rpl_4f8a2e7d9c1b6a3f"}), "AAEP-6.2.1-2"),
    ];
    for (edit, rule) in edits {
        let refused = Hub::with(&["ada"]).try_ask(&with(confirmation(1), &edit), &["ada"], T0).unwrap_err();
        assert_eq!(refused.rule().map(aaep::rule::Rule::id), Some(rule), "{edit}: {refused}");
    }
    let choice = json!({"accepted_response_kinds": ["multiple_choice"]});
    let refused = Hub::with(&["ada"]).try_ask(&with(clarification(1), &choice), &["ada"], T0).unwrap_err();
    assert_eq!(refused.rule().unwrap().id(), "AAEP-4.4.2s-1");
    let digest = bound(confirmation(1), "transfer", "{}").to_string().replace("sha256:", "md5:");
    let refused = Hub::with(&["ada"]).try_ask(&serde_json::from_str(&digest).unwrap(), &["ada"], T0);
    assert_eq!(refused.unwrap_err(), NotAsked::NoDigest);
}

#[test]
fn only_questions_are_asked() {
    let event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:agent.session.started",
        "event_id": "evt_8a3f5b22c91e4d7a", "session_id": SESSION, "timestamp": stamp(T0.get()),
        "producer": {"agent_id": "bank"}, "localization_hints": {"primary_language": "en"}, "summary_normal": "Hello.",
    });
    assert_eq!(Hub::with(&["ada"]).try_ask(&event, &["ada"], T0).unwrap_err(), NotAsked::NotAQuestion);
}

#[test]
fn who_asks_is_told_until_when_and_whom() {
    let mut hub = Hub::with(&["ada", "bob"]);
    let outcomes = hub.ask(&confirmation(1), &["bob", "ada", "nobody", "ada"]);
    let [Outcome::Asked(asked)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((&asked.token, asked.deadline), (&token(1), T0 + 180_000));
    assert_eq!(asked.reminders, [T0 + 90_000, T0 + 162_000]);
    assert_eq!(asked.repliers, [sub("ada"), sub("bob")], "whose subscription is open, once");
    assert_eq!(hub.book.next_deadline(), Some(T0 + 90_000));
}

#[test]
fn a_token_is_made_of_128_random_bits_and_never_used_twice() {
    let mut lengths = Vec::new();
    let made = ReplyToken::generate(&mut |bytes: &mut [u8]| {
        lengths.push(bytes.len());
        bytes.fill(0x11);
    });
    assert_eq!((lengths, &made), (vec![16], &token(0x11)));
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(0x11), &["ada"]);
    let again = with(confirmation(2), &json!({"reply_token": made.as_str()}));
    assert_eq!(hub.try_ask(&again, &["ada"], T0).unwrap_err(), NotAsked::TokenUsed, "while it is open");
    hub.answer("ada", 0x11, "reject", T0 + 1).unwrap();
    assert_eq!(
        hub.try_ask(&again, &["ada"], T0 + 2).unwrap_err(),
        NotAsked::TokenUsed,
        "when it is resolved"
    );
    let decided = hub.book.end(&session(), T0 + 3);
    hub.commit(decided);
    let elsewhere = with(again, &json!({"session_id": OTHER_SESSION}));
    let refused = hub.try_ask(&elsewhere, &["ada"], T0 + 4).unwrap_err();
    assert_eq!(refused.rule().unwrap().id(), "AAEP-6.2.2-1", "when its session is over");
}

#[test]
fn an_action_is_asked_about_once_at_a_time() {
    let arguments = r#"{"to":"Ben"}"#;
    let twin = |n, edits| with(bound(confirmation(n), "transfer", arguments), &edits);
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&twin(1, json!({})), &["ada"]);
    let refused = hub.try_ask(&twin(2, json!({})), &["ada"], T0).unwrap_err();
    assert_eq!(refused, NotAsked::AskedTwice(token(1)));
    assert_eq!(refused.rule().unwrap().id(), "AAEP-6.1-5");
    hub.ask(&bound(confirmation(3), "transfer", r#"{"to":"Cleo"}"#), &["ada"]);
    hub.ask(&twin(4, json!({"session_id": OTHER_SESSION})), &["ada"]);
    hub.answer("ada", 1, "reject", T0 + 1).unwrap();
    assert!(hub.try_ask(&twin(5, json!({})), &["ada"], T0 + 2).is_ok(), "the first is released");

    let mut hub = Hub::with(&["ada"]);
    let same_words = |n| with(confirmation(n), &json!({"action": "Send it."}));
    hub.ask(&same_words(1), &["ada"]);
    assert!(matches!(hub.try_ask(&same_words(2), &["ada"], T0), Err(NotAsked::AskedTwice(_))));
}

#[test]
fn there_is_a_limit_for_a_session_an_agent_and_all() {
    let mut hub = Hub::with(&["ada"]);
    let question = |n: u8, session: u8, agent: &str| {
        let edits = json!({"session_id": format!("sess_{session}abcdefgh"), "producer": {"agent_id": agent}});
        with(confirmation(n), &edits)
    };
    for n in 0..16 {
        hub.ask(&question(n, 0, "bank"), &["ada"]);
    }
    let full = |hub: &mut Hub, event| match hub.try_ask(&event, &["ada"], T0) {
        Err(NotAsked::TooMany(full)) => full,
        other => panic!("{other:?}"),
    };
    assert_eq!(full(&mut hub, question(100, 0, "bank")), Full::Session);
    for n in 16..64 {
        hub.ask(&question(n, n / 16, "bank"), &["ada"]);
    }
    assert_eq!(full(&mut hub, question(100, 9, "bank")), Full::Agent);
    assert!(hub.try_ask(&question(100, 9, "shop"), &["ada"], T0).is_ok());
    hub.answer("ada", 20, "reject", T0 + 1).unwrap();
    assert!(hub.try_ask(&question(101, 9, "bank"), &["ada"], T0 + 2).is_ok(), "what is resolved makes room");

    let limits = Limits { open_in_all: 2, ..Default::default() };
    let mut small = Hub { book: Questions::new(limits, BuildHasherDefault::default()) };
    small.book.subscription_opened(&sub("ada"), "ada");
    small.ask(&question(1, 1, "a"), &["ada"]);
    small.ask(&question(2, 2, "b"), &["ada"]);
    assert_eq!(full(&mut small, question(3, 3, "c")), Full::All);
}

#[test]
fn where_nobody_can_answer_the_default_holds_at_once() {
    let mut hub = Hub::with(&["ada"]);
    for (event, answer, status) in [
        (confirmation(1), Answer::Decision(Decision::Reject), Status::Refused { modified: false }),
        (harmless(2), Answer::Decision(Decision::Accept), Status::Accepted { silent: true }),
        (clarification(3), Answer::Unavailable, Status::Answered),
    ] {
        let resolved = resolution(&hub.ask(&event, &[]));
        assert_eq!((resolved.answer, resolved.by, resolved.at), (answer, By::Unreachable, T0));
        assert_eq!(hub.book.question(&resolved.token).unwrap().status, status);
    }
    assert_eq!(hub.book.next_deadline(), None);
}

#[test]
fn an_action_has_one_digest_however_it_is_written() {
    let digest = |tool, arguments| Action::new(tool, arguments).unwrap().digest();
    assert_eq!(digest("t", r#"{"a":1,"b":[true]}"#), digest("t", "{ \"b\" : [ true ], \"a\" : 1.0 }"));
    assert_eq!(digest("t", "{}"), seal::Digest::of(br#"{"arguments":{},"tool":"t"}"#));
    for other in [digest("u", "{}"), digest("t", "[]"), digest("t", "null"), digest("t", r#"{"a":0}"#)] {
        assert_ne!(other, digest("t", "{}"));
    }
    for ambiguous in [r#"{"a":1,"a":2}"#, r#""\ud800""#, "9007199254740993", "{}{}", r#"1},"x":{"#, ""] {
        assert!(Action::new("t", ambiguous).is_err(), "{ambiguous}");
    }
}
