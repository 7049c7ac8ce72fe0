//! What a person is asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seal::Digest;
use seal::json::Writer;

use super::{Answer, By, Granted, Refused};
use crate::desk::member;
use crate::error::{Error, Stop};
use crate::redact::Cleaner;
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
pub struct Action {
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) says: Words,
    consequence: Words,
    summary: Option<Words>,
    pub(super) doing: Option<Words>,
    pub(super) risk: Risk,
    pub(super) undone: Undone,
    timeout: Duration,
}

/// Whether an action can be undone (§4.4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Undone {
    /// Nothing is said of it.
    Unsaid,
    Easily,
    WithEffort,
    Never,
}

impl Undone {
    fn word(self) -> Option<&'static str> {
        match self {
            Self::Unsaid => None,
            Self::Easily => Some("reversible"),
            Self::WithEffort => Some("reversible_with_effort"),
            Self::Never => Some("irreversible"),
        }
    }
}

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
            doing: None,
            risk: Risk::High,
            undone: Undone::Unsaid,
            timeout: TIMEOUT,
        }
    }

    /// What would be done, for somebody who sees nothing: `Transfer 500 dollars from checking to savings.` Of [`Words`] the normal
    /// ones are said, in each of their languages; a question is heard in a language that all of its words are in.
    #[must_use]
    pub fn says(mut self, says: impl Into<Words>) -> Self {
        self.says = says.into();
        self
    }

    /// What would come of it: `The money moves at once.`
    #[must_use]
    pub fn consequence(mut self, consequence: impl Into<Words>) -> Self {
        self.consequence = consequence.into();
        self
    }

    /// The question in other words than action and consequence.
    #[must_use]
    pub fn summary(mut self, words: impl Into<Words>) -> Self {
        self.summary = Some(words.into());
        self
    }

    /// What is said when it is being done; what was asked if nothing is said: `Sending 5 euro to Ben.`
    #[must_use]
    pub fn doing(mut self, words: impl Into<Words>) -> Self {
        self.doing = Some(words.into());
        self
    }

    /// How much harm it could do.
    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }

    /// It can never be undone.
    #[must_use]
    pub fn irreversible(mut self) -> Self {
        self.undone = Undone::Never;
        self
    }

    /// It can be undone.
    #[must_use]
    pub fn reversible(mut self) -> Self {
        self.undone = Undone::Easily;
        self
    }

    /// It can be undone, but not easily.
    #[must_use]
    pub fn reversible_with_effort(mut self) -> Self {
        self.undone = Undone::WithEffort;
        self
    }

    /// How long the person has, in whole seconds; five minutes if nothing is said. No answer means no.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    fn digest(&self) -> Result<Digest, Error> {
        digest(&self.tool, &self.arguments)
    }

    /// The question as the hub takes it.
    pub(crate) fn body(&self, cleaner: &Cleaner) -> Result<String, Error> {
        self.digest()?;
        let mut out = Writer::default();
        out.open_object();
        let (action, consequence) = (self.says.cleaned(cleaner), self.consequence.cleaned(cleaner));
        action.write_as(&mut out, "action");
        consequence.write_as(&mut out, "consequence");
        let summary = self.summary.clone().unwrap_or_else(|| action.then(&consequence));
        summary.write(&mut out, cleaner);
        out.key("timeout_seconds");
        out.integer(i64::try_from(self.timeout.as_secs()).unwrap_or(i64::MAX));
        out.key("default_decision");
        out.text("reject");
        danger(&mut out, self.risk, self.undone == Undone::Never);
        // Said once: with texts in three languages, an event has as many members as it should have at most (§3.7).
        if let Some(word) = self.undone.word().filter(|_| self.undone != Undone::Never) {
            out.key("reversibility");
            out.text(word);
        }
        out.key("tool");
        out.text(&self.tool);
        out.key("arguments");
        out.raw(&self.arguments);
        out.close_object();
        Ok(out.finish())
    }

    /// What came of the question.
    pub(crate) fn answered(self, session: &Arc<str>, outcome: &str) -> Result<Answer, Error> {
        let status = member(outcome, "status");
        if status.as_deref() == Some("stopped") {
            return Err(Error::Stopped(Stop::Person));
        }
        let by = By::of(member(outcome, "by").as_deref().unwrap_or_default());
        // It was asked with a no by default: a yes that no person gave is none.
        let accepted = by == By::Reply && member(outcome, "decision").as_deref() == Some("accept");
        if status.as_deref() != Some("resolved") || !accepted {
            return Ok(Answer::Refused(Refused { by }));
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

pub(crate) fn danger(out: &mut Writer, risk: Risk, irreversible: bool) {
    out.key("risk_level");
    out.text(risk.word());
    out.key("irreversible");
    out.boolean(irreversible);
}

pub(super) fn digest(tool: &str, arguments: &str) -> Result<Digest, Error> {
    let action = aaep::consent::Action::new(tool, arguments);
    action.map(|action| action.digest()).map_err(|why| Error::Malformed(why.to_string()))
}
