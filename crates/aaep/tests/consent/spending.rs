//! Spending: one call, of the action that was asked about, in its session (design, decisions 5 and 6; C-B1 to C-B3).

use aaep::SessionId;
use aaep::consent::{Call, NotGranted, Outcome, Status};
use serde_json::json;

use super::hub::*;

const BEN: &str = r#"{"to":"Ben","amount":500}"#;

/// Question 1, about a transfer to Ben, stands like this.
fn scene(decision: Option<&str>) -> Hub {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&bound(confirmation(1), "transfer", BEN), &["ada"]);
    if let Some(decision) = decision {
        hub.answer("ada", 1, decision, T0 + 1).unwrap();
    }
    hub
}

#[test]
fn an_accepted_question_covers_the_very_call_once() {
    for named in [true, false] {
        let mut hub = scene(Some("accept"));
        let (session, token) = (session(), token(1));
        let call = call(&session, named.then_some(&token), Some(r#"{ "amount": 500.0, "to": "Ben" }"#));
        let outcomes = hub.spend(&call).unwrap();
        let [Outcome::Spent(spent)] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!(
            (&spent.token, spent.digest),
            (&token, hub.book.question(&token).unwrap().action_digest())
        );
        assert_eq!(hub.spend(&call).unwrap_err(), NotGranted::Spent);
    }
}

#[test]
fn whatever_is_not_that_call_is_refused_and_nothing_is_spent() {
    let other = SessionId::parse(OTHER_SESSION).unwrap();
    let session = session();
    let (one, nine) = (token(1), token(9));
    let ben = call(&session, Some(&one), Some(BEN));
    let cases = [
        (None, ben, NotGranted::Undecided, "AAEP-6.1-1"),
        (Some("reject"), ben, NotGranted::Refused { modified: false }, "AAEP-4.5.3-1"),
        (Some("accept"), Call { session: &other, ..ben }, NotGranted::OtherSession, "AAEP-4.3.1-3"),
        (Some("accept"), Call { session: &other, token: None, ..ben }, NotGranted::NotAsked, "AAEP-4.3.1-3"),
        (Some("accept"), Call { token: Some(&nine), ..ben }, NotGranted::NotAsked, "AAEP-4.3.1-3"),
        (Some("accept"), Call { tool: "delete", ..ben }, NotGranted::OtherAction, "AAEP-4.3.1-3"),
        (
            Some("accept"),
            Call { arguments: Some(r#"{"to":"Ben","amount":5000}"#), ..ben },
            NotGranted::OtherAction,
            "AAEP-4.3.1-3",
        ),
        (Some("accept"), Call { arguments: None, ..ben }, NotGranted::OtherAction, "AAEP-4.3.1-3"),
    ];
    for (decision, call, why, rule) in cases {
        let mut hub = scene(decision);
        let before = hub.book.clone();
        let refused = hub.book.spend(&call).unwrap_err();
        assert_eq!(refused, why, "{call:?}");
        assert_eq!(refused.rule(true).id(), rule);
        assert!(hub.book == before, "{call:?}");
    }
    let doubled = Call { arguments: Some(r#"{"to":"Ben","to":"Eve"}"#), ..ben };
    assert!(matches!(scene(Some("accept")).book.spend(&doubled), Err(NotGranted::NotAnAction(_))));
}

#[test]
fn asking_for_something_else_covers_nothing() {
    let mut hub = scene(None);
    let text = reply_with(1, "ada", "accept", T0 + 1, &json!({"modified_action": {"amount": 50}}));
    hub.say("ada", &text, T0 + 1).unwrap();
    let refused = hub.book.spend(&call(&session(), Some(&token(1)), Some(BEN))).unwrap_err();
    assert_eq!((refused.rule(true).id(), refused), ("AAEP-6.3.2-1", NotGranted::Refused { modified: true }));
}

#[test]
fn a_question_without_a_bound_action_covers_any_one_call_of_its_session() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    assert!(hub.spend(&call(&session(), None, Some(BEN))).is_ok());
    assert_eq!(hub.spend(&call(&session(), None, None)).unwrap_err(), NotGranted::Spent);
}

#[test]
fn silence_covers_nothing_irreversible() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&with(harmless(1), &json!({"irreversible": null, "reversibility": null})), &["ada"]);
    hub.wake(T0 + 30_000);
    assert_eq!(hub.book.question(&token(1)).unwrap().status, Status::Accepted { silent: true });
    let session = session();
    let irreversible = call(&session, None, None);
    assert_eq!(hub.book.spend(&irreversible).unwrap_err(), NotGranted::Silence);
    assert!(hub.spend(&Call { irreversible: false, ..irreversible }).is_ok());
}

#[test]
fn who_was_told_that_it_can_be_undone_has_not_agreed_to_what_cannot() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&harmless(1), &["ada"]);
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    assert_eq!(hub.book.spend(&call(&session(), None, None)).unwrap_err(), NotGranted::ToldReversible);
}

#[test]
fn the_question_that_says_most_is_spent_first() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&confirmation(1), &["ada"]);
    hub.ask(&bound(confirmation(2), "transfer", BEN), &["ada"]);
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    hub.answer("ada", 2, "accept", T0 + 1).unwrap();
    let spent: Vec<_> = (0..2)
        .map(|_| match &hub.spend(&call(&session(), None, Some(BEN))).unwrap()[..] {
            [Outcome::Spent(spent)] => spent.token.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(spent, [token(2), token(1)]);
}

#[test]
fn an_answer_covers_the_call_that_it_names() {
    let event = with(
        confirmation(1),
        &json!({
            "@context": ["https://aaep-protocol.org/context/v1", "urn:sayso:context:v1"],
            "extensions": {"sayso": {"tool_call_id": "call_7"}},
        }),
    );
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&event, &["ada"]);
    hub.answer("ada", 1, "accept", T0 + 1).unwrap();
    let session = session();
    let seven = Call { call: Some("call_7"), ..call(&session, None, None) };
    assert_eq!(hub.book.spend(&Call { call: Some("call_8"), ..seven }).unwrap_err(), NotGranted::OtherAction);
    assert!(hub.spend(&seven).is_ok());
}

#[test]
fn a_clarification_is_no_consent() {
    let mut hub = Hub::with(&["ada"]);
    hub.ask(&clarification(1), &["ada"]);
    hub.say("ada", &response(1, "ada", &json!("accept"), T0 + 1), T0 + 1).unwrap();
    for token in [None, Some(&token(1))] {
        assert_eq!(hub.book.spend(&call(&session(), token, None)).unwrap_err(), NotGranted::NotAsked);
    }
}
