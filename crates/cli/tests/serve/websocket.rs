//! What only a WebSocket has; what all wires do is in `tests/wires`.

use testing::hub::Hub;
use testing::messages::{CAN_REPLY, close, kind, renegotiate, reply};
use testing::websocket::{PROTOCOL, Socket};
use tungstenite::Message;

/// C-E8.
#[test]
fn a_binary_frame_that_holds_text_is_taken() {
    let hub = Hub::open();
    let client = hub.client();
    let (mut socket, subscription) = Socket::subscribed(&hub, CAN_REPLY);
    let session = client.start();
    let token = client.ask(&session);
    while socket.next()["reply_token"] != token.as_str() {}
    socket.0.send(Message::binary(reply(&subscription, &token, "accept").into_bytes())).unwrap();
    let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=10");
    assert_eq!(client.get(&path).text("decision"), "accept");
}

/// Over HTTP, too; a message about the terms of no subscription is not taken, whatever it names.
#[test]
fn a_malformed_subscription_id_is_answered_like_an_unknown_one() {
    let hub = Hub::limited(&["--messages-malformed", "2"]);
    let client = hub.client();
    let attach = |id: &str| {
        let reply = client.get(&format!("/aaep/v1/events?subscription_id={id}"));
        (reply.status, reply.body)
    };
    let unknown = format!("sub_{}", "0".repeat(32));
    let unknown_reply = attach(&unknown);
    assert_eq!(unknown_reply.0, 404);
    for malformed in ["sub_a!b", "sub_a%20b", "sub_", "x", "", &format!("sub_{}", "a".repeat(4_000))] {
        assert_eq!(attach(malformed), unknown_reply, "{malformed}");
    }
    for id in [&*unknown, "sub_a!b", "sub_", "x", ""] {
        for text in [close(id), renegotiate(id, "{}")] {
            let (mut socket, subscription) = Socket::subscribed(&hub, CAN_REPLY);
            socket.say(&text);
            socket.say(&renegotiate(&subscription, "{}"));
            assert_eq!(kind(&socket.next()), "subscription.accepted", "its own is untouched by {text}");
            socket.say(&text);
            assert_eq!(socket.code(), 4004, "{text}");
        }
    }
}

#[test]
fn only_who_is_let_in_and_speaks_the_protocol_is_upgraded() {
    let hub = Hub::open();
    let own = format!("http://{}", hub.address);
    assert!(Socket::connect(&hub, &[PROTOCOL, ("Origin", &own)]).is_ok());
    for origin in ["https://evil.example", "null", "http://127.0.0.1"] {
        assert_eq!(Socket::connect(&hub, &[PROTOCOL, ("Origin", origin)]).err(), Some(403), "{origin}");
    }
    assert_eq!(Socket::connect(&hub, &[]).err(), Some(400), "no subprotocol");
    assert_eq!(Socket::connect(&hub, &[("Sec-WebSocket-Protocol", "aaep.v2")]).err(), Some(400));
    let client = hub.client();
    let plain = client.get("/aaep/v1/ws");
    assert_eq!(plain.status, 426);
    assert!(plain.head.contains("Upgrade: websocket"), "{}", plain.head);
    assert_eq!(client.post("/aaep/v1/ws", "").status, 405);

    let closed = Hub::start(&["--memory", "--listen", "127.0.0.1:0"]);
    let token = closed.said[0].rsplit(' ').next().unwrap().to_owned();
    assert_eq!(Socket::connect(&closed, &[PROTOCOL]).err(), Some(401));
    let bearer = format!("Bearer {token}");
    assert!(Socket::connect(&closed, &[PROTOCOL, ("Authorization", &bearer)]).is_ok());
    let cookie = crate::serve::sign_in::sign_in(&closed, &token);
    let origin = format!("http://{}", closed.address);
    assert!(Socket::connect(&closed, &[PROTOCOL, ("Cookie", &cookie), ("Origin", &origin)]).is_ok());
    assert_eq!(
        Socket::connect(&closed, &[PROTOCOL, ("Cookie", &cookie)]).err(),
        Some(403),
        "no page of ours"
    );
}
