//! The hub in this process.

use std::task::{Context, Poll};
use std::time::Duration;

use aaep::SessionId;
use aaep::consent::Answer;
use aaep::event::Decision;
use hub::Principal;
use hub::command::{Command, EndReason, Notice, QuestionOutcome, RequestBody, RequestId};
use rustc_hash::FxHashMap;
use wire::{Bridge, Told as Heard};

use super::{Call, Line, Number, Outcome, Reply, Status, Told};
use crate::error::{Broken, Error, Malformed, NotStored, Stop, TooMuch, Unreachable};

/// So much may be told that was not taken; the desk takes at once.
const UNTOLD: usize = 65_536;

/// Listeners have so long to take what was said last.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) struct Embedded {
    bridge: Bridge,
    line: wire::Line,
    who: Principal,
    numbers: FxHashMap<RequestId, Number>,
    /// Calls that the hub did not take: it is gone.
    untaken: Vec<Number>,
    /// The hub is another's, and stays when this goes.
    guest: bool,
    /// How the hub is asked.
    ask: fn(&wire::Line, &Principal, Command) -> Option<RequestId>,
}

impl Embedded {
    /// To a hub whose answers come from its own thread.
    pub(crate) fn new(bridge: &Bridge, who: Principal) -> Self {
        Self {
            bridge: bridge.clone(),
            line: bridge.line(UNTOLD),
            who,
            numbers: FxHashMap::default(),
            untaken: Vec::new(),
            guest: false,
            ask: wire::Line::ask,
        }
    }

    /// To a hub that others speak to, and that somebody else runs.
    pub(crate) fn guest(bridge: &Bridge, who: Principal) -> Self {
        Self { guest: true, ..Self::new(bridge, who) }
    }

    /// To a hub whose turns are taken here: what it answers is at hand when something was said.
    pub(crate) fn here(bridge: &Bridge, who: Principal) -> Self {
        Self { ask: wire::Line::ask_here, ..Self::new(bridge, who) }
    }

    /// What the hub has told.
    pub(crate) fn at_hand(&mut self) -> Option<Told> {
        loop {
            let told = match self.untaken.pop() {
                Some(number) => Some(gone(number)),
                None => self.heard(self.line.at_hand()?),
            };
            if told.is_some() {
                return told;
            }
        }
    }

    /// What the hub has told, or tells next.
    pub(crate) fn poll_told(&mut self, context: &mut Context<'_>) -> Poll<Option<Told>> {
        if let Some(number) = self.untaken.pop() {
            return Poll::Ready(Some(gone(number)));
        }
        while let Poll::Ready(told) = self.line.poll_told(context) {
            let Some(heard) = told else { return Poll::Ready(None) };
            if let Some(told) = self.heard(heard) {
                return Poll::Ready(Some(told));
            }
        }
        Poll::Pending
    }

    /// What is said to everybody when nothing more will be.
    pub(crate) fn parting(&self) -> impl Future<Output = ()> + Send + use<> {
        let bridge = (!self.guest).then(|| self.bridge.clone());
        async move {
            if let Some(bridge) = bridge {
                bridge.goodbye(FAREWELL).await;
            }
        }
    }

    fn heard(&mut self, heard: Heard) -> Option<Told> {
        match heard {
            Heard::Answer(request, answer) => {
                self.numbers.remove(&request).map(|number| Told::Answer(number, result(answer)))
            }
            Heard::Notice(Notice::Resolved { token, outcome, .. }) => {
                Some(Told::Resolved { token, outcome: outcome.into() })
            }
            Heard::Notice(Notice::Stopped { session, reason }) => {
                Some(Told::Stopped { session, stop: reason.into() })
            }
            Heard::Notice(_) => None,
        }
    }
}

fn gone(number: Number) -> Told {
    Told::Answer(number, Err(Error::Unreachable(Unreachable::HubEnded)))
}

impl Line for Embedded {
    fn say(&mut self, number: Number, call: Call) {
        match (self.ask)(&self.line, &self.who, command(call)) {
            Some(request) => drop(self.numbers.insert(request, number)),
            None => self.untaken.push(number),
        }
    }

    fn forget(&mut self, _: &SessionId) {}

    async fn farewell(&mut self) {
        self.parting().await;
    }

    async fn told(&mut self) -> Option<Told> {
        std::future::poll_fn(|context| self.poll_told(context)).await
    }
}

/// No key: in one process an answer cannot get lost on its way.
fn command(call: Call) -> Command {
    match call {
        Call::Start { body } => Command::Start { body: RequestBody::Document(body), key: None },
        Call::Events { session, events } => {
            let events = events.into_iter().map(RequestBody::Document).collect();
            Command::Publish { session, events, key: None }
        }
        Call::Output { session, output_id, text, form, complete, stays } => {
            let output_id = Some(output_id);
            let language = form.as_ref().and_then(|form| form.language.clone());
            let content_type = form.as_ref().and_then(|form| form.content_type.clone());
            Command::Output { session, output_id, text, language, content_type, complete, stays, key: None }
        }
        Call::Withdraw { session, token } => Command::Withdraw { session, token },
        Call::Ask { session, body, clarify } => {
            Command::Ask { session, body: RequestBody::Document(body), clarify, key: None }
        }
    }
}

fn result(reply: hub::command::Reply) -> Result<Reply, Error> {
    use hub::command::Reply as HubReply;
    Err(match reply {
        HubReply::SessionStarted { session_id } => return Ok(Reply::Started(session_id)),
        HubReply::QuestionOpened { reply_token, .. } => return Ok(Reply::Asked(reply_token)),
        HubReply::QuestionResolved(outcome) => return Ok(Reply::Resolved(outcome.into())),
        HubReply::EventsPublished { .. } | HubReply::QuestionPending | HubReply::Done => {
            return Ok(Reply::Done);
        }
        HubReply::Unlawful(findings) => Error::Unlawful(
            findings
                .iter()
                .map(|finding| Broken {
                    rule: finding.rule.id().to_owned(),
                    pointer: finding.pointer.clone(),
                    message: finding.message(),
                })
                .collect(),
        ),
        HubReply::NotFound => Error::Stopped(Stop::Other),
        HubReply::Forbidden => Error::NotAllowed,
        HubReply::LimitReached(limit) => Error::TooMuch(TooMuch::Hub(limit.to_string())),
        HubReply::Unavailable(why) => Error::NotStored(NotStored::Hub(why.to_string())),
        HubReply::Malformed(why) => Error::Malformed(Malformed::Hub(why.to_string())),
        other => Error::Malformed(Malformed::Hub(format!("{other:?}"))),
    })
}

impl From<QuestionOutcome> for Outcome {
    fn from(outcome: QuestionOutcome) -> Self {
        Self {
            status: if outcome.is_stopped() { Status::Stopped } else { Status::Resolved },
            is_accepted: outcome.answer == Answer::Decision(Decision::Accept),
            by: outcome.by.into(),
            response: match outcome.answer {
                Answer::Response(response) => Some(response),
                _ => None,
            },
        }
    }
}

impl From<EndReason> for Stop {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::User => Self::Person,
            EndReason::Gone => Self::Lease,
            _ => Self::Other,
        }
    }
}
