//! How a session ends: done, failed or cancelled.

use seal::json::Scribe;

use aaep::event::CancelledBy;

use super::Session;
use crate::error::Error;
use crate::member;
use crate::redact::Cleaner;
use crate::words::Words;

/// The end of a session that did what was asked (§4.1.2).
///
/// ```
/// use sayso::Completion;
/// let done = Completion::new("The report is written.").result_uri("https://example.com/report.pdf");
/// # let _ = done;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct Completion {
    words: Words,
    output_summary: Option<Words>,
    result_uri: Option<String>,
}

impl Completion {
    /// What was done.
    pub fn new(words: impl Into<Words>) -> Self {
        Self { words: words.into(), output_summary: None, result_uri: None }
    }

    setters! {
        /// What came out, in short. Words in one language only are the same in all languages of the completion.
        output_summary(summary: impl Into<Words>) => output_summary = Some(summary.into());

        /// Where the whole result is.
        result_uri(uri: impl Into<String>) => result_uri = Some(uri.into());
    }

    pub(super) fn write(&self, out: &mut Scribe, cleaner: &Cleaner) {
        self.words.write(out, cleaner);
        self.words.write_beside_optional(out, cleaner, "output_summary", self.output_summary.as_ref());
        member::optional_text(out, "result_uri", self.result_uri.as_deref());
    }
}

/// What kind of failure it is (§4.1.3).
///
/// ```
/// # let _ =
/// sayso::Failure::new("Your card has expired.").cause(sayso::Cause::RequiresUser)
/// # ;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Trying again is likely to work.
    Transient,
    /// Trying again will not work.
    Permanent,
    /// The person has to do something first.
    RequiresUser,
    /// The agent cannot tell.
    Unknown,
}

/// Why a session failed, and what can be done (§4.1.3).
///
/// ```
/// use sayso::{Failure, Cause};
/// let failure = Failure::new("The bank does not answer.").cause(Cause::Transient).hint("Try again in a minute.");
/// # let _ = failure;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct Failure {
    words: Words,
    pub(crate) cause: Cause,
    code: Option<String>,
    help_uri: Option<String>,
    hint: Option<Words>,
    recoverable: Option<bool>,
}

impl Failure {
    /// What went wrong.
    pub fn new(words: impl Into<Words>) -> Self {
        Self {
            words: words.into(),
            cause: Cause::Unknown,
            code: None,
            help_uri: None,
            hint: None,
            recoverable: None,
        }
    }

    #[cfg(any(feature = "openai", feature = "rig"))]
    pub(crate) fn of(cause: Cause, code: &str, words: impl Into<Words>) -> Self {
        Self::new(words).code(code).cause(cause)
    }

    /// The failure of an agent that cannot say anything any more.
    #[cfg(any(feature = "openai", feature = "rig"))]
    pub(crate) fn of_agent(error: &Error) -> Self {
        Self::of(Cause::Unknown, "AGENT_FAILED", format!("The agent had to stop: {error}."))
    }

    setters! {
        /// What kind of failure it is.
        cause(cause: Cause) => cause = cause;

        /// A code of your own, like `BANK_SILENT`.
        code(code: impl Into<String>) => code = Some(code.into());

        /// Where help is.
        help_uri(uri: impl Into<String>) => help_uri = Some(uri.into());

        /// Whether trying again could work; what its cause says if not set.
        recoverable(recoverable: bool) => recoverable = Some(recoverable);

        /// What the person can do. Words in one language only are the same in all languages of the failure.
        hint(hint: impl Into<Words>) => hint = Some(hint.into());
    }

    pub(super) fn write(&self, out: &mut Scribe, cleaner: &Cleaner) {
        let category = match self.cause {
            Cause::Transient => "transient",
            Cause::Permanent => "permanent",
            Cause::RequiresUser => "requires_user",
            Cause::Unknown => "unknown",
        };
        member::text(out, "error_category", category);
        self.words.write(out, cleaner);
        member::optional_text(out, "error_code", self.code.as_deref());
        member::optional_text(out, "error_uri", self.help_uri.as_deref());
        self.words.write_beside_optional(out, cleaner, "remediation_hint", self.hint.as_ref());
        out.key("recoverable");
        let by_cause = matches!(self.cause, Cause::Transient | Cause::RequiresUser);
        out.boolean(self.recoverable.unwrap_or(by_cause));
    }
}

/// The end of a session that did not do what was asked (§4.1.4).
///
/// ```
/// use sayso::Cancellation;
/// let own = Cancellation::new("The shop is closed; nothing was bought.");
/// let asked = Cancellation::new("Nothing was bought, as you asked.").at_request();
/// # let _ = (own, asked);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct Cancellation {
    words: Words,
    by: CancelledBy,
    reason: Option<String>,
    partial_result: Option<Words>,
}

impl Cancellation {
    /// By the agent's own doing.
    pub fn new(words: impl Into<Words>) -> Self {
        Self { words: words.into(), by: CancelledBy::Producer, reason: None, partial_result: None }
    }

    /// The person has asked the agent for it. Who stops a session by the hub needs no agent for that, and
    /// [`Session::stopped`](crate::Session::stopped) tells it.
    pub fn at_request(self) -> Self {
        self.by(CancelledBy::User).reason("asked_to")
    }

    setters! {
        /// Who ended it; the agent if not set.
        by(by: CancelledBy) => by = by;

        /// A short reason of your own, like `shop_closed`.
        reason(reason: impl Into<String>) => reason = Some(reason.into());

        /// What had been done by then. Words in one language only are the same in all languages of the cancellation.
        partial_result(result: impl Into<Words>) => partial_result = Some(result.into());
    }

    pub(super) fn write(&self, out: &mut Scribe, cleaner: &Cleaner) {
        member::text(out, "cancelled_by", self.by.as_str());
        member::optional_text(out, "cancellation_reason", self.reason.as_deref());
        self.words.write(out, cleaner);
        self.words.write_beside_optional(out, cleaner, "partial_result", self.partial_result.as_ref());
    }
}

macro_rules! from_words {
    ($($ending:ident)*) => {$(
        impl<W: Into<Words>> From<W> for $ending {
            fn from(words: W) -> Self {
                Self::new(words)
            }
        }
    )*};
}
from_words! { Completion Failure Cancellation }

/// How a session ends.
///
/// ```
/// # #[cfg(feature = "tower")]
/// let ending = sayso::middleware::Ending::Cancelled("You said no, so nothing was paid.".into());
/// # #[cfg(feature = "tower")]
/// # let _ = ending;
/// ```
#[cfg_attr(not(feature = "tower"), allow(unreachable_pub, reason = "the middleware exports it"))]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ending {
    /// It did what was asked.
    Finished(Completion),
    /// It failed.
    Failed(Failure),
    /// The agent ended it before it was done.
    Cancelled(Cancellation),
}

impl Ending {
    pub(crate) async fn tell(self, session: Session) -> Result<(), Error> {
        match self {
            Self::Finished(completion) => session.finish(completion).await,
            Self::Failed(failure) => session.fail(failure).await,
            Self::Cancelled(cancellation) => session.cancel(cancellation).await,
        }
    }
}
