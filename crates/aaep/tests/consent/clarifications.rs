//! Clarifications: an answer of the right kind, or none (§6.5, C-D6, C-D7, C-C24).

use aaep::consent::{Answer, By, Ignored, Status};
use aaep::message::Response;
use serde_json::{Value, json};

use super::hub::*;

fn choices() -> Value {
    json!([{"value": "ben", "label": "Ben"}, {"value": "cleo", "label": "Cleo"}])
}

#[test]
fn a_response_must_be_of_a_kind_that_was_asked_for_and_the_question_stays_open_if_not() {
    let kinds = |kinds: Value| json!({"accepted_response_kinds": kinds});
    let choosing = |list: Value| json!({"accepted_response_kinds": list, "choices": choices()});
    let cases = [
        (kinds(json!(["yes_no"])), json!(true), None),
        (kinds(json!(["yes_no"])), json!("true"), Some("AAEP-6.5.2-1")),
        (kinds(json!(["yes_no"])), json!(1), Some("AAEP-6.5.2-1")),
        (kinds(json!(["numeric"])), json!(2.5), None),
        (kinds(json!(["numeric"])), json!("2.5"), Some("AAEP-6.5.2-1")),
        (kinds(json!(["numeric"])), json!(1e17), Some("AAEP-6.5.2-1")),
        (kinds(json!(["freetext"])), json!("Ben"), None),
        (kinds(json!(["freetext"])), json!(7), Some("AAEP-6.5.2-1")),
        (kinds(json!(["freetext"])), json!(false), Some("AAEP-6.5.2-1")),
        (choosing(json!(["multiple_choice"])), json!("cleo"), None),
        (choosing(json!(["multiple_choice"])), json!("Cleo"), Some("AAEP-6.5.5-2")),
        (choosing(json!(["multiple_choice", "freetext"])), json!("dora"), None),
        (choosing(json!(["multiple_choice", "yes_no"])), json!(false), None),
        (json!({}), json!("anything"), None),
        (json!({}), json!(true), Some("AAEP-6.5.2-1")),
        (json!({"choices": choices()}), json!("ben"), None),
    ];
    for (edits, answer, broken) in cases {
        let mut hub = Hub::with(&["ada"]);
        hub.ask(&with(clarification(1), &edits), &["ada"]);
        let before = hub.book.clone();
        let heard = hub.say("ada", &response(1, "ada", &answer, T0 + 1), T0 + 1);
        match (heard, broken) {
            (Ok(outcomes), None) => {
                let resolved = resolution(&outcomes);
                assert!(matches!(resolved.answer, Answer::Response(_)), "{edits} {answer}");
                assert_eq!(hub.book.question(&token(1)).unwrap().status, Status::Answered);
            }
            (Err(Ignored::DoesNotFit(rule)), Some(id)) => {
                assert_eq!(rule.id(), id, "{edits} {answer}");
                assert!(hub.book == before, "{edits} {answer}: counts as no reply");
            }
            other => panic!("{edits} {answer}: {other:?}"),
        }
    }
}

#[test]
fn an_empty_response_is_no_reply() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&clarification(1), &["ada"]);
    let empty = hub.say("ada", &response(1, "ada", &json!(""), T0 + 1), T0 + 1);
    assert!(matches!(empty, Err(Ignored::Malformed(_))));
    assert!(hub.say("ada", &response(1, "ada", &json!("Ben"), T0 + 2), T0 + 2).is_ok());
}

#[test]
fn a_default_is_read_as_the_kind_that_was_asked_for() {
    let cases = [
        (json!({"default_response": "Ben"}), Answer::Response(Response::Text("Ben".to_owned()))),
        (json!({}), Answer::Unavailable),
        (
            json!({"accepted_response_kinds": ["yes_no"], "default_response": "false"}),
            Answer::Response(Response::YesNo(false)),
        ),
        (json!({"accepted_response_kinds": ["yes_no"], "default_response": "no"}), Answer::Unavailable),
        (
            json!({"accepted_response_kinds": ["numeric"], "default_response": "2.5"}),
            Answer::Response(Response::Number(2.5)),
        ),
        (json!({"accepted_response_kinds": ["numeric"], "default_response": "many"}), Answer::Unavailable),
        (
            json!({"accepted_response_kinds": ["multiple_choice"], "choices": choices(), "default_response": "dora"}),
            Answer::Unavailable,
        ),
    ];
    for (edits, answer) in cases {
        for close in [false, true] {
            let mut hub = Hub::with(&["ada"]);
            hub.ask(&with(clarification(1), &edits), &["ada"]);
            let (outcomes, by) = if close {
                let decided = hub.book.subscription_closed(&sub("ada"), T0 + 5);
                (hub.commit(decided), By::Closure)
            } else {
                assert!(resolutions(&hub.wake(T0 + 119_999)).is_empty());
                (hub.wake(T0 + 120_000), By::Timeout)
            };
            let resolved = resolution(&outcomes);
            assert_eq!((&resolved.answer, resolved.by), (&answer, by), "{edits}");
        }
    }
}
