//! Errors of requests, responses and WebSockets.

use std::io;

use tokio_rustls::rustls::{self, CertificateError, InvalidMessage};

/// Why a request, a response or a WebSocket failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The token cannot be sent in a header.
    #[error("a token must be printable ASCII without spaces")]
    InvalidToken,
    /// The host of the address cannot be checked against a certificate.
    #[error("the host in the address is not a valid DNS name or IP address")]
    InvalidHost,
    /// The request is invalid.
    #[error("the request is not valid")]
    InvalidRequest(#[from] http::Error),
    /// The network failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The Unix socket belongs to another user.
    #[error("the socket belongs to another user")]
    ForeignSocket,
    /// The server requires TLS, but the address has no TLS scheme.
    #[error("the server requires TLS; use https:// instead of http://")]
    UnexpectedTls,
    /// The server does not support TLS.
    #[error("the server does not support TLS; use http:// instead of https://")]
    TlsNotSupported,
    /// The server's certificate is not accepted.
    #[error("{1}")]
    Certificate(CertificateErrorKind, #[source] rustls::Error),
    /// TLS failed in another way.
    #[error("{0}")]
    Tls(#[source] rustls::Error),
    /// The response is not HTTP.
    #[error("the server's response is not HTTP")]
    NotHttp,
    /// The head or the body of the response exceeds its limit.
    #[error("the server's response exceeds the size limit")]
    TooLong,
    /// The body of the response is not UTF-8.
    #[error("the server's response is not UTF-8 text")]
    NotUtf8,
    /// The connection was closed before the response.
    #[error("the connection was closed before a response arrived")]
    ClosedBeforeResponse,
    /// The connection was closed in the middle of the response's body.
    #[error("the connection was closed in the middle of a response")]
    ClosedInResponse,
    /// The server answered a WebSocket handshake with this status.
    #[error("the server answered with status {0} instead of opening a WebSocket")]
    WebSocketRejected(u16),
    /// The WebSocket failed in another way, for example because the server violated the protocol.
    #[cfg(feature = "websocket")]
    #[error("{0}")]
    WebSocket(#[source] Box<tokio_tungstenite::tungstenite::Error>),
}

/// Why a certificate is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateErrorKind {
    /// The certificate is not signed by a trusted authority, or is not accepted for a reason that is not listed here.
    Untrusted,
    /// The certificate is for another host name.
    WrongName,
    /// The certificate has expired or is not valid yet.
    OutsideValidity,
    /// The certificate belongs to an authority, not to a server.
    IsAuthority,
}

impl ClientError {
    /// Converts the error of a failed TLS handshake.
    pub(crate) fn from_handshake(error: io::Error) -> Self {
        use CertificateError as Reason;
        let error = match error.downcast::<rustls::Error>() {
            Ok(error) => error,
            Err(error) => return Self::Io(error),
        };
        let reason = match &error {
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                return Self::TlsNotSupported;
            }
            rustls::Error::InvalidCertificate(reason) => reason,
            _ => return Self::Tls(error),
        };
        let kind = match reason {
            Reason::Expired
            | Reason::ExpiredContext { .. }
            | Reason::NotValidYet
            | Reason::NotValidYetContext { .. } => CertificateErrorKind::OutsideValidity,
            Reason::NotValidForName | Reason::NotValidForNameContext { .. } => {
                CertificateErrorKind::WrongName
            }
            Reason::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                CertificateErrorKind::IsAuthority
            }
            _ => CertificateErrorKind::Untrusted,
        };
        Self::Certificate(kind, error)
    }
}
