//! The action that a person is asked to allow.

use std::fmt;
use std::time::Duration;

use aaep::SessionId;
use aaep::event::{Decision, Reversibility};
use seal::Digest;
use seal::json::TapeWriter;

use super::{Answer, ConsentRefusal, Granted, ResolvedBy};
use crate::argument::JsonText;
use crate::error::{Error, MalformedInput, SharedError, StopReason};
use crate::localized_text::LocalizedText;
use crate::member::{self, Document};
use crate::redact::CountingRedactor;
use crate::session::{RenderedOptions, ToolCallDetails, tool_call_details_setters};
use crate::transport::{OutcomeStatus, ReplyOutcome};

/// How much harm an action can do (§4.3.1).
///
/// ```
/// # let _ =
/// sayso::Action::new("rename", r#"{"file":"a"}"#).risk(sayso::Risk::Medium)
/// # ;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// Hardly any.
    Low,
    /// Some.
    Medium,
    /// A lot. A high-risk action always needs consent.
    High,
}

impl Risk {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// An action that a person is asked to allow: one exact tool call, with texts that say what it does and what its consequence is.
///
/// ```
/// let action = sayso::Action::new("delete", r#"{"record":17}"#)
///     .says("Delete record 17.")
///     .consequence("It cannot be restored.")
///     .irreversible();
/// # let _ = action;
/// ```
#[derive(Clone)]
#[must_use = "the person is not asked until `Session::ask` is called"]
pub struct Action {
    pub(crate) tool: String,
    pub(crate) arguments: String,
    says: LocalizedText,
    consequence: LocalizedText,
    summary: Option<LocalizedText>,
    /// Describes the call when it is announced.
    pub(crate) details: Box<ToolCallDetails>,
    reversibility: Option<Reversibility>,
    timeout: Duration,
    allowed_replies: Vec<Decision>,
    extra_context: Option<JsonText>,
}

tool_call_details_setters!(Action);

/// The default time to answer (decision 12). The person can ask for more.
const DEFAULT_ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

impl Action {
    /// Creates a tool call with its arguments as JSON. The default risk is high.
    pub fn new(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            arguments: arguments.into(),
            says: LocalizedText::default(),
            consequence: LocalizedText::default(),
            summary: None,
            details: Box::new(ToolCallDetails::new(Risk::High)),
            reversibility: None,
            timeout: DEFAULT_ANSWER_TIMEOUT,
            allowed_replies: Vec::new(),
            extra_context: None,
        }
    }

    setters! {
        /// Sets the text that says what the call does, for somebody who cannot see the screen: `Transfer 500 dollars from checking to
        /// savings.` Only the normal text of [`LocalizedText`] is used, in each language. A question is heard only in a language that
        /// all its texts have.
        says(says: impl Into<LocalizedText>) => says = says.into();

        /// Sets the text that says what the consequence of the call is: `The money moves at once.`
        consequence(consequence: impl Into<LocalizedText>) => consequence = consequence.into();

        /// Sets the text of the question. The default is the action followed by its consequence.
        summary(text: impl Into<LocalizedText>) => summary = Some(text.into());

        /// Sets the text that announces the call, such as `Sending 5 euros to Ben.` The default is the text that
        /// [`says`](Self::says) sets.
        invocation_summary(text: impl Into<LocalizedText>) => details.summary = Some(text.into());

        /// Sets how much harm the call can do.
        risk(risk: Risk) => details.risk = risk;

        /// Marks the call as one that cannot be undone.
        irreversible() => reversibility = Some(Reversibility::Irreversible);

        /// Marks the call as one that can be undone.
        reversible() => reversibility = Some(Reversibility::Reversible);

        /// Marks the call as one that can be undone, but not easily.
        reversible_with_effort() => reversibility = Some(Reversibility::ReversibleWithEffort);

        /// Sets how long the person has to answer, in whole seconds. The default is five minutes. No answer counts as no.
        answer_timeout(timeout: Duration) => timeout = timeout;

        /// Sets the possible answers. The default is both.
        allowed_replies(replies: impl IntoIterator<Item = Decision>) => allowed_replies = replies.into_iter().collect();

        /// Sets an object with more information to show beside the question. Secrets are removed from its texts.
        extra_context(context: impl Into<JsonText>) => extra_context = Some(context.into());
    }

    /// Sets whether the call is irreversible and, if given, how long the person has to answer.
    pub(crate) fn with_reversibility_and_timeout(
        self,
        irreversible: bool,
        answer_timeout: Option<Duration>,
    ) -> Self {
        let action = if irreversible { self.irreversible() } else { self };
        Self { timeout: answer_timeout.unwrap_or(action.timeout), ..action }
    }

    fn is_irreversible(&self) -> bool {
        self.reversibility == Some(Reversibility::Irreversible)
    }

    fn digest(&self) -> Result<Digest, Error> {
        digest(&self.tool, &self.arguments)
    }

    /// Returns the body of the request that asks the hub to open the question.
    pub(crate) fn to_request_body(
        &self,
        redactor: &CountingRedactor,
        options: &RenderedOptions,
    ) -> Result<Document, Error> {
        // Rejects a call to which an answer cannot be bound.
        self.digest()?;
        let mut out = Document::default();
        out.open_object();
        let (action, consequence) = (self.says.redacted(redactor), self.consequence.redacted(redactor));
        action.write_as(&mut out, "action");
        consequence.write_as(&mut out, "consequence");
        let summary = self.summary.clone().unwrap_or_else(|| action.concat(&consequence));
        summary.write_summaries(&mut out, redactor);
        member::count(&mut out, "timeout_seconds", self.timeout.as_secs());
        member::text(&mut out, "default_decision", "reject");
        write_risk(&mut out, self.details.risk, self.is_irreversible());
        member::texts(&mut out, "allowed_replies", self.allowed_replies.iter().map(Decision::as_str));
        if let Some(context) = self.extra_context.clone() {
            member::json(&mut out, "extra_context", &context.into_json()?, redactor);
        }
        // For an irreversible action, `irreversible` says enough. Without `reversibility`, an event with texts in three languages
        // does not exceed the number of members that §3.7 recommends.
        let reversibility = self.reversibility.as_ref().filter(|_| !self.is_irreversible());
        member::optional_text(&mut out, "reversibility", reversibility.map(Reversibility::as_str));
        member::text(&mut out, "tool", &self.tool);
        // With the id, the answer covers only the call with this id.
        member::optional_text(
            &mut out,
            "tool_call_id",
            self.details.call_id.as_ref().map(aaep::ToolCallId::as_str),
        );
        out.key("arguments").raw(&self.arguments);
        options.write_members(&mut out);
        out.close_object();
        Ok(out)
    }

    /// Writes the members of `tool.invoked` that spend the consent to this action.
    pub(crate) fn write_call(&self, out: &mut TapeWriter, redactor: &CountingRedactor) {
        out.key("arguments").raw(&self.arguments);
        self.details.write(out, redactor, &self.says.normal_only(), self.is_irreversible());
    }

    pub(crate) fn into_answer(self, session: &SessionId, outcome: ReplyOutcome) -> Result<Answer, Error> {
        if outcome.status == OutcomeStatus::Stopped {
            return Err(Error::Stopped(StopReason::Person));
        }
        // The default decision is reject, so an acceptance that no person sent does not count.
        let is_accepted = outcome.by == ResolvedBy::Reply && outcome.is_accepted;
        if outcome.status != OutcomeStatus::Resolved || !is_accepted {
            return Ok(Answer::Refused(ConsentRefusal { by: outcome.by, receipt: outcome.receipt }));
        }
        let (session, digest) = (session.clone(), self.digest()?);
        Ok(Answer::Granted(Granted { session, digest, action: Box::new(self), receipt: outcome.receipt }))
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Action").field("tool", &self.tool).finish_non_exhaustive()
    }
}

pub(crate) fn write_risk(out: &mut TapeWriter, risk: Risk, irreversible: bool) {
    member::text(out, "risk_level", risk.as_str());
    out.key("irreversible").boolean(irreversible);
}

pub(super) fn digest(tool: &str, arguments: &str) -> Result<Digest, Error> {
    let action = aaep::consent::BoundAction::new(tool, arguments);
    action
        .map(|action| action.digest())
        .map_err(|error| Error::Malformed(MalformedInput::Action(SharedError::new(error))))
}
