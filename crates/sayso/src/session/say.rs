//! What is said with more than words.

use std::borrow::Cow;
use std::time::Duration;

use seal::json::Scribe;

use crate::argument::Bound;
use crate::consent::Risk;
use crate::error::Error;
use crate::member;
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
#[must_use = "a builder does nothing by itself"]
pub struct Progress {
    words: Words,
    percent: Option<f64>,
    step: Option<(u64, u64)>,
    eta: Option<Duration>,
}

impl Progress {
    /// In words.
    pub fn says(words: impl Into<Words>) -> Self {
        Self { words: words.into(), percent: None, step: None, eta: None }
    }

    setters! {
        /// In per cent.
        percent(percent: f64) => percent = Some(percent);

        /// In steps: which is being done, counted from 1, of how many.
        step(step: u64, of: u64) => step = Some((step, of));

        /// How long it should still take.
        eta(eta: Duration) => eta = Some(eta);
    }

    pub(super) fn write(&self, out: &mut Scribe, cleaner: &Cleaner) {
        let numbers = |out: &mut Scribe| {
            if let Some(percent) = self.percent {
                out.key("percent").number(percent);
            }
            if let Some((step, of)) = self.step {
                member::count(out, "step", step);
                member::count(out, "total_steps", of);
            }
        };
        progress(&self.words.cleaned(cleaner), numbers, out, cleaner);
        member::optional_millis(out, "eta_ms", self.eta);
    }
}

/// How far the work has come, in numbers and in words.
pub(super) fn progress(
    words: &Clean<'_>,
    numbers: impl FnOnce(&mut Scribe),
    out: &mut Scribe,
    cleaner: &Cleaner,
) {
    out.key("progress").open_object();
    numbers(out);
    match short(words.normal()) {
        Cow::Borrowed(whole) => member::text(out, "description", whole),
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
#[must_use = "a builder does nothing by itself"]
pub struct HandOff {
    target: Target,
    reason: Words,
    summary: Option<Words>,
    uri: Option<String>,
    context: Option<Bound>,
    urgency: Option<Risk>,
}

impl HandOff {
    /// To whom, and why.
    pub fn to(target: Target, reason: impl Into<Words>) -> Self {
        Self { target, reason: reason.into(), summary: None, uri: None, context: None, urgency: None }
    }

    setters! {
        /// What is said of it in other words than the reason alone.
        summary(words: impl Into<Words>) => summary = Some(words.into());

        /// Exactly to whom.
        at(uri: impl Into<String>) => uri = Some(uri.into());

        /// What the other one needs to know, as an object. Secrets are taken out of its texts.
        packaged_context(context: impl Into<Bound>) => context = Some(context.into());

        /// How much depends on it that the other one looks at it soon.
        urgency(urgency: Risk) => urgency = Some(urgency);
    }

    pub(super) fn context(&self) -> Result<Option<String>, Error> {
        self.context.clone().map(Bound::finish).transpose()
    }

    pub(super) fn write(&self, out: &mut Scribe, context: Option<&str>, cleaner: &Cleaner) {
        let target = match self.target {
            Target::Human => "human",
            Target::SpecialistAgent => "specialist_agent",
            Target::EscalationQueue => "escalation_queue",
        };
        member::text(out, "target_kind", target);
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
        member::optional_text(out, "urgency_for_handoff", self.urgency.map(Risk::word));
        member::optional_text(out, "target_uri", self.uri.as_deref());
        if let Some(context) = context {
            member::json(out, "packaged_context", context, cleaner);
        }
    }
}

/// A change to another state, in words (§4.2.1).
///
/// ```
/// use sayso::{State, StateChange};
/// let change = StateChange::to(State::Thinking, "Comparing prices.").expected_duration(std::time::Duration::from_secs(20));
/// # let _ = change;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct StateChange {
    pub(super) state: State,
    pub(super) words: Words,
    pub(super) expected_duration: Option<Duration>,
}

impl StateChange {
    /// To this state, in these words.
    pub fn to(state: State, words: impl Into<Words>) -> Self {
        Self { state, words: words.into(), expected_duration: None }
    }

    setters! {
        /// How long the state should last.
        expected_duration(duration: Duration) => expected_duration = Some(duration);
    }
}

/// What an agent is at (§4.2.1).
///
/// ```
/// # testing::example!(hub, session, {
/// session.enter(sayso::StateChange::to(sayso::State::WritingOutput, "The answer follows.")).await?;
/// session.output("It rains.").await?;
/// # session.finish("It rains.").await?;
/// # });
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
    /// The protocol's own name of it.
    pub(super) fn named(self) -> aaep::event::State {
        use aaep::event::State;
        match self {
            Self::Thinking => State::Thinking,
            Self::Deciding => State::Deciding,
            Self::CallingTool => State::CallingTool,
            Self::WritingOutput => State::WritingOutput,
            Self::HandingOff => State::HandingOff,
            Self::Idle => State::Idle,
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
