//! The state of the gate, without I/O and without a clock.
//!
//! Feed it with [`GateCore::handle_host_line`], [`GateCore::handle_server_line`] and the methods that report what became of a
//! question. Each returns [`Effect`]s, which the caller carries out in their order.
//!
//! A call that needs a question goes through these states:
//!
//! ```text
//!              ask                 yes                spent
//!   request ────────▶ asking ───────────────▶ spending ───────▶ running ───▶ answered
//!                      │  │ no, no hub, stopped     │ refused by the hub
//!                      │  └────────▶ refused ◀──────┘
//!                      │ cancelled by the host
//!                      └────────▶ asking without a waiter ──yes──▶ remembered ──identical call──▶ spending
//! ```
//!
//! Only the step from spending to running sends the call to the server.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use seal::json::{JsonKind, JsonValue, Tape};
use seal::{Digest, canonicalize_exact};

use super::describe::{describe_arguments, make_harmless};
use super::limits::*;
use super::message::{
    Envelope, INVALID_REQUEST, PARSE_ERROR, RequestId, ToolCallRequest, cancelled_line, copy_response,
    error_line, progress_line, refusal_line,
};
use super::outcome::CallOutcome;
use super::tools::{AskReason, Tools, Verdict};

/// The number of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct QuestionId(u64);

/// The number of a narrated call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallNumber(u64);

/// Something that the caller of the core must do.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Send these bytes to the server.
    ToServer(Vec<u8>),
    /// Send these bytes to the host.
    ToHost(Vec<u8>),
    /// Ask the person.
    Ask(QuestionId, Box<CallDescription>),
    /// Spend the person's yes, and announce the call. Then report it with [`GateCore::handle_spent`].
    Spend { question: QuestionId, call: CallNumber, is_late: bool },
    /// Forget a yes that was remembered.
    ForgetYes(QuestionId),
    /// Withdraw all questions.
    WithdrawAll,
    /// Announce a call that needs no question.
    Narrate(CallNumber, Box<CallDescription>),
    /// Report how a call is going on.
    Note(CallNumber, String),
    /// Report the outcome of a call.
    Finish(CallNumber, CallOutcome),
    /// Tell the listeners something.
    Announce(String),
    /// Save the pinned definitions.
    SavePins,
    /// Offer an elicitation of the server to the listeners.
    Elicit(RequestId, Box<str>),
    /// The host answered an elicitation.
    WithdrawElicitation(RequestId),
}

/// A call in words, and as the action that a yes is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallDescription {
    /// The name of the tool for AAEP, which includes the server.
    pub(crate) action_tool: String,
    /// The arguments as JSON.
    pub(crate) arguments: String,
    /// What the call does, with every argument.
    pub(crate) says: String,
    /// The arguments in words.
    pub(crate) argument_words: Option<String>,
    pub(crate) reason: Option<AskReason>,
    /// The tool and the server, for short sentences.
    pub(crate) short_name: String,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuestionOutcome {
    Granted,
    /// No, with a sentence for the model.
    Refused(String),
}

/// A request that waits for the answer to a question.
#[derive(Debug)]
struct Waiter {
    id: RequestId,
    /// The message, as the host sent it.
    line: Vec<u8>,
    progress_token: Option<String>,
    progress_count: u32,
    batch: Option<u64>,
}

#[derive(Debug)]
struct OpenQuestion {
    key: Digest,
    tool: String,
    waiters: Vec<Waiter>,
    short_name: String,
}

#[derive(Debug)]
enum CallState {
    /// The server has not seen the call.
    Waiting(QuestionId),
    /// The call was sent to the server.
    Running(RunningCall),
    /// The call runs under another id, which will be answered too.
    Joined(RequestId),
    /// The host was told that the call was stopped. A late answer of the server is withheld.
    Discarded,
}

#[derive(Debug)]
struct RunningCall {
    call: Option<CallNumber>,
    key: Option<Digest>,
    /// Requests that get the same answer.
    joined: Vec<Waiter>,
    batch: Option<u64>,
}

/// A request other than a call whose answer the gate looks at.
#[derive(Debug)]
struct TrackedRequest {
    kind: TrackedKind,
    batch: Option<u64>,
}

#[derive(Debug)]
enum TrackedKind {
    ListTools,
    /// Asks for the state of a task, or with `is_result` for its result.
    Task {
        task: String,
        is_result: bool,
    },
    BatchMember,
}

#[derive(Debug)]
struct RememberedYes {
    key: Digest,
    question: QuestionId,
    tool: String,
    short_name: String,
    expires_at: Instant,
}

/// A call that needs input, whose retry may follow under another id.
#[derive(Debug)]
struct PendingRetry {
    key: Digest,
    request_state: Option<String>,
    call: Option<CallNumber>,
    expires_at: Instant,
}

/// A batch whose messages were sent to the server one by one, because some had to wait.
#[derive(Debug, Default)]
struct Batch {
    open: HashSet<RequestId>,
    responses: Vec<String>,
}

/// What to do with one message of the host.
enum Decision<'d> {
    Pass,
    Track(RequestId, TrackedKind),
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

impl Decision<'_> {
    /// Whether the message passes as it is.
    fn passes(&self) -> bool {
        match self {
            Self::Pass | Self::Track(..) => true,
            Self::Call { verdict, .. } => *verdict == Verdict::Harmless,
            Self::Cancel(_) | Self::Refuse(..) | Self::Drop(_) | Self::ElicitationAnswer(_) => false,
        }
    }
}

const AMBIGUOUS: &str =
    "sayso: the message was not passed on, because a member is missing, appears twice or has the wrong case.";
const DUPLICATE_ID: &str = "sayso: the call was not passed on, because its id is already in use.";

/// The state of the gate in front of one server.
#[derive(Debug)]
pub(crate) struct GateCore {
    server: String,
    tools: Tools,
    /// Whether elicitations are offered to listeners.
    elicits: bool,
    calls: HashMap<RequestId, CallState>,
    tracked: HashMap<RequestId, TrackedRequest>,
    questions: HashMap<QuestionId, OpenQuestion>,
    remembered: VecDeque<RememberedYes>,
    retries: VecDeque<PendingRetry>,
    tasks: HashMap<String, CallNumber>,
    batches: HashMap<u64, Batch>,
    /// Elicitations of the server that the host has not answered.
    elicitations: HashSet<RequestId>,
    /// Elicitations that a listener answered. The host's own answers are withheld.
    answered_elicitations: HashSet<RequestId>,
    /// Narrated calls that have not ended.
    open_calls: HashSet<CallNumber>,
    /// Whether calls passed without narration, because too many were open.
    is_overloaded: bool,
    /// Whether the person stopped the session. Until the next yes, every call needs a question.
    is_stopped: bool,
    is_closed: bool,
    last_number: u64,
    tape: Tape,
}

impl GateCore {
    pub(crate) fn new(server: String, tools: Tools, elicits: bool) -> Self {
        Self {
            server,
            tools,
            elicits,
            calls: HashMap::new(),
            tracked: HashMap::new(),
            questions: HashMap::new(),
            remembered: VecDeque::new(),
            retries: VecDeque::new(),
            tasks: HashMap::new(),
            batches: HashMap::new(),
            elicitations: HashSet::new(),
            answered_elicitations: HashSet::new(),
            open_calls: HashSet::new(),
            is_overloaded: false,
            is_stopped: false,
            is_closed: false,
            last_number: 0,
            tape: Tape::default(),
        }
    }

    pub(crate) fn pins(&self) -> &HashMap<String, Digest> {
        self.tools.pins()
    }

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

    /// Handles a batch. Returns whether it passes as it is.
    fn handle_host_batch(&mut self, batch: &JsonValue<'_>, now: Instant, effects: &mut Vec<Effect>) -> bool {
        let is_call = |item: &JsonValue<'_>| item.kind() == JsonKind::Array;
        // An array in a batch is no message, but a tolerant server could read one.
        if batch.items().any(|item| is_call(&item)) {
            effects.push(Effect::ToHost(error_line(None, INVALID_REQUEST, AMBIGUOUS)));
            return false;
        }
        let mut decisions: Vec<_> = batch.items().map(|item| (item, self.decide(&item))).collect();
        let mut ids = HashSet::new();
        for (_, decision) in &mut decisions {
            let repeated = match decision {
                Decision::Call { id, .. } | Decision::Track(id, _) => {
                    (!ids.insert(id.clone())).then(|| id.clone())
                }
                _ => None,
            };
            if let Some(id) = repeated {
                *decision = Decision::Refuse(Some(id), DUPLICATE_ID);
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
            let envelope = Envelope::read(&item);
            envelope.method.and(envelope.request_id())
        });
        self.batches.insert(number, Batch { open: expected.collect(), responses: Vec::new() });
        for (item, decision) in decisions {
            let batch = Some(number);
            if decision.passes() {
                let id =
                    Envelope::read(&item).request_id().filter(|_| Envelope::read(&item).method.is_some());
                self.register(&decision, now, effects);
                match id {
                    Some(id) => match self.calls.get_mut(&id) {
                        Some(CallState::Running(running)) => running.batch = batch,
                        _ => {
                            let tracked = self.tracked.entry(id);
                            tracked
                                .or_insert(TrackedRequest { kind: TrackedKind::BatchMember, batch })
                                .batch = batch;
                        }
                    },
                    None => {}
                }
                effects.push(Effect::ToServer(with_line_break(item.source())));
            } else {
                self.apply(decision, item.source(), batch, now, effects);
            }
        }
        false
    }

    /// Decides what to do with one message of the host. Changes nothing.
    fn decide<'d>(&self, message: &JsonValue<'d>) -> Decision<'d> {
        if message.kind() != JsonKind::Object {
            return Decision::Pass;
        }
        let Ok(envelope) = Envelope::read_strictly(message) else {
            let envelope = Envelope::read(message);
            return Decision::Refuse(envelope.request_id(), AMBIGUOUS);
        };
        let id = envelope.request_id();
        let Some(method) = envelope.method else {
            return match id {
                Some(id) if self.elicitations.contains(&id) || self.answered_elicitations.contains(&id) => {
                    Decision::ElicitationAnswer(id)
                }
                _ => Decision::Pass,
            };
        };
        match (&*method.text().unwrap_or_default(), id) {
            ("tools/call", None) => match envelope.id {
                Some(_) => Decision::Refuse(None, AMBIGUOUS),
                None => Decision::Drop("a call without an id, which nobody could be told about"),
            },
            ("tools/call", Some(id)) => match ToolCallRequest::read(envelope.params) {
                Err(_) => Decision::Refuse(Some(id), AMBIGUOUS),
                Ok(_) if self.calls.contains_key(&id) => Decision::Refuse(Some(id), DUPLICATE_ID),
                Ok(request) => {
                    let verdict = match self.tools.judge(&request.tool) {
                        Verdict::Harmless if self.is_stopped => Verdict::Ask(AskReason::Stopped),
                        verdict => verdict,
                    };
                    Decision::Call { id, request, verdict }
                }
            },
            ("tools/list", Some(id)) => Decision::Track(id, TrackedKind::ListTools),
            (method @ ("tasks/get" | "tasks/result" | "tasks/update"), Some(id)) => {
                match envelope.text_param("taskId") {
                    Some(task) if self.tasks.contains_key(&task) => {
                        Decision::Track(id, TrackedKind::Task { task, is_result: method == "tasks/result" })
                    }
                    _ => Decision::Pass,
                }
            }
            ("notifications/cancelled", _) => {
                let id = envelope.params.and_then(|params| params.member("requestId"));
                match id.as_ref().and_then(RequestId::read) {
                    Some(id) if self.calls.contains_key(&id) => Decision::Cancel(id),
                    _ => Decision::Pass,
                }
            }
            _ => Decision::Pass,
        }
    }

    /// Remembers a message that passes.
    fn register(&mut self, decision: &Decision<'_>, now: Instant, effects: &mut Vec<Effect>) {
        match decision {
            Decision::Track(id, kind) if self.tracked.len() < MAX_TRACKED_REQUESTS => {
                let kind = match kind {
                    TrackedKind::ListTools => TrackedKind::ListTools,
                    TrackedKind::BatchMember => TrackedKind::BatchMember,
                    TrackedKind::Task { task, is_result } => {
                        TrackedKind::Task { task: task.clone(), is_result: *is_result }
                    }
                };
                self.tracked.insert(id.clone(), TrackedRequest { kind, batch: None });
            }
            Decision::Call { id, request, .. } => {
                let key = self.call_key(request);
                let call = match key.and_then(|key| self.take_retry(key, request, now, effects)) {
                    Some(continued) => continued,
                    None => self.narrate(request, effects),
                };
                let running = RunningCall { call, key, joined: Vec::new(), batch: None };
                self.calls.insert(id.clone(), CallState::Running(running));
            }
            _ => {}
        }
    }

    /// Announces a call that needs no question. Returns `None` if too many are open.
    fn narrate(&mut self, request: &ToolCallRequest<'_>, effects: &mut Vec<Effect>) -> Option<CallNumber> {
        if self.open_calls.len() >= MAX_NARRATED_CALLS {
            if !std::mem::replace(&mut self.is_overloaded, true) {
                let text = format!(
                    "{} is used so often at the same time that not every call is announced.",
                    self.server
                );
                effects.push(Effect::Announce(text));
            }
            return None;
        }
        self.is_overloaded = false;
        let call = CallNumber(self.next_number());
        self.open_calls.insert(call);
        effects.push(Effect::Narrate(call, Box::new(self.describe(request, None))));
        Some(call)
    }

    /// Applies a decision about a message that does not pass as it is.
    fn apply(
        &mut self,
        decision: Decision<'_>,
        source: &str,
        batch: Option<u64>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match decision {
            Decision::Call { id, request, verdict: Verdict::Ask(reason) } => {
                self.hold_call(id, &request, reason, source, batch, now, effects);
            }
            Decision::Cancel(id) => self.cancel(&id, source, effects),
            Decision::Refuse(id, message) => {
                let line = error_line(id.as_ref(), INVALID_REQUEST, message);
                match id {
                    Some(id) => self.reply(&id, batch, line, effects),
                    None => effects.push(Effect::ToHost(line)),
                }
            }
            Decision::Drop(reason) => {
                effects
                    .push(Effect::Announce(format!("A message to {} was dropped: {reason}.", self.server)));
            }
            Decision::ElicitationAnswer(id) => {
                if self.answered_elicitations.remove(&id) {
                    return;
                }
                self.elicitations.remove(&id);
                effects.push(Effect::WithdrawElicitation(id));
                effects.push(Effect::ToServer(with_line_break(source)));
            }
            Decision::Pass | Decision::Track(..) | Decision::Call { .. } => {
                effects.push(Effect::ToServer(with_line_break(source)));
            }
        }
    }

    /// Holds a call back until a person has answered.
    #[allow(clippy::too_many_arguments, reason = "the parts of one decision")]
    fn hold_call(
        &mut self,
        id: RequestId,
        request: &ToolCallRequest<'_>,
        reason: AskReason,
        source: &str,
        batch: Option<u64>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let refuse = |core: &mut Self, sentence: &str, effects: &mut Vec<Effect>| {
            core.reply(&id, batch, refusal_line(&id, sentence), effects);
        };
        if self.is_closed {
            return refuse(
                self,
                "The call was not made, because the connection to the server is closed.",
                effects,
            );
        }
        if source.len() > MAX_HELD_MESSAGE_BYTES || request.arguments.len() > MAX_QUESTION_ARGUMENT_BYTES {
            let sentence = format!(
                "The call was not made. It needs a person's permission, and its arguments are longer than the {MAX_QUESTION_ARGUMENT_BYTES} bytes that a person can be asked about. Make several shorter calls instead."
            );
            return refuse(self, &sentence, effects);
        }
        let Some(key) = self.call_key(request) else {
            let sentence = "The call was not made. It needs a person's permission, and its arguments are ambiguous: a name appears twice, or a number is too large to be exact. Write large numbers as strings.";
            return refuse(self, sentence, effects);
        };
        let mut waiter = Waiter {
            id: id.clone(),
            line: with_line_break(source),
            progress_token: request.progress_token.map(str::to_owned),
            progress_count: 0,
            batch,
        };
        if let Some(call) = self.take_retry(key, request, now, effects) {
            let running = RunningCall { call, key: Some(key), joined: Vec::new(), batch };
            self.calls.insert(id, CallState::Running(running));
            effects.push(Effect::ToServer(waiter.line));
            return;
        }
        if let Some((question, open)) = self.questions.iter_mut().find(|(_, open)| open.key == key) {
            if open.waiters.len() >= MAX_WAITERS_PER_QUESTION {
                let sentence = "The call was not made. The same call is already waiting for a person's permission too many times.";
                return refuse(self, sentence, effects);
            }
            send_progress(&mut waiter, effects);
            open.waiters.push(waiter);
            self.calls.insert(id, CallState::Waiting(*question));
            return;
        }
        if let Some(yes) = self.take_remembered(key, now, effects) {
            let call = CallNumber(self.next_number());
            self.open_calls.insert(call);
            self.calls.insert(id, CallState::Waiting(yes.question));
            let open =
                OpenQuestion { key, tool: yes.tool, waiters: vec![waiter], short_name: yes.short_name };
            self.questions.insert(yes.question, open);
            effects.push(Effect::Spend { question: yes.question, call, is_late: true });
            return;
        }
        if self.questions.len() >= MAX_OPEN_QUESTIONS {
            let sentence = format!(
                "The call was not made. {MAX_OPEN_QUESTIONS} other calls are already waiting for a person's permission. Try again when they are answered."
            );
            return refuse(self, &sentence, effects);
        }
        let question = QuestionId(self.next_number());
        let description = self.describe(request, Some(reason));
        send_progress(&mut waiter, effects);
        self.calls.insert(id, CallState::Waiting(question));
        let short_name = description.short_name.clone();
        let open = OpenQuestion { key, tool: request.tool.clone(), waiters: vec![waiter], short_name };
        self.questions.insert(question, open);
        effects.push(Effect::Ask(question, Box::new(description)));
    }

    /// The host cancels a call.
    fn cancel(&mut self, id: &RequestId, source: &str, effects: &mut Vec<Effect>) {
        match self.calls.remove(id) {
            Some(CallState::Waiting(question)) => {
                let Some(open) = self.questions.get_mut(&question) else { return };
                let batch =
                    open.waiters.iter().find(|waiter| waiter.id == *id).and_then(|waiter| waiter.batch);
                open.waiters.retain(|waiter| waiter.id != *id);
                if open.waiters.is_empty() {
                    let minutes = REMEMBERED_ANSWER_LIFETIME.as_secs() / 60;
                    effects.push(Effect::Announce(format!(
                        "The agent no longer waits for {}. A yes counts once, if the agent makes the same call again within {minutes} minutes.",
                        open.short_name
                    )));
                }
                self.leave_batch(id, batch, effects);
            }
            Some(CallState::Running(running)) => {
                effects.push(Effect::ToServer(with_line_break(source)));
                self.finish(running.call, CallOutcome::Cancelled, effects);
                for waiter in running.joined {
                    self.calls.remove(&waiter.id);
                    let sentence = "The call was cancelled. It was made under another request, which the host cancelled.";
                    self.reply(&waiter.id, waiter.batch, refusal_line(&waiter.id, sentence), effects);
                }
                self.leave_batch(id, running.batch, effects);
            }
            // The server does not know this id.
            Some(CallState::Joined(other)) => {
                if let Some(CallState::Running(running)) = self.calls.get_mut(&other) {
                    running.joined.retain(|waiter| waiter.id != *id);
                }
            }
            Some(CallState::Discarded) | None => {}
        }
    }

    /// Reports the answer to a question.
    pub(crate) fn handle_answer(
        &mut self,
        question: QuestionId,
        outcome: QuestionOutcome,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match outcome {
            QuestionOutcome::Refused(sentence) => self.refuse_question(question, &sentence, effects),
            QuestionOutcome::Granted => {
                let Some(open) = self.questions.get(&question) else {
                    return effects.push(Effect::ForgetYes(question));
                };
                self.is_stopped = false;
                if self.tools.allow(&open.tool) {
                    effects.push(Effect::SavePins);
                }
                if self.is_closed {
                    self.questions.remove(&question);
                    return effects.push(Effect::ForgetYes(question));
                }
                if !open.waiters.is_empty() {
                    let call = CallNumber(self.next_number());
                    self.open_calls.insert(call);
                    return effects.push(Effect::Spend { question, call, is_late: false });
                }
                let Some(OpenQuestion { key, tool, short_name, .. }) = self.questions.remove(&question)
                else {
                    return;
                };
                if self.remembered.len() >= MAX_REMEMBERED_ANSWERS
                    && let Some(oldest) = self.remembered.pop_front()
                {
                    effects.push(Effect::ForgetYes(oldest.question));
                }
                let expires_at = now + REMEMBERED_ANSWER_LIFETIME;
                let minutes = REMEMBERED_ANSWER_LIFETIME.as_secs() / 60;
                effects.push(Effect::Announce(format!(
                    "Nobody waits for {short_name} any more. Your yes is kept for {minutes} minutes, for the same call."
                )));
                self.remembered.push_back(RememberedYes { key, question, tool, short_name, expires_at });
            }
        }
    }

    /// Reports whether the hub accepted that a yes is spent. Only now the call is sent to the server.
    pub(crate) fn handle_spent(
        &mut self,
        question: QuestionId,
        call: CallNumber,
        spent: Result<(), String>,
        effects: &mut Vec<Effect>,
    ) {
        if let Err(sentence) = spent {
            self.open_calls.remove(&call);
            return self.refuse_question(question, &sentence, effects);
        }
        let Some(mut open) = self.questions.remove(&question) else {
            return self.finish(Some(call), CallOutcome::NotMade, effects);
        };
        // The latest request is the one that the host most likely still waits for.
        let Some(waiter) = open.waiters.pop() else {
            return self.finish(Some(call), CallOutcome::NotMade, effects);
        };
        for joined in &open.waiters {
            self.calls.insert(joined.id.clone(), CallState::Joined(waiter.id.clone()));
        }
        let running =
            RunningCall { call: Some(call), key: Some(open.key), joined: open.waiters, batch: waiter.batch };
        self.calls.insert(waiter.id, CallState::Running(running));
        effects.push(Effect::ToServer(waiter.line));
    }

    /// Sends a sign of life to every host request that waits for this question and has a progress token.
    pub(crate) fn send_progress(&mut self, question: QuestionId, effects: &mut Vec<Effect>) {
        for waiter in self.questions.get_mut(&question).into_iter().flat_map(|open| &mut open.waiters) {
            send_progress(waiter, effects);
        }
    }

    /// The person stopped the session: running calls are cancelled, and from now on every call needs a question.
    pub(crate) fn handle_person_stop(&mut self, effects: &mut Vec<Effect>) {
        self.is_stopped = true;
        let sentence = "The person stopped this work. The call was cancelled; it may have been made in part. Do not call this server again unless the person asks for it.";
        let running = self.calls.iter().filter(|(_, state)| matches!(state, CallState::Running(_)));
        let running: Vec<_> = running.map(|(id, _)| id.clone()).collect();
        for id in running {
            let Some(CallState::Running(call)) = self.calls.insert(id.clone(), CallState::Discarded) else {
                continue;
            };
            effects.push(Effect::ToServer(cancelled_line(&id, "The person stopped the session.")));
            self.finish(call.call, CallOutcome::Cancelled, effects);
            self.reply(&id, call.batch, refusal_line(&id, sentence), effects);
            for waiter in call.joined {
                self.calls.remove(&waiter.id);
                self.reply(&waiter.id, waiter.batch, refusal_line(&waiter.id, sentence), effects);
            }
        }
        for yes in std::mem::take(&mut self.remembered) {
            effects.push(Effect::ForgetYes(yes.question));
        }
    }

    /// The host or the server is gone. No call is sent to the server any more.
    pub(crate) fn close(&mut self, effects: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        effects.push(Effect::WithdrawAll);
        let questions: Vec<_> = self.questions.keys().copied().collect();
        for question in questions {
            let sentence =
                "The call was not made, because the connection was closed before a person answered.";
            self.refuse_question(question, sentence, effects);
        }
    }

    /// Handles a line from the server, with its line break.
    pub(crate) fn handle_server_line(&mut self, line: Vec<u8>, now: Instant, effects: &mut Vec<Effect>) {
        let mut tape = std::mem::take(&mut self.tape);
        let text = std::str::from_utf8(trim_line_break(&line)).ok();
        let is_passed = match text.and_then(|text| tape.read(text).ok()) {
            None => true,
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

    /// Looks at one message of the server. Returns whether it passes.
    fn handle_server_message(
        &mut self,
        message: &JsonValue<'_>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if message.kind() != JsonKind::Object {
            return true;
        }
        let envelope = Envelope::read(message);
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
                effects.push(Effect::Announce(format!(
                    "Warning: {} answered a call that it has not received. The answer was withheld.",
                    self.server
                )));
                return false;
            }
        }
        let Some(TrackedRequest { kind, batch }) = self.tracked.remove(&id) else { return true };
        let result = message.member("result");
        match kind {
            TrackedKind::ListTools => {
                if result.is_some_and(|result| self.tools.learn(&result)) {
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

    /// Looks at a request or notification of the server.
    fn handle_server_request(
        &mut self,
        message: &JsonValue<'_>,
        envelope: &Envelope<'_>,
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
        response: String,
        effects: &mut Vec<Effect>,
    ) -> bool {
        if !self.elicitations.remove(id) || self.is_closed {
            return false;
        }
        if self.answered_elicitations.len() >= MAX_OPEN_QUESTIONS {
            self.answered_elicitations.clear();
        }
        self.answered_elicitations.insert(id.clone());
        effects.push(Effect::ToServer(with_line_break(&response)));
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
        for waiter in running.joined {
            self.calls.remove(&waiter.id);
            self.reply(&waiter.id, waiter.batch, copy_response(response, &waiter.id), effects);
        }
        match outcome {
            CallOutcome::InputRequired { request_state } => {
                if let Some(call) = running.call {
                    effects.push(Effect::Note(
                        call,
                        format!("{} needs more information to go on.", self.server),
                    ));
                }
                if let Some(key) = running.key {
                    if self.retries.len() >= MAX_PENDING_RETRIES
                        && let Some(oldest) = self.retries.pop_front()
                    {
                        self.finish(oldest.call, CallOutcome::NotContinued, effects);
                    }
                    let expires_at = now + RETRY_LIFETIME;
                    self.retries.push_back(PendingRetry {
                        key,
                        request_state,
                        call: running.call,
                        expires_at,
                    });
                } else {
                    self.finish(running.call, CallOutcome::NotContinued, effects);
                }
            }
            CallOutcome::Task(task) => {
                if let Some(call) = running.call {
                    effects.push(Effect::Note(
                        call,
                        "It goes on in the background. It has not finished yet.".to_owned(),
                    ));
                    if self.tasks.len() < MAX_NARRATED_CALLS {
                        self.tasks.insert(task, call);
                    } else {
                        self.finish(Some(call), CallOutcome::NotContinued, effects);
                    }
                }
            }
            outcome => self.finish(running.call, outcome, effects),
        }
        if running.batch.is_some() {
            self.reply(id, running.batch, with_line_break(response.source()), effects);
            return false;
        }
        true
    }

    fn end_task(&mut self, task: &str, ended: Option<CallOutcome>, effects: &mut Vec<Effect>) {
        if let Some(outcome) = ended
            && let Some(call) = self.tasks.remove(task)
        {
            self.finish(Some(call), outcome, effects);
        }
    }

    /// Returns the narrated call that this request continues, if it is the retry of a call that needed input. The retry must have
    /// the same arguments and the state that the server gave.
    #[allow(clippy::option_option, reason = "a continued call may have no narration")]
    fn take_retry(
        &mut self,
        key: Digest,
        request: &ToolCallRequest<'_>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Option<Option<CallNumber>> {
        while let Some(expired) = self.retries.pop_front_if(|retry| retry.expires_at <= now) {
            self.finish(expired.call, CallOutcome::NotContinued, effects);
        }
        if !request.has_input_responses && request.request_state.is_none() {
            return None;
        }
        let matches = |retry: &PendingRetry| retry.key == key && retry.request_state == request.request_state;
        let index = self.retries.iter().position(matches)?;
        self.retries.remove(index).map(|retry| retry.call)
    }

    fn take_remembered(
        &mut self,
        key: Digest,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Option<RememberedYes> {
        while let Some(expired) = self.remembered.pop_front_if(|yes| yes.expires_at <= now) {
            effects.push(Effect::ForgetYes(expired.question));
        }
        let index = self.remembered.iter().position(|yes| yes.key == key)?;
        self.remembered.remove(index)
    }

    fn refuse_question(&mut self, question: QuestionId, sentence: &str, effects: &mut Vec<Effect>) {
        let Some(open) = self.questions.remove(&question) else { return };
        for waiter in open.waiters {
            self.calls.remove(&waiter.id);
            self.reply(&waiter.id, waiter.batch, refusal_line(&waiter.id, sentence), effects);
        }
    }

    fn finish(&mut self, call: Option<CallNumber>, outcome: CallOutcome, effects: &mut Vec<Effect>) {
        if let Some(call) = call
            && self.open_calls.remove(&call)
        {
            effects.push(Effect::Finish(call, outcome));
        }
    }

    /// Answers a request of the host, by itself or as a part of its batch.
    fn reply(&mut self, id: &RequestId, batch: Option<u64>, line: Vec<u8>, effects: &mut Vec<Effect>) {
        match batch {
            None => effects.push(Effect::ToHost(line)),
            Some(number) => {
                if let Some(batch) = self.batches.get_mut(&number) {
                    let text = String::from_utf8_lossy(trim_line_break(&line)).into_owned();
                    batch.responses.push(text);
                }
                self.leave_batch(id, Some(number), effects);
            }
        }
    }

    /// Records that nothing more is expected for a request of a batch, and answers the batch if that was the last one.
    fn leave_batch(&mut self, id: &RequestId, batch: Option<u64>, effects: &mut Vec<Effect>) {
        let Some(number) = batch else { return };
        let Some(batch) = self.batches.get_mut(&number) else { return };
        batch.open.remove(id);
        if batch.open.is_empty()
            && let Some(batch) = self.batches.remove(&number)
            && !batch.responses.is_empty()
        {
            effects.push(Effect::ToHost(with_line_break(&format!("[{}]", batch.responses.join(",")))));
        }
    }

    /// Returns the digest of server, tool and canonical arguments, or `None` if the arguments have no canonical form.
    fn call_key(&self, request: &ToolCallRequest<'_>) -> Option<Digest> {
        let arguments = match &request.arguments_value {
            None => "{}".to_owned(),
            Some(arguments) => canonicalize_exact(arguments).ok()?,
        };
        let length = |text: &str| (text.len() as u64).to_be_bytes();
        let (server, tool) = (length(&self.server), length(&request.tool));
        Some(Digest::of_parts([
            &server[..],
            self.server.as_bytes(),
            &tool[..],
            request.tool.as_bytes(),
            arguments.as_bytes(),
        ]))
    }

    fn describe(&self, request: &ToolCallRequest<'_>, reason: Option<AskReason>) -> CallDescription {
        let (server, tool) = (make_harmless(&self.server, 100), make_harmless(&request.tool, 100));
        let argument_words = describe_arguments(request.arguments_value.as_ref());
        let arguments_sentence = argument_words.as_deref().unwrap_or("It has no arguments.");
        CallDescription {
            action_tool: action_tool_name(&self.server, &request.tool),
            arguments: request.arguments.to_owned(),
            says: format!("Use {tool} of the server {server}. {arguments_sentence}"),
            argument_words,
            reason,
            short_name: format!("{tool} of {server}"),
        }
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

fn send_progress(waiter: &mut Waiter, effects: &mut Vec<Effect>) {
    if let Some(token) = &waiter.progress_token {
        waiter.progress_count += 1;
        let message = "Waiting for a person's permission.";
        effects.push(Effect::ToHost(progress_line(token, waiter.progress_count, message)));
    }
}

/// Returns a name for AAEP, which allows only ASCII letters, digits and a few signs. If that changes the name, a hash is
/// appended, so that different tools have different names.
fn action_tool_name(server: &str, tool: &str) -> String {
    const MAX_CHARS: usize = 200;
    let full = format!("{server}.{tool}");
    let mut name: String = full
        .chars()
        .take(MAX_CHARS)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' })
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    if name != full || server.contains('.') {
        let hash = Digest::of_parts([&(server.len() as u64).to_be_bytes()[..], full.as_bytes()]);
        name.push('-');
        for byte in hash.as_bytes().iter().take(6) {
            name.push_str(&format!("{byte:02x}"));
        }
    }
    name
}

fn trim_line_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn with_line_break(text: &str) -> Vec<u8> {
    let mut line = Vec::with_capacity(text.len() + 1);
    line.extend_from_slice(text.as_bytes());
    line.push(b'\n');
    line
}

#[cfg(test)]
#[path = "gate_core_tests.rs"]
mod tests;
