//! Fields of a session that its events repeat: states that the agent defines, and the correlation id.

use crate::support::*;
use aaep::event::InvalidStates;
use hub::Principal;
use hub::command::{HubCommand, HubReply, MalformedRequest};

const STATES: &str = r#"[{"state":"comparing","words":{"en":"Comparing prices.","es":"Comparando precios.","yo":"Ó ń fi iye owó wé ara."}}]"#;
const COMPARE: &str = r#"{"type":"aaep:agent.state.changed","to_state":"comparing"}"#;

fn start(harness: &mut HubHarness, principal: &Principal, states: &str) -> HubReply {
    let body = format!(r#"{{"summary_normal":"Buying a lamp.","states":{states}}}"#);
    harness.ask_hub(principal, HubCommand::Start { body: body.into(), idempotency_key: None })
}

#[test]
fn listeners_get_the_states_text_even_after_a_crash_and_after_joining_late() {
    let mut harness = HubHarness::new();
    let (shop, ada, ben) = (agent("shop"), listener("ada", &[]), listener("ben", &[]));
    let (_, listener_id) = harness.connect_listener(&ada, "{}");
    let session = text_member(&reply_json(start(&mut harness, &shop, STATES)), "session_id");
    let started = harness.take_events(listener_id).remove(0);
    assert!(started.contains(&format!(r#""sayso":{{"states":{STATES}}}"#)), "{started}");
    assert_eq!(started.matches("states").count(), 1, "the payload has no member states: {started}");
    harness.publish(&shop, &session, &[COMPARE]);
    let entered = harness.take_events(listener_id).remove(0);
    assert_eq!(text_member(&entered, "summary_normal"), "Comparing prices.");
    assert!(entered.contains(&format!(r#""states":{STATES}"#)), "{entered}");
    harness.crash();
    let (_, late_listener) = harness.connect_listener(&ben, "{}");
    let current = harness.take_events(late_listener).remove(0);
    assert_eq!(text_member(&current, "to_state"), "comparing");
    assert_eq!(text_member(&current, "summary_normal"), "Comparing prices.");
    assert!(current.contains(&format!(r#""states":{STATES}"#)), "{current}");
    let think = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    let reply = harness.publish(&shop, &session, &[think, COMPARE]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    let events = harness.take_events(late_listener);
    assert!(!events[0].contains("Comparing prices"), "{}", events[0]);
    assert_eq!(text_member(&events[1], "summary_normal"), "Comparing prices.");
}

#[test]
fn a_listener_gets_the_states_text_in_its_language() {
    let mut harness = HubHarness::new();
    let (shop, ana) = (agent("shop"), listener("ana", &[]));
    let (_, listener_id) = harness.connect_listener(&ana, r#"{"languages":["es-MX"]}"#);
    let session = text_member(&reply_json(start(&mut harness, &shop, STATES)), "session_id");
    harness.publish(&shop, &session, &[COMPARE]);
    let entered = harness.take_events(listener_id).remove(1);
    assert_eq!(text_member(&entered, "summary_normal"), "Comparando precios.");
}

#[test]
fn events_without_a_correlation_id_inherit_that_of_the_session() {
    let mut harness = HubHarness::new();
    let (shop, ada) = (agent("shop"), listener("ada", &[]));
    let (_, listener_id) = harness.connect_listener(&ada, "{}");
    for (id, is_repeated) in [("trace-7".to_owned(), true), ("é".repeat(256), true), ("é".repeat(257), false)]
    {
        let body = format!(r#"{{"summary_normal":"Buying a lamp.","correlation_id":"{id}"}}"#);
        let start = HubCommand::Start { body: body.into(), idempotency_key: None };
        let session = text_member(&reply_json(harness.ask_hub(&shop, start)), "session_id");
        harness.publish(&shop, &session, &[r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#]);
        let own = r#"{"type":"aaep:agent.state.changed","to_state":"deciding","correlation_id":"other"}"#;
        harness.publish(&shop, &session, &[own]);
        let events = harness.take_events(listener_id);
        assert_eq!(text_member(&events[0], "correlation_id"), id);
        assert_eq!(events[1].contains(&format!(r#""correlation_id":"{id}""#)), is_repeated, "{}", events[1]);
        assert_eq!(text_member(&events[2], "correlation_id"), "other");
    }
}

#[test]
fn invalid_states_are_refused_and_nothing_starts() {
    let mut harness = HubHarness::new();
    let shop = agent("shop");
    for (states, error) in [
        ("7", InvalidStates::Malformed),
        (r#"[{"state":"thinking","words":{"en":"A."}}]"#, InvalidStates::Standard("thinking".to_owned())),
        (r#"[{"state":"a","words":{"en":""}}]"#, InvalidStates::WordsLength),
    ] {
        assert_eq!(start(&mut harness, &shop, states), MalformedRequest::InvalidStates(error).into());
    }
    assert!(harness.disk.events().is_empty());
}
