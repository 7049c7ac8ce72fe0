//! One tool call: consent, announcement, execution, report, and the result for the model.

use std::fmt;

use tokio::task::JoinSet;

use super::ChatAgent;
use super::chat_completion::RequestedCall;
use super::error::ChatError;
use super::tool::{Arguments, Tool};
use crate::consent::{ConsentRefusal, format_refusal_for_model};
use crate::current_session::within;
use crate::error::CallError;
use crate::session::Session;

/// A tool call that the model requested.
///
/// ```
/// # testing::run_example!({
/// # let url = testing::mock_model::start_endpoint_with_tool_call("launch", "{}");
/// use sayso::openai::{ChatAgent, ToolOutcome};
/// # let agent = ChatAgent::new(url).model("any");
/// # let hub = sayso::Hub::embedded().open()?;
/// // The model requests a tool that this agent does not have.
/// let reply = agent.run(&hub, "Good morning.").await?;
/// assert_eq!((reply.calls[0].tool.as_str(), &reply.calls[0].outcome), ("launch", &ToolOutcome::UnknownTool));
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCallRecord {
    /// The tool's name, as the model wrote it.
    pub tool: String,
    /// The outcome of the call.
    pub outcome: ToolOutcome,
}

/// The outcome of a tool call. Listeners and the model receive the same outcome.
///
/// ```
/// use sayso::openai::ToolOutcome;
/// assert_eq!(ToolOutcome::Failed("no such account".to_owned()).to_string(), "it failed: no such account");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolOutcome {
    /// The tool ran and succeeded.
    Succeeded,
    /// The tool ran and failed.
    Failed(String),
    /// The tool ran, exceeded its time limit and was dropped.
    TimedOut,
    /// The tool ran and panicked.
    Panicked,
    /// The tool was not run: the person said no or did not answer.
    Refused(ConsentRefusal),
    /// The tool was not run: the question or the announcement was rejected.
    NotAnnounced(crate::Error),
    /// There is no such tool.
    UnknownTool,
    /// The tool was not run: the arguments are not a JSON object, or are ambiguous.
    InvalidArguments(String),
}

impl fmt::Display for ToolOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("it succeeded"),
            Self::Failed(reason) => write!(f, "it failed: {reason}"),
            Self::TimedOut => f.write_str("it took too long"),
            Self::Panicked => f.write_str("it crashed"),
            Self::Refused(reason) => write!(f, "it was not run: {reason}"),
            Self::NotAnnounced(reason) => {
                write!(f, "it was not run, because it could not be announced: {reason}")
            }
            Self::UnknownTool => f.write_str("there is no such tool"),
            Self::InvalidArguments(reason) => {
                write!(f, "it was not run, because its arguments are invalid: {reason}")
            }
        }
    }
}

impl ChatAgent {
    /// Handles a tool call of the model. Returns its outcome and the result for the model.
    pub(super) async fn call_tool(
        &self,
        session: &Session,
        call: &RequestedCall,
    ) -> Result<(ToolOutcome, String), ChatError> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name) else {
            let name: String =
                call.name.chars().filter(|character| !character.is_control()).take(80).collect();
            let text =
                format!("The model requested the tool {name:?}, which does not exist. Nothing was done.");
            session.think(text).await?;
            return Ok((
                ToolOutcome::UnknownTool,
                format!("There is no tool called {name:?}. Nothing was done."),
            ));
        };
        let arguments = match Arguments::parse(&tool.name, &call.arguments) {
            Ok(arguments) => arguments,
            Err(reason) => {
                let text =
                    format!("The model called {} with invalid arguments. Nothing was done.", tool.name);
                session.think(text).await?;
                let model_message = format!("The arguments are invalid: {reason}. Nothing was done.");
                return Ok((ToolOutcome::InvalidArguments(reason), model_message));
            }
        };
        let tool_call = match tool.announce(session, &arguments).await {
            Ok(Ok(tool_call)) => tool_call,
            Ok(Err(refusal)) => {
                let reason = format_refusal_for_model(&refusal.to_string());
                return Ok((ToolOutcome::Refused(refusal), reason));
            }
            // The call cannot be announced, so it is not made. The loop continues.
            Err(
                error @ (crate::Error::RuleViolations(_)
                | crate::Error::Malformed(_)
                | crate::Error::LimitReached(_)),
            ) => {
                let text = format!("{} could not be announced, so it was not run.", tool.name);
                session.think(text).await?;
                let model_message =
                    "The person could not be informed of this call, so it was not made.".to_owned();
                return Ok((ToolOutcome::NotAnnounced(error), model_message));
            }
            Err(error) => return Err(error.into()),
        };
        let timeout = tool.timeout.unwrap_or(self.limits.tool_timeout);
        let outcome = match tool_call.run(run_in_task(session, tool, arguments), Some(timeout)).await {
            Ok(result) => {
                return Ok((
                    ToolOutcome::Succeeded,
                    truncate_for_model(result, self.limits.max_result_bytes),
                ));
            }
            Err(CallError::Tool(ToolFailure(outcome))) => outcome,
            Err(CallError::TimedOut) => ToolOutcome::TimedOut,
            Err(CallError::Refused(refusal)) => ToolOutcome::Refused(refusal),
            Err(CallError::Session(error)) => return Err(error.into()),
        };
        let model_message = format!("The tool did not work: {outcome}.");
        Ok((outcome, truncate_for_model(model_message, self.limits.max_result_bytes)))
    }
}

/// Runs a tool in a task of its own, so that a panic affects nothing else. The session is the current one there. Dropping the future
/// aborts the task.
async fn run_in_task(session: &Session, tool: &Tool, arguments: Arguments) -> Result<String, ToolFailure> {
    let mut work = JoinSet::new();
    work.spawn(within(session, tool.call(arguments)));
    Err(ToolFailure(match work.join_next().await {
        Some(Ok(Ok(bytes))) => match String::from_utf8(bytes) {
            Ok(text) => return Ok(text),
            Err(_) => ToolOutcome::Failed("its result is not text".to_owned()),
        },
        Some(Ok(Err(reason))) => ToolOutcome::Failed(reason),
        Some(Err(_)) | None => ToolOutcome::Panicked,
    }))
}

/// A failure as listeners hear it.
struct ToolFailure(ToolOutcome);

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ToolOutcome::Failed(reason) if !reason.is_empty() => f.write_str(reason),
            outcome => outcome.fmt(f),
        }
    }
}

/// Truncates a result for the model, with a note.
fn truncate_for_model(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let beginning = text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default();
    format!("{beginning}\n[Truncated: this is the beginning of {} bytes.]", text.len())
}
