//! A WebSocket with the subprotocol `aaep.v1`.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use tungstenite::{Message, WebSocket};

use crate::fixture::TransportHub;
use crate::transport::{
    CloseSignal, ListenerConnection, ReceivedMessage, Reconnection, classify, wait_for_message,
};

pub(crate) struct WebSocketListener {
    socket: WebSocket<TcpStream>,
    token: String,
    pending: VecDeque<ReceivedMessage>,
}

impl WebSocketListener {
    /// Connects. Returns the HTTP status if the upgrade is refused.
    pub(crate) fn connect(address: &str, token: &str) -> Result<Self, u16> {
        let bearer = format!("Bearer {token}");
        let headers = [("Sec-WebSocket-Protocol", "aaep.v1"), ("Authorization", &bearer)];
        let headers = if token.is_empty() { &headers[..1] } else { &headers };
        let (socket, response) = testing::websocket::upgrade(address, "/aaep/v1/ws", headers)?;
        assert_eq!(response.headers()["Sec-WebSocket-Protocol"], "aaep.v1");
        socket.get_ref().set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        Ok(Self { socket, token: token.to_owned(), pending: VecDeque::new() })
    }

    fn read(socket: &mut WebSocket<TcpStream>) -> ReceivedMessage {
        match socket.read() {
            Ok(Message::Text(text)) => classify(serde_json::from_str(&text).unwrap()),
            Ok(Message::Ping(_)) => ReceivedMessage::Heartbeat,
            Ok(Message::Close(Some(frame))) => ReceivedMessage::End(CloseSignal::Code(frame.code.into())),
            other => panic!("unexpected frame: {other:?}"),
        }
    }
}

impl ListenerConnection for WebSocketListener {
    fn subscribe(&mut self, request: &str) -> Value {
        self.request(request)
    }

    fn send(&mut self, message: &str) {
        // If the write fails, the response is an error or is missing.
        let _ = self.socket.send(Message::text(message));
    }

    fn request(&mut self, message: &str) -> Value {
        self.send(message);
        let Self { socket, pending, .. } = self;
        wait_for_message(pending, || Self::read(socket))
    }

    fn next_incoming(&mut self) -> ReceivedMessage {
        self.pending.pop_front().unwrap_or_else(|| Self::read(&mut self.socket))
    }

    fn close_signal(&mut self) -> CloseSignal {
        loop {
            match self.next_incoming() {
                ReceivedMessage::End(signal) => return signal,
                ReceivedMessage::Heartbeat => {}
                other => panic!("expected the end, got {other:?}"),
            }
        }
    }

    fn wait_for_heartbeat(&mut self) -> bool {
        assert!(matches!(self.next_incoming(), ReceivedMessage::Heartbeat), "expected a ping");
        true
    }

    fn reconnect(&mut self, hub: &mut TransportHub, request: &str) -> Reconnection {
        *self = Self::connect(&hub.address, &self.token).unwrap();
        let accepted = self.subscribe(request);
        Reconnection::NewSubscription(accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    fn drop_connection(&mut self) -> bool {
        self.socket.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
        true
    }
}
