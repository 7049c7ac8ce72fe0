//! The session state machine: checks the order of events (§4.5, chapter 6, appendix A) and tracks
//! the items that a session waits for.
//!
//! ```text
//!            session.started            completed, errored, cancelled
//!   (new) ───────────────────▶ open ───────────────────────────────────▶ ended
//!                               │ ▲
//!                 any other event└─┘   tools, outputs, questions and the states of each producer
//!                                      have their own state machines inside
//! ```
//!
//! Call [`SessionMachine::apply`], [`SessionMachine::apply_confirmation_reply`],
//! [`SessionMachine::apply_clarification_reply`] and [`SessionMachine::apply_deadline_extension`]
//! in the order in which things happened. Violations are reported as findings. After a finding, the
//! machine treats the event as having happened, as a listener would, so each fault is reported only
//! once. To refuse invalid events, use [`SessionMachine::try_apply`], which leaves the session
//! unchanged if an event is invalid. Time comes only from the events, so nothing expires by itself.

mod output;
mod pending_item;
mod producer_state;
mod question;
pub(crate) mod question_rules;
mod questions;
mod session_event;
mod tool;

pub use pending_item::PendingItem;
pub use session_event::{
    Clarification, Confirmation, DeadlineExtension, ReportedResolution, SessionEvent, SessionEventBody,
};

use std::sync::Arc;

use crate::event::AgentState;
use crate::message::{ClarificationReply, ConfirmationReply, DeadlineExtend};
use crate::rule::{self, Finding, Findings, ValidationMode};
use output::Outputs;
use producer_state::ProducerStates;
use questions::ObservedQuestions;
use seal::{Timestamp, UnixMillis};
use tool::ToolCalls;

/// The default limit on open tools, outputs, questions or producers in one session.
pub const DEFAULT_MAX_OPEN: usize = 1024;

/// One session, from start to end.
///
/// ```
/// use aaep::session::{SessionEvent, SessionEventBody, SessionMachine};
/// let mut session = SessionMachine::new("sess_1");
/// let event = |body| SessionEvent {
///     event_id: None, session_id: "sess_1", agent_id: "bank", timestamp: None, sequence_number: None,
///     parent_session_id: None, reported_resolution: None, body,
/// };
/// session.try_apply(&event(SessionEventBody::Started)).unwrap();
/// let tool = SessionEventBody::ToolInvoked {
///     tool: "transfer", call_id: None, high_risk: true, irreversible: true, digest: None,
/// };
/// let refused = session.try_apply(&event(tool)).unwrap_err();
/// assert!(refused.iter().any(|finding| finding.rule.id() == "AAEP-4.3.1-3"));
/// ```
// Strings are shared, so it is cheap to copy a session in order to try an event.
#[derive(Clone, Debug)]
pub struct SessionMachine {
    id: Arc<str>,
    phase: SessionPhase,
    max_open: usize,
}

#[derive(Clone, Debug)]
enum SessionPhase {
    /// The start of the session has not been seen, but other events may have been.
    New {
        has_earlier_events: bool,
    },
    Open(Box<OpenSessionState>),
    Ended(SessionEnd),
    /// Too many tools, outputs, questions or producers were open at the same time. This was reported,
    /// and the session is no longer tracked.
    Untracked,
}

/// How a session ended (§4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The session finished its task.
    Completed,
    /// The session failed.
    Errored,
    /// The session was cancelled.
    Cancelled,
}

/// A running tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenTool<'s> {
    /// The tool.
    pub tool: &'s str,
    /// The call's id, if it has one.
    pub call_id: Option<&'s str>,
    /// The producer that made the call.
    pub agent_id: &'s str,
}

/// An incomplete output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenOutput<'s> {
    /// The output's id, if it has one.
    pub id: Option<&'s str>,
    /// The position of its next chunk.
    pub next_position: u64,
    /// The producer that writes it.
    pub agent_id: &'s str,
}

#[derive(Clone, Debug, Default)]
struct OpenSessionState {
    parent: Option<Arc<str>>,
    last_timestamp: Option<Timestamp>,
    numbering: SequenceNumbering,
    producer_states: ProducerStates,
    tools: ToolCalls,
    outputs: Outputs,
    questions: ObservedQuestions,
}

#[derive(Clone, Copy, Debug, Default)]
enum SequenceNumbering {
    #[default]
    Unknown,
    Absent,
    Last(u64),
    /// Earlier events were numbered, but the latest event was not. Holds the number that the latest
    /// event should have had.
    Missing(u64),
}

impl SessionMachine {
    /// Creates a session without events.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            phase: SessionPhase::New { has_earlier_events: false },
            max_open: DEFAULT_MAX_OPEN,
        }
    }

    /// Creates a session whose earlier events were skipped.
    pub(crate) fn starting_mid_stream(id: &str) -> Self {
        Self {
            id: id.into(),
            phase: SessionPhase::New { has_earlier_events: true },
            max_open: DEFAULT_MAX_OPEN,
        }
    }

    /// Sets the limit on open tools, outputs, questions and producers. It applies to each kind
    /// separately.
    #[must_use]
    pub fn with_max_open(mut self, max_open: usize) -> Self {
        self.max_open = max_open;
        self
    }

    /// Returns the session id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the parent session, if sessions are linked (§A.9).
    pub fn parent(&self) -> Option<&str> {
        match &self.phase {
            SessionPhase::Open(open) => open.parent.as_deref(),
            _ => None,
        }
    }

    /// Returns how the session ended; `None` if it has not ended.
    pub fn end(&self) -> Option<SessionEnd> {
        match self.phase {
            SessionPhase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Returns whether the session has started and not ended.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, SessionPhase::Open(_))
    }

    /// Applies an event if it is valid, and returns its warnings. If it is invalid, the session
    /// stays unchanged and the findings are returned as the error.
    pub fn try_apply(&mut self, event: &SessionEvent<&str>) -> Result<Vec<Finding>, Vec<Finding>> {
        let mut findings = Findings::new(ValidationMode::Strict);
        // The backup is not boxed, because most events are valid and the box would be wasted.
        let backup = match &mut self.phase {
            SessionPhase::Open(open) => {
                open.tools.merge_recent();
                open.outputs.merge_recent();
                open.questions.merge_recent();
                Ok(OpenSessionState::clone(open))
            }
            other => Err(other.clone()),
        };
        self.apply(event, &mut findings);
        if findings.has_error() {
            self.phase = backup.map_or_else(|other| other, |open| SessionPhase::Open(Box::new(open)));
            return Err(findings.take());
        }
        Ok(findings.take())
    }

    /// Applies an event and reports violations to `findings`.
    pub fn apply(&mut self, event: &SessionEvent<&str>, findings: &mut Findings) {
        match &mut self.phase {
            SessionPhase::New { has_earlier_events } => {
                let has_earlier_events = *has_earlier_events;
                self.start(has_earlier_events, event, findings);
            }
            SessionPhase::Open(open) => {
                open.apply_event(event, findings);
                let end = match event.body {
                    SessionEventBody::Completed => Some(SessionEnd::Completed),
                    SessionEventBody::Errored => Some(SessionEnd::Errored),
                    SessionEventBody::Cancelled => Some(SessionEnd::Cancelled),
                    _ => None,
                };
                if let Some(end) = end {
                    self.phase = SessionPhase::Ended(end);
                } else if open.max_open_count() > self.max_open {
                    let found = format!(
                        "more than {} tools, outputs, questions or producers are open at the same time in {}; the order of its events is no longer checked",
                        self.max_open, self.id
                    );
                    findings.push(rule::CHECK_LIMITS, String::new(), found);
                    self.phase = SessionPhase::Untracked;
                }
            }
            SessionPhase::Ended(end) => report_after_end(*end, &event.body, findings),
            SessionPhase::Untracked => {}
        }
    }

    /// Starts the session with its first event.
    fn start(&mut self, has_earlier_events: bool, event: &SessionEvent<&str>, findings: &mut Findings) {
        let is_start = matches!(event.body, SessionEventBody::Started);
        if !is_start {
            findings.push(rule::STARTED_FIRST, String::new(), format!("{} has not been started", self.id));
        } else if has_earlier_events {
            findings.push(
                rule::STARTED_FIRST,
                String::new(),
                format!("events of {} precede this event", self.id),
            );
        }
        let mut open = Box::new(OpenSessionState {
            parent: event.parent_session_id.map(Into::into),
            ..OpenSessionState::default()
        });
        if is_start {
            open.check_order(event, findings);
            self.phase = SessionPhase::Open(open);
        } else {
            self.phase = SessionPhase::Open(open);
            self.apply(event, findings);
        }
    }

    /// Applies a reply to a confirmation (§6.3).
    pub fn apply_confirmation_reply(&mut self, reply: &ConfirmationReply, findings: &mut Findings) {
        if let SessionPhase::Open(open) = &mut self.phase {
            open.questions.apply_confirmation_reply(reply, findings);
        }
    }

    /// Applies a reply to a clarification (§6.5).
    pub fn apply_clarification_reply(&mut self, reply: &ClarificationReply, findings: &mut Findings) {
        if let SessionPhase::Open(open) = &mut self.phase {
            open.questions.apply_clarification_reply(reply, findings);
        }
    }

    /// Records that an invalid reply to a question was received. The reply does not resolve the
    /// question (§6.3.4).
    pub fn note_invalid_reply(&mut self, token: &str) {
        if let SessionPhase::Open(open) = &mut self.phase {
            open.questions.note_invalid_reply(token);
        }
    }

    /// Applies a person's request for more time.
    pub fn apply_deadline_extension(&mut self, request: &DeadlineExtend) {
        if let SessionPhase::Open(open) = &mut self.phase {
            open.questions.extend_deadline(request);
        }
    }

    /// Applies a person's request to stop the session: refuses all open questions. The session stays
    /// open until its terminal event.
    pub fn apply_stop(&mut self) {
        if let SessionPhase::Open(open) = &mut self.phase {
            open.questions.refuse_all();
        }
    }

    /// Returns whether a question of this session has or had this token.
    pub fn knows_token(&self, token: &str) -> bool {
        matches!(&self.phase, SessionPhase::Open(open) if open.questions.contains_token(token))
    }

    /// Returns the deadline of a question of this session, according to its events (§6.4).
    pub fn deadline_of(&self, token: &str) -> Option<UnixMillis> {
        match &self.phase {
            SessionPhase::Open(open) => open.questions.deadline_of(token),
            _ => None,
        }
    }

    /// Returns what the session waits for: answers, then tools, then outputs, then its end.
    pub fn pending_items(&self) -> Vec<PendingItem> {
        match &self.phase {
            SessionPhase::New { .. } => vec![PendingItem::Start],
            SessionPhase::Open(open) => {
                let mut items = open.questions.pending_items();
                items.extend(open.tools.pending_items());
                items.extend(open.outputs.pending_items());
                items.push(PendingItem::End);
                items
            }
            SessionPhase::Ended(_) | SessionPhase::Untracked => Vec::new(),
        }
    }

    /// Returns the running tool calls, in the order of the calls.
    pub fn open_tools(&self) -> impl Iterator<Item = OpenTool<'_>> {
        self.open_state().into_iter().flat_map(|open| {
            open.tools.iter_open().map(|(producer, tool, call_id)| OpenTool {
                tool,
                call_id,
                agent_id: open.producer_states.agent_id(producer),
            })
        })
    }

    /// Returns the incomplete outputs.
    pub fn open_outputs(&self) -> impl Iterator<Item = OpenOutput<'_>> {
        self.open_state().into_iter().flat_map(|open| {
            open.outputs.iter_open().map(|(producer, id, next_position)| OpenOutput {
                id,
                next_position,
                agent_id: open.producer_states.agent_id(producer),
            })
        })
    }

    fn open_state(&self) -> Option<&OpenSessionState> {
        match &self.phase {
            SessionPhase::Open(open) => Some(open),
            _ => None,
        }
    }

    /// Returns the state in a producer's last `agent.state.changed`; `idle` if there was no such
    /// event.
    pub fn declared_state_of(&self, agent_id: &str) -> &AgentState {
        self.open_state().map_or(&AgentState::Idle, |open| open.producer_states.declared_state_of(agent_id))
    }

    /// Returns the current state of a producer, according to its events (§4.2.1).
    pub fn state_of(&self, agent_id: &str) -> Option<&AgentState> {
        match &self.phase {
            SessionPhase::Open(open) => open.producer_states.state_of(agent_id),
            _ => None,
        }
    }
}

impl OpenSessionState {
    /// Applies an event between start and end.
    fn apply_event(&mut self, event: &SessionEvent<&str>, findings: &mut Findings) {
        self.check_order(event, findings);
        if let Some(now) = &event.timestamp {
            self.questions.expire(now, findings);
        }
        let producer = self.producer_states.index_or_insert(event.agent_id);
        match &event.body {
            SessionEventBody::Started => {
                findings.push(
                    rule::ONE_START_ONE_END,
                    String::new(),
                    "the session was already started".to_owned(),
                );
            }
            SessionEventBody::Completed | SessionEventBody::Errored | SessionEventBody::Cancelled => {
                self.tools.report_open(findings);
                self.outputs.report_open(findings);
                self.questions.end(matches!(event.body, SessionEventBody::Completed), findings);
            }
            SessionEventBody::StateChanged { from, to } => {
                let left_awaiting_input = self.producer_states.change_state(
                    producer,
                    from,
                    to,
                    self.tools.any_open(producer),
                    findings,
                );
                self.questions.apply_state_change(producer, left_awaiting_input, to, event, findings);
            }
            SessionEventBody::ProgressUpdated { percent, deadline_extension } => {
                self.producer_states.update_progress(producer, *percent, event.timestamp, findings);
                match deadline_extension {
                    Some(extension) => self.questions.apply_reported_extension(extension),
                    None => self.questions.count_progress(),
                }
            }
            SessionEventBody::ToolInvoked { tool, call_id: call, high_risk, irreversible, digest } => {
                let attempted = question::AttemptedCall {
                    producer,
                    tool,
                    call_id: *call,
                    digest: *digest,
                    called_at: event.timestamp.map(|at| at.unix_millis()),
                    irreversible: *irreversible,
                    high_risk: *high_risk,
                };
                self.producer_states.invoke(producer, &self.questions, findings);
                self.questions.check_call(&attempted, findings);
                self.tools.invoke(producer, tool, *call, findings);
            }
            SessionEventBody::ToolCompleted { tool, call_id: call } => {
                self.tools.complete(producer, tool, *call, findings);
                self.producer_states.complete_tool(producer);
            }
            SessionEventBody::OutputStreaming {
                output_id: output,
                position,
                code_points: length,
                complete,
                ..
            } => {
                let has_open_tool = self.tools.any_open(producer);
                self.producer_states.write_output(producer, has_open_tool, &self.questions, findings);
                let chunk =
                    output::OutputChunk { position: *position, length: *length, is_complete: *complete };
                self.outputs.add_chunk(producer, *output, chunk, findings);
            }
            SessionEventBody::Confirmation(question) => {
                self.producer_states.ask(producer, findings);
                self.questions.ask_confirmation(producer, question, event.timestamp, findings);
            }
            SessionEventBody::Clarification(question) => {
                self.producer_states.ask(producer, findings);
                self.questions.ask_clarification(producer, question, event.timestamp, findings);
            }
            SessionEventBody::Handoff => {
                self.producer_states.hand_off(producer);
                self.questions.mark_shown(producer);
            }
            SessionEventBody::Other => {}
        }
    }

    /// Checks the sequence number and the timestamp of an event.
    fn check_order(&mut self, event: &SessionEvent<&str>, findings: &mut Findings) {
        if let (Some(last), Some(now)) = (&self.last_timestamp, &event.timestamp)
            && now.cmp_instant(last).is_lt()
        {
            findings.push(rule::TIME_ORDER, "/timestamp".to_owned(), format!("{now} is before {last}"));
        }
        self.last_timestamp = event.timestamp.or(self.last_timestamp);
        self.numbering = match (self.numbering, event.sequence_number) {
            (SequenceNumbering::Unknown | SequenceNumbering::Absent, None) => SequenceNumbering::Absent,
            (SequenceNumbering::Unknown, Some(number)) => SequenceNumbering::Last(number),
            (SequenceNumbering::Last(last), Some(number)) => {
                if number != last.wrapping_add(1) {
                    let found = format!("{number} follows {last}");
                    findings.push(rule::SEQUENCE_STEP, "/sequence_number".to_owned(), found);
                }
                SequenceNumbering::Last(number)
            }
            // The missing number has been reported, so keep counting, and from here on accept
            // events with and without a number.
            (SequenceNumbering::Last(last), None) => {
                findings.push(
                    rule::SEQUENCE_ALL_OR_NONE,
                    String::new(),
                    "the previous event has a number".to_owned(),
                );
                SequenceNumbering::Missing(last.wrapping_add(1))
            }
            (SequenceNumbering::Missing(last), None) => SequenceNumbering::Missing(last.wrapping_add(1)),
            (SequenceNumbering::Missing(last), Some(number)) if number == last.wrapping_add(1) => {
                SequenceNumbering::Last(number)
            }
            (SequenceNumbering::Missing(_), Some(number)) => {
                let found = format!("{number} follows events without a number");
                findings.push(rule::SEQUENCE_STEP, "/sequence_number".to_owned(), found);
                SequenceNumbering::Last(number)
            }
            (SequenceNumbering::Absent, Some(number)) => {
                let found = "the previous event has no number".to_owned();
                findings.push(rule::SEQUENCE_ALL_OR_NONE, "/sequence_number".to_owned(), found);
                SequenceNumbering::Last(number)
            }
        };
    }

    /// Returns the highest number of open items of one kind.
    fn max_open_count(&self) -> usize {
        self.tools
            .open_count()
            .max(self.outputs.open_count())
            .max(self.questions.len())
            .max(self.producer_states.len())
    }
}

/// Reports an event after the end of its session.
pub(crate) fn report_after_end(end: SessionEnd, body: &SessionEventBody<&str>, findings: &mut Findings) {
    let rule = match (end, body) {
        (_, SessionEventBody::Started) => rule::SESSION_ID_NEW,
        (SessionEnd::Errored | SessionEnd::Cancelled, SessionEventBody::Completed) => {
            rule::COMPLETED_AFTER_FAILURE
        }
        (_, SessionEventBody::Completed | SessionEventBody::Errored | SessionEventBody::Cancelled) => {
            rule::ONE_START_ONE_END
        }
        _ => rule::NOTHING_AFTER_END,
    };
    findings.push(rule, String::new(), "the session has ended".to_owned());
}
