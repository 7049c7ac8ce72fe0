//! Messages from the server: everything passes, and the answers to calls are narrated.

use super::*;
use crate::mcp::message::{is_same_ignoring_case, read_unambiguous};

impl GateCore {
    /// Handles a line from the server, with its line break.
    pub(crate) fn handle_server_line(&mut self, line: Vec<u8>, now: Instant, effects: &mut Vec<Effect>) {
        let mut tape = std::mem::take(&mut self.tape);
        let text = std::str::from_utf8(trim_line_break(&line)).ok();
        let is_passed = match text.and_then(|text| tape.read(text).ok()) {
            None => {
                if !line.trim_ascii().is_empty() {
                    self.handle_unread_server_line();
                }
                true
            }
            Some(doc) => {
                let root = doc.root();
                if root.kind() == JsonKind::Array {
                    let passed: Vec<_> =
                        root.items().filter(|item| self.handle_server_message(item, now, effects)).collect();
                    let is_whole = passed.len() == root.items().count();
                    if !is_whole && !passed.is_empty() {
                        let items: Vec<_> = passed.iter().map(JsonValue::source).collect();
                        effects.push(Effect::ToHost(with_line_break(&format!("[{}]", items.join(",")))));
                    }
                    is_whole
                } else {
                    self.handle_server_message(&root, now, effects)
                }
            }
        };
        self.tape = tape;
        if is_passed {
            effects.push(Effect::ToHost(line));
        }
    }

    /// The server sent a line that the gate cannot read, but perhaps the host can. If the host waits for a list of tools, the line
    /// may contain one.
    pub(crate) fn handle_unread_server_line(&mut self) {
        let is_list_expected = self.tracked.len() >= MAX_TRACKED_REQUESTS
            || self.tracked.values().any(|request| matches!(request.kind, TrackedKind::ListTools));
        if is_list_expected {
            self.tools.forget();
        }
    }

    /// Examines one message from the server. Returns whether it passes.
    fn handle_server_message(
        &mut self,
        message: &JsonValue<'_>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if message.kind() != JsonKind::Object {
            return true;
        }
        let envelope = RpcEnvelope::read(message);
        // The host may take any such message for the answer to a request that the gate does not connect with it, for example because
        // the id is a string instead of a number.
        if may_list_tools(message) && !self.is_list_answer(&envelope) {
            self.tools.forget();
        }
        if envelope.method.is_some() {
            self.handle_server_request(message, &envelope, effects);
            return true;
        }
        let Some(id) = envelope.request_id() else { return true };
        match self.calls.remove(&id) {
            None => {}
            Some(CallState::Discarded) => return false,
            Some(CallState::Running(running)) => {
                return self.handle_call_response(&id, running, message, now, effects);
            }
            Some(waiting) => {
                self.calls.insert(id, waiting);
                effects.push(Effect::Announce(texts::UNASKED_ANSWER.with(&[&self.server])));
                return false;
            }
        }
        let Some(TrackedRequest { kind, batch }) = self.tracked.remove(&id) else { return true };
        let result = message.member("result");
        match kind {
            TrackedKind::ListTools => {
                let is_unambiguous = read_unambiguous(message, ["id", "method", "result", "error"]).is_ok()
                    && result.is_none_or(|result| read_unambiguous(&result, ["tools"]).is_ok());
                if !is_unambiguous {
                    self.tools.forget();
                } else if result.is_some_and(|result| self.tools.learn(&result)) {
                    effects.push(Effect::SavePins);
                }
            }
            TrackedKind::Task { task, is_result } => {
                let ended = if is_result {
                    Some(CallOutcome::read(message))
                } else {
                    result.and_then(|result| CallOutcome::read_task_status(&result))
                };
                self.end_task(&task, ended, effects);
            }
            TrackedKind::BatchMember => {}
        }
        if batch.is_some() {
            self.reply(&id, batch, with_line_break(message.source()), effects);
            return false;
        }
        true
    }

    /// Whether a message answers a request for the list of tools.
    fn is_list_answer(&self, envelope: &RpcEnvelope<'_>) -> bool {
        let is_tracked = |id: &RequestId| {
            let tracked = self.tracked.get(id).map(|request| &request.kind);
            matches!(tracked, Some(TrackedKind::ListTools)) && !self.calls.contains_key(id)
        };
        envelope.method.is_none() && envelope.request_id().as_ref().is_some_and(is_tracked)
    }

    /// Examines a request or notification from the server.
    fn handle_server_request(
        &mut self,
        message: &JsonValue<'_>,
        envelope: &RpcEnvelope<'_>,
        effects: &mut Vec<Effect>,
    ) {
        if envelope.is_method("notifications/tools/list_changed") {
            self.tools.forget();
        } else if envelope.is_method("notifications/tasks/status")
            || envelope.is_method("notifications/tasks")
        {
            if let Some(task) = envelope.text_param("taskId") {
                let ended = envelope.params.and_then(|params| CallOutcome::read_task_status(&params));
                self.end_task(&task, ended, effects);
            }
        } else if envelope.is_method("notifications/cancelled") {
            let id = envelope.params.and_then(|params| params.member("requestId"));
            if let Some(id) = id.as_ref().and_then(RequestId::read)
                && self.elicitations.remove(&id)
            {
                effects.push(Effect::WithdrawElicitation(id));
            }
        } else if self.elicits
            && envelope.is_method("elicitation/create")
            && let Some(id) = envelope.request_id()
            && self.elicitations.len() < MAX_OPEN_QUESTIONS
            && self.elicitations.insert(id.clone())
        {
            effects.push(Effect::Elicit(id, message.source().into()));
        }
    }

    /// A listener answered an elicitation. Returns whether the answer counts, because the host has not answered before.
    pub(crate) fn answer_elicitation(
        &mut self,
        id: &RequestId,
        response: &str,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if !self.elicitations.remove(id) || self.is_closed {
            return false;
        }
        if self.answered_elicitations.len() >= MAX_OPEN_QUESTIONS {
            self.answered_elicitations.clear();
        }
        self.answered_elicitations.insert(id.clone());
        effects.push(Effect::ToServer(with_line_break(response)));
        // The host closes its own dialog.
        effects.push(Effect::ToHost(cancelled_line(id, "The person has answered elsewhere.")));
        true
    }

    /// Handles the server's answer to a call. Returns whether it passes.
    fn handle_call_response(
        &mut self,
        id: &RequestId,
        running: RunningCall,
        response: &JsonValue<'_>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let outcome = CallOutcome::read(response);
        let mut running = running;
        if matches!(outcome, CallOutcome::InputRequired { .. }) {
            match self.offer_input(id, running, response, effects) {
                None => return false,
                Some(call) => running = call,
            }
        }
        // The host does not know an id of the gate.
        let (batch, is_own) = (running.batch, running.input_rounds > 0);
        for waiter in std::mem::take(&mut running.joined) {
            self.calls.remove(&waiter.id);
            self.reply(&waiter.id, waiter.batch, copy_response(response, &waiter.id), effects);
        }
        match outcome {
            CallOutcome::InputRequired { request_state } => {
                self.expect_retry(&running, request_state, now, effects);
            }
            CallOutcome::Task(task) => {
                if let Some(call) = running.call {
                    effects.push(Effect::Note(call, (&texts::IN_BACKGROUND).into()));
                }
                let RunningCall { call, tool, definition, .. } = running;
                // One yes must not cover the tasks of two calls, so a task id that is in use cannot be used again.
                if self.tasks.len() < MAX_NARRATED_CALLS && !self.tasks.contains_key(&task) {
                    self.tasks.insert(task, RunningTask { call, tool, definition, is_stopped: false });
                } else {
                    self.finish(call, CallOutcome::NotContinued, effects);
                }
            }
            outcome => self.finish(running.call, outcome, effects),
        }
        if batch.is_some() {
            self.reply(id, batch, with_line_break(response.source()), effects);
            return false;
        }
        !is_own
    }

    fn end_task(&mut self, task: &str, ended: Option<CallOutcome>, effects: &mut Vec<Effect>) {
        if let Some(outcome) = ended
            && let Some(RunningTask { call, .. }) = self.tasks.remove(task)
        {
            self.finish(call, outcome, effects);
        }
    }
}

/// Whether a reader could take a message for a list of tools.
fn may_list_tools(message: &JsonValue<'_>) -> bool {
    let is_named = |key: &JsonValue<'_>, name| is_same_ignoring_case(&key.text().unwrap_or_default(), name);
    let mut results = message.members().filter(|(key, _)| is_named(key, "result"));
    results.any(|(_, result)| result.members().any(|(key, _)| is_named(&key, "tools")))
}
