//! The parts of an event that the session state machine needs.

use super::question_rules::AcceptedResponses;
use crate::event::AgentState;
use seal::Timestamp;

/// One event as input of the session state machine, extracted while the event is checked.
///
/// `S` is the string type: `&str` borrowed from the event, or a range into a buffer for events that
/// are queued. [`map`](Self::map) converts between string types.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEvent<S> {
    /// The event's id, if it has one.
    pub event_id: Option<S>,
    /// The session of the event.
    pub session_id: S,
    /// The producer's `agent_id`; empty if it is missing.
    pub agent_id: S,
    /// The event's timestamp, if it is valid.
    pub timestamp: Option<Timestamp>,
    /// The event's number in the session, if events are numbered.
    pub sequence_number: Option<u64>,
    /// The parent session (§A.9, C-A13).
    pub parent_session_id: Option<S>,
    /// A resolution that the event reports (`extensions.sayso`).
    pub reported_resolution: Option<ReportedResolution<S>>,
    /// The body of the event.
    pub body: SessionEventBody<S>,
}

/// The body of an event, reduced to the members that the session checks need.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SessionEventBody<S> {
    /// `agent.session.started`
    Started,
    /// `agent.session.completed`
    Completed,
    /// `agent.session.errored`
    Errored,
    /// `agent.session.cancelled`
    Cancelled,
    /// `agent.state.changed`
    StateChanged {
        /// The previous state.
        from: AgentState,
        /// The new state.
        to: AgentState,
    },
    /// `agent.progress.updated`
    ProgressUpdated {
        /// The completed percentage, if present.
        percent: Option<f64>,
        /// The extended deadline, if present (`extensions.sayso.extended`).
        deadline_extension: Option<DeadlineExtension<S>>,
    },
    /// `agent.tool.invoked`
    ToolInvoked {
        /// The tool's name.
        tool: S,
        /// The call id.
        call_id: Option<S>,
        /// Whether the call is high risk.
        high_risk: bool,
        /// Whether the call cannot be undone.
        irreversible: bool,
        /// The digest of the exact action, if present (`extensions.sayso.action_digest`).
        digest: Option<S>,
    },
    /// `agent.tool.completed`
    ToolCompleted {
        /// The tool's name.
        tool: S,
        /// The call id.
        call_id: Option<S>,
    },
    /// `agent.output.streaming`
    OutputStreaming {
        /// The output's id.
        output_id: Option<S>,
        /// The position of the chunk, in code points.
        position: u64,
        /// The length of the chunk, in code points.
        code_points: u64,
        /// Whether this is the last chunk.
        complete: bool,
        /// The coalesce hint.
        coalesce_hint: Option<S>,
    },
    /// `agent.awaiting.confirmation`
    Confirmation(Box<Confirmation<S>>),
    /// `agent.awaiting.clarification`
    Clarification(Box<Clarification<S>>),
    /// `agent.handoff.requested`
    Handoff,
    /// An event of an extension, or an event with missing members.
    Other,
}

/// A confirmation: asks whether the agent may act.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation<S> {
    /// The reply token.
    pub token: S,
    /// The text of the action.
    pub action: S,
    /// The timeout in seconds.
    pub timeout_seconds: u64,
    /// Whether the default decision is accept.
    pub accept_by_default: bool,
    /// Whether the action cannot be undone; `None` if the question does not say.
    pub irreversible: Option<bool>,
    /// Whether the question states a high risk.
    pub high_risk: bool,
    /// Whether `accept` is an allowed reply.
    pub may_accept: bool,
    /// Whether `reject` is an allowed reply.
    pub may_reject: bool,
    /// The tool that the question is about, if present (`extensions.sayso.tool`).
    pub tool: Option<S>,
    /// The call that the question is about, if present (`extensions.sayso.tool_call_id`).
    pub call_id: Option<S>,
    /// The digest of the exact action, if present (`extensions.sayso.action_digest`).
    pub digest: Option<S>,
}

/// A clarification: asks what the person wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Clarification<S> {
    /// The reply token.
    pub token: S,
    /// The text of the question.
    pub question: S,
    /// The timeout in seconds.
    pub timeout_seconds: u64,
    /// Whether free text is accepted.
    pub accepts_free_text: bool,
    /// Whether yes or no is accepted.
    pub accepts_yes_no: bool,
    /// Whether a number is accepted.
    pub accepts_number: bool,
    /// The values to choose from; `None` if a choice is not accepted.
    pub choices: Option<Vec<S>>,
}

impl<S: AsRef<str>> Clarification<S> {
    /// Returns the accepted kinds of response.
    pub(crate) fn accepted_responses(&self) -> AcceptedResponses {
        let choices = |values: &Vec<S>| values.iter().map(|value| value.as_ref().into()).collect();
        AcceptedResponses {
            accepts_free_text: self.accepts_free_text,
            accepts_yes_no: self.accepts_yes_no,
            accepts_number: self.accepts_number,
            choices: self.choices.as_ref().map(choices),
        }
    }
}

/// A question's resolution as reported by an event (decision 15).
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedResolution<S> {
    /// The question's token.
    pub token: S,
    /// `accept` or `reject`; `None` for a clarification.
    pub decision: Option<S>,
    /// `reply`, `timeout`, `closure`, `unreachable` or `cancelled`.
    pub resolved_by: Option<S>,
}

/// An extended deadline as reported by an event.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadlineExtension<S> {
    /// The question's token.
    pub token: S,
    /// The new deadline.
    pub deadline: Timestamp,
}

impl<S> SessionEvent<S> {
    /// Converts all strings with `f`.
    pub fn map<'a, T>(&'a self, f: &mut impl FnMut(&'a S) -> T) -> SessionEvent<T> {
        SessionEvent {
            event_id: self.event_id.as_ref().map(&mut *f),
            session_id: f(&self.session_id),
            agent_id: f(&self.agent_id),
            timestamp: self.timestamp,
            sequence_number: self.sequence_number,
            parent_session_id: self.parent_session_id.as_ref().map(&mut *f),
            reported_resolution: self.reported_resolution.as_ref().map(|resolution| ReportedResolution {
                token: f(&resolution.token),
                decision: resolution.decision.as_ref().map(&mut *f),
                resolved_by: resolution.resolved_by.as_ref().map(&mut *f),
            }),
            body: self.body.map(f),
        }
    }

    /// Returns the same event with borrowed strings.
    pub fn borrow(&self) -> SessionEvent<&str>
    where
        S: AsRef<str>,
    {
        self.map(&mut |text: &S| text.as_ref())
    }
}

impl<S> SessionEventBody<S> {
    fn map<'a, T>(&'a self, f: &mut impl FnMut(&'a S) -> T) -> SessionEventBody<T> {
        match self {
            SessionEventBody::Started => SessionEventBody::Started,
            SessionEventBody::Completed => SessionEventBody::Completed,
            SessionEventBody::Errored => SessionEventBody::Errored,
            SessionEventBody::Cancelled => SessionEventBody::Cancelled,
            SessionEventBody::StateChanged { from, to } => {
                SessionEventBody::StateChanged { from: from.clone(), to: to.clone() }
            }
            SessionEventBody::ProgressUpdated { percent, deadline_extension } => {
                SessionEventBody::ProgressUpdated {
                    percent: *percent,
                    deadline_extension: deadline_extension
                        .as_ref()
                        .map(|it| DeadlineExtension { token: f(&it.token), deadline: it.deadline }),
                }
            }
            SessionEventBody::ToolInvoked { tool, call_id: call, high_risk, irreversible, digest } => {
                SessionEventBody::ToolInvoked {
                    tool: f(tool),
                    call_id: call.as_ref().map(&mut *f),
                    high_risk: *high_risk,
                    irreversible: *irreversible,
                    digest: digest.as_ref().map(&mut *f),
                }
            }
            SessionEventBody::ToolCompleted { tool, call_id: call } => {
                SessionEventBody::ToolCompleted { tool: f(tool), call_id: call.as_ref().map(&mut *f) }
            }
            SessionEventBody::OutputStreaming {
                output_id: output,
                position,
                code_points: length,
                complete,
                coalesce_hint: hint,
            } => SessionEventBody::OutputStreaming {
                output_id: output.as_ref().map(&mut *f),
                position: *position,
                code_points: *length,
                complete: *complete,
                coalesce_hint: hint.as_ref().map(&mut *f),
            },
            SessionEventBody::Confirmation(question) => {
                SessionEventBody::Confirmation(Box::new(Confirmation {
                    token: f(&question.token),
                    action: f(&question.action),
                    timeout_seconds: question.timeout_seconds,
                    accept_by_default: question.accept_by_default,
                    irreversible: question.irreversible,
                    high_risk: question.high_risk,
                    may_accept: question.may_accept,
                    may_reject: question.may_reject,
                    tool: question.tool.as_ref().map(&mut *f),
                    call_id: question.call_id.as_ref().map(&mut *f),
                    digest: question.digest.as_ref().map(&mut *f),
                }))
            }
            SessionEventBody::Clarification(question) => {
                SessionEventBody::Clarification(Box::new(Clarification {
                    token: f(&question.token),
                    question: f(&question.question),
                    timeout_seconds: question.timeout_seconds,
                    accepts_free_text: question.accepts_free_text,
                    accepts_yes_no: question.accepts_yes_no,
                    accepts_number: question.accepts_number,
                    choices: question.choices.as_ref().map(|values| values.iter().map(&mut *f).collect()),
                }))
            }
            SessionEventBody::Handoff => SessionEventBody::Handoff,
            SessionEventBody::Other => SessionEventBody::Other,
        }
    }
}
