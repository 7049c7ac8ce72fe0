//! One connection: requests one after the other, each with its limits, until it becomes a stream or ends.

use std::net::IpAddr;

use super::stream::{Stream, nobody, written};
use super::{Server, routes};
use crate::agent;
use crate::compat;
use crate::http::{Method, RequestReader, Response, Unread};
use crate::listener::websocket;

/// What a request comes to.
pub(super) enum HttpReply {
    /// An answer.
    Whole(Response),
    /// From now on the connection is a stream of events.
    Stream(hub::ListenerId),
    /// From now on the connection is a WebSocket.
    WebSocket(websocket::Upgrade),
    /// From now on the connection is a WebSocket of an agent.
    Agent(agent::Upgrade),
    /// From now on the connection speaks a dialect.
    Compat(Box<compat::Stream>),
    /// Likewise, on a WebSocket.
    CompatSocket(compat::Upgrade),
}

pub(super) async fn run(server: &Server, mut stream: impl Stream, peer: IpAddr) {
    let mut reader = RequestReader::new(server.limits.requests());
    loop {
        let (head, body) = match reader.next(&mut stream).await {
            Ok(request) => request,
            Err(Unread::Ended) => return,
            Err(Unread::Refused(response)) => return refuse(server, &mut stream, &response).await,
        };
        let waits = routes::waits(&head);
        let reply = tokio::select! {
            biased;
            reply = routes::answer(server, &head, body, peer) => reply,
            () = reader.hung_up(&mut stream), if waits => return,
        };
        match reply {
            HttpReply::Whole(response) => {
                let head_only = head.method == Method::Head;
                if !say(server, &mut stream, &response, head.keep_alive, head_only).await || !head.keep_alive
                {
                    return;
                }
            }
            HttpReply::WebSocket(upgrade) => {
                return websocket::run(server, upgrade, stream, reader.rest).await;
            }
            HttpReply::Agent(upgrade) => return agent::run(server, upgrade, stream, reader.rest).await,
            HttpReply::Compat(bare) => return bare.run(server, stream).await,
            HttpReply::CompatSocket(upgrade) => return upgrade.run(server, stream, reader.rest).await,
            HttpReply::Stream(listener) => return become_stream(server, stream, listener).await,
        }
    }
}

/// Says it; `false` if it was not taken whole, after which nothing more can be said.
async fn say(
    server: &Server,
    stream: &mut impl Stream,
    response: &Response,
    keep_alive: bool,
    head_only: bool,
) -> bool {
    let said = written(stream, &response.to_bytes(keep_alive, head_only), server.limits.answer_time).await;
    if !keep_alive {
        stream.end().await;
    }
    said
}

/// What could not be read is answered, and the connection ends.
async fn refuse(server: &Server, stream: &mut impl Stream, response: &Response) {
    server.bridge.observe().unread(response);
    say(server, stream, response, false, false).await;
}

pub(crate) const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";

/// The head of a stream is sent, and nothing but events follows it.
async fn become_stream(server: &Server, mut stream: impl Stream, listener: hub::ListenerId) {
    if written(&mut stream, STREAM_HEAD, server.limits.answer_time).await {
        stream.hand_over(server, listener).await;
    } else {
        nobody(server, listener);
    }
}
