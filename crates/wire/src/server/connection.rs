//! One connection: requests one after the other, each with its limits, until it becomes a stream or ends.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Server, routes};
use crate::fanout::Sink;
use crate::http::{Chunks, Framing, Head, Method, Response, Status};
use crate::listener::websocket;

/// What a request comes to.
pub(super) enum Reply {
    /// An answer.
    Whole(Response),
    /// From now on the connection is a stream of events.
    Stream(hub::ListenerId),
    /// From now on the connection is a WebSocket.
    WebSocket(websocket::Upgrade),
}

pub(super) async fn run(server: &Server, mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
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
        match routes::answer(server, &head, body).await {
            Reply::Whole(response) => {
                say(&mut stream, &response, head.keep_alive, head.method == Method::Head).await;
                if !head.keep_alive {
                    return;
                }
            }
            Reply::WebSocket(upgrade) => return websocket::run(server, upgrade, stream, bytes).await,
            Reply::Stream(listener) => return become_stream(server, stream, listener).await,
        }
    }
}

async fn say(stream: &mut TcpStream, response: &Response, keep_alive: bool, head_only: bool) {
    let _ =
        timeout(Duration::from_secs(30), stream.write_all(&response.to_bytes(keep_alive, head_only))).await;
}

/// What could not be read is answered, and the connection ends.
async fn refuse(server: &Server, stream: &mut TcpStream, response: &Response) {
    server.bridge.observe().unread(response);
    say(stream, response, false, false).await;
}

/// Reads up to the end of a head. `None` if the connection ends before one has begun.
async fn read_head(
    server: &Server,
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    patience: Duration,
) -> Result<Option<Head>, Response> {
    let read = async {
        loop {
            match Head::parse(bytes) {
                Ok(Some((head, used))) => {
                    bytes.drain(..used);
                    return Ok(Some(head));
                }
                Ok(None) if bytes.len() >= server.limits.head_bytes => {
                    return Err(Response::problem(Status::HeadTooLarge, "The request's head is too long."));
                }
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
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    head: &Head,
) -> Result<Vec<u8>, Option<Response>> {
    let limit = server.limits.body_bytes;
    let too_large = || {
        Some(Response::problem(Status::ContentTooLarge, &format!("The body is longer than {limit} bytes.")))
    };
    if head.header("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue")) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.map_err(|_| None)?;
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

const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";

/// The head of a stream is sent, and the socket goes to the fan-out: from then on it costs no task.
async fn become_stream(server: &Server, mut stream: TcpStream, listener: hub::ListenerId) {
    if timeout(Duration::from_secs(10), stream.write_all(STREAM_HEAD))
        .await
        .is_ok_and(|written| written.is_ok())
        && let Ok(socket) = stream.into_std()
    {
        // Whatever lies in the system's buffer can no longer be overtaken by what is critical.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(server.limits.unsent_bytes);
        server.bridge.connect(listener, Sink::Socket(mio::net::TcpStream::from_std(socket)));
    } else {
        // A channel that nobody reads is how the fan-out learns that the listener is gone.
        let (sender, _) = tokio::sync::mpsc::channel(1);
        server.bridge.connect(listener, Sink::Channel(sender));
    }
}
