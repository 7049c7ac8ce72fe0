//! Tool calls. Each is announced before it is made, and its outcome is always reported.

use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use aaep::ToolCallId;
use seal::json::TapeWriter;

use super::Session;
use super::updates::truncate_text;
use crate::consent::{Risk, write_risk};
use crate::dispatcher::{ABANDONED_TOOL_SUMMARY, SessionCommand};
use crate::error::{CallError, Error};
use crate::localized_text::{LocalizedText, humanize_name};
use crate::member;
use crate::redact::CountingRedactor;
use crate::session_state::{Intent, abandoned_tool_event, write_english_hint};

/// The maximum number of bytes of a tool's error that are processed.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// A builder for a tool call that needs no consent.
///
/// ```
/// # testing::run_example!(hub, session, {
/// let weather = async { Ok::<_, std::io::Error>("rain") };
/// let call = session.tool("weather").says("Checking the weather.").args_summary("Oslo, tomorrow");
/// assert_eq!(call.run(weather).await.unwrap(), "rain");
/// # session.finish("It is raining.").await?;
/// # });
/// ```
#[must_use = "nothing is announced until `start` or `run` is called"]
pub struct ToolCallBuilder<'s> {
    session: &'s Session,
    tool: String,
    details: Box<ToolCallDetails>,
    timeout: Option<Duration>,
}

/// The members that describe a tool call when it is announced (§4.3.1).
#[derive(Clone, Debug)]
pub(crate) struct ToolCallDetails {
    pub(crate) summary: Option<LocalizedText>,
    pub(crate) description: Option<LocalizedText>,
    pub(crate) args_summary: Option<LocalizedText>,
    pub(crate) expected_duration: Option<Duration>,
    pub(crate) call_id: Option<ToolCallId>,
    pub(crate) risk: Risk,
}

impl ToolCallDetails {
    pub(crate) fn new(risk: Risk) -> Self {
        Self {
            summary: None,
            description: None,
            args_summary: None,
            expected_duration: None,
            call_id: None,
            risk,
        }
    }

    /// Writes the members. `default` replaces a missing summary.
    pub(crate) fn write(
        &self,
        out: &mut TapeWriter,
        redactor: &CountingRedactor,
        default: &LocalizedText,
        is_irreversible: bool,
    ) {
        write_risk(out, self.risk, is_irreversible);
        let summary = self.summary.as_ref().unwrap_or(default);
        summary.write_summaries(out, redactor);
        summary.write_optional_companion_text(out, redactor, "description", self.description.as_ref());
        summary.write_optional_companion_text(out, redactor, "args_summary", self.args_summary.as_ref());
        member::optional_millis(out, "expected_duration_ms", self.expected_duration);
    }
}

/// Defines setters for a type with [`ToolCallDetails`] in its field `details`.
macro_rules! tool_call_details_setters {
    ($type:ty) => {
        impl $type {
            setters! {
                /// Sets the text that says what the tool does in general. A text in one language is used for all languages of the call.
                description(description: impl Into<crate::LocalizedText>) => details.description = Some(description.into());

                /// Sets a readable summary of the arguments. A text in one language is used for all languages of the call.
                args_summary(arguments: impl Into<crate::LocalizedText>) => details.args_summary = Some(arguments.into());

                /// Sets how long the call is expected to take.
                expected_duration(duration: std::time::Duration) => details.expected_duration = Some(duration);

                /// Sets the id of the call, such as the one that a model gave it. AAEP allows only `call_` and 1 to 64 letters or
                /// digits; another id is replaced by a hash of it. The default is a new id.
                tool_call_id(id: impl AsRef<str>) => details.call_id = aaep::ToolCallId::from_foreign(id.as_ref());
            }
        }
    };
}
pub(crate) use tool_call_details_setters;

tool_call_details_setters!(ToolCallBuilder<'_>);

impl<'s> ToolCallBuilder<'s> {
    pub(crate) fn new(session: &'s Session, tool: String, details: Box<ToolCallDetails>) -> Self {
        Self { session, tool, details, timeout: None }
    }

    setters! {
        /// Sets the text that says what this call does.
        says(summary: impl Into<LocalizedText>) => details.summary = Some(summary.into());

        /// Marks the call as medium risk. A high-risk call needs consent.
        medium_risk() => details.risk = Risk::Medium;

        /// Sets the time limit of [`run`](Self::run).
        timeout(timeout: Duration) => timeout = Some(timeout);
    }

    /// Announces the call.
    pub async fn start(self) -> Result<ToolCall<'s>, Error> {
        let default = LocalizedText::new(format!("{}.", humanize_name(&self.tool)));
        let write = |out: &mut TapeWriter| self.details.write(out, &self.session.redactor, &default, false);
        ToolCall::open(self.session, self.tool, self.details.call_id.clone(), write, false).await
    }

    /// Announces the call, makes it and reports its outcome. The tool's future is dropped when its time limit is over, or when the
    /// person stops the session.
    pub async fn run<T, E: fmt::Display>(
        self,
        tool: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallError<E>> {
        let timeout = self.timeout;
        self.start().await?.run(tool, timeout).await
    }
}

debug_tuple!(ToolCallBuilder<'_>, tool);

/// An open tool call: it was announced, and its outcome must be reported. If it is dropped, listeners hear that the agent
/// abandoned it.
///
/// ```
/// # testing::run_example!(hub, session, {
/// let tool = session.tool("weather").says("Looking at the sky.").start().await?;
/// match std::fs::read_to_string("no/such/station") {
///     Ok(weather) => tool.succeed(weather).await?,
///     Err(error) => tool.fail(error.to_string()).await?,
/// }
/// # session.fail("The weather is not known.").await?;
/// # });
/// ```
#[must_use = "dropping a tool call reports it as abandoned"]
pub struct ToolCall<'s> {
    session: &'s Session,
    name: String,
    id: ToolCallId,
    started_at: Instant,
    is_open: bool,
    /// What [`run`](Self::run) reports when the tool has succeeded.
    success_summary: Option<Box<LocalizedText>>,
}

impl<'s> ToolCall<'s> {
    /// Announces a tool call, with or without consent. A call without an id gets a new one. `payload` writes all members except the
    /// type, the tool and the call id.
    pub(super) async fn open(
        session: &'s Session,
        tool: String,
        call_id: Option<ToolCallId>,
        payload: impl FnOnce(&mut TapeWriter),
        spends_consent: bool,
    ) -> Result<Self, Error> {
        let id = call_id.unwrap_or_else(|| session.new_call_id());
        let event = session.build_event("aaep:agent.tool.invoked", |out| {
            member::text(out, "tool", &tool);
            member::text(out, "tool_call_id", id.as_str());
            payload(out);
        });
        // Created before it is announced, so that the call is also closed if this future is dropped in between.
        let tool_call = Self {
            session,
            name: tool,
            id,
            started_at: Instant::now(),
            is_open: true,
            success_summary: None,
        };
        let intent = Intent::Invoke {
            call: tool_call.id.clone(),
            tool: tool_call.name.clone(),
            event,
            spends_consent,
        };
        match session.send_intent(intent).await {
            Ok(_) => Ok(tool_call),
            Err(error) => {
                tool_call.disarm();
                Err(error)
            }
        }
    }

    /// Reports that the tool succeeded.
    pub async fn succeed(self, summary: impl Into<LocalizedText>) -> Result<(), Error> {
        self.send_completed("success", &summary.into(), None).await
    }

    /// Reports that the tool succeeded, with a default text.
    pub(crate) async fn succeed_with_default_summary(self) -> Result<(), Error> {
        let summary = LocalizedText::library_text(format!("{} has finished.", humanize_name(&self.name)));
        self.succeed(summary).await
    }

    /// Reports that the tool failed. Listeners hear that it failed, and the reason.
    pub async fn fail(self, reason: impl Into<LocalizedText>) -> Result<(), Error> {
        let reason = self.redacted_reason(&reason.into());
        // "failed" is English, so it is added only to an English text without other forms or translations.
        let summary = if self.session.is_english && reason.is_single_text() {
            LocalizedText::new(format!("{} failed: {}", humanize_name(&self.name), reason.normal()))
        } else {
            reason.clone()
        };
        self.send_completed("error", &summary, Some(&reason)).await
    }

    /// Reports that the tool failed, with a summary and a reason. A reason in one language is used for all languages of the summary.
    pub async fn fail_with_summary(
        self,
        summary: impl Into<LocalizedText>,
        reason: impl Into<LocalizedText>,
    ) -> Result<(), Error> {
        let reason = self.redacted_reason(&reason.into());
        self.send_completed("error", &summary.into(), Some(&reason)).await
    }

    /// Returns the reason without secrets, truncated to a length that the protocol allows.
    fn redacted_reason(&self, reason: &LocalizedText) -> LocalizedText {
        reason.map_texts(&|reason| {
            // If this cut splits a secret, the secret lies far beyond the part that remains after truncation.
            let start = reason.get(..reason.floor_char_boundary(MAX_ERROR_BYTES)).unwrap_or_default();
            truncate_text(&self.session.redactor.redact(start)).into_owned()
        })
    }

    /// Reports that the tool exceeded its time limit.
    pub async fn time_out(self) -> Result<(), Error> {
        let reason = LocalizedText::library_text(format!("{} took too long.", humanize_name(&self.name)));
        self.send_completed("timeout", &reason, Some(&reason)).await
    }

    /// Replaces the default text that is reported on success.
    pub(crate) fn with_success_summary(mut self, summary: Option<LocalizedText>) -> Self {
        self.success_summary = summary.map(Box::new);
        self
    }

    pub(crate) async fn run<T, E: fmt::Display>(
        mut self,
        tool: impl Future<Output = Result<T, E>>,
        timeout: Option<Duration>,
    ) -> Result<T, CallError<E>> {
        let session = self.session;
        let ended = tokio::select! {
            ended = run_with_timeout(timeout, tool) => ended,
            stop = session.stopped() => {
                self.disarm();
                return Err(Error::Stopped(stop).into());
            }
        };
        match ended {
            Some(Ok(value)) => {
                match self.success_summary.take() {
                    Some(summary) => self.succeed(*summary).await?,
                    None => self.succeed_with_default_summary().await?,
                }
                Ok(value)
            }
            Some(Err(error)) => {
                self.fail(error.to_string()).await?;
                Err(CallError::Tool(error))
            }
            None => {
                self.time_out().await?;
                Err(CallError::TimedOut)
            }
        }
    }

    async fn send_completed(
        mut self,
        status: &str,
        summary: &LocalizedText,
        error: Option<&LocalizedText>,
    ) -> Result<(), Error> {
        let event = self.session.build_event("aaep:agent.tool.completed", |out| {
            member::text_members(
                out,
                &[("tool", &self.name), ("tool_call_id", self.id.as_str()), ("status", status)],
            );
            summary.write_summaries(out, &self.session.redactor);
            summary.write_optional_companion_text(out, &self.session.redactor, "error_message", error);
            if summary.is_library_text && !self.session.is_english {
                write_english_hint(out);
            }
            member::millis(out, "duration_ms", self.started_at.elapsed());
        });
        let result = self.session.send_intent(Intent::Complete { call: self.id.clone(), event }).await;
        // If the event was rejected, the call is still open, and dropping `self` closes it with a default text.
        self.is_open = result.is_err();
        result.map(drop)
    }

    /// Marks the call as closed without reporting anything.
    fn disarm(mut self) {
        self.is_open = false;
    }
}

impl Drop for ToolCall<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let event = abandoned_tool_event(&self.name, &self.id, ABANDONED_TOOL_SUMMARY);
            let intent = Intent::Complete { call: self.id.clone(), event };
            let session = self.session.inner.key.clone();
            self.session.inner.commands.send(SessionCommand::Submit { session, intent, reply: None });
        }
    }
}

impl fmt::Debug for ToolCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.name, self.id)
    }
}

/// Runs `work`. Returns `None` if the time limit is exceeded.
async fn run_with_timeout<T>(timeout: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match timeout {
        None => Some(work.await),
        Some(timeout) => tokio::time::timeout(timeout, work).await.ok(),
    }
}
