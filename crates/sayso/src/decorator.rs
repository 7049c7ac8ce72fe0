//! What `#[sayso::tool]` calls: one call of a function, from the question to its end. It is public for the macro's sake only.

use std::fmt;
use std::future::Future;
use std::time::Duration;

pub use crate::ambient::Current;
use crate::ambient::{current, within};
use crate::argument::Bound;
use crate::consent::{Action, Risk};
use crate::error::{CallError, Error};
use crate::session::Session;
use crate::words::Words;

/// The session that is carried to the function.
pub fn session() -> Result<Current, Error> {
    current().ok_or(Error::NoSession)
}

/// Tells the compiler what a body returns; there is never one.
pub fn expected<T>() -> Option<T> {
    None
}

/// What a function with `#[sayso::tool]` returns.
#[diagnostic::on_unimplemented(
    message = "a tool returns a `Result`, so that it can be told whether it failed",
    label = "this is no `Result`"
)]
pub trait Returns {
    /// What it gives.
    type Value;
    /// Why it failed.
    type Error;
}

impl<T, E> Returns for Result<T, E> {
    type Value = T;
    type Error = E;
}

/// One call of such a function.
#[must_use = "a builder does nothing by itself"]
pub struct Decorated {
    tool: &'static str,
    risk: Risk,
    says: Option<String>,
    done: Option<String>,
    limit: Option<Duration>,
    asks: Option<Asks>,
}

struct Asks {
    consequence: String,
    irreversible: bool,
    patience: Option<Duration>,
    arguments: Vec<(&'static str, Bound)>,
    /// Of them, those that the person does not hear otherwise.
    unsaid: Vec<String>,
}

impl Decorated {
    /// A call of this tool.
    pub fn new(tool: &'static str, risk: Risk) -> Self {
        Self { tool, risk, says: None, done: None, limit: None, asks: None }
    }

    setters! {
        /// What it does.
        says(says: String) => says = Some(says);

        /// What is told when it is done.
        done(done: String) => done = Some(done);

        /// How long it may take.
        within(limit: Duration) => limit = Some(limit);
    }

    /// The person is asked before.
    pub fn asks(mut self, consequence: String, irreversible: bool, patience: Option<Duration>) -> Self {
        let (arguments, unsaid) = (Vec::new(), Vec::new());
        self.asks = Some(Asks { consequence, irreversible, patience, arguments, unsaid });
        self
    }

    /// An argument that the answer is bound to.
    pub fn bind(mut self, name: &'static str, bound: Bound, unsaid: bool) -> Self {
        if let Some(asks) = &mut self.asks {
            if unsaid {
                asks.unsaid.push(format!("{name}: {bound}"));
            }
            asks.arguments.push((name, bound));
        }
        self
    }

    /// Asks if it must, announces, runs, and reports. Until the person has said yes, `body` is not polled.
    pub async fn run<T, E, F>(self, session: &Session, body: F) -> Result<T, CallError<E>>
    where
        E: fmt::Display,
        F: Future<Output = Result<T, E>>,
    {
        let body = within(session, body);
        let open = match self.asks {
            None => {
                let call = session.tool(self.tool);
                let call = if self.risk == Risk::Low { call } else { call.medium_risk() };
                let call = if let Some(says) = self.says { call.says(says) } else { call };
                call.start().await?
            }
            Some(asks) => {
                let action = asks.action(self.tool, self.risk, self.says.unwrap_or_default())?;
                session.ask_and_begin(action).await?.map_err(CallError::Refused)?
            }
        };
        open.success(self.done.map(Words::new)).run(body, self.limit).await
    }
}

impl Asks {
    fn action(self, tool: &str, risk: Risk, mut says: String) -> Result<Action, Error> {
        // Nobody consents to what was not said.
        if !self.unsaid.is_empty() {
            says = format!("{says} ({})", self.unsaid.join(", "));
        }
        let arguments = Bound::record(self.arguments).finish()?;
        let action = Action::new(tool, arguments).risk(risk).says(says).consequence(self.consequence);
        Ok(action.limited(self.irreversible, self.patience))
    }
}

debug_tuple!(Decorated, tool);
