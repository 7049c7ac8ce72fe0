//! One question to an endpoint, and its answer as a stream of bytes.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use seal::json::{Kind, Tape};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::error::Error;
use super::limits::Limits;
use crate::dial::Target;
use crate::redact::{Redact, Secrets};

/// Where questions go, and with which key.
pub(super) struct Endpoint<'a> {
    pub(super) target: &'a Target,
    pub(super) key: Option<&'a str>,
    pub(super) limits: &'a Limits,
}

/// The endpoint may do better later.
pub(super) struct Again {
    pub(super) error: Error,
    /// The endpoint says when.
    pub(super) after: Option<Duration>,
}

/// An answer that has begun.
pub(super) struct Stream {
    body: Incoming,
    _connection: Connection,
    limits: Limits,
    taken: usize,
}

/// The task that moves the bytes; it ends with the answer.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// No more of an answer that is a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;

impl Endpoint<'_> {
    /// Asks once.
    pub(super) async fn ask(&self, body: String) -> Result<Result<Stream, Again>, Error> {
        let request = self.request(body)?;
        let unreachable = |why: String| Ok(Err(Again { error: Error::Unreachable(why), after: None }));
        let stream = match timeout(self.limits.connect, self.target.dial()).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return unreachable(error.to_string()),
            Err(_) => return unreachable("no connection in time".to_owned()),
        };
        let (mut sender, connection) = match http1::handshake(TokioIo::new(stream)).await {
            Ok(both) => both,
            Err(error) => return unreachable(error.to_string()),
        };
        let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
        let answer = match timeout(self.limits.first_byte, sender.send_request(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) if error.is_parse() => {
                return Err(Error::Malformed("its answer is not HTTP".to_owned()));
            }
            Ok(Err(_)) => return unreachable("the connection ended before an answer".to_owned()),
            Err(_) => return Err(Error::Silent),
        };
        if !answer.status().is_success() {
            return self.refused(answer).await;
        }
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            let kind: String = kind.chars().take(80).collect();
            return Err(Error::Malformed(format!("its answer is {kind:?} and not a stream of events")));
        }
        let (body, limits) = (answer.into_body(), self.limits.clone());
        Ok(Ok(Stream { body, _connection: connection, limits, taken: 0 }))
    }

    fn request(&self, body: String) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::post(format!("{}/chat/completions", self.target.path))
            .header(HOST, &self.target.authority)
            .header(USER_AGENT, concat!("sayso/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "text/event-stream")
            .header(CONTENT_TYPE, "application/json");
        if let Some(key) = self.key {
            let mut bearer = HeaderValue::try_from(format!("Bearer {key}"))
                .map_err(|_| Error::Setup("the key is not plain text".to_owned()))?;
            bearer.set_sensitive(true);
            request = request.header(AUTHORIZATION, bearer);
        }
        let request = request.body(Full::new(Bytes::from(body)));
        request.map_err(|error| Error::Setup(error.to_string()))
    }

    async fn refused(&self, answer: Response<Incoming>) -> Result<Result<Stream, Again>, Error> {
        let status = answer.status().as_u16();
        let after = answer.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let after = after.and_then(|after| after.trim().parse().ok()).map(Duration::from_secs);
        let mut text = Vec::new();
        let mut body = answer.into_body();
        // What it says helps; that it says no is known already.
        while let Ok(Some(Ok(frame))) = timeout(self.limits.stall, body.frame()).await {
            text.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
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
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let begun = self.taken > 0;
            let patience = if begun { self.limits.stall } else { self.limits.first_byte };
            let frame = match timeout(patience, self.body.frame()).await {
                Err(_) => return Err(if begun { Error::Stalled } else { Error::Silent }),
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(Error::CutOff),
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            self.taken = self.taken.saturating_add(data.len());
            if self.taken > self.limits.answer_bytes {
                return Err(Error::TooMuch("bytes of an answer"));
            }
            return Ok(Some(data));
        }
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
    let words: Vec<&str> =
        found.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
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
