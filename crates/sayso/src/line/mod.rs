//! The way to a hub: calls go in with a number, answers with that number come out, and between them what the hub tells of
//! sessions without being asked. An answer comes before whatever is told because of its call.
//!
//! - `client`: over a WebSocket to a `sayso serve`.
//! - `embedded`: to a hub in this process.

#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "embedded")]
pub(crate) mod embedded;

use std::future::Future;
use std::sync::Arc;

use aaep::message::Response;
use aaep::{ReplyToken, SessionId};

use crate::consent::By;
use crate::error::{Error, Stop};
use crate::member::Document;
use crate::track::OutputForm;

/// Names a call.
pub(crate) type Number = u64;

/// A way to a hub.
pub(crate) trait Line: Send + 'static {
    /// Says something; it is answered under this number.
    fn say(&mut self, number: Number, call: Call);

    /// A session is over: it is not followed any more.
    fn forget(&mut self, session: &SessionId);

    /// What is told next; `None` when nothing will be told any more. A future that is dropped loses nothing.
    fn told(&mut self) -> impl Future<Output = Option<Told>> + Send;

    /// Nothing more will be said; returns when all that was is where it should be.
    fn farewell(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// What the hub is asked to do.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Start {
        body: Document,
    },
    Events {
        session: SessionId,
        events: Vec<Document>,
    },
    Output {
        session: SessionId,
        output_id: String,
        text: String,
        form: Option<Arc<OutputForm>>,
        complete: bool,
        stays: bool,
    },
    Ask {
        session: SessionId,
        body: Document,
        clarify: bool,
    },
    Withdraw {
        session: SessionId,
        token: ReplyToken,
    },
}

/// What the hub tells.
#[derive(Debug)]
pub(crate) enum Told {
    Answer(Number, Result<Reply, Error>),
    /// A question is resolved.
    Resolved {
        token: ReplyToken,
        outcome: Outcome,
    },
    /// A session is over, and not by what was said here.
    Stopped {
        session: SessionId,
        stop: Stop,
    },
}

/// What the hub answers to a call that it has taken.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Done; there is nothing more to know.
    Done,
    /// A session has started.
    Started(SessionId),
    /// A question is open.
    Asked(ReplyToken),
    /// A question is resolved.
    Resolved(Outcome),
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    /// Whether the decision is a yes; what is not known to be one is none.
    pub(crate) is_accepted: bool,
    pub(crate) response: Option<Response>,
    pub(crate) by: By,
}

/// How a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Resolved,
    /// The person stopped the session.
    Stopped,
    /// In a way that this version does not know.
    #[cfg(feature = "client")]
    Other,
}
