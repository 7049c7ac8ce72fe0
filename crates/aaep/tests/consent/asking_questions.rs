//! Asking questions: which ones are valid, what happens without a reply, and how many may be open.

use aaep::ReplyToken;
use std::hash::BuildHasherDefault;

use aaep::consent::{
    AskError, BoundAction, ConsentLimits, ConsentOutcome, LimitScope, QuestionAnswer, QuestionRegistry,
    QuestionStatus, ResolvedBy,
};
use aaep::event::Decision;
use serde_json::json;

use super::consent_hub::*;

/// Combinations of risk and reversibility (§6.4.1, C-B2, C-B5).
#[test]
fn the_default_may_be_accept_only_if_the_action_is_reversible_and_not_high_risk() {
    let rows = [
        (json!({"irreversible": true, "risk_level": "high"}), Some("AAEP-6.4.1-1")),
        (json!({"irreversible": true, "risk_level": "medium"}), Some("AAEP-6.4.1-2")),
        (json!({"irreversible": true, "risk_level": "low"}), Some("AAEP-6.4.1-3")),
        (json!({"irreversible": false, "risk_level": "high"}), Some("AAEP-6.4.1-4")),
        (json!({"irreversible": false, "risk_level": "medium"}), None),
        (json!({"irreversible": false, "risk_level": "low"}), None),
        (json!({"irreversible": true, "risk_level": null}), Some("AAEP-6.4.1-1")),
        (json!({"reversibility": "irreversible", "risk_level": "low"}), Some("AAEP-6.4.1-3")),
        (json!({"reversibility": "irreversible", "risk_level": null}), Some("AAEP-6.4.1-1")),
    ];
    for (row, broken_rule) in rows {
        let base =
            with(confirmation(1), &json!({"irreversible": null, "reversibility": null, "risk_level": null}));
        let accepts_by_default = with(with(base.clone(), &row), &json!({"default_decision": "accept"}));
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        let before = hub.registry.clone();
        let result = hub.try_ask(&accepts_by_default, &["ada"], T0);
        assert_eq!(
            result.as_ref().err().and_then(AskError::rule).map(aaep::rule::Rule::id),
            broken_rule,
            "{row}"
        );
        assert!(result.is_ok() || hub.registry == before, "{row}: a refused question changes nothing");
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        hub.ask(&with(base, &row), &["ada"]);
        let resolved = resolution(&hub.wake(T0 + 180_000));
        assert_eq!(
            resolved.answer,
            QuestionAnswer::Decision(Decision::Reject),
            "{row}: the default may always be reject"
        );
    }
}

#[test]
fn a_question_that_breaks_a_rule_is_refused() {
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
        (json!({"reply_token": format!("{}x", token(1).as_str())}), "AAEP-6.2.1-2"),
        (json!({"reply_token": format!("{}x1234", token(1).as_str())}), "AAEP-6.2.1-2"),
        (json!({"reply_token": format!("{}xa", token(1).as_str())}), "AAEP-6.2.1-2"),
        (json!({"reply_token": format!("{}y1", token(1).as_str())}), "AAEP-6.2.1-2"),
        (json!({"reply_token": format!("rpl_{}x1", "g".repeat(32))}), "AAEP-6.2.1-2"),
    ];
    for (edit, rule) in edits {
        let refused = ConsentHub::with_listeners(&["ada"])
            .try_ask(&with(confirmation(1), &edit), &["ada"], T0)
            .unwrap_err();
        assert_eq!(refused.rule().map(aaep::rule::Rule::id), Some(rule), "{edit}: {refused}");
    }
    let without_choices = json!({"accepted_response_kinds": ["multiple_choice"]});
    let refused = ConsentHub::with_listeners(&["ada"])
        .try_ask(&with(clarification(1), &without_choices), &["ada"], T0)
        .unwrap_err();
    assert_eq!(refused.rule().unwrap().id(), "AAEP-4.4.2s-1");
    let with_md5_digest = bound(confirmation(1), "transfer", "{}").to_string().replace("sha256:", "md5:");
    let refused = ConsentHub::with_listeners(&["ada"]).try_ask(
        &serde_json::from_str(&with_md5_digest).unwrap(),
        &["ada"],
        T0,
    );
    assert_eq!(refused.unwrap_err(), AskError::InvalidDigest);
}

#[test]
fn a_reply_token_may_end_in_the_number_of_a_shard() {
    for number in ["x0", "x12", "x255"] {
        let event = with(confirmation(1), &json!({"reply_token": format!("{}{number}", token(1).as_str())}));
        let asked = ConsentHub::with_listeners(&["ada"]).try_ask(&event, &["ada"], T0);
        assert!(asked.is_ok(), "{number}: {asked:?}");
    }
}

#[test]
fn only_question_events_can_be_asked() {
    let event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:agent.session.started",
        "event_id": "evt_8a3f5b22c91e4d7a", "session_id": SESSION, "timestamp": format_timestamp(T0.get()),
        "producer": {"agent_id": "bank"}, "localization_hints": {"primary_language": "en"}, "summary_normal": "Hello.",
    });
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    assert_eq!(hub.try_ask(&event, &["ada"], T0).unwrap_err(), AskError::NotAQuestion);
    let invalid = with(event, &json!({"summary_normal": ""}));
    let refused = hub.try_ask(&invalid, &["ada"], T0).unwrap_err();
    assert!(matches!(refused, AskError::RuleViolations(_)), "broken rules are reported first: {refused:?}");
}

#[test]
fn asking_returns_the_deadline_and_the_repliers() {
    let mut hub = ConsentHub::with_listeners(&["ada", "bob"]);
    let outcomes = hub.ask(&confirmation(1), &["bob", "ada", "nobody", "ada"]);
    let [ConsentOutcome::Opened(opened)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((&opened.token, opened.deadline), (&token(1), T0 + 180_000));
    assert_eq!(opened.reminder_times, [T0 + 90_000, T0 + 162_000]);
    assert_eq!(opened.replier_ids, [sub("ada"), sub("bob")], "only open subscriptions, each once");
    assert_eq!(hub.registry.next_deadline(), Some(T0 + 90_000));
}

#[test]
fn a_question_dated_in_the_future_gets_no_extra_time() {
    for (now, deadline) in [(T0 - 60_000, T0 + 120_000), (T0 + 60_000, T0 + 180_000)] {
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        let outcomes = hub.try_ask(&confirmation(1), &["ada"], now).unwrap();
        let [ConsentOutcome::Opened(opened)] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!(opened.deadline, deadline);
    }
}

#[test]
fn a_token_has_128_random_bits_and_is_never_reused() {
    let mut lengths = Vec::new();
    let generated = ReplyToken::generate(&mut |bytes: &mut [u8]| {
        lengths.push(bytes.len());
        bytes.fill(0x11);
    });
    assert_eq!((lengths, &generated), (vec![16], &token(0x11)));
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(0x11), &["ada"]);
    let reused_token = with(confirmation(2), &json!({"reply_token": generated.as_str()}));
    assert_eq!(
        hub.try_ask(&reused_token, &["ada"], T0).unwrap_err(),
        AskError::TokenUsed,
        "while the question is open"
    );
    hub.answer("ada", 0x11, "reject", T0 + 1).unwrap();
    assert_eq!(
        hub.try_ask(&reused_token, &["ada"], T0 + 2).unwrap_err(),
        AskError::TokenUsed,
        "after the question is resolved"
    );
    let staged = hub.registry.end_session(&session(), T0 + 3);
    hub.commit(staged);
    let in_other_session = with(reused_token, &json!({"session_id": OTHER_SESSION}));
    let refused = hub.try_ask(&in_other_session, &["ada"], T0 + 4).unwrap_err();
    assert_eq!(refused.rule().unwrap().id(), "AAEP-6.2.2-1", "after its session has ended");
}

#[test]
fn an_action_has_at_most_one_open_question() {
    let arguments = r#"{"to":"Ben"}"#;
    let same_action = |n, edits| with(bound(confirmation(n), "transfer", arguments), &edits);
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&same_action(1, json!({})), &["ada"]);
    let refused = hub.try_ask(&same_action(2, json!({})), &["ada"], T0).unwrap_err();
    assert_eq!(refused, AskError::DuplicateQuestion(token(1)));
    assert_eq!(refused.rule().unwrap().id(), "AAEP-6.1-5");
    hub.ask(&bound(confirmation(3), "transfer", r#"{"to":"Cleo"}"#), &["ada"]);
    hub.ask(&same_action(4, json!({"session_id": OTHER_SESSION})), &["ada"]);
    hub.answer("ada", 1, "reject", T0 + 1).unwrap();
    assert!(
        hub.try_ask(&same_action(5, json!({})), &["ada"], T0 + 2).is_ok(),
        "the first question is resolved"
    );

    let mut hub = ConsentHub::with_listeners(&["ada"]);
    let same_action_text = |n| with(confirmation(n), &json!({"action": "Send it."}));
    hub.ask(&same_action_text(1), &["ada"]);
    assert!(matches!(hub.try_ask(&same_action_text(2), &["ada"], T0), Err(AskError::DuplicateQuestion(_))));
}

#[test]
fn open_questions_are_limited_per_session_per_agent_and_in_total() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    let question = |n: u8, session: u8, agent: &str| {
        let edits = json!({"session_id": format!("sess_{session}abcdefgh"), "producer": {"agent_id": agent}});
        with(confirmation(n), &edits)
    };
    for n in 0..16 {
        hub.ask(&question(n, 0, "bank"), &["ada"]);
    }
    let exceeded_scope = |hub: &mut ConsentHub, event| match hub.try_ask(&event, &["ada"], T0) {
        Err(AskError::TooMany(exceeded_scope)) => exceeded_scope,
        other => panic!("{other:?}"),
    };
    assert_eq!(exceeded_scope(&mut hub, question(100, 0, "bank")), LimitScope::Session);
    for n in 16..64 {
        hub.ask(&question(n, n / 16, "bank"), &["ada"]);
    }
    assert_eq!(exceeded_scope(&mut hub, question(100, 9, "bank")), LimitScope::Agent);
    assert!(hub.try_ask(&question(100, 9, "shop"), &["ada"], T0).is_ok());
    hub.answer("ada", 20, "reject", T0 + 1).unwrap();
    assert!(
        hub.try_ask(&question(101, 9, "bank"), &["ada"], T0 + 2).is_ok(),
        "a resolved question no longer counts"
    );

    let limits = ConsentLimits { max_open_total: 2, ..Default::default() };
    let mut small_hub = ConsentHub { registry: QuestionRegistry::new(limits, BuildHasherDefault::default()) };
    small_hub.registry.subscription_opened(&sub("ada"), "ada");
    small_hub.ask(&question(1, 1, "a"), &["ada"]);
    small_hub.ask(&question(2, 2, "b"), &["ada"]);
    assert_eq!(exceeded_scope(&mut small_hub, question(3, 3, "c")), LimitScope::Total);
}

#[test]
fn a_refused_question_has_an_explanation() {
    let with_two_errors = with(confirmation(1), &json!({"timeout_seconds": 0, "action": ""}));
    let findings = match ConsentHub::with_listeners(&["ada"]).try_ask(&with_two_errors, &["ada"], T0) {
        Err(AskError::RuleViolations(findings)) => findings,
        other => panic!("{other:?}"),
    };
    let messages: Vec<_> = findings.iter().map(aaep::rule::Finding::message).collect();
    assert_eq!(messages.len(), 2);
    let duplicate = AskError::DuplicateQuestion(token(1));
    let still_open = format!("{} is still open; {}", token(1), duplicate.rule().unwrap().sentence());
    for (error, text) in [
        (AskError::NotAQuestion, "the event is not a question"),
        (AskError::RuleViolations(findings), &messages.join("; ")),
        (AskError::InvalidDigest, "action_digest must be sha256: followed by 64 hexadecimal digits"),
        (AskError::TokenUsed, "a reply_token must not be used for a second question"),
        (duplicate, &still_open),
        (AskError::TooMany(LimitScope::Session), "too many questions are open in this session"),
        (AskError::TooMany(LimitScope::Agent), "too many questions from this agent are open"),
        (AskError::TooMany(LimitScope::Total), "too many questions are open"),
        (AskError::SessionEnded, "the session has ended"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn the_default_applies_immediately_if_nobody_can_answer() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    for (event, answer, status) in [
        (
            confirmation(1),
            QuestionAnswer::Decision(Decision::Reject),
            QuestionStatus::Refused { modified: false },
        ),
        (
            harmless_confirmation(2),
            QuestionAnswer::Decision(Decision::Accept),
            QuestionStatus::Accepted { by_default: true },
        ),
        (clarification(3), QuestionAnswer::Unavailable, QuestionStatus::Closed),
    ] {
        let resolved = resolution(&hub.ask(&event, &[]));
        assert_eq!(
            (resolved.answer, resolved.resolved_by, resolved.resolved_at),
            (answer, ResolvedBy::Unreachable, T0)
        );
        assert_eq!(hub.registry.question(&resolved.token).unwrap().status, status);
    }
    assert_eq!(hub.registry.next_deadline(), None);
}

#[test]
fn an_action_digest_does_not_depend_on_formatting() {
    let digest = |tool, arguments| BoundAction::new(tool, arguments).unwrap().digest();
    assert_eq!(digest("t", r#"{"a":1,"b":[true]}"#), digest("t", "{ \"b\" : [ true ], \"a\" : 1.0 }"));
    assert_eq!(digest("t", "{}"), seal::Digest::of(br#"{"arguments":{},"tool":"t"}"#));
    for other in [digest("u", "{}"), digest("t", "[]"), digest("t", "null"), digest("t", r#"{"a":0}"#)] {
        assert_ne!(other, digest("t", "{}"));
    }
    for invalid in [r#"{"a":1,"a":2}"#, r#""\ud800""#, "9007199254740993", "{}{}", r#"1},"x":{"#, ""] {
        assert!(BoundAction::new("t", invalid).is_err(), "{invalid}");
    }
}
