//! The operations of a listener, and the transport variants that implement them.

use std::collections::VecDeque;

use serde_json::Value;

use crate::fixture::TransportHub;
use crate::{sse, stdio, unix, websocket};

/// The connection of a listener.
pub(crate) trait ListenerConnection {
    /// Sends a subscription request and returns the response.
    fn subscribe(&mut self, request: &str) -> Value;

    /// Sends a message that gets no response.
    fn send(&mut self, message: &str);

    /// Sends a message and returns the response.
    fn request(&mut self, message: &str) -> Value;

    /// Returns the next event, message or heartbeat, or how the connection ended.
    fn next_incoming(&mut self) -> ReceivedMessage;

    /// Returns how the hub ended the connection or refused the last request.
    fn close_signal(&mut self) -> CloseSignal;

    /// Waits for a heartbeat, or requests one. Returns `false` if the transport has no heartbeats.
    fn wait_for_heartbeat(&mut self) -> bool;

    /// Reconnects in the way that the transport prescribes, after the hub stopped or the connection was lost.
    fn reconnect(&mut self, hub: &mut TransportHub, request: &str) -> Reconnection;

    /// Drops the connection without a close message. If that would also stop the hub, does nothing and returns `false`.
    fn drop_connection(&mut self) -> bool;
}

/// A message that a listener receives.
#[derive(Debug)]
pub(crate) enum ReceivedMessage {
    Event(Value),
    Message(Value),
    Heartbeat,
    End(CloseSignal),
}

/// How a connection ends or a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseSignal {
    /// The status of an HTTP response.
    Status(u16),
    /// The close code of a WebSocket.
    Code(u16),
    /// The status of a gRPC call.
    Grpc(i32),
    /// The stream ends without a code.
    End,
    /// The connection stays open.
    StaysOpen,
}

/// How a listener reconnected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reconnection {
    /// Its subscription continues.
    Resumed,
    /// It has a new subscription with this id.
    NewSubscription(String),
}

/// A transport. The Unix socket occurs once for each framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportKind {
    Sse,
    WebSocket,
    UnixLines,
    UnixLengthPrefixed,
    Stdio,
    /// Only with the feature `grpc`.
    Grpc,
}

impl TransportKind {
    pub(crate) const ALL: &[Self] = &[
        Self::Sse,
        Self::WebSocket,
        Self::UnixLines,
        Self::UnixLengthPrefixed,
        Self::Stdio,
        #[cfg(feature = "grpc")]
        Self::Grpc,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::UnixLines => "unix_lines",
            Self::UnixLengthPrefixed => "unix_length_prefixed",
            Self::Stdio => "stdio",
            Self::Grpc => "grpc",
        }
    }

    /// Connects with this token if the transport uses tokens. Returns the HTTP status if it is refused.
    pub(crate) fn connect(
        self,
        hub: &mut TransportHub,
        token: &str,
    ) -> Result<Box<dyn ListenerConnection>, u16> {
        Ok(match self {
            Self::Sse => Box::new(sse::SseListener::new(&hub.address, token)),
            Self::WebSocket => Box::new(websocket::WebSocketListener::connect(&hub.address, token)?),
            Self::UnixLines | Self::UnixLengthPrefixed => {
                Box::new(unix::UnixSocketListener::connect(&hub.socket, self == Self::UnixLines))
            }
            Self::Stdio => Box::new(stdio::StdioListener::new(hub)),
            #[cfg(feature = "grpc")]
            Self::Grpc => Box::new(crate::grpc::GrpcListener::connect(&hub.grpc_address, token)?),
            #[cfg(not(feature = "grpc"))]
            Self::Grpc => unreachable!("gRPC is not built"),
        })
    }

    /// Whether tokens authenticate the listener. The other transports trust the user who started the hub.
    pub(crate) fn has_tokens(self) -> bool {
        matches!(self, Self::Sse | Self::WebSocket | Self::Grpc)
    }

    /// Returns the signal that is expected on this transport.
    pub(crate) fn expected_signal(
        self,
        sse: CloseSignal,
        websocket: CloseSignal,
        unix: CloseSignal,
        stdio: CloseSignal,
    ) -> CloseSignal {
        match self {
            Self::Sse => sse,
            Self::WebSocket => websocket,
            Self::UnixLines | Self::UnixLengthPrefixed => unix,
            Self::Stdio => stdio,
            Self::Grpc => CloseSignal::Grpc(match websocket {
                CloseSignal::Code(4000 | 4005) => 0,
                CloseSignal::Code(4001) => 9,
                CloseSignal::Code(4002) => 16,
                CloseSignal::Code(4003) => 7,
                CloseSignal::Code(4004) => 8,
                CloseSignal::Code(1009) => 11,
                CloseSignal::Code(1001) => 14,
                other => panic!("no status for {other:?}"),
            }),
        }
    }
}

/// Distinguishes events from handshake messages.
pub(crate) fn classify(json: Value) -> ReceivedMessage {
    if json["type"].as_str().unwrap().starts_with("aaep:agent.") {
        ReceivedMessage::Event(json)
    } else {
        ReceivedMessage::Message(json)
    }
}

/// Waits for the next message on a transport that mixes messages and events. Everything else is appended to `pending`.
pub(crate) fn wait_for_message(
    pending: &mut VecDeque<ReceivedMessage>,
    mut next: impl FnMut() -> ReceivedMessage,
) -> Value {
    loop {
        match next() {
            ReceivedMessage::Message(message) => return message,
            ReceivedMessage::End(signal) => panic!("the connection ended before a response: {signal:?}"),
            other => pending.push_back(other),
        }
    }
}

impl dyn ListenerConnection {
    /// Returns the next event. Skips heartbeats and panics on anything else.
    pub(crate) fn next_event(&mut self) -> Value {
        loop {
            match self.next_incoming() {
                ReceivedMessage::Event(event) => return event,
                ReceivedMessage::Heartbeat => {}
                other => panic!("expected an event, got {other:?}"),
            }
        }
    }

    /// Returns the next message. Skips heartbeats and panics on anything else.
    pub(crate) fn next_message(&mut self) -> Value {
        loop {
            match self.next_incoming() {
                ReceivedMessage::Message(message) => return message,
                ReceivedMessage::Heartbeat => {}
                other => panic!("expected a message, got {other:?}"),
            }
        }
    }

    /// Returns all events up to the first that matches.
    pub(crate) fn events_until(&mut self, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        while events.last().is_none_or(|event| !is_last(event)) {
            events.push(self.next_event());
        }
        events
    }

    /// Returns all events up to the first of this type.
    pub(crate) fn events_until_type(&mut self, name: &str) -> Vec<Value> {
        self.events_until(|event| event["type"] == format!("aaep:agent.{name}"))
    }

    /// Skips events up to the resolution of this question and returns the resolution.
    pub(crate) fn wait_for_resolution(&mut self, token: &str) -> Value {
        self.events_until(|event| {
            event["type"] == "aaep:agent.state.changed"
                && event["extensions"]["sayso"]["reply_token"] == token
        })
        .pop()
        .unwrap()
    }
}
