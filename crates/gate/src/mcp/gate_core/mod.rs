//! The state of the gate, without I/O and without a clock.
//!
//! Feed it with [`GateCore::handle_host_line`], [`GateCore::handle_server_line`] and the methods that report the outcome of a
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
//! Only the step from spending to running sends the call to the server. If the server then needs input and listeners are asked for
//! it, the call is offered until they answer, and runs again under an id of the gate.

mod host;
mod offered_input;
mod question;
mod server;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::time::Instant;

pub(crate) use offered_input::write_input;
use seal::json::{JsonKind, JsonValue, Tape};
use seal::{Digest, canonicalize_exact};

use super::describe::{describe_arguments, describe_other_params, escape_and_shorten};
use super::limits::*;
use super::message::{
    INVALID_REQUEST, PARSE_ERROR, RequestId, RpcEnvelope, ToolCallRequest, cancelled_line, copy_response,
    error_line, progress_line, refusal_line, retry_line,
};
use super::outcome::CallOutcome;
use super::param_headers::ParamHeader;
use super::tools::{AskReason, Tools, Verdict};
use crate::phrases::{GateText, Language, texts};

/// Metadata that each request of protocol 2026-07-28 has. A yes is bound to it, but it is not read aloud.
const PROTOCOL_META: [&str; 3] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

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
    Note(CallNumber, GateText),
    /// Report the outcome of a call.
    Finish(CallNumber, CallOutcome),
    /// Tell the listeners something.
    Announce(GateText),
    /// Save the pinned definitions.
    SavePins,
    /// Offer an elicitation of the server to the listeners.
    Elicit(RequestId, Box<str>),
    /// The host answered an elicitation.
    WithdrawElicitation(RequestId),
    /// Ask the listeners for the input that the server needs for a call of the host: the name and text of each request. Then report
    /// it with [`GateCore::handle_input`].
    OfferInput(RequestId, Vec<(String, String)>),
    /// The input is not needed any more.
    WithdrawInput(RequestId),
}

/// A call in words, and as the action that a yes is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallDescription {
    /// The name of the tool for AAEP, which includes the server.
    pub(crate) action_tool: String,
    /// The arguments as JSON, or if there are other parameters, an object with both.
    pub(crate) arguments: String,
    /// What the call does, with every argument.
    pub(crate) says: GateText,
    /// The arguments in words.
    pub(crate) argument_words: Option<GateText>,
    pub(crate) reason: Option<AskReason>,
    /// The tool and the server, for short sentences.
    pub(crate) short_name: GateText,
}

/// Identifies a call. Two calls with equal keys are the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallKey {
    /// The hash of the server, the tool and all parameters except the progress token.
    whole: Digest,
    /// The same without what only a retry has: the answers to the server's questions, and its state.
    without_input: Digest,
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
    /// The parameters of the call, if listeners can be asked for its input.
    params: Option<Box<str>>,
}

#[derive(Debug)]
struct HeldQuestion {
    key: CallKey,
    tool: String,
    /// The definition of the tool when the person was asked.
    definition: Option<Digest>,
    waiters: Vec<Waiter>,
    short_name: GateText,
}

#[derive(Debug)]
enum CallState {
    /// The server has not seen the call.
    Waiting(QuestionId),
    /// The call was sent to the server.
    Running(RunningCall),
    /// The call runs under another id, which will be answered too.
    Joined(RequestId),
    /// The server needs input for the call, and listeners are asked for it.
    Offered(Box<OfferedInput>),
    /// The host was informed that the call was stopped. A late answer from the server is withheld.
    Discarded,
}

#[derive(Debug)]
struct RunningCall {
    call: Option<CallNumber>,
    tool: String,
    key: Option<CallKey>,
    /// The definition of the tool when the call was sent.
    definition: Option<Digest>,
    /// Requests that get the same answer.
    joined: Vec<Waiter>,
    batch: Option<u64>,
    /// The parameters of the call, if listeners can be asked for its input.
    params: Option<Box<str>>,
    /// How often they were asked for it. If they were, the call runs under an id of the gate, and the host's request has joined it.
    input_rounds: u8,
}

/// A call for which the server needs input.
#[derive(Debug)]
struct OfferedInput {
    running: RunningCall,
    /// The host's request.
    waiter: Waiter,
    /// The server's answer, for the host if listeners do not give the input.
    response: Vec<u8>,
    request_state: Option<String>,
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
    key: CallKey,
    question: QuestionId,
    tool: String,
    definition: Option<Digest>,
    short_name: GateText,
    expires_at: Instant,
}

/// A call that goes on as a task. The host may give it more input as long as the person's permission still covers the task.
#[derive(Debug)]
struct RunningTask {
    call: Option<CallNumber>,
    tool: String,
    /// The definition of the tool when the call was sent.
    definition: Option<Digest>,
    /// Whether the person stopped the session while the task was running.
    is_stopped: bool,
}

/// A call that needs input, whose retry may follow under another id.
#[derive(Debug)]
struct PendingRetry {
    key: CallKey,
    /// The definition of the tool when the call was sent.
    definition: Option<Digest>,
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

/// The state of the gate in front of one server.
#[derive(Debug)]
pub(crate) struct GateCore {
    server: String,
    tools: Tools,
    /// Whether elicitations are offered to listeners.
    elicits: bool,
    calls: HashMap<RequestId, CallState>,
    tracked: HashMap<RequestId, TrackedRequest>,
    questions: HashMap<QuestionId, HeldQuestion>,
    remembered: VecDeque<RememberedYes>,
    retries: VecDeque<PendingRetry>,
    tasks: HashMap<String, RunningTask>,
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

    /// Returns the arguments of a tool that a server behind a URL also wants as headers.
    pub(crate) fn param_headers(&self, tool: &str) -> Vec<ParamHeader> {
        self.tools.param_headers(tool)
    }

    fn finish(&mut self, call: Option<CallNumber>, outcome: CallOutcome, effects: &mut Vec<Effect>) {
        if let Some(call) = call
            && self.open_calls.remove(&call)
        {
            effects.push(Effect::Finish(call, outcome));
        }
    }

    /// Answers a request from the host, by itself or as a part of its batch.
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

    /// Records that nothing more is expected for a request in a batch, and answers the batch if that was the last one.
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

    /// Returns the key of a call, or `None` if its parameters have no canonical form.
    fn call_key(&self, request: &ToolCallRequest<'_>) -> Option<CallKey> {
        let arguments = match &request.arguments_value {
            None => "{}".to_owned(),
            Some(arguments) => canonicalize_exact(arguments).ok()?,
        };
        let length = |text: &str| (text.len() as u64).to_be_bytes();
        let hash = |without: &[&str]| {
            let others = request.other_params(without, &[]).ok()?.unwrap_or_default();
            Some(Digest::of_parts([
                &length(&self.server)[..],
                self.server.as_bytes(),
                &length(&request.tool)[..],
                request.tool.as_bytes(),
                &length(&arguments)[..],
                arguments.as_bytes(),
                others.as_bytes(),
            ]))
        };
        Some(CallKey { whole: hash(&[])?, without_input: hash(&["inputResponses", "requestState"])? })
    }

    fn describe(&self, request: &ToolCallRequest<'_>, reason: Option<AskReason>) -> CallDescription {
        let (server, tool) = (
            escape_and_shorten(&self.server, 100, Language::English),
            escape_and_shorten(&request.tool, 100, Language::English),
        );
        // Metadata is announced only where it is a part of what a person agrees to.
        let without: &[&str] = if reason.is_some() { &[] } else { &["_meta"] };
        let others = request.other_params(without, &[]).ok().flatten();
        let spoken = request.other_params(without, &PROTOCOL_META).ok().flatten();
        let words_in = |language| {
            let words = describe_arguments(request.arguments_value.as_ref(), language);
            match &spoken {
                Some(others) => Some(describe_other_params(others, words, language)),
                None => words,
            }
        };
        let has_words = words_in(Language::English).is_some();
        let says = GateText::new(|language| {
            let words = words_in(language).unwrap_or_else(|| texts::NO_ARGUMENTS.fill(language, &[]));
            texts::USE_WITH_WORDS.fill(language, &[&tool, &server, &words])
        });
        let argument_words =
            has_words.then(|| GateText::new(|language| words_in(language).unwrap_or_default()));
        CallDescription {
            action_tool: action_tool_name(&self.server, &request.tool),
            arguments: match &others {
                None => request.arguments.to_owned(),
                Some(others) => format!(r#"{{"arguments":{},"otherParams":{others}}}"#, request.arguments),
            },
            says,
            argument_words,
            reason,
            short_name: texts::TOOL_OF.with(&[&tool, &server]),
        }
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
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
            let _ = write!(name, "{byte:02x}");
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
