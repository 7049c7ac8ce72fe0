//! A rig tool that asks before every call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rig_core::serde_json::{self, Value};
use rig_core::tool::{Tool, ToolContext, ToolExecutionError};

use super::session_channel::{RequestKind, SessionChannels, SessionContext, ToolEnd, send_request};
use crate::bridge::Denial;
use crate::call_policy::{CallPolicy, call_policy_setters};
use crate::consent::{Risk, format_refusal_for_model};

/// The default time limit of a call.
const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_mins(2);

/// A rig tool that asks before every call, created by [`Adapter::require_consent`](super::Adapter::require_consent). Each yes
/// permits one call with exactly the arguments that the question was about. After a refusal the model receives the reason as text.
///
/// ```
/// use rig_core::tool::{PortableTool, Tool, ToolContext};
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
/// # testing::run_example!({
/// let hub = Hub::embedded().agent("records").open()?;
/// let delete = Adapter::new(&hub).require_consent(Delete).irreversible().says(|record| format!("Delete record {record}."));
/// // No session drives this call, so nobody can be asked. That counts as a no.
/// let error = Tool::call(&delete, &mut ToolContext::new(), 17.into()).await.unwrap_err();
/// assert!(error.is_refusal());
/// # });
/// ```
#[must_use = "the tool must be added to an agent"]
pub struct ConsentTool<T: Tool> {
    tool: T,
    policy: CallPolicy<T::Args>,
    timeout: Duration,
    channels: SessionChannels,
}

impl<T: Tool> ConsentTool<T> {
    pub(super) fn new(tool: T, channels: SessionChannels) -> Self {
        Self { tool, policy: CallPolicy::new(Risk::High), timeout: DEFAULT_TOOL_TIMEOUT, channels }
    }

    setters! {
        /// Sets how much harm a call can do. The person is asked in any case.
        risk(risk: Risk) => policy.risk = risk;

        /// Sets the time limit of a call. The default is two minutes.
        timeout(timeout: Duration) => timeout = timeout;
    }

    call_policy_setters!(T::Args);
}

impl<T: Tool> Tool for ConsentTool<T> {
    const NAME: &'static str = T::NAME;
    type Args = Value;
    type Output = T::Output;
    type Error = ToolExecutionError;

    fn description(&self) -> String {
        self.tool.description()
    }

    fn parameters(&self) -> Value {
        self.tool.parameters()
    }

    async fn call(
        &self,
        context: &mut ToolContext,
        arguments: Value,
    ) -> Result<T::Output, ToolExecutionError> {
        let json = arguments.to_string();
        // Without a session nobody can be asked, which counts as no.
        let requests =
            context.get::<SessionContext>().ok().flatten().and_then(|session| self.channels.get(&session.0));
        let Some(requests) = requests else { return Err(refusal_error("nobody could be asked")) };
        let arguments: T::Args = match serde_json::from_value(arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                let text = format!("The model called {} with invalid arguments. Nothing was done.", T::NAME);
                let _ = send_request(&requests, RequestKind::Note(text)).await;
                let model_message = format!("The arguments are invalid: {error}. Nothing was done.");
                return Err(ToolExecutionError::invalid_args(model_message));
            }
        };
        let action = self.policy.action(T::NAME, &json, &arguments, "It could do harm.");
        let end = match send_request(&requests, RequestKind::Ask(Box::new(action))).await {
            Ok(end) => end,
            Err(Denial::Refused(reason)) => return Err(refusal_error(&reason.to_string())),
            Err(Denial::Error(error)) => {
                return Err(refusal_error(&format!("nobody could be asked: {error}")));
            }
            Err(Denial::Abandoned) => return Err(refusal_error("nobody could be asked")),
        };
        match tokio::time::timeout(self.timeout, self.tool.call(context, arguments)).await {
            Ok(Ok(output)) => {
                let _ = end.send(ToolEnd::Done);
                Ok(output)
            }
            Ok(Err(error)) => {
                let error = self.tool.map_error(error);
                let _ = end.send(ToolEnd::Failed(error.message().to_owned()));
                Err(error)
            }
            Err(_) => {
                let _ = end.send(ToolEnd::TimedOut);
                Err(ToolExecutionError::timeout(format!("{} took too long.", T::NAME)))
            }
        }
    }
}

fn refusal_error(reason: &str) -> ToolExecutionError {
    ToolExecutionError::refused(format_refusal_for_model(reason))
}

impl<T: Tool> fmt::Debug for ConsentTool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConsentTool").field(&T::NAME).finish()
    }
}
