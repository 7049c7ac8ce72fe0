//! A listener's WebSocket.

use std::net::TcpStream;

use serde_json::Value;
use tungstenite::handshake::client::Response;
use tungstenite::{ClientRequestBuilder, Error, HandshakeError, Message, WebSocket};

use crate::http::Client;
use crate::hub::Hub;
use crate::messages::{kind, request};

/// The header that negotiates AAEP's subprotocol, among others.
pub const PROTOCOL: (&str, &str) = ("Sec-WebSocket-Protocol", "other, aaep.v1");

/// Opens a WebSocket at a path of a hub; the status if the upgrade is refused.
pub fn upgrade(
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(WebSocket<TcpStream>, Response), u16> {
    let mut wanted = ClientRequestBuilder::new(format!("ws://{address}{path}").parse().unwrap());
    for (name, value) in headers {
        wanted = wanted.with_header(*name, *value);
    }
    match tungstenite::client(wanted, Client::of(address).connect()) {
        Ok(upgraded) => Ok(upgraded),
        Err(HandshakeError::Failure(Error::Http(answer))) => Err(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

pub struct Socket(pub WebSocket<TcpStream>);

impl Socket {
    /// Connects; the status if it is refused.
    pub fn connect(hub: &Hub, headers: &[(&str, &str)]) -> Result<Self, u16> {
        upgrade(&hub.address, "/aaep/v1/ws", headers).map(|(socket, _)| Self(socket))
    }

    pub fn open(hub: &Hub) -> Self {
        Self::connect(hub, &[PROTOCOL]).unwrap_or_else(|status| panic!("{status}"))
    }

    pub fn subscribed(hub: &Hub, capabilities: &str) -> (Self, String) {
        let mut socket = Self::open(hub);
        socket.say(&request(capabilities));
        let accepted = socket.next();
        assert_eq!(kind(&accepted), "subscription.accepted", "{accepted}");
        (socket, accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    pub fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).unwrap();
    }

    pub fn next(&mut self) -> Value {
        loop {
            match self.0.read().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn code(mut self) -> u16 {
        close_code(&mut self.0)
    }
}

/// The code with which the other side closes, whatever it sends before.
pub fn close_code(socket: &mut WebSocket<TcpStream>) -> u16 {
    loop {
        if let Message::Close(frame) = socket.read().unwrap() {
            return frame.unwrap().code.into();
        }
    }
}
