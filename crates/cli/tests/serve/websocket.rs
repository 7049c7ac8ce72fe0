//! Listeners on a WebSocket.

use std::net::TcpStream;

use serde_json::Value;
use tungstenite::{ClientRequestBuilder, Error, Message, WebSocket};

use crate::serve::tokens::token;
use testing::hub::Hub;
use testing::messages::CAN_REPLY;
use testing::messages::{FROM_THE_FUTURE, close, kind, renegotiate, reply, request};

pub(crate) struct Socket(pub(crate) WebSocket<TcpStream>);

impl Socket {
    /// Connects; the status if it is refused.
    pub(crate) fn connect(hub: &Hub, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut wanted =
            ClientRequestBuilder::new(format!("ws://{}/aaep/v1/ws", hub.address).parse().unwrap());
        for (name, value) in headers {
            wanted = wanted.with_header(*name, *value);
        }
        match tungstenite::client(wanted, hub.client().connect()) {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tungstenite::HandshakeError::Failure(Error::Http(answer))) => Err(answer.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    }

    pub(crate) fn open(hub: &Hub) -> Self {
        Self::connect(hub, &[PROTOCOL]).unwrap_or_else(|status| panic!("{status}"))
    }

    pub(crate) fn subscribed(hub: &Hub, capabilities: &str) -> (Self, String) {
        let mut socket = Self::open(hub);
        socket.say(&request(capabilities));
        let accepted = socket.next();
        assert_eq!(kind(&accepted), "subscription.accepted", "{accepted}");
        (socket, accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).unwrap();
    }

    pub(crate) fn next(&mut self) -> Value {
        loop {
            match self.0.read().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The code with which the other side closes, whatever it says before.
    pub(crate) fn code(mut self) -> u16 {
        loop {
            if let Message::Close(frame) = self.0.read().unwrap() {
                return frame.unwrap().code.into();
            }
        }
    }
}

pub(crate) const PROTOCOL: (&str, &str) = ("Sec-WebSocket-Protocol", "other, aaep.v1");

#[test]
fn a_question_is_heard_and_answered_on_the_same_socket() {
    let hub = Hub::open();
    let client = hub.client();
    let (mut socket, subscription) = Socket::subscribed(&hub, CAN_REPLY);
    let session = client.start();
    assert_eq!(kind(&socket.next()), "session.started");
    let token = client.ask(&session);
    while socket.next()["reply_token"] != token.as_str() {}
    // C-E8: bytes that are text will do.
    socket.0.send(Message::binary(reply(&subscription, &token, "accept").into_bytes())).unwrap();
    let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=10");
    assert_eq!(client.get(&path).text("decision"), "accept");
    assert_eq!(socket.next()["extensions"]["sayso"]["decision"], "accept");
    let stop = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"2026-11-15T12:00:00Z"}}"#
    );
    socket.say(&stop);
    while kind(&socket.next()) != "session.cancelled" {}
}

#[test]
fn who_joins_late_is_told_where_things_stand() {
    let hub = Hub::open();
    let client = hub.client();
    let (_first, _) = Socket::subscribed(&hub, CAN_REPLY);
    let session = client.start();
    let token = client.ask(&session);
    let (mut socket, subscription) = Socket::subscribed(&hub, CAN_REPLY);
    assert_eq!(kind(&socket.next()), "state.changed");
    assert_eq!(socket.next()["reply_token"], token.as_str());
    socket.say(&reply(&subscription, &token, "reject"));
    let path = format!("/agent/v1/sessions/{session}/replies/{token}?wait=10");
    assert_eq!(client.get(&path).text("decision"), "reject");
}

#[test]
fn terms_are_changed_and_the_subscription_closed() {
    let hub = Hub::open();
    let (mut socket, subscription) = Socket::subscribed(&hub, "{}");
    socket.say(&renegotiate(&subscription, r#"{"preferred_verbosity":"terse"}"#));
    let changed = socket.next();
    assert_eq!(
        (kind(&changed), changed["subscription_id"].as_str()),
        ("subscription.accepted", Some(subscription.as_str()))
    );
    hub.client().start();
    assert_eq!(kind(&socket.next()), "session.started");
    socket.say(&close(&subscription));
    assert_eq!(socket.code(), 4005);
    let path = format!("/aaep/v1/events?subscription_id={subscription}");
    assert_eq!(hub.client().get(&path).status, 404, "it is no more");
}

#[test]
fn what_is_refused_is_told_and_then_closed() {
    let hub = Hub::open();
    let mut socket = Socket::open(&hub);
    socket.say(FROM_THE_FUTURE);
    assert_eq!(socket.next()["reason_code"], "version_unsupported");
    assert_eq!(socket.code(), 4001);
    let mut socket = Socket::open(&hub);
    socket.say(r#"{"type":"subscription.request"}"#);
    assert_eq!(kind(&socket.next()), "subscription.rejected");
    assert_eq!(socket.code(), 4001);
}

#[test]
fn an_agent_does_not_listen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let bank = token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let hub = Hub::start(&["--memory", "--listen", "127.0.0.1:0", "--tokens", &file]);
    let bearer = format!("Bearer {bank}");
    let mut socket = Socket::connect(&hub, &[PROTOCOL, ("Authorization", &bearer)]).ok().unwrap();
    socket.say(&request("{}"));
    assert_eq!(socket.next()["reason_code"], "authorization_denied");
    assert_eq!(socket.code(), 4003);
}

#[test]
fn another_connection_may_take_the_subscription_over() {
    let hub = Hub::open();
    let (socket, subscription) = Socket::subscribed(&hub, "{}");
    let mut ear = hub.client().listen(&subscription, None);
    assert_eq!(socket.code(), 4000);
    hub.client().start();
    assert_eq!(ear.next_type(), "session.started", "it was not closed with the socket");
}

#[test]
fn a_socket_that_ends_takes_its_subscription_and_its_question_with_it() {
    let hub = Hub::open();
    let client = hub.client();
    let (mut socket, _) = Socket::subscribed(&hub, CAN_REPLY);
    let session = client.start();
    let token = client.ask(&session);
    while kind(&socket.next()) != "awaiting.confirmation" {}
    drop(socket);
    let told = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=40"));
    assert_eq!((told.text("decision"), told.text("by") != "reply"), ("reject".into(), true), "{told:?}");
}

#[test]
fn what_is_no_message_is_borne_for_a_while() {
    let hub = Hub::open();
    let (mut socket, subscription) = Socket::subscribed(&hub, "{}");
    let (_other, others) = Socket::subscribed(&hub, "{}");
    for text in ["", "{", "[]", r#"{"type":7}"#, &request("{}"), &close(&others), &renegotiate(&others, "{}")]
    {
        socket.say(text);
    }
    socket.say(&renegotiate(&subscription, "{}"));
    assert_eq!(kind(&socket.next()), "subscription.accepted", "seven are borne");
    socket.say("null");
    assert_eq!(socket.code(), 4004);
    let path = format!("/aaep/v1/events?subscription_id={others}");
    assert_eq!(hub.client().with("Accept: text/plain").get(&path).status, 406, "the other's is untouched");

    let mut socket = Socket::open(&hub);
    socket.say(r#"{"type":"confirmation.reply"}"#);
    assert_eq!(socket.code(), 4004, "the first message asks for a subscription");
}

#[test]
fn a_message_that_is_too_long_ends_it() {
    let hub = Hub::open();
    let (mut socket, subscription) = Socket::subscribed(&hub, "{}");
    let padded = |length| format!("{}{}", renegotiate(&subscription, "{}"), " ".repeat(length));
    socket.say(&padded(1024 * 1024));
    assert_eq!(kind(&socket.next()), "subscription.accepted");
    let _ = socket.0.send(Message::text(padded(2 * 1024 * 1024)));
    assert_eq!(socket.code(), 1009);
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

#[test]
fn who_does_not_read_holds_up_nobody_and_is_let_go() {
    // It gives no sign of life until the end, and only then takes its last word: it is let go for neither.
    let patient = ["--http-heartbeat", "1h", "--messages-ping-time", "1h", "--messages-write-time", "1h"];
    let hub = Hub::limited(&patient);
    let client = hub.client();
    let (mut slow, _) = Socket::subscribed(&hub, "{}");
    let subscription = client.subscribe(r#"{"coalesce_boundaries":["none"]}"#);
    let mut ear = client.listen(&subscription, None);
    let session = client.start();
    assert_eq!(ear.next_type(), "session.started");
    let sentence = format!("{}. ", "word ".repeat(7000));
    let path = format!("/agent/v1/sessions/{session}/output");
    for _ in 0..400 {
        assert_eq!(client.post(&path, &sentence).status, 200);
        while !ear.next().2["chunk"].as_str().is_some_and(|chunk| chunk.ends_with(". ")) {}
    }
    // It hears what was on its way, and then that it is over.
    assert_eq!(kind(&slow.next()), "session.started");
    let last =
        std::iter::from_fn(|| Some(slow.next())).find(|one| kind(one) == "subscription.close").unwrap();
    assert_eq!(last["reason_code"], "slow_consumer");
    assert_eq!(slow.code(), 4004);
}
