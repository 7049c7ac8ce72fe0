//! How a session ends: completed, failed or cancelled.

use seal::json::TapeWriter;

use aaep::event::CancelledBy;

use super::Session;
use crate::error::Error;
use crate::localized_text::LocalizedText;
use crate::member;
use crate::redact::CountingRedactor;

/// The end of a session that did what the person asked for (§4.1.2).
///
/// ```
/// use sayso::Completion;
/// let done = Completion::new("The report is written.").result_uri("https://example.com/report.pdf");
/// # let _ = done;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct Completion {
    summary: LocalizedText,
    output_summary: Option<LocalizedText>,
    result_uri: Option<String>,
}

impl Completion {
    /// Creates a completion with a text that says what was done.
    pub fn new(summary: impl Into<LocalizedText>) -> Self {
        Self { summary: summary.into(), output_summary: None, result_uri: None }
    }

    setters! {
        /// Sets a short summary of the result. A text in one language is used for all languages of the completion.
        output_summary(summary: impl Into<LocalizedText>) => output_summary = Some(summary.into());

        /// Sets the URI of the full result.
        result_uri(uri: impl Into<String>) => result_uri = Some(uri.into());
    }

    pub(super) fn write(&self, out: &mut TapeWriter, redactor: &CountingRedactor) {
        self.summary.write_summaries(out, redactor);
        self.summary.write_optional_companion_text(
            out,
            redactor,
            "output_summary",
            self.output_summary.as_ref(),
        );
        member::optional_text(out, "result_uri", self.result_uri.as_deref());
    }
}

/// The category of a failure (§4.1.3).
///
/// ```
/// # let _ =
/// sayso::Failure::new("Your card has expired.").category(sayso::ErrorCategory::RequiresUser)
/// # ;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCategory {
    /// A retry is likely to succeed.
    Transient,
    /// A retry will not succeed.
    Permanent,
    /// The person must do something first.
    RequiresUser,
    /// It is not known whether a retry could succeed.
    Unknown,
}

/// The end of a session that failed, optionally with a hint on what to do (§4.1.3).
///
/// ```
/// use sayso::{Failure, ErrorCategory};
/// let failure =
///     Failure::new("The bank does not answer.").category(ErrorCategory::Transient).remediation_hint("Try again in a minute.");
/// # let _ = failure;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct Failure {
    summary: LocalizedText,
    pub(crate) category: ErrorCategory,
    code: Option<String>,
    help_uri: Option<String>,
    remediation_hint: Option<LocalizedText>,
    recoverable: Option<bool>,
}

impl Failure {
    /// Creates a failure with a text that says what went wrong.
    pub fn new(summary: impl Into<LocalizedText>) -> Self {
        Self {
            summary: summary.into(),
            category: ErrorCategory::Unknown,
            code: None,
            help_uri: None,
            remediation_hint: None,
            recoverable: None,
        }
    }

    #[cfg(any(feature = "openai", feature = "rig"))]
    pub(crate) fn with_code(category: ErrorCategory, code: &str, summary: impl Into<LocalizedText>) -> Self {
        Self::new(summary).code(code).category(category)
    }

    /// Creates the failure of an agent that can no longer report anything.
    #[cfg(any(feature = "openai", feature = "rig"))]
    pub(crate) fn agent_failed(error: &Error) -> Self {
        Self::with_code(ErrorCategory::Unknown, "AGENT_FAILED", format!("The agent had to stop: {error}."))
    }

    setters! {
        /// Sets the category of the failure.
        category(category: ErrorCategory) => category = category;

        /// Sets an error code of your own, such as `BANK_SILENT`.
        code(code: impl Into<String>) => code = Some(code.into());

        /// Sets the URI of a help page.
        help_uri(uri: impl Into<String>) => help_uri = Some(uri.into());

        /// Sets whether a retry could succeed. The default follows from the category.
        recoverable(recoverable: bool) => recoverable = Some(recoverable);

        /// Sets the text that says what the person can do. A text in one language is used for all languages of the failure.
        remediation_hint(hint: impl Into<LocalizedText>) => remediation_hint = Some(hint.into());
    }

    pub(super) fn write(&self, out: &mut TapeWriter, redactor: &CountingRedactor) {
        let category = match self.category {
            ErrorCategory::Transient => "transient",
            ErrorCategory::Permanent => "permanent",
            ErrorCategory::RequiresUser => "requires_user",
            ErrorCategory::Unknown => "unknown",
        };
        member::text(out, "error_category", category);
        self.summary.write_summaries(out, redactor);
        member::optional_text(out, "error_code", self.code.as_deref());
        member::optional_text(out, "error_uri", self.help_uri.as_deref());
        self.summary.write_optional_companion_text(
            out,
            redactor,
            "remediation_hint",
            self.remediation_hint.as_ref(),
        );
        out.key("recoverable");
        let default = matches!(self.category, ErrorCategory::Transient | ErrorCategory::RequiresUser);
        out.boolean(self.recoverable.unwrap_or(default));
    }
}

/// The end of a session that was cancelled (§4.1.4).
///
/// ```
/// use sayso::Cancellation;
/// let by_agent = Cancellation::new("The shop is closed; nothing was bought.");
/// let by_person = Cancellation::new("Nothing was bought, as you asked.").requested_by_user();
/// # let _ = (by_agent, by_person);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct Cancellation {
    summary: LocalizedText,
    cancelled_by: CancelledBy,
    reason: Option<String>,
    partial_result: Option<LocalizedText>,
}

impl Cancellation {
    /// Creates a cancellation by the agent.
    pub fn new(summary: impl Into<LocalizedText>) -> Self {
        Self {
            summary: summary.into(),
            cancelled_by: CancelledBy::Producer,
            reason: None,
            partial_result: None,
        }
    }

    /// Marks the cancellation as one that the person requested from the agent. If the person stops the session through the hub
    /// instead, [`Session::stopped`](crate::Session::stopped) returns.
    pub fn requested_by_user(self) -> Self {
        self.cancelled_by(CancelledBy::User).reason("user_requested")
    }

    setters! {
        /// Sets who cancelled the session. The default is the agent.
        cancelled_by(by: CancelledBy) => cancelled_by = by;

        /// Sets a short reason of your own, such as `shop_closed`.
        reason(reason: impl Into<String>) => reason = Some(reason.into());

        /// Sets the text that says what was done before the cancellation. A text in one language is used for all languages of the
        /// cancellation.
        partial_result(result: impl Into<LocalizedText>) => partial_result = Some(result.into());
    }

    pub(super) fn write(&self, out: &mut TapeWriter, redactor: &CountingRedactor) {
        member::text(out, "cancelled_by", self.cancelled_by.as_str());
        member::optional_text(out, "cancellation_reason", self.reason.as_deref());
        self.summary.write_summaries(out, redactor);
        self.summary.write_optional_companion_text(
            out,
            redactor,
            "partial_result",
            self.partial_result.as_ref(),
        );
    }
}

macro_rules! impl_from_text {
    ($($ending:ident)*) => {$(
        impl<T: Into<LocalizedText>> From<T> for $ending {
            fn from(summary: T) -> Self {
                Self::new(summary)
            }
        }
    )*};
}
impl_from_text! { Completion Failure Cancellation }

/// The end of a session.
///
/// ```
/// # #[cfg(feature = "tower")]
/// let ending = sayso::middleware::SessionEnding::Cancelled("You said no, so nothing was paid.".into());
/// # #[cfg(feature = "tower")]
/// # let _ = ending;
/// ```
#[cfg_attr(not(feature = "tower"), allow(unreachable_pub, reason = "the middleware exports it"))]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEnding {
    /// The task is done.
    Finished(Completion),
    /// The task failed.
    Failed(Failure),
    /// The agent ended the session before the task was done.
    Cancelled(Cancellation),
}

impl SessionEnding {
    pub(crate) async fn end_session(self, session: Session) -> Result<(), Error> {
        match self {
            Self::Finished(completion) => session.finish(completion).await,
            Self::Failed(failure) => session.fail(failure).await,
            Self::Cancelled(cancellation) => session.cancel(cancellation).await,
        }
    }
}
