//! The open tools, outputs and questions of a session, and the events that an intent of the agent requires: state changes, and
//! the ends of items that must be closed first.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::event::{AgentState, CoalesceHint};
use aaep::{OutputId, ReplyToken, ToolCallId};
use seal::Digest;
use seal::json::TapeWriter;

use crate::abandon::AbandonReason;
use crate::dispatcher::{ABANDONED_TOOL_SUMMARY, ProgressMark, SpeakerKey};
use crate::member::{self, Document};
use crate::redact::{CountingRedactor, StreamRedactor};
use crate::session::HandOffOutcome;
use crate::transport::{HubCall, ReplyOutcome};
use crate::utf8::Utf8Decoder;

/// Something that an agent wants to report or ask.
#[derive(Debug)]
pub(crate) enum Intent {
    /// The agent enters another state. While a question is open the state is `awaiting_input`, and `progress_event` is sent instead.
    State { to: AgentState, event: Document, progress_event: Document },
    /// An event that does not change the state. It becomes `None` when it is sent.
    Event(Option<Document>),
    /// A progress update that can be merged with others.
    Progress(Document, ProgressMark),
    /// A tool call starts; `spends_consent` says whether the call spends a grant.
    Invoke { call: ToolCallId, tool: String, event: Document, spends_consent: bool },
    /// A tool call ends.
    Complete { call: ToolCallId, event: Document },
    /// Text from the model, the id of its output if the agent names it, its format if that is not the default, and whether it is the
    /// last piece.
    Output {
        text: OutputPiece,
        output_id: Option<OutputId>,
        format: Option<Arc<OutputFormat>>,
        /// What ends with this piece.
        hint: Option<CoalesceHint>,
        is_complete: bool,
    },
    /// A question.
    Ask { body: Document, is_clarification: bool },
    /// A question is withdrawn because nobody waits for its answer.
    Withdraw { token: ReplyToken },
    /// Listeners hear that somebody else should take over.
    AnnounceHandOff(Document),
    /// Somebody else should take over; the agent waits for the outcome.
    HandOff { body: Document },
    /// A producer other than the main one says nothing more. What it left open is closed.
    Leave,
    /// The end of the session. `open_tool_summary` is reported for tools that are still open.
    End { final_event: FinalEvent, open_tool_summary: &'static str },
}

/// The last event of a session.
#[derive(Debug)]
pub(crate) enum FinalEvent {
    /// Written by the agent.
    ByAgent(Document),
    /// Written by the library because the agent abandoned the session.
    Abandoned(AbandonReason),
}

impl Intent {
    /// Marks the output as complete.
    pub(crate) const FINISH_OUTPUT: Self = Self::Output {
        text: OutputPiece::EMPTY,
        output_id: None,
        format: None,
        hint: None,
        is_complete: true,
    };

    /// Returns the approximate size, in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::State { event, progress_event, .. } => {
                event.source().len().max(progress_event.source().len())
            }
            Self::Event(Some(event))
            | Self::Progress(event, _)
            | Self::AnnounceHandOff(event)
            | Self::Invoke { event, .. }
            | Self::Complete { event, .. }
            | Self::End { final_event: FinalEvent::ByAgent(event), .. } => event.source().len(),
            Self::Event(None) | Self::Leave | Self::End { final_event: FinalEvent::Abandoned(_), .. } => 0,
            Self::Ask { body, .. } | Self::HandOff { body } => body.source().len(),
            Self::Output { text: OutputPiece::Text(text), .. } => text.len(),
            Self::Output { text: OutputPiece::Bytes(bytes), .. } => bytes.len(),
            Self::Withdraw { token } => token.as_str().len(),
        }
    }
}

/// The language and media type of an output, if it is not plain text in the session's language.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutputFormat {
    pub(crate) language: Option<String>,
    pub(crate) content_type: Option<String>,
}

impl OutputFormat {
    pub(crate) fn new(language: Option<String>, content_type: Option<String>) -> Option<Arc<Self>> {
        let is_default = language.is_none() && content_type.is_none();
        (!is_default).then(|| Arc::new(Self { language, content_type }))
    }
}

/// A piece of an output.
#[derive(Debug)]
pub(crate) enum OutputPiece {
    Text(String),
    /// UTF-8, split anywhere.
    Bytes(Vec<u8>),
}

impl OutputPiece {
    const EMPTY: Self = Self::Text(String::new());

    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }
}

/// The agent's view of a session. It determines which events to send; the hub validates them.
#[derive(Debug)]
pub(crate) struct SessionState {
    speaker: SpeakerKey,
    state: AgentState,
    /// Whether the agent entered the state explicitly, with its own text. If so, the end of a tool call or an output does not change
    /// the state.
    is_state_explicit: bool,
    /// The number of open questions.
    open_questions: usize,
    /// The number of grants that are not spent yet.
    unused_grants: usize,
    /// Open tool calls and their tools.
    open_tools: BTreeMap<ToolCallId, String>,
    /// The outputs that the agent named and has not completed.
    named_outputs: BTreeMap<OutputId, NamedOutput>,
    is_output_open: bool,
    /// The format of the open output.
    format: Option<Arc<OutputFormat>>,
    /// The number of completed outputs, from which output ids are derived.
    completed_outputs: u64,
    /// Holds the start of an incomplete character.
    utf8_decoder: Utf8Decoder,
    /// Holds the end of the output while it may be part of a secret.
    stream_redactor: StreamRedactor,
    redactor: CountingRedactor,
}

/// The state of an output that the agent named.
#[derive(Debug, Default)]
struct NamedOutput {
    format: Option<Arc<OutputFormat>>,
    stream_redactor: StreamRedactor,
    utf8_decoder: Utf8Decoder,
}

impl SessionState {
    pub(crate) fn new(speaker: SpeakerKey, redactor: CountingRedactor) -> Self {
        Self {
            speaker,
            state: AgentState::Idle,
            is_state_explicit: false,
            open_questions: 0,
            unused_grants: 0,
            open_tools: BTreeMap::new(),
            named_outputs: BTreeMap::new(),
            is_output_open: false,
            format: None,
            completed_outputs: 0,
            utf8_decoder: Utf8Decoder::default(),
            stream_redactor: StreamRedactor::default(),
            redactor,
        }
    }

    pub(crate) fn redactor(&self) -> &CountingRedactor {
        &self.redactor
    }

    /// Returns how many secrets were removed.
    pub(crate) fn redaction_count(&self) -> u64 {
        self.redactor.count()
    }

    /// Returns what must be sent before this intent. An open output is completed before most other intents.
    pub(crate) fn prerequisite(&self, intent: &Intent) -> Option<Intent> {
        let ends_output = match intent {
            Intent::Output { text, output_id: None, format, .. } => {
                !text.is_empty() && *format != self.format
            }
            Intent::Output { .. }
            | Intent::Event(_)
            | Intent::Progress(..)
            | Intent::Complete { .. }
            | Intent::Withdraw { .. } => false,
            _ => true,
        };
        if matches!(intent, Intent::End { .. } | Intent::Leave)
            && let Some(id) = self.named_outputs.keys().next()
        {
            let (text, output_id) = (OutputPiece::EMPTY, Some(id.clone()));
            return Some(Intent::Output { text, output_id, format: None, hint: None, is_complete: true });
        }
        if !ends_output
            || !(self.is_output_open || !self.stream_redactor.is_empty() || !self.utf8_decoder.is_empty())
        {
            return None;
        }
        // The end of an output changes the state, which is not allowed while a tool runs. So tools are closed first.
        let open_tool_summary = match intent {
            Intent::End { open_tool_summary, .. } => Some(*open_tool_summary),
            Intent::Leave => Some(ABANDONED_TOOL_SUMMARY),
            _ => None,
        };
        if let Some(open_tool_summary) = open_tool_summary
            && let Some((call, tool)) = self.open_tools.first_key_value()
        {
            return Some(Intent::Complete {
                call: call.clone(),
                event: abandoned_tool_event(tool, call, open_tool_summary),
            });
        }
        Some(Intent::FINISH_OUTPUT)
    }

    /// Discards the open output, because its end cannot be reported.
    pub(crate) fn discard_output(&mut self) {
        (self.is_output_open, self.stream_redactor, self.utf8_decoder) =
            (false, StreamRedactor::default(), Utf8Decoder::default());
        self.named_outputs.clear();
    }

    /// Returns the hub call for an intent, or `None` if there is nothing to send. An event that changes no state is moved out of
    /// its intent, because it is never needed again.
    pub(crate) fn build_hub_call(&mut self, intent: &mut Intent) -> Option<HubCall> {
        let session = self.speaker.session.clone();
        let mut events = Vec::new();
        match intent {
            Intent::Output { text, output_id: Some(id), format, hint, is_complete } => {
                let output = self.named_outputs.entry(id.clone()).or_default();
                if !text.is_empty() {
                    output.format.clone_from(format);
                }
                let mut text = match text {
                    OutputPiece::Text(text) => output.utf8_decoder.push_text(text),
                    OutputPiece::Bytes(bytes) => output.utf8_decoder.push(bytes).into(),
                };
                if *is_complete && let Some(replacement) = output.utf8_decoder.finish() {
                    text.to_mut().push_str(replacement);
                }
                let text = output.stream_redactor.push(&text, *is_complete, &self.redactor);
                let format = output.format.clone();
                // The hint is about the end of the piece, which is not sent while it may be part of a secret.
                let hint = hint.clone().filter(|_| output.stream_redactor.is_empty());
                return (*is_complete || !text.is_empty()).then_some(HubCall::Output {
                    session,
                    producer: self.speaker.producer.clone(),
                    output_id: id.to_string(),
                    text,
                    format,
                    hint,
                    is_complete: *is_complete,
                    agent_reports_next_state: self.is_writing_state_explicit(),
                });
            }
            Intent::Output { text, output_id: None, format, hint, is_complete } => {
                if !text.is_empty() {
                    self.format.clone_from(format);
                }
                let mut text = match text {
                    OutputPiece::Text(text) => self.utf8_decoder.push_text(text),
                    OutputPiece::Bytes(bytes) => self.utf8_decoder.push(bytes).into(),
                };
                if *is_complete && let Some(replacement) = self.utf8_decoder.finish() {
                    text.to_mut().push_str(replacement);
                }
                let text = self.stream_redactor.push(&text, *is_complete, &self.redactor);
                let has_nothing_to_send = text.is_empty() && !(*is_complete && self.is_output_open);
                let output_id = self.output_id();
                let hint = hint.clone().filter(|_| self.stream_redactor.is_empty());
                let (format, is_complete, agent_reports_next_state) =
                    (self.format.clone(), *is_complete, self.is_writing_state_explicit());
                return (!has_nothing_to_send).then_some(HubCall::Output {
                    session,
                    producer: self.speaker.producer.clone(),
                    output_id,
                    text,
                    format,
                    hint,
                    is_complete,
                    agent_reports_next_state,
                });
            }
            Intent::Ask { body, is_clarification } => {
                return Some(HubCall::Ask {
                    session,
                    body: self.add_producer(body),
                    is_clarification: *is_clarification,
                });
            }
            Intent::HandOff { body } => return Some(HubCall::HandOff { session, body: body.clone() }),
            Intent::Withdraw { token } => return Some(HubCall::Withdraw { session, token: token.clone() }),
            Intent::State { event, progress_event, .. } => {
                events.push(if self.open_questions > 0 { progress_event } else { event }.clone());
            }
            Intent::Event(event) => events.extend(event.take()),
            Intent::Progress(event, _) => events.push(event.clone()),
            Intent::Invoke { event, .. } => {
                events.extend(self.state_change_to(&AgentState::CallingTool));
                events.push(event.clone());
            }
            Intent::Complete { call, event } => {
                if !self.open_tools.contains_key(call) {
                    return None;
                }
                events.push(event.clone());
                if self.open_tools.len() == 1
                    && self.state == AgentState::CallingTool
                    && !self.is_state_explicit
                {
                    events.push(state_changed_event(if self.open_questions > 0 {
                        &AgentState::AwaitingInput
                    } else {
                        &AgentState::Thinking
                    }));
                }
            }
            Intent::AnnounceHandOff(event) => {
                events.extend(self.state_change_to(&AgentState::HandingOff));
                events.push(event.clone());
            }
            Intent::Leave => {
                let close = |(call, tool): (&ToolCallId, &String)| {
                    abandoned_tool_event(tool, call, ABANDONED_TOOL_SUMMARY)
                };
                events.extend(self.open_tools.iter().map(close));
            }
            Intent::End { final_event, open_tool_summary } => {
                events.extend(
                    self.open_tools
                        .iter()
                        .map(|(call, tool)| abandoned_tool_event(tool, call, open_tool_summary)),
                );
                events.push(match final_event {
                    FinalEvent::ByAgent(event) => event.clone(),
                    FinalEvent::Abandoned(abandon_reason) => abandon_reason.to_event(self.unused_grants > 0),
                });
            }
        }
        if self.speaker.producer.is_some() {
            for event in &mut events {
                *event = self.add_producer(event);
            }
        }
        (!events.is_empty()).then_some(HubCall::Events { session, events })
    }

    /// Returns the id of the current output. It contains a hash of the producer, because ids must be unique within a session.
    fn output_id(&self) -> String {
        let number = self.completed_outputs + 1;
        match &self.speaker.producer {
            None => format!("out_{number}"),
            Some(producer) => {
                let hash = Digest::of(producer.as_bytes());
                let hash = hash.as_bytes().iter().take(4).fold(0, |hash, byte| hash << 8 | u32::from(*byte));
                format!("out_{hash:08x}{number}")
            }
        }
    }

    /// Adds the producer to an event or a question, if it is not the main one.
    fn add_producer(&self, document: &Document) -> Document {
        let Some(producer) = &self.speaker.producer else { return document.clone() };
        member::object(|out| {
            member::copy_members(out, document);
            member::text(out, "producer", producer);
        })
    }

    /// Updates the state after the hub has accepted an intent.
    pub(crate) fn apply(&mut self, intent: &Intent) {
        let has_open_question = self.open_questions > 0;
        match intent {
            Intent::State { to, .. } if !has_open_question => {
                (self.state, self.is_state_explicit) = (to.clone(), true);
            }
            Intent::Invoke { call, tool, spends_consent, .. } => {
                self.open_tools.insert(call.clone(), tool.clone());
                self.unused_grants = self.unused_grants.saturating_sub(usize::from(*spends_consent));
                if !has_open_question && self.state != AgentState::CallingTool {
                    (self.state, self.is_state_explicit) = (AgentState::CallingTool, false);
                }
            }
            Intent::Complete { call, .. } => {
                self.open_tools.remove(call);
                if self.open_tools.is_empty()
                    && self.state == AgentState::CallingTool
                    && !self.is_state_explicit
                {
                    self.state = self.default_state();
                }
            }
            Intent::Output { is_complete, output_id, .. } => {
                match output_id {
                    Some(id) if *is_complete => drop(self.named_outputs.remove(id)),
                    Some(_) => {}
                    None => {
                        self.is_output_open = !is_complete;
                        self.completed_outputs += u64::from(*is_complete);
                    }
                }
                // The hub leaves the state as it is while a tool runs.
                let is_tool_running = self.state == AgentState::CallingTool && !self.open_tools.is_empty();
                if !has_open_question && !self.is_writing_state_explicit() && !is_tool_running {
                    (self.state, self.is_state_explicit) =
                        (if *is_complete { AgentState::Thinking } else { AgentState::WritingOutput }, false);
                }
            }
            Intent::Ask { .. } => {
                self.open_questions += 1;
                (self.state, self.is_state_explicit) = (AgentState::AwaitingInput, false);
            }
            Intent::AnnounceHandOff(_) | Intent::HandOff { .. } if !has_open_question => {
                (self.state, self.is_state_explicit) = (AgentState::HandingOff, false);
            }
            Intent::End { .. } | Intent::Leave => self.open_tools.clear(),
            Intent::State { .. }
            | Intent::Event(_)
            | Intent::Progress(..)
            | Intent::Withdraw { .. }
            | Intent::AnnounceHandOff(_)
            | Intent::HandOff { .. } => {}
        }
    }

    /// Records that a question is resolved, and whether it was accepted. The hub has already announced this and the next state.
    pub(crate) fn resolve_question(&mut self, is_accepted: bool) {
        self.open_questions = self.open_questions.saturating_sub(1);
        self.unused_grants += usize::from(is_accepted);
        (self.state, self.is_state_explicit) = (self.default_state(), false);
    }

    /// Records that a question or a hand-off is resolved.
    pub(crate) fn resolve(&mut self, outcome: &ReplyOutcome) {
        match &outcome.hand_off {
            Some(hand_off) => self.resolve_hand_off(hand_off),
            None => self.resolve_question(outcome.is_accepted),
        }
    }

    /// Records that a hand-off is resolved. The hub has already announced this and the next state.
    fn resolve_hand_off(&mut self, outcome: &HandOffOutcome) {
        if self.open_questions == 0 {
            let is_acknowledged = matches!(outcome, HandOffOutcome::Acknowledged { .. });
            self.state = if is_acknowledged { AgentState::HandingOff } else { self.default_state() };
            self.is_state_explicit = false;
        }
    }

    /// Whether the agent itself entered `writing_output`. If so, the end of an output does not change the state.
    fn is_writing_state_explicit(&self) -> bool {
        self.is_state_explicit && self.state == AgentState::WritingOutput
    }

    /// Returns the state that follows from what is open.
    fn default_state(&self) -> AgentState {
        match () {
            () if self.open_questions > 0 => AgentState::AwaitingInput,
            () if self.open_tools.is_empty() => AgentState::Thinking,
            () => AgentState::CallingTool,
        }
    }

    /// Returns a state change if the state differs. While a question is open there is none, because leaving `awaiting_input` would mean
    /// that the question is resolved.
    fn state_change_to(&self, to: &AgentState) -> Option<Document> {
        (self.open_questions == 0 && self.state != *to).then(|| state_changed_event(to))
    }
}

fn state_changed_event(to: &AgentState) -> Document {
    member::object(|out| {
        out.plain_member("type", "aaep:agent.state.changed");
        out.plain_member("urgency", "normal");
        member::text(out, "to_state", to.as_str());
    })
}

/// Builds the completion of a tool call that the agent abandoned (§4.3.2).
pub(crate) fn abandoned_tool_event(tool: &str, call: &ToolCallId, summary: &str) -> Document {
    let members = [
        ("type", "aaep:agent.tool.completed"),
        ("urgency", "normal"),
        ("tool", tool),
        ("tool_call_id", call.as_str()),
        ("status", "timeout"),
        ("summary_normal", summary),
        ("error_message", summary),
    ];
    member::object(|out| {
        member::text_members(out, &members);
        write_english_hint(out);
    })
}

/// Marks the event's text as English, the language of the library's own texts.
pub(crate) fn write_english_hint(out: &mut TapeWriter) {
    out.key("localization_hints").object(|out| out.plain_member("primary_language", "en"));
}
