//! Messages from the host: each one is passed on, held back or refused.

use super::*;
use crate::mcp::message::read_unambiguous;

/// The decision about one message from the host.
enum HostMessageDecision<'d> {
    Pass,
    Track(RequestId, TrackedKind),
    /// Gives a task the input that its server asked for.
    UpdateTask {
        id: RequestId,
        task: String,
        input: Option<JsonValue<'d>>,
    },
    Call {
        id: RequestId,
        request: ToolCallRequest<'d>,
        verdict: Verdict,
    },
    Cancel(RequestId),
    /// Refuse with a JSON-RPC error, if the message has an id.
    Refuse(Option<RequestId>, &'static str),
    /// Drop a message that cannot be answered.
    Drop(&'static str),
    /// The host's answer to an elicitation.
    ElicitationAnswer(RequestId),
}

impl HostMessageDecision<'_> {
    /// Whether the message passes unchanged.
    fn passes(&self) -> bool {
        match self {
            Self::Pass | Self::Track(..) | Self::UpdateTask { .. } => true,
            Self::Call { verdict, .. } => *verdict == Verdict::Harmless,
            Self::Cancel(_) | Self::Refuse(..) | Self::Drop(_) | Self::ElicitationAnswer(_) => false,
        }
    }
}

const AMBIGUOUS: &str =
    "sayso: the message was not passed on, because a member is missing, appears twice or has the wrong case.";

const DUPLICATE_ID: &str = "sayso: the call was not passed on, because its id is already in use.";

const UNKNOWN_TASK: &str = "sayso: the input was not passed on, because the task was not started through this gate, or has ended. Call the tool again.";

const STOPPED_TASK: &str = "sayso: the input was not passed on, because the person stopped this work. Do not go on with it unless the person asks for it.";

const CHANGED_TASK: &str = "sayso: the input was not passed on, because the server changed the description of the tool since the task was started. Call the tool again.";

impl GateCore {
    /// Handles a line from the host, with its line break.
    pub(crate) fn handle_host_line(&mut self, line: Vec<u8>, now: Instant, effects: &mut Vec<Effect>) {
        let content = trim_line_break(&line);
        // Some servers split lines at a carriage return as well, and would read a part of the message as a message.
        let text = if content.contains(&b'\r') { None } else { std::str::from_utf8(content).ok() };
        let mut tape = std::mem::take(&mut self.tape);
        let parsed = text.and_then(|text| {
            if text.trim_ascii().is_empty() { Some(None) } else { tape.read(text).ok().map(Some) }
        });
        match parsed {
            Some(Some(doc)) => {
                let root = doc.root();
                let is_passed = match root.kind() {
                    JsonKind::Object => {
                        let decision = self.decide(&root);
                        if decision.passes() {
                            self.register(&decision, now, effects);
                            true
                        } else {
                            self.apply(decision, root.source(), None, now, effects);
                            false
                        }
                    }
                    JsonKind::Array => self.handle_host_batch(&root, now, effects),
                    _ => true,
                };
                self.tape = tape;
                if is_passed {
                    effects.push(Effect::ToServer(line));
                }
            }
            Some(None) => effects.push(Effect::ToServer(line)),
            None => effects.push(Effect::ToHost(error_line(
                None,
                PARSE_ERROR,
                "sayso: the line was not passed on, because it is not one JSON message in UTF-8.",
            ))),
        }
    }

    /// Handles a line from the host that is too long to be read.
    pub(crate) fn handle_too_long_host_line(effects: &mut Vec<Effect>) {
        let message =
            format!("sayso: the line was not passed on, because it is longer than {MAX_LINE_BYTES} bytes.");
        effects.push(Effect::ToHost(error_line(None, INVALID_REQUEST, &message)));
    }

    /// Handles a batch. Returns whether it passes unchanged.
    fn handle_host_batch(&mut self, batch: &JsonValue<'_>, now: Instant, effects: &mut Vec<Effect>) -> bool {
        let is_call = |item: &JsonValue<'_>| item.kind() == JsonKind::Array;
        // An array in a batch is not a message, but a tolerant server could read one.
        if batch.items().any(|item| is_call(&item)) {
            effects.push(Effect::ToHost(error_line(None, INVALID_REQUEST, AMBIGUOUS)));
            return false;
        }
        let mut decisions: Vec<_> = batch.items().map(|item| (item, self.decide(&item))).collect();
        let mut ids = HashSet::new();
        for (_, decision) in &mut decisions {
            let repeated = match decision {
                HostMessageDecision::Call { id, .. }
                | HostMessageDecision::Track(id, _)
                | HostMessageDecision::UpdateTask { id, .. } => (!ids.insert(id.clone())).then(|| id.clone()),
                _ => None,
            };
            if let Some(id) = repeated {
                *decision = HostMessageDecision::Refuse(Some(id), DUPLICATE_ID);
            }
        }
        if decisions.iter().all(|(_, decision)| decision.passes()) {
            for (_, decision) in &decisions {
                self.register(decision, now, effects);
            }
            return true;
        }
        if decisions.len() > MAX_BATCH_MESSAGES || self.batches.len() >= MAX_OPEN_BATCHES {
            let message = "sayso: the batch was not passed on, because it is too long or too many batches wait for answers.";
            effects.push(Effect::ToHost(error_line(None, INVALID_REQUEST, message)));
            return false;
        }
        let number = self.next_number();
        let expected = batch.items().filter_map(|item| {
            let envelope = RpcEnvelope::read(&item);
            envelope.method.and(envelope.request_id())
        });
        self.batches.insert(number, Batch { open: expected.collect(), responses: Vec::new() });
        for (item, decision) in decisions {
            let batch = Some(number);
            if decision.passes() {
                let id = RpcEnvelope::read(&item)
                    .request_id()
                    .filter(|_| RpcEnvelope::read(&item).method.is_some());
                self.register(&decision, now, effects);
                if let Some(id) = id {
                    if let Some(CallState::Running(running)) = self.calls.get_mut(&id) {
                        running.batch = batch;
                    } else {
                        let member = TrackedRequest { kind: TrackedKind::BatchMember, batch };
                        self.tracked.entry(id).or_insert(member).batch = batch;
                    }
                }
                effects.push(Effect::ToServer(with_line_break(item.source())));
            } else {
                self.apply(decision, item.source(), batch, now, effects);
            }
        }
        false
    }

    /// Decides what to do with one message from the host. Changes nothing.
    fn decide<'d>(&self, message: &JsonValue<'d>) -> HostMessageDecision<'d> {
        if message.kind() != JsonKind::Object {
            return HostMessageDecision::Pass;
        }
        let Ok(envelope) = RpcEnvelope::read_strictly(message) else {
            let envelope = RpcEnvelope::read(message);
            return HostMessageDecision::Refuse(envelope.request_id(), AMBIGUOUS);
        };
        let id = envelope.request_id();
        let Some(method) = envelope.method else {
            return match id {
                Some(id) if self.elicitations.contains(&id) || self.answered_elicitations.contains(&id) => {
                    HostMessageDecision::ElicitationAnswer(id)
                }
                _ => HostMessageDecision::Pass,
            };
        };
        match (&*method.text().unwrap_or_default(), id) {
            ("tools/call", None) => match envelope.id {
                Some(_) => HostMessageDecision::Refuse(None, AMBIGUOUS),
                None => HostMessageDecision::Drop("a call without an id, which nobody could be told about"),
            },
            ("tools/call", Some(id)) => match ToolCallRequest::read(envelope.params) {
                Err(_) => HostMessageDecision::Refuse(Some(id), AMBIGUOUS),
                Ok(_) if self.calls.contains_key(&id) => HostMessageDecision::Refuse(Some(id), DUPLICATE_ID),
                Ok(request) => {
                    let verdict = match self.tools.judge(&request.tool) {
                        Verdict::Harmless if self.is_stopped => Verdict::Ask(AskReason::Stopped),
                        verdict => verdict,
                    };
                    HostMessageDecision::Call { id, request, verdict }
                }
            },
            ("tools/list", Some(id)) => HostMessageDecision::Track(id, TrackedKind::ListTools),
            ("tasks/update", None) => match envelope.id {
                Some(_) => HostMessageDecision::Refuse(None, AMBIGUOUS),
                None => HostMessageDecision::Drop(
                    "input for a task without an id, which nobody could be told about",
                ),
            },
            ("tasks/update", Some(id)) => self.decide_task_update(id, &envelope),
            (method @ ("tasks/get" | "tasks/result"), Some(id)) => match envelope.text_param("taskId") {
                Some(task) if self.tasks.contains_key(&task) => HostMessageDecision::Track(
                    id,
                    TrackedKind::Task { task, is_result: method == "tasks/result" },
                ),
                _ => HostMessageDecision::Pass,
            },
            ("notifications/cancelled", _) => {
                let id = envelope.params.and_then(|params| params.member("requestId"));
                match id.as_ref().and_then(RequestId::read) {
                    Some(id) if self.calls.contains_key(&id) => HostMessageDecision::Cancel(id),
                    _ => HostMessageDecision::Pass,
                }
            }
            _ => HostMessageDecision::Pass,
        }
    }

    /// Decides about input for a task. It can change what the task does, so it passes only if the task belongs to a call that this
    /// gate has sent, the tool is still the same, and the person has not stopped it.
    fn decide_task_update<'d>(&self, id: RequestId, envelope: &RpcEnvelope<'d>) -> HostMessageDecision<'d> {
        let names = ["taskId", "inputResponses", "requestState", "_meta"];
        let params = envelope.params.filter(|params| params.kind() == JsonKind::Object);
        let Some(Ok([Some(task), input, ..])) = params.map(|params| read_unambiguous(&params, names)) else {
            return HostMessageDecision::Refuse(Some(id), AMBIGUOUS);
        };
        let Some(task) = task.text().filter(|_| !task.has_lone_surrogate()) else {
            return HostMessageDecision::Refuse(Some(id), AMBIGUOUS);
        };
        let refusal = match self.tasks.get(&*task) {
            None => UNKNOWN_TASK,
            Some(running) if running.is_stopped => STOPPED_TASK,
            Some(running) if self.tools.definition(&running.tool) != running.definition => CHANGED_TASK,
            Some(_) => return HostMessageDecision::UpdateTask { id, task: task.into_owned(), input },
        };
        HostMessageDecision::Refuse(Some(id), refusal)
    }

    /// Remembers a message that passes.
    fn register(&mut self, decision: &HostMessageDecision<'_>, now: Instant, effects: &mut Vec<Effect>) {
        match decision {
            HostMessageDecision::Track(id, kind) if self.tracked.len() < MAX_TRACKED_REQUESTS => {
                let kind = match kind {
                    TrackedKind::ListTools => TrackedKind::ListTools,
                    TrackedKind::BatchMember => TrackedKind::BatchMember,
                    TrackedKind::Task { task, is_result } => {
                        TrackedKind::Task { task: task.clone(), is_result: *is_result }
                    }
                };
                self.tracked.insert(id.clone(), TrackedRequest { kind, batch: None });
            }
            HostMessageDecision::UpdateTask { id, task, input } => {
                if let Some(call) = self.tasks.get(task).and_then(|running| running.call) {
                    let text = GateText::new(|language| {
                        let words = describe_arguments(input.as_ref(), language)
                            .unwrap_or_else(|| texts::EMPTY_INPUT.fill(language, &[]));
                        texts::MORE_INPUT.fill(language, &[&words])
                    });
                    effects.push(Effect::Note(call, text));
                }
                if self.tracked.len() < MAX_TRACKED_REQUESTS {
                    let kind = TrackedKind::Task { task: task.clone(), is_result: false };
                    self.tracked.insert(id.clone(), TrackedRequest { kind, batch: None });
                }
            }
            // A host that never waits for answers must not fill the memory.
            HostMessageDecision::Call { .. } if self.calls.len() >= MAX_TRACKED_REQUESTS => {}
            HostMessageDecision::Call { id, request, .. } => {
                let key = self.call_key(request);
                let call = match key.and_then(|key| self.take_retry(key, request, now, effects)) {
                    Some(continued) => continued,
                    None => self.narrate(request, effects),
                };
                let definition = self.tools.definition(&request.tool);
                let tool = request.tool.clone();
                let params = self.params_to_keep(request);
                let joined = Vec::new();
                let running =
                    RunningCall { call, tool, key, definition, joined, batch: None, params, input_rounds: 0 };
                self.calls.insert(id.clone(), CallState::Running(running));
            }
            _ => {}
        }
    }

    /// Announces a call that needs no question. Returns `None` if too many are open.
    fn narrate(&mut self, request: &ToolCallRequest<'_>, effects: &mut Vec<Effect>) -> Option<CallNumber> {
        if self.open_calls.len() >= MAX_NARRATED_CALLS {
            if !std::mem::replace(&mut self.is_overloaded, true) {
                effects.push(Effect::Announce(texts::TOO_OFTEN.with(&[&self.server])));
            }
            return None;
        }
        self.is_overloaded = false;
        let call = CallNumber(self.next_number());
        self.open_calls.insert(call);
        effects.push(Effect::Narrate(call, Box::new(self.describe(request, None))));
        Some(call)
    }

    /// Applies a decision about a message that does not pass unchanged.
    fn apply(
        &mut self,
        decision: HostMessageDecision<'_>,
        source: &str,
        batch: Option<u64>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match decision {
            HostMessageDecision::Call { id, request, verdict: Verdict::Ask(reason) } => {
                self.hold_call(id, &request, reason, source, batch, now, effects);
            }
            HostMessageDecision::Cancel(id) => self.cancel(&id, source, effects),
            HostMessageDecision::Refuse(id, message) => {
                let line = error_line(id.as_ref(), INVALID_REQUEST, message);
                match id {
                    Some(id) => self.reply(&id, batch, line, effects),
                    None => effects.push(Effect::ToHost(line)),
                }
            }
            HostMessageDecision::Drop(reason) => {
                effects.push(Effect::Announce(texts::DROPPED.with(&[&self.server, reason])));
            }
            HostMessageDecision::ElicitationAnswer(id) => {
                if self.answered_elicitations.remove(&id) {
                    return;
                }
                self.elicitations.remove(&id);
                effects.push(Effect::WithdrawElicitation(id));
                effects.push(Effect::ToServer(with_line_break(source)));
            }
            HostMessageDecision::Pass
            | HostMessageDecision::Track(..)
            | HostMessageDecision::UpdateTask { .. }
            | HostMessageDecision::Call { .. } => {
                effects.push(Effect::ToServer(with_line_break(source)));
            }
        }
    }
}
