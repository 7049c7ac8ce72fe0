//! The session machine: whether events are lawful in their order (§4.5, chapter 6, appendix A), and what a session is
//! waiting for.
//!
//! ```text
//!            session.started            completed, errored, cancelled
//!   (new) ───────────────────▶ open ───────────────────────────────────▶ ended
//!                               │ ▲
//!                 any other event└─┘   tools, outputs, questions and the states of each producer
//!                                      have machines of their own inside
//! ```
//!
//! Feed it with [`Session::event`], [`Session::reply`], [`Session::answer`] and [`Session::extend`], in the order in
//! which things happened; what is unlawful comes out as findings. After a finding the machine goes on as a listener
//! would, so that one fault is told once. Whoever must *refuse* what is unlawful uses [`Session::admit`], which leaves
//! the session as it was. Time is what the events say; nothing is ever due by itself, and asking twice does no harm.

mod chain;
mod output;
mod question;
mod questions;
mod step;
pub(crate) mod terms;
mod tool;
mod waiting;

pub use step::{Body, Clarification, Confirmation, MoreTime, Resolution, Step};
pub use waiting::Waiting;

use std::sync::Arc;

use crate::event::State;
use crate::message::{ClarificationReply, ConfirmationReply, DeadlineExtend};
use crate::rule::{self, Face, Finding, Findings};
use chain::Chains;
use output::Outputs;
use questions::Questions;
use seal::{Timestamp, UnixMillis};
use tool::Tools;

/// So many tools, outputs, questions or producers may be open in one session at once, if nobody says otherwise.
pub const MAX_OPEN: usize = 1024;

/// One session, from its start to its end.
///
/// ```
/// use aaep::session::{Body, Session, Step};
/// let mut session = Session::new("sess_1");
/// let event = |body| Step {
///     event_id: None, session_id: "sess_1", agent_id: "bank", at: None, sequence_number: None, parent: None,
///     resolution: None, body,
/// };
/// session.admit(&event(Body::Started)).unwrap();
/// let tool = Body::ToolInvoked { tool: "transfer", call: None, high_risk: true, irreversible: true, digest: None };
/// let refused = session.admit(&event(tool)).unwrap_err();
/// assert!(refused.iter().any(|finding| finding.rule.id() == "AAEP-4.3.1-3"));
/// ```
// Names are shared, so that a copy on which an event is tried costs little.
#[derive(Clone, Debug)]
pub struct Session {
    id: Arc<str>,
    stage: Stage,
    max_open: usize,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The beginning has not been seen; `touched` if other events of the session have.
    New {
        touched: bool,
    },
    Open(Box<Open>),
    Ended(End),
    /// More was open at once than the limit; it is not followed any longer, and has been told so.
    GivenUp,
}

/// How a session ended (§4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It did what was asked.
    Completed,
    /// It failed.
    Errored,
    /// It was stopped.
    Cancelled,
}

#[derive(Clone, Debug, Default)]
struct Open {
    parent: Option<Arc<str>>,
    last: Option<Timestamp>,
    numbering: Numbering,
    chains: Chains,
    tools: Tools,
    outputs: Outputs,
    questions: Questions,
}

#[derive(Clone, Copy, Debug, Default)]
enum Numbering {
    #[default]
    Unknown,
    Absent,
    Last(u64),
    /// Events had numbers, and then one had none; what it should have been.
    Missing(u64),
}

impl Session {
    /// A session of which nothing has been seen.
    pub fn new(id: &str) -> Self {
        Self { id: id.into(), stage: Stage::New { touched: false }, max_open: MAX_OPEN }
    }

    /// A session that begins in the middle of itself: events of it have passed before its start.
    pub(crate) fn touched(id: &str) -> Self {
        Self { id: id.into(), stage: Stage::New { touched: true }, max_open: MAX_OPEN }
    }

    /// Sets how many tools, outputs, questions and producers may each be open at once.
    #[must_use]
    pub fn with_max_open(mut self, max_open: usize) -> Self {
        self.max_open = max_open;
        self
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session that it was begun for, where sessions are linked (§A.9).
    pub fn parent(&self) -> Option<&str> {
        match &self.stage {
            Stage::Open(open) => open.parent.as_deref(),
            _ => None,
        }
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<End> {
        match self.stage {
            Stage::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Whether it has begun and not ended.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Takes an event if it is lawful; else the session stays as it was, and the findings say why. Warnings come back
    /// with what was taken.
    pub fn admit(&mut self, step: &Step<&str>) -> Result<Vec<Finding>, Vec<Finding>> {
        let mut findings = Findings::new(Face::Strict);
        // What is open is kept beside its box: most events are lawful, and a second box would be thrown away.
        let before = match &mut self.stage {
            Stage::Open(open) => {
                open.tools.settle();
                open.outputs.settle();
                open.questions.settle();
                Ok(Open::clone(open))
            }
            other => Err(other.clone()),
        };
        self.event(step, &mut findings);
        if findings.has_error() {
            self.stage = before.map_or_else(|other| other, |open| Stage::Open(Box::new(open)));
            return Err(findings.take());
        }
        Ok(findings.take())
    }

    /// Takes an event; what is unlawful about it at this place goes to the findings.
    pub fn event(&mut self, step: &Step<&str>, findings: &mut Findings) {
        match &mut self.stage {
            Stage::New { touched } => {
                let touched = *touched;
                self.start(touched, step, findings);
            }
            Stage::Open(open) => {
                open.event(step, findings);
                let end = match step.body {
                    Body::Completed => Some(End::Completed),
                    Body::Errored => Some(End::Errored),
                    Body::Cancelled => Some(End::Cancelled),
                    _ => None,
                };
                if let Some(end) = end {
                    self.stage = Stage::Ended(end);
                } else if open.largest() > self.max_open {
                    let found = format!(
                        "more than {} are open at once in {}; its order is not judged further",
                        self.max_open, self.id
                    );
                    findings.push(rule::READABLE, String::new(), found);
                    self.stage = Stage::GivenUp;
                }
            }
            Stage::Ended(end) => after_end(*end, &step.body, findings),
            Stage::GivenUp => {}
        }
    }

    /// (new) ─▶ open
    fn start(&mut self, touched: bool, step: &Step<&str>, findings: &mut Findings) {
        let started = matches!(step.body, Body::Started);
        if !started {
            findings.push(rule::STARTED_FIRST, String::new(), format!("{} has not been started", self.id));
        } else if touched {
            findings.push(
                rule::STARTED_FIRST,
                String::new(),
                format!("events of {} stand before it", self.id),
            );
        }
        let mut open = Box::new(Open { parent: step.parent.map(Into::into), ..Open::default() });
        if started {
            open.order(step, findings);
            self.stage = Stage::Open(open);
        } else {
            self.stage = Stage::Open(open);
            self.event(step, findings);
        }
    }

    /// Takes a person's decision (§6.3).
    pub fn reply(&mut self, reply: &ConfirmationReply, findings: &mut Findings) {
        if let Stage::Open(open) = &mut self.stage {
            open.questions.reply(reply, findings);
        }
    }

    /// Takes a person's answer (§6.5).
    pub fn answer(&mut self, reply: &ClarificationReply, findings: &mut Findings) {
        if let Stage::Open(open) = &mut self.stage {
            open.questions.answer(reply, findings);
        }
    }

    /// Takes note that a reply to a question came which has no effect, because it is not lawful (§6.3.4).
    pub fn void_reply(&mut self, token: &str) {
        if let Stage::Open(open) = &mut self.stage {
            open.questions.void_reply(token);
        }
    }

    /// Takes a person's wish for more time.
    pub fn extend(&mut self, wish: &DeadlineExtend) {
        if let Stage::Open(open) = &mut self.stage {
            open.questions.extend(wish);
        }
    }

    /// Takes the stop by the person, which refuses what is open.
    pub fn stop(&mut self) {
        if let Stage::Open(open) = &mut self.stage {
            open.questions.refuse_all();
        }
    }

    /// Whether a question of that token is or was in this session.
    pub fn knows_token(&self, token: &str) -> bool {
        matches!(&self.stage, Stage::Open(open) if open.questions.knows(token))
    }

    /// When the time of a question of this session is over, in milliseconds since 1970, as its events tell (§6.4).
    pub fn deadline_of(&self, token: &str) -> Option<UnixMillis> {
        match &self.stage {
            Stage::Open(open) => open.questions.deadline_of(token),
            _ => None,
        }
    }

    /// What it is waiting for: answers, then tools, then outputs, then its end.
    pub fn waiting_for(&self) -> Vec<Waiting> {
        match &self.stage {
            Stage::New { .. } => vec![Waiting::Start],
            Stage::Open(open) => {
                let mut all = open.questions.waiting();
                all.extend(open.tools.waiting());
                all.extend(open.outputs.waiting());
                all.push(Waiting::End);
                all
            }
            Stage::Ended(_) | Stage::GivenUp => Vec::new(),
        }
    }

    /// The tools that are running, in the order of their calls, each with its call id.
    pub fn open_tools(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.open().into_iter().flat_map(|open| open.tools.open())
    }

    /// The outputs that are not complete, each with its id and the position of its next chunk.
    pub fn open_outputs(&self) -> impl Iterator<Item = (Option<&str>, u64)> {
        self.open().into_iter().flat_map(|open| open.outputs.open())
    }

    fn open(&self) -> Option<&Open> {
        match &self.stage {
            Stage::Open(open) => Some(open),
            _ => None,
        }
    }

    /// Where the last `agent.state.changed` of a producer went; `idle` before the first.
    pub fn declared_state_of(&self, agent_id: &str) -> &State {
        self.open().map_or(&State::Idle, |open| open.chains.declared_state_of(agent_id))
    }

    /// The state that a producer is in, as far as its events tell (§4.2.1).
    pub fn state_of(&self, agent_id: &str) -> Option<&State> {
        match &self.stage {
            Stage::Open(open) => open.chains.state_of(agent_id),
            _ => None,
        }
    }
}

impl Open {
    /// An event between start and end.
    fn event(&mut self, step: &Step<&str>, findings: &mut Findings) {
        self.order(step, findings);
        if let Some(now) = &step.at {
            self.questions.expire(now, findings);
        }
        let agent = self.chains.of(step.agent_id);
        match &step.body {
            Body::Started => {
                findings.push(
                    rule::ONE_START_ONE_END,
                    String::new(),
                    "it has been started before".to_owned(),
                );
            }
            Body::Completed | Body::Errored | Body::Cancelled => {
                self.tools.end(findings);
                self.outputs.end(findings);
                self.questions.end(matches!(step.body, Body::Completed), findings);
            }
            Body::State { from, to } => {
                let left = self.chains.change(agent, from, to, self.tools.any_open(agent), findings);
                self.questions.state_changed(agent, left, to, step, findings);
            }
            Body::Progress { percent, more_time } => {
                self.chains.progress(agent, *percent, step.at, findings);
                match more_time {
                    Some(told) => self.questions.has_more_time(told),
                    None => self.questions.progress(),
                }
            }
            Body::ToolInvoked { tool, call, high_risk, irreversible, digest } => {
                let wish = question::Wish {
                    agent,
                    tool,
                    call: *call,
                    digest: *digest,
                    millis: step.at.map(|at| at.unix_millis()),
                    irreversible: *irreversible,
                    high_risk: *high_risk,
                };
                self.chains.invoke(agent, &self.questions, findings);
                self.questions.act(&wish, findings);
                self.tools.invoke(agent, tool, *call, findings);
            }
            Body::ToolCompleted { tool, call } => {
                self.tools.complete(agent, tool, *call, findings);
                self.chains.completed(agent);
            }
            Body::Output { output, position, length, complete, .. } => {
                self.chains.write(agent, &self.questions, findings);
                let chunk = output::Chunk { position: *position, length: *length, complete: *complete };
                self.outputs.chunk(agent, *output, chunk, findings);
            }
            Body::Confirmation(asked) => {
                self.chains.ask(agent, findings);
                self.questions.confirmation(agent, asked, step.at, findings);
            }
            Body::Clarification(asked) => {
                self.chains.ask(agent, findings);
                self.questions.clarification(agent, asked, step.at, findings);
            }
            Body::Handoff => {
                self.chains.hand_off(agent);
                self.questions.show(agent);
            }
            Body::Other => {}
        }
    }

    /// Numbers and times, which are the same for every event.
    fn order(&mut self, step: &Step<&str>, findings: &mut Findings) {
        if let (Some(last), Some(now)) = (&self.last, &step.at)
            && now.cmp_instant(last).is_lt()
        {
            findings.push(rule::TIME_ORDER, "/timestamp".to_owned(), format!("{now} is before {last}"));
        }
        self.last = step.at.or(self.last);
        self.numbering = match (self.numbering, step.sequence_number) {
            (Numbering::Unknown | Numbering::Absent, None) => Numbering::Absent,
            (Numbering::Unknown, Some(number)) => Numbering::Last(number),
            (Numbering::Last(last), Some(number)) => {
                if number != last.wrapping_add(1) {
                    let found = format!("{number} follows {last}");
                    findings.push(rule::SEQUENCE_STEP, "/sequence_number".to_owned(), found);
                }
                Numbering::Last(number)
            }
            // From here on numbers are missing or not: which it is has been told, and the count goes on.
            (Numbering::Last(last), None) => {
                findings.push(rule::SEQUENCE_ALL, String::new(), "the event before has one".to_owned());
                Numbering::Missing(last.wrapping_add(1))
            }
            (Numbering::Missing(last), None) => Numbering::Missing(last.wrapping_add(1)),
            (Numbering::Missing(last), Some(number)) if number == last.wrapping_add(1) => {
                Numbering::Last(number)
            }
            (Numbering::Missing(_), Some(number)) => {
                let found = format!("{number} follows events without one");
                findings.push(rule::SEQUENCE_STEP, "/sequence_number".to_owned(), found);
                Numbering::Last(number)
            }
            (Numbering::Absent, Some(number)) => {
                let found = "the event before has none".to_owned();
                findings.push(rule::SEQUENCE_ALL, "/sequence_number".to_owned(), found);
                Numbering::Last(number)
            }
        };
    }

    /// The largest number of things that are open at once.
    fn largest(&self) -> usize {
        self.tools.len().max(self.outputs.len()).max(self.questions.len()).max(self.chains.len())
    }
}

/// What is wrong with an event after the end of its session.
pub(crate) fn after_end(end: End, body: &Body<&str>, findings: &mut Findings) {
    let rule = match (end, body) {
        (_, Body::Started) => rule::SESSION_ID_NEW,
        (End::Errored | End::Cancelled, Body::Completed) => rule::COMPLETED_AFTER_FAILURE,
        (_, Body::Completed | Body::Errored | Body::Cancelled) => rule::ONE_START_ONE_END,
        _ => rule::AFTER_END,
    };
    findings.push(rule, String::new(), "the session has ended".to_owned());
}
