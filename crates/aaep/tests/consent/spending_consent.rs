//! Spending consent: an acceptance permits one call of the action that was asked about, in the same session
//! (decisions 5 and 6; C-B1 to C-B3).

use aaep::consent::{ConsentOutcome, GuardedCall, QuestionStatus, SpendError};
use aaep::{ReplyToken, SessionId};
use serde_json::json;

use super::consent_hub::*;

const BEN_ARGUMENTS: &str = r#"{"to":"Ben","amount":500}"#;

/// A hub with question 1 about a transfer to Ben, and this decision on it.
fn hub_with_transfer(decision: Option<&str>) -> ConsentHub {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", BEN_ARGUMENTS), &["ada"]);
    if let Some(decision) = decision {
        hub.answer("ada", 1, decision, T0 + 1).unwrap();
    }
    hub
}

/// Spends an acceptance on the call and returns its token.
fn spent_token(hub: &mut ConsentHub, call: &GuardedCall<'_>) -> ReplyToken {
    match &hub.spend(call).unwrap()[..] {
        [ConsentOutcome::ConsentSpent(spent)] => spent.token.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_acceptance_covers_exactly_its_call_once() {
    for names_token in [true, false] {
        let mut hub = hub_with_transfer(Some("accept"));
        let (session, token) = (session(), token(1));
        let call = call(&session, names_token.then_some(&token), Some(r#"{ "amount": 500.0, "to": "Ben" }"#));
        let outcomes = hub.spend(&call).unwrap();
        let [ConsentOutcome::ConsentSpent(spent)] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!(
            (&spent.token, spent.digest),
            (&token, hub.registry.question(&token).unwrap().action_digest())
        );
        assert_eq!(hub.spend(&call).unwrap_err(), SpendError::AlreadySpent);
    }
}

#[test]
fn any_other_call_is_refused_and_spends_nothing() {
    let other_session = SessionId::parse(OTHER_SESSION).unwrap();
    let session = session();
    let (known_token, unknown_token) = (token(1), token(9));
    let transfer_to_ben = call(&session, Some(&known_token), Some(BEN_ARGUMENTS));
    let cases = [
        (None, transfer_to_ben, SpendError::Undecided, "AAEP-6.1-1"),
        (Some("reject"), transfer_to_ben, SpendError::Refused { modified: false }, "AAEP-4.5.3-1"),
        (
            Some("accept"),
            GuardedCall { session_id: &other_session, ..transfer_to_ben },
            SpendError::WrongSession,
            "AAEP-4.3.1-3",
        ),
        (
            Some("accept"),
            GuardedCall { agent_id: "helper", ..transfer_to_ben },
            SpendError::WrongProducer,
            "AAEP-4.3.1-3",
        ),
        (
            Some("accept"),
            GuardedCall { agent_id: "helper", token: None, ..transfer_to_ben },
            SpendError::WrongProducer,
            "AAEP-4.3.1-3",
        ),
        (
            Some("accept"),
            GuardedCall { session_id: &other_session, token: None, ..transfer_to_ben },
            SpendError::NotAsked,
            "AAEP-4.3.1-3",
        ),
        (
            Some("accept"),
            GuardedCall { token: Some(&unknown_token), ..transfer_to_ben },
            SpendError::NotAsked,
            "AAEP-4.3.1-3",
        ),
        (
            Some("accept"),
            GuardedCall { tool: "delete", ..transfer_to_ben },
            SpendError::WrongAction,
            "AAEP-4.3.1-3",
        ),
        (
            Some("accept"),
            GuardedCall { arguments: Some(r#"{"to":"Ben","amount":5000}"#), ..transfer_to_ben },
            SpendError::WrongAction,
            "AAEP-4.3.1-3",
        ),
        (
            Some("accept"),
            GuardedCall { arguments: None, ..transfer_to_ben },
            SpendError::WrongAction,
            "AAEP-4.3.1-3",
        ),
    ];
    for (decision, call, reason, rule) in cases {
        let mut hub = hub_with_transfer(decision);
        let before = hub.registry.clone();
        let refused = hub.registry.spend(&call, T0 + 1).unwrap_err();
        assert_eq!(refused, reason, "{call:?}");
        assert_eq!(refused.rule(true).id(), rule);
        assert!(hub.registry == before, "{call:?}");
    }
    let with_duplicate_key = GuardedCall { arguments: Some(r#"{"to":"Ben","to":"Eve"}"#), ..transfer_to_ben };
    assert!(matches!(
        hub_with_transfer(Some("accept")).registry.spend(&with_duplicate_key, T0 + 1),
        Err(SpendError::InvalidAction(_))
    ));
}

#[test]
fn accepting_a_modified_action_covers_nothing() {
    let mut hub = hub_with_transfer(None);
    let text = reply_with(1, "ada", "accept", T0 + 1, &json!({"modified_action": {"amount": 50}}));
    hub.send("ada", &text, T0 + 1).unwrap();
    let refused =
        hub.registry.spend(&call(&session(), Some(&token(1)), Some(BEN_ARGUMENTS)), T0 + 1).unwrap_err();
    assert_eq!((refused.rule(true).id(), refused), ("AAEP-6.3.2-1", SpendError::Refused { modified: true }));
}

#[test]
fn an_acceptance_without_a_bound_action_covers_no_dangerous_call() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    let session = session();
    let dangerous = call(&session, None, Some(BEN_ARGUMENTS));
    assert_eq!(hub.spend(&dangerous).unwrap_err(), SpendError::Unbound);
    for (irreversible, high_risk) in [(true, false), (false, true)] {
        let call = GuardedCall { irreversible, high_risk, ..dangerous };
        assert_eq!(hub.spend(&call).unwrap_err(), SpendError::Unbound);
    }
    let harmless = GuardedCall { irreversible: false, high_risk: false, ..dangerous };
    assert!(hub.spend(&harmless).is_ok());
}

#[test]
fn a_default_acceptance_covers_nothing_dangerous() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    let undeclared = with(harmless_confirmation(1), &json!({"irreversible": null, "reversibility": null}));
    hub.ask(&bound(undeclared, "transfer", "{}"), &["ada"]);
    hub.wake(T0 + 30_000);
    assert_eq!(
        hub.registry.question(&token(1)).unwrap().status,
        QuestionStatus::Accepted { by_default: true }
    );
    let session = session();
    let dangerous = call(&session, None, None);
    for (irreversible, high_risk) in [(true, true), (true, false), (false, true)] {
        let call = GuardedCall { irreversible, high_risk, ..dangerous };
        assert_eq!(hub.registry.spend(&call, T0 + 30_001).unwrap_err(), SpendError::DefaultOnly);
    }
    assert!(hub.spend(&GuardedCall { irreversible: false, high_risk: false, ..dangerous }).is_ok());
}

#[test]
fn a_high_risk_question_with_accept_as_its_default_is_refused() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    let event = with(harmless_confirmation(1), &json!({"risk_level": "high"}));
    let refused = hub.try_ask(&event, &["ada"], T0).unwrap_err();
    assert_eq!(refused.rule().unwrap().id(), "AAEP-6.4.1-4");
}

#[test]
fn consent_covers_only_the_danger_that_the_person_was_told_about() {
    let session = session();
    let dangerous = call(&session, None, None);
    for (declared, irreversible, high_risk, expected) in [
        (json!({}), true, true, Ok(())),
        (json!({"risk_level": "low"}), true, false, Ok(())),
        (json!({"risk_level": "low"}), true, true, Err(SpendError::RiskNotDeclared)),
        (json!({"risk_level": "medium"}), false, true, Err(SpendError::RiskNotDeclared)),
        (json!({"risk_level": null}), false, true, Err(SpendError::RiskNotDeclared)),
        (
            json!({"irreversible": false, "reversibility": "reversible"}),
            true,
            true,
            Err(SpendError::IrreversibilityNotDeclared),
        ),
        (
            json!({"irreversible": null, "reversibility": null}),
            true,
            true,
            Err(SpendError::IrreversibilityNotDeclared),
        ),
        (json!({"irreversible": null, "reversibility": null}), false, true, Ok(())),
    ] {
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        hub.ask(&bound(with(confirmation(1), &declared), "transfer", "{}"), &["ada"]);
        hub.answer("ada", 1, "accept", T0 + 1).unwrap();
        let call = GuardedCall { irreversible, high_risk, ..dangerous };
        assert_eq!(hub.spend(&call).map(drop), expected, "{declared} {irreversible} {high_risk}");
    }
}

#[test]
fn consent_expires() {
    let session = session();
    let transfer = call(&session, None, Some(BEN_ARGUMENTS));
    let answered_at = T0 + 1;
    for (now, expected) in [
        (answered_at + MAX_CONSENT_AGE_MS, Ok(())),
        (answered_at + (MAX_CONSENT_AGE_MS + 1), Err(SpendError::Expired)),
        // The clock was set back.
        (answered_at - MAX_CONSENT_AGE_MS, Ok(())),
        (answered_at - (MAX_CONSENT_AGE_MS + 1), Err(SpendError::Expired)),
    ] {
        let mut hub = hub_with_transfer(Some("accept"));
        assert_eq!(hub.registry.spend(&transfer, now).map(drop), expected, "{now:?}");
    }
}

#[test]
fn an_acceptance_by_a_person_is_spent_before_one_by_default() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    for n in [1, 2] {
        hub.ask(&with(harmless_confirmation(n), &json!({"timeout_seconds": 30})), &["ada"]);
    }
    hub.answer("ada", 2, "accept", T0 + 1).unwrap();
    hub.wake(T0 + 30_000);
    let session = session();
    let harmless = GuardedCall { irreversible: false, high_risk: false, ..call(&session, None, None) };
    for n in [2, 1] {
        assert_eq!(spent_token(&mut hub, &harmless), token(n));
    }
}

#[test]
fn the_most_specific_acceptance_is_spent_first() {
    let digest = aaep::consent::BoundAction::new("transfer", "{}").unwrap().digest().to_string();
    let members = [("tool", "transfer"), ("tool_call_id", "call_7"), ("action_digest", &*digest)];
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    // The bits of the question's number say which members it has.
    for n in 0..8_u8 {
        let named: serde_json::Map<_, _> = (members.iter().enumerate())
            .filter(|(bit, _)| n >> bit & 1 == 1)
            .map(|(_, (name, value))| ((*name).to_owned(), json!(value)))
            .collect();
        let edits = json!({
            "@context": ["https://aaep-protocol.org/context/v1", "urn:sayso:context:v1"],
            "extensions": {"sayso": named},
        });
        hub.ask(&with(confirmation(n), &edits), &["ada"]);
        hub.answer("ada", n, "accept", T0 + 1).unwrap();
    }
    let session = session();
    let harmless = GuardedCall {
        call_id: Some("call_7"),
        irreversible: false,
        high_risk: false,
        ..call(&session, None, None)
    };
    for n in (0..8).rev() {
        assert_eq!(spent_token(&mut hub, &harmless), token(n));
    }
}

#[test]
fn the_oldest_of_two_equal_acceptances_is_spent_first() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    for n in [2, 1] {
        hub.ask(&bound(confirmation(n), "transfer", "{}"), &["ada"]);
        hub.answer("ada", n, "accept", T0 + 1).unwrap();
    }
    let session = session();
    for n in [2, 1] {
        assert_eq!(spent_token(&mut hub, &call(&session, None, None)), token(n));
    }
}

#[test]
fn the_broken_rule_depends_on_the_reason_and_the_danger() {
    for (reason, irreversible_rule, high_risk_rule) in [
        (SpendError::Undecided, "AAEP-6.1-1", "AAEP-6.1-1"),
        (SpendError::Refused { modified: false }, "AAEP-4.5.3-1", "AAEP-4.5.3-1"),
        (SpendError::Refused { modified: true }, "AAEP-6.3.2-1", "AAEP-6.3.2-1"),
        (SpendError::SessionEnded, "AAEP-4.5.1-1", "AAEP-4.5.1-1"),
        (SpendError::NotAsked, "AAEP-4.3.1-3", "AAEP-2.3.5-1"),
        (SpendError::Expired, "AAEP-4.3.1-3", "AAEP-2.3.5-1"),
    ] {
        assert_eq!(
            (reason.rule(true).id(), reason.rule(false).id()),
            (irreversible_rule, high_risk_rule),
            "{reason:?}"
        );
    }
}

#[test]
fn an_acceptance_with_a_call_id_covers_only_that_call() {
    let digest = aaep::consent::BoundAction::new("transfer", "{}").unwrap().digest().to_string();
    let event = with(
        confirmation(1),
        &json!({
            "@context": ["https://aaep-protocol.org/context/v1", "urn:sayso:context:v1"],
            "extensions": {"sayso": {"tool_call_id": "call_7", "tool": "transfer", "action_digest": digest}},
        }),
    );
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&event, &["ada"]);
    hub.ask(&clarification(2), &["ada"]);
    let named = |n| {
        let question = hub.registry.question(&token(n)).unwrap();
        (question.tool().map(str::to_owned), question.call_id().map(str::to_owned))
    };
    assert_eq!(named(1), (Some("transfer".to_owned()), Some("call_7".to_owned())));
    assert_eq!(named(2), (None, None));
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    let session = session();
    let call_seven = GuardedCall { call_id: Some("call_7"), ..call(&session, None, None) };
    assert_eq!(
        hub.registry.spend(&GuardedCall { call_id: Some("call_8"), ..call_seven }, T0 + 1).unwrap_err(),
        SpendError::WrongAction
    );
    assert!(hub.spend(&call_seven).is_ok());
}

#[test]
fn a_clarification_is_not_consent() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&clarification(1), &["ada"]);
    hub.send("ada", &response(1, "ada", &json!("accept"), T0 + 1), T0 + 1).unwrap();
    for token in [None, Some(&token(1))] {
        assert_eq!(
            hub.registry.spend(&call(&session(), token, None), T0 + 1).unwrap_err(),
            SpendError::NotAsked
        );
    }
}

#[test]
fn a_refused_call_names_the_agents_own_question_and_not_that_of_another() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    let of_helper = |n| with(confirmation(n), &json!({"producer": {"agent_id": "helper"}}));
    for event in [of_helper(1), bound(confirmation(2), "transfer", BEN_ARGUMENTS), of_helper(3)] {
        hub.ask(&event, &["ada"]);
    }
    let session = session();
    let transfer = call(&session, None, Some(BEN_ARGUMENTS));
    assert_eq!(hub.registry.spend(&transfer, T0 + 1).unwrap_err(), SpendError::Undecided);
}
