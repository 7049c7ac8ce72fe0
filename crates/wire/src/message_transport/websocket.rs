//! The WebSocket transport (§B.2), with one message per frame.

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hub::Principal;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::subscription_flow::close_message;
use super::{
    CLOSE_TIMEOUT, DisconnectReason, InboundItem, MessageSink, MessageSource, OutboundItem, WireLimits,
    lingering_close, run_subscription,
};
use crate::http::{BodyFraming, HttpResponse, RequestHead, StatusCode};
use crate::server::Server;
use crate::telemetry::TransportKind;

/// The required subprotocol (§B.2.1, C-E7).
const SUBPROTOCOL: &str = "aaep.v1";

/// A valid upgrade request for a listener's WebSocket.
#[derive(Debug)]
pub(crate) struct Upgrade {
    principal: Principal,
    /// The value of `Sec-WebSocket-Accept`.
    accept: String,
}

impl Upgrade {
    /// Validates an upgrade request.
    pub(crate) fn from_request(head: &RequestHead, principal: Principal) -> Result<Self, HttpResponse> {
        let accept = accept_key(head)?;
        if !head.list_contains("sec-websocket-protocol", SUBPROTOCOL) {
            return Err(HttpResponse::problem(StatusCode::BadRequest, "The subprotocol must be aaep.v1."));
        }
        Ok(Self { principal, accept })
    }
}

/// Checks a WebSocket request and computes the value of `Sec-WebSocket-Accept` (RFC 6455, section 4.2). Returns the error
/// response if the request is not a valid upgrade.
pub(crate) fn accept_key(head: &RequestHead) -> Result<String, HttpResponse> {
    let has_item = |name: &str, item: &str| {
        head.header(name)
            .is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(item)))
    };
    if !has_item("upgrade", "websocket") || !has_item("connection", "upgrade") {
        return Err(upgrade_required("This address requires a WebSocket upgrade."));
    }
    if head.header("sec-websocket-version") != Some("13") {
        return Err(upgrade_required("The WebSocket version must be 13."));
    }
    let bad_request = |title| Err(HttpResponse::problem(StatusCode::BadRequest, title));
    let Some(key) = head.header("sec-websocket-key").filter(|key| is_websocket_key(key)) else {
        return bad_request("Sec-WebSocket-Key must be 16 bytes in Base64.");
    };
    if head.framing != BodyFraming::None {
        return bad_request("A WebSocket request must have no body.");
    }
    Ok(derive_accept_key(key.as_bytes()))
}

pub(crate) fn upgrade_required(title: &str) -> HttpResponse {
    HttpResponse::problem(StatusCode::UpgradeRequired, title)
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
}

fn is_websocket_key(key: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    key.strip_suffix("==").is_some_and(|rest| rest.len() == 22 && rest.bytes().all(is_base64))
}

/// Sends the 101 response and returns the WebSocket, whose messages may have up to `max_bytes`. `read_ahead` holds the
/// bytes that followed the request head.
pub(crate) async fn switch_protocols<S: AsyncRead + AsyncWrite + Send + Unpin>(
    max_bytes: usize,
    accept: &str,
    subprotocol: Option<&str>,
    mut stream: S,
    read_ahead: Vec<u8>,
) -> Option<WebSocketStream<S>> {
    let subprotocol_header =
        subprotocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{subprotocol_header}\r\n"
    );
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.flush().await
    };
    if !timeout(CLOSE_TIMEOUT, write).await.is_ok_and(|result| result.is_ok()) {
        return None;
    }
    let max_size = Some(max_bytes);
    let config = WebSocketConfig::default()
        .max_message_size(max_size)
        .max_frame_size(max_size)
        .read_buffer_size(8 * 1024)
        .write_buffer_size(0);
    Some(WebSocketStream::from_partially_read(stream, read_ahead, Role::Server, Some(config)).await)
}

/// Runs a listener's WebSocket until it ends.
pub(crate) async fn run(
    server: &Server,
    upgrade: Upgrade,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    read_ahead: Vec<u8>,
) {
    let Upgrade { principal, accept } = upgrade;
    let max_bytes = server.core.limits.websocket_bytes;
    let Some(socket) = switch_protocols(max_bytes, &accept, Some(SUBPROTOCOL), stream, read_ahead).await
    else {
        return;
    };
    let (mut sink, mut source) = socket.split();
    let limits = WireLimits {
        first_message_timeout: Some(server.core.limits.head_timeout),
        ping_interval: Some(server.core.limits.ping_interval),
        max_malformed: Some(server.core.limits.malformed_messages),
        write_timeout: server.core.limits.message_write_timeout,
    };
    let _listener_guard = server.hub.telemetry().track_listener(TransportKind::WebSocket);
    tokio::select! {
        _ = run_subscription(&server.hub, &principal, &limits, &mut source, &mut sink) => {}
        // The hub normally closes the subscription itself first, with a reason.
        () = async { server.wait_for_revocation(&principal).await; tokio::time::sleep(CLOSE_TIMEOUT).await } => {}
    }
    if let Ok(socket) = source.reunite(sink) {
        lingering_close(socket.into_inner()).await;
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> MessageSource for SplitStream<WebSocketStream<S>> {
    async fn receive(&mut self) -> InboundItem {
        match self.next().await {
            Some(Ok(Message::Text(text))) => {
                InboundItem::Message { text: text.as_str().to_owned(), request_id: None }
            }
            // Binary frames with UTF-8 text are accepted, too (C-E8).
            Some(Ok(Message::Binary(bytes))) => match String::from_utf8(bytes.into()) {
                Ok(text) => InboundItem::Message { text, request_id: None },
                Err(_) => InboundItem::Malformed,
            },
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => InboundItem::Alive,
            Some(Err(Error::Capacity(_))) => InboundItem::End(DisconnectReason::TooLarge),
            Some(Err(Error::Protocol(_) | Error::Utf8(_))) => {
                InboundItem::End(DisconnectReason::FramingError)
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => InboundItem::End(DisconnectReason::ConnectionLost),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> MessageSink for SplitSink<WebSocketStream<S>, Message> {
    async fn transmit(&mut self, item: OutboundItem) -> bool {
        let message = match item {
            OutboundItem::Frame(frame) => Message::text(frame.json()),
            OutboundItem::Reply { json, .. } => Message::text(json),
            OutboundItem::Raw(text) => Message::text(text),
            OutboundItem::Ping => Message::Ping(Vec::new().into()),
            OutboundItem::InvalidMessage { .. } => return true,
            // The reply to the peer's close frame is already in the buffer.
            OutboundItem::Close { reason: DisconnectReason::ConnectionLost, .. } => {
                return self.close().await.is_ok();
            }
            OutboundItem::Close { reason: disconnect_reason, subscription } => {
                // If the hub closes the subscription, a message gives the reason, as on every transport.
                let sends_message = matches!(
                    disconnect_reason,
                    DisconnectReason::SlowConsumer
                        | DisconnectReason::HubStopping
                        | DisconnectReason::Replaced
                        | DisconnectReason::TokenRevoked
                );
                if let Some(subscription) = subscription.filter(|_| sends_message)
                    && self
                        .send(Message::text(close_message(&subscription, disconnect_reason)))
                        .await
                        .is_err()
                {
                    return false;
                }
                let (code, reason) =
                    (close_code(disconnect_reason).into(), disconnect_reason.code_and_message().1.into());
                Message::Close(Some(CloseFrame { code, reason }))
            }
        };
        self.send(message).await.is_ok()
    }
}

/// Returns the close code (§B.2.4). Transport errors have the codes of RFC 6455.
fn close_code(disconnect_reason: DisconnectReason) -> u16 {
    match disconnect_reason {
        DisconnectReason::SubscriptionEnded | DisconnectReason::Replaced => 4000,
        DisconnectReason::Rejected => 4001,
        DisconnectReason::Unauthenticated | DisconnectReason::TokenRevoked => 4002,
        DisconnectReason::Denied => 4003,
        DisconnectReason::ProtocolViolation | DisconnectReason::SlowConsumer => 4004,
        DisconnectReason::ClosedByPeer => 4005,
        DisconnectReason::TooLarge => 1009,
        DisconnectReason::FramingError => 1002,
        DisconnectReason::IdleTimeout | DisconnectReason::HubStopping | DisconnectReason::ConnectionLost => {
            1001
        }
    }
}
