//! What is said with more than words.

use std::borrow::Cow;

use seal::json::Writer;

use crate::redact::Cleaner;
use crate::words::{Clean, Words};

/// How far the work has come (§4.2.2).
///
/// ```
/// let half = sayso::Progress::says("Half of the pages are read.").percent(50.0);
/// let third = sayso::Progress::says("Comparing prices.").step(3, 7);
/// # let _ = (half, third);
/// ```
#[derive(Clone, Debug)]
pub struct Progress {
    words: Words,
    percent: Option<f64>,
    step: Option<(u64, u64)>,
}

impl Progress {
    /// In words.
    ///
    /// ```
    /// # let _ =
    /// sayso::Progress::says("Comparing prices.")
    /// # ;
    /// ```
    pub fn says(words: impl Into<Words>) -> Self {
        Self { words: words.into(), percent: None, step: None }
    }

    /// In per cent.
    ///
    /// ```
    /// # let _ =
    /// sayso::Progress::says("Half of the pages are read.").percent(50.0)
    /// # ;
    /// ```
    #[must_use]
    pub fn percent(mut self, percent: f64) -> Self {
        self.percent = Some(percent);
        self
    }

    /// In steps: which is being done, counted from 1, of how many.
    ///
    /// ```
    /// # let _ =
    /// sayso::Progress::says("Comparing prices.").step(3, 7)
    /// # ;
    /// ```
    #[must_use]
    pub fn step(mut self, step: u64, of: u64) -> Self {
        self.step = Some((step, of));
        self
    }

    pub(super) fn write(&self, out: &mut Writer, cleaner: &Cleaner) {
        let numbers = |out: &mut Writer| {
            if let Some(percent) = self.percent {
                out.key("percent");
                out.number(percent);
            }
            if let Some((step, of)) = self.step {
                for (name, number) in [("step", step), ("total_steps", of)] {
                    out.key(name);
                    out.integer(i64::try_from(number).unwrap_or(i64::MAX));
                }
            }
        };
        progress(&self.words.cleaned(cleaner), numbers, out, cleaner);
    }
}

/// How far the work has come, in numbers and in words.
pub(super) fn progress(
    words: &Clean<'_>,
    numbers: impl FnOnce(&mut Writer),
    out: &mut Writer,
    cleaner: &Cleaner,
) {
    out.key("progress");
    out.open_object();
    numbers(out);
    match short(words.normal()) {
        Cow::Borrowed(whole) => {
            out.key("description");
            out.text(whole);
        }
        // What stands at a cut may look like something else than it did in the middle.
        Cow::Owned(cut) => cleaner.write(out, "description", &cut),
    }
    out.close_object();
    words.write(out);
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
pub struct Failure {
    words: Words,
    cause: Cause,
    code: Option<String>,
    hint: Option<String>,
}

impl Failure {
    /// What went wrong.
    ///
    /// ```
    /// # let _ =
    /// sayso::Failure::new("The bank does not answer.")
    /// # ;
    /// ```
    pub fn new(words: impl Into<Words>) -> Self {
        Self { words: words.into(), cause: Cause::Unknown, code: None, hint: None }
    }

    /// What kind of failure it is.
    ///
    /// ```
    /// # let _ =
    /// sayso::Failure::new("The bank does not answer.").cause(sayso::Cause::Transient)
    /// # ;
    /// ```
    #[must_use]
    pub fn cause(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// A code of your own, like `BANK_SILENT`.
    ///
    /// ```
    /// # let _ =
    /// sayso::Failure::new("The bank does not answer.").code("BANK_SILENT")
    /// # ;
    /// ```
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// What the person can do.
    ///
    /// ```
    /// # let _ =
    /// sayso::Failure::new("The bank does not answer.").hint("Try again in a minute.")
    /// # ;
    /// ```
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
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

impl From<&str> for Failure {
    fn from(words: &str) -> Self {
        Self::new(words)
    }
}

impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self::new(words)
    }
}

/// To whom a session is handed (§4.4.3).
///
/// ```
/// # let _ =
/// sayso::HandOff::to(sayso::Target::EscalationQueue, "The order is stuck.")
/// # ;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A human being.
    Human,
    /// An agent that knows more.
    SpecialistAgent,
    /// Whoever comes first.
    EscalationQueue,
}

/// A request that somebody else goes on (§4.4.3).
///
/// ```
/// let hand_off = sayso::HandOff::to(sayso::Target::Human, "The refund is above what I may decide.");
/// # let _ = hand_off;
/// ```
#[derive(Clone, Debug)]
pub struct HandOff {
    target: Target,
    reason: String,
    uri: Option<String>,
}

impl HandOff {
    /// To whom, and why.
    ///
    /// ```
    /// # let _ =
    /// sayso::HandOff::to(sayso::Target::Human, "The refund is above what I may decide.")
    /// # ;
    /// ```
    pub fn to(target: Target, reason: impl Into<String>) -> Self {
        Self { target, reason: reason.into(), uri: None }
    }

    /// Exactly to whom.
    ///
    /// ```
    /// # let _ =
    /// sayso::HandOff::to(sayso::Target::Human, "You wanted to speak to Ada.").at("tel:+47-555-0100")
    /// # ;
    /// ```
    #[must_use]
    pub fn at(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    pub(super) fn write(&self, out: &mut Writer, cleaner: &Cleaner) {
        out.key("target_kind");
        out.text(match self.target {
            Target::Human => "human",
            Target::SpecialistAgent => "specialist_agent",
            Target::EscalationQueue => "escalation_queue",
        });
        let reason = cleaner.clean(&self.reason);
        for name in ["reason", "summary_normal"] {
            out.key(name);
            out.text(&reason);
        }
        if let Some(uri) = &self.uri {
            out.key("target_uri");
            out.text(uri);
        }
    }
}

/// As much as fits into a short field of the protocol.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    const MOST: usize = 1000;
    if text.len() <= MOST {
        return text.into();
    }
    match text.char_indices().nth(MOST) {
        None => text.into(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()).into(),
    }
}
