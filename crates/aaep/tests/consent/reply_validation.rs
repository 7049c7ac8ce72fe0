//! The checks on a reply (§6.3.4, chapter 10): each one alone, and the order in which they run.

use aaep::consent::{
    ConsentMessage, IgnoreReason, MessageSender, QuestionAnswer, QuestionStatus, ReplyChannel, ResolvedBy,
};
use aaep::event::Decision;
use seal::UnixMillis;
use serde_json::json;

use super::consent_hub::*;

const IN_TIME: UnixMillis = T0.saturating_add(60_000);
const DEADLINE: UnixMillis = T0.saturating_add(180_000);

/// A hub with four questions to Ada: 1 allows both decisions, 2 allows only reject, 3 is already rejected, and 4 is a
/// clarification. Bob listens but was asked nothing.
fn hub_with_questions() -> ConsentHub {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&with(confirmation(2), &json!({"allowed_replies": ["reject"]})), &["ada"]);
    hub.ask(&confirmation(3), &["ada"]);
    hub.ask(&clarification(4), &["ada"]);
    hub.answer("ada", 3, "reject", T0 + 1000).unwrap();
    hub
}

#[test]
fn a_reply_that_fails_one_check_is_ignored() {
    let valid_reply = || reply(1, "ada", "accept", IN_TIME);
    let with_edits = |edits| reply_with(1, "ada", "accept", IN_TIME, &edits);
    let with_duplicate_key = valid_reply().replacen('{', r#"{"decision":"reject","#, 1);
    let cases = [
        ("not JSON", "ada", "{".to_owned(), IN_TIME, "not_json"),
        ("not JSON, two values", "ada", format!("{0}{0}", valid_reply()), IN_TIME, "not_json"),
        ("an array", "ada", format!("[{}]", valid_reply()), IN_TIME, "malformed"),
        ("an event", "ada", confirmation(9).to_string(), IN_TIME, "not_a_reply"),
        (
            "another message",
            "ada",
            json!({"type":"subscription.close","subscription_id":"sub_ada"}).to_string(),
            IN_TIME,
            "not_a_reply",
        ),
        ("an extra key", "ada", with_edits(json!({"extra": 1})), IN_TIME, "malformed"),
        ("a duplicate key", "ada", with_duplicate_key, IN_TIME, "malformed"),
        (
            "a lone surrogate",
            "ada",
            with_edits(json!({"decided_by": "X"})).replace('X', "\\ud800"),
            IN_TIME,
            "malformed",
        ),
        ("an unknown decision", "ada", with_edits(json!({"decision": "defer"})), IN_TIME, "malformed"),
        ("no decision", "ada", with_edits(json!({"decision": null})), IN_TIME, "malformed"),
        ("no timestamp", "ada", with_edits(json!({"timestamp": null})), IN_TIME, "malformed"),
        ("no subscription", "ada", with_edits(json!({"subscription_id": null})), IN_TIME, "malformed"),
        (
            "an empty subscription (C-D8)",
            "ada",
            with_edits(json!({"subscription_id": ""})),
            IN_TIME,
            "malformed",
        ),
        (
            "a subscription with a hyphen (C-D8)",
            "ada",
            with_edits(json!({"subscription_id": "sub_quickstart-demo"})),
            IN_TIME,
            "malformed",
        ),
        (
            "a subscription that is not open",
            "ada",
            reply(1, "eve", "accept", IN_TIME),
            IN_TIME,
            "no_subscription",
        ),
        ("another listener's subscription", "bob", valid_reply(), IN_TIME, "other_identity"),
        (
            "a subscription that was not asked",
            "bob",
            reply(1, "bob", "accept", IN_TIME),
            IN_TIME,
            "not_entitled",
        ),
        ("an unknown token", "ada", reply(9, "ada", "accept", IN_TIME), IN_TIME, "unknown"),
        ("a clarification's token", "ada", reply(4, "ada", "accept", IN_TIME), IN_TIME, "other_kind"),
        (
            "a response to a confirmation",
            "ada",
            response(1, "ada", &json!("yes"), IN_TIME),
            IN_TIME,
            "other_kind",
        ),
        ("a used token", "ada", reply(3, "ada", "accept", IN_TIME), IN_TIME, "used"),
        ("after the deadline", "ada", reply(1, "ada", "accept", IN_TIME), DEADLINE, "late"),
        (
            "timestamp after the deadline (C-D3)",
            "ada",
            reply(1, "ada", "accept", DEADLINE),
            IN_TIME,
            "late_stamp",
        ),
        ("not an allowed reply", "ada", reply(2, "ada", "accept", IN_TIME), IN_TIME, "not_allowed"),
    ];
    for (case, listener, text, now, reason) in cases {
        let mut hub = hub_with_questions();
        let before = hub.registry.clone();
        let ignored = hub.send(listener, &text, now).expect_err(case);
        assert_eq!(ignored.as_str(), reason, "{case}: {ignored}");
        assert!(hub.registry == before, "{case}: nothing changes");
        assert!(
            hub.answer("ada", 1, "accept", IN_TIME).is_ok(),
            "{case}: the question can still be answered"
        );
    }
}

#[test]
fn a_reply_that_passes_every_check_resolves_its_question() {
    let mut hub = hub_with_questions();
    let text =
        reply_with(1, "ada", "accept", IN_TIME, &json!({"decided_by": "Ada", "decision_rationale": "Yes."}));
    let resolved = resolution(&hub.send("ada", &text, IN_TIME + 7).unwrap());
    assert_eq!(resolved.answer, QuestionAnswer::Decision(Decision::Accept));
    assert_eq!(
        (resolved.resolved_by, resolved.resolved_at, resolved.asked_at),
        (ResolvedBy::Reply, IN_TIME + 7, T0)
    );
    assert_eq!(resolved.replied_at.unwrap().unix_millis(), IN_TIME);
    assert_eq!(resolved.subscription_id, Some(sub("ada")));
    assert_eq!((resolved.principal.as_deref(), resolved.decided_by.as_deref()), (Some("ada"), Some("Ada")));
    assert_eq!(
        hub.registry.question(&token(1)).unwrap().status,
        QuestionStatus::Accepted { by_default: false }
    );
}

/// Each reply fails the named check and, where possible, all later ones. The first failed check is reported.
#[test]
fn checks_run_in_the_specified_order() {
    let late = DEADLINE + 1000;
    // Both questions allow only reject, and question 3 is already resolved.
    let hub_with_reject_only_questions = || {
        let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
        hub.ask(&with(confirmation(3), &json!({"allowed_replies": ["reject"]})), &["ada"]);
        hub.ask(&with(confirmation(1), &json!({"allowed_replies": ["reject"]})), &["ada"]);
        hub.answer("ada", 3, "reject", T0 + 1000).unwrap();
        hub
    };
    let cases = [
        ("malformed", "bob", reply_with(3, "eve", "accept", late, &json!({"extra": 1})), late),
        ("no_subscription", "bob", reply(3, "eve", "accept", late), late),
        ("other_identity", "bob", reply(3, "ada", "accept", late), late),
        ("not_entitled", "bob", reply(3, "bob", "accept", late), late),
        ("unknown", "ada", reply(9, "ada", "accept", late), late),
        ("other_kind", "ada", response(3, "ada", &json!("yes"), late), late),
        ("used", "ada", reply(3, "ada", "accept", late), late),
        ("late", "ada", reply(1, "ada", "accept", late), late),
        ("late_stamp", "ada", reply(1, "ada", "accept", late), IN_TIME),
        ("not_allowed", "ada", reply(1, "ada", "accept", IN_TIME), IN_TIME),
    ];
    for (reason, listener, text, now) in cases {
        assert_eq!(hub_with_reject_only_questions().send(listener, &text, now).unwrap_err().as_str(), reason);
    }
}

#[test]
fn a_reply_counts_until_one_millisecond_before_the_deadline() {
    assert!(hub_with_questions().send("ada", &reply(1, "ada", "accept", DEADLINE - 1), DEADLINE - 1).is_ok());
    assert_eq!(
        hub_with_questions().send("ada", &reply(1, "ada", "accept", DEADLINE - 1), DEADLINE).unwrap_err(),
        IgnoreReason::Late
    );
    assert_eq!(
        hub_with_questions().send("ada", &reply(1, "ada", "accept", DEADLINE), DEADLINE - 1).unwrap_err(),
        IgnoreReason::LateTimestamp
    );
}

/// Decision C-D3.
#[test]
fn a_reply_dated_before_its_question_is_accepted() {
    let mut hub = hub_with_questions();
    let resolved = resolution(&hub.send("ada", &reply(1, "ada", "accept", T0 - 5000), IN_TIME).unwrap());
    assert!(resolved.is_accepted() && resolved.replied_at.unwrap().unix_millis() < resolved.asked_at);
}

/// Decision C-A6.
#[test]
fn a_reply_timestamp_may_have_any_precision() {
    let text = reply_with(
        1,
        "ada",
        "accept",
        UnixMillis::new(0),
        &json!({"timestamp": "2026-05-24T16:22:41.12345+02:00"}),
    );
    assert!(hub_with_questions().send("ada", &text, IN_TIME).is_ok());
}

#[test]
fn accepting_a_modified_action_is_a_refusal_and_uses_the_token() {
    let mut hub = hub_with_questions();
    let text = reply_with(1, "ada", "accept", IN_TIME, &json!({"modified_action": {"amount": 50}}));
    let resolved = resolution(&hub.send("ada", &text, IN_TIME).unwrap());
    assert_eq!((resolved.answer, resolved.modified), (QuestionAnswer::Decision(Decision::Reject), true));
    assert_eq!(hub.answer("ada", 1, "accept", IN_TIME).unwrap_err(), IgnoreReason::AlreadyResolved);
}

/// Decision C-D5.
#[test]
fn only_allowed_decisions_count() {
    for (allowed, decision, counts) in [
        ("accept", "accept", true),
        ("accept", "reject", false),
        ("reject", "reject", true),
        ("reject", "accept", false),
    ] {
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        let edits = json!({"allowed_replies": [allowed], "default_decision": allowed});
        hub.ask(&with(harmless_confirmation(1), &edits), &["ada"]);
        assert_eq!(
            hub.answer("ada", 1, decision, T0 + 1).is_ok(),
            counts,
            "{decision} while only {allowed} is allowed"
        );
    }
}

#[test]
fn a_reply_over_a_subscription_connection_counts_only_for_that_subscription() {
    let ConsentMessage::Reply(consent_reply) =
        ConsentMessage::parse(&reply(1, "ada", "accept", IN_TIME)).unwrap()
    else {
        panic!()
    };
    let (ada, bob) = (sub("ada"), sub("bob"));
    let send_over = |channel| {
        hub_with_questions()
            .registry
            .handle_reply(&consent_reply, &MessageSender { principal: "ada", channel }, IN_TIME)
            .map(|_| ())
    };
    assert_eq!(send_over(ReplyChannel::Subscription(&ada)), Ok(()));
    assert_eq!(send_over(ReplyChannel::Subscription(&bob)), Err(IgnoreReason::WrongConnection));
}

#[test]
fn the_first_valid_reply_wins() {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada", "bob"]);
    assert!(!hub.answer("bob", 1, "reject", T0 + 1).unwrap().is_accepted());
    assert_eq!(hub.answer("ada", 1, "accept", T0 + 2).unwrap_err(), IgnoreReason::AlreadyResolved);
    assert_eq!(hub.registry.question(&token(1)).unwrap().status, QuestionStatus::Refused { modified: false });
    assert!(
        hub.wake(T0 + 200_000).is_empty(),
        "the deadline has passed, but the question is already resolved"
    );
}

#[test]
fn a_message_survives_a_round_trip_and_only_more_time_is_not_repeatable() {
    let handoff = |kind: &str, more: serde_json::Value| {
        let message = json!({
            "type": kind, "reply_token": token(1).as_str(), "subscription_id": sub("ada").as_str(),
            "timestamp": format_timestamp(T0.get()),
        });
        with(message, &more).to_string()
    };
    let acknowledge = handoff("sayso:handoff.acknowledge", json!({"note": "I am calling you."}));
    let reject = handoff("sayso:handoff.reject", json!({}));
    for (text, is_repeatable) in [
        (reply(1, "ada", "accept", T0), true),
        (response(1, "ada", &json!("Monday"), T0), true),
        (stop_request("ada", T0), true),
        (acknowledge.clone(), true),
        (reject.clone(), true),
        (extend_request(1, "ada", Some(60), T0), false),
    ] {
        let message = ConsentMessage::parse(&text).unwrap();
        assert_eq!(message.is_repeatable(), is_repeatable, "{text}");
        let written: serde_json::Value = serde_json::from_str(&message.to_json()).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(&text).unwrap());
    }
    for (text, expected) in [(acknowledge, true), (reject, false)] {
        let Ok(ConsentMessage::Handoff(reply)) = ConsentMessage::parse(&text) else { panic!("{text}") };
        assert_eq!((reply.is_acknowledged, reply.reply_token), (expected, token(1)));
    }
}
