//! An adapter for agents of [rig](https://docs.rs/rig-agent): rig's own loop runs as it is, and people hear it and are asked.
//!
//! - A tool that is dangerous is wrapped by [`Adapter::asks`]. It asks with the very arguments with which it is then run,
//!   after all hooks of the agent; and where nobody can be asked, it is not run. It needs nothing else to be safe.
//! - [`Adapter::prompt`] and [`Adapter::drive`] run the agent: what the model says is heard as it comes, tools that are not
//!   wrapped are told before they run and when they end, and a tool that does not exist is told as well.
//!
//! ```
//! # struct Delete;
//! # impl rig_core::tool::PortableTool for Delete {
//! #     const NAME: &'static str = "delete";
//! #     type Args = u64;
//! #     type Output = String;
//! #     type Error = std::io::Error;
//! #     fn description(&self) -> String { "Deletes a record.".to_owned() }
//! #     fn parameters(&self) -> rig_core::serde_json::Value { rig_core::serde_json::json!({ "type": "integer" }) }
//! #     async fn call(&self, record: u64) -> Result<String, std::io::Error> { Ok(format!("{record} is gone")) }
//! # }
//! # #[cfg(feature = "rig-http")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let hub = sayso::Hub::embedded().open()?;
//! # let model = rig_core::providers::openai::OpenAIConfig::new("none").with_base_url(testing::model::endpoint()).client().chat("any");
//! let adapter = sayso::rig::Adapter::new(&hub);
//! // `Delete` is a tool of rig; this agent does not use it without a yes.
//! let delete = adapter.asks(Delete).irreversible().says(|record| format!("Delete record {record}."));
//! let agent = rig_agent::AgentBuilder::new(model).tool(delete).build();
//! let response = adapter.prompt(&agent, "Good morning.").await?;
//! assert_eq!(response.output(), "Good morning.");
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "rig-http"))]
//! # fn main() {}
//! ```
//!
//! - `asking`: the wrapper. `hook`: what rig tells while it runs. `line`: from both to the session.

mod asking;
mod hook;
mod line;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rig_agent::agent::{Agent, AgentRunner, MultiTurnStreamItem, PromptResponse};
use rig_agent::completion::PromptError;
use rig_core::streaming::{Item, StreamEvent};
use rig_core::tool::{Tool, ToolContext};

pub use asking::Asking;
pub use {rig_agent, rig_core};

use crate::hub::Hub;
use crate::session::{Cause, Failure, Session};
use hook::Narrator;
use line::{Lines, Slot};

/// The way from agents of rig to a hub.
///
/// ```
/// use rig_core::tool::PortableTool;
/// use sayso::{Hub, rig::Adapter};
///
/// struct Delete;
///
/// impl PortableTool for Delete {
///     const NAME: &'static str = "delete";
///     type Args = u64;
///     type Output = String;
///     type Error = std::io::Error;
///
///     fn description(&self) -> String {
///         "Deletes a record.".to_owned()
///     }
///
///     fn parameters(&self) -> rig_core::serde_json::Value {
///         rig_core::serde_json::json!({ "type": "integer" })
///     }
///
///     async fn call(&self, record: u64) -> Result<String, std::io::Error> {
///         Ok(format!("{record} is gone"))
///     }
/// }
///
/// let hub = Hub::embedded().agent("records").open()?;
/// let adapter = Adapter::new(&hub);
/// let delete = adapter.asks(Delete).irreversible().says(|record| format!("Delete record {record}."));
/// // `AgentBuilder::new(model).tool(delete).build()` is an agent that deletes nothing without a yes.
/// # let _ = delete;
/// # Ok::<(), sayso::Error>(())
/// ```
#[derive(Clone)]
pub struct Adapter {
    hub: Hub,
    lines: Lines,
    /// The tools that ask and tell for themselves.
    wrapped: Arc<Mutex<HashSet<&'static str>>>,
}

impl Adapter {
    /// For agents whose sessions are heard at this hub.
    pub fn new(hub: &Hub) -> Self {
        Self { hub: hub.clone(), lines: Lines::default(), wrapped: Arc::default() }
    }

    /// A tool that is asked for before every call. It is of high risk if nothing else is said.
    pub fn asks<T: Tool>(&self, tool: T) -> Asking<T> {
        self.wrapped.lock().unwrap_or_else(PoisonError::into_inner).insert(T::NAME);
        Asking::new(tool, self.lines.clone())
    }

    /// Does what a person asks, in a session of its own: from its start to one honest end.
    pub async fn prompt(&self, agent: &Agent, request: impl Into<String>) -> Result<PromptResponse, Error> {
        let request = request.into();
        let session = self.hub.session(request.as_str()).start().await?;
        let came = self.drive(&session, agent.prompt(request), ToolContext::new()).await;
        match &came {
            Ok(_) => session.finish("The answer is complete.").await?,
            // It is over already.
            Err(Error::Session(crate::Error::Stopped(_))) => drop(session),
            Err(error) => session.fail(error.failure()).await?,
        }
        came
    }

    /// Drives a run in a session that is there already, and that its owner ends. The context is what the agent's tools get.
    ///
    /// ```
    /// # #[cfg(feature = "rig-http")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let hub = sayso::Hub::embedded().open()?;
    /// # let model = rig_core::providers::openai::OpenAIConfig::new("none").with_base_url(testing::model::endpoint()).client().chat("any");
    /// # let agent = rig_agent::AgentBuilder::new(model).build();
    /// # let adapter = sayso::rig::Adapter::new(&hub);
    /// let session = hub.session("Good morning.").start().await?;
    /// let run = agent.prompt("Good morning.").max_turns(8);
    /// let came = adapter.drive(&session, run, rig_core::tool::ToolContext::new()).await;
    /// # assert_eq!(came.as_ref().unwrap().output(), "Good morning.");
    /// match came {
    ///     Ok(_) => session.finish("That was all.").await?,
    ///     Err(error) => session.fail(error.failure()).await?,
    /// }
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "rig-http"))]
    /// # fn main() {}
    /// ```
    pub async fn drive(
        &self,
        session: &Session,
        run: AgentRunner,
        mut context: ToolContext,
    ) -> Result<PromptResponse, Error> {
        let (line, mut inbox) = self.lines.open(session.id());
        if context.insert(Slot(session.id().to_owned())).is_err() {
            return Err(Error::Session(crate::Error::Malformed(crate::Malformed::ToolContext)));
        }
        session.think("Asking the model.").await?;
        let narrator = Narrator::new(line.orders(), self.wrapped.clone());
        let mut stream = run.tool_context(context).add_hook(narrator).stream();
        // Calls that are being asked for, or run. Who stops here says that they were left.
        let mut calls = FuturesUnordered::new();
        let mut response = None;
        loop {
            tokio::select! {
                // Whatever the loop said before is heard before what follows from it.
                biased;
                stop = session.stopped() => return Err(crate::Error::Stopped(stop).into()),
                Some(told) = calls.next() => told?,
                Some(order) = inbox.recv() => calls.push(order.done(session)),
                item = stream.next() => match item {
                    None => break,
                    Some(Err(error)) => return Err(Error::Run(Box::new(error))),
                    Some(Ok(item)) => {
                        if let Some(done) = heard(session, item).await? {
                            response = Some(done);
                        }
                    }
                },
            }
        }
        while let Some(told) = calls.next().await {
            told?;
        }
        session.output_done().await?;
        response.ok_or(Error::Nothing)
    }
}

/// Tells what the run gives; the last of it is its response.
async fn heard(session: &Session, item: MultiTurnStreamItem) -> Result<Option<PromptResponse>, crate::Error> {
    match item {
        MultiTurnStreamItem::StreamAssistantItem(Item::Event(StreamEvent::Text { text, .. })) => {
            session.output(text).await?;
        }
        MultiTurnStreamItem::ModelTurnRetried { .. } => {
            session.think("That answer is not taken. Asking the model again.").await?;
        }
        MultiTurnStreamItem::FinalResponse(response) => return Ok(Some(response)),
        _ => {}
    }
    Ok(None)
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").finish_non_exhaustive()
    }
}

/// Why a run came to nothing. Where [`Adapter::prompt`] had the session, listeners have been told.
///
/// ```
/// use sayso::rig::Error;
/// let error = Error::from(sayso::Error::Stopped(sayso::Stop::Person));
/// assert_eq!(error.to_string(), "the person stopped the session");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing could be said: the person stopped the session, or the hub is not there.
    #[error(transparent)]
    Session(#[from] crate::Error),
    /// Rig's own loop failed.
    #[error(transparent)]
    Run(Box<PromptError>),
    /// Rig's own loop ended without a response.
    #[error("the run ended without a response")]
    Nothing,
}

impl Error {
    /// What listeners are told. Whoever ends the session itself says this. The details stay with the author: an endpoint's
    /// own words may hold anything.
    pub fn failure(&self) -> Failure {
        let unknown = |code: &str, words: &str| Failure::of(Cause::Unknown, code, words);
        match self {
            Self::Session(error) => Failure::of_agent(error),
            Self::Nothing => unknown("MODEL_SILENT", "The model gave no answer."),
            Self::Run(error) => match &**error {
                PromptError::MaxTurns { max_turns, .. } => {
                    let words = format!("The model was asked {max_turns} times and came to no answer.");
                    unknown("MODEL_TOO_MANY_ROUNDS", &words)
                }
                PromptError::Memory(_) => unknown("MEMORY_FAILED", "The agent's memory could not be used."),
                PromptError::Cancelled { reason, .. } => {
                    unknown("AGENT_STOPPED", &format!("The agent was stopped: {reason}."))
                }
                PromptError::UnknownToolCall { tool_name, .. } => {
                    let words = format!("The model wanted the tool {tool_name:?}, which it does not have.");
                    Failure::of(Cause::Permanent, "NO_SUCH_TOOL", words)
                }
                _ => unknown("MODEL_FAILED", "The model's service failed."),
            },
        }
    }
}
