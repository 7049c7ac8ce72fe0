//! What the person says back (§6.3, §6.5), and the two messages of sayso's own.

use crate::event::Decision;
use crate::id::{ReplyToken, SessionId, SubscriptionId};
use crate::json::{Kind, Raw, Value, Writer};
use crate::message::DECISION;
use crate::record::{Part, Shape, record};
use crate::rule;
use seal::Timestamp;

const WHEN: Shape = Shape::Time { any: true };

record! {
    /// `confirmation.reply` (§6.3).
    ConfirmationReply {
        required {
            /// The question's token.
            reply_token: ReplyToken, ReplyToken::SHAPE, rule::REPLY_TOKEN, rule::CONFIRMATION_REPLY;
            /// The decision.
            decision: Decision, DECISION, rule::REPLY_TIME, rule::CONFIRMATION_REPLY;
            /// The subscription over which the question came.
            subscription_id: SubscriptionId, SubscriptionId::SHAPE, rule::SUBSCRIPTION_ID, rule::CONFIRMATION_REPLY;
            /// When the person decided.
            timestamp: Timestamp, WHEN, rule::REPLY_TIME, rule::CONFIRMATION_REPLY;
        }
        optional {
            /// Who decided.
            decided_by: String, Shape::NAME, rule::CONFIRMATION_REPLY_FORM;
            /// Why.
            decision_rationale: String, Shape::SHORT, rule::CONFIRMATION_REPLY_FORM;
            /// What should be done instead; counts as a refusal where it is not supported (§6.3.2).
            modified_action: Raw, Shape::Object, rule::CONFIRMATION_REPLY_FORM;
            /// Ties it to traces elsewhere.
            correlation_id: String, Shape::ANY, rule::CONFIRMATION_REPLY_FORM;
        }
    }
}

/// An answer to a clarification (§6.5.2).
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// Free text, or the value of a choice.
    Text(String),
    /// Yes or no.
    YesNo(bool),
    /// A number.
    Number(f64),
}

impl Part for Response {
    fn read(value: Value<'_>) -> Option<Self> {
        match value.kind() {
            Kind::Text => Part::read(value).map(Self::Text),
            Kind::Bool => value.boolean().map(Self::YesNo),
            Kind::Number => Part::read(value).map(Self::Number),
            _ => None,
        }
    }

    fn write(&self, writer: &mut Writer) {
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
            reply_token: ReplyToken, ReplyToken::SHAPE, rule::REPLY_TOKEN, rule::CLARIFICATION_REPLY;
            /// The answer.
            response: Response, Shape::Response, rule::CLARIFICATION_REPLY_FORM, rule::CLARIFICATION_REPLY;
            /// The subscription over which the question came.
            subscription_id: SubscriptionId, SubscriptionId::SHAPE, rule::SUBSCRIPTION_ID, rule::CLARIFICATION_REPLY;
            /// When the person answered.
            timestamp: Timestamp, WHEN, rule::REPLY_TIME, rule::CLARIFICATION_REPLY;
        }
        optional {
            /// Who answered.
            decided_by: String, Shape::NAME, rule::CLARIFICATION_REPLY_FORM;
            /// How sure the answer is, 0 to 1.
            confidence: f64, Shape::Number { min: 0.0, max: 1.0 }, rule::CLARIFICATION_REPLY_FORM;
            /// Ties it to traces elsewhere.
            correlation_id: String, Shape::ANY, rule::CLARIFICATION_REPLY_FORM;
        }
    }

    /// `sayso:deadline.extend`: the person needs more time.
    DeadlineExtend {
        required {
            /// The question's token.
            reply_token: ReplyToken, ReplyToken::SHAPE, rule::REPLY_TOKEN, rule::OUR_MESSAGE;
            /// The subscription over which the question came.
            subscription_id: SubscriptionId, SubscriptionId::SHAPE, rule::SUBSCRIPTION_ID, rule::OUR_MESSAGE;
            /// When the person asked for it.
            timestamp: Timestamp, WHEN, rule::REPLY_TIME, rule::OUR_MESSAGE;
        }
        optional {
            /// How much more.
            seconds: u64, Shape::Integer { min: 1, max: 864_000 }, rule::OUR_MESSAGE;
        }
    }

    /// `sayso:session.stop`: the person stops the agent.
    SessionStop {
        required {
            /// Which session.
            session_id: SessionId, SessionId::SHAPE, rule::SESSION_ID, rule::OUR_MESSAGE;
            /// The subscription over which the session is heard.
            subscription_id: SubscriptionId, SubscriptionId::SHAPE, rule::SUBSCRIPTION_ID, rule::OUR_MESSAGE;
            /// When the person stopped it.
            timestamp: Timestamp, WHEN, rule::REPLY_TIME, rule::OUR_MESSAGE;
        }
        optional {
            /// Why.
            reason: String, Shape::SHORT, rule::OUR_MESSAGE;
        }
    }
}
