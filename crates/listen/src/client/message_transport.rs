//! The message transports: WebSocket and Unix socket. A subscription ends with its connection (C-C17), so each connection
//! creates a new subscription. It starts after the last resume position that the hub reported, if the hub supports that.

use std::path::Path;

use aaep::json::Tape;
use aaep::message::Message;
use client::{Message as Frame, WebSocket};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::address::HubTransport;
use super::follow::{
    AttemptOutcome, ConnectionEvent, ConnectionLoss, LIVENESS_TIMEOUT, MAX_MESSAGE_BYTES, SubscribeContext,
    is_resumed, is_temporary,
};
use super::{Address, ConnectionError, http};

/// Runs one connection until it is lost.
pub(super) async fn run_once(
    address: &Address,
    request: &impl Fn(SubscribeContext) -> String,
    context: &mut SubscribeContext,
    events: &mpsc::Sender<ConnectionEvent>,
    was_open: bool,
) -> AttemptOutcome {
    let request = request(context.clone());
    let opening = async {
        let mut connection = MessageConnection::open(address).await?;
        connection.send(&request).await?;
        loop {
            match connection.next_message().await? {
                Some(message) if message.is_empty() => {}
                response => return Ok((connection, response)),
            }
        }
    };
    let (mut connection, accepted) = match timeout(http::REQUEST_TIMEOUT, opening).await {
        Ok(Ok((connection, Some(response)))) => (connection, response),
        Ok(Ok((_, None))) => {
            return AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(
                ConnectionError::ClosedBeforeResponse,
            ));
        }
        Ok(Err(loss)) => return AttemptOutcome::BeforeOpen(loss),
        Err(_) => return AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(ConnectionError::TimedOut)),
    };
    let (subscription, notes, resumed) = match Message::parse(&accepted) {
        Some(Message::SubscriptionAccepted(accepted)) => {
            let resumed = is_resumed(&accepted, context);
            (accepted.subscription_id, accepted.negotiation_notes, resumed)
        }
        Some(Message::SubscriptionRejected(rejected)) if was_open && is_temporary(&rejected) => {
            return AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(ConnectionError::from_rejection(
                &rejected, None,
            )));
        }
        Some(Message::SubscriptionRejected(rejected)) => {
            return AttemptOutcome::BeforeOpen(ConnectionLoss::Refused(ConnectionError::from_rejection(
                &rejected, None,
            )));
        }
        _ => return AttemptOutcome::BeforeOpen(ConnectionLoss::Refused(ConnectionError::NotAHub(None))),
    };
    let receiver_closed =
        || AttemptOutcome::AfterOpen(ConnectionLoss::Unreachable(ConnectionError::ReceiverClosed));
    let terms = ConnectionEvent::Subscribed { request, accepted };
    let open = ConnectionEvent::Open { subscription: Some(subscription), notes, resumed };
    if events.send(terms).await.is_err() || events.send(open).await.is_err() {
        return receiver_closed();
    }
    loop {
        let next = tokio::select! {
            next = connection.next_before_timeout() => next,
            () = events.closed() => return receiver_closed(),
        };
        match next {
            Ok(Some(text)) if text.is_empty() => {}
            Ok(Some(text)) => {
                if let Some(event_id) = parse_position(&text) {
                    context.after_event_id = Some(event_id);
                    continue;
                }
                if events.send(ConnectionEvent::Text(text)).await.is_err() {
                    return receiver_closed();
                }
            }
            Ok(None) => {
                return AttemptOutcome::AfterOpen(ConnectionLoss::Unreachable(ConnectionError::ClosedByHub));
            }
            Err(loss) => return AttemptOutcome::AfterOpen(loss),
        }
    }
}

/// Returns the resume position that a message reports, if it is a `sayso:place` message.
fn parse_position(text: &str) -> Option<String> {
    if !text.contains("sayso:place") {
        return None;
    }
    let mut tape = Tape::default();
    let root = tape.read(text).ok()?.root();
    let is_position = root.member("type")?.is_text("sayso:place");
    is_position.then(|| Some(root.member("last_event_id")?.text()?.into_owned())).flatten()
}

enum MessageConnection {
    WebSocket(Box<WebSocket>),
    #[cfg(unix)]
    Unix(unix::UnixLineStream),
}

impl MessageConnection {
    async fn open(address: &Address) -> Result<Self, ConnectionLoss> {
        if let HubTransport::Unix(path) = &address.transport {
            return Self::open_unix(path).await;
        }
        match address
            .client
            .open_websocket("/aaep/v1/ws", Some("aaep.v1"), MAX_MESSAGE_BYTES)
            .await
            .map_err(ConnectionError::from)
        {
            Ok(socket) => Ok(Self::WebSocket(Box::new(socket))),
            Err(error @ (ConnectionError::TokenRequired | ConnectionError::NotAHub(_))) => {
                Err(ConnectionLoss::Refused(error))
            }
            Err(error) => Err(ConnectionLoss::Unreachable(error)),
        }
    }

    #[cfg(unix)]
    async fn open_unix(path: &Path) -> Result<Self, ConnectionLoss> {
        Ok(Self::Unix(unix::UnixLineStream::open(path).await.map_err(unreachable_loss)?))
    }

    #[cfg(not(unix))]
    async fn open_unix(_: &Path) -> Result<Self, ConnectionLoss> {
        Err(ConnectionLoss::Refused(ConnectionError::UnixUnsupported))
    }

    async fn send(&mut self, text: &str) -> Result<(), ConnectionLoss> {
        match self {
            Self::WebSocket(socket) => socket
                .send(Frame::text(text))
                .await
                .map_err(client::ClientError::from)
                .map_err(unreachable_loss),
            #[cfg(unix)]
            Self::Unix(lines) => lines.send_line(text).await.map_err(unreachable_loss),
        }
    }

    /// Receives the next message, with a liveness timeout for WebSocket. A Unix socket needs none, because it closes
    /// when the hub exits.
    async fn next_before_timeout(&mut self) -> Result<Option<String>, ConnectionLoss> {
        if let Self::WebSocket(_) = self {
            return timeout(LIVENESS_TIMEOUT, self.next_message())
                .await
                .unwrap_or(Err(ConnectionLoss::Unreachable(ConnectionError::LivenessTimeout)));
        }
        self.next_message().await
    }

    /// Receives the next message, or `None` at the end. It is cancel-safe.
    async fn next_message(&mut self) -> Result<Option<String>, ConnectionLoss> {
        match self {
            Self::WebSocket(socket) => match socket.next().await {
                Some(Ok(Frame::Text(text))) => Ok(Some(text.as_str().to_owned())),
                Some(Ok(Frame::Close(_))) | None => Ok(None),
                // An empty message is a heartbeat. The library answers pings itself.
                Some(Ok(_)) => Ok(Some(String::new())),
                Some(Err(error)) => Err(unreachable_loss(client::ClientError::from(error))),
            },
            #[cfg(unix)]
            Self::Unix(lines) => lines.next_line().await.map_err(unreachable_loss),
        }
    }
}

fn unreachable_loss(error: impl Into<ConnectionError>) -> ConnectionLoss {
    ConnectionLoss::Unreachable(error.into())
}

#[cfg(unix)]
mod unix {
    use std::path::Path;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::{ConnectionError, MAX_MESSAGE_BYTES};

    pub(super) struct UnixLineStream {
        stream: UnixStream,
        buffer: Vec<u8>,
    }

    impl UnixLineStream {
        pub(super) async fn open(path: &Path) -> Result<Self, ConnectionError> {
            Ok(Self { stream: UnixStream::connect(path).await?, buffer: Vec::new() })
        }

        pub(super) async fn send_line(&mut self, text: &str) -> Result<(), ConnectionError> {
            Ok(self.stream.write_all(format!("{text}\n").as_bytes()).await?)
        }

        pub(super) async fn next_line(&mut self) -> Result<Option<String>, ConnectionError> {
            loop {
                if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.buffer.drain(..=end).collect();
                    return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
                }
                if self.buffer.len() > MAX_MESSAGE_BYTES {
                    return Err(ConnectionError::ResponseTooLong);
                }
                self.buffer.reserve(16 * 1024);
                if self.stream.read_buf(&mut self.buffer).await? == 0 {
                    return Ok(None);
                }
            }
        }
    }
}
