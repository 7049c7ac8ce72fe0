//! The threats of chapter 10 that consent answers: T1 forged reply, T2 replay, T3 phishing, T4 flood, T8 hijack.

use aaep::consent::{Full, Ignored, Link, NotAsked, NotGranted, Said, Sender};
use aaep::{SessionId, SubscriptionId};
use serde_json::json;

use super::hub::*;

#[test]
fn t1_a_token_is_no_credential() {
    let mut hub = Hub::with(&["ada", "mallory"]);
    hub.ask(&confirmation(1), &["ada"]);
    let forged = [
        ("mallory", reply(1, "mallory", "accept", T0 + 1), "not_entitled"),
        ("mallory", reply(1, "ada", "accept", T0 + 1), "other_identity"),
        ("", reply(1, "ada", "accept", T0 + 1), "other_identity"),
        ("ada ", reply(1, "ada", "accept", T0 + 1), "other_identity"),
        ("mallory", reply(1, "unheardof", "accept", T0 + 1), "no_subscription"),
    ];
    for (who, text, why) in forged {
        let before = hub.book.clone();
        assert_eq!(hub.say(who, &text, T0 + 1).unwrap_err().as_str(), why);
        assert!(hub.book == before);
    }
    assert!(!resolution(&hub.wake(T0 + 180_000)).is_accepted());
}

#[test]
fn t2_a_reply_counts_once_in_its_session_and_in_time() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    let text = reply(1, "ada", "accept", T0 + 1);
    assert!(hub.say("ada", &text, T0 + 1).is_ok());
    assert_eq!(hub.say("ada", &text, T0 + 2).unwrap_err(), Ignored::Used);
    let other = SessionId::parse(OTHER_SESSION).unwrap();
    assert_eq!(hub.book.spend(&call(&other, Some(&token(1)), None)).unwrap_err(), NotGranted::OtherSession);
    hub.spend(&call(&session(), Some(&token(1)), None)).unwrap();
    assert_eq!(hub.say("ada", &text, T0 + 3).unwrap_err(), Ignored::Used);
    assert_eq!(hub.book.spend(&call(&session(), Some(&token(1)), None)).unwrap_err(), NotGranted::Spent);
    let decided = hub.book.end(&session(), T0 + 4);
    hub.commit(decided);
    assert_eq!(hub.say("ada", &text, T0 + 5).unwrap_err(), Ignored::Used);
}

#[test]
fn t3_what_was_agreed_to_is_what_is_done() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", r#"{"amount":5}"#), &["ada"]);
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    let more = hub.book.spend(&call(&session(), Some(&token(1)), Some(r#"{"amount":5000}"#))).unwrap_err();
    assert_eq!(more, NotGranted::OtherAction);
}

#[test]
fn t4_an_agent_cannot_flood_people_with_questions() {
    let mut hub = Hub::with(&["ada"]);
    let refused = (0..=255).find_map(|n| hub.try_ask(&confirmation(n), &["ada"], T0).err());
    assert_eq!(refused, Some(NotAsked::TooMany(Full::Session)));
    assert_eq!(hub.book.questions().count(), 16);
}

#[test]
fn t4_a_flood_of_guesses_leaves_no_trace() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    let before = hub.book.clone();
    for n in 2..=255 {
        assert_eq!(hub.answer("ada", n, "accept", T0 + 1).unwrap_err(), Ignored::Unknown);
    }
    assert!(hub.book == before);
}

#[test]
fn t8_a_subscription_id_is_no_credential() {
    let mut hub = Hub::with(&["ada", "mallory"]);
    hub.ask(&confirmation(1), &["ada"]);
    let Said::Reply(stolen) = Said::parse(&reply(1, "ada", "accept", T0 + 1)).unwrap() else { panic!() };
    let mallory: SubscriptionId = sub("mallory");
    for link in [Link::Shared, Link::Of(&mallory)] {
        let sender = Sender { principal: "mallory", link };
        assert!(hub.book.hear(&stolen, &sender, T0 + 1).is_err(), "{link:?}");
    }
    assert!(hub.say("mallory", &stop("ada", T0 + 1), T0 + 1).is_err());
    assert!(hub.say("mallory", &extend(1, "ada", None, T0 + 1), T0 + 1).is_err());
    assert!(hub.answer("ada", 1, "reject", T0 + 2).is_ok());
}

#[test]
fn who_is_refused_learns_nothing_all_refusals_are_of_one_type() {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    let texts = [
        reply(1, "bob", "accept", T0),
        reply(9, "bob", "accept", T0),
        reply_with(1, "bob", "accept", T0, &json!({"x": 1})),
    ];
    let refused: Vec<Ignored> = texts.iter().map(|text| hub.say("bob", text, T0).unwrap_err()).collect();
    let words: Vec<_> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["not_entitled", "unknown", "malformed AAEP-6.3s-1"], "for the log only");
}
