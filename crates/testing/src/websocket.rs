//! A WebSocket client for listeners.

use std::net::TcpStream;

use serde_json::Value;
use tungstenite::handshake::client::Response;
use tungstenite::{ClientRequestBuilder, Error, HandshakeError, Message, WebSocket};

use crate::http::TestClient;
use crate::hub::HubProcess;
use crate::messages::{short_type, subscription_request};

/// The header that requests AAEP's subprotocol and another one.
pub const SUBPROTOCOL_HEADER: (&str, &str) = ("Sec-WebSocket-Protocol", "other, aaep.v1");

/// Opens a WebSocket at a path of a hub. The error is the HTTP status of a rejected upgrade.
pub fn upgrade(
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(WebSocket<TcpStream>, Response), u16> {
    loop {
        let mut request = ClientRequestBuilder::new(format!("ws://{address}{path}").parse().unwrap());
        for (name, value) in headers {
            request = request.with_header(*name, *value);
        }
        match tungstenite::client(request, TestClient::new(address).connect()) {
            Ok(upgraded) => return Ok(upgraded),
            Err(HandshakeError::Failure(Error::Http(response))) => return Err(response.status().as_u16()),
            Err(HandshakeError::Failure(error)) if is_interrupted(&error) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Whether a read was interrupted. A socket with a timeout reports this when its process was stopped and continued.
fn is_interrupted(error: &Error) -> bool {
    matches!(error, Error::Io(error) if error.kind() == std::io::ErrorKind::Interrupted)
}

pub struct WebSocketClient(pub WebSocket<TcpStream>);

impl WebSocketClient {
    /// Connects to a hub. The error is the HTTP status of a rejected upgrade.
    pub fn try_connect(hub: &HubProcess, headers: &[(&str, &str)]) -> Result<Self, u16> {
        upgrade(&hub.address, "/aaep/v1/ws", headers).map(|(socket, _)| Self(socket))
    }

    pub fn connect(hub: &HubProcess) -> Self {
        Self::try_connect(hub, &[SUBPROTOCOL_HEADER]).unwrap_or_else(|status| panic!("{status}"))
    }

    pub fn connect_and_subscribe(hub: &HubProcess, capabilities: &str) -> (Self, String) {
        let mut socket = Self::connect(hub);
        socket.send(&subscription_request(capabilities));
        let accepted = socket.next();
        assert_eq!(short_type(&accepted), "subscription.accepted", "{accepted}");
        (socket, accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    pub fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).unwrap();
    }

    pub fn next(&mut self) -> Value {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return serde_json::from_str(&text).unwrap(),
                Ok(Message::Ping(_)) => {}
                Err(error) if is_interrupted(&error) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn into_close_code(mut self) -> u16 {
        read_close_code(&mut self.0)
    }
}

/// Returns the close code that the server sends, ignoring earlier messages.
pub fn read_close_code(socket: &mut WebSocket<TcpStream>) -> u16 {
    loop {
        if let Message::Close(frame) = socket.read().unwrap() {
            return frame.unwrap().code.into();
        }
    }
}
