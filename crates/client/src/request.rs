//! Sends one request per connection and reads the response.

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

use crate::{ClientConnection, ClientError, HttpClient};

/// Maximum size of a response head, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

impl HttpClient {
    /// Starts a request for a path below the server's address, with the token if there is one.
    pub fn request(&self, method: Method, path: &str) -> Builder {
        self.persistent_request(method, path).header(CONNECTION, "close")
    }

    /// Like [`Self::request`], for a [`PersistentConnection`].
    pub fn persistent_request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url().path()))
            .header(HOST, self.url().authority())
            .header(USER_AGENT, concat!("sayso/", env!("CARGO_PKG_VERSION")));
        match &self.authorization {
            Some(bearer) => request.header(AUTHORIZATION, bearer),
            None => request,
        }
    }
}

/// Sends a request and waits for the head of the response.
pub async fn send_request(
    connection: ClientConnection,
    request: Request<impl Into<Bytes>>,
) -> Result<HttpResponse, ClientError> {
    let PersistentConnection { mut sender, task } = PersistentConnection::open(connection).await?;
    let response = sender.send_request(request.map(|body| Full::new(body.into()))).await;
    let (head, body) = response.map_err(from_hyper)?.into_parts();
    Ok(HttpResponse { status: head.status.as_u16(), headers: head.headers, body, _task: task })
}

/// A connection that serves several requests, one after the other.
#[derive(Debug)]
pub struct PersistentConnection {
    sender: http1::SendRequest<Full<Bytes>>,
    task: ConnectionTask,
}

/// A response with its complete body.
#[derive(Clone, Debug)]
pub struct CompleteResponse {
    /// The HTTP status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: String,
}

impl PersistentConnection {
    /// Prepares a new connection for requests.
    pub async fn open(connection: ClientConnection) -> Result<Self, ClientError> {
        let mut builder = http1::Builder::new();
        // Some producers compare header names case-sensitively, so names are sent in title case.
        builder.max_buf_size(MAX_HEAD_BYTES).title_case_headers(true);
        let (sender, connection) = builder.handshake(TokioIo::new(connection)).await.map_err(from_hyper)?;
        let task = ConnectionTask(tokio::spawn(async move { drop(connection.await) }));
        Ok(Self { sender, task })
    }

    /// Returns whether the connection can take another request.
    pub fn is_usable(&self) -> bool {
        self.sender.is_ready()
    }

    /// Sends a request and reads the complete response. Fails if the body is longer than `max_bytes`. After an error, the
    /// connection cannot be used again.
    pub async fn send(
        &mut self,
        request: Request<impl Into<Bytes>>,
        max_bytes: usize,
    ) -> Result<CompleteResponse, ClientError> {
        self.sender.ready().await.map_err(from_hyper)?;
        let response = self.sender.send_request(request.map(|body| Full::new(body.into()))).await;
        let (head, mut incoming) = response.map_err(from_hyper)?.into_parts();
        let mut body = Vec::new();
        while let Some(frame) = incoming.frame().await {
            if let Ok(data) = frame.map_err(from_hyper)?.into_data() {
                body.extend_from_slice(&data);
            }
            if body.len() > max_bytes {
                return Err(ClientError::TooLong);
            }
        }
        let body = String::from_utf8(body).map_err(|_| ClientError::NotUtf8)?;
        Ok(CompleteResponse { status: head.status.as_u16(), headers: head.headers, body })
    }
}

/// A response whose body has not been read yet.
#[derive(Debug)]
pub struct HttpResponse {
    /// The HTTP status code.
    pub status: u16,
    headers: HeaderMap,
    body: Incoming,
    _task: ConnectionTask,
}

/// The task that drives the connection. It is aborted when the response is dropped.
#[derive(Debug)]
struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl HttpResponse {
    /// Returns the media type with its parameters, or an empty string if there is none.
    pub fn content_type(&self) -> &str {
        self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().trim()
    }

    /// Returns a header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns whether the body is a stream of server-sent events.
    pub fn is_event_stream(&self) -> bool {
        self.content_type().to_ascii_lowercase().starts_with("text/event-stream")
    }

    /// Returns the delay that the server asks for in `Retry-After`, if it is given in seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    /// Returns the next bytes of the body, or `None` at its end. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => {
                    return Err(match from_hyper(error) {
                        ClientError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                            ClientError::ClosedInResponse
                        }
                        ClientError::ClosedBeforeResponse => ClientError::ClosedInResponse,
                        other => other,
                    });
                }
                // Trailers are ignored.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Reads the complete body. Fails if it is longer than `max_bytes` or if no data arrives for `idle_timeout`.
    pub async fn text(mut self, max_bytes: usize, idle_timeout: Duration) -> Result<String, ClientError> {
        let mut body = Vec::new();
        loop {
            let chunk = timeout(idle_timeout, self.chunk()).await.map_err(io::Error::from)??;
            let Some(chunk) = chunk else { break };
            body.extend_from_slice(&chunk);
            if body.len() > max_bytes {
                return Err(ClientError::TooLong);
            }
        }
        String::from_utf8(body).map_err(|_| ClientError::NotUtf8)
    }
}

/// Converts a hyper error to a client error.
fn from_hyper(error: hyper::Error) -> ClientError {
    let io = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
    match io {
        Some(io)
            if io
                .get_ref()
                .is_some_and(|inner| matches!(inner.downcast_ref(), Some(ClientError::UnexpectedTls))) =>
        {
            ClientError::UnexpectedTls
        }
        Some(io) => ClientError::Io(io::Error::new(io.kind(), error)),
        None if error.is_parse_too_large() => ClientError::TooLong,
        None if error.is_parse() => ClientError::NotHttp,
        None if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
            ClientError::ClosedBeforeResponse
        }
        None => ClientError::Io(io::Error::other(error)),
    }
}
