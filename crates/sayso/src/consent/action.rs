//! What a person is asked for.

use std::fmt;
use std::time::Duration;

use aaep::SessionId;
use aaep::event::{Decision, Reversibility};
use seal::Digest;
use seal::json::Scribe;

use super::{Answer, By, Granted, Refused};
use crate::argument::Bound;
use crate::error::{Error, Malformed, Source, Stop};
use crate::line::{Outcome, Status};
use crate::member::{self, Document};
use crate::redact::Cleaner;
use crate::session::{CallDetails, Rendered, call_details};
use crate::words::Words;

/// How much harm an action could do (§4.3.1).
///
/// ```
/// # let _ =
/// sayso::Action::new("rename", r#"{"file":"a"}"#).risk(sayso::Risk::Medium)
/// # ;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk {
    /// Next to none.
    Low,
    /// Some.
    Medium,
    /// Much: it is never done without consent.
    High,
}

impl Risk {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// What a person is asked for: one exact call of a tool, and in words what it does and what comes of it.
///
/// ```
/// let action = sayso::Action::new("delete", r#"{"record":17}"#)
///     .says("Delete record 17.")
///     .consequence("Nobody can bring it back.")
///     .irreversible();
/// # let _ = action;
/// ```
#[derive(Clone)]
#[must_use = "nobody is asked before the session asks"]
pub struct Action {
    pub(crate) tool: String,
    pub(crate) arguments: String,
    says: Words,
    consequence: Words,
    summary: Option<Words>,
    /// What is said when it is done.
    details: Box<CallDetails>,
    reversibility: Option<Reversibility>,
    timeout: Duration,
    allowed_replies: Vec<Decision>,
    extra_context: Option<Bound>,
}

call_details!(Action);

/// People get time (design, decision 12); and they can ask for more.
const TIMEOUT: Duration = Duration::from_mins(5);

impl Action {
    /// A call of a tool, with its arguments as JSON. It is of high risk if nothing else is said.
    pub fn new(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            arguments: arguments.into(),
            says: Words::default(),
            consequence: Words::default(),
            summary: None,
            details: Box::new(CallDetails::new(Risk::High)),
            reversibility: None,
            timeout: TIMEOUT,
            allowed_replies: Vec::new(),
            extra_context: None,
        }
    }

    setters! {
        /// What would be done, for somebody who sees nothing: `Transfer 500 dollars from checking to savings.` Of [`Words`] the normal
        /// ones are said, in each of their languages; a question is heard in a language that all of its words are in.
        says(says: impl Into<Words>) => says = says.into();

        /// What would come of it: `The money moves at once.`
        consequence(consequence: impl Into<Words>) => consequence = consequence.into();

        /// The question in other words than action and consequence.
        summary(words: impl Into<Words>) => summary = Some(words.into());

        /// What is said when it is being done; what was asked if nothing is said: `Sending 5 euro to Ben.`
        doing(words: impl Into<Words>) => details.words = Some(words.into());

        /// How much harm it could do.
        risk(risk: Risk) => details.risk = risk;

        /// It can never be undone.
        irreversible() => reversibility = Some(Reversibility::Irreversible);

        /// It can be undone.
        reversible() => reversibility = Some(Reversibility::Reversible);

        /// It can be undone, but not easily.
        reversible_with_effort() => reversibility = Some(Reversibility::ReversibleWithEffort);

        /// How long the person has, in whole seconds; five minutes if nothing is said. No answer means no.
        within(time: Duration) => timeout = time;

        /// The answers that are possible; both if not set.
        allowed_replies(replies: impl IntoIterator<Item = Decision>) => allowed_replies = replies.into_iter().collect();

        /// More that may be shown beside the question, as an object. Secrets are taken out of its texts.
        extra_context(context: impl Into<Bound>) => extra_context = Some(context.into());
    }

    /// Whether it can never be undone, and how long the person has, if that is said.
    pub(crate) fn limited(self, irreversible: bool, answer_time: Option<Duration>) -> Self {
        let action = if irreversible { self.irreversible() } else { self };
        Self { timeout: answer_time.unwrap_or(action.timeout), ..action }
    }

    fn is_irreversible(&self) -> bool {
        self.reversibility == Some(Reversibility::Irreversible)
    }

    fn digest(&self) -> Result<Digest, Error> {
        digest(&self.tool, &self.arguments)
    }

    /// The question as the hub takes it.
    pub(crate) fn body(&self, cleaner: &Cleaner, options: &Rendered) -> Result<Document, Error> {
        self.digest()?;
        let mut out = Document::default();
        out.open_object();
        let (action, consequence) = (self.says.cleaned(cleaner), self.consequence.cleaned(cleaner));
        action.write_as(&mut out, "action");
        consequence.write_as(&mut out, "consequence");
        let summary = self.summary.clone().unwrap_or_else(|| action.then(&consequence));
        summary.write(&mut out, cleaner);
        member::count(&mut out, "timeout_seconds", self.timeout.as_secs());
        member::text(&mut out, "default_decision", "reject");
        danger(&mut out, self.details.risk, self.is_irreversible());
        member::texts(&mut out, "allowed_replies", self.allowed_replies.iter().map(Decision::as_str));
        if let Some(context) = self.extra_context.clone() {
            member::json(&mut out, "extra_context", &context.finish()?, cleaner);
        }
        // Said once: with texts in three languages, an event has as many members as it should have at most (§3.7).
        let reversibility = self.reversibility.as_ref().filter(|_| !self.is_irreversible());
        member::optional_text(&mut out, "reversibility", reversibility.map(Reversibility::as_str));
        member::text(&mut out, "tool", &self.tool);
        out.key("arguments").raw(&self.arguments);
        options.write_members(&mut out);
        out.close_object();
        Ok(out)
    }

    /// Writes the members of `tool.invoked` that spend the yes to it.
    pub(crate) fn write_call(&self, out: &mut Scribe, cleaner: &Cleaner) {
        out.key("arguments").raw(&self.arguments);
        self.details.write(out, cleaner, &self.says.in_one_length(), self.is_irreversible());
    }

    pub(crate) fn answered(self, session: &SessionId, outcome: &Outcome) -> Result<Answer, Error> {
        if outcome.status == Status::Stopped {
            return Err(Error::Stopped(Stop::Person));
        }
        // It was asked with a no by default: a yes that no person gave is none.
        let accepted = outcome.by == By::Reply && outcome.is_accepted;
        if outcome.status != Status::Resolved || !accepted {
            return Ok(Answer::Refused(Refused { by: outcome.by }));
        }
        let (session, digest) = (session.clone(), self.digest()?);
        Ok(Answer::Granted(Granted { session, digest, action: Box::new(self) }))
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Action").field("tool", &self.tool).finish_non_exhaustive()
    }
}

pub(crate) fn danger(out: &mut Scribe, risk: Risk, irreversible: bool) {
    member::text(out, "risk_level", risk.word());
    out.key("irreversible").boolean(irreversible);
}

pub(super) fn digest(tool: &str, arguments: &str) -> Result<Digest, Error> {
    let action = aaep::consent::Action::new(tool, arguments);
    action.map(|action| action.digest()).map_err(|why| Error::Malformed(Malformed::Action(Source::new(why))))
}
