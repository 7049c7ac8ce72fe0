//! What a model may call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seal::json::{Tape, Value};

use crate::consent::{Refused, Risk};
use crate::error::Error;
use crate::policy::{CallPolicy, call_policy};
use crate::session::{self, Session};

type Work = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send>>;

/// A function that a model may call. What is irreversible or of high risk is asked for before each call, with the very
/// arguments of that call, and is not run without a yes.
///
/// ```
/// use sayso::Risk;
/// use sayso::openai::{Arguments, Tool};
///
/// async fn send(arguments: Arguments) -> Result<String, std::io::Error> {
///     Ok(format!("sent to {}", arguments.words("to")))
/// }
///
/// let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"euro":{"type":"integer"}},"required":["to","euro"]}"#;
/// let tool = Tool::new("send_money", "Sends money from the person's account.", schema, send)
///     .risk(Risk::High)
///     .irreversible()
///     .says(|call| format!("Send {} euro to {}.", call.words("euro"), call.words("to")))
///     .consequence(|_| "The money is gone at once.".to_owned());
/// # let _ = tool;
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing by itself"]
pub struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: String,
    policy: CallPolicy<Arguments>,
    pub(super) limit: Option<Duration>,
    run: Arc<dyn Fn(Arguments) -> Work + Send + Sync>,
}

impl Tool {
    /// A tool: its name, what it does in words for the model, the JSON Schema of its arguments, and the function. Whatever
    /// the function gives is text for the model; bytes that are no text are told as a failure.
    pub fn new<T, E, F>(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: impl Into<String>,
        run: impl Fn(Arguments) -> F + Send + Sync + 'static,
    ) -> Self
    where
        T: Into<Vec<u8>>,
        E: fmt::Display,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let run = move |arguments: Arguments| -> Work {
            let work = run(arguments);
            Box::pin(async move { work.await.map(Into::into).map_err(|error| error.to_string()) })
        };
        Self {
            name: name.into(),
            description: description.into(),
            parameters: parameters.into(),
            policy: CallPolicy::new(Risk::Low),
            limit: None,
            run: Arc::new(run),
        }
    }

    setters! {
        /// How much harm it could do; little, if nothing is said.
        risk(risk: Risk) => policy.risk = risk;

        /// How long a call may take; [`Limits::tool_time`](super::Limits::tool_time) if nothing is said.
        within(limit: Duration) => limit = Some(limit);
    }

    call_policy!(Arguments);

    /// Says that a call is made; what is dangerous, only after a person's yes to this very call.
    pub(super) async fn open<'s>(
        &self,
        session: &'s Session,
        arguments: &Arguments,
    ) -> Result<Result<session::Tool<'s>, Refused>, Error> {
        let (policy, written) = (&self.policy, arguments.json());
        if policy.irreversible || policy.risk == Risk::High {
            let action = policy.action(&self.name, written, arguments, "It could do much harm.");
            return session.ask_and_begin(action).await;
        }
        let words = policy.words(&self.name, written, arguments);
        let call = session.tool(&self.name).says(session::short(&words).into_owned());
        let call = if policy.risk == Risk::Medium { call.medium_risk() } else { call };
        call.start().await.map(Ok)
    }

    pub(super) fn call(&self, arguments: Arguments) -> Work {
        (self.run)(arguments)
    }
}

debug_tuple!(Tool, name);

/// The arguments of a call: a JSON object, as the model wrote it.
///
/// ```
/// # use sayso::openai::{Arguments, Tool};
/// async fn book(arguments: Arguments) -> Result<String, &'static str> {
///     let nights = arguments.number("nights").ok_or("for how many nights?")?;
///     Ok(format!("{nights} nights in {}", arguments.text("city").ok_or("in which city?")?))
/// }
/// # let _ = Tool::new("book", "Books a room.", r#"{"type":"object"}"#, book);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments(Arc<str>);

impl Arguments {
    /// The object, if it is one that an answer can be bound to.
    pub(super) fn parse(tool: &str, written: &str) -> Result<Self, String> {
        // A model that has nothing to say about arguments says nothing.
        let written = if written.trim().is_empty() { "{}" } else { written };
        let mut tape = Tape::default();
        let doc = tape.read(written).map_err(|error| format!("they are not JSON: {error}"))?;
        if doc.root().kind() != seal::json::Kind::Object {
            return Err(format!("they are {} and not an object", doc.root().kind().word()));
        }
        // Nothing may be readable in two ways: the person consents to one.
        aaep::consent::Action::new(tool, written).map_err(|error| error.to_string())?;
        Ok(Self(written.into()))
    }

    /// As JSON.
    pub fn json(&self) -> &str {
        &self.0
    }

    /// A member that is a text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.with(name, |value| value.text().map(std::borrow::Cow::into_owned)).flatten()
    }

    /// A member that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.with(name, |value| value.number().map(|number| number.as_f64())).flatten()
    }

    /// A member that is yes or no.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.with(name, |value| value.boolean()).flatten()
    }

    /// A member as it can be said: a text as it is, anything else as it is written, and `nothing` if it is not there.
    pub fn words(&self, name: &str) -> String {
        let said = self.with(name, |value| {
            value.text().map_or_else(|| value.source().to_owned(), std::borrow::Cow::into_owned)
        });
        said.unwrap_or_else(|| "nothing".to_owned())
    }

    fn with<T>(&self, name: &str, look: impl FnOnce(Value<'_>) -> T) -> Option<T> {
        let mut tape = Tape::default();
        let doc = tape.read(&self.0).ok()?;
        doc.root().member(name).map(look)
    }
}
