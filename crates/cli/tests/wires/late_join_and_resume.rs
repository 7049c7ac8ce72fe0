//! Listeners that join late, and listeners that reconnect.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::fixture::{
    TransportFixture, has_several_shards, question, reply, reply_capabilities, subscription_request,
    test_tokens,
};
use crate::sse::SseListener;
use crate::transport::{ListenerConnection, ReceivedMessage, Reconnection, TransportKind};

pub(crate) fn a_late_listener_receives_the_current_state(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut first, _) = fixture.connect_sse_listener(&test_tokens().ben, &reply_capabilities());
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    let asked =
        (&mut first as &mut dyn ListenerConnection).events_until_type("awaiting.confirmation").pop().unwrap();
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let state = connection.next_event();
    assert_eq!(state["type"], "aaep:agent.state.changed");
    assert_eq!(
        (&state["from_state"], &state["to_state"]),
        (&json!("awaiting_input"), &json!("awaiting_input"))
    );
    assert_eq!(state["session_id"], session.as_str());
    assert_eq!(connection.next_event(), asked, "the question, unchanged");
    connection.send(&reply(&id, &token, "accept").to_string());
    assert_eq!(fixture.wait_for_outcome(&session, &token)["decision"], "accept");
    connection.wait_for_resolution(&token);
}

pub(crate) fn a_returning_listener_resumes_or_receives_the_current_state(kind: TransportKind) {
    assert_resumed_or_current_state(kind, false);
}

pub(crate) fn after_a_crash_a_listener_resumes_or_receives_the_current_state(kind: TransportKind) {
    assert_resumed_or_current_state(kind, true);
}

fn assert_resumed_or_current_state(kind: TransportKind, is_after_crash: bool) {
    let mut fixture = TransportFixture::on_disk(kind);
    let (mut connection, mut id) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    connection.events_until_type("session.started");
    fixture.publish_output(&session, "First. Sec", false);
    connection.events_until(|event| event["chunk"] == "First. ");
    if is_after_crash {
        fixture.hub.kill();
        fixture.restart_hub();
    } else if !connection.drop_connection() {
        // On stdio, dropping the connection would stop the hub, so the listener closes its subscription instead.
        connection.send(&testing::messages::subscription_close(&id));
        connection.close_signal();
    }
    fixture.publish_output(&session, "ond. Third. ", false);
    let token = fixture.ask(&session, &question());
    match connection.reconnect(&mut fixture.hub, &subscription_request(&reply_capabilities())) {
        Reconnection::Resumed => {
            let missed = connection.events_until_type("awaiting.confirmation");
            let text: String = missed.iter().filter_map(|event| event["chunk"].as_str()).collect();
            assert_eq!(text, "Second. Third. ", "{missed:?}");
            assert_eq!(missed.last().unwrap()["reply_token"], token.as_str());
        }
        Reconnection::NewSubscription(new) => {
            assert_ne!(new, id);
            id = new;
            let state = connection.next_event();
            assert_eq!(state["from_state"], state["to_state"], "{state}");
            if fixture.question_status(&session, &token)["status"] == "resolved" {
                // No listener was connected, so the default decision (reject) applied.
                assert_eq!(fixture.question_status(&session, &token)["decision"], "reject");
                return;
            }
            assert_eq!(connection.next_event()["reply_token"], token.as_str());
        }
    }
    connection.send(&reply(&id, &token, "accept").to_string());
    assert_eq!(fixture.wait_for_outcome(&session, &token)["decision"], "accept");
    connection.wait_for_resolution(&token);
}

/// With a limit of one event per second, the question of the second session overtakes the queued events of the first.
pub(crate) fn overtaken_events_are_not_lost(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let mut capabilities = reply_capabilities();
    capabilities["max_events_per_second"] = json!(1);
    let (mut connection, _) = fixture.connect_and_subscribe(&capabilities);
    let (mut other, _) = fixture.connect_sse_listener(&test_tokens().ben, &reply_capabilities());
    let (tool_session, asking_session) = (fixture.start_session(), fixture.start_session());
    let tool_calls = (0..3).flat_map(|number| {
        let call = format!("call_{number}");
        [
            json!({"type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": call, "summary_normal": "Looking."}),
            json!({"type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": call, "status": "success"}),
        ]
    });
    fixture.publish(&tool_session, &tool_calls.collect::<Vec<_>>());
    let token = fixture.ask(&asking_session, &question());
    let mut received = connection.events_until_type("awaiting.confirmation");
    assert_eq!(received.last().unwrap()["reply_token"], token.as_str());
    let is_tool_event = |event: &&Value| event["type"].as_str().unwrap().starts_with("aaep:agent.tool.");
    assert!(
        received.iter().filter(is_tool_event).count() < 6,
        "the question did not overtake the tool events: {received:?}"
    );
    if kind == TransportKind::Sse {
        connection.drop_connection();
        assert_eq!(
            connection.reconnect(&mut fixture.hub, &subscription_request(&capabilities)),
            Reconnection::Resumed
        );
    }
    let all_events = (&mut other as &mut dyn ListenerConnection).events_until_type("awaiting.confirmation");
    let mut missing: BTreeSet<_> =
        all_events.iter().filter(is_tool_event).map(|event| event["event_id"].to_string()).collect();
    assert_eq!(missing.len(), 6);
    let mut deliveries: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        for event in received.drain(..) {
            let id = event["event_id"].to_string();
            missing.remove(&id);
            *deliveries.entry(id).or_default() += 1;
        }
        if missing.is_empty() {
            break;
        }
        received.push(connection.next_event());
    }
    if kind != TransportKind::Sse {
        assert!(deliveries.values().all(|count| *count == 1), "an event was delivered twice: {deliveries:?}");
    }
}

pub(crate) fn a_gap_is_reported(kind: TransportKind) {
    if kind != TransportKind::Sse {
        return;
    }
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    connection.events_until_type("awaiting.confirmation");
    let mut resumed = SseListener::new(&fixture.hub.address, &test_tokens().ada);
    resumed.resume(&id, "evt_ofLongAgo");
    let resumed: &mut dyn ListenerConnection = &mut resumed;
    let gap = resumed.next_message();
    assert_eq!((&gap["type"], &gap["subscription_id"]), (&json!("sayso:gap"), &json!(id)));
    assert_eq!(gap["last_event_id"], "evt_ofLongAgo");
    let state = resumed.next_event();
    assert_eq!(state["extensions"]["sayso"]["gap"], true, "{state}");
    assert_eq!(
        (&state["from_state"], &state["to_state"]),
        (&json!("awaiting_input"), &json!("awaiting_input"))
    );
    assert_eq!(resumed.next_event()["reply_token"], token.as_str());
    // After the gap report the subscription works as before.
    resumed.send(&reply(&id, &token, "accept").to_string());
    resumed.wait_for_resolution(&token);
    resumed.drop_connection();
    assert_eq!(resumed.reconnect(&mut fixture.hub, ""), Reconnection::Resumed);
    fixture.publish(&session, &[json!({"type": "aaep:agent.session.completed", "summary_normal": "Done."})]);
    assert_eq!(
        resumed.next_event()["type"],
        "aaep:agent.session.completed",
        "no second gap report and no duplicates"
    );
}

/// On request, the hub reports the id of the last event. A new subscription can start after that event.
pub(crate) fn a_new_subscription_can_resume_after_an_event(kind: TransportKind) {
    if kind == TransportKind::Sse {
        return;
    }
    let mut fixture = TransportFixture::in_memory(kind);
    let mut capabilities = reply_capabilities();
    capabilities["sayso"] = json!({"positions": true, "after": "evt_ofLongAgo"});
    let mut connection = fixture.connect();
    let response = connection.subscribe(&subscription_request(&capabilities));
    assert_eq!(response["honored_capabilities"]["sayso"], json!({"positions": true}), "{response}");
    assert_eq!(response["negotiation_notes"], Value::Null, "{response}");
    let session = fixture.start_session();
    let started_id = connection.next_event()["event_id"].clone();
    let position = connection.next_message();
    // With several shards, a position names each of them.
    let position_id = if has_several_shards() { position["last_event_id"].clone() } else { started_id };
    assert_eq!(position, json!({"type": "sayso:position", "last_event_id": position_id}));
    fixture.ask(&session, &question());
    let mut received = Vec::new();
    while received.last() != Some(&json!("aaep:agent.awaiting.confirmation")) {
        match connection.next_incoming() {
            ReceivedMessage::Event(event) => received.push(event["type"].clone()),
            ReceivedMessage::Message(message) => assert_eq!(message["type"], "sayso:position", "{message}"),
            ReceivedMessage::Heartbeat => {}
            ReceivedMessage::End(signal) => panic!("{signal:?}"),
        }
    }
    let mut resume_capabilities = reply_capabilities();
    resume_capabilities["sayso"] = json!({"after": position_id});
    let mut resumed = SseListener::new(&fixture.hub.address, &test_tokens().ben);
    let response = resumed.subscribe(&subscription_request(&resume_capabilities));
    assert_eq!(response["honored_capabilities"]["sayso"], resume_capabilities["sayso"], "{response}");
    let resumed: &mut dyn ListenerConnection = &mut resumed;
    let missed = resumed.events_until_type("awaiting.confirmation");
    let missed: Vec<_> = missed.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(missed, received, "the events after that one, in order");
    // A position from another journal is ignored.
    resume_capabilities["sayso"] = json!({"after": "at_1"});
    let response = SseListener::new(&fixture.hub.address, &test_tokens().ben)
        .subscribe(&subscription_request(&resume_capabilities));
    assert_eq!(response["honored_capabilities"]["sayso"], Value::Null, "{response}");
}
