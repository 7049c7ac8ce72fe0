//! One connection. Handles its requests one after the other until it ends or becomes a stream.

use std::net::IpAddr;

use super::stream::{ConnectionStream, report_disconnected, write_with_timeout};
use super::{ConnectionSlot, Server, routes};
use crate::agent;
use crate::compat;
use crate::http::{BodyFraming, HttpResponse, Method, ReadError, RequestReader};
use crate::message_transport::{lingering_close, websocket};

/// The result of a request.
pub(super) enum RequestOutcome {
    /// A complete response.
    Response(HttpResponse),
    /// The connection becomes an SSE stream.
    EventStream(hub::ListenerId),
    /// The connection becomes a listener's WebSocket.
    WebSocket(websocket::Upgrade),
    /// The connection becomes an agent's WebSocket.
    AgentWebSocket(agent::Upgrade),
    /// The connection becomes an SSE stream in compatibility mode.
    CompatStream(Box<compat::CompatStream>),
    /// The connection becomes a WebSocket in compatibility mode.
    CompatWebSocket(compat::Upgrade),
}

/// Serves a connection. Its slot is freed before the connection is closed, because parameters are dropped in reverse order.
pub(super) async fn run(
    server: &Server,
    mut stream: impl ConnectionStream,
    peer: IpAddr,
    mut slot: ConnectionSlot,
) {
    let mut reader = RequestReader::new(server.limits.request_limits());
    loop {
        let head = match reader.next_head(&mut stream).await {
            Ok(head) => head,
            Err(ReadError::Closed) => return,
            Err(ReadError::Rejected(response)) => return reject(server, stream, &response).await,
        };
        let caller = match routes::admit(server, &head) {
            Ok(caller) => caller,
            Err(response) => {
                // The body is not read, so the connection can be used again only if there is no body.
                let keep_alive =
                    head.keep_alive && matches!(head.framing, BodyFraming::None | BodyFraming::Length(0));
                let head_only = head.method == Method::Head;
                if !write_response(server, &mut stream, &response, keep_alive, head_only).await {
                    return;
                }
                if !keep_alive {
                    return lingering_close(stream).await;
                }
                continue;
            }
        };
        if caller.has_authenticated() {
            slot.mark_authenticated();
        }
        let body = match reader.next_body(&mut stream, &head, caller.max_body_bytes(&server.limits)).await {
            Ok(body) => body,
            Err(ReadError::Closed) => return,
            Err(ReadError::Rejected(response)) => return reject(server, stream, &response).await,
        };
        let is_long_poll = routes::is_long_poll(&head);
        let outcome = tokio::select! {
            biased;
            outcome = routes::handle_request(server, &head, caller, body, peer) => outcome,
            () = reader.wait_for_disconnect(&mut stream), if is_long_poll => return,
        };
        match outcome {
            RequestOutcome::Response(response) => {
                let head_only = head.method == Method::Head;
                if !write_response(server, &mut stream, &response, head.keep_alive, head_only).await
                    || !head.keep_alive
                {
                    return;
                }
            }
            RequestOutcome::WebSocket(upgrade) => {
                return websocket::run(server, upgrade, stream, reader.buffer).await;
            }
            RequestOutcome::AgentWebSocket(upgrade) => {
                return agent::run(server, upgrade, stream, reader.buffer).await;
            }
            RequestOutcome::CompatStream(compat) => return compat.run(server, stream).await,
            RequestOutcome::CompatWebSocket(upgrade) => {
                return upgrade.run(server, stream, reader.buffer).await;
            }
            RequestOutcome::EventStream(listener) => {
                return start_event_stream(server, stream, listener, slot).await;
            }
        }
    }
}

/// Writes a response. Returns `false` if it was not written completely, which makes the connection unusable.
async fn write_response(
    server: &Server,
    stream: &mut impl ConnectionStream,
    response: &HttpResponse,
    keep_alive: bool,
    head_only: bool,
) -> bool {
    let was_written =
        write_with_timeout(stream, &response.to_bytes(keep_alive, head_only), server.limits.response_timeout)
            .await;
    if !keep_alive {
        stream.close_stream().await;
    }
    was_written
}

/// Answers an invalid request and closes the connection.
async fn reject(server: &Server, mut stream: impl ConnectionStream, response: &HttpResponse) {
    server.hub.telemetry().record_unreadable(response);
    if write_response(server, &mut stream, response, false, false).await {
        lingering_close(stream).await;
    }
}

pub(crate) const SSE_RESPONSE_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";

/// Sends the response head of an SSE stream and turns the connection into the stream.
async fn start_event_stream(
    server: &Server,
    mut stream: impl ConnectionStream,
    listener: hub::ListenerId,
    slot: ConnectionSlot,
) {
    if write_with_timeout(&mut stream, SSE_RESPONSE_HEAD, server.limits.response_timeout).await {
        stream.into_event_stream(server, listener, slot).await;
    } else {
        report_disconnected(server, listener);
    }
}
