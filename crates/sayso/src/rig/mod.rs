//! An adapter for [rig](https://docs.rs/rig-agent) agents. Rig's own loop runs unchanged. People hear what the agent does and are
//! asked for consent.
//!
//! - [`Adapter::require_consent`] wraps a dangerous tool. The wrapper asks after all hooks of the agent have run, about exactly the
//!   arguments that the tool then gets. If nobody can be asked, the tool is not run. This alone makes the tool safe.
//! - [`Adapter::prompt`] and [`Adapter::run_in_session`] run the agent. Listeners hear the model's text as it arrives, the start and
//!   the end of tools that are not wrapped, and calls of tools that do not exist.
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
//! #     async fn call(&self, record: u64) -> Result<String, std::io::Error> { Ok(format!("Record {record} was deleted.")) }
//! # }
//! # #[cfg(feature = "rig-http")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let hub = sayso::Hub::embedded().open()?;
//! # let model = rig_core::providers::openai::OpenAIConfig::new("none").with_base_url(testing::mock_model::start_endpoint()).client().chat("any");
//! let adapter = sayso::rig::Adapter::new(&hub);
//! // `Delete` is a rig tool. This agent uses it only after a yes.
//! let delete = adapter.require_consent(Delete).irreversible().says(|record| format!("Delete record {record}."));
//! let agent = rig_agent::AgentBuilder::new(model).tool(delete).build();
//! let response = adapter.prompt(&agent, "Good morning.").await?;
//! assert_eq!(response.output(), "Good morning.");
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "rig-http"))]
//! # fn main() {}
//! ```
//!
//! - `consent_tool`: the wrapper. `hook`: reports what rig runs. `session_channel`: passes the requests of both to the session.

mod consent_tool;
mod hook;
mod session_channel;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rig_agent::agent::{Agent, AgentRunner, MultiTurnStreamItem, PromptResponse};
use rig_agent::completion::PromptError;
use rig_core::streaming::{Item, StreamEvent};
use rig_core::tool::{Tool, ToolContext};

pub use consent_tool::ConsentTool;
pub use {rig_agent, rig_core};

use crate::current_session::within;
use crate::hub::Hub;
use crate::session::{ErrorCategory, Failure, Session};
use hook::SessionHook;
use session_channel::{SessionChannels, SessionContext};

/// Connects rig agents to a hub.
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
///         Ok(format!("Record {record} was deleted."))
///     }
/// }
///
/// let hub = Hub::embedded().agent("records").open()?;
/// let adapter = Adapter::new(&hub);
/// let delete = adapter.require_consent(Delete).irreversible().says(|record| format!("Delete record {record}."));
/// // `AgentBuilder::new(model).tool(delete).build()` is an agent that deletes only after a yes.
/// # let _ = delete;
/// # Ok::<(), sayso::Error>(())
/// ```
#[derive(Clone)]
pub struct Adapter {
    hub: Hub,
    channels: SessionChannels,
    /// The tools that ask and report on their own.
    consent_tools: Arc<Mutex<HashSet<&'static str>>>,
}

impl Adapter {
    /// Creates an adapter for agents that report to this hub.
    pub fn new(hub: &Hub) -> Self {
        Self { hub: hub.clone(), channels: SessionChannels::default(), consent_tools: Arc::default() }
    }

    /// Wraps a tool so that the person is asked before every call. The default risk is high.
    pub fn require_consent<T: Tool>(&self, tool: T) -> ConsentTool<T> {
        self.consent_tools.lock().unwrap_or_else(PoisonError::into_inner).insert(T::NAME);
        ConsentTool::new(tool, self.channels.clone())
    }

    /// Handles a request in a session of its own, from its start to exactly one end.
    pub async fn prompt(
        &self,
        agent: &Agent,
        request: impl Into<String>,
    ) -> Result<PromptResponse, RigError> {
        let request = request.into();
        let session = self.hub.session(request.as_str()).start().await?;
        let result = self.run_in_session(&session, agent.prompt(request), ToolContext::new()).await;
        match &result {
            Ok(_) => session.finish("The answer is complete.").await?,
            // The session is already over.
            Err(RigError::Session(crate::Error::Stopped(_))) => drop(session),
            Err(error) => session.fail(error.to_failure()).await?,
        }
        result
    }

    /// Runs an agent in an existing session, which the caller ends. `context` is passed to the agent's tools.
    ///
    /// ```
    /// # #[cfg(feature = "rig-http")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let hub = sayso::Hub::embedded().open()?;
    /// # let model = rig_core::providers::openai::OpenAIConfig::new("none").with_base_url(testing::mock_model::start_endpoint()).client().chat("any");
    /// # let agent = rig_agent::AgentBuilder::new(model).build();
    /// # let adapter = sayso::rig::Adapter::new(&hub);
    /// let session = hub.session("Good morning.").start().await?;
    /// let run = agent.prompt("Good morning.").max_turns(8);
    /// let result = adapter.run_in_session(&session, run, rig_core::tool::ToolContext::new()).await;
    /// # assert_eq!(result.as_ref().unwrap().output(), "Good morning.");
    /// match result {
    ///     Ok(_) => session.finish("That was all.").await?,
    ///     Err(error) => session.fail(error.to_failure()).await?,
    /// }
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "rig-http"))]
    /// # fn main() {}
    /// ```
    pub async fn run_in_session(
        &self,
        session: &Session,
        run: AgentRunner,
        context: ToolContext,
    ) -> Result<PromptResponse, RigError> {
        within(session, self.drive(session, run, context)).await
    }

    /// Runs rig's loop and reports what it does.
    async fn drive(
        &self,
        session: &Session,
        run: AgentRunner,
        mut context: ToolContext,
    ) -> Result<PromptResponse, RigError> {
        let (channel, mut requests) = self.channels.open(session.id());
        if context.insert(SessionContext(session.id().to_owned())).is_err() {
            return Err(RigError::Session(crate::Error::Malformed(crate::MalformedInput::ToolContext)));
        }
        session.think("Asking the model.").await?;
        let hook = SessionHook::new(channel.sender(), self.consent_tools.clone());
        let mut stream = run.tool_context(context).add_hook(hook).stream();
        // Calls that are waiting for an answer or running. Dropping them reports them as abandoned.
        let mut calls = FuturesUnordered::new();
        let mut response = None;
        loop {
            tokio::select! {
                // Biased, so that earlier requests are reported before what follows from them.
                biased;
                stop = session.stopped() => return Err(crate::Error::Stopped(stop).into()),
                Some(result) = calls.next() => result?,
                Some(request) = requests.recv() => calls.push(request.process(session)),
                item = stream.next() => match item {
                    None => break,
                    Some(Err(error)) => return Err(RigError::Run(Box::new(error))),
                    Some(Ok(item)) => {
                        if let Some(final_response) = report_item(session, item).await? {
                            response = Some(final_response);
                        }
                    }
                },
            }
        }
        while let Some(result) = calls.next().await {
            result?;
        }
        session.finish_output().await?;
        response.ok_or(RigError::NoResponse)
    }
}

/// Reports one item of the run. Returns the response if the item is the final one.
async fn report_item(
    session: &Session,
    item: MultiTurnStreamItem,
) -> Result<Option<PromptResponse>, crate::Error> {
    match item {
        MultiTurnStreamItem::StreamAssistantItem(Item::Event(StreamEvent::Text { text, .. })) => {
            session.output(crate::OutputText::from_model(text)).await?;
        }
        MultiTurnStreamItem::ModelTurnRetried { .. } => {
            session.think("That answer is not usable. Asking the model again.").await?;
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

/// The reason why a run has no response. [`Adapter::prompt`] also reports it to listeners.
///
/// ```
/// use sayso::rig::RigError;
/// let error = RigError::from(sayso::Error::Stopped(sayso::StopReason::Person));
/// assert_eq!(error.to_string(), "the person stopped the session");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RigError {
    /// Nothing could be reported: the person stopped the session, or the hub is not available.
    #[error(transparent)]
    Session(#[from] crate::Error),
    /// Rig's loop failed.
    #[error(transparent)]
    Run(Box<PromptError>),
    /// Rig's loop ended without a response.
    #[error("the run ended without a response")]
    NoResponse,
}

impl RigError {
    /// Returns the failure that listeners hear. Use it to end a session of your own. It omits details, because an endpoint's own
    /// message may contain anything.
    pub fn to_failure(&self) -> Failure {
        let unknown = |code: &str, summary: &str| Failure::with_code(ErrorCategory::Unknown, code, summary);
        match self {
            Self::Session(error) => Failure::agent_failed(error),
            Self::NoResponse => unknown("MODEL_SILENT", "The model gave no answer."),
            Self::Run(error) => match &**error {
                PromptError::MaxTurns { max_turns, .. } => {
                    let summary = format!("The model was called {max_turns} times and gave no answer.");
                    unknown("MODEL_TOO_MANY_ROUNDS", &summary)
                }
                PromptError::Memory(_) => unknown("MEMORY_FAILED", "The agent's memory could not be used."),
                PromptError::Cancelled { reason, .. } => {
                    unknown("AGENT_STOPPED", &format!("The agent was stopped: {reason}."))
                }
                PromptError::UnknownToolCall { tool_name, .. } => {
                    let summary =
                        format!("The model requested the tool {tool_name:?}, which does not exist.");
                    Failure::with_code(ErrorCategory::Permanent, "NO_SUCH_TOOL", summary)
                }
                _ => unknown("MODEL_FAILED", "The model's service failed."),
            },
        }
    }
}
