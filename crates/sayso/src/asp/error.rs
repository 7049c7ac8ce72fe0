//! Errors of requests to a node.

use std::time::Duration;

use client::ClientError;
use seal::json::Tape;

use crate::error::SharedError;

/// Why a request to a node failed. A request that the node answered with an error has no effect.
///
/// ```
/// use sayso::asp::{Node, NodeError};
/// let opened = Node::connect("ftp://example").open();
/// assert!(matches!(opened, Err(NodeError::InvalidSetup(_))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The address, the token or the certificate file cannot be used.
    #[error("{0}")]
    InvalidSetup(String),
    /// The node cannot be reached. It is not known whether it received the request.
    #[error("the node cannot be reached: {0}")]
    Unreachable(#[source] SharedError),
    /// The server cannot prove that it is the node. Nothing was sent to it.
    #[error("the node is not trusted: {0}")]
    UntrustedServer(#[source] SharedError),
    /// The token is missing or does not allow the request.
    #[error("the token is missing or does not allow this")]
    AccessDenied,
    /// The node has no such session.
    #[error("the node has no such session")]
    UnknownSession,
    /// The request is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The message or the invitation is not allowed now, or the peer is not known.
    #[error("{code}: {reason}")]
    Refused {
        /// The ASP code, such as `invalid_state_transition`.
        code: String,
        /// The reason, in one sentence.
        reason: String,
    },
    /// Another message of this session waits for a person's answer.
    #[error("another message of this session waits for a person's answer")]
    AwaitingConsent,
    /// A limit of the node is reached.
    #[error("{reason}")]
    LimitReached {
        /// The limit.
        reason: String,
        /// When to try again.
        retry_after: Option<Duration>,
    },
    /// The node cannot store anything now, or is stopping. Try again later.
    #[error("the node is not available: {0}")]
    Unavailable(String),
    /// The response is not one that a node gives.
    #[error("the response does not come from an ASP node: {0}")]
    UnexpectedResponse(String),
}

impl NodeError {
    /// Converts an error of the connection.
    pub(super) fn from_client(error: ClientError) -> Self {
        match error {
            ClientError::Certificate(..) | ClientError::Tls(_) => {
                Self::UntrustedServer(SharedError::new(error))
            }
            ClientError::InvalidRequest(_) | ClientError::InvalidToken => {
                Self::InvalidSetup(error.to_string())
            }
            ClientError::NotHttp | ClientError::NotUtf8 | ClientError::TooLong => {
                Self::UnexpectedResponse(error.to_string())
            }
            ClientError::Io(error) => Self::Unreachable(SharedError::new(seal::describe_io_error(&error))),
            error => Self::Unreachable(SharedError::new(error)),
        }
    }

    /// Converts a response that reports an error.
    pub(super) fn from_response(status: u16, retry_after: Option<Duration>, body: &str) -> Self {
        let problem = Problem::parse(body);
        match (status, problem.code) {
            (401 | 403, _) => Self::AccessDenied,
            (404, _) => Self::UnknownSession,
            (409, Some(code)) if code == "escalation_required" => Self::AwaitingConsent,
            (409 | 422, Some(code)) => Self::Refused { code, reason: problem.reason },
            (413 | 429, _) => Self::LimitReached { reason: problem.reason, retry_after },
            (400, _) => Self::Malformed(problem.reason),
            (500..=599, _) => Self::Unavailable(problem.reason),
            _ => Self::UnexpectedResponse(format!("status {status}")),
        }
    }
}

/// The parts of a problem document (RFC 9457) that matter here.
struct Problem {
    code: Option<String>,
    reason: String,
}

impl Problem {
    fn parse(body: &str) -> Self {
        let mut tape = Tape::default();
        let doc = tape.read(body).ok();
        let text = |name: &str| {
            let value = doc.as_ref()?.root().member(name)?;
            value.text().map(std::borrow::Cow::into_owned)
        };
        let reason = text("reason").or_else(|| text("title"));
        let reason = reason.unwrap_or_else(|| "no reason was given".to_owned());
        Self { code: text("code"), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_become_typed_errors() {
        let refused = r#"{"title":"t","status":422,"code":"timeout","reason":"too late"}"#;
        let expected = NodeError::Refused { code: "timeout".to_owned(), reason: "too late".to_owned() };
        assert_eq!(NodeError::from_response(422, None, refused), expected);
        let waiting = r#"{"code":"escalation_required","reason":"r"}"#;
        assert_eq!(NodeError::from_response(409, None, waiting), NodeError::AwaitingConsent);
        assert_eq!(NodeError::from_response(401, None, ""), NodeError::AccessDenied);
        assert_eq!(NodeError::from_response(404, None, "{}"), NodeError::UnknownSession);
        let malformed = NodeError::Malformed("terms must be an object.".to_owned());
        assert_eq!(NodeError::from_response(400, None, r#"{"title":"terms must be an object."}"#), malformed);
        let busy = NodeError::from_response(429, Some(Duration::from_secs(10)), "x");
        assert!(matches!(busy, NodeError::LimitReached { retry_after: Some(_), .. }), "{busy:?}");
        assert!(matches!(NodeError::from_response(503, None, ""), NodeError::Unavailable(_)));
        assert!(matches!(NodeError::from_response(302, None, ""), NodeError::UnexpectedResponse(_)));
    }
}
