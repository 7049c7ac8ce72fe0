//! Reads requests from a connection one after the other, within limits.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::timeout;

use super::{BodyFraming, ChunkedDecoder, HeadError, HttpResponse, RequestHead, StatusCode};
use crate::http_server::write_with_timeout;

/// Size limits and time limits of a request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Maximum size of a head, in bytes.
    pub head_bytes: usize,
    /// Maximum number of headers; at most [`RequestHead::MAX_HEADERS`].
    pub headers: usize,
    /// Maximum size of a body, in bytes.
    pub body_bytes: usize,
    /// How long reading the first head may take.
    pub head_timeout: Duration,
    /// How long reading a body may take.
    pub body_timeout: Duration,
    /// How long writing a response may take.
    pub response_timeout: Duration,
    /// How long a connection may stay idle between requests, including the time to read the next head.
    pub idle_timeout: Duration,
}

/// Why no request could be read.
pub(crate) enum ReadError {
    /// The connection ended, or no complete head arrived in time.
    Closed,
    /// The request is invalid. The connection is closed after this response.
    Rejected(HttpResponse),
}

/// Reads the requests of one connection.
pub(crate) struct RequestReader {
    limits: RequestLimits,
    /// Bytes that were read, but are not yet part of a parsed request.
    pub(crate) buffer: Vec<u8>,
    is_first: bool,
}

impl RequestReader {
    pub(crate) fn new(limits: RequestLimits) -> Self {
        Self { limits, buffer: Vec::new(), is_first: true }
    }

    /// Reads the next request: its head and its complete body.
    pub(crate) async fn next(
        &mut self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> Result<(RequestHead, Vec<u8>), ReadError> {
        let head = self.next_head(stream).await?;
        let body = self.next_body(stream, &head, self.limits.body_bytes).await?;
        Ok((head, body))
    }

    /// Reads the head of the next request. The caller must read its body before the next head, or close the connection.
    pub(crate) async fn next_head(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<RequestHead, ReadError> {
        let is_first = std::mem::take(&mut self.is_first);
        let time_limit = if is_first { self.limits.head_timeout } else { self.limits.idle_timeout };
        timeout(time_limit, self.read_head(stream)).await.unwrap_or(Err(ReadError::Closed))
    }

    /// Reads the body of the request with this head, up to `max_bytes`.
    pub(crate) async fn next_body(
        &mut self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        head: &RequestHead,
        max_bytes: usize,
    ) -> Result<Vec<u8>, ReadError> {
        if head.header("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue"))
            && !write_with_timeout(stream, b"HTTP/1.1 100 Continue\r\n\r\n", self.limits.body_timeout).await
        {
            return Err(ReadError::Closed);
        }
        let body = timeout(self.limits.body_timeout, self.read_body(stream, head, max_bytes)).await;
        body.unwrap_or_else(|_| Err(rejected(StatusCode::RequestTimeout, "The body took too long.")))
    }

    async fn read_head(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<RequestHead, ReadError> {
        let too_long = || rejected(StatusCode::HeadTooLarge, "The request head is too long.");
        loop {
            match RequestHead::parse(&self.buffer) {
                Ok(Some((_, head_bytes))) if head_bytes > self.limits.head_bytes => {
                    return Err(too_long());
                }
                Ok(Some((head, _))) if head.header_count() > self.limits.headers => {
                    return Err(rejected(StatusCode::BadRequest, &format!("{}.", HeadError::TooManyHeaders)));
                }
                Ok(Some((head, head_bytes))) => {
                    self.buffer.drain(..head_bytes);
                    return Ok(head);
                }
                Ok(None) if self.buffer.len() >= self.limits.head_bytes => return Err(too_long()),
                Ok(None) => {}
                Err(error) => return Err(rejected(StatusCode::BadRequest, &format!("{error}."))),
            }
            self.fill_buffer(stream, 2048).await?;
        }
    }

    async fn read_body(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        head: &RequestHead,
        max_bytes: usize,
    ) -> Result<Vec<u8>, ReadError> {
        let too_large =
            || rejected(StatusCode::ContentTooLarge, &format!("The body is longer than {max_bytes} bytes."));
        let (mut body, mut decoder) = (Vec::new(), ChunkedDecoder::default());
        loop {
            match head.framing {
                BodyFraming::None => return Ok(body),
                BodyFraming::Length(length) => {
                    let length = usize::try_from(length).ok().filter(|length| *length <= max_bytes);
                    let length = length.ok_or_else(too_large)?;
                    if self.buffer.len() >= length {
                        return Ok(self.buffer.drain(..length).collect());
                    }
                }
                BodyFraming::Chunked => {
                    let invalid =
                        |_| rejected(StatusCode::BadRequest, "The body is not a valid chunked body.");
                    let consumed = decoder.decode(&self.buffer, &mut body).map_err(invalid)?;
                    self.buffer.drain(..consumed);
                    if body.len() > max_bytes {
                        return Err(too_large());
                    }
                    if decoder.is_done() {
                        return Ok(body);
                    }
                }
            }
            self.fill_buffer(stream, 16 * 1024).await?;
        }
    }

    async fn fill_buffer(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        reserve_bytes: usize,
    ) -> Result<(), ReadError> {
        self.buffer.reserve(reserve_bytes);
        match stream.read_buf(&mut self.buffer).await {
            Ok(1..) => Ok(()),
            Ok(0) | Err(_) => Err(ReadError::Closed),
        }
    }

    /// Waits until the client disconnects. Bytes that arrive during the wait belong to the next request. Once they
    /// fill the buffer, a disconnect is no longer noticed.
    pub(crate) async fn wait_for_disconnect(&mut self, stream: &mut (impl AsyncRead + Unpin)) {
        while self.buffer.len() < self.limits.head_bytes {
            if self.fill_buffer(stream, 2048).await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

fn rejected(status: StatusCode, title: &str) -> ReadError {
    ReadError::Rejected(HttpResponse::problem(status, title))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Reads a request that starts with these bytes and never ends. The clock must be paused, so that the timeout expires
    /// at once.
    async fn read_unfinished(partial: &str) -> Result<(RequestHead, Vec<u8>), ReadError> {
        let (mut client, mut stream) = tokio::io::duplex(1024);
        client.write_all(partial.as_bytes()).await.unwrap();
        let mut reader = RequestReader::new(crate::ServerLimits::default().request_limits());
        let result = reader.next(&mut stream).await;
        drop(client);
        result
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_head_times_out() {
        for partial in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"] {
            assert!(matches!(read_unfinished(partial).await, Err(ReadError::Closed)), "{partial:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_body_times_out() {
        for framing in ["Content-Length: 5\r\n\r\nhell", "Transfer-Encoding: chunked\r\n\r\n5\r\nhell"] {
            let partial = format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}");
            let Err(ReadError::Rejected(response)) = read_unfinished(&partial).await else {
                panic!("{framing}")
            };
            assert_eq!(response.status, StatusCode::RequestTimeout, "{framing}");
        }
    }
}
