//! The human-in-the-loop family (§4.4): where the agent stops and asks.

use crate::event::{Decision, HandoffTarget, ResponseKind, Reversibility, RiskLevel};
use crate::id::ReplyToken;
use crate::json::Raw;
use crate::record::{Shape, record};
use crate::rule;

const TIMEOUT: Shape = Shape::Integer { min: 1, max: 86_400 };

record! {
    /// `aaep:agent.awaiting.confirmation` (§4.4.1): may this be done? Always critical; the agent waits.
    AwaitingConfirmation {
        required {
            /// What would be done.
            action: String, Shape::LONG, rule::CONFIRMATION_FORM, rule::CONFIRMATION, spoken;
            /// What would come of it.
            consequence: String, Shape::LONG, rule::CONFIRMATION_FORM, rule::CONFIRMATION, spoken;
            /// Ties the answer to this question.
            reply_token: ReplyToken, ReplyToken::SHAPE, rule::REPLY_TOKEN, rule::CONFIRMATION;
            /// How long the agent waits.
            timeout_seconds: u64, TIMEOUT, rule::TIMEOUT, rule::CONFIRMATION;
            /// What holds if nobody answers.
            default_decision: Decision, Shape::Word(Decision::WORDS), rule::DEFAULT_DECISION, rule::CONFIRMATION;
        }
        optional with summaries {
            /// How much harm it could do.
            risk_level: RiskLevel, Shape::Word(RiskLevel::WORDS), rule::SCHEMA;
            /// Whether it can never be undone.
            irreversible: bool, Shape::Bool, rule::SCHEMA;
            /// How hard it is to undo.
            reversibility: Reversibility, Shape::Word(Reversibility::WORDS), rule::REVERSIBILITY;
            /// The answers that are possible: accept, reject or both (C-D5).
            allowed_replies: Vec<String>,
                Shape::List { of: &Shape::ANY, min: 1, max: 32, unique: true, items: None }, rule::CONFIRMATION_FORM;
            /// More that may be shown.
            extra_context: Raw, Shape::Object, rule::CONFIRMATION_FORM;
        }
    }

    /// One of several answers (§4.4.2).
    Choice {
        required {
            /// What is sent when it is chosen.
            value: String, Shape::NAME, rule::CHOICES, rule::CHOICES;
            /// What the person is told.
            label: String, Shape::Text { min: 1, max: 1024 }, rule::CHOICES, rule::CHOICES, spoken;
        }
        optional {}
    }

    /// `aaep:agent.awaiting.clarification` (§4.4.2): what did the person mean? Always critical; the agent waits.
    AwaitingClarification {
        required {
            /// The question.
            question: String, Shape::LONG, rule::CLARIFICATION_FORM, rule::CLARIFICATION, spoken;
            /// Ties the answer to this question.
            reply_token: ReplyToken, ReplyToken::SHAPE, rule::REPLY_TOKEN, rule::CLARIFICATION;
            /// How long the agent waits.
            timeout_seconds: u64, TIMEOUT, rule::TIMEOUT, rule::CLARIFICATION;
        }
        optional with summaries {
            /// What an answer may be; free text if not said, and a choice if there are choices (C-D6).
            accepted_response_kinds: Vec<ResponseKind>,
                Shape::List { of: &Shape::Word(ResponseKind::WORDS), min: 1, max: 4, unique: true, items: Some(rule::RESPONSE_KINDS) },
                rule::CLARIFICATION_FORM;
            /// The answers to choose from.
            choices: Vec<Choice>,
                Shape::List {
                    of: &Shape::Record { fields: Choice::FIELDS, closed: Some(rule::CHOICES), open_objects: None },
                    min: 2,
                    max: 32,
                    unique: true,
                    items: None,
                },
                rule::CHOICES, spoken;
            /// Why the agent asks.
            context: String, Shape::SHORT, rule::CLARIFICATION_FORM, spoken;
            /// What holds if nobody answers.
            default_response: String, Shape::Text { min: 0, max: 4096 }, rule::CLARIFICATION_FORM, spoken;
        }
    }

    /// `aaep:agent.handoff.requested` (§4.4.3): somebody else must go on. Always critical.
    HandoffRequested {
        required {
            /// Why.
            reason: String, Shape::LONG, rule::HANDOFF_FORM, rule::HANDOFF, spoken;
            /// To whom.
            target_kind: HandoffTarget, Shape::Word(HandoffTarget::WORDS), rule::HANDOFF_TARGET, rule::HANDOFF;
        }
        optional with summaries {
            /// Exactly to whom.
            target_uri: String, Shape::Uri, rule::HANDOFF_FORM;
            /// What the other one needs to know.
            packaged_context: Raw, Shape::Object, rule::HANDOFF_FORM;
            /// How soon the other one should look at it.
            urgency_for_handoff: RiskLevel, Shape::Word(RiskLevel::WORDS), rule::HANDOFF_TARGET;
        }
    }
}
