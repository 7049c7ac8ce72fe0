//! One question to an endpoint, and its answer as a stream of bytes.

use std::time::Duration;

use client::{HttpClient, Response, send};
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use seal::json::{Kind, Tape};
use tokio::time::timeout;

use super::error::{AnswerFault, Error, SetupFault};
use super::limits::Limits;
use crate::error::Source;
use crate::redact::{Redact, Secrets};

/// Where questions go, and with which key.
pub(super) struct Endpoint<'a> {
    pub(super) client: HttpClient,
    pub(super) key: Option<&'a str>,
    pub(super) limits: &'a Limits,
}

/// The endpoint may do better later.
pub(super) struct Again {
    pub(super) error: Error,
    /// The endpoint says when.
    pub(super) after: Option<Duration>,
}

pub(super) struct Stream {
    response: Response,
    limits: Limits,
    taken: usize,
}

/// No more of an answer that is a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;

impl Endpoint<'_> {
    pub(super) async fn ask(&self, body: String) -> Result<Result<Stream, Again>, Error> {
        let request = self
            .client
            .request(Method::POST, "/chat/completions")
            .header(ACCEPT, "text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| SetupFault::Request(Source::new(error)))?;
        let unreachable = |why| Ok(Err(Again { error: Error::Unreachable(why), after: None }));
        let connection = match timeout(self.limits.connect, self.client.connect()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return unreachable(Source::new(error)),
            Err(_) => return unreachable(Source::new("no connection in time")),
        };
        let response = match timeout(self.limits.first_byte, send(connection, request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error @ (client::Error::NotHttp | client::Error::TooLong))) => {
                return Err(AnswerFault::Http(Source::new(error)).into());
            }
            Ok(Err(error)) => return unreachable(Source::new(error)),
            Err(_) => return Err(Error::Silent),
        };
        if !(200..300).contains(&response.status) {
            return self.refused(response).await;
        }
        if !response.is_event_stream() {
            let kind: String = response.content_type().chars().take(80).collect();
            return Err(AnswerFault::NotEvents(kind).into());
        }
        Ok(Ok(Stream { response, limits: self.limits.clone(), taken: 0 }))
    }

    async fn refused(&self, mut response: Response) -> Result<Result<Stream, Again>, Error> {
        let (status, after) = (response.status, response.retry_after());
        let mut text = Vec::new();
        // What it says helps; that it says no is known already.
        while let Ok(Ok(Some(data))) = timeout(self.limits.stall, response.chunk()).await {
            text.extend_from_slice(&data);
            if text.len() > REFUSAL_BYTES {
                break;
            }
        }
        let says = sentence(&String::from_utf8_lossy(&text), self.key);
        let error = Error::Refused { status: Some(status), says };
        match status {
            408 | 425 | 429 | 500 | 502..=504 => Ok(Err(Again { error, after })),
            _ => Err(error),
        }
    }
}

impl Stream {
    /// The next bytes; `None` when nothing more comes.
    pub(super) async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        let begun = self.taken > 0;
        let patience = if begun { self.limits.stall } else { self.limits.first_byte };
        let data = match timeout(patience, self.response.chunk()).await {
            Err(_) => return Err(if begun { Error::Stalled } else { Error::Silent }),
            Ok(Err(_)) => return Err(Error::CutOff),
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(Some(data))) => data,
        };
        self.taken = self.taken.saturating_add(data.len());
        if self.taken > self.limits.answer_bytes {
            return Err(Error::TooMuch("bytes of an answer"));
        }
        Ok(Some(data))
    }
}

/// What an endpoint says when it refuses, for people: one sentence, without the key and without other secrets.
pub(super) fn sentence(says: &str, key: Option<&str>) -> String {
    const MOST: usize = 300;
    let found = message(says).unwrap_or_else(|| says.to_owned());
    let found = match key {
        Some(key) if !key.is_empty() => found.replace(key, "[key]"),
        _ => found,
    };
    let words = found.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let (line, _) = Secrets.redact(&line);
    let mut short: String = line.chars().take(MOST).collect();
    if short.is_empty() {
        short.push_str("it does not say why");
    }
    if line.chars().nth(MOST).is_some() {
        short.push('…');
    } else if !short.ends_with(['.', '!', '?']) {
        short.push('.');
    }
    short
}

/// The words inside of what endpoints send as errors: `{"error":{"message":…}}`, `{"message":…}`, `{"error":…}`.
fn message(says: &str) -> Option<String> {
    let mut tape = Tape::default();
    let doc = tape.read(says).ok()?;
    let mut value = doc.root();
    while value.kind() == Kind::Object {
        value = ["message", "error", "detail"].iter().find_map(|name| value.member(name))?;
    }
    value.text().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn a_refusal_is_one_sentence_without_the_key() {
        let says =
            r#"{"error":{"message":"Incorrect API key provided: sk-mine.\nSee\u0007 the\tdocs","type":"x"}}"#;
        assert_eq!(sentence(says, Some("sk-mine")), "Incorrect API key provided: [key]. See the docs.");
        assert_eq!(sentence("", None), "it does not say why.");
        assert_eq!(sentence(r#"{"error":"model not found"}"#, None), "model not found.");
        assert_eq!(sentence(&"a ".repeat(1000), None).chars().count(), 301);
        assert_eq!(
            sentence("The key sk-abcdefghij1234567890XYZ is wrong", None),
            "The key [redacted] is wrong."
        );
    }
}
