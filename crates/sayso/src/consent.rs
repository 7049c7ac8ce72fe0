//! Consent as a value: what is asked, what is answered, and the one call that a yes allows.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seal::Digest;
use seal::json::Writer;

use crate::desk::member;
use crate::error::{Error, NotGranted, Stop};
use crate::redact::Cleaner;
use crate::words::Words;

#[cfg(test)]
mod tests;

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
    tool: String,
    arguments: String,
    says: Words,
    consequence: Words,
    summary: Option<Words>,
    doing: Option<Words>,
    risk: Risk,
    undone: Undone,
    timeout: Duration,
}

/// Whether an action can be undone (§4.4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Undone {
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
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("send", r#"{"to":"Ben","amount":"5.00"}"#)
    /// # ;
    /// ```
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
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euro to Ben.")
    /// # ;
    /// ```
    #[must_use]
    pub fn says(mut self, says: impl Into<Words>) -> Self {
        self.says = says.into();
        self
    }

    /// What would come of it: `The money moves at once.`
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("send", r#"{"to":"Ben"}"#).consequence("The money is gone at once.")
    /// # ;
    /// ```
    #[must_use]
    pub fn consequence(mut self, consequence: impl Into<Words>) -> Self {
        self.consequence = consequence.into();
        self
    }

    /// The question in other words than action and consequence.
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("send", r#"{"to":"Ben"}"#).summary(sayso::Words::new("May I pay Ben?").terse("Pay Ben?"))
    /// # ;
    /// ```
    #[must_use]
    pub fn summary(mut self, words: impl Into<Words>) -> Self {
        self.summary = Some(words.into());
        self
    }

    /// What is said when it is being done; what was asked if nothing is said: `Sending 5 euro to Ben.`
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euro to Ben.").doing("Sending 5 euro to Ben.")
    /// # ;
    /// ```
    #[must_use]
    pub fn doing(mut self, words: impl Into<Words>) -> Self {
        self.doing = Some(words.into());
        self
    }

    /// How much harm it could do.
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("rename", r#"{"file":"a"}"#).risk(sayso::Risk::Low)
    /// # ;
    /// ```
    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.risk = risk;
        self
    }

    /// It can never be undone.
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("delete", r#"{"record":17}"#).irreversible()
    /// # ;
    /// ```
    #[must_use]
    pub fn irreversible(mut self) -> Self {
        self.undone = Undone::Never;
        self
    }

    /// It can be undone.
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("rename", r#"{"file":"a"}"#).reversible()
    /// # ;
    /// ```
    #[must_use]
    pub fn reversible(mut self) -> Self {
        self.undone = Undone::Easily;
        self
    }

    /// It can be undone, but not easily.
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("book", r#"{"room":17}"#).reversible_with_effort()
    /// # ;
    /// ```
    #[must_use]
    pub fn reversible_with_effort(mut self) -> Self {
        self.undone = Undone::WithEffort;
        self
    }

    /// How long the person has, in whole seconds; five minutes if nothing is said. No answer means no.
    ///
    /// ```
    /// # let _ =
    /// sayso::Action::new("send", r#"{"to":"Ben"}"#).within(std::time::Duration::from_secs(90))
    /// # ;
    /// ```
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

fn digest(tool: &str, arguments: &str) -> Result<Digest, Error> {
    let action = aaep::consent::Action::new(tool, arguments);
    action.map(|action| action.digest()).map_err(|why| Error::Malformed(why.to_string()))
}

/// What a person answered.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let hub = sayso::Hub::embedded().open()?;
/// # let session = hub.session("Pay Ben.").start().await?;
/// use sayso::{Action, Answer};
/// let action = Action::new("send", r#"{"to":"Ben"}"#).says("Send 5 euro to Ben.").consequence("They are gone at once.");
/// match session.ask(action).await? {
///     Answer::Granted(granted) => println!("{} may be called.", granted.tool()),
///     // Nobody listens here, and that means no.
///     Answer::Refused(why) => assert_eq!(why.to_string(), "nobody could be asked"),
/// }
/// # session.cancel("Nothing was sent.").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing was done yet"]
pub enum Answer {
    /// Yes, to exactly this call.
    Granted(Granted),
    /// No, or nothing; which means no.
    Refused(Refused),
}

/// Why something may not be done.
///
/// ```
/// use sayso::{By, Refused};
/// assert_eq!(Refused { by: By::Reply }.to_string(), "the person refused");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// How it came about.
    pub by: By,
}

/// How an answer came about.
///
/// ```
/// use sayso::By;
///
/// /// Whether it makes sense to ask once more.
/// fn later(by: By) -> bool {
///     matches!(by, By::Timeout | By::Closure | By::Unreachable)
/// }
/// assert!(!later(By::Reply));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// A person said so.
    Reply,
    /// Nobody answered in time.
    Timeout,
    /// Those who could have answered left.
    Closure,
    /// Nobody listens who could have been asked.
    Unreachable,
    /// The session ended before.
    Cancelled,
    /// In a way that this version does not know.
    Other,
}

impl By {
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "reply" => Self::Reply,
            "timeout" => Self::Timeout,
            "closure" => Self::Closure,
            "unreachable" => Self::Unreachable,
            "cancelled" => Self::Cancelled,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            By::Reply => "the person refused",
            By::Timeout => "nobody answered in time",
            By::Closure => "those who could have answered left",
            By::Unreachable => "nobody could be asked",
            By::Cancelled => "the session ended before the answer",
            By::Other => "it was refused",
        })
    }
}

/// A refusal in plain words for a model that wanted something.
#[cfg(any(feature = "openai", feature = "rig"))]
pub(crate) fn told_to_model(why: &str) -> String {
    let mut why = why.to_owned();
    if let Some(first) = why.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{why}. The tool was not run. Do not call it again for this unless the person asks for it.")
}

/// A person's yes to one exact call. It owns the call; it is spent by [`Session::call`](crate::Session::call) or
/// [`Session::begin`](crate::Session::begin), and with it goes. There is no other way to have one than to ask:
///
/// ```compile_fail,E0451
/// let forged = sayso::Granted { session: "sess_1".into() };
/// ```
///
/// nor to have it twice:
///
/// ```compile_fail,E0599
/// fn twice(granted: sayso::Granted) -> (sayso::Granted, sayso::Granted) {
///     (granted.clone(), granted)
/// }
/// ```
///
/// It is asked for and spent:
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/person.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sayso::Error> {
/// # let (hub, session) = heard().await;
/// # let action = sending();
/// use sayso::Answer;
/// // Somebody listens here, and says yes.
/// let Answer::Granted(granted) = session.ask(action).await? else { panic!("it is no yes") };
/// let sent = session.call(granted, async |arguments| Ok::<_, std::io::Error>(arguments)).await;
/// assert_eq!(sent.unwrap(), r#"{"to":"Ben"}"#);
/// # session.finish("It is sent.").await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a consent that is not spent does nothing"]
pub struct Granted {
    session: Arc<str>,
    digest: Digest,
    action: Box<Action>,
}

impl Granted {
    /// The tool that may be called.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/person.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), sayso::Error> {
    /// # let (hub, session) = heard().await;
    /// # let granted = granted(&session).await;
    /// assert_eq!(granted.tool(), "send");
    /// # Ok(())
    /// # }
    /// ```
    pub fn tool(&self) -> &str {
        &self.action.tool
    }

    /// The arguments with which it may be called, as JSON.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/person.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), sayso::Error> {
    /// # let (hub, session) = heard().await;
    /// # let granted = granted(&session).await;
    /// assert_eq!(granted.arguments(), r#"{"to":"Ben"}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn arguments(&self) -> &str {
        &self.action.arguments
    }

    /// Itself, if it is for exactly this call; else it is gone, for somebody is about to do something that nobody allowed.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/person.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), sayso::Error> {
    /// # let (hub, session) = heard().await;
    /// # let granted = granted(&session).await;
    /// use sayso::{Error, NotGranted};
    /// let granted = granted.only_for("send", r#"{"to":"Ben"}"#)?;
    /// let other = granted.only_for("send", r#"{"to":"Eve"}"#);
    /// assert_eq!(other.unwrap_err(), Error::NotGranted(NotGranted::OtherAction));
    /// # Ok(())
    /// # }
    /// ```
    pub fn only_for(self, tool: &str, arguments: &str) -> Result<Self, Error> {
        if digest(tool, arguments)? == self.digest {
            Ok(self)
        } else {
            Err(Error::NotGranted(NotGranted::OtherAction))
        }
    }

    /// The call that it was given for: the tool, its arguments, and the payload of `tool.invoked` that spends it.
    pub(crate) fn spend(self, session: &Arc<str>, cleaner: &Cleaner) -> Result<Spent, Error> {
        if *self.session != **session {
            return Err(Error::NotGranted(NotGranted::OtherSession));
        }
        let Action { tool, arguments, says, doing, risk, undone, .. } = *self.action;
        let mut out = Writer::default();
        out.open_object();
        out.key("arguments");
        out.raw(&arguments);
        danger(&mut out, risk, undone == Undone::Never);
        match doing {
            Some(doing) => doing.write(&mut out, cleaner),
            None => says.cleaned(cleaner).write_as(&mut out, "summary_normal"),
        }
        out.close_object();
        Ok(Spent { tool, arguments, payload: out.finish() })
    }
}

/// A consent that is being used.
pub(crate) struct Spent {
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) payload: String,
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "consent to {} in {}", self.action.tool, self.session)
    }
}
