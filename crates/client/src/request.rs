//! One request on one connection, and its response.

use std::io;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::request::Builder;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::{Connection, Error, HttpClient};

/// The head of a response has at most this many bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

impl HttpClient {
    /// Begins a request for a path below the server's address, with the token if there is one.
    pub fn request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url().path()))
            .header(HOST, self.url().authority())
            .header(USER_AGENT, concat!("sayso/", env!("CARGO_PKG_VERSION")))
            .header(CONNECTION, "close");
        match &self.authorization {
            Some(bearer) => request.header(AUTHORIZATION, bearer),
            None => request,
        }
    }
}

/// Sends a request, and waits for the head of the response.
pub async fn send(connection: Connection, request: Request<impl Into<Bytes>>) -> Result<Response, Error> {
    let mut builder = http1::Builder::new();
    // Producers written for one client compare header names as it writes them.
    builder.max_buf_size(MAX_HEAD_BYTES).title_case_headers(true);
    let (mut sender, connection) = builder.handshake(TokioIo::new(connection)).await.map_err(from_hyper)?;
    let task = ConnectionTask(tokio::spawn(async move { drop(connection.await) }));
    let response = sender.send_request(request.map(|body| Full::new(body.into()))).await;
    let (head, body) = response.map_err(from_hyper)?.into_parts();
    Ok(Response { status: head.status.as_u16(), headers: head.headers, body, _task: task })
}

/// A response whose body is still to come.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    headers: HeaderMap,
    body: Incoming,
    _task: ConnectionTask,
}

/// The task that moves the bytes; it ends with the response.
#[derive(Debug)]
struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Response {
    /// The media type and its parameters; empty if there is none.
    pub fn content_type(&self) -> &str {
        self.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().trim()
    }

    /// Whether the body is a stream of server-sent events.
    pub fn is_event_stream(&self) -> bool {
        self.content_type().to_ascii_lowercase().starts_with("text/event-stream")
    }

    /// How long the server wants to be left alone, where it says that in seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    /// The next bytes of the body; `None` at its end. A future that is dropped before it is done loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(match from_hyper(error) {
                        Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                            Error::ClosedInResponse
                        }
                        Error::ClosedBeforeResponse => Error::ClosedInResponse,
                        other => other,
                    });
                }
                // Trailers say nothing here.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The whole body, of at most so many bytes; the server may pause for as long as `patience` within it.
    pub async fn text(mut self, max_bytes: usize, patience: Duration) -> Result<String, Error> {
        let mut body = Vec::new();
        loop {
            let chunk = timeout(patience, self.chunk()).await.map_err(io::Error::from)??;
            let Some(chunk) = chunk else { break };
            body.extend_from_slice(&chunk);
            if body.len() > max_bytes {
                return Err(Error::TooLong);
            }
        }
        String::from_utf8(body).map_err(|_| Error::NotUtf8)
    }
}

/// What an error of hyper means.
fn from_hyper(error: hyper::Error) -> Error {
    let io = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
    match io {
        Some(io)
            if io.get_ref().is_some_and(|inner| matches!(inner.downcast_ref(), Some(Error::SpeaksTls))) =>
        {
            Error::SpeaksTls
        }
        Some(io) => Error::Io(io::Error::new(io.kind(), error)),
        None if error.is_parse_too_large() => Error::TooLong,
        None if error.is_parse() => Error::NotHttp,
        None if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
            Error::ClosedBeforeResponse
        }
        None => Error::Io(io::Error::other(error)),
    }
}
