//! The person's answer.

use std::fmt;

use super::receipt::receipt_getters;
use super::{Granted, SignedReceipt};

/// The person's answer to a question for consent.
///
/// ```
/// # testing::run_example!(hub, session, {
/// use sayso::{Action, Answer};
/// let action =
///     Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euros to Ben.").consequence("The money leaves your account at once.");
/// match session.ask(action).await? {
///     Answer::Granted(granted) => println!("{} may be called.", granted.tool()),
///     // Nobody is listening here. That counts as a no.
///     Answer::Refused(refusal) => assert_eq!(refusal.to_string(), "nobody could be asked"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # });
/// ```
#[derive(Debug)]
#[must_use = "a granted call has not been made yet"]
pub enum Answer {
    /// Yes, to this exact call.
    Granted(Granted),
    /// No, or no answer, which counts as no.
    Refused(ConsentRefusal),
}

impl Answer {
    /// Returns the receipt: the hub's record of this answer, as canonical JSON. Returns `None` if the hub sent none.
    pub fn receipt(&self) -> Option<&str> {
        match self {
            Self::Granted(granted) => granted.receipt(),
            Self::Refused(refusal) => refusal.receipt(),
        }
    }

    /// Returns the hub's signature over the text of [`receipt`](Self::receipt): a detached JWS with ES256. Returns `None` if
    /// the hub signs no receipts.
    pub fn receipt_signature(&self) -> Option<&str> {
        match self {
            Self::Granted(granted) => granted.receipt_signature(),
            Self::Refused(refusal) => refusal.receipt_signature(),
        }
    }
}

/// A refusal, with its reason.
///
/// ```
/// use sayso::{ConsentRefusal, ResolvedBy};
/// assert_eq!(ConsentRefusal::from(ResolvedBy::Reply).to_string(), "the person refused");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsentRefusal {
    /// How the question was resolved.
    pub by: ResolvedBy,
    pub(super) receipt: Option<Box<SignedReceipt>>,
}

impl ConsentRefusal {
    receipt_getters!();
}

impl From<ResolvedBy> for ConsentRefusal {
    /// Creates a refusal without a receipt.
    fn from(by: ResolvedBy) -> Self {
        Self { by, receipt: None }
    }
}

/// How a question was resolved.
///
/// ```
/// use sayso::ResolvedBy;
///
/// /// Whether it makes sense to ask again.
/// fn should_ask_again(by: ResolvedBy) -> bool {
///     matches!(by, ResolvedBy::Timeout | ResolvedBy::Closure | ResolvedBy::Unreachable)
/// }
/// assert!(!should_ask_again(ResolvedBy::Reply));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolvedBy {
    /// A person answered.
    Reply,
    /// Nobody answered in time.
    Timeout,
    /// All listeners that could have answered have disconnected.
    Closure,
    /// No connected listener can answer.
    Unreachable,
    /// The agent withdrew the question, its session ended, or the hub was restored from a backup.
    Cancelled,
    /// The question was resolved in a way that this version does not know.
    Other,
}

impl ResolvedBy {
    /// Parses the protocol's name.
    #[cfg(feature = "client")]
    pub(crate) fn parse(name: &str) -> Self {
        aaep::consent::ResolvedBy::parse(name).map_or(Self::Other, Self::from)
    }
}

impl From<aaep::consent::ResolvedBy> for ResolvedBy {
    fn from(by: aaep::consent::ResolvedBy) -> Self {
        use aaep::consent::ResolvedBy as ProtocolResolvedBy;
        match by {
            ProtocolResolvedBy::Reply => Self::Reply,
            ProtocolResolvedBy::Timeout => Self::Timeout,
            ProtocolResolvedBy::Closure => Self::Closure,
            ProtocolResolvedBy::Unreachable => Self::Unreachable,
            ProtocolResolvedBy::Cancelled => Self::Cancelled,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for ConsentRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            ResolvedBy::Reply => "the person refused",
            ResolvedBy::Timeout => "nobody answered in time",
            ResolvedBy::Closure => "everybody who could have answered has disconnected",
            ResolvedBy::Unreachable => "nobody could be asked",
            ResolvedBy::Cancelled => "the question was cancelled before it was answered",
            ResolvedBy::Other => "it was refused",
        })
    }
}

/// Formats a refusal for the model that requested the call.
#[cfg(any(feature = "openai", feature = "rig"))]
pub(crate) fn format_refusal_for_model(reason: &str) -> String {
    let mut reason = reason.to_owned();
    if let Some(first) = reason.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!(
        "{reason}. The tool was not run. Do not call it again for this request unless the person asks for it."
    )
}
