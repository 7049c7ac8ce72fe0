//! Connections that end without a request from the listener, and heartbeats.

use serde_json::json;

use crate::fixture::{
    TransportFixture, question, reply, reply_capabilities, subscription_request, test_tokens,
};
use crate::sse::SseListener;
use crate::transport::{CloseSignal, ListenerConnection, ReceivedMessage, Reconnection, TransportKind};
use testing::http::TestClient;
use testing::messages::{subscription_close, subscription_renegotiate};

pub(crate) fn a_question_stays_open_across_a_hub_restart(kind: TransportKind) {
    let mut fixture = TransportFixture::on_disk(kind);
    let (mut connection, mut id) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    connection.events_until_type("awaiting.confirmation");
    fixture.hub.ask_to_stop();
    let close = connection.next_message();
    assert_eq!((&close["type"], &close["subscription_id"]), (&json!("subscription.close"), &json!(id)));
    assert_eq!(close["reason_code"], "producer_shutdown", "{close}");
    assert_eq!(fixture.hub.wait_for_exit(), Some(0));
    assert_eq!(
        connection.close_signal(),
        kind.expected_signal(CloseSignal::End, CloseSignal::Code(1001), CloseSignal::End, CloseSignal::End)
    );
    fixture.restart_hub();
    assert_eq!(fixture.question_status(&session, &token)["status"], "pending");
    if let Reconnection::NewSubscription(new) =
        connection.reconnect(&mut fixture.hub, &subscription_request(&reply_capabilities()))
    {
        connection.events_until(|event| event["reply_token"] == token.as_str());
        id = new;
    }
    connection.send(&reply(&id, &token, "accept").to_string());
    assert_eq!(fixture.wait_for_outcome(&session, &token)["decision"], "accept");
    assert_eq!(connection.wait_for_resolution(&token)["extensions"]["sayso"]["decision"], "accept");
}

pub(crate) fn a_lost_connection_counts_as_closure(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, _) = fixture.connect_and_subscribe(&reply_capabilities());
    let session = fixture.start_session();
    let token = fixture.ask(&session, &question());
    connection.events_until_type("awaiting.confirmation");
    if !connection.drop_connection() {
        drop(connection);
        assert_eq!(fixture.hub.wait_for_exit(), Some(0), "the hub exits with its parent process");
        return;
    }
    let outcome = fixture.wait_for_outcome(&session, &token);
    assert_eq!((&outcome["decision"], &outcome["by"]), (&json!("reject"), &json!("closure")), "{outcome}");
}

pub(crate) fn another_connection_can_take_over(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let path = format!("/aaep/v1/events?subscription_id={id}");
    if !kind.has_tokens() {
        // The subscription belongs to the local user, so a user with a token cannot take it over.
        assert_eq!(
            TestClient::new(&fixture.hub.address).with_bearer(&test_tokens().ada).get(&path).status,
            404
        );
        return;
    }
    let mut second = SseListener::new(&fixture.hub.address, &test_tokens().ada);
    second.take_over(&id);
    let close = connection.next_message();
    assert_eq!(
        (&close["type"], &close["reason_code"]),
        (&json!("subscription.close"), &json!("replaced")),
        "{close}"
    );
    assert_eq!(
        connection.close_signal(),
        kind.expected_signal(
            CloseSignal::End,
            CloseSignal::Code(4000),
            CloseSignal::End,
            CloseSignal::StaysOpen
        )
    );
    fixture.start_session();
    assert_eq!(
        (&mut second as &mut dyn ListenerConnection).next_event()["type"],
        "aaep:agent.session.started"
    );
}

pub(crate) fn invalid_messages_are_tolerated_up_to_a_limit(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    // On HTTP, a request may name any subscription of the user, so the other subscription must belong to another user.
    // On the other transports, a message may name only the subscription of its connection.
    let (mut other, other_id): (Box<dyn ListenerConnection>, _) = if kind == TransportKind::Sse {
        let (other, other_id) = fixture.connect_sse_listener(&test_tokens().ben, &json!({}));
        (Box::new(other), other_id)
    } else {
        fixture.connect_same_user(&json!({}))
    };
    let client = TestClient::new(&fixture.hub.address).with_bearer(&test_tokens().ada);
    let invalid = [
        "null".to_owned(),
        "{".to_owned(),
        "[]".to_owned(),
        r#"{"type":7}"#.to_owned(),
        subscription_request(&json!({})),
        subscription_close(&other_id),
        subscription_renegotiate(&other_id, "{}"),
    ];
    let send_invalid = |connection: &mut dyn ListenerConnection, text: &str| match kind {
        TransportKind::Sse => {
            let response = client.post("/aaep/v1/replies", text);
            assert!(matches!(response.status, 204 | 400 | 404), "{text}: {response:?}");
        }
        TransportKind::Stdio => {
            let response = connection.subscribe(&subscription_request(&json!({})));
            assert_eq!(response["code"], -32602, "a connection has at most one subscription");
            if text != "{" {
                connection.send(text);
            }
        }
        _ => connection.send(text),
    };
    for text in &invalid {
        send_invalid(&mut *connection, text);
    }
    assert_eq!(
        connection.request(&subscription_renegotiate(&id, "{}"))["type"],
        "subscription.accepted",
        "seven invalid messages are tolerated"
    );
    send_invalid(&mut *connection, "null");
    if matches!(kind, TransportKind::UnixLines | TransportKind::UnixLengthPrefixed | TransportKind::Grpc) {
        assert_eq!(connection.next_message()["reason_code"], "violation");
    }
    if !matches!(kind, TransportKind::Sse | TransportKind::Stdio) {
        assert_eq!(
            connection.close_signal(),
            kind.expected_signal(
                CloseSignal::End,
                CloseSignal::Code(4004),
                CloseSignal::End,
                CloseSignal::StaysOpen
            )
        );
        assert_eq!(client.get(&format!("/aaep/v1/events?subscription_id={id}")).status, 404);
    }
    fixture.start_session();
    assert_eq!(
        other.next_event()["type"],
        "aaep:agent.session.started",
        "the other subscription is unaffected"
    );
    if matches!(kind, TransportKind::Sse | TransportKind::Stdio) {
        assert_eq!(
            connection.next_event()["type"],
            "aaep:agent.session.started",
            "the connection stays open"
        );
    }
}

/// §8.3: a transport should accept 1 MiB. The hub refuses 2 MiB.
pub(crate) fn an_oversized_message_is_rejected(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, id) = fixture.connect_and_subscribe(&reply_capabilities());
    let padded = |length| format!("{}{}", subscription_renegotiate(&id, "{}"), " ".repeat(length));
    assert_eq!(connection.request(&padded(1024 * 1024))["type"], "subscription.accepted");
    let too_long = 2 * 1024 * 1024;
    match kind {
        TransportKind::Sse => {
            let client = TestClient::new(&fixture.hub.address);
            let head = format!(
                "POST /aaep/v1/replies HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {too_long}\r\n\r\n",
                fixture.hub.address,
                test_tokens().ada
            );
            let response = client.send_raw(head.as_bytes());
            assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
            fixture.start_session();
            assert_eq!(
                connection.next_event()["type"],
                "aaep:agent.session.started",
                "the stream stays open"
            );
        }
        TransportKind::Stdio => {
            assert_eq!(connection.request(&padded(too_long))["code"], -32600);
            assert_eq!(connection.close_signal(), CloseSignal::StaysOpen);
        }
        _ => {
            connection.send(&padded(too_long));
            if kind != TransportKind::WebSocket {
                assert_eq!(connection.next_message()["reason_code"], "too_large");
            }
            assert_eq!(
                connection.close_signal(),
                kind.expected_signal(
                    CloseSignal::End,
                    CloseSignal::Code(1009),
                    CloseSignal::End,
                    CloseSignal::StaysOpen
                )
            );
        }
    }
}

/// Unix sockets have no heartbeats, and those of gRPC are part of HTTP/2.
pub(crate) fn heartbeats_are_sent(kind: TransportKind) {
    let mut fixture = TransportFixture::in_memory(kind);
    let (mut connection, _) = fixture.connect_and_subscribe(&reply_capabilities());
    assert_eq!(
        connection.wait_for_heartbeat(),
        !matches!(kind, TransportKind::UnixLines | TransportKind::UnixLengthPrefixed | TransportKind::Grpc)
    );
    fixture.start_session();
    loop {
        match connection.next_incoming() {
            ReceivedMessage::Heartbeat => {}
            ReceivedMessage::Event(event) => return assert_eq!(event["type"], "aaep:agent.session.started"),
            other => panic!("{other:?}"),
        }
    }
}
