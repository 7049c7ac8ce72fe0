//! One request to an endpoint, and its response as a stream of bytes.

use std::time::Duration;

use client::{HttpClient, HttpResponse, send_request};
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use seal::json::{JsonKind, Tape};
use tokio::time::timeout;

use super::error::{ChatError, ResponseError, SetupError};
use super::limits::LoopLimits;
use crate::error::SharedError;
use crate::redact::{Redact, SecretRedactor};

/// The endpoint, with its key and limits.
pub(super) struct Endpoint<'a> {
    pub(super) client: HttpClient,
    pub(super) key: Option<&'a str>,
    pub(super) limits: &'a LoopLimits,
}

/// An error after which a retry may succeed.
pub(super) struct RetryableError {
    pub(super) error: ChatError,
    /// The delay that the endpoint asked for.
    pub(super) retry_after: Option<Duration>,
}

pub(super) struct ResponseStream {
    response: HttpResponse,
    limits: LoopLimits,
    received_bytes: usize,
}

/// Once more than this many bytes of an error response have been received, the rest is not read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

impl Endpoint<'_> {
    /// Sends a request. The inner error means that a retry may succeed.
    pub(super) async fn send(
        &self,
        body: String,
    ) -> Result<Result<ResponseStream, RetryableError>, ChatError> {
        let request = self
            .client
            .request(Method::POST, "/chat/completions")
            .header(ACCEPT, "text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| SetupError::Request(SharedError::new(error)))?;
        let unreachable =
            |error| Ok(Err(RetryableError { error: ChatError::Unreachable(error), retry_after: None }));
        let connection = match timeout(self.limits.connect_timeout, self.client.connect()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return unreachable(SharedError::new(error)),
            Err(_) => return unreachable(SharedError::new("the connection was not established in time")),
        };
        let response = match timeout(self.limits.first_byte_timeout, send_request(connection, request)).await
        {
            Ok(Ok(response)) => response,
            Ok(Err(error @ (client::ClientError::NotHttp | client::ClientError::TooLong))) => {
                return Err(ResponseError::Http(SharedError::new(error)).into());
            }
            Ok(Err(error)) => return unreachable(SharedError::new(error)),
            Err(_) => return Err(ChatError::ResponseTimeout),
        };
        if !(200..300).contains(&response.status) {
            return self.read_error_response(response).await;
        }
        if !response.is_event_stream() {
            let media_type: String = response.content_type().chars().take(80).collect();
            return Err(ResponseError::NotEventStream(media_type).into());
        }
        Ok(Ok(ResponseStream { response, limits: self.limits.clone(), received_bytes: 0 }))
    }

    async fn read_error_response(
        &self,
        mut response: HttpResponse,
    ) -> Result<Result<ResponseStream, RetryableError>, ChatError> {
        let (status, retry_after) = (response.status, response.retry_after());
        let mut text = Vec::new();
        // The body only adds details. The status already says that the request failed.
        while let Ok(Ok(Some(data))) = timeout(self.limits.stall_timeout, response.chunk()).await {
            text.extend_from_slice(&data);
            if text.len() > MAX_ERROR_BYTES {
                break;
            }
        }
        let message = summarize_error(&String::from_utf8_lossy(&text), self.key);
        let error = ChatError::EndpointError { status: Some(status), message };
        match status {
            408 | 425 | 429 | 500 | 502..=504 => Ok(Err(RetryableError { error, retry_after })),
            _ => Err(error),
        }
    }
}

impl ResponseStream {
    /// Returns the next bytes, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, ChatError> {
        let has_started = self.received_bytes > 0;
        let time_limit = if has_started { self.limits.stall_timeout } else { self.limits.first_byte_timeout };
        let data = match timeout(time_limit, self.response.chunk()).await {
            Err(_) => return Err(if has_started { ChatError::Stalled } else { ChatError::ResponseTimeout }),
            Ok(Err(_)) => return Err(ChatError::ConnectionLost),
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(data))) => data,
        };
        self.received_bytes = self.received_bytes.saturating_add(data.len());
        if self.received_bytes > self.limits.max_answer_bytes {
            return Err(ChatError::LimitReached("bytes in one answer"));
        }
        Ok(Some(data))
    }
}

/// Returns an endpoint's error message as one sentence, without the key or other secrets.
pub(super) fn summarize_error(message: &str, key: Option<&str>) -> String {
    const MAX_ERROR_CHARS: usize = 300;
    let text = extract_message(message).unwrap_or_else(|| message.to_owned());
    let text = match key {
        Some(key) if !key.is_empty() => text.replace(key, "[key]"),
        _ => text,
    };
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let (line, _) = SecretRedactor.redact(&line);
    let mut short: String = line.chars().take(MAX_ERROR_CHARS).collect();
    if short.is_empty() {
        short.push_str("no reason was given");
    }
    if line.chars().nth(MAX_ERROR_CHARS).is_some() {
        short.push('…');
    } else if !short.ends_with(['.', '!', '?']) {
        short.push('.');
    }
    short
}

/// Extracts the message from the error formats of endpoints: `{"error":{"message":…}}`, `{"message":…}`, `{"error":…}`.
fn extract_message(message: &str) -> Option<String> {
    let mut tape = Tape::default();
    let doc = tape.read(message).ok()?;
    let mut value = doc.root();
    while value.kind() == JsonKind::Object {
        value = ["message", "error", "detail"].iter().find_map(|name| value.member(name))?;
    }
    value.text().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::summarize_error;

    #[test]
    fn an_error_message_is_one_sentence_without_the_key() {
        let message =
            r#"{"error":{"message":"Incorrect API key provided: sk-mine.\nSee\u0007 the\tdocs","type":"x"}}"#;
        assert_eq!(
            summarize_error(message, Some("sk-mine")),
            "Incorrect API key provided: [key]. See the docs."
        );
        assert_eq!(summarize_error("", None), "no reason was given.");
        assert_eq!(summarize_error(r#"{"error":"model not found"}"#, None), "model not found.");
        assert_eq!(summarize_error(&"a ".repeat(1000), None).chars().count(), 301);
        assert_eq!(
            summarize_error("The key sk-abcdefghij1234567890XYZ is wrong", None),
            "The key [redacted] is wrong."
        );
    }
}
