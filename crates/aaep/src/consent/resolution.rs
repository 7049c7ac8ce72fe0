//! The resolution of a question, which is reported once and proved by its receipt.

use seal::{Digest, Timestamp, UnixMillis};

use crate::event::Decision;
use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::message::ClarificationResponse;

use super::Receipt;

/// The resolution of a question. Each token has exactly one resolution.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resolution {
    /// The question's token.
    pub token: ReplyToken,
    /// The session of the question.
    pub session_id: SessionId,
    /// The agent that asked.
    pub agent_id: Box<str>,
    /// The event with the question.
    pub event_id: EventId,
    /// The digest of the action that the question covers.
    pub action_digest: Option<Digest>,
    /// The answer.
    pub answer: QuestionAnswer,
    /// Whether the reply accepted a modified action, which counts as a refusal (§6.3.2).
    pub modified: bool,
    /// How the question was resolved.
    pub resolved_by: ResolvedBy,
    /// When the question was asked.
    pub asked_at: UnixMillis,
    /// The deadline for replies, including extensions.
    pub deadline: UnixMillis,
    /// When the question was resolved, by the hub's clock.
    pub resolved_at: UnixMillis,
    /// When a person's yes expires and no longer permits a call. Set only if a person accepted.
    pub expires_at: Option<UnixMillis>,
    /// When the person decided, according to the reply. A time before the question is suspicious
    /// and worth logging (C-D3).
    pub replied_at: Option<Timestamp>,
    /// The subscription that the reply came from.
    pub subscription_id: Option<SubscriptionId>,
    /// The principal of that subscription, as authenticated by the transport.
    pub principal: Option<Box<str>>,
    /// The person who decided, according to the reply.
    pub decided_by: Option<Box<str>>,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum QuestionAnswer {
    /// The answer to a confirmation.
    Decision(Decision),
    /// The answer to a clarification.
    Response(ClarificationResponse),
    /// A clarification without an answer or a default.
    Unavailable,
}

seal::string_enum! {
    /// How a question was resolved.
    #[non_exhaustive]
    ResolvedBy {
        /// A person's reply.
        Reply "reply",
        /// The deadline passed (§6.4).
        Timeout "timeout",
        /// The last subscription that could answer was closed (§5.8.2, C-C16).
        Closure "closure",
        /// No subscription could receive the question (§5.3.1.4, C-C1).
        Unreachable "unreachable",
        /// The agent cancelled it, or its session ended (§6.8).
        Cancelled "cancelled",
        /// The person stopped the session.
        Stopped "stopped",
    }
}

impl Resolution {
    /// Returns whether the action may be performed.
    pub fn is_accepted(&self) -> bool {
        self.answer == QuestionAnswer::Decision(Decision::Accept)
    }

    /// Returns the receipt.
    pub fn receipt(&self) -> Receipt {
        Receipt::from_resolution(self.clone())
    }
}
