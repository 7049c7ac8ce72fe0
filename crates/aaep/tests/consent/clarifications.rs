//! Clarifications: only a response of an accepted kind counts (§6.5, C-D6, C-D7, C-C24).

use aaep::consent::{IgnoreReason, QuestionAnswer, QuestionStatus, ResolvedBy};
use aaep::message::ClarificationResponse;
use serde_json::{Value, json};

use super::consent_hub::*;

fn choices() -> Value {
    json!([{"value": "ben", "label": "Ben"}, {"value": "cleo", "label": "Cleo"}])
}

#[test]
fn only_a_response_that_the_question_accepts_resolves_it() {
    let without_choices = |kinds: Value| json!({"accepted_response_kinds": kinds});
    let with_choices = |kinds: Value| json!({"accepted_response_kinds": kinds, "choices": choices()});
    let cases = [
        (without_choices(json!(["yes_no"])), json!(true), None),
        (without_choices(json!(["yes_no"])), json!("true"), Some("AAEP-6.5.2-1")),
        (without_choices(json!(["yes_no"])), json!(1), Some("AAEP-6.5.2-1")),
        (without_choices(json!(["numeric"])), json!(2.5), None),
        (without_choices(json!(["numeric"])), json!("2.5"), Some("AAEP-6.5.2-1")),
        (without_choices(json!(["numeric"])), json!(1e17), Some("AAEP-6.5.2-1")),
        (without_choices(json!(["freetext"])), json!("Ben"), None),
        (without_choices(json!(["freetext"])), json!(7), Some("AAEP-6.5.2-1")),
        (without_choices(json!(["freetext"])), json!(false), Some("AAEP-6.5.2-1")),
        (with_choices(json!(["multiple_choice"])), json!("cleo"), None),
        (with_choices(json!(["multiple_choice"])), json!("Cleo"), Some("AAEP-6.5.5-2")),
        (with_choices(json!(["multiple_choice", "freetext"])), json!("dora"), None),
        (with_choices(json!(["multiple_choice", "yes_no"])), json!(false), None),
        (json!({}), json!("anything"), None),
        (json!({}), json!(true), Some("AAEP-6.5.2-1")),
        (json!({"choices": choices()}), json!("ben"), None),
    ];
    for (edits, answer, broken_rule) in cases {
        let mut hub = ConsentHub::with_listeners(&["ada"]);
        hub.ask(&with(clarification(1), &edits), &["ada"]);
        let before = hub.registry.clone();
        let result = hub.send("ada", &response(1, "ada", &answer, T0 + 1), T0 + 1);
        match (result, broken_rule) {
            (Ok(outcomes), None) => {
                let resolved = resolution(&outcomes);
                assert!(matches!(resolved.answer, QuestionAnswer::Response(_)), "{edits} {answer}");
                assert_eq!(hub.registry.question(&token(1)).unwrap().status, QuestionStatus::Closed);
            }
            (Err(IgnoreReason::InvalidResponse(rule)), Some(id)) => {
                assert_eq!(rule.id(), id, "{edits} {answer}");
                assert!(hub.registry == before, "{edits} {answer}: an invalid response changes nothing");
            }
            other => panic!("{edits} {answer}: {other:?}"),
        }
    }
}

#[test]
fn an_empty_response_is_not_a_reply() {
    let mut hub = ConsentHub::with_listeners(&["ada"]);
    hub.ask(&clarification(1), &["ada"]);
    let empty = hub.send("ada", &response(1, "ada", &json!(""), T0 + 1), T0 + 1);
    assert!(matches!(empty, Err(IgnoreReason::Malformed(_))));
    assert!(hub.send("ada", &response(1, "ada", &json!("Ben"), T0 + 2), T0 + 2).is_ok());
}

#[test]
fn a_default_response_is_parsed_as_the_accepted_kind() {
    let cases = [
        (
            json!({"default_response": "Ben"}),
            QuestionAnswer::Response(ClarificationResponse::Text("Ben".to_owned())),
        ),
        (json!({}), QuestionAnswer::Unavailable),
        (
            json!({"accepted_response_kinds": ["yes_no"], "default_response": "true"}),
            QuestionAnswer::Response(ClarificationResponse::YesNo(true)),
        ),
        (
            json!({"accepted_response_kinds": ["yes_no"], "default_response": "false"}),
            QuestionAnswer::Response(ClarificationResponse::YesNo(false)),
        ),
        (
            json!({"accepted_response_kinds": ["yes_no"], "default_response": "no"}),
            QuestionAnswer::Unavailable,
        ),
        (
            json!({"accepted_response_kinds": ["numeric"], "default_response": "2.5"}),
            QuestionAnswer::Response(ClarificationResponse::Number(2.5)),
        ),
        (
            json!({"accepted_response_kinds": ["numeric"], "default_response": "many"}),
            QuestionAnswer::Unavailable,
        ),
        (
            json!({"accepted_response_kinds": ["multiple_choice"], "choices": choices(), "default_response": "dora"}),
            QuestionAnswer::Unavailable,
        ),
    ];
    for (edits, answer) in cases {
        for is_closed_early in [false, true] {
            let mut hub = ConsentHub::with_listeners(&["ada"]);
            hub.ask(&with(clarification(1), &edits), &["ada"]);
            let (outcomes, resolved_by) = if is_closed_early {
                let staged = hub.registry.subscription_closed(&sub("ada"), T0 + 5);
                (hub.commit(staged), ResolvedBy::Closure)
            } else {
                assert!(resolutions(&hub.wake(T0 + 119_999)).is_empty());
                (hub.wake(T0 + 120_000), ResolvedBy::Timeout)
            };
            let resolved = resolution(&outcomes);
            assert_eq!((&resolved.answer, resolved.resolved_by), (&answer, resolved_by), "{edits}");
        }
    }
}
