//! A tool of rig that asks before every call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rig_core::serde_json::{self, Value};
use rig_core::tool::{Tool, ToolContext, ToolExecutionError};

use super::line::{Ended, Lines, Slot, Wish, order};
use crate::bridge::Denied;
use crate::consent::{Risk, told_to_model};
use crate::policy::{CallPolicy, call_policy};

/// So long a call may take, if nothing is said.
const TOOL_TIME: Duration = Duration::from_mins(2);

/// A tool of rig that asks before every call, made by [`Adapter::asks`](super::Adapter::asks). It is run only on a yes to
/// exactly its arguments, and once; a refusal is told to the model in plain words.
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
///         Ok(format!("{record} is gone"))
///     }
/// }
///
/// # testing::example!({
/// let hub = Hub::embedded().agent("records").open()?;
/// let delete = Adapter::new(&hub).asks(Delete).irreversible().says(|record| format!("Delete record {record}."));
/// // Nobody drives a run here, so there is nobody to ask, and that means no.
/// let refused = Tool::call(&delete, &mut ToolContext::new(), 17.into()).await.unwrap_err();
/// assert!(refused.is_refusal());
/// # });
/// ```
#[must_use = "an agent has to be given it"]
pub struct Asking<T: Tool> {
    tool: T,
    policy: CallPolicy<T::Args>,
    limit: Duration,
    lines: Lines,
}

impl<T: Tool> Asking<T> {
    pub(super) fn new(tool: T, lines: Lines) -> Self {
        Self { tool, policy: CallPolicy::new(Risk::High), limit: TOOL_TIME, lines }
    }

    setters! {
        /// How much harm it could do. It is asked for in any case.
        risk(risk: Risk) => policy.risk = risk;

        /// How long a call may take; two minutes if nothing is said.
        within(limit: Duration) => limit = limit;
    }

    call_policy!(T::Args);
}

impl<T: Tool> Tool for Asking<T> {
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
        let written = arguments.to_string();
        // Without a session there is nobody to ask, and that means no.
        let orders = context.get::<Slot>().ok().flatten().and_then(|slot| self.lines.of(&slot.0));
        let Some(orders) = orders else { return Err(refused("nobody could be asked")) };
        let arguments: T::Args = match serde_json::from_value(arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                let says =
                    format!("The model called {} in a way that cannot be used. Nothing was done.", T::NAME);
                let _ = order(&orders, Wish::Note(says)).await;
                let tells = format!("The arguments cannot be used: {error}. Nothing was done.");
                return Err(ToolExecutionError::invalid_args(tells));
            }
        };
        let action = self.policy.action(T::NAME, &written, &arguments, "It could do harm.");
        let end = match order(&orders, Wish::Ask(Box::new(action))).await {
            Ok(end) => end,
            Err(Denied::Refused(why)) => return Err(refused(&why.to_string())),
            Err(Denied::Error(error)) => return Err(refused(&format!("nobody could be asked: {error}"))),
            Err(Denied::Left) => return Err(refused("nobody could be asked")),
        };
        match tokio::time::timeout(self.limit, self.tool.call(context, arguments)).await {
            Ok(Ok(output)) => {
                let _ = end.send(Ended::Done);
                Ok(output)
            }
            Ok(Err(error)) => {
                let error = self.tool.map_error(error);
                let _ = end.send(Ended::Failed(error.message().to_owned()));
                Err(error)
            }
            Err(_) => {
                let _ = end.send(Ended::TimedOut);
                Err(ToolExecutionError::timeout(format!("{} took too long.", T::NAME)))
            }
        }
    }
}

fn refused(why: &str) -> ToolExecutionError {
    ToolExecutionError::refused(told_to_model(why))
}

impl<T: Tool> fmt::Debug for Asking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&T::NAME).finish()
    }
}
