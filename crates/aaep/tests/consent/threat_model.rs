//! The threats of chapter 10 that consent addresses: T1 forged reply, T2 replay, T3 phishing, T4 flood, T8
//! hijack.

use aaep::consent::{
    AskError, ConsentMessage, IgnoreReason, LimitScope, MessageSender, ReplyChannel, SpendError,
};
use aaep::{SessionId, SubscriptionId};
use serde_json::json;

use super::consent_hub::*;

#[test]
fn t1_a_token_is_not_a_credential() {
    let mut hub = ConsentHub::with_listeners(&["ada", "mallory"]);
    hub.ask(&confirmation(1), &["ada"]);
    let forged = [
        ("mallory", reply(1, "mallory", "accept", T0 + 1), "not_entitled"),
        ("mallory", reply(1, "ada", "accept", T0 + 1), "other_identity"),
        ("", reply(1, "ada", "accept", T0 + 1), "other_identity"),
        ("ada ", reply(1, "ada", "accept", T0 + 1), "other_identity"),
        ("mallory", reply(1, "unknown", "accept", T0 + 1), "no_subscription"),
    ];
    for (listener, text, reason) in forged {
        let before = hub.registry.clone();
        assert_eq!(hub.send(listener, &text, T0 + 1).unwrap_err().as_str(), reason);
        assert!(hub.registry == before);
    }
    assert!(!resolution(&hub.wake(T0 + 180_000)).is_accepted());
}

#[test]
fn t2_a_reply_counts_once_and_only_in_its_session() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", "{}"), &["ada"]);
    let text = reply(1, "ada", "accept", T0 + 1);
    assert!(hub.send("ada", &text, T0 + 1).is_ok());
    assert_eq!(hub.send("ada", &text, T0 + 2).unwrap_err(), IgnoreReason::AlreadyResolved);
    let other = SessionId::parse(OTHER_SESSION).unwrap();
    assert_eq!(
        hub.registry.spend(&call(&other, Some(&token(1)), None), T0 + 1).unwrap_err(),
        SpendError::WrongSession
    );
    hub.spend(&call(&session(), Some(&token(1)), None)).unwrap();
    assert_eq!(hub.send("ada", &text, T0 + 3).unwrap_err(), IgnoreReason::AlreadyResolved);
    assert_eq!(
        hub.registry.spend(&call(&session(), Some(&token(1)), None), T0 + 1).unwrap_err(),
        SpendError::AlreadySpent
    );
    let staged = hub.registry.end_session(&session(), T0 + 4);
    hub.commit(staged);
    assert_eq!(hub.send("ada", &text, T0 + 5).unwrap_err(), IgnoreReason::AlreadyResolved);
}

#[test]
fn t3_consent_covers_only_the_exact_action() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", r#"{"amount":5}"#), &["ada"]);
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    let refused = hub
        .registry
        .spend(&call(&session(), Some(&token(1)), Some(r#"{"amount":5000}"#)), T0 + 1)
        .unwrap_err();
    assert_eq!(refused, SpendError::WrongAction);
}

#[test]
fn t4_an_agent_cannot_flood_listeners_with_questions() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    let refused = (0..=255).find_map(|n| hub.try_ask(&confirmation(n), &["ada"], T0).err());
    assert_eq!(refused, Some(AskError::TooMany(LimitScope::Session)));
    assert_eq!(hub.registry.questions().count(), 16);
}

#[test]
fn t4_guessed_tokens_change_nothing() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    let before = hub.registry.clone();
    for n in 2..=255 {
        assert_eq!(hub.answer("ada", n, "accept", T0 + 1).unwrap_err(), IgnoreReason::UnknownToken);
    }
    assert!(hub.registry == before);
}

#[test]
fn t8_a_subscription_id_is_not_a_credential() {
    let mut hub = ConsentHub::with_listeners(&["ada", "mallory"]);
    hub.ask(&confirmation(1), &["ada"]);
    let ConsentMessage::Reply(stolen) = ConsentMessage::parse(&reply(1, "ada", "accept", T0 + 1)).unwrap()
    else {
        panic!()
    };
    let mallory: SubscriptionId = sub("mallory");
    for channel in [ReplyChannel::Shared, ReplyChannel::Subscription(&mallory)] {
        let sender = MessageSender { principal: "mallory", channel };
        assert!(hub.registry.handle_reply(&stolen, &sender, T0 + 1).is_err(), "{channel:?}");
    }
    assert!(hub.send("mallory", &stop_request("ada", T0 + 1), T0 + 1).is_err());
    assert!(hub.send("mallory", &extend_request(1, "ada", None, T0 + 1), T0 + 1).is_err());
    assert!(hub.answer("ada", 1, "reject", T0 + 2).is_ok());
}

#[test]
fn every_refused_reply_has_a_reason_for_the_log() {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&clarification(2), &["bob"]);
    let texts = [
        reply(1, "bob", "accept", T0),
        reply(9, "bob", "accept", T0),
        reply_with(1, "bob", "accept", T0, &json!({"x": 1})),
        response(2, "bob", &json!(true), T0),
    ];
    let refused: Vec<IgnoreReason> =
        texts.iter().map(|text| hub.send("bob", text, T0).unwrap_err()).collect();
    let log_texts: Vec<_> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        log_texts,
        ["not_entitled", "unknown", "malformed AAEP-6.3s-1", "does_not_fit AAEP-6.5.2-1"],
        "the log gets the exact reason"
    );
}
