//! Progress, hand-offs and state changes.

use std::borrow::Cow;
use std::time::Duration;

use aaep::event::AgentState;
use seal::json::TapeWriter;

use crate::argument::JsonText;
use crate::consent::Risk;
use crate::error::Error;
use crate::localized_text::{LocalizedText, RedactedText};
use crate::member;
use crate::redact::CountingRedactor;

/// A progress update (§4.2.2).
///
/// ```
/// let half = sayso::ProgressUpdate::new("Half of the pages are read.").percent(50.0);
/// let third = sayso::ProgressUpdate::new("Comparing prices.").step(3, 7);
/// # let _ = (half, third);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct ProgressUpdate {
    summary: LocalizedText,
    description: Option<String>,
    percent: Option<f64>,
    step: Option<(u64, Option<u64>)>,
    eta: Option<Duration>,
}

impl ProgressUpdate {
    /// Creates a progress update with this text.
    pub fn new(summary: impl Into<LocalizedText>) -> Self {
        Self { summary: summary.into(), description: None, percent: None, step: None, eta: None }
    }

    setters! {
        /// Sets what is being done, if it differs from the summary. The default is the summary.
        description(description: impl Into<String>) => description = Some(description.into());

        /// Sets the progress in percent.
        percent(percent: f64) => percent = Some(percent);

        /// Sets the current step, counted from 1, and the number of steps.
        step(step: u64, of: u64) => step = Some((step, Some(of)));

        /// Sets the current step, counted from 1, if the number of steps is not known.
        step_without_total(step: u64) => step = Some((step, None));

        /// Sets the estimated remaining time.
        eta(eta: Duration) => eta = Some(eta);
    }

    /// Returns the progress in percent, if it is known.
    #[allow(clippy::cast_precision_loss, reason = "a percentage needs no more than 53 bits")]
    pub(super) fn known_percent(&self) -> Option<f64> {
        let of_steps = || match self.step? {
            (step, Some(of)) => Some(step as f64 * 100.0 / of as f64),
            (_, None) => None,
        };
        self.percent.or_else(of_steps).filter(|percent| (0.0..=100.0).contains(percent))
    }

    pub(super) fn write(&self, out: &mut TapeWriter, redactor: &CountingRedactor) {
        let numbers = |out: &mut TapeWriter| {
            if let Some(percent) = self.percent {
                out.key("percent").number(percent);
            }
            if let Some((step, of)) = self.step {
                member::count(out, "step", step);
                if let Some(of) = of {
                    member::count(out, "total_steps", of);
                }
            }
        };
        let description = self.description.as_deref().map(|text| redactor.redact(text));
        write_progress(&self.summary.redacted(redactor), description.as_deref(), numbers, out, redactor);
        member::optional_millis(out, "eta_ms", self.eta);
    }
}

/// Writes progress as numbers and text. Without a description, the summary describes it.
pub(super) fn write_progress(
    summary: &RedactedText<'_>,
    description: Option<&str>,
    numbers: impl FnOnce(&mut TapeWriter),
    out: &mut TapeWriter,
    redactor: &CountingRedactor,
) {
    out.key("progress").open_object();
    numbers(out);
    match truncate_text(description.unwrap_or(summary.normal())) {
        Cow::Borrowed(unchanged) => member::text(out, "description", unchanged),
        // Truncation can create a text that looks like a secret, so it is redacted again.
        Cow::Owned(truncated) => redactor.write(out, "description", &truncated),
    }
    out.close_object();
    summary.write_summaries(out);
}

/// The recipient of a hand-off (§4.4.3).
///
/// ```
/// # let _ =
/// sayso::HandOff::new(sayso::HandOffTarget::EscalationQueue, "The order is stuck.")
/// # ;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOffTarget {
    /// A person.
    Human,
    /// A specialised agent.
    SpecialistAgent,
    /// A queue from which anybody responsible can take the task.
    EscalationQueue,
}

/// A request that somebody else take over (§4.4.3).
///
/// ```
/// use sayso::{HandOff, HandOffTarget, LocalizedText};
/// let reason = LocalizedText::new("The refund is more than I am allowed to approve.")
///     .in_language("es", "El reembolso supera lo que puedo aprobar.");
/// let hand_off = HandOff::new(HandOffTarget::Human, reason);
/// # let _ = hand_off;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct HandOff {
    target: HandOffTarget,
    reason: LocalizedText,
    summary: Option<LocalizedText>,
    target_uri: Option<String>,
    context: Option<JsonText>,
    urgency: Option<Risk>,
    timeout: Option<Duration>,
}

/// The outcome of a hand-off.
///
/// ```
/// # testing::run_example!(hub, session, {
/// use sayso::{HandOff, HandOffOutcome, HandOffTarget};
/// // Nobody is connected here who could take over.
/// let outcome = session.hand_off(HandOff::new(HandOffTarget::Human, "The refund needs a person.")).await?;
/// assert_eq!(outcome, HandOffOutcome::Unreachable);
/// # session.cancel("Nobody could take over.").await?;
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandOffOutcome {
    /// Somebody took over. The agent should finish the session.
    Acknowledged {
        /// The message of the person who took over.
        note: Option<String>,
        /// The name of the token of the person who took over.
        principal: Option<String>,
    },
    /// Somebody who could take over refused.
    Rejected {
        /// The reason.
        note: Option<String>,
        /// The name of the token of the person who refused.
        principal: Option<String>,
    },
    /// Nobody took over in time.
    TimedOut,
    /// Nobody who could take over was connected.
    Unreachable,
    /// The hand-off was withdrawn, or it ended in a way that this version does not know. Nobody took over.
    Withdrawn,
}

impl HandOffOutcome {
    pub(crate) fn from_codes(result: &str, note: Option<String>, principal: Option<String>) -> Self {
        match result {
            "acknowledged" => Self::Acknowledged { note, principal },
            "rejected" => Self::Rejected { note, principal },
            "timeout" => Self::TimedOut,
            "unreachable" => Self::Unreachable,
            _ => Self::Withdrawn,
        }
    }
}

impl HandOff {
    /// Creates a hand-off to a target, with the reason.
    pub fn new(target: HandOffTarget, reason: impl Into<LocalizedText>) -> Self {
        Self {
            target,
            reason: reason.into(),
            summary: None,
            target_uri: None,
            context: None,
            urgency: None,
            timeout: None,
        }
    }

    setters! {
        /// Sets the summary. The default is the reason.
        summary(summary: impl Into<LocalizedText>) => summary = Some(summary.into());

        /// Sets the URI of the exact recipient.
        target_uri(uri: impl Into<String>) => target_uri = Some(uri.into());

        /// Sets an object with the information that the recipient needs. Secrets are removed from its texts. Listeners who cannot
        /// take over do not get it.
        packaged_context(context: impl Into<JsonText>) => context = Some(context.into());

        /// Sets how urgently the recipient should act.
        urgency(urgency: Risk) => urgency = Some(urgency);

        /// Sets how long [`Session::hand_off`](crate::Session::hand_off) waits for somebody to take over. The default, and the longest
        /// time, are settings of the hub.
        timeout(timeout: Duration) => timeout = Some(timeout);
    }

    pub(super) fn context(&self) -> Result<Option<String>, Error> {
        self.context.clone().map(JsonText::into_json).transpose()
    }

    /// Writes how long to wait, in whole seconds.
    pub(super) fn write_timeout(&self, out: &mut TapeWriter) {
        if let Some(timeout) = self.timeout {
            let seconds = timeout.as_secs().saturating_add(u64::from(timeout.subsec_nanos() > 0)).max(1);
            member::count(out, "timeout_seconds", seconds);
        }
    }

    pub(super) fn write(&self, out: &mut TapeWriter, context: Option<&str>, redactor: &CountingRedactor) {
        let target = match self.target {
            HandOffTarget::Human => "human",
            HandOffTarget::SpecialistAgent => "specialist_agent",
            HandOffTarget::EscalationQueue => "escalation_queue",
        };
        member::text(out, "target_kind", target);
        match &self.summary {
            None => {
                let reason = self.reason.redacted(redactor);
                reason.write_as(out, "reason");
                reason.write_summaries(out);
            }
            Some(summary) => {
                summary.write_companion_text(out, redactor, "reason", &self.reason);
                summary.write_summaries(out, redactor);
            }
        }
        member::optional_text(out, "urgency_for_handoff", self.urgency.map(Risk::as_str));
        member::optional_text(out, "target_uri", self.target_uri.as_deref());
        if let Some(context) = context {
            member::json(out, "packaged_context", context, redactor);
        }
    }
}

/// A state change with a text (§4.2.1).
///
/// ```
/// use sayso::{ReportedState, StateChange};
/// let change = StateChange::new(ReportedState::Thinking, "Comparing prices.").expected_duration(std::time::Duration::from_secs(20));
/// # let _ = change;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing by itself"]
pub struct StateChange {
    pub(super) state: AgentState,
    pub(super) summary: Option<LocalizedText>,
    pub(super) expected_duration: Option<Duration>,
}

impl StateChange {
    /// Creates a change to this state, with a text.
    pub fn new(state: ReportedState, summary: impl Into<LocalizedText>) -> Self {
        let state = state.to_protocol_state();
        Self { state, summary: Some(summary.into()), expected_duration: None }
    }

    /// Creates a change to a state of your own. Listeners hear the words that [`SessionBuilder::state`](crate::SessionBuilder::state)
    /// defines for it, or else its name.
    pub fn custom(state: impl AsRef<str>) -> Self {
        Self { state: AgentState::parse(state.as_ref()), summary: None, expected_duration: None }
    }

    setters! {
        /// Sets a text for this change.
        says(summary: impl Into<LocalizedText>) => summary = Some(summary.into());

        /// Sets how long the state is expected to last.
        expected_duration(duration: Duration) => expected_duration = Some(duration);
    }
}

/// The state of an agent (§4.2.1).
///
/// ```
/// # testing::run_example!(hub, session, {
/// session.change_state(sayso::StateChange::new(sayso::ReportedState::WritingOutput, "The answer follows.")).await?;
/// session.output("It is raining.").await?;
/// # session.finish("It is raining.").await?;
/// # });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportedState {
    /// The agent is thinking: [`Session::think`](crate::Session::think).
    Thinking,
    /// The agent is deciding what to do: [`Session::decide`](crate::Session::decide).
    Deciding,
    /// The agent is using tools.
    CallingTool,
    /// The agent is writing an output.
    WritingOutput,
    /// The agent is handing off to somebody else.
    HandingOff,
    /// The agent is idle.
    Idle,
}

impl ReportedState {
    /// Converts the state to the protocol's type.
    pub(super) fn to_protocol_state(self) -> AgentState {
        match self {
            Self::Thinking => AgentState::Thinking,
            Self::Deciding => AgentState::Deciding,
            Self::CallingTool => AgentState::CallingTool,
            Self::WritingOutput => AgentState::WritingOutput,
            Self::HandingOff => AgentState::HandingOff,
            Self::Idle => AgentState::Idle,
        }
    }
}

/// Cuts a text after 1,000 characters and marks the cut with `…`. The result fits every member for a summary, a description or an
/// error message.
pub(crate) fn truncate_text(text: &str) -> Cow<'_, str> {
    const MAX_CHARS: usize = 1000;
    if text.len() <= MAX_CHARS {
        return text.into();
    }
    match text.char_indices().nth(MAX_CHARS) {
        None => text.into(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()).into(),
    }
}
