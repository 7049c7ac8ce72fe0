//! Ends that are no success: a failure, a cancellation.

use seal::json::Writer;

use crate::redact::Cleaner;
use crate::words::Words;

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
pub struct Failure {
    words: Words,
    cause: Cause,
    code: Option<String>,
    hint: Option<Words>,
}

impl Failure {
    /// What went wrong.
    pub fn new(words: impl Into<Words>) -> Self {
        Self { words: words.into(), cause: Cause::Unknown, code: None, hint: None }
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn cause(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// A code of your own, like `BANK_SILENT`.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// What the person can do. Words in one language only are the same in all languages of the failure.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Words>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn write(&self, out: &mut Writer, cleaner: &Cleaner) {
        out.key("error_category");
        out.text(match self.cause {
            Cause::Transient => "transient",
            Cause::Permanent => "permanent",
            Cause::RequiresUser => "requires_user",
            Cause::Unknown => "unknown",
        });
        self.words.write(out, cleaner);
        if let Some(code) = &self.code {
            out.key("error_code");
            out.text(code);
        }
        if let Some(hint) = &self.hint {
            self.words.write_beside(out, cleaner, "remediation_hint", hint);
        }
        out.key("recoverable");
        out.boolean(matches!(self.cause, Cause::Transient | Cause::RequiresUser));
    }
}

impl<W: Into<Words>> From<W> for Failure {
    fn from(words: W) -> Self {
        Self::new(words)
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
pub struct Cancellation {
    words: Words,
    at_request: bool,
}

impl Cancellation {
    /// By the agent's own doing.
    pub fn new(words: impl Into<Words>) -> Self {
        Self { words: words.into(), at_request: false }
    }

    /// The person has asked the agent for it. Who stops a session by the hub needs no agent for that, and
    /// [`Session::stopped`](crate::Session::stopped) tells it.
    #[must_use]
    pub fn at_request(mut self) -> Self {
        self.at_request = true;
        self
    }

    pub(super) fn write(&self, out: &mut Writer, cleaner: &Cleaner) {
        out.key("cancelled_by");
        out.text(if self.at_request { "user" } else { "producer" });
        if self.at_request {
            out.key("cancellation_reason");
            out.text("asked_to");
        }
        self.words.write(out, cleaner);
    }
}

impl<W: Into<Words>> From<W> for Cancellation {
    fn from(words: W) -> Self {
        Self::new(words)
    }
}
