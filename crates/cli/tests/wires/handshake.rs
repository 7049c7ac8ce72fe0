//! The handshake, renegotiation, and closing by the listener.

use serde_json::{Value, json};

use crate::fixture::{
    TransportFixture, accepted_subscription_id, reply_capabilities, subscription_request, test_tokens,
};
use crate::sse::SseListener;
use crate::transport::{CloseSignal, ListenerConnection, ReceivedMessage, TransportKind};
use testing::messages::{UNSUPPORTED_VERSION_REQUEST, subscription_close, subscription_renegotiate};

pub(crate) fn every_capability_is_echoed(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let capabilities = json!({
        "max_events_per_second": 50,
        "preferred_verbosity": "detailed",
        "languages": ["de", "en-US"],
        "supports_confirmation_reply": true,
        "supports_clarification_reply": true,
        "coalesce_boundaries": ["paragraph", "completion"],
        "event_filters": {"include": ["aaep:agent.*"], "exclude": ["aaep:agent.progress.updated"]},
        "supported_conformance_levels": [1, 2, 3],
        "supported_extensions": ["urn:sayso:context:v1"],
        "cognitive_load": "high",
        "pace_wpm": 180,
        "accept_signed_manifests_only": false,
    });
    let mut connection = fixture.connect();
    let response = connection.subscribe(&subscription_request(&capabilities));
    accepted_subscription_id(&response);
    assert_eq!(response["aaep_version"], "1.0.0");
    assert_eq!(response["producer"]["agent_id"], "sayso-hub");
    for (name, value) in capabilities.as_object().unwrap() {
        assert_eq!(response["honored_capabilities"][name], *value, "{name} in {response}");
    }

    // Capabilities that were not requested are echoed with their defaults.
    let mut default_listener = SseListener::new(&fixture.hub.address, &test_tokens().ben);
    let honored =
        default_listener.subscribe(&subscription_request(&json!({})))["honored_capabilities"].take();
    for (name, value) in [
        ("preferred_verbosity", json!("normal")),
        ("languages", json!(["en-US"])),
        ("supports_confirmation_reply", json!(false)),
        ("supports_clarification_reply", json!(false)),
        ("coalesce_boundaries", json!(["sentence", "completion"])),
        ("cognitive_load", json!("medium")),
        ("accept_signed_manifests_only", json!(false)),
    ] {
        assert_eq!(honored[name], value, "{name} in {honored}");
    }
}

/// §5.1: the answers to the same messages have the same members and values as over SSE, apart from the subscription's id.
pub(crate) fn handshake_messages_are_the_same_on_every_transport(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let mut connection = fixture.connect();
    let mut other = SseListener::new(&fixture.hub.address, &test_tokens().ben);
    let without_id = |mut message: Value| {
        if let Some(members) = message.as_object_mut() {
            members.remove("subscription_id");
        }
        message
    };
    let rejected = connection.subscribe(UNSUPPORTED_VERSION_REQUEST);
    assert_eq!(rejected["type"], "subscription.rejected");
    assert_eq!(rejected, other.subscribe(UNSUPPORTED_VERSION_REQUEST));
    if kind != TransportKind::Stdio {
        connection = fixture.connect();
    }
    let mut capabilities = reply_capabilities();
    capabilities["languages"] = json!(["tlh", "en"]);
    capabilities["max_events_per_second"] = json!(7);
    let request = subscription_request(&capabilities);
    let (accepted, expected) = (connection.subscribe(&request), other.subscribe(&request));
    let (id, other_id) = (accepted_subscription_id(&accepted), accepted_subscription_id(&expected));
    assert_eq!(without_id(accepted), without_id(expected));
    let change = r#"{"max_events_per_second":3,"preferred_verbosity":"terse"}"#;
    let changed = connection.request(&subscription_renegotiate(&id, change));
    let expected = other.request(&subscription_renegotiate(&other_id, change));
    assert_eq!(changed["honored_capabilities"]["max_events_per_second"], 3, "{changed}");
    assert_eq!(without_id(changed), without_id(expected));
    fixture.hub.ask_to_stop();
    let close = connection.next_message();
    assert_eq!(close["type"], "subscription.close");
    assert_eq!(without_id(close), without_id((&mut other as &mut dyn ListenerConnection).next_message()));
}

/// §8.3: a transport must accept 64 KiB and should accept 1 MiB.
pub(crate) fn large_messages_are_accepted(kind: TransportKind) {
    for size in [64 * 1024, 1024 * 1024] {
        let mut fixture = TransportFixture::in_memory(kind);
        let mut connection = fixture.connect();
        let padded = subscription_request(&json!({"x_unknown": "x".repeat(size)}));
        assert!(padded.len() > size);
        accepted_subscription_id(&connection.subscribe(&padded));
    }
}

pub(crate) fn an_unsupported_version_is_rejected(kind: TransportKind) {
    assert_request_refused(
        kind,
        UNSUPPORTED_VERSION_REQUEST,
        "version_unsupported",
        CloseSignal::Status(409),
    );
}

pub(crate) fn impossible_capabilities_are_rejected(kind: TransportKind) {
    let impossible = subscription_request(&json!({"max_events_per_second": 0}));
    assert_request_refused(kind, &impossible, "capabilities_incompatible", CloseSignal::Status(409));
}

pub(crate) fn a_signed_manifest_is_inlined_on_request(kind: TransportKind) {
    let mut fixture = TransportFixture::on_disk(kind);
    let key = std::fs::read_to_string(fixture.data_folder().join("manifest.jwk")).unwrap();
    let trusted = aaep::manifest::TrustedKeys::read(&key).unwrap();
    let mut connection = fixture.connect();
    let response =
        connection.subscribe(&subscription_request(&json!({"accept_signed_manifests_only": true})));
    accepted_subscription_id(&response);
    assert_eq!(response["honored_capabilities"]["accept_signed_manifests_only"], true, "{response}");
    let signed = response["signed_manifest"].as_str().unwrap_or_else(|| panic!("{response}"));
    let manifest = aaep::manifest::verify(signed, &trusted).unwrap();
    assert_eq!(manifest.agent_id, response["producer"]["agent_id"]);
}

pub(crate) fn a_malformed_request_is_refused(kind: TransportKind) {
    let without_subscriber_id = r#"{"type":"subscription.request","aaep_version":"1.0.0","capabilities":{}}"#;
    assert_request_refused(kind, without_subscriber_id, "unknown", CloseSignal::Status(400));
}

/// Asserts that a request is rejected with this reason and the transport's own signal, and creates no subscription.
fn assert_request_refused(kind: TransportKind, request_text: &str, reason: &str, status: CloseSignal) {
    let mut fixture = TransportFixture::in_memory(kind);
    let mut connection = fixture.connect();
    let response = connection.subscribe(request_text);
    assert_eq!(response["type"], "subscription.rejected", "{response}");
    assert_eq!(response["reason_code"], reason, "{response}");
    assert!(!response["reason_message"].as_str().unwrap().is_empty());
    assert_eq!(
        connection.close_signal(),
        kind.expected_signal(status, CloseSignal::Code(4001), CloseSignal::End, CloseSignal::StaysOpen)
    );
    if kind == TransportKind::Stdio {
        accepted_subscription_id(&connection.subscribe(&subscription_request(&reply_capabilities())));
    }
}

pub(crate) fn the_first_message_must_be_a_subscription_request(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let renegotiation = subscription_renegotiate("sub_1", "{}");
    let mut connection = fixture.connect();
    match kind {
        TransportKind::Sse => {
            let response =
                fixture.agent.with_header("X-Other: 1").post("/aaep/v1/subscriptions", &renegotiation);
            assert_eq!(response.status, 403, "an agent's request is refused before it is read: {response:?}");
            let response = connection.subscribe(&renegotiation);
            assert_eq!(response["type"], "subscription.rejected", "{response}");
            assert_eq!(connection.close_signal(), CloseSignal::Status(400));
        }
        TransportKind::Stdio => {
            assert_eq!(connection.request(&renegotiation)["code"], -32602);
            assert_eq!(connection.close_signal(), CloseSignal::StaysOpen);
        }
        _ => {
            connection.send(&renegotiation);
            assert_eq!(
                connection.close_signal(),
                kind.expected_signal(
                    CloseSignal::End,
                    CloseSignal::Code(4004),
                    CloseSignal::End,
                    CloseSignal::End
                )
            );
        }
    }
}

pub(crate) fn an_unauthenticated_listener_is_refused(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    for token in ["", "sayso_guess"] {
        match kind {
            TransportKind::Sse => {
                let mut connection = SseListener::new(&fixture.hub.address, token);
                let response = connection.subscribe(&subscription_request(&json!({})));
                assert_eq!(response["reason_code"], "authentication_required", "C-E5: {response}");
                assert_eq!(connection.close_signal(), CloseSignal::Status(401));
            }
            TransportKind::WebSocket | TransportKind::Grpc => {
                assert_eq!(kind.connect(&mut fixture.hub, token).err(), Some(401));
            }
            // The socket file is private, and the pipes belong to the process that started the hub.
            TransportKind::UnixLines | TransportKind::UnixLengthPrefixed => {
                use std::os::unix::fs::PermissionsExt;
                let mode = std::fs::metadata(&fixture.hub.socket).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
            }
            TransportKind::Stdio => {}
        }
    }
}

pub(crate) fn an_agent_token_cannot_subscribe(kind: TransportKind) {
    if !kind.has_tokens() {
        return;
    }
    let mut fixture = TransportFixture::in_memory(kind);
    let mut connection = kind.connect(&mut fixture.hub, &test_tokens().bank).unwrap();
    let response = connection.subscribe(&subscription_request(&json!({})));
    assert_eq!(
        (&response["type"], &response["reason_code"]),
        (&json!("subscription.rejected"), &json!("authorization_denied"))
    );
    assert_eq!(
        connection.close_signal(),
        kind.expected_signal(
            CloseSignal::Status(403),
            CloseSignal::Code(4003),
            CloseSignal::End,
            CloseSignal::End
        )
    );
}

pub(crate) fn narrower_capabilities_take_effect_immediately(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    assert_eq!(connection.next_event()["type"], "aaep:agent.session.started");
    let narrower = r#"{"preferred_verbosity":"terse","event_filters":{"include":["aaep:agent.*"],"exclude":["aaep:agent.progress.*"]},"supports_confirmation_reply":false}"#;
    let response = connection.request(&subscription_renegotiate(&id, narrower));
    assert_eq!(accepted_subscription_id(&response), id);
    let honored = &response["honored_capabilities"];
    assert_eq!(honored["preferred_verbosity"], "terse");
    assert_eq!(honored["supports_confirmation_reply"], false);
    assert_eq!(honored["supports_clarification_reply"], true, "other capabilities do not change");
    let progress = json!({"type": "aaep:agent.progress.updated", "progress": {"percent": 5}});
    let done = json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done now.", "summary_terse": "Done."});
    fixture.publish(&session, &[progress, done]);
    let last = connection.next_event();
    assert_eq!(last["type"], "aaep:agent.session.completed", "progress is filtered out");
    assert!(summary_texts(&last).contains(&"Done.".to_owned()), "{last}");
}

/// Returns all summary texts of an event.
pub(crate) fn summary_texts(event: &Value) -> Vec<String> {
    let members = event.as_object().unwrap().iter();
    members
        .filter(|(name, _)| name.starts_with("summary_"))
        .map(|(_, text)| text.as_str().unwrap().into())
        .collect()
}

pub(crate) fn an_impossible_renegotiation_ends_the_subscription(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let response = connection.request(&subscription_renegotiate(&id, r#"{"max_events_per_second":0}"#));
    assert_eq!(response["type"], "subscription.rejected", "{response}");
    assert_eq!(response["reason_code"], "capabilities_incompatible");
    if !kind.has_tokens() || kind == TransportKind::Grpc {
        let last = connection.next_message();
        assert_eq!((&last["type"], &last["subscription_id"]), (&json!("subscription.close"), &json!(id)));
    }
    assert_eq!(
        connection.close_signal(),
        kind.expected_signal(
            CloseSignal::End,
            CloseSignal::Code(4001),
            CloseSignal::End,
            CloseSignal::StaysOpen
        )
    );
    assert_closed(&fixture, kind, &id);
}

pub(crate) fn a_listener_can_close_its_subscription(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    let token = fixture.ask(&session, &crate::fixture::question());
    connection.events_until_type("awaiting.confirmation");
    connection.send(&subscription_close(&id));
    assert_eq!(
        connection.close_signal(),
        kind.expected_signal(
            CloseSignal::End,
            CloseSignal::Code(4005),
            CloseSignal::End,
            CloseSignal::StaysOpen
        )
    );
    let outcome = fixture.wait_for_outcome(&session, &token);
    assert_eq!(
        (&outcome["decision"], &outcome["by"]),
        (&json!("reject"), &json!("closure")),
        "no listener is left to ask"
    );
    assert_closed(&fixture, kind, &id);
    if kind == TransportKind::Stdio {
        assert_ne!(
            accepted_subscription_id(&connection.subscribe(&subscription_request(&reply_capabilities()))),
            id
        );
        assert!(
            matches!(connection.next_incoming(), ReceivedMessage::Event(_)),
            "the new subscription receives the current state"
        );
    }
}

/// Asserts that the subscription no longer exists.
fn assert_closed(fixture: &TransportFixture, kind: TransportKind, id: &str) {
    if kind.has_tokens() {
        let client = testing::http::TestClient::new(&fixture.hub.address).with_bearer(&test_tokens().ada);
        assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={id}")).status, 404);
    }
}
