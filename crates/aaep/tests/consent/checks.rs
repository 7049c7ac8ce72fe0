//! The checks of a reply (§6.3.4, chapter 10), each on its own and in the order of the digest's section 7.

use aaep::consent::{Answer, By, Ignored, Link, Said, Sender, Status};
use aaep::event::Decision;
use seal::UnixMillis;
use serde_json::json;

use super::hub::*;

const IN_TIME: UnixMillis = T0.saturating_add(60_000);
const LATE: UnixMillis = T0.saturating_add(180_000);

/// A hub where Ada was asked (question 1), may only refuse (2), has answered (3), and was asked what she meant (4). Bob
/// listens and was asked nothing.
fn scene() -> Hub {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&with(confirmation(2), &json!({"allowed_replies": ["reject"]})), &["ada"]);
    hub.ask(&confirmation(3), &["ada"]);
    hub.ask(&clarification(4), &["ada"]);
    hub.answer("ada", 3, "reject", T0 + 1000).unwrap();
    hub
}

#[test]
fn each_check_refuses_alone_and_changes_nothing() {
    let ok = || reply(1, "ada", "accept", IN_TIME);
    let edited = |edits| reply_with(1, "ada", "accept", IN_TIME, &edits);
    let doubled = ok().replacen('{', r#"{"decision":"reject","#, 1);
    let cases = [
        ("not JSON", "ada", "{".to_owned(), IN_TIME, "not_json"),
        ("not JSON, two values", "ada", format!("{0}{0}", ok()), IN_TIME, "not_json"),
        ("an array", "ada", format!("[{}]", ok()), IN_TIME, "malformed"),
        ("an event", "ada", confirmation(9).to_string(), IN_TIME, "not_a_reply"),
        (
            "another message",
            "ada",
            json!({"type":"subscription.close","subscription_id":"sub_ada"}).to_string(),
            IN_TIME,
            "not_a_reply",
        ),
        ("an extra key", "ada", edited(json!({"extra": 1})), IN_TIME, "malformed"),
        ("a doubled key", "ada", doubled, IN_TIME, "malformed"),
        (
            "half a surrogate pair",
            "ada",
            edited(json!({"decided_by": "X"})).replace('X', "\\ud800"),
            IN_TIME,
            "malformed",
        ),
        ("a decision that there is not", "ada", edited(json!({"decision": "defer"})), IN_TIME, "malformed"),
        ("no decision", "ada", edited(json!({"decision": null})), IN_TIME, "malformed"),
        ("no time", "ada", edited(json!({"timestamp": null})), IN_TIME, "malformed"),
        ("no subscription", "ada", edited(json!({"subscription_id": null})), IN_TIME, "malformed"),
        ("an empty subscription (C-D8)", "ada", edited(json!({"subscription_id": ""})), IN_TIME, "malformed"),
        (
            "a subscription with a hyphen (C-D8)",
            "ada",
            edited(json!({"subscription_id": "sub_quickstart-demo"})),
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
        ("somebody else's subscription", "bob", ok(), IN_TIME, "other_identity"),
        (
            "a subscription that was not asked",
            "bob",
            reply(1, "bob", "accept", IN_TIME),
            IN_TIME,
            "not_entitled",
        ),
        ("a token that there is not", "ada", reply(9, "ada", "accept", IN_TIME), IN_TIME, "unknown"),
        ("a clarification's token", "ada", reply(4, "ada", "accept", IN_TIME), IN_TIME, "other_kind"),
        (
            "a response to a confirmation",
            "ada",
            response(1, "ada", &json!("yes"), IN_TIME),
            IN_TIME,
            "other_kind",
        ),
        ("a token that was used", "ada", reply(3, "ada", "accept", IN_TIME), IN_TIME, "used"),
        ("after the deadline", "ada", reply(1, "ada", "accept", IN_TIME), LATE, "late"),
        ("stamped after the deadline (C-D3)", "ada", reply(1, "ada", "accept", LATE), IN_TIME, "late_stamp"),
        ("not an allowed reply", "ada", reply(2, "ada", "accept", IN_TIME), IN_TIME, "not_allowed"),
    ];
    for (what, who, text, now, why) in cases {
        let mut hub = scene();
        let before = hub.book.clone();
        let ignored = hub.say(who, &text, now).expect_err(what);
        assert_eq!(ignored.as_str(), why, "{what}: {ignored}");
        assert!(hub.book == before, "{what}: nothing changes");
        assert!(
            hub.answer("ada", 1, "accept", IN_TIME).is_ok(),
            "{what}: the question can still be answered"
        );
    }
}

#[test]
fn a_reply_that_passes_every_check_resolves_its_question() {
    let mut hub = scene();
    let text =
        reply_with(1, "ada", "accept", IN_TIME, &json!({"decided_by": "Ada", "decision_rationale": "Yes."}));
    let resolved = resolution(&hub.say("ada", &text, IN_TIME + 7).unwrap());
    assert_eq!(resolved.answer, Answer::Decision(Decision::Accept));
    assert_eq!((resolved.by, resolved.at, resolved.asked), (By::Reply, IN_TIME + 7, T0));
    assert_eq!(resolved.replied.unwrap().unix_millis(), IN_TIME);
    assert_eq!(resolved.subscription, Some(sub("ada")));
    assert_eq!((resolved.principal.as_deref(), resolved.decided_by.as_deref()), (Some("ada"), Some("Ada")));
    assert_eq!(hub.book.question(&token(1)).unwrap().status, Status::Accepted { silent: false });
}

/// Each reply fails at its own check and at all that come after it: the first is the one that is named.
#[test]
fn checks_come_in_their_order() {
    let late = LATE + 1000;
    // Question 3 is resolved and may only be refused; all times are over.
    let scene = || {
        let mut hub = Hub::with(&["ada", "bob"]);
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
    for (why, who, text, now) in cases {
        assert_eq!(scene().say(who, &text, now).unwrap_err().as_str(), why);
    }
}

#[test]
fn the_last_moment_is_the_one_before_the_deadline() {
    assert!(scene().say("ada", &reply(1, "ada", "accept", LATE - 1), LATE - 1).is_ok());
    assert_eq!(scene().say("ada", &reply(1, "ada", "accept", LATE - 1), LATE).unwrap_err(), Ignored::Late);
    assert_eq!(
        scene().say("ada", &reply(1, "ada", "accept", LATE), LATE - 1).unwrap_err(),
        Ignored::LateStamp
    );
}

#[test]
fn a_stamp_before_the_question_counts_c_d3() {
    let mut hub = scene();
    let resolved = resolution(&hub.say("ada", &reply(1, "ada", "accept", T0 - 5000), IN_TIME).unwrap());
    assert!(resolved.is_accepted() && resolved.replied.unwrap().unix_millis() < resolved.asked);
}

#[test]
fn any_precision_of_a_stamp_counts_c_a6() {
    let text = reply_with(
        1,
        "ada",
        "accept",
        UnixMillis::new(0),
        &json!({"timestamp": "2026-05-24T16:22:41.12345+02:00"}),
    );
    assert!(scene().say("ada", &text, IN_TIME).is_ok());
}

#[test]
fn accepting_something_else_is_a_refusal_and_uses_the_token() {
    let mut hub = scene();
    let text = reply_with(1, "ada", "accept", IN_TIME, &json!({"modified_action": {"amount": 50}}));
    let resolved = resolution(&hub.say("ada", &text, IN_TIME).unwrap());
    assert_eq!((resolved.answer, resolved.modified), (Answer::Decision(Decision::Reject), true));
    assert_eq!(hub.answer("ada", 1, "accept", IN_TIME).unwrap_err(), Ignored::Used);
}

#[test]
fn a_decision_may_be_any_of_the_allowed_ones_c_d5() {
    for (allowed, decision, counts) in [
        ("accept", "accept", true),
        ("accept", "reject", false),
        ("reject", "reject", true),
        ("reject", "accept", false),
    ] {
        let mut hub = Hub::with(&["ada"]);
        let edits = json!({"allowed_replies": [allowed], "default_decision": allowed});
        hub.ask(&with(harmless(1), &edits), &["ada"]);
        assert_eq!(
            hub.answer("ada", 1, decision, T0 + 1).is_ok(),
            counts,
            "{decision} where {allowed} is allowed"
        );
    }
}

#[test]
fn over_a_connection_of_its_own_a_reply_speaks_for_that_subscription_only() {
    let Said::Reply(said) = Said::parse(&reply(1, "ada", "accept", IN_TIME)).unwrap() else { panic!() };
    let (ada, bob) = (sub("ada"), sub("bob"));
    let hear = |link| scene().book.hear(&said, &Sender { principal: "ada", link }, IN_TIME).map(|_| ());
    assert_eq!(hear(Link::Of(&ada)), Ok(()));
    assert_eq!(hear(Link::Of(&bob)), Err(Ignored::OtherConnection));
}

#[test]
fn the_first_valid_reply_wins() {
    let mut hub = Hub::with(&["ada", "bob"]);
    hub.ask(&confirmation(1), &["ada", "bob"]);
    assert!(!hub.answer("bob", 1, "reject", T0 + 1).unwrap().is_accepted());
    assert_eq!(hub.answer("ada", 1, "accept", T0 + 2).unwrap_err(), Ignored::Used);
    assert_eq!(hub.book.question(&token(1)).unwrap().status, Status::Refused { modified: false });
    assert!(hub.wake(T0 + 200_000).is_empty(), "its time is over, and it has been told");
}
