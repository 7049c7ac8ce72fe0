//! Requests to the hub's HTTP agent API.

use std::time::Duration;

use client::{ClientError, HttpClient, send_request};
use http::Method;
use seal::json::Tape;
use thiserror::Error;

/// How long the hub may take to answer, apart from the time that a request asks it to wait.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a response, in bytes. A receipt is the largest part.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Why a request to the hub failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum HubError {
    /// There is no answer, or it cannot be read.
    #[error("the hub cannot be reached: {0}")]
    Unreachable(String),
    /// The hub refused the request.
    #[error("the hub refused it: {title}")]
    Refused { status: u16, title: String },
    /// The hub's receipt key has changed, so its answers cannot be verified.
    #[error("its receipt key has changed; if that is expected, restart the node")]
    KeyChanged,
    /// The person stopped the session, so nothing more is announced or asked in it.
    #[error("the person stopped the session")]
    Stopped,
    /// The end of the session was announced.
    #[error("the session has ended")]
    Ended,
}

impl HubError {
    /// Returns whether the same request may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            Self::KeyChanged | Self::Stopped | Self::Ended => false,
        }
    }

    /// Returns whether the session, or the question, has ended or was never there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Returns whether the idempotency key was used for a request with another body.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }
}

impl From<ClientError> for HubError {
    fn from(error: ClientError) -> Self {
        Self::Unreachable(error.to_string())
    }
}

/// Sends requests to one hub.
#[derive(Clone, Debug)]
pub(super) struct HubClient {
    http: HttpClient,
}

impl HubClient {
    pub(super) fn new(http: HttpClient) -> Self {
        Self { http }
    }

    /// Sends a request that has an effect. With the same key and body, it has the effect once.
    pub(super) async fn post(&self, path: &str, body: &str, key: &str) -> Result<String, HubError> {
        self.send(Method::POST, path, body, Some(key), ANSWER_TIMEOUT).await
    }

    pub(super) async fn get(&self, path: &str, wait: Duration) -> Result<String, HubError> {
        self.send(Method::GET, path, "", None, ANSWER_TIMEOUT + wait).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<String, HubError> {
        self.send(Method::DELETE, path, "", None, ANSWER_TIMEOUT).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: &str,
        key: Option<&str>,
        timeout: Duration,
    ) -> Result<String, HubError> {
        let mut request = self.http.request(method, path);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let request =
            request.body(body.to_owned()).map_err(|error| HubError::Unreachable(error.to_string()))?;
        let exchange = async {
            let response = send_request(self.http.connect().await?, request).await?;
            let status = response.status;
            Ok::<_, ClientError>((status, response.text(MAX_RESPONSE_BYTES, timeout).await?))
        };
        let late = |_| HubError::Unreachable(format!("no answer within {} s", timeout.as_secs()));
        let (status, body) = tokio::time::timeout(timeout, exchange).await.map_err(late)??;
        if (200..300).contains(&status) {
            return Ok(body);
        }
        Err(HubError::Refused { status, title: problem_text(status, &body) })
    }
}

/// Returns the text of a problem document, with its first finding.
fn problem_text(status: u16, body: &str) -> String {
    let mut tape = Tape::default();
    let text = tape.read(body).ok().and_then(|doc| {
        let root = doc.root();
        let title = root.member("title")?.text()?.into_owned();
        let finding = root.member("findings").and_then(|list| list.items().next());
        let finding = finding.and_then(|finding| Some(finding.member("message")?.text()?.into_owned()));
        Some(match finding {
            Some(finding) => format!("{title} {finding}"),
            None => title,
        })
    });
    text.unwrap_or_else(|| format!("status {status}"))
}
