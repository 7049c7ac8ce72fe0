//! What the hub is asked, and what it answers.

use aaep::consent::{Ignored, Said};
use aaep::json::{Doc, Scribe, SyntaxError, Tape};
use aaep::message::{Message, SubscriptionRenegotiate, SubscriptionRequest};
use aaep::{ReplyToken, SessionId, SubscriptionId, UnixMillis};

use crate::delivery::Frame;
pub use crate::reply::{EndReason, LimitReached, Malformed, QuestionOutcome, Reply, Unavailable};
use crate::{LaneId, LineId, ListenerId, Principal};

/// Names a question to the hub, so that its answer finds the one who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What the hub is asked to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Command {
    /// A `subscription.request`.
    Subscribe {
        /// The message; none if it is malformed.
        request: Option<Box<SubscriptionRequest>>,
    },
    /// A connection begins to listen on a subscription.
    Attach {
        /// Which.
        subscription: SubscriptionId,
        /// The last event that it has.
        last_event_id: Option<String>,
        /// The connection.
        listener: ListenerId,
    },
    /// The same, told what the open sessions have said so far, each from its start.
    AttachFromStart {
        /// Which.
        subscription: SubscriptionId,
        /// The connection.
        listener: ListenerId,
    },
    /// A connection has stopped listening.
    Detached {
        /// Which.
        listener: ListenerId,
        /// It could not keep up.
        too_slow: bool,
    },
    /// The hub stops: every connection is told.
    Goodbye,
    /// The tokens of these hold, and no others: what those heard ends, and nothing that they say is heard.
    Know {
        /// Whoever has one.
        principals: Vec<Principal>,
    },
    /// A message of a listener.
    Say {
        /// The message.
        message: SubscriberMessage,
    },
    /// The same, over the connection of one subscription: it speaks for that one only.
    SayOver {
        /// The subscription.
        subscription: SubscriptionId,
        /// The message.
        message: SubscriberMessage,
    },
    /// An agent starts a session.
    Start {
        /// The payload of `agent.session.started`, with `producer`, `localization_hints` and `person` beside it.
        body: RequestBody,
        /// The request's idempotency key.
        key: Option<String>,
    },
    /// An agent says something.
    Publish {
        /// The session.
        session: SessionId,
        /// The events, type and payload only.
        events: Vec<RequestBody>,
        /// The request's idempotency key.
        key: Option<String>,
    },
    /// An agent's output as its model makes it.
    Output {
        /// The session.
        session: SessionId,
        /// The output; the session's only unnamed one if not said.
        output_id: Option<String>,
        /// The text.
        text: String,
        /// Its language, where it is not the session's.
        language: Option<String>,
        /// Its media type; `text/plain` if not set.
        content_type: Option<String>,
        /// Whether it is whole now.
        complete: bool,
        /// Whether the agent says itself what it does when it is whole; else it thinks.
        stays: bool,
        /// The request's idempotency key.
        key: Option<String>,
    },
    /// An agent asks.
    Ask {
        /// The session.
        session: SessionId,
        /// The payload, with `tool` and `arguments` beside it.
        body: RequestBody,
        /// For what was meant, rather than for consent.
        clarify: bool,
        /// The request's idempotency key.
        key: Option<String>,
    },
    /// An agent wants to know what was answered.
    Wait {
        /// The session.
        session: SessionId,
        /// The question.
        token: ReplyToken,
        /// Until when it waits; milliseconds since 1970.
        until: UnixMillis,
    },
    /// An agent does not need an answer any more: the question is refused, unless it is answered already.
    Withdraw {
        /// The session.
        session: SessionId,
        /// The question.
        token: ReplyToken,
    },
    /// Nobody waits for the answer to this request any more. It has no answer itself.
    Forget {
        /// Which.
        request: RequestId,
    },
    /// Something that an agent says on a line: from then on the line follows the session, is told how its questions are
    /// resolved and that it ended, and keeps it alive.
    On {
        /// The line.
        line: LineId,
        /// What is said.
        command: Box<Command>,
    },
    /// Nothing but to follow a session; means something on a line only.
    Follow {
        /// The session.
        session: SessionId,
    },
    /// A line is gone. It has no answer.
    HungUp {
        /// Which.
        line: LineId,
    },
}

impl Command {
    /// Asks for a subscription by this message.
    pub fn subscribe(message: Option<Message>) -> Self {
        let request = match message {
            Some(Message::SubscriptionRequest(request)) => Some(Box::new(request)),
            _ => None,
        };
        Self::Subscribe { request }
    }

    /// Whether it is told and not asked: nobody waits for an answer.
    pub(crate) fn is_quiet(&self) -> bool {
        matches!(self, Self::Detached { .. } | Self::Forget { .. } | Self::HungUp { .. })
    }
}

/// The JSON body of an agent's request: text to parse, or a document that already has its tape.
#[derive(Clone)]
pub enum RequestBody {
    /// Text that has not been parsed.
    Text(String),
    /// A document with its tape; the hub does not parse it.
    Document(Box<Scribe>),
}

impl RequestBody {
    pub(crate) fn source(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Document(document) => document.source(),
        }
    }

    pub(crate) fn doc<'d>(&'d self, tape: &'d mut Tape) -> Result<Doc<'d>, SyntaxError> {
        match self {
            Self::Text(text) => tape.read(text),
            Self::Document(document) => document.doc(),
        }
    }
}

impl<T: Into<String>> From<T> for RequestBody {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.source().fmt(f)
    }
}

/// A message of a subscriber after the handshake, as it was read where it entered the process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SubscriberMessage {
    /// It asks for other terms.
    Renegotiate(Box<SubscriptionRenegotiate>),
    /// It ends this subscription.
    Close(SubscriptionId),
    /// A reply, more time or stop; or why it has no effect.
    Said(Result<Box<Said>, Ignored>),
}

impl SubscriberMessage {
    /// Reads a message.
    pub fn parse(text: &str) -> Self {
        Tape::default().read(text).map_or(Self::Said(Err(Ignored::NotJson)), |doc| Self::read(&doc))
    }

    /// Like [`parse`](Self::parse), of a text that has been read.
    pub fn read(doc: &Doc<'_>) -> Self {
        match Message::read(doc) {
            Some(Message::SubscriptionRenegotiate(wish)) => Self::Renegotiate(Box::new(wish)),
            Some(Message::SubscriptionClose(close)) => Self::Close(close.subscription_id),
            _ => Self::Said(Said::read(doc).map(Box::new)),
        }
    }
}

/// What an agent is told on a line without having asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A question is resolved.
    Resolved {
        /// The session.
        session: SessionId,
        /// The question.
        token: ReplyToken,
        /// How.
        outcome: QuestionOutcome,
    },
    /// A session is over, and not by what was said on this line.
    Stopped {
        /// The session.
        session: SessionId,
        /// Why.
        reason: EndReason,
    },
}

/// What is to be done after a turn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// The reply to a request.
    Reply(RequestId, Reply),
    /// Something for an agent's line. What it asked in the same turn is answered before.
    Notice(LineId, Notice),
    /// A frame for everybody on a lane.
    Frame(LaneId, std::sync::Arc<Frame>),
    /// A connection joins a lane.
    Join {
        /// Which.
        listener: ListenerId,
        /// Where.
        lane: LaneId,
        /// What is for it alone.
        own: Vec<std::sync::Arc<Frame>>,
        /// The place in the log from which it would resume before it is given anything, if it knows of none.
        from: Option<u64>,
    },
    /// A connection goes over to another lane.
    Move(ListenerId, LaneId),
    /// Something for one connection.
    Give(ListenerId, std::sync::Arc<Frame>),
    /// A connection is to be let go.
    Close(ListenerId),
    /// Something for whoever runs the hub.
    Note(crate::watch::Note),
}

/// Who asks what.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its name.
    pub id: RequestId,
    /// Who asks.
    pub who: Principal,
    /// What.
    pub command: Command,
}
