//! Tools that a model may call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seal::json::{JsonValue, Tape};

use crate::call_policy::{CallPolicy, call_policy_setters};
use crate::consent::{ConsentRefusal, Risk};
use crate::error::Error;
use crate::session::{self, Session};

type ToolFuture = Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send>>;

/// A function that a model may call. If it is irreversible or high-risk, the person is asked before each call, with the arguments of
/// that call, and it runs only after a yes.
///
/// ```
/// use sayso::Risk;
/// use sayso::openai::{Arguments, Tool};
///
/// async fn send(arguments: Arguments) -> Result<String, std::io::Error> {
///     Ok(format!("sent to {}", arguments.display_text("to")))
/// }
///
/// let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"euro":{"type":"integer"}},"required":["to","euro"]}"#;
/// let tool = Tool::new("send_money", "Sends money from the person's account.", schema, send)
///     .risk(Risk::High)
///     .irreversible()
///     .says(|call| format!("Send {} euros to {}.", call.display_text("euro"), call.display_text("to")))
///     .consequence(|_| "The money leaves your account at once.".to_owned());
/// # let _ = tool;
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing by itself"]
pub struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: String,
    policy: CallPolicy<Arguments>,
    pub(super) timeout: Option<Duration>,
    run: Arc<dyn Fn(Arguments) -> ToolFuture + Send + Sync>,
}

impl Tool {
    /// Creates a tool from its name, its description for the model, the JSON Schema of its arguments, and the function. The model
    /// receives the function's result as text. Bytes that are not UTF-8 count as a failure.
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
        let run = move |arguments: Arguments| -> ToolFuture {
            let work = run(arguments);
            Box::pin(async move { work.await.map(Into::into).map_err(|error| error.to_string()) })
        };
        Self {
            name: name.into(),
            description: description.into(),
            parameters: parameters.into(),
            policy: CallPolicy::new(Risk::Low),
            timeout: None,
            run: Arc::new(run),
        }
    }

    setters! {
        /// Sets how much harm a call can do. The default is low.
        risk(risk: Risk) => policy.risk = risk;

        /// Sets the time limit of a call. The default is [`LoopLimits::tool_timeout`](super::LoopLimits::tool_timeout).
        timeout(timeout: Duration) => timeout = Some(timeout);
    }

    call_policy_setters!(Arguments);

    /// Announces a call. If it is irreversible or high-risk, asks the person first.
    pub(super) async fn announce<'s>(
        &self,
        session: &'s Session,
        arguments: &Arguments,
    ) -> Result<Result<session::ToolCall<'s>, ConsentRefusal>, Error> {
        let (policy, json) = (&self.policy, arguments.json());
        if policy.irreversible || policy.risk == Risk::High {
            let action = policy.action(&self.name, json, arguments, "It could do a lot of harm.");
            return session.ask_and_start(action).await;
        }
        let summary = policy.summary(&self.name, json, arguments);
        let call = session.tool(&self.name).says(session::truncate_text(&summary).into_owned());
        let call = if policy.risk == Risk::Medium { call.medium_risk() } else { call };
        call.start().await.map(Ok)
    }

    pub(super) fn call(&self, arguments: Arguments) -> ToolFuture {
        (self.run)(arguments)
    }
}

debug_tuple!(Tool, name);

/// The arguments of a call: a JSON object that the model wrote.
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
    /// Parses the arguments, which must be an object to which an answer can be bound.
    pub(super) fn parse(tool: &str, json: &str) -> Result<Self, String> {
        // Some models send an empty string if there are no arguments.
        let json = if json.trim().is_empty() { "{}" } else { json };
        let mut tape = Tape::default();
        let doc = tape.read(json).map_err(|error| format!("they are not JSON: {error}"))?;
        if doc.root().kind() != seal::json::JsonKind::Object {
            return Err(format!("they are {} and not an object", doc.root().kind().with_article()));
        }
        // Ambiguous JSON is rejected, because the person consents to one reading of it.
        aaep::consent::BoundAction::new(tool, json).map_err(|error| error.to_string())?;
        Ok(Self(json.into()))
    }

    /// Returns the arguments as JSON.
    pub fn json(&self) -> &str {
        &self.0
    }

    /// Returns a member that is a string.
    pub fn text(&self, name: &str) -> Option<String> {
        self.with_member(name, |value| value.text().map(std::borrow::Cow::into_owned)).flatten()
    }

    /// Returns a member that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.with_member(name, |value| value.as_number().map(|number| number.as_f64())).flatten()
    }

    /// Returns a member that is a boolean.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.with_member(name, |value| value.as_bool()).flatten()
    }

    /// Returns a member for display: a text unchanged, any other value as JSON, and `nothing` if it is missing.
    pub fn display_text(&self, name: &str) -> String {
        let text = self.with_member(name, |value| {
            value.text().map_or_else(|| value.source().to_owned(), std::borrow::Cow::into_owned)
        });
        text.unwrap_or_else(|| "nothing".to_owned())
    }

    fn with_member<T>(&self, name: &str, read: impl FnOnce(JsonValue<'_>) -> T) -> Option<T> {
        let mut tape = Tape::default();
        let doc = tape.read(&self.0).ok()?;
        doc.root().member(name).map(read)
    }
}
