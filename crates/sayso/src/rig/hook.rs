//! What rig tells while it runs: tools that do not ask for themselves, and tools that do not exist.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use rig_agent::agent::{
    AgentHook, DispatchAction, DispatchEvent, HookContext, InvalidToolCallAction, InvalidToolCallContext,
    InvalidToolCallReason, OutcomeAction, OutcomeEvent, StepEventKind,
};
use rig_core::effect::EffectId;
use tokio::sync::oneshot;

use super::line::{Ended, Orders, Wish, order};
use crate::bridge::Denied;

/// Hears one run. It is the last of the agent's hooks, so it sees what really happens.
pub(super) struct Narrator {
    orders: Orders,
    wrapped: Arc<Mutex<HashSet<&'static str>>>,
    running: Mutex<HashMap<EffectId, oneshot::Sender<Ended>>>,
}

impl Narrator {
    pub(super) fn new(orders: Orders, wrapped: Arc<Mutex<HashSet<&'static str>>>) -> Self {
        Self { orders, wrapped, running: Mutex::default() }
    }

    fn tells_itself(&self, tool: &str) -> bool {
        self.wrapped.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }
}

impl AgentHook for Narrator {
    fn name(&self) -> Option<String> {
        Some("sayso".to_owned())
    }

    fn observes(&self, kind: StepEventKind) -> bool {
        matches!(kind, StepEventKind::ToolDispatch | StepEventKind::InvalidToolCall)
    }

    async fn on_dispatch(&self, _: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        let Some(tool) = event.tool_name().filter(|tool| !self.tells_itself(tool)) else {
            return DispatchAction::proceed();
        };
        match order(&self.orders, Wish::Tell(tool.to_owned())).await {
            Ok(end) => {
                self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(event.id, end);
                DispatchAction::proceed()
            }
            // What cannot be told is not done.
            Err(Denied::Error(error)) => DispatchAction::stop(format!("{tool} could not be told: {error}")),
            Err(_) => DispatchAction::stop(format!("{tool} could not be told")),
        }
    }

    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        let end = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&event.id);
        if let Some(end) = end {
            let _ = end.send(match (event.outcome, event.tool_result()) {
                (Err(report), _) => Ended::Failed(report.to_string()),
                (Ok(_), Some(result)) => match result.error() {
                    Some(error) => Ended::Failed(error.message().to_owned()),
                    None => Ended::Done,
                },
                (Ok(_), None) => Ended::Done,
            });
        }
        OutcomeAction::proceed()
    }

    async fn on_invalid_tool_call(
        &self,
        _: &HookContext,
        event: &InvalidToolCallContext,
    ) -> Option<InvalidToolCallAction> {
        let tool: String = event.tool_name.chars().filter(|letter| !letter.is_control()).take(80).collect();
        let (says, action) = if matches!(event.reason, InvalidToolCallReason::MalformedArguments { .. }) {
            (format!("The model called {tool:?} in a way that cannot be used. Nothing was done."), None)
        } else {
            let tells = format!("There is no tool called {tool:?}. Nothing was done.");
            let says =
                format!("The model wanted the tool {tool:?}, which it does not have. Nothing was done.");
            (says, Some(InvalidToolCallAction::skip(tells)))
        };
        match order(&self.orders, Wish::Note(says)).await {
            Ok(_) => action,
            Err(_) => Some(InvalidToolCallAction::stop("nobody could be told of it")),
        }
    }
}
