//! Connection errors.

use std::{fmt, io};

use aaep::message::{ReasonCode, SubscriptionRejected};

use client::{CertificateErrorKind, ClientError};

use crate::{ManifestStatus, Phrases, sanitize};

/// Why there is no connection, or why a message did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The receiver of the events was dropped.
    ReceiverClosed,
    /// There is no open connection on which a message could be sent.
    NotConnected,
    /// Nothing is listening at the address.
    ConnectionRefused,
    /// The connection was reset.
    ConnectionReset,
    /// The hub did not respond in time.
    TimedOut,
    /// The connection was closed before a response.
    ClosedBeforeResponse,
    /// The connection was closed in the middle of a response.
    ClosedInResponse,
    /// The response is not HTTP.
    NotHttp,
    /// The hub uses TLS, but the address does not.
    SpeaksTls,
    /// The address uses TLS, but the hub does not.
    NoTls,
    /// The certificate is not signed by a trusted authority.
    CertificateUntrusted,
    /// The certificate is for another name.
    CertificateNameMismatch,
    /// The certificate has expired or is not valid yet.
    CertificateOutOfDate,
    /// The certificate belongs to a certificate authority, not to a host.
    CertificateIsAuthority,
    /// The response is not UTF-8 text.
    NotUtf8,
    /// The response is too long.
    ResponseTooLong,
    /// The hub responded with this status.
    UnexpectedStatus(u16),
    /// There is no hub at the address. If something else responded, this is its status.
    NotAHub(Option<u16>),
    /// The token is missing or unknown to the hub.
    TokenRequired,
    /// The hub no longer accepts the token.
    TokenRevoked,
    /// The token contains characters that cannot be sent.
    InvalidToken,
    /// The hub no longer knows the subscription.
    SubscriptionForgotten,
    /// The hub closed the connection.
    ClosedByHub,
    /// The hub sent neither a message nor a heartbeat in time.
    LivenessTimeout,
    /// Another connection replaced this one.
    Replaced,
    /// The address has an invalid host name.
    InvalidHost,
    /// This system has no Unix sockets.
    UnixUnsupported,
    /// The hub rejected the subscription: the reason, the hub's message, and the seconds after which to try again.
    Rejected(ReasonCode, String, Option<u64>),
    /// A verified manifest is required, and the hub's manifest has this status instead.
    ManifestNotVerified(Box<ManifestStatus>),
    /// Another error, with the operating system's message.
    Other(String),
}

impl ConnectionError {
    pub(super) fn from_rejection(rejected: &SubscriptionRejected, retry_after: Option<u64>) -> Self {
        let message = sanitize(&rejected.reason_message, true);
        Self::Rejected(rejected.reason_code.clone(), message, rejected.retry_after_seconds.or(retry_after))
    }

    /// Describes the error for a person.
    pub fn describe(&self, phrases: &Phrases) -> String {
        let text = match self {
            Self::ReceiverClosed => "",
            Self::NotConnected => phrases.why_not_connected,
            Self::ConnectionRefused => phrases.why_connection_refused,
            Self::ConnectionReset => phrases.why_connection_reset,
            Self::TimedOut => phrases.why_timeout,
            Self::ClosedBeforeResponse => phrases.why_closed_before_response,
            Self::ClosedInResponse => phrases.why_closed_mid_response,
            Self::NotHttp => phrases.why_not_http,
            Self::SpeaksTls => phrases.why_hub_uses_tls,
            Self::NoTls => phrases.why_hub_lacks_tls,
            Self::CertificateUntrusted => phrases.why_certificate_untrusted,
            Self::CertificateNameMismatch => phrases.why_certificate_wrong_name,
            Self::CertificateOutOfDate => phrases.why_certificate_not_valid_now,
            Self::CertificateIsAuthority => phrases.why_certificate_is_authority,
            Self::NotUtf8 => phrases.why_not_utf8,
            Self::ResponseTooLong => phrases.why_response_too_long,
            Self::UnexpectedStatus(status) => return phrases.why_http_status(*status),
            Self::NotAHub(None) => phrases.why_no_hub,
            Self::NotAHub(Some(status)) => return phrases.why_no_hub_status(*status),
            Self::TokenRequired => phrases.why_token_required,
            Self::TokenRevoked => phrases.why_token_revoked,
            Self::InvalidToken => phrases.why_token_not_sendable,
            Self::SubscriptionForgotten => phrases.why_subscription_unknown,
            Self::ClosedByHub => phrases.why_hub_closed,
            Self::LivenessTimeout => phrases.why_hub_unresponsive,
            Self::Replaced => phrases.why_replaced,
            Self::InvalidHost => phrases.why_invalid_host,
            Self::UnixUnsupported => phrases.why_unix_unsupported,
            Self::Rejected(code, message, retry_after) => {
                let reason = match code {
                    ReasonCode::AuthenticationRequired => phrases.why_token_required,
                    ReasonCode::AuthorizationDenied => phrases.refused_token,
                    ReasonCode::VersionUnsupported => phrases.refused_version,
                    ReasonCode::RateLimit => phrases.refused_too_many_listeners,
                    ReasonCode::CapabilitiesIncompatible => phrases.refused_capabilities,
                    ReasonCode::ManifestSignatureRequired => phrases.refused_manifest,
                    ReasonCode::TransportUnavailable => phrases.refused_temporarily,
                    _ => phrases.refused,
                };
                let retry = retry_after.map(|seconds| format!(" {}", phrases.try_again_in(seconds)));
                return format!("{reason} {}{}", phrases.hub_says(message), retry.unwrap_or_default());
            }
            Self::ManifestNotVerified(status) => return status.describe_refusal(phrases),
            Self::Other(text) => text,
        };
        text.to_owned()
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(Phrases::for_languages(&[])))
    }
}

impl std::error::Error for ConnectionError {}

impl From<ClientError> for ConnectionError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Io(error) => error.into(),
            ClientError::InvalidToken => Self::InvalidToken,
            ClientError::InvalidHost => Self::InvalidHost,
            ClientError::UnexpectedTls => Self::SpeaksTls,
            ClientError::TlsNotSupported => Self::NoTls,
            ClientError::Certificate(CertificateErrorKind::OutsideValidity, _) => Self::CertificateOutOfDate,
            ClientError::Certificate(CertificateErrorKind::WrongName, _) => Self::CertificateNameMismatch,
            ClientError::Certificate(CertificateErrorKind::IsAuthority, _) => Self::CertificateIsAuthority,
            ClientError::Certificate(_, _) => Self::CertificateUntrusted,
            ClientError::NotHttp => Self::NotHttp,
            ClientError::TooLong => Self::ResponseTooLong,
            ClientError::NotUtf8 => Self::NotUtf8,
            ClientError::ClosedBeforeResponse => Self::ClosedBeforeResponse,
            ClientError::ClosedInResponse => Self::ClosedInResponse,
            ClientError::WebSocketRejected(401 | 403) => Self::TokenRequired,
            ClientError::WebSocketRejected(status) => Self::NotAHub(Some(status)),
            other => Self::Other(sanitize(&other.to_string(), true)),
        }
    }
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
                Self::ConnectionReset
            }
            io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Other(sanitize(&seal::describe_io_error(&error), true)),
        }
    }
}
