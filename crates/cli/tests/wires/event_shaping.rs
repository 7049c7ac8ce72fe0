//! Every transport delivers the same events, shaped by the negotiated capabilities.

use serde_json::{Value, json};

use crate::fixture::{TransportFixture, reply_capabilities, test_tokens};
use crate::handshake::summary_texts;
use crate::transport::{ListenerConnection, TransportKind};

fn tool_events(number: u64) -> [Value; 2] {
    let call = format!("call_{number}");
    [
        json!({"type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": call, "summary_normal": format!("Looking, {number}.")}),
        json!({"type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": call, "status": "success", "summary_normal": "Seen."}),
    ]
}

fn completed_event() -> Value {
    json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done now.", "summary_terse": "Done.", "summary_detailed": "All is done now, and nothing is left."})
}

pub(crate) fn every_transport_delivers_the_same_events(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let capabilities = json!({"supports_confirmation_reply": true, "languages": ["yo", "en"], "preferred_verbosity": "detailed"});
    let (mut connection, id) = fixture.connect_and_subscribe(&capabilities);
    let (mut other, _) = fixture.connect_sse_listener(&test_tokens().ben, &capabilities);
    let session = fixture.start_session();
    fixture.publish(&session, &tool_events(1));
    for chunk in ["\u{1f600} Your balance is 12.5", "0 euros. I wi", "ll ask; \"quoted\"\nand on.\n\n"] {
        fixture.publish_output(&session, chunk, false);
    }
    fixture.publish_output(&session, "The end", true);
    let token = fixture.ask(&session, &crate::fixture::question());
    connection.events_until_type("awaiting.confirmation");
    connection.send(&crate::fixture::reply(&id, &token, "reject").to_string());
    fixture.wait_for_outcome(&session, &token);
    fixture.publish(&session, &[completed_event()]);
    let mut second_connection = fixture.connect_same_user(&capabilities).0;
    let second_session = fixture.start_session();
    fixture.publish(&second_session, &[completed_event()]);
    let received = connection.events_until_type("session.completed").len();
    assert!(received >= 2, "the resolution and the end");
    connection.events_until_type("session.completed");
    let expected = (&mut other as &mut dyn ListenerConnection)
        .events_until(|event| event["session_id"] == second_session.as_str());
    assert_eq!(expected.iter().filter(|event| event["type"] == "aaep:agent.output.streaming").count(), 3);

    // Both connections follow the third session from its start, so every event can be compared exactly.
    assert_eq!(second_connection.events_until_type("session.completed").len(), 2);
    let third_session = fixture.start_session();
    fixture.publish(&third_session, &tool_events(7));
    fixture.publish_output(&third_session, "One. Two. Thr", false);
    fixture.publish_output(&third_session, "ee.", true);
    fixture.publish(&third_session, &[completed_event()]);
    let ends_third = |event: &Value| {
        event["session_id"] == third_session.as_str() && event["type"] == "aaep:agent.session.completed"
    };
    let expected_events: Vec<_> = (&mut other as &mut dyn ListenerConnection)
        .events_until(ends_third)
        .into_iter()
        .filter(|event| event["session_id"] == third_session.as_str())
        .collect();
    let received_events = connection.events_until(ends_third);
    assert_eq!(received_events, expected_events);
    assert_eq!(second_connection.events_until(ends_third), expected_events);
}

pub(crate) fn the_requested_verbosity_is_used(kind: TransportKind) {
    for (verbosity, summary) in [
        ("terse", "Done."),
        ("normal", "All is done now."),
        ("detailed", "All is done now, and nothing is left."),
    ] {
        let mut fixture = TransportFixture::in_memory(kind);
        let (mut connection, _) = fixture.connect_and_subscribe(&json!({"preferred_verbosity": verbosity}));
        let session = fixture.start_session();
        fixture.publish(&session, &[completed_event()]);
        let last = connection.events_until_type("session.completed").pop().unwrap();
        assert!(summary_texts(&last).contains(&summary.to_owned()), "{verbosity}: {last}");
        assert_eq!(last["verbosity"].as_str().unwrap_or("normal"), verbosity, "{last}");
    }
}

pub(crate) fn the_requested_language_is_used(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, _) = fixture.connect_and_subscribe(&json!({"languages": ["yo-NG"]}));
    let session = fixture.start_session();
    let localized = json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done.", "summary_normal_yo": "O ti pari.",
        "localization_hints": {"primary_language": "en", "available_languages": ["en", "yo"]}});
    fixture.publish(&session, &[localized]);
    let last = connection.events_until_type("session.completed").pop().unwrap();
    assert_eq!(last["summary_normal"], "O ti pari.", "{last}");
    assert_eq!(last["localization_hints"]["primary_language"], "yo", "{last}");
}

pub(crate) fn streamed_text_is_split_into_sentences(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, _) =
        fixture.connect_and_subscribe(&json!({"coalesce_boundaries": ["sentence", "completion"]}));
    let session = fixture.start_session();
    for chunk in ["Pi is 3.1", "4 or s", "o. Is it", "? Yes"] {
        fixture.publish_output(&session, chunk, false);
    }
    fixture.publish_output(&session, "", true);
    fixture.publish(&session, &[completed_event()]);
    let received = connection.events_until_type("session.completed");
    let chunks: Vec<_> = received
        .iter()
        .filter(|event| event["type"] == "aaep:agent.output.streaming")
        .map(|event| {
            (
                event["chunk"].as_str().unwrap(),
                event["position"].as_u64().unwrap(),
                event["complete"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(chunks, [("Pi is 3.14 or so. ", 0, false), ("Is it? ", 18, false), ("Yes", 25, true)]);
    let hints: Vec<_> = received.iter().filter_map(|event| event["coalesce_hint"].as_str()).collect();
    assert_eq!(hints, ["sentence", "sentence", "completion"], "only the negotiated boundaries");
}

pub(crate) fn filters_apply_but_critical_events_pass(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let mut capabilities = reply_capabilities();
    capabilities["event_filters"] = json!({"include": ["aaep:agent.session.*"], "exclude": ["aaep:agent.session.started", "aaep:agent.session.errored"]});
    let (mut connection, id) = fixture.connect_and_subscribe(&capabilities);
    let session = fixture.start_session();
    fixture.publish(&session, &tool_events(1));
    let token = fixture.ask(&session, &crate::fixture::question());
    let received = connection.events_until_type("awaiting.confirmation");
    assert!(received.iter().all(|event| event["type"] != "aaep:agent.session.started"), "{received:?}");
    assert!(received.iter().all(|event| !event["type"].as_str().unwrap().contains("tool")), "{received:?}");
    connection.send(&crate::fixture::reply(&id, &token, "reject").to_string());
    fixture.wait_for_outcome(&session, &token);
    let failed = json!({"type": "aaep:agent.session.errored", "urgency": "critical", "error_category": "permanent", "summary_normal": "It failed."});
    fixture.publish(&session, &[failed]);
    let received = connection.events_until_type("session.errored");
    assert!(received.iter().all(|event| event["type"] != "aaep:agent.tool.completed"));
}

pub(crate) fn progress_is_coalesced_to_keep_the_rate_limit(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, _) = fixture.connect_and_subscribe(&json!({"max_events_per_second": 2}));
    let session = fixture.start_session();
    let mut published: Vec<_> = (1..=50)
        .map(|percent| json!({"type": "aaep:agent.progress.updated", "progress": {"percent": percent * 2}}))
        .collect();
    published.push(completed_event());
    fixture.publish(&session, &published);
    let received = connection.events_until_type("session.completed");
    let progress: Vec<_> =
        received.iter().filter_map(|event| event["progress"]["percent"].as_u64()).collect();
    assert!(progress.len() < 50, "not coalesced: {progress:?}");
    assert_eq!(progress.last(), Some(&100), "the latest value is delivered");
    assert_eq!(received[0]["type"], "aaep:agent.session.started");
}
