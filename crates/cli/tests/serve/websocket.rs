//! Behaviour that is specific to WebSockets. `tests/wires` covers what all transports share.

use testing::hub::HubProcess;
use testing::messages::{
    REPLY_CAPABILITIES, confirmation_reply, short_type, subscription_close, subscription_renegotiate,
};
use testing::websocket::{SUBPROTOCOL_HEADER, WebSocketClient};
use tungstenite::Message;

/// Decision C-E8.
#[test]
fn a_binary_frame_with_text_is_accepted() {
    let hub = HubProcess::start_in_memory();
    let client = hub.client();
    let (mut socket, subscription) = WebSocketClient::connect_and_subscribe(&hub, REPLY_CAPABILITIES);
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    while socket.next()["reply_token"] != token.as_str() {}
    socket.0.send(Message::binary(confirmation_reply(&subscription, &token, "accept").into_bytes())).unwrap();
    let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=10");
    assert_eq!(client.get(&path).json_str("decision"), "accept");
}

/// Over HTTP, both get the same response. On a WebSocket, a message with either id counts as malformed, and the second such
/// message closes the connection.
#[test]
fn a_malformed_subscription_id_is_answered_like_an_unknown_one() {
    let hub = HubProcess::start_in_memory_with(&["--messages-malformed", "2"]);
    let client = hub.client();
    let attach = |id: &str| {
        let response = client.get(&format!("/aaep/v1/events?subscription_id={id}"));
        (response.status, response.body)
    };
    let unknown = format!("sub_{}", "0".repeat(32));
    let unknown_response = attach(&unknown);
    assert_eq!(unknown_response.0, 404);
    for malformed in ["sub_a!b", "sub_a%20b", "sub_", "x", "", &format!("sub_{}", "a".repeat(4_000))] {
        assert_eq!(attach(malformed), unknown_response, "{malformed}");
    }
    for id in [&*unknown, "sub_a!b", "sub_", "x", ""] {
        for text in [subscription_close(id), subscription_renegotiate(id, "{}")] {
            let (mut socket, subscription) = WebSocketClient::connect_and_subscribe(&hub, REPLY_CAPABILITIES);
            socket.send(&text);
            socket.send(&subscription_renegotiate(&subscription, "{}"));
            assert_eq!(
                short_type(&socket.next()),
                "subscription.accepted",
                "its own subscription is not affected by {text}"
            );
            socket.send(&text);
            assert_eq!(socket.into_close_code(), 4004, "{text}");
        }
    }
}

#[test]
fn only_authorized_clients_with_the_subprotocol_are_upgraded() {
    let hub = HubProcess::start_in_memory();
    let own_origin = format!("http://{}", hub.address);
    assert!(WebSocketClient::try_connect(&hub, &[SUBPROTOCOL_HEADER, ("Origin", &own_origin)]).is_ok());
    for origin in ["https://evil.example", "null", "http://127.0.0.1"] {
        assert_eq!(
            WebSocketClient::try_connect(&hub, &[SUBPROTOCOL_HEADER, ("Origin", origin)]).err(),
            Some(403),
            "{origin}"
        );
    }
    assert_eq!(WebSocketClient::try_connect(&hub, &[]).err(), Some(400), "no subprotocol");
    assert_eq!(WebSocketClient::try_connect(&hub, &[("Sec-WebSocket-Protocol", "aaep.v2")]).err(), Some(400));
    let client = hub.client();
    let without_upgrade = client.get("/aaep/v1/ws");
    assert_eq!(without_upgrade.status, 426);
    assert!(without_upgrade.head.contains("Upgrade: websocket"), "{}", without_upgrade.head);
    assert_eq!(client.post("/aaep/v1/ws", "").status, 405);

    let authenticated = HubProcess::start(&["--memory", "--listen", "127.0.0.1:0"]);
    let token = authenticated.admin_token();
    assert_eq!(WebSocketClient::try_connect(&authenticated, &[SUBPROTOCOL_HEADER]).err(), Some(401));
    let bearer = format!("Bearer {token}");
    assert!(
        WebSocketClient::try_connect(&authenticated, &[SUBPROTOCOL_HEADER, ("Authorization", &bearer)])
            .is_ok()
    );
    let cookie = crate::serve::sign_in::sign_in(&authenticated, &token);
    let origin = format!("http://{}", authenticated.address);
    assert!(
        WebSocketClient::try_connect(
            &authenticated,
            &[SUBPROTOCOL_HEADER, ("Cookie", &cookie), ("Origin", &origin)]
        )
        .is_ok()
    );
    assert_eq!(
        WebSocketClient::try_connect(&authenticated, &[SUBPROTOCOL_HEADER, ("Cookie", &cookie)]).err(),
        Some(403),
        "a cookie needs the Origin of the hub's own page"
    );
}
