//! The human-in-the-loop events (§4.4): questions to a person, and hand-offs.

use crate::event::{Decision, HandoffTarget, ResponseKind, Reversibility, RiskLevel};
use crate::id::ReplyToken;
use crate::json::RawJson;
use crate::record::{FieldType, record};
use crate::rule;

const TIMEOUT: FieldType = FieldType::Integer { min: 1, max: 86_400 };

record! {
    /// `aaep:agent.awaiting.confirmation` (§4.4.1): asks whether the agent may act. Always
    /// critical; the agent waits.
    AwaitingConfirmation {
        required {
            /// The action to confirm.
            action: String, FieldType::LONG_TEXT, rule::CONFIRMATION_FORM, rule::CONFIRMATION, spoken;
            /// The consequence of the action.
            consequence: String, FieldType::LONG_TEXT, rule::CONFIRMATION_FORM, rule::CONFIRMATION, spoken;
            /// Links the reply to this question.
            reply_token: ReplyToken, ReplyToken::FIELD_TYPE, rule::REPLY_TOKEN, rule::CONFIRMATION;
            /// How long the agent waits for a reply, in seconds.
            timeout_seconds: u64, TIMEOUT, rule::TIMEOUT, rule::CONFIRMATION;
            /// The decision if nobody answers.
            default_decision: Decision, FieldType::Enum(Decision::VALUES), rule::DEFAULT_DECISION, rule::CONFIRMATION;
        }
        optional with summaries {
            /// The potential harm of the action.
            risk_level: RiskLevel, FieldType::Enum(RiskLevel::VALUES), rule::SCHEMA;
            /// Whether the action cannot be undone.
            irreversible: bool, FieldType::Bool, rule::SCHEMA;
            /// How hard the action is to undo.
            reversibility: Reversibility, FieldType::Enum(Reversibility::VALUES), rule::REVERSIBILITY;
            /// The allowed replies: accept, reject or both (C-D5).
            allowed_replies: Vec<String>,
                FieldType::List { item: &FieldType::ANY_TEXT, min: 1, max: 32, unique: true, item_rule: None }, rule::CONFIRMATION_FORM;
            /// Additional data that may be shown.
            extra_context: RawJson, FieldType::Object, rule::CONFIRMATION_FORM;
        }
    }

    /// One choice of a clarification (§4.4.2).
    Choice {
        required {
            /// The value that a reply carries.
            value: String, FieldType::NAME, rule::CHOICES, rule::CHOICES;
            /// The label for the person.
            label: String, FieldType::Text { min: 1, max: 1024 }, rule::CHOICES, rule::CHOICES, spoken;
        }
        optional {}
    }

    /// `aaep:agent.awaiting.clarification` (§4.4.2): asks what the person wants. Always critical;
    /// the agent waits.
    AwaitingClarification {
        required {
            /// The question.
            question: String, FieldType::LONG_TEXT, rule::CLARIFICATION_FORM, rule::CLARIFICATION, spoken;
            /// Links the reply to this question.
            reply_token: ReplyToken, ReplyToken::FIELD_TYPE, rule::REPLY_TOKEN, rule::CLARIFICATION;
            /// How long the agent waits for a reply, in seconds.
            timeout_seconds: u64, TIMEOUT, rule::TIMEOUT, rule::CLARIFICATION;
        }
        optional with summaries {
            /// The accepted kinds of answer. If absent: free text, and a choice if there are
            /// choices (C-D6).
            accepted_response_kinds: Vec<ResponseKind>,
                FieldType::List { item: &FieldType::Enum(ResponseKind::VALUES), min: 1, max: 4, unique: true, item_rule: Some(rule::RESPONSE_KINDS) },
                rule::CLARIFICATION_FORM;
            /// The choices.
            choices: Vec<Choice>,
                FieldType::List {
                    item: &FieldType::Record { fields: Choice::FIELDS, unknown_member_rule: Some(rule::CHOICES), non_object_member_rule: None },
                    min: 2,
                    max: 32,
                    unique: true,
                    item_rule: None,
                },
                rule::CHOICES, spoken;
            /// Why the agent asks.
            context: String, FieldType::SHORT_TEXT, rule::CLARIFICATION_FORM, spoken;
            /// The answer that applies if nobody replies.
            default_response: String, FieldType::Text { min: 0, max: 4096 }, rule::CLARIFICATION_FORM, spoken;
        }
    }

    /// `aaep:agent.handoff.requested` (§4.4.3): passes the task to a person, another agent or a
    /// queue. Always critical.
    HandoffRequested {
        required {
            /// The reason for the hand-off.
            reason: String, FieldType::LONG_TEXT, rule::HANDOFF_FORM, rule::HANDOFF, spoken;
            /// The kind of target.
            target_kind: HandoffTarget, FieldType::Enum(HandoffTarget::VALUES), rule::HANDOFF_TARGET, rule::HANDOFF;
        }
        optional with summaries {
            /// The exact target.
            target_uri: String, FieldType::Uri, rule::HANDOFF_FORM;
            /// What the target needs to know.
            packaged_context: RawJson, FieldType::Object, rule::HANDOFF_FORM;
            /// How urgent the hand-off is for the target.
            urgency_for_handoff: RiskLevel, FieldType::Enum(RiskLevel::VALUES), rule::HANDOFF_TARGET;
        }
    }
}
