//! The states that the hub announces for agents that do not report them: `calling_tool` while a tool runs, and
//! `writing_output` while text is written (§9.3.1).

use std::sync::Arc;

use aaep::SessionId;
use aaep::event::{AgentState, EventType};
use aaep::json::{Doc, JsonValue};

use super::publish::Savepoint;
use super::sessions::LiveSession;
use super::{Core, TurnContext, hub_messages};
use crate::command::HubReply;

/// The producers whose current state the hub announced for them.
#[derive(Clone, Debug, Default)]
pub(super) struct SuppliedStates(Vec<SuppliedState>);

#[derive(Clone, Debug)]
struct SuppliedState {
    producer: Arc<str>,
    /// The states that the agent may take for its current one: those before and after each change that the hub added.
    believed: Vec<AgentState>,
}

impl SuppliedStates {
    /// Records that the hub changed the state of a producer.
    fn record(&mut self, producer: &Arc<str>, from: &AgentState, to: &AgentState) {
        let index = self.0.iter().position(|supplied| supplied.producer == *producer).unwrap_or_else(|| {
            self.0.push(SuppliedState { producer: producer.clone(), believed: Vec::new() });
            self.0.len() - 1
        });
        for state in [from, to] {
            if !self.0[index].believed.contains(state) {
                self.0[index].believed.push(state.clone());
            }
        }
    }

    /// Records that the agent changed the state itself.
    fn forget(&mut self, producer: &str) {
        self.0.retain(|supplied| *supplied.producer != *producer);
    }

    fn contains(&self, producer: &str) -> bool {
        self.0.iter().any(|supplied| *supplied.producer == *producer)
    }

    /// Whether an agent that does not know of the added changes may believe that it is in this state.
    fn may_believe(&self, producer: &str, state: &str) -> bool {
        self.0.iter().any(|supplied| {
            *supplied.producer == *producer
                && supplied.believed.iter().any(|believed| believed.as_str() == state)
        })
    }
}

impl Core {
    /// Announces the state that an agent's event implies, before the event: `calling_tool` or `writing_output`. Does nothing
    /// if the agent has announced it, or if the change would break a rule.
    pub(super) fn supply_state(
        &mut self,
        session: &SessionId,
        producer: &Arc<str>,
        event: &Doc<'_>,
        savepoint: &mut Savepoint,
        context: &TurnContext,
    ) -> Result<(), HubReply> {
        let state = match event_type(event) {
            Some(EventType::ToolInvoked) => AgentState::CallingTool,
            Some(EventType::OutputStreaming) => AgentState::WritingOutput,
            _ => return Ok(()),
        };
        let Some(live) = self.sessions.get(session) else { return Err(HubReply::NotFound) };
        let is_announced = *live.state_of(producer) == state;
        if is_announced
            || state == AgentState::WritingOutput && live.is_tool_running(producer)
            || self.has_open_question(session, producer)
        {
            return Ok(());
        }
        self.change_supplied_state(session, producer, &state, savepoint, context)
    }

    /// Announces that the agent thinks again, after the event that ends its last tool or output, if the hub announced the
    /// state of the producer.
    pub(super) fn end_supplied_state(
        &mut self,
        session: &SessionId,
        producer: &Arc<str>,
        event: &Doc<'_>,
        savepoint: &mut Savepoint,
        context: &TurnContext,
    ) -> Result<(), HubReply> {
        let (state, is_end) = match event_type(event) {
            Some(EventType::ToolCompleted) => (AgentState::CallingTool, true),
            Some(EventType::OutputStreaming) => (
                AgentState::WritingOutput,
                event.root().member("complete").is_some_and(|it| it.source() == "true"),
            ),
            _ => return Ok(()),
        };
        let Some(live) = self.sessions.get(session) else { return Ok(()) };
        let is_supplied = live.supplied_states.contains(producer) && *live.state_of(producer) == state;
        let is_busy = live.machine.open_tools().any(|open| *open.agent_id == **producer);
        if !is_end || !is_supplied || is_busy {
            return Ok(());
        }
        self.change_supplied_state(session, producer, &AgentState::Thinking, savepoint, context)
    }

    fn change_supplied_state(
        &mut self,
        session: &SessionId,
        producer: &Arc<str>,
        to: &AgentState,
        savepoint: &mut Savepoint,
        context: &TurnContext,
    ) -> Result<(), HubReply> {
        let Some(live) = self.sessions.get_mut(session) else { return Err(HubReply::NotFound) };
        savepoint.save_machine(live);
        let from = live.state_of(producer).clone();
        live.supplied_states.record(producer, &from, to);
        let change =
            hub_messages::state_changed_event(&mut self.scratch, None, to).with_producer(producer.clone());
        self.emit_hub_event(session, change, Some(savepoint), context).map(drop)
    }

    /// Handles an agent's own change of state. Returns whether its `from_state` must be replaced, because the agent does not
    /// know of the changes that the hub added.
    pub(super) fn end_supplied_states(
        &mut self,
        session: &SessionId,
        producer: &str,
        event: &Doc<'_>,
        savepoint: &mut Savepoint,
    ) -> bool {
        let Some(live) = self.sessions.get_mut(session) else { return false };
        if !live.supplied_states.contains(producer) || event_type(event) != Some(EventType::StateChanged) {
            return false;
        }
        let from = event.root().member("from_state").and_then(|from| from.text());
        let is_outdated = from.is_some_and(|from| {
            live.state_of(producer).as_str() != from && live.supplied_states.may_believe(producer, &from)
        });
        savepoint.save_machine(live);
        live.supplied_states.forget(producer);
        is_outdated
    }
}

impl LiveSession {
    /// Whether the producer is in `calling_tool` and none of its calls has ended since. It must not leave that state then
    /// (§4.3.2).
    pub(super) fn is_tool_running(&self, producer: &str) -> bool {
        *self.state_of(producer) == AgentState::CallingTool
            && self.machine.open_tools().any(|open| *open.agent_id == *producer)
    }
}

/// Returns the type of an agent's event.
fn event_type(event: &Doc<'_>) -> Option<EventType> {
    event.type_value().and_then(|kind: JsonValue<'_>| Some(EventType::parse(&kind.text()?)))
}
