//! How a question was resolved: told once, and what its receipt attests.

use seal::{Digest, Timestamp, UnixMillis};

use crate::event::Decision;
use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::message::Response;

use super::Receipt;

/// How a question was resolved. There is exactly one for each token.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resolution {
    /// The question's token.
    pub token: ReplyToken,
    /// Its session.
    pub session: SessionId,
    /// The agent that asked.
    pub agent: Box<str>,
    /// The event that asked.
    pub event: EventId,
    /// The digest of the action that it was bound to.
    pub action_digest: Option<Digest>,
    /// What holds.
    pub answer: Answer,
    /// The reply accepted something else, and so refuses (§6.3.2).
    pub modified: bool,
    /// What it was resolved by.
    pub by: By,
    /// When it was asked, in milliseconds since 1970.
    pub asked: UnixMillis,
    /// Until when it could be answered.
    pub deadline: UnixMillis,
    /// When it was resolved, by our clock.
    pub at: UnixMillis,
    /// When the person decided, by the reply. Before the question itself is odd and worth a line in the log (C-D3).
    pub replied: Option<Timestamp>,
    /// The subscription that the reply came over.
    pub subscription: Option<SubscriptionId>,
    /// Who that was, as the transport knows them.
    pub principal: Option<Box<str>>,
    /// Who decided, as the reply says.
    pub decided_by: Option<Box<str>>,
}

/// What holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// Of a confirmation.
    Decision(Decision),
    /// Of a clarification.
    Response(Response),
    /// Of a clarification that has no answer and no default.
    Unavailable,
}

seal::word_enum! {
    /// What a question was resolved by.
    #[non_exhaustive]
    By as_str {
        /// A person's reply.
        Reply "reply",
        /// Its time was over (§6.4).
        Timeout "timeout",
        /// The last subscription that could answer is gone (§5.8.2, C-C16).
        Closure "closure",
        /// There was nobody to ask (§5.3.1.4, C-C1).
        Unreachable "unreachable",
        /// The agent withdrew it, or its session ended (§6.8).
        Cancelled "cancelled",
        /// The person stopped the session.
        Stopped "stopped",
    }
}

impl Resolution {
    /// Whether the action may be done.
    pub fn is_accepted(&self) -> bool {
        self.answer == Answer::Decision(Decision::Accept)
    }

    /// What attests it.
    pub fn receipt(&self) -> Receipt {
        Receipt::of(self.clone())
    }
}
