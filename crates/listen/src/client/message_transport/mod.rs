//! Connections that carry complete messages in both directions. [`message_flow`](super::message_flow) runs the protocol on them.
//!
//! - `websocket`: one message per frame (§B.2).
//! - `unix`: one message per line (§B.4), see `line_reader`.
//! - `grpc`: one message per `AaepMessage` (§B.5), with the feature `grpc`.
//! - `stdio`: JSON-RPC, one message per line (§B.6), with a producer that the listener starts, see `producer_process`.

#[cfg(feature = "grpc")]
mod grpc;
mod line_reader;
mod producer_process;
mod stdio;
#[cfg(unix)]
mod unix;
mod websocket;

pub(super) use producer_process::{ProducerCommand, ProducerProcess};
use tokio::sync::mpsc;

use super::address::HubTransport;
use super::{Address, ConnectionError, ConnectionEvent, ConnectionLoss};

/// An item that a connection received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// A message, as JSON.
    Message(String),
    /// A sign of life without a message.
    Alive,
    /// A message that was too long. It was skipped.
    TooLong,
    /// The producer refused a call with this message.
    CallFailed(String),
    /// A response that the transport itself requires.
    TransportReply(String),
    /// A line that is not a message. It is for people.
    Diagnostic(String),
    /// The end of the connection.
    End,
}

/// A connection, as two halves that are used at the same time.
pub(super) struct MessageConnection {
    pub(super) reader: MessageReader,
    pub(super) writer: MessageWriter,
}

/// The half that receives.
pub(super) enum MessageReader {
    WebSocket(websocket::Reader),
    #[cfg(unix)]
    Unix(unix::Reader),
    #[cfg(feature = "grpc")]
    Grpc(grpc::Reader),
    Stdio(stdio::Reader),
}

/// The half that sends.
pub(super) enum MessageWriter {
    WebSocket(websocket::Writer),
    #[cfg(unix)]
    Unix(unix::Writer),
    #[cfg(feature = "grpc")]
    Grpc(grpc::Writer),
    Stdio(stdio::Writer),
}

impl MessageConnection {
    /// Connects, or starts the producer.
    pub(super) async fn open(
        address: &Address,
        events: &mpsc::Sender<ConnectionEvent>,
    ) -> Result<(Self, Option<ProducerProcess>), ConnectionLoss> {
        let connection = match &address.transport {
            HubTransport::Program(command) => {
                let (process, connection) = ProducerProcess::start(command, events)?;
                return Ok((connection, Some(process)));
            }
            #[cfg(feature = "grpc")]
            HubTransport::Grpc => grpc::open(&address.client).await?,
            #[cfg(unix)]
            HubTransport::Unix(path) => unix::open(path).await?,
            #[cfg(not(unix))]
            HubTransport::Unix(_) => return Err(ConnectionLoss::Refused(ConnectionError::UnixUnsupported)),
            HubTransport::WebSocket | HubTransport::Sse => websocket::open(&address.client).await?,
        };
        Ok((connection, None))
    }
}

impl MessageReader {
    /// Receives the next item. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Incoming, ConnectionError> {
        match self {
            Self::WebSocket(reader) => reader.next().await,
            #[cfg(unix)]
            Self::Unix(reader) => reader.next().await,
            #[cfg(feature = "grpc")]
            Self::Grpc(reader) => reader.next().await,
            Self::Stdio(reader) => reader.next().await,
        }
    }

    /// Whether the hub sends signs of life. A connection on this machine needs none, because it closes when the hub exits.
    pub(super) fn has_heartbeats(&self) -> bool {
        matches!(self, Self::WebSocket(_))
    }
}

impl MessageWriter {
    /// Writes a message completely.
    pub(super) async fn send(&mut self, text: &str) -> Result<(), ConnectionError> {
        match self {
            Self::WebSocket(writer) => writer.send(text).await,
            #[cfg(unix)]
            Self::Unix(writer) => writer.send(text).await,
            #[cfg(feature = "grpc")]
            Self::Grpc(writer) => writer.send(text).await,
            Self::Stdio(writer) => writer.send(text).await,
        }
    }

    /// Writes a response that the transport itself requires.
    pub(super) async fn send_transport_reply(&mut self, text: &str) -> Result<(), ConnectionError> {
        match self {
            Self::Stdio(writer) => writer.send_line(text).await,
            _ => Ok(()),
        }
    }
}
