//! Transports to a hub. Each call carries a number and gets a reply with that number. In between, the hub sends notifications
//! about sessions. A reply arrives before the notifications that its call causes.
//!
//! - `websocket`: over a WebSocket to a running `sayso serve`.
//! - `embedded`: to a hub in this process.

#[cfg(feature = "embedded")]
pub(crate) mod embedded;
#[cfg(feature = "client")]
pub(crate) mod websocket;

use std::future::Future;
use std::sync::Arc;

use aaep::event::CoalesceHint;
use aaep::message::ClarificationResponse;
use aaep::{ReplyToken, SessionId, UnixMillis};

use crate::consent::{ResolvedBy, SignedReceipt};
use crate::error::{Error, StopReason};
use crate::member::Document;
use crate::session::HandOffOutcome;
use crate::session_state::OutputFormat;

/// The number of a call.
pub(crate) type CallNumber = u64;

/// A transport to a hub.
pub(crate) trait Transport: Send + 'static {
    /// Sends a call. Its reply carries this number.
    fn send(&mut self, number: CallNumber, call: HubCall);

    /// Stops following a session that is over.
    fn unfollow(&mut self, session: &SessionId);

    /// Returns the next message, or `None` if there will be no more. It is cancel-safe.
    fn receive(&mut self) -> impl Future<Output = Option<HubMessage>> + Send;

    /// Waits until everything that was sent has arrived. Nothing may be sent afterwards.
    fn drain(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// A call to the hub.
#[derive(Clone, Debug)]
pub(crate) enum HubCall {
    Start {
        body: Document,
    },
    Events {
        session: SessionId,
        events: Vec<Document>,
    },
    Invite {
        session: SessionId,
        body: Document,
    },
    Join {
        session: SessionId,
        body: Document,
    },
    Output {
        session: SessionId,
        producer: Option<Arc<str>>,
        output_id: String,
        text: String,
        format: Option<Arc<OutputFormat>>,
        /// What ends with the text.
        hint: Option<CoalesceHint>,
        is_complete: bool,
        /// Whether the agent reports its own state after this output. If not, the hub sets the state that follows.
        agent_reports_next_state: bool,
    },
    Ask {
        session: SessionId,
        body: Document,
        is_clarification: bool,
    },
    HandOff {
        session: SessionId,
        body: Document,
    },
    Withdraw {
        session: SessionId,
        token: ReplyToken,
    },
}

/// A message from the hub.
#[derive(Debug)]
pub(crate) enum HubMessage {
    Reply(CallNumber, Result<CallReply, Error>),
    /// A question or a hand-off is resolved.
    Resolved {
        token: ReplyToken,
        outcome: ReplyOutcome,
    },
    /// A session was ended by somebody other than its agent.
    Stopped {
        session: SessionId,
        stop: StopReason,
    },
}

/// The reply to a call that the hub accepted.
#[derive(Debug)]
pub(crate) enum CallReply {
    /// Done, without further data.
    Done,
    /// A session has started.
    SessionStarted(SessionId),
    /// The agent has joined a session, as this producer.
    SessionJoined(SessionId, Arc<str>),
    /// Another agent may join the session with this secret, until this time.
    Invited { secret: String, expires_at: UnixMillis },
    /// A question or a hand-off is open.
    QuestionOpened(ReplyToken),
    /// A question or a hand-off is resolved.
    QuestionResolved(ReplyOutcome),
}

/// The outcome of a question or a hand-off.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplyOutcome {
    /// The outcome of a hand-off; `None` for a question.
    pub(crate) hand_off: Option<HandOffOutcome>,
    pub(crate) status: OutcomeStatus,
    /// Whether the person accepted. An unknown decision counts as a rejection.
    pub(crate) is_accepted: bool,
    pub(crate) response: Option<ClarificationResponse>,
    pub(crate) by: ResolvedBy,
    /// The receipt of a question, if the hub sent one.
    pub(crate) receipt: Option<Box<SignedReceipt>>,
}

/// The status of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutcomeStatus {
    Resolved,
    /// The person stopped the session.
    Stopped,
    /// A status that this version does not know.
    #[cfg(feature = "client")]
    Other,
}

impl ReplyOutcome {
    /// Creates the outcome of a hand-off.
    pub(crate) fn of_hand_off(outcome: HandOffOutcome) -> Self {
        Self {
            hand_off: Some(outcome),
            status: OutcomeStatus::Resolved,
            is_accepted: false,
            response: None,
            by: ResolvedBy::Other,
            receipt: None,
        }
    }
}
