//! Requests out of a connection, one after the other, each within its limits.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::timeout;

use super::{BadHead, Chunks, Framing, Head, Response, Status};
use crate::server::written;

/// How much a request may have, and how long it and its response may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of a head.
    pub head_bytes: usize,
    /// Headers; never more than [`Head::MOST_HEADERS`].
    pub headers: usize,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// How long the first head may take.
    pub head_time: Duration,
    /// How long a body may take.
    pub body_time: Duration,
    /// How long the other side may take to take a response.
    pub answer_time: Duration,
    /// How long a connection may stay idle between requests.
    pub idle_time: Duration,
}

/// Why there is no request.
pub(crate) enum Unread {
    /// The connection has ended, or nothing came in time.
    Ended,
    /// It cannot be read; this is the response, and the connection ends with it.
    Refused(Response),
}

/// Reads the requests of one connection.
pub(crate) struct RequestReader {
    limits: RequestLimits,
    /// What was read and belongs to no request yet.
    pub(crate) rest: Vec<u8>,
    is_first: bool,
}

impl RequestReader {
    pub(crate) fn new(limits: RequestLimits) -> Self {
        Self { limits, rest: Vec::new(), is_first: true }
    }

    /// The next request: its head, and its whole body.
    pub(crate) async fn next(
        &mut self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> Result<(Head, Vec<u8>), Unread> {
        let is_first = std::mem::take(&mut self.is_first);
        let patience = if is_first { self.limits.head_time } else { self.limits.idle_time };
        let head = timeout(patience, self.head(stream)).await.unwrap_or(Err(Unread::Ended))?;
        if head.header("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue"))
            && !written(stream, b"HTTP/1.1 100 Continue\r\n\r\n", self.limits.body_time).await
        {
            return Err(Unread::Ended);
        }
        let body = timeout(self.limits.body_time, self.body(stream, &head)).await;
        let body =
            body.unwrap_or_else(|_| Err(refused(Status::RequestTimeout, "The body took too long.")))?;
        Ok((head, body))
    }

    async fn head(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<Head, Unread> {
        let too_long = || refused(Status::HeadTooLarge, "The request's head is too long.");
        loop {
            match Head::parse(&self.rest) {
                Ok(Some((_, used))) if used > self.limits.head_bytes => return Err(too_long()),
                Ok(Some((head, _))) if head.count() > self.limits.headers => {
                    return Err(refused(Status::BadRequest, &format!("{}.", BadHead::TooManyHeaders)));
                }
                Ok(Some((head, used))) => {
                    self.rest.drain(..used);
                    return Ok(head);
                }
                Ok(None) if self.rest.len() >= self.limits.head_bytes => return Err(too_long()),
                Ok(None) => {}
                Err(why) => return Err(refused(Status::BadRequest, &format!("{why}."))),
            }
            self.more(stream, 2048).await?;
        }
    }

    async fn body(&mut self, stream: &mut (impl AsyncRead + Unpin), head: &Head) -> Result<Vec<u8>, Unread> {
        let limit = self.limits.body_bytes;
        let too_large =
            || refused(Status::ContentTooLarge, &format!("The body is longer than {limit} bytes."));
        let (mut body, mut chunks) = (Vec::new(), Chunks::default());
        loop {
            match head.framing {
                Framing::None => return Ok(body),
                Framing::Length(length) => {
                    let length = usize::try_from(length).ok().filter(|length| *length <= limit);
                    let length = length.ok_or_else(too_large)?;
                    if self.rest.len() >= length {
                        return Ok(self.rest.drain(..length).collect());
                    }
                }
                Framing::Chunked => {
                    let wrong = |_| refused(Status::BadRequest, "The body is not chunked as it says.");
                    let took = chunks.take(&self.rest, &mut body).map_err(wrong)?;
                    self.rest.drain(..took);
                    if body.len() > limit {
                        return Err(too_large());
                    }
                    if chunks.is_done() {
                        return Ok(body);
                    }
                }
            }
            self.more(stream, 16 * 1024).await?;
        }
    }

    async fn more(&mut self, stream: &mut (impl AsyncRead + Unpin), room: usize) -> Result<(), Unread> {
        self.rest.reserve(room);
        match stream.read_buf(&mut self.rest).await {
            Ok(1..) => Ok(()),
            Ok(0) | Err(_) => Err(Unread::Ended),
        }
    }

    /// Ends when the other side is gone. What it says meanwhile is the beginning of its next request.
    pub(crate) async fn hung_up(&mut self, stream: &mut (impl AsyncRead + Unpin)) {
        while self.rest.len() < self.limits.head_bytes {
            if self.more(stream, 2048).await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

fn refused(status: Status, why: &str) -> Unread {
    Unread::Refused(Response::problem(status, why))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use tokio::io::AsyncWriteExt;

    use super::*;

    /// What comes of a request that is begun with these bytes and never ended. Time passes only while nothing happens.
    async fn slow(begun: &str) -> Result<(Head, Vec<u8>), Unread> {
        let (mut other, mut stream) = tokio::io::duplex(1024);
        other.write_all(begun.as_bytes()).await.unwrap();
        let mut reader = RequestReader::new(crate::Limits::default().requests());
        let read = reader.next(&mut stream).await;
        drop(other);
        read
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_end_is_not_waited_for() {
        for begun in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"] {
            assert!(matches!(slow(begun).await, Err(Unread::Ended)), "{begun:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_refused() {
        for framing in ["Content-Length: 5\r\n\r\nhell", "Transfer-Encoding: chunked\r\n\r\n5\r\nhell"] {
            let begun = format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}");
            let Err(Unread::Refused(response)) = slow(&begun).await else { panic!("{framing}") };
            assert_eq!(response.status, Status::RequestTimeout, "{framing}");
        }
    }
}
