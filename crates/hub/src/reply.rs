//! What the hub answers, as types, and the one JSON form of a reply.
//!
//! The form stands here and not in `wire`, because the journal stores it: a request that is repeated with its idempotency key
//! gets the same text again, also from a later version of the hub. Only the journal's
//! readers parse it: `Reply::from_journal` and `core::restore`.

use std::fmt;
use std::sync::Arc;

use aaep::consent::{Answer, By, NotAnAction, NotAsked, Receipt, Resolution};
use aaep::event::{Decision, State};
use aaep::json::{SyntaxError, Tape, Writer};
use aaep::message::{Message, Response, SubscriptionAccepted, SubscriptionRejected};
use aaep::rule::Finding;
use aaep::{ReplyToken, SessionId, Timestamp, UnixMillis};
use thiserror::Error;

use crate::compose::NotAnEvent;

/// What the hub answers to a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// A subscription is open.
    Subscribed {
        /// The message that says so.
        accepted: Box<SubscriptionAccepted>,
        /// Whether the listener is told its place in the log, on wires whose events do not carry it.
        tells_places: bool,
    },
    /// A subscription has new terms.
    Renegotiated(Box<SubscriptionAccepted>),
    /// A subscription is refused.
    SubscriptionRejected(Box<SubscriptionRejected>),
    /// Done; there is nothing to say.
    Done,
    /// A session has started.
    SessionStarted {
        /// Its id.
        session_id: SessionId,
    },
    /// The connection follows a session from now on.
    SessionFollowed {
        /// Its id.
        session_id: SessionId,
        /// The state that it is in.
        state: State,
    },
    /// Events are on disk.
    EventsPublished {
        /// Their ids, in the order of the events.
        event_ids: Vec<Arc<str>>,
    },
    /// A question is open.
    QuestionOpened {
        /// What names it.
        reply_token: ReplyToken,
        /// Until when it can be answered.
        deadline: UnixMillis,
    },
    /// A question is still open.
    QuestionPending,
    /// A question is resolved.
    QuestionResolved(QuestionOutcome),
    /// It breaks rules; nothing was applied.
    Unlawful(Vec<Finding>),
    /// The request is malformed.
    Malformed(Malformed),
    /// There is no such thing, or it is somebody else's.
    NotFound,
    /// This principal may not do that.
    Forbidden,
    /// The same idempotency key came with another request.
    Conflict,
    /// Too much is open.
    LimitReached(LimitReached),
    /// It could not be stored, so it did not happen.
    Unavailable(Unavailable),
}

impl Reply {
    /// Writes the body that says so; none for a failure, and where there is nothing to say.
    pub fn to_json(&self) -> Option<String> {
        let mut writer = Writer::default();
        writer.open_object();
        match self {
            Self::Subscribed { accepted, .. } | Self::Renegotiated(accepted) => {
                return Some(Message::SubscriptionAccepted((**accepted).clone()).to_json());
            }
            Self::SubscriptionRejected(rejected) => {
                return Some(Message::SubscriptionRejected((**rejected).clone()).to_json());
            }
            Self::SessionStarted { session_id } => text(&mut writer, "session_id", session_id.as_str()),
            Self::SessionFollowed { session_id, state } => {
                text(&mut writer, "session_id", session_id.as_str());
                text(&mut writer, "state", state.as_str());
            }
            Self::EventsPublished { event_ids } => {
                writer.key("event_ids");
                writer.open_array();
                for id in event_ids {
                    writer.text(id);
                }
                writer.close_array();
            }
            Self::QuestionOpened { reply_token, deadline } => {
                text(&mut writer, "reply_token", reply_token.as_str());
                let deadline = Timestamp::from_unix_millis(*deadline).map(|at| at.to_string());
                text(&mut writer, "deadline", &deadline.unwrap_or_default());
            }
            Self::QuestionPending => text(&mut writer, "status", "pending"),
            Self::QuestionResolved(outcome) => outcome.write(&mut writer),
            _ => return None,
        }
        writer.close_object();
        Some(writer.finish())
    }

    /// Reads the reply that a journal remembers for an idempotency key.
    pub(crate) fn from_journal(json: &[u8]) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(std::str::from_utf8(json).ok()?).ok()?;
        let root = doc.root();
        if let Some(ids) = root.member("event_ids") {
            let event_ids = ids.items().map(|id| Some(Arc::from(&*id.text()?))).collect::<Option<_>>()?;
            return Some(Self::EventsPublished { event_ids });
        }
        if let Some(token) = root.member("reply_token") {
            let deadline = Timestamp::parse(&root.member("deadline")?.text()?);
            // A time beyond the year 9999 has no text.
            let deadline = deadline.map_or(UnixMillis::MAX, |at| at.unix_millis());
            return Some(Self::QuestionOpened {
                reply_token: ReplyToken::parse(&token.text()?).ok()?,
                deadline,
            });
        }
        let session_id = SessionId::parse(&root.member("session_id")?.text()?).ok()?;
        Some(Self::SessionStarted { session_id })
    }
}

/// How a question was resolved, as its agent learns it.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionOutcome {
    /// What holds.
    pub answer: Answer,
    /// What it was resolved by.
    pub by: By,
    /// What attests it; none where the journal has it in a form that this version does not read.
    pub receipt: Option<Arc<Receipt>>,
}

impl QuestionOutcome {
    /// The outcome of a resolution.
    pub(crate) fn of(resolution: &Resolution) -> Self {
        Self {
            answer: resolution.answer.clone(),
            by: resolution.by,
            receipt: Some(Arc::new(resolution.receipt())),
        }
    }

    /// The outcome of a decision that is on disk. One whose receipt cannot be read counts as a no.
    pub(crate) fn of_stored(decision: &journal::stored::StoredDecision) -> Self {
        let receipt = std::str::from_utf8(&decision.receipt).ok().and_then(Receipt::parse);
        match receipt {
            Some(receipt) => Self {
                answer: receipt.resolution().answer.clone(),
                by: receipt.resolution().by,
                receipt: Some(Arc::new(receipt)),
            },
            None => Self {
                answer: Answer::Decision(Decision::Reject),
                by: By::parse(&decision.by).unwrap_or(By::Cancelled),
                receipt: None,
            },
        }
    }

    /// Whether the person stopped the session, and the question with it.
    pub fn is_stopped(&self) -> bool {
        self.receipt.is_some() && self.by == By::Stopped
    }

    /// Writes its members into an open object.
    pub fn write(&self, writer: &mut Writer) {
        text(writer, "status", if self.is_stopped() { "stopped" } else { "resolved" });
        match &self.answer {
            Answer::Decision(_) => text(writer, "decision", answer_word(&self.answer)),
            Answer::Response(Response::Text(said)) => text(writer, "response", said),
            Answer::Response(Response::YesNo(yes)) => {
                writer.key("response");
                writer.boolean(*yes);
            }
            Answer::Response(Response::Number(number)) => {
                writer.key("response");
                writer.raw(seal::number_text(*number).as_deref().unwrap_or("null"));
            }
            _ => {}
        }
        text(writer, "by", self.by.as_str());
        if let Some(receipt) = &self.receipt {
            writer.key("receipt");
            writer.raw(receipt.to_json());
        }
    }
}

/// The word for an answer in the ledger, and of a decision everywhere.
pub(crate) fn answer_word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Decision(Decision::Accept) => "accept",
        Answer::Decision(_) => "reject",
        Answer::Response(_) => "answered",
        _ => "unavailable",
    }
}

fn text(writer: &mut Writer, name: &str, value: &str) {
    writer.key(name);
    writer.text(value);
}

/// Why a request is malformed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(#[source] SyntaxError),
    /// It is not an event that an agent may publish.
    #[error(transparent)]
    Event(NotAnEvent),
    /// It is not a known event.
    #[error("not an event")]
    UnknownEvent,
    /// A question is published, where nobody could answer it.
    #[error("a question is asked as a confirmation or a clarification")]
    QuestionPublished,
    /// The call that a question or an event names has no digest.
    #[error("{0}")]
    Action(NotAnAction),
    /// The arguments of a call are given, and not its tool.
    #[error("arguments need a tool")]
    NoTool,
    /// There are no events in the request, or too many.
    #[error("a request has 1 to {most} events")]
    EventCount {
        /// The most that a request may have.
        most: usize,
    },
    /// A session is started with something else than an object.
    #[error("a session is started with a JSON object")]
    SessionForm,
    /// A question is something else than an object.
    #[error("a question is a JSON object")]
    QuestionForm,
    /// The producer is not an object, or names another agent.
    #[error("producer must be an object; an agent_id in it is the token's")]
    Producer,
    /// The question cannot be asked.
    #[error("{0}")]
    Question(NotAsked),
    /// A piece of output has no text, and is not the last.
    #[error("there is no text, and complete is not said")]
    NoText,
    /// It is not a request for a subscription.
    #[error("not a subscription.request")]
    SubscriptionRequest,
    /// A command on a line names a line itself.
    #[error("a line is on no line")]
    NestedLine,
}

/// Which limit keeps a request from being done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitReached {
    /// Open sessions.
    #[error("too many sessions are open")]
    Sessions,
    /// Open subscriptions.
    #[error("too many subscriptions are open")]
    Subscriptions,
    /// Questions of one agent to one person.
    #[error("An agent may ask a person {most} questions in a minute; nothing was asked.")]
    QuestionsPerMinute {
        /// The limit.
        most: usize,
    },
    /// Critical events of one agent for one person.
    #[error("An agent may publish {most} critical events in a minute; nothing was applied.")]
    CriticalsPerMinute {
        /// The limit.
        most: usize,
    },
    /// Open questions.
    #[error("{0}")]
    Questions(NotAsked),
    /// Waits of one principal.
    #[error("too many of yours wait for an answer")]
    Waits,
    /// Connections that follow one session.
    #[error("too many connections follow this session")]
    Followers,
}

/// Why the hub cannot do its work now.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The state could not be read again after a failed write.
    #[error("nothing can be read: {0}")]
    NotRead(#[source] Arc<journal::Error>),
    /// The turn could not be written.
    #[error("nothing could be stored: {0}")]
    NotStored(#[source] Arc<journal::Error>),
    /// The journal could not be asked.
    #[error("{0}")]
    Journal(#[source] Arc<journal::Error>),
    /// The hub is stopping.
    #[error("the hub is stopping")]
    Stopping,
}

impl PartialEq for Unavailable {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl From<journal::Error> for Reply {
    fn from(error: journal::Error) -> Self {
        Self::Unavailable(Unavailable::Journal(Arc::new(error)))
    }
}

impl From<SyntaxError> for Reply {
    fn from(error: SyntaxError) -> Self {
        Self::Malformed(Malformed::Json(error))
    }
}

impl From<Malformed> for Reply {
    fn from(why: Malformed) -> Self {
        Self::Malformed(why)
    }
}

impl From<LimitReached> for Reply {
    fn from(limit: LimitReached) -> Self {
        Self::LimitReached(limit)
    }
}

/// Why a session ended, for a connection that did not end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// A person stopped it.
    User,
    /// Its agent cancelled it.
    Producer,
    /// Its time was over.
    Timeout,
    /// The system cancelled it.
    System,
    /// Its agent disappeared.
    Gone,
    /// It is completed.
    Completed,
    /// It failed.
    Errored,
    /// Its last event is not kept.
    Ended,
}

impl EndReason {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Producer => "producer",
            Self::Timeout => "timeout",
            Self::System => "system",
            Self::Gone => "gone",
            Self::Completed => "completed",
            Self::Errored => "errored",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
