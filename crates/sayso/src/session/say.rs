//! What is said with more than words.

use std::borrow::Cow;

use seal::json::Writer;

use crate::consent::Risk;
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
    pub fn says(words: impl Into<Words>) -> Self {
        Self { words: words.into(), percent: None, step: None }
    }

    /// In per cent.
    #[must_use]
    pub fn percent(mut self, percent: f64) -> Self {
        self.percent = Some(percent);
        self
    }

    /// In steps: which is being done, counted from 1, of how many.
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
/// use sayso::{HandOff, Target, Words};
/// let reason = Words::new("The refund is above what I may decide.")
///     .in_language("es", "El reembolso supera lo que puedo decidir.");
/// let hand_off = HandOff::to(Target::Human, reason);
/// # let _ = hand_off;
/// ```
#[derive(Clone, Debug)]
pub struct HandOff {
    target: Target,
    reason: Words,
    summary: Option<Words>,
    uri: Option<String>,
    urgency: Option<Risk>,
}

impl HandOff {
    /// To whom, and why.
    pub fn to(target: Target, reason: impl Into<Words>) -> Self {
        Self { target, reason: reason.into(), summary: None, uri: None, urgency: None }
    }

    /// What is said of it in other words than the reason alone.
    #[must_use]
    pub fn summary(mut self, words: impl Into<Words>) -> Self {
        self.summary = Some(words.into());
        self
    }

    /// Exactly to whom.
    #[must_use]
    pub fn at(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// How much depends on it that the other one looks at it soon.
    #[must_use]
    pub fn urgency(mut self, urgency: Risk) -> Self {
        self.urgency = Some(urgency);
        self
    }

    pub(super) fn write(&self, out: &mut Writer, cleaner: &Cleaner) {
        out.key("target_kind");
        out.text(match self.target {
            Target::Human => "human",
            Target::SpecialistAgent => "specialist_agent",
            Target::EscalationQueue => "escalation_queue",
        });
        match &self.summary {
            None => {
                let reason = self.reason.cleaned(cleaner);
                reason.write_as(out, "reason");
                reason.write(out);
            }
            Some(summary) => {
                summary.write_beside(out, cleaner, "reason", &self.reason);
                summary.write(out, cleaner);
            }
        }
        if let Some(urgency) = self.urgency {
            out.key("urgency_for_handoff");
            out.text(urgency.word());
        }
        if let Some(uri) = &self.uri {
            out.key("target_uri");
            out.text(uri);
        }
    }
}

/// What an agent is at (§4.2.1).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::embedded().open()?;
/// # let session = hub.session("Pay Ben.").start().await?;
/// session.enter(sayso::State::WritingOutput, "The answer follows.").await?;
/// session.output("It rains.").await?;
/// # session.finish("It rains.").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It thinks: [`Session::think`](crate::Session::think).
    Thinking,
    /// It weighs what to do: [`Session::decide`](crate::Session::decide).
    Deciding,
    /// It uses tools.
    CallingTool,
    /// It writes an output.
    WritingOutput,
    /// It asks that somebody else goes on.
    HandingOff,
    /// It does nothing.
    Idle,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Thinking => "thinking",
            Self::Deciding => "deciding",
            Self::CallingTool => "calling_tool",
            Self::WritingOutput => "writing_output",
            Self::HandingOff => "handing_off",
            Self::Idle => "idle",
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
