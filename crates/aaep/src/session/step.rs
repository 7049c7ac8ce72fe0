//! What the session machine needs to know of one event.

use super::terms::Kinds;
use crate::event::State;
use seal::Timestamp;

/// One event, as the session machine sees it: taken off the event once, while it is checked.
///
/// The strings are of any kind `S`: borrowed where an event is at hand, a place in some other text where steps wait
/// for their turn; [`map`](Self::map) goes from one to the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<S> {
    /// The event's id, if it has one.
    pub event_id: Option<S>,
    /// Its session.
    pub session_id: S,
    /// Its producer's `agent_id`; empty if it has none.
    pub agent_id: S,
    /// When it was made, if that can be read.
    pub at: Option<Timestamp>,
    /// Its number in the session, where events are numbered.
    pub sequence_number: Option<u64>,
    /// The session that this one was begun for (§A.9, C-A13).
    pub parent: Option<S>,
    /// What the event says of an answered question (`extensions.sayso`).
    pub resolution: Option<Resolution<S>>,
    /// What happened.
    pub body: Body<S>,
}

/// What happened, as far as order goes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Body<S> {
    /// `agent.session.started`
    Started,
    /// `agent.session.completed`
    Completed,
    /// `agent.session.errored`
    Errored,
    /// `agent.session.cancelled`
    Cancelled,
    /// `agent.state.changed`
    State {
        /// The state left.
        from: State,
        /// The state entered.
        to: State,
    },
    /// `agent.progress.updated`
    Progress {
        /// Per cent done, if said.
        percent: Option<f64>,
        /// The question that has more time now, if it says one (`extensions.sayso.extended`).
        more_time: Option<MoreTime<S>>,
    },
    /// `agent.tool.invoked`
    ToolInvoked {
        /// The tool.
        tool: S,
        /// Its call id.
        call: Option<S>,
        /// Whether it is of high risk.
        high_risk: bool,
        /// Whether it can never be undone.
        irreversible: bool,
        /// The digest of the exact action, if it says one (`extensions.sayso.action_digest`).
        digest: Option<S>,
    },
    /// `agent.tool.completed`
    ToolCompleted {
        /// The tool.
        tool: S,
        /// Its call id.
        call: Option<S>,
    },
    /// `agent.output.streaming`
    Output {
        /// The output's id.
        output: Option<S>,
        /// Where the chunk starts, in code points.
        position: u64,
        /// How many code points it has.
        length: u64,
        /// Whether it is the last.
        complete: bool,
        /// Its coalesce hint.
        hint: Option<S>,
    },
    /// `agent.awaiting.confirmation`
    Confirmation(Box<Confirmation<S>>),
    /// `agent.awaiting.clarification`
    Clarification(Box<Clarification<S>>),
    /// `agent.handoff.requested`
    Handoff,
    /// An event of an extension, or one that cannot be made out.
    Other,
}

/// A question about an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation<S> {
    /// Its token.
    pub token: S,
    /// The action, in words.
    pub action: S,
    /// How long it may stay open.
    pub timeout_seconds: u64,
    /// Whether silence means yes.
    pub accept_by_default: bool,
    /// Whether the action can never be undone, as far as the question says.
    pub irreversible: Option<bool>,
    /// Whether `accept` is an allowed reply.
    pub may_accept: bool,
    /// Whether `reject` is an allowed reply.
    pub may_reject: bool,
    /// The tool that it is about, if it says one (`extensions.sayso.tool`).
    pub tool: Option<S>,
    /// The call that it is about, if it says one (`extensions.sayso.tool_call_id`).
    pub call: Option<S>,
    /// The digest of the exact action, if it says one (`extensions.sayso.action_digest`).
    pub digest: Option<S>,
}

/// A question about what was meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Clarification<S> {
    /// Its token.
    pub token: S,
    /// The question, in words.
    pub question: S,
    /// How long it may stay open.
    pub timeout_seconds: u64,
    /// Whether free text is an answer.
    pub free_text: bool,
    /// Whether yes or no is an answer.
    pub yes_no: bool,
    /// Whether a number is an answer.
    pub numeric: bool,
    /// The values to choose from; none where a choice is no answer.
    pub choices: Option<Vec<S>>,
}

impl<S: AsRef<str>> Clarification<S> {
    /// What an answer to it may be.
    pub(crate) fn kinds(&self) -> Kinds {
        let choices = |values: &Vec<S>| values.iter().map(|value| value.as_ref().into()).collect();
        Kinds {
            free_text: self.free_text,
            yes_no: self.yes_no,
            numeric: self.numeric,
            choices: self.choices.as_ref().map(choices),
        }
    }
}

/// How a question was resolved, as an event tells it (design, decision 15).
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution<S> {
    /// The question's token.
    pub token: S,
    /// `accept` or `reject`; nothing for a clarification.
    pub decision: Option<S>,
    /// `reply`, `timeout`, `closure`, `unreachable` or `cancelled`.
    pub by: Option<S>,
}

/// A question that can be answered for longer, as an event tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct MoreTime<S> {
    /// The question's token.
    pub token: S,
    /// Until when.
    pub deadline: Timestamp,
}

impl<S> Step<S> {
    /// The same step, each of its strings seen through `f`.
    pub fn map<'a, T>(&'a self, f: &mut impl FnMut(&'a S) -> T) -> Step<T> {
        Step {
            event_id: self.event_id.as_ref().map(&mut *f),
            session_id: f(&self.session_id),
            agent_id: f(&self.agent_id),
            at: self.at,
            sequence_number: self.sequence_number,
            parent: self.parent.as_ref().map(&mut *f),
            resolution: self.resolution.as_ref().map(|resolution| Resolution {
                token: f(&resolution.token),
                decision: resolution.decision.as_ref().map(&mut *f),
                by: resolution.by.as_ref().map(&mut *f),
            }),
            body: self.body.map(f),
        }
    }

    /// The same step with its strings borrowed.
    pub fn borrow(&self) -> Step<&str>
    where
        S: AsRef<str>,
    {
        self.map(&mut |text: &S| text.as_ref())
    }
}

impl<S> Body<S> {
    fn map<'a, T>(&'a self, f: &mut impl FnMut(&'a S) -> T) -> Body<T> {
        match self {
            Body::Started => Body::Started,
            Body::Completed => Body::Completed,
            Body::Errored => Body::Errored,
            Body::Cancelled => Body::Cancelled,
            Body::State { from, to } => Body::State { from: from.clone(), to: to.clone() },
            Body::Progress { percent, more_time } => Body::Progress {
                percent: *percent,
                more_time: more_time
                    .as_ref()
                    .map(|it| MoreTime { token: f(&it.token), deadline: it.deadline }),
            },
            Body::ToolInvoked { tool, call, high_risk, irreversible, digest } => Body::ToolInvoked {
                tool: f(tool),
                call: call.as_ref().map(&mut *f),
                high_risk: *high_risk,
                irreversible: *irreversible,
                digest: digest.as_ref().map(&mut *f),
            },
            Body::ToolCompleted { tool, call } => {
                Body::ToolCompleted { tool: f(tool), call: call.as_ref().map(&mut *f) }
            }
            Body::Output { output, position, length, complete, hint } => Body::Output {
                output: output.as_ref().map(&mut *f),
                position: *position,
                length: *length,
                complete: *complete,
                hint: hint.as_ref().map(&mut *f),
            },
            Body::Confirmation(asked) => Body::Confirmation(Box::new(Confirmation {
                token: f(&asked.token),
                action: f(&asked.action),
                timeout_seconds: asked.timeout_seconds,
                accept_by_default: asked.accept_by_default,
                irreversible: asked.irreversible,
                may_accept: asked.may_accept,
                may_reject: asked.may_reject,
                tool: asked.tool.as_ref().map(&mut *f),
                call: asked.call.as_ref().map(&mut *f),
                digest: asked.digest.as_ref().map(&mut *f),
            })),
            Body::Clarification(asked) => Body::Clarification(Box::new(Clarification {
                token: f(&asked.token),
                question: f(&asked.question),
                timeout_seconds: asked.timeout_seconds,
                free_text: asked.free_text,
                yes_no: asked.yes_no,
                numeric: asked.numeric,
                choices: asked.choices.as_ref().map(|values| values.iter().map(&mut *f).collect()),
            })),
            Body::Handoff => Body::Handoff,
            Body::Other => Body::Other,
        }
    }
}
