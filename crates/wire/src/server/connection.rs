//! One connection: requests one after the other, each with its limits, until it becomes a stream or ends.

use std::net::IpAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::stream::{Stream, nobody, written};
use super::{Server, routes};
use crate::agent;
use crate::compat;
use crate::http::{BadHead, Chunks, Framing, Head, Method, Response, Status};
use crate::listener::websocket;

/// What a request comes to.
pub(super) enum Reply {
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
    let mut bytes = Vec::new();
    let mut first = true;
    loop {
        let patience = if first { server.limits.head_time } else { server.limits.idle_time };
        first = false;
        let head = match read_head(server, &mut stream, &mut bytes, patience).await {
            Ok(Some(head)) => head,
            Ok(None) => return,
            Err(response) => return refuse(server, &mut stream, &response).await,
        };
        let body = match read_body(server, &mut stream, &mut bytes, &head).await {
            Ok(body) => body,
            Err(Some(response)) => return refuse(server, &mut stream, &response).await,
            Err(None) => return,
        };
        let waits = routes::waits(&head);
        let reply = tokio::select! {
            biased;
            reply = routes::answer(server, &head, body, peer) => reply,
            () = hung_up(server, &mut stream, &mut bytes), if waits => return,
        };
        match reply {
            Reply::Whole(response) => {
                let head_only = head.method == Method::Head;
                if !say(server, &mut stream, &response, head.keep_alive, head_only).await || !head.keep_alive
                {
                    return;
                }
            }
            Reply::WebSocket(upgrade) => return websocket::run(server, upgrade, stream, bytes).await,
            Reply::Agent(upgrade) => return agent::run(server, upgrade, stream, bytes).await,
            Reply::Compat(bare) => return bare.run(server, stream).await,
            Reply::CompatSocket(upgrade) => return upgrade.run(server, stream, bytes).await,
            Reply::Stream(listener) => return become_stream(server, stream, listener).await,
        }
    }
}

/// Ends when the other side is gone. What it says meanwhile is the beginning of its next request.
async fn hung_up(server: &Server, stream: &mut impl Stream, bytes: &mut Vec<u8>) {
    while bytes.len() < server.limits.head_bytes {
        bytes.reserve(2048);
        if stream.read_buf(bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    std::future::pending::<()>().await;
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

/// Reads up to the end of a head. `None` if the connection ends before one has begun.
async fn read_head(
    server: &Server,
    stream: &mut impl Stream,
    bytes: &mut Vec<u8>,
    patience: Duration,
) -> Result<Option<Head>, Response> {
    let too_long = || Response::problem(Status::HeadTooLarge, "The request's head is too long.");
    let read = async {
        loop {
            match Head::parse(bytes) {
                Ok(Some((_, used))) if used > server.limits.head_bytes => return Err(too_long()),
                Ok(Some((head, _))) if head.count() > server.limits.headers => {
                    let why = format!("{}.", BadHead::TooManyHeaders);
                    return Err(Response::problem(Status::BadRequest, &why));
                }
                Ok(Some((head, used))) => {
                    bytes.drain(..used);
                    return Ok(Some(head));
                }
                Ok(None) if bytes.len() >= server.limits.head_bytes => return Err(too_long()),
                Ok(None) => {}
                Err(why) => return Err(Response::problem(Status::BadRequest, &format!("{why}."))),
            }
            bytes.reserve(2048);
            if stream.read_buf(bytes).await.unwrap_or(0) == 0 {
                return Ok(None);
            }
        }
    };
    match timeout(patience, read).await {
        Ok(read) => read,
        Err(_) => Ok(None),
    }
}

/// Reads a body whole. An error without an answer is a connection that has ended.
async fn read_body(
    server: &Server,
    stream: &mut impl Stream,
    bytes: &mut Vec<u8>,
    head: &Head,
) -> Result<Vec<u8>, Option<Response>> {
    let limit = server.limits.body_bytes;
    let too_large = || {
        Some(Response::problem(Status::ContentTooLarge, &format!("The body is longer than {limit} bytes.")))
    };
    if head.header("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue")) {
        let said = written(stream, b"HTTP/1.1 100 Continue\r\n\r\n", server.limits.body_time).await;
        said.then_some(()).ok_or(None)?;
    }
    let read = async {
        let mut body = Vec::new();
        let mut chunks = Chunks::default();
        loop {
            match head.framing {
                Framing::None => return Ok(body),
                Framing::Length(length) => {
                    let length = usize::try_from(length)
                        .ok()
                        .filter(|length| *length <= limit)
                        .ok_or_else(too_large)?;
                    if bytes.len() >= length {
                        return Ok(bytes.drain(..length).collect());
                    }
                }
                Framing::Chunked => {
                    let wrong = |_| {
                        Some(Response::problem(Status::BadRequest, "The body is not chunked as it says."))
                    };
                    let took = chunks.take(bytes, &mut body).map_err(wrong)?;
                    bytes.drain(..took);
                    if body.len() > limit {
                        return Err(too_large());
                    }
                    if chunks.is_done() {
                        return Ok(body);
                    }
                }
            }
            bytes.reserve(16 * 1024);
            if stream.read_buf(bytes).await.unwrap_or(0) == 0 {
                return Err(None);
            }
        }
    };
    match timeout(server.limits.body_time, read).await {
        Ok(read) => read,
        Err(_) => Err(Some(Response::problem(Status::RequestTimeout, "The body took too long."))),
    }
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
