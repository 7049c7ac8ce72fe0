//! The hook that reports calls of tools that need no consent, and invalid tool calls.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use rig_agent::agent::{
    AgentHook, DispatchAction, DispatchEvent, HookContext, InvalidToolCallAction, InvalidToolCallContext,
    InvalidToolCallReason, OutcomeAction, OutcomeEvent, StepEventKind,
};
use rig_core::effect::EffectId;
use tokio::sync::oneshot;

use super::session_channel::{RequestKind, RequestSender, ToolEnd, send_request};
use crate::bridge::Denial;

/// The hook of one run. It is the last hook of the agent, so it sees what is really executed.
pub(super) struct SessionHook {
    requests: RequestSender,
    consent_tools: Arc<Mutex<HashSet<&'static str>>>,
    /// For each running call, the channel that reports its end.
    running: Mutex<HashMap<EffectId, oneshot::Sender<ToolEnd>>>,
}

impl SessionHook {
    pub(super) fn new(requests: RequestSender, consent_tools: Arc<Mutex<HashSet<&'static str>>>) -> Self {
        Self { requests, consent_tools, running: Mutex::default() }
    }

    /// Whether a tool needs consent. Such a tool reports its own calls.
    fn is_consent_tool(&self, tool: &str) -> bool {
        self.consent_tools.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }
}

impl AgentHook for SessionHook {
    fn name(&self) -> Option<String> {
        Some("sayso".to_owned())
    }

    fn observes(&self, kind: StepEventKind) -> bool {
        matches!(kind, StepEventKind::ToolDispatch | StepEventKind::InvalidToolCall)
    }

    async fn on_dispatch(&self, _: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        let Some(tool) = event.tool_name().filter(|tool| !self.is_consent_tool(tool)) else {
            return DispatchAction::proceed();
        };
        match send_request(&self.requests, RequestKind::Announce(tool.to_owned())).await {
            Ok(end) => {
                self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(event.id, end);
                DispatchAction::proceed()
            }
            // A call that cannot be announced is not made.
            Err(Denial::Error(error)) => {
                DispatchAction::stop(format!("{tool} could not be announced: {error}"))
            }
            Err(_) => DispatchAction::stop(format!("{tool} could not be announced")),
        }
    }

    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        let end = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&event.id);
        if let Some(end) = end {
            let _ = end.send(match (event.outcome, event.tool_result()) {
                (Err(report), _) => ToolEnd::Failed(report.to_string()),
                (Ok(_), Some(result)) => match result.error() {
                    Some(error) => ToolEnd::Failed(error.message().to_owned()),
                    None => ToolEnd::Done,
                },
                (Ok(_), None) => ToolEnd::Done,
            });
        }
        OutcomeAction::proceed()
    }

    async fn on_invalid_tool_call(
        &self,
        _: &HookContext,
        event: &InvalidToolCallContext,
    ) -> Option<InvalidToolCallAction> {
        let tool: String =
            event.tool_name.chars().filter(|character| !character.is_control()).take(80).collect();
        let (text, action) = if matches!(event.reason, InvalidToolCallReason::MalformedArguments { .. }) {
            (format!("The model called {tool:?} with invalid arguments. Nothing was done."), None)
        } else {
            let model_message = format!("There is no tool called {tool:?}. Nothing was done.");
            let text =
                format!("The model requested the tool {tool:?}, which does not exist. Nothing was done.");
            (text, Some(InvalidToolCallAction::skip(model_message)))
        };
        match send_request(&self.requests, RequestKind::Note(text)).await {
            Ok(_) => action,
            Err(_) => Some(InvalidToolCallAction::stop("the invalid tool call could not be reported")),
        }
    }
}
