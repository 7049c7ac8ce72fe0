//! Why a request, a response or a WebSocket failed.

use std::io;

use tokio_rustls::rustls::{self, CertificateError, InvalidMessage};

/// Why a request, a response or a WebSocket failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The token cannot be sent in a header.
    #[error("a token is plain ASCII text without spaces")]
    InvalidToken,
    /// The host of the address is no name that a certificate could have.
    #[error("the host of the address is not a valid name")]
    InvalidHost,
    /// The request could not be written.
    #[error("the request is not valid")]
    InvalidRequest(#[from] http::Error),
    /// The network failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server speaks TLS on a connection that is not secured.
    #[error("it speaks TLS; write https:// in place of http://")]
    SpeaksTls,
    /// The server does not speak TLS.
    #[error("it does not speak TLS; write http:// in place of https://")]
    NoTls,
    /// The server's certificate is not accepted.
    #[error("{1}")]
    Certificate(CertificateFault, #[source] rustls::Error),
    /// TLS failed in another way.
    #[error("{0}")]
    Tls(#[source] rustls::Error),
    /// The response is not HTTP.
    #[error("its answer is not HTTP")]
    NotHttp,
    /// The head or the body of the response exceeds its limit.
    #[error("its answer is longer than the limit")]
    TooLong,
    /// The body of the response is not UTF-8.
    #[error("its answer is not text")]
    NotUtf8,
    /// The connection ended before the response.
    #[error("the connection ended before an answer")]
    ClosedBeforeResponse,
    /// The connection ended within the body of the response.
    #[error("the connection ended in the middle of an answer")]
    ClosedInResponse,
    /// The server answered a WebSocket handshake with this status.
    #[error("it answered with {0} instead of opening a WebSocket")]
    NoWebSocket(u16),
    /// The server broke the WebSocket protocol.
    #[cfg(feature = "websocket")]
    #[error("{0}")]
    WebSocket(#[source] Box<tokio_tungstenite::tungstenite::Error>),
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateFault {
    /// No authority that is trusted has signed it.
    Untrusted,
    /// It is for another name.
    Name,
    /// It is not valid any more, or not yet.
    Time,
    /// It is the certificate of an authority, and not of a server.
    Authority,
}

impl Error {
    /// What a failed TLS handshake means.
    pub(crate) fn from_handshake(error: io::Error) -> Self {
        use CertificateError as Fault;
        let error = match error.downcast::<rustls::Error>() {
            Ok(error) => error,
            Err(error) => return Self::Io(error),
        };
        let fault = match &error {
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => return Self::NoTls,
            rustls::Error::InvalidCertificate(fault) => fault,
            _ => return Self::Tls(error),
        };
        let fault = match fault {
            Fault::Expired
            | Fault::ExpiredContext { .. }
            | Fault::NotValidYet
            | Fault::NotValidYetContext { .. } => CertificateFault::Time,
            Fault::NotValidForName | Fault::NotValidForNameContext { .. } => CertificateFault::Name,
            Fault::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                CertificateFault::Authority
            }
            _ => CertificateFault::Untrusted,
        };
        Self::Certificate(fault, error)
    }
}
