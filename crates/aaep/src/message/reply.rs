//! Replies from a person (§6.3, §6.5), and the messages that sayso adds.

use crate::event::Decision;
use crate::id::{ReplyToken, SessionId, SubscriptionId};
use crate::json::{JsonKind, JsonValue, JsonWriter, RawJson};
use crate::message::DECISION;
use crate::record::{FieldType, FieldValue, record};
use crate::rule;
use seal::Timestamp;

const REPLY_TIMESTAMP: FieldType = FieldType::Timestamp { any_rfc3339: true };

/// The note in an answer to a hand-off. Its length is limited, because people hear it.
const HANDOFF_NOTE: FieldType = FieldType::Text { min: 1, max: 1024 };

record! {
    /// `confirmation.reply` (§6.3).
    ConfirmationReply {
        required {
            /// The question's token.
            reply_token: ReplyToken, ReplyToken::FIELD_TYPE, rule::REPLY_TOKEN, rule::CONFIRMATION_REPLY;
            /// The decision.
            decision: Decision, DECISION, rule::REPLY_DECISION_AND_TIME, rule::CONFIRMATION_REPLY;
            /// The subscription that received the question.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::CONFIRMATION_REPLY;
            /// When the person decided.
            timestamp: Timestamp, REPLY_TIMESTAMP, rule::REPLY_DECISION_AND_TIME, rule::CONFIRMATION_REPLY;
        }
        optional {
            /// The person who decided.
            decided_by: String, FieldType::NAME, rule::CONFIRMATION_REPLY_FORM;
            /// The reason for the decision.
            decision_rationale: String, FieldType::SHORT_TEXT, rule::CONFIRMATION_REPLY_FORM;
            /// A different action that the person wants. If the agent does not support
            /// modifications, the reply counts as a rejection (§6.3.2).
            modified_action: RawJson, FieldType::Object, rule::CONFIRMATION_REPLY_FORM;
            /// Links the reply to external traces.
            correlation_id: String, FieldType::ANY_TEXT, rule::CONFIRMATION_REPLY_FORM;
        }
    }
}

/// The response to a clarification (§6.5.2).
#[derive(Clone, Debug, PartialEq)]
pub enum ClarificationResponse {
    /// Free text, or the value of a choice.
    Text(String),
    /// Yes or no.
    YesNo(bool),
    /// A number.
    Number(f64),
}

impl FieldValue for ClarificationResponse {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        match value.kind() {
            JsonKind::Text => FieldValue::read(value).map(Self::Text),
            JsonKind::Bool => value.as_bool().map(Self::YesNo),
            JsonKind::Number => FieldValue::read(value).map(Self::Number),
            _ => None,
        }
    }

    fn write(&self, writer: &mut JsonWriter) {
        match self {
            Self::Text(text) => writer.text(text),
            Self::YesNo(yes) => writer.boolean(*yes),
            Self::Number(number) => writer.number(*number),
        }
    }
}

record! {
    /// `clarification.reply` (§6.5).
    ClarificationReply {
        required {
            /// The question's token.
            reply_token: ReplyToken, ReplyToken::FIELD_TYPE, rule::REPLY_TOKEN, rule::CLARIFICATION_REPLY;
            /// The response.
            response: ClarificationResponse, FieldType::Response, rule::CLARIFICATION_REPLY_FORM, rule::CLARIFICATION_REPLY;
            /// The subscription that received the question.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::CLARIFICATION_REPLY;
            /// When the person answered.
            timestamp: Timestamp, REPLY_TIMESTAMP, rule::REPLY_DECISION_AND_TIME, rule::CLARIFICATION_REPLY;
        }
        optional {
            /// The person who answered.
            decided_by: String, FieldType::NAME, rule::CLARIFICATION_REPLY_FORM;
            /// How certain the response is, from 0 to 1.
            confidence: f64, FieldType::Number { min: 0.0, max: 1.0 }, rule::CLARIFICATION_REPLY_FORM;
            /// Links the reply to external traces.
            correlation_id: String, FieldType::ANY_TEXT, rule::CLARIFICATION_REPLY_FORM;
        }
    }

    /// `sayso:deadline.extend`: the person needs more time.
    DeadlineExtend {
        required {
            /// The question's token.
            reply_token: ReplyToken, ReplyToken::FIELD_TYPE, rule::REPLY_TOKEN, rule::SAYSO_MESSAGE;
            /// The subscription that received the question.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::SAYSO_MESSAGE;
            /// When the person asked for more time.
            timestamp: Timestamp, REPLY_TIMESTAMP, rule::REPLY_DECISION_AND_TIME, rule::SAYSO_MESSAGE;
        }
        optional {
            /// The additional time in seconds.
            seconds: u64, FieldType::Integer { min: 1, max: 864_000 }, rule::SAYSO_MESSAGE;
        }
    }

    /// `sayso:handoff.acknowledge`: the sender takes over from the agent (§4.4.3).
    HandoffAcknowledge {
        required {
            /// The hand-off's token.
            reply_token: ReplyToken, ReplyToken::FIELD_TYPE, rule::REPLY_TOKEN, rule::SAYSO_MESSAGE;
            /// The subscription that received the hand-off.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::SAYSO_MESSAGE;
            /// When the sender took over.
            timestamp: Timestamp, REPLY_TIMESTAMP, rule::REPLY_DECISION_AND_TIME, rule::SAYSO_MESSAGE;
        }
        optional {
            /// A message for the agent and for everyone who listens to the session.
            note: String, HANDOFF_NOTE, rule::SAYSO_MESSAGE;
        }
    }

    /// `sayso:handoff.reject`: the sender refuses to take over from the agent (§4.4.3).
    HandoffReject {
        required {
            /// The hand-off's token.
            reply_token: ReplyToken, ReplyToken::FIELD_TYPE, rule::REPLY_TOKEN, rule::SAYSO_MESSAGE;
            /// The subscription that received the hand-off.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::SAYSO_MESSAGE;
            /// When the sender refused.
            timestamp: Timestamp, REPLY_TIMESTAMP, rule::REPLY_DECISION_AND_TIME, rule::SAYSO_MESSAGE;
        }
        optional {
            /// The reason, for the agent and for everyone who listens to the session.
            note: String, HANDOFF_NOTE, rule::SAYSO_MESSAGE;
        }
    }

    /// `sayso:session.stop`: the person stops the agent.
    SessionStop {
        required {
            /// The session to stop.
            session_id: SessionId, SessionId::FIELD_TYPE, rule::SESSION_ID, rule::SAYSO_MESSAGE;
            /// The subscription that receives the session's events.
            subscription_id: SubscriptionId, SubscriptionId::FIELD_TYPE, rule::SUBSCRIPTION_ID, rule::SAYSO_MESSAGE;
            /// When the person stopped the session.
            timestamp: Timestamp, REPLY_TIMESTAMP, rule::REPLY_DECISION_AND_TIME, rule::SAYSO_MESSAGE;
        }
        optional {
            /// The reason for the stop.
            reason: String, FieldType::SHORT_TEXT, rule::SAYSO_MESSAGE;
        }
    }
}
