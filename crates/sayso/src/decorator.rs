//! The runtime of `#[sayso::tool]`: one call of a decorated function, from the question to its outcome. It is public only for
//! the macro.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::argument::JsonText;
use crate::consent::{Action, Risk};
pub use crate::current_session::CurrentSession;
use crate::current_session::{current, within};
use crate::error::{CallError, Error};
use crate::localized_text::LocalizedText;
use crate::session::Session;

/// Returns the current session, or an error if there is none.
pub fn current_session() -> Result<CurrentSession, Error> {
    current().ok_or(Error::NoSession)
}

/// Tells the compiler the return type of a body. Always returns `None`.
pub fn expected_return<T>() -> Option<T> {
    None
}

/// The return type of a function with `#[sayso::tool]`.
#[diagnostic::on_unimplemented(
    message = "a tool returns a `Result`, so that a failure can be reported",
    label = "this is not a `Result`"
)]
pub trait ToolReturn {
    /// The value on success.
    type Value;
    /// The error on failure.
    type Error;
}

impl<T, E> ToolReturn for Result<T, E> {
    type Value = T;
    type Error = E;
}

/// One call of a decorated function.
#[must_use = "a builder does nothing by itself"]
pub struct DecoratedCall {
    tool: &'static str,
    risk: Risk,
    says: Option<String>,
    success_summary: Option<String>,
    timeout: Option<Duration>,
    consent: Option<ConsentTerms>,
}

struct ConsentTerms {
    consequence: String,
    irreversible: bool,
    answer_timeout: Option<Duration>,
    arguments: Vec<(&'static str, JsonText)>,
    /// The arguments that are added to the question because no text mentions them, as `name: value`.
    unmentioned: Vec<String>,
}

impl DecoratedCall {
    /// Creates a call to this tool.
    pub fn new(tool: &'static str, risk: Risk) -> Self {
        Self { tool, risk, says: None, success_summary: None, timeout: None, consent: None }
    }

    setters! {
        /// Sets the text that says what the call does.
        says(says: String) => says = Some(says);

        /// Sets the text that is reported on success.
        success_summary(summary: String) => success_summary = Some(summary);

        /// Sets the time limit.
        timeout(timeout: Duration) => timeout = Some(timeout);
    }

    /// Makes the call ask the person first.
    pub fn require_consent(
        mut self,
        consequence: String,
        irreversible: bool,
        answer_timeout: Option<Duration>,
    ) -> Self {
        let (arguments, unmentioned) = (Vec::new(), Vec::new());
        self.consent =
            Some(ConsentTerms { consequence, irreversible, answer_timeout, arguments, unmentioned });
        self
    }

    /// Adds an argument to which the answer is bound.
    pub fn bind_argument(mut self, name: &'static str, bound: JsonText, is_added_to_question: bool) -> Self {
        if let Some(consent) = &mut self.consent {
            if is_added_to_question {
                consent.unmentioned.push(format!("{name}: {bound}"));
            }
            consent.arguments.push((name, bound));
        }
        self
    }

    /// Asks for consent if needed, announces the call, runs it and reports its outcome. `body` is not polled before the person said yes.
    pub async fn run<T, E, F>(self, session: &Session, body: F) -> Result<T, CallError<E>>
    where
        E: fmt::Display,
        F: Future<Output = Result<T, E>>,
    {
        let body = within(session, body);
        let tool_call = match self.consent {
            None => {
                let call = session.tool(self.tool);
                let call = if self.risk == Risk::Low { call } else { call.medium_risk() };
                let call = if let Some(says) = self.says { call.says(says) } else { call };
                call.start().await?
            }
            Some(consent) => {
                let action = consent.into_action(self.tool, self.risk, self.says.unwrap_or_default())?;
                session.ask_and_start(action).await?.map_err(CallError::Refused)?
            }
        };
        tool_call
            .with_success_summary(self.success_summary.map(LocalizedText::new))
            .run(body, self.timeout)
            .await
    }
}

impl ConsentTerms {
    fn into_action(self, tool: &str, risk: Risk, mut says: String) -> Result<Action, Error> {
        // The person must hear everything that the answer is bound to, except confidential arguments.
        if !self.unmentioned.is_empty() {
            says = format!("{says} ({})", self.unmentioned.join(", "));
        }
        let arguments = JsonText::object(self.arguments).into_json()?;
        let action = Action::new(tool, arguments).risk(risk).says(says).consequence(self.consequence);
        Ok(action.with_reversibility_and_timeout(self.irreversible, self.answer_timeout))
    }
}

debug_tuple!(DecoratedCall, tool);
