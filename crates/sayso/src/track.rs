//! What is open in a session, and the events that follow from what its agent wants to say: the state changes that the
//! protocol wants, and what must be closed before the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::event::State;
use aaep::{ReplyToken, SessionId, ToolCallId};
use seal::json::Scribe;

use crate::left::Left;
use crate::line::Call;
use crate::member::{self, Document};
use crate::redact::{Cleaner, Held};
use crate::utf8::Cut;

/// What an agent wants to say.
#[derive(Debug)]
pub(crate) enum Intent {
    /// It is in another state. While a person is asked, `instead` is said: the state is that of waiting.
    State { to: State, event: Document, instead: Document },
    /// An event that changes nothing here. `None` once it has been said.
    Event(Option<Document>),
    /// A tool is about to run; whether a yes is used for it.
    Invoke { call: ToolCallId, tool: String, event: Document, spends: bool },
    /// A tool has ended.
    Complete { call: ToolCallId, event: Document },
    /// Text of the model, its form where that is not the usual one, and whether that was all.
    Output { text: Piece, form: Option<Arc<OutputForm>>, complete: bool },
    /// A question.
    Ask { body: Document, clarify: bool },
    /// Nobody waits for the answer to a question.
    Withdraw { token: ReplyToken },
    /// Somebody else must go on.
    HandOff(Document),
    /// The session's last event. `why` is said for the tools that are still open.
    End { last: Last, why: &'static str },
}

/// The last event of a session.
#[derive(Debug)]
pub(crate) enum Last {
    /// In its agent's words.
    Said(Document),
    /// Its agent has let it go.
    Left(Left),
}

impl Intent {
    /// The output is whole.
    pub(crate) const OUTPUT_DONE: Self = Self::Output { text: Piece::NONE, form: None, complete: true };

    /// How many bytes it has, about.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::State { event, instead, .. } => event.source().len().max(instead.source().len()),
            Self::Event(Some(event))
            | Self::HandOff(event)
            | Self::Invoke { event, .. }
            | Self::Complete { event, .. }
            | Self::End { last: Last::Said(event), .. } => event.source().len(),
            Self::Event(None) | Self::End { last: Last::Left(_), .. } => 0,
            Self::Ask { body, .. } => body.source().len(),
            Self::Output { text: Piece::Text(text), .. } => text.len(),
            Self::Output { text: Piece::Bytes(bytes), .. } => bytes.len(),
            Self::Withdraw { token } => token.as_str().len(),
        }
    }
}

/// What the text of an output is, where it is not plain text in the session's language.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutputForm {
    pub(crate) language: Option<String>,
    pub(crate) content_type: Option<String>,
}

impl OutputForm {
    pub(crate) fn new(language: Option<String>, content_type: Option<String>) -> Option<Arc<Self>> {
        let is_usual = language.is_none() && content_type.is_none();
        (!is_usual).then(|| Arc::new(Self { language, content_type }))
    }
}

/// Some of an output.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    /// UTF-8, if all is well, but cut anywhere.
    Bytes(Vec<u8>),
}

impl Piece {
    const NONE: Self = Self::Text(String::new());

    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }
}

/// A session as its agent knows it. The hub is the judge; this only knows what to say.
#[derive(Debug)]
pub(crate) struct Track {
    session: SessionId,
    state: State,
    /// The agent has entered that state itself, in its own words, and leaves it itself.
    entered: bool,
    /// Questions that are not resolved.
    asking: usize,
    /// One was resolved while another was not: what it allowed goes on, and leaves the state of waiting for that time.
    answered: bool,
    /// How often a person has said yes to what was not begun since.
    unused: usize,
    /// Calls that are open, and their tools.
    tools: BTreeMap<ToolCallId, String>,
    writing: bool,
    /// The form of the output that is open.
    form: Option<Arc<OutputForm>>,
    /// Outputs that are whole: each has a name of its own.
    outputs: u64,
    /// The beginning of a character whose end has not come.
    cut: Cut,
    /// The end of an output of which it cannot be told yet whether it is a secret.
    held: Held,
    cleaner: Cleaner,
}

impl Track {
    pub(crate) fn new(session: SessionId, cleaner: Cleaner) -> Self {
        let (tools, cut, held) = (BTreeMap::new(), Cut::default(), Held::default());
        Self {
            session,
            state: State::Idle,
            entered: false,
            asking: 0,
            answered: false,
            unused: 0,
            tools,
            writing: false,
            form: None,
            outputs: 0,
            cut,
            held,
            cleaner,
        }
    }

    /// How many secrets were taken out.
    pub(crate) fn redacted(&self) -> u64 {
        self.cleaner.count()
    }

    /// What must be said before: an output that is open is whole when the agent goes on to something else.
    pub(crate) fn before(&self, intent: &Intent) -> Option<Intent> {
        let goes_on = match intent {
            Intent::Output { text, form, .. } => !text.is_empty() && *form != self.form,
            Intent::Event(_) | Intent::Complete { .. } | Intent::Withdraw { .. } => false,
            _ => true,
        };
        if !goes_on || !(self.writing || !self.held.is_empty() || !self.cut.is_empty()) {
            return None;
        }
        // The end of an output shows the state after it, and no other state is shown while a tool runs.
        if let Intent::End { why, .. } = intent
            && let Some((call, tool)) = self.tools.first_key_value()
        {
            return Some(Intent::Complete { call: call.clone(), event: left(tool, call, why) });
        }
        Some(Intent::OUTPUT_DONE)
    }

    /// Its end cannot be told.
    pub(crate) fn give_up_output(&mut self) {
        (self.writing, self.held, self.cut) = (false, Held::default(), Cut::default());
    }

    /// The call that says it; none if there is nothing to say. An event that changes nothing here is taken out of its
    /// intent: nobody asks for it again.
    pub(crate) fn call(&mut self, intent: &mut Intent) -> Option<Call> {
        let session = self.session.clone();
        let mut events = Vec::new();
        match intent {
            Intent::Output { text, form, complete } => {
                if !text.is_empty() {
                    self.form.clone_from(form);
                }
                let mut text = match text {
                    Piece::Text(text) => self.cut.then(text),
                    Piece::Bytes(bytes) => self.cut.push(bytes).into(),
                };
                if *complete && let Some(broken) = self.cut.end() {
                    text.to_mut().push_str(broken);
                }
                let text = self.held.push(&text, *complete, &self.cleaner);
                let nothing = text.is_empty() && !(*complete && self.writing);
                let output_id = format!("out_{}", self.outputs + 1);
                let (form, complete, stays) = (self.form.clone(), *complete, self.stays_writing());
                return (!nothing).then_some(Call::Output {
                    session,
                    output_id,
                    text,
                    form,
                    complete,
                    stays,
                });
            }
            Intent::Ask { body, clarify } => {
                return Some(Call::Ask { session, body: body.clone(), clarify: *clarify });
            }
            Intent::Withdraw { token } => return Some(Call::Withdraw { session, token: token.clone() }),
            Intent::State { event, instead, .. } => {
                events.push(if self.asking > 0 { instead } else { event }.clone());
            }
            Intent::Event(event) => events.extend(event.take()),
            Intent::Invoke { event, .. } => {
                events.extend(if self.answered && self.state != State::CallingTool {
                    Some(state(&State::CallingTool))
                } else {
                    self.enter(&State::CallingTool)
                });
                events.push(event.clone());
            }
            Intent::Complete { call, event } => {
                if !self.tools.contains_key(call) {
                    return None;
                }
                events.push(event.clone());
                if self.tools.len() == 1 && self.state == State::CallingTool && !self.entered {
                    events.push(state(if self.asking > 0 {
                        &State::AwaitingInput
                    } else {
                        &State::Thinking
                    }));
                }
            }
            Intent::HandOff(event) => {
                events.extend(self.enter(&State::HandingOff));
                events.push(event.clone());
            }
            Intent::End { last, why } => {
                events.extend(self.tools.iter().map(|(call, tool)| left(tool, call, why)));
                events.push(match last {
                    Last::Said(event) => event.clone(),
                    Last::Left(how) => how.event(self.unused > 0),
                });
            }
        }
        (!events.is_empty()).then_some(Call::Events { session, events })
    }

    /// It was said.
    pub(crate) fn done(&mut self, intent: &Intent) {
        let asks = self.asking > 0;
        match intent {
            Intent::State { to, .. } if !asks => (self.state, self.entered) = (to.clone(), true),
            Intent::Invoke { call, tool, spends, .. } => {
                self.tools.insert(call.clone(), tool.clone());
                self.unused = self.unused.saturating_sub(usize::from(*spends));
                if (!asks || self.answered) && self.state != State::CallingTool {
                    (self.state, self.entered) = (State::CallingTool, false);
                }
            }
            Intent::Complete { call, .. } => {
                self.tools.remove(call);
                if self.tools.is_empty() && self.state == State::CallingTool && !self.entered {
                    self.state = self.after();
                }
            }
            Intent::Output { complete, .. } => {
                self.writing = !complete;
                self.outputs += u64::from(*complete);
                if !asks && !self.stays_writing() {
                    (self.state, self.entered) =
                        (if *complete { State::Thinking } else { State::WritingOutput }, false);
                }
            }
            Intent::Ask { .. } => {
                self.asking += 1;
                self.answered = false;
                (self.state, self.entered) = (State::AwaitingInput, false);
            }
            Intent::HandOff(_) if !asks => self.state = State::HandingOff,
            Intent::End { .. } => self.tools.clear(),
            Intent::State { .. } | Intent::Event(_) | Intent::Withdraw { .. } | Intent::HandOff(_) => {}
        }
    }

    /// A question is resolved, maybe by a yes; the hub has said so to everybody, and which state comes after it.
    pub(crate) fn resolved(&mut self, yes: bool) {
        self.asking = self.asking.saturating_sub(1);
        self.unused += usize::from(yes);
        self.answered = self.asking > 0;
        (self.state, self.entered) = (self.after(), false);
    }

    /// The end of an output leaves the state to the agent.
    fn stays_writing(&self) -> bool {
        self.entered && self.state == State::WritingOutput
    }

    /// The state that there is when nothing else is said.
    fn after(&self) -> State {
        match () {
            () if self.asking > 0 => State::AwaitingInput,
            () if self.tools.is_empty() => State::Thinking,
            () => State::CallingTool,
        }
    }

    /// A change of state, if it is in another. While a person is asked there is none: to leave `awaiting_input` is to say that
    /// it is resolved.
    fn enter(&self, to: &State) -> Option<Document> {
        (self.asking == 0 && self.state != *to).then(|| state(to))
    }
}

fn state(to: &State) -> Document {
    member::object(|out| {
        out.plain("type", "aaep:agent.state.changed");
        out.plain("urgency", "normal");
        member::text(out, "to_state", to.as_str());
    })
}

/// A tool that nobody waits for any more.
pub(crate) fn left(tool: &str, call: &ToolCallId, why: &str) -> Document {
    let members = [
        ("type", "aaep:agent.tool.completed"),
        ("urgency", "normal"),
        ("tool", tool),
        ("tool_call_id", call.as_str()),
        ("status", "error"),
        ("summary_normal", why),
        ("error_message", why),
    ];
    member::object(|out| {
        member::all(out, &members);
        english(out);
    })
}

/// What the library itself says is in English.
pub(crate) fn english(out: &mut Scribe) {
    out.key("localization_hints").object(|out| out.plain("primary_language", "en"));
}
