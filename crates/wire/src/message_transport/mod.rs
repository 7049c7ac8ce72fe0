//! Listeners on transports that carry complete messages in both directions.
//!
//! The protocol is the same on all of them:
//!
//! - `subscription_flow`: the protocol, from the handshake to the close.
//! - `resume_positions`: tells listeners after which event they can resume.
//!
//! Each transport adds its own framing:
//!
//! - `websocket`: one text frame per message (§B.2).
//! - `unix`: one line or one length-prefixed block per message (§B.4), see `framing`.
//! - `stdio`: JSON-RPC, one line per message (§B.6).
//! - `grpc`: one `AaepMessage` per message (§B.5), with the feature `grpc`.
//!
//! A transport is a [`MessageSource`] and a [`MessageSink`]. The listener's first message requests a subscription, and the
//! hub's first message is the answer. After that, two loops run concurrently. The receive loop passes the listener's
//! messages to the hub in order. The send loop sends the subscription's frames from a small channel. If the listener does
//! not read, the channel fills and further frames wait in the fan-out. When the transport ends, the subscription is
//! closed and cannot be resumed (C-C17).

mod framing;
#[cfg(feature = "grpc")]
pub(crate) mod grpc;
mod resume_positions;
pub(crate) mod stdio;
mod subscription_flow;
#[cfg(test)]
mod tests;
pub(crate) mod unix;
pub(crate) mod websocket;

use std::sync::Arc;
use std::time::Duration;

use aaep::SubscriptionId;
use hub::delivery::{CloseReason, Frame};
pub(crate) use subscription_flow::{rejected_message, rejection_of, run_subscription};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
pub use unix::UnixSocket;

/// Receives messages.
pub(crate) trait MessageSource {
    /// Returns the next item. Cancel-safe.
    fn receive(&mut self) -> impl Future<Output = InboundItem> + Send;
}

/// Sends messages.
pub(crate) trait MessageSink {
    /// Sends an item. Returns `false` if the connection is lost.
    fn transmit(&mut self, item: OutboundItem) -> impl Future<Output = bool> + Send;
}

/// A received item.
#[derive(Debug)]
pub(crate) enum InboundItem {
    /// A message, with the request id for its answer if the transport has such ids.
    Message {
        /// The message.
        text: String,
        /// The request id, as JSON.
        request_id: Option<String>,
    },
    /// A sign of life without a message.
    Alive,
    /// Data that is not a valid message.
    Malformed,
    /// A request that the transport answers without the hub. The text is the answer.
    TransportReply(String),
    /// The end of the connection.
    End(DisconnectReason),
}

/// An item to send.
#[derive(Debug)]
pub(crate) enum OutboundItem {
    /// A frame of a subscription: an event, or a message to the listener.
    Frame(Arc<Frame>),
    /// The answer to a message.
    Reply {
        /// The answer.
        json: String,
        /// The request id.
        request_id: Option<String>,
    },
    /// Reports that a message was invalid.
    InvalidMessage {
        /// The request id.
        request_id: Option<String>,
    },
    /// Text that is sent unchanged.
    Raw(String),
    /// Checks that the peer is alive.
    Ping,
    /// The final item.
    Close {
        /// Why the connection ends.
        reason: DisconnectReason,
        /// The subscription, if there was one.
        subscription: Option<SubscriptionId>,
    },
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisconnectReason {
    /// The hub ended the subscription.
    SubscriptionEnded,
    /// Another connection took the subscription over.
    Replaced,
    /// The token is no longer valid.
    TokenRevoked,
    /// The listener did not read fast enough.
    SlowConsumer,
    /// The hub is shutting down.
    HubStopping,
    /// The subscription was rejected.
    Rejected,
    /// The subscription was rejected because the caller is not authenticated.
    Unauthenticated,
    /// The subscription was rejected because the caller is not authorized.
    Denied,
    /// The peer violated the protocol.
    ProtocolViolation,
    /// The peer closed its subscription.
    ClosedByPeer,
    /// A message exceeded the size limit.
    TooLarge,
    /// The framing was invalid.
    FramingError,
    /// No sign of life arrived in time.
    IdleTimeout,
    /// The connection was lost.
    ConnectionLost,
}

impl DisconnectReason {
    /// Converts the hub's close reason to a disconnect reason.
    fn from_hub(reason: CloseReason) -> Self {
        match reason {
            CloseReason::SlowConsumer => Self::SlowConsumer,
            CloseReason::ProducerShutdown => Self::HubStopping,
            CloseReason::Replaced => Self::Replaced,
            CloseReason::TokenRemoved => Self::TokenRevoked,
            _ => Self::SubscriptionEnded,
        }
    }

    /// Returns the reason code and message for `subscription.close`.
    pub(crate) fn code_and_message(self) -> (&'static str, &'static str) {
        let hub_code_and_message = |reason: CloseReason| (reason.code(), reason.message());
        match self {
            Self::SlowConsumer => hub_code_and_message(CloseReason::SlowConsumer),
            Self::HubStopping => hub_code_and_message(CloseReason::ProducerShutdown),
            Self::Replaced => hub_code_and_message(CloseReason::Replaced),
            Self::TokenRevoked => hub_code_and_message(CloseReason::TokenRemoved),
            Self::SubscriptionEnded => ("ended", "The subscription has ended."),
            Self::Rejected | Self::Unauthenticated => ("rejected", "The subscription was rejected."),
            Self::Denied => ("authorization_denied", "You may not subscribe here."),
            Self::ProtocolViolation => ("violation", "Too many invalid messages."),
            Self::ClosedByPeer => ("closed", "The subscription was closed at your request."),
            Self::TooLarge => ("too_large", "A message was too large."),
            Self::FramingError => ("broken", "The framing was invalid."),
            Self::IdleTimeout => ("silent", "The connection timed out."),
            Self::ConnectionLost => ("gone", "The connection has ended."),
        }
    }
}

/// The limits of a transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireLimits {
    /// How long the first message may take.
    pub(crate) first_message_timeout: Option<Duration>,
    /// Interval between pings. Three unanswered pings close the connection.
    pub(crate) ping_interval: Option<Duration>,
    /// Number of malformed messages after which the connection is closed. `None` on transports that answer each malformed
    /// message with an error.
    pub(crate) max_malformed: Option<usize>,
    /// How long writing one message may take.
    pub(crate) write_timeout: Duration,
}

/// How long the final message and the close may take.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Closes a stream after reading some of the remaining input. Otherwise the kernel resets the connection, and
/// the peer may lose the last message.
pub(crate) async fn lingering_close(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let read = async {
        let _ = stream.shutdown().await;
        let mut buffer = [0; 4096];
        for _ in 0..1024 {
            if stream.read(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, read).await;
}
