//! Why there is no connection, or why something did not arrive.

use std::{fmt, io};

use aaep::message::{ReasonCode, SubscriptionRejected};

use client::{CertificateFault, Error};

use crate::{Phrases, Standing, plain};

/// Why there is no connection, or why something did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Nobody wants to hear any more.
    Nobody,
    /// Nothing listens at the address.
    NothingListens,
    /// The connection was cut.
    Cut,
    /// It does not answer.
    Silent,
    /// It hung up without an answer.
    HungUp,
    /// It hung up in the middle of an answer.
    HungUpWithin,
    /// It answered, but not with HTTP.
    NotHttp,
    /// It speaks TLS, and was not spoken to so.
    SpeaksTls,
    /// It does not speak TLS, and was spoken to so.
    NoTls,
    /// Nobody who is trusted has signed its certificate.
    CertificateUntrusted,
    /// Its certificate is for another name.
    CertificateName,
    /// Its certificate does not hold any more, or not yet.
    CertificateTime,
    /// Its certificate is one by which others are signed.
    CertificateOfSigner,
    /// It answered, but not with text.
    NotText,
    /// It said more than can be taken.
    TooLong,
    /// The hub answered with this status.
    Answered(u16),
    /// There is no hub, but something that may have answered with this status.
    NoHub(Option<u16>),
    /// The hub wants a token that it knows.
    TokenWanted,
    /// The hub does not let the token in any more.
    TokenEnded,
    /// A token is no plain text.
    TokenForm,
    /// The hub has forgotten the subscription.
    Forgotten,
    /// The hub has ended the connection.
    Ended,
    /// The hub gives no sign of life.
    Lifeless,
    /// Another connection listens in place of this one.
    Replaced,
    /// The address has no name of a host.
    NoHost,
    /// There are no Unix sockets here.
    NoUnix,
    /// The hub has refused the subscription: why, its own words, and the seconds after which it may be asked again.
    Rejected(ReasonCode, String, Option<u64>),
    /// Only who proves who it is should be listened to, and this is what the hub shows instead.
    NotProven(Box<Standing>),
    /// The system's own words.
    System(String),
}

impl Why {
    pub(super) fn refusal(rejected: &SubscriptionRejected, wait: Option<u64>) -> Self {
        let said = plain(&rejected.reason_message, true);
        Self::Rejected(rejected.reason_code.clone(), said, rejected.retry_after_seconds.or(wait))
    }

    /// For a person.
    pub fn in_words(&self, phrases: &Phrases) -> String {
        let text = match self {
            Self::Nobody => "",
            Self::NothingListens => phrases.why_nothing_listens,
            Self::Cut => phrases.why_cut,
            Self::Silent => phrases.why_silent,
            Self::HungUp => phrases.why_hung_up,
            Self::HungUpWithin => phrases.why_hung_up_within,
            Self::NotHttp => phrases.why_not_http,
            Self::SpeaksTls => phrases.why_speaks_tls,
            Self::NoTls => phrases.why_no_tls,
            Self::CertificateUntrusted => phrases.why_untrusted,
            Self::CertificateName => phrases.why_other_name,
            Self::CertificateTime => phrases.why_out_of_date,
            Self::CertificateOfSigner => phrases.why_of_signer,
            Self::NotText => phrases.why_not_text,
            Self::TooLong => phrases.why_too_long,
            Self::Answered(status) => return phrases.why_answered(*status),
            Self::NoHub(None) => phrases.why_no_hub,
            Self::NoHub(Some(status)) => return phrases.why_no_hub_answered(*status),
            Self::TokenWanted => phrases.why_token_wanted,
            Self::TokenEnded => phrases.why_token_ended,
            Self::TokenForm => phrases.why_token_form,
            Self::Forgotten => phrases.why_forgotten,
            Self::Ended => phrases.why_ended,
            Self::Lifeless => phrases.why_lifeless,
            Self::Replaced => phrases.why_replaced,
            Self::NoHost => phrases.why_no_host,
            Self::NoUnix => phrases.why_no_unix,
            Self::Rejected(code, said, wait) => {
                let why = match code {
                    ReasonCode::AuthenticationRequired => phrases.why_token_wanted,
                    ReasonCode::AuthorizationDenied => phrases.refused_token,
                    ReasonCode::VersionUnsupported => phrases.refused_version,
                    ReasonCode::RateLimit => phrases.refused_no_room,
                    ReasonCode::CapabilitiesIncompatible => phrases.refused_wish,
                    ReasonCode::ManifestSignatureRequired => phrases.refused_manifest,
                    ReasonCode::TransportUnavailable => phrases.refused_now,
                    _ => phrases.refused,
                };
                let again = wait.map(|seconds| format!(" {}", phrases.try_again_in(seconds)));
                return format!("{why} {} {said}{}", phrases.it_says, again.unwrap_or_default());
            }
            Self::NotProven(standing) => return standing.refusal(phrases),
            Self::System(words) => words,
        };
        text.to_owned()
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(Phrases::of(&[])))
    }
}

impl std::error::Error for Why {}

impl From<Error> for Why {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error.into(),
            Error::InvalidToken => Self::TokenForm,
            Error::InvalidHost => Self::NoHost,
            Error::SpeaksTls => Self::SpeaksTls,
            Error::NoTls => Self::NoTls,
            Error::Certificate(CertificateFault::Time, _) => Self::CertificateTime,
            Error::Certificate(CertificateFault::Name, _) => Self::CertificateName,
            Error::Certificate(CertificateFault::Authority, _) => Self::CertificateOfSigner,
            Error::Certificate(_, _) => Self::CertificateUntrusted,
            Error::NotHttp => Self::NotHttp,
            Error::TooLong => Self::TooLong,
            Error::NotUtf8 => Self::NotText,
            Error::ClosedBeforeResponse => Self::HungUp,
            Error::ClosedInResponse => Self::HungUpWithin,
            Error::NoWebSocket(401 | 403) => Self::TokenWanted,
            Error::NoWebSocket(status) => Self::NoHub(Some(status)),
            other => Self::System(plain(&other.to_string(), true)),
        }
    }
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::NothingListens,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
                Self::Cut
            }
            io::ErrorKind::TimedOut => Self::Silent,
            _ => Self::System(plain(&seal::in_words(&error), true)),
        }
    }
}
