//! Questions and replies, deadline extensions, and stopping a session.

use serde_json::{Value, json};

use crate::fixture::{TransportFixture, now, question, reply, reply_capabilities, test_tokens};
use crate::transport::{ListenerConnection, TransportKind};

pub(crate) fn an_acceptance_is_announced_to_all_listeners(kind: TransportKind) {
    assert_decision_is_announced(kind, "accept");
}

pub(crate) fn a_rejection_is_announced_to_all_listeners(kind: TransportKind) {
    assert_decision_is_announced(kind, "reject");
}

fn assert_decision_is_announced(kind: TransportKind, decision: &str) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let (mut other, _) = fixture.connect_sse_listener(&test_tokens().ben, &reply_capabilities());
    let (mut observer, _) = fixture.connect_sse_listener(&test_tokens().eve, &json!({}));
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    let events = connection.events_until_type("awaiting.confirmation");
    let [.., state_change, confirmation] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(state_change["to_state"], "awaiting_input");
    assert_eq!((&confirmation["reply_token"], &confirmation["urgency"]), (&json!(token), &json!("critical")));
    // §6.7: every subscription that can answer gets the same question.
    let asked_elsewhere =
        (&mut other as &mut dyn ListenerConnection).events_until_type("awaiting.confirmation");
    assert_eq!(asked_elsewhere.last(), Some(confirmation));
    assert_eq!(fixture.question_status(&session, &token)["status"], "pending");
    connection.send(&reply(&id, &token, decision).to_string());
    let outcome = fixture.wait_for_outcome(&session, &token);
    assert_eq!((&outcome["decision"], &outcome["by"]), (&json!(decision), &json!("reply")), "{outcome}");
    let observer: &mut dyn ListenerConnection = &mut observer;
    let observed =
        observer.events_until(|event| event["extensions"]["sayso"]["reply_token"] == token.as_str());
    assert!(
        observed.iter().all(|event| event["type"] != "aaep:agent.awaiting.confirmation"),
        "a subscription that cannot answer gets no question: {observed:?}"
    );
    let other: &mut dyn ListenerConnection = &mut other;
    let resolutions = [connection.wait_for_resolution(&token), other.wait_for_resolution(&token)];
    for resolution in resolutions.iter().chain(observed.last()) {
        let extension_data = &resolution["extensions"]["sayso"];
        assert_eq!(
            (&extension_data["decision"], &extension_data["by"]),
            (&json!(decision), &json!("reply")),
            "{resolution}"
        );
        assert_eq!(resolution["from_state"], "awaiting_input");
    }
    let call = json!({"type": "aaep:agent.tool.invoked", "tool": "send", "tool_call_id": "call_1", "risk_level": "high",
        "irreversible": true, "summary_normal": "Sending.", "arguments": {"amount": "5.00"}});
    let called = fixture.agent.post(&format!("/agent/v1/sessions/{session}/events"), &call.to_string());
    assert_eq!(called.status, if decision == "accept" { 200 } else { 422 }, "{called:?}");
    if decision == "accept" {
        assert_eq!(connection.next_event()["to_state"], "calling_tool", "the hub reports the state");
        assert_eq!(connection.next_event()["type"], "aaep:agent.tool.invoked");
    }
}

pub(crate) fn a_clarification_is_answered(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    let clarification = json!({"question": "Which account?", "timeout_seconds": 120, "accepted_response_kinds": ["multiple_choice"],
        "choices": [{"value": "a", "label": "Savings"}, {"value": "b", "label": "Current"}], "summary_normal": "Which account?"});
    let token = fixture.ask(&session, &clarification);
    assert_eq!(
        connection.events_until_type("awaiting.clarification").pop().unwrap()["reply_token"],
        token.as_str()
    );
    let clarification_reply = |response: Value| {
        json!({"type": "clarification.reply", "reply_token": token, "response": response, "subscription_id": id, "timestamp": now()})
            .to_string()
    };
    for wrong in [json!("c"), json!(true), json!(1), json!("")] {
        connection.send(&clarification_reply(wrong));
    }
    crate::forged_replies::wait_until_processed(&mut *connection, &id);
    assert_eq!(
        fixture.question_status(&session, &token)["status"],
        "pending",
        "an invalid response leaves the question open"
    );
    connection.send(&clarification_reply(json!("b")));
    let outcome = fixture.wait_for_outcome(&session, &token);
    assert_eq!((&outcome["response"], &outcome["by"]), (&json!("b"), &json!("reply")), "{outcome}");
    let resolution = connection.wait_for_resolution(&token);
    let extension_data = &resolution["extensions"]["sayso"];
    assert_eq!(
        (&extension_data["by"], extension_data.get("decision")),
        (&json!("reply"), None),
        "a clarification has no decision"
    );
    assert_eq!(
        (&resolution["from_state"], &resolution["to_state"]),
        (&json!("awaiting_input"), &json!("thinking"))
    );
}

pub(crate) fn a_deadline_extension_moves_the_deadline(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    let mut short_question = question();
    // Long enough for the extension to arrive in time on any machine.
    short_question["timeout_seconds"] = json!(15);
    let token = fixture.ask(&session, &short_question);
    // A second question, asked later with the same timeout and no extension, shows when the first would have expired.
    let mut second_question = short_question.clone();
    second_question["action"] = json!("Send 7 euros to Ben.");
    second_question["arguments"]["amount"] = json!("7.00");
    let unextended_token = fixture.ask(&session, &second_question);
    connection.events_until(|event| event["reply_token"] == unextended_token.as_str());
    let extension = json!({"type": "sayso:deadline.extend", "reply_token": token, "subscription_id": id, "timestamp": now(), "seconds": 50});
    connection.send(&extension.to_string());
    let expired = connection.wait_for_resolution(&unextended_token);
    assert_eq!(expired["extensions"]["sayso"]["by"], "timeout", "{expired}");
    assert_eq!(fixture.question_status(&session, &token)["status"], "pending", "the deadline was extended");
    connection.send(&reply(&id, &token, "accept").to_string());
    assert_eq!(fixture.wait_for_outcome(&session, &token)["decision"], "accept");
}

pub(crate) fn a_listener_can_stop_the_session(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let (mut other, _) = fixture.connect_sse_listener(&test_tokens().ben, &json!({}));
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    connection.events_until_type("awaiting.confirmation");
    let stop = json!({"type": "sayso:session.stop", "session_id": session, "subscription_id": id, "timestamp": now()});
    connection.send(&stop.to_string());
    let others: [&mut dyn ListenerConnection; 1] = [&mut other];
    for listener in std::iter::once(&mut *connection).chain(others) {
        let last = listener.events_until_type("session.cancelled").pop().unwrap();
        assert_eq!(last["cancelled_by"], "user");
    }
    assert_eq!(fixture.question_status(&session, &token)["status"], "stopped");
    let more = fixture.agent.post(&format!("/agent/v1/sessions/{session}/output"), "more");
    assert_eq!(more.status, 404, "the session is over: {more:?}");
}
