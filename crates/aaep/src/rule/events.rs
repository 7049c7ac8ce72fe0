//! Rules about the payloads of the twelve core events: chapter 4, §6.4, and the limits of the
//! published schemas.
//! `rules!` explains the form `strict/receive @step`.

use super::rules;

rules! {
    SCHEMA: "AAEP-9.3.1-6" error/warning @7 "an event must match its published schema" aliases ["AAEP-3.9-7"];
    SUMMARIES: "AAEP-4.1.1s-1" error/warning @7
        "summary_normal and summary_detailed must have 1 to 16384 characters, summary_terse 1 to 4096" decisions ["C-A14", "C-A18"];
    SUMMARY_NORMAL: "AAEP-9.3.1-7" warning/warning @7 "an event that may be announced should have a summary_normal"
        decisions ["C-B18", "C-J7"];
    SUMMARY_LEVELS: "AAEP-2.2.8-2" warning/warning @7
        "an announced event should have more than one of summary_terse, summary_normal and summary_detailed";

    // Lifecycle (§4.1)
    STARTED: "AAEP-4.1.1-1" error/error @7 "agent.session.started must have a summary_normal";
    STARTED_FORM: "AAEP-4.1.1s-2" error/warning @7
        "expected_duration_ms must be 0 to 86400000, requested_by must have 1 to 256 characters, request_text at most 16384" decisions ["C-A17"];
    TOOLS_AVAILABLE: "AAEP-4.1.1s-3" error/warning @7
        "tools_available must have at most 256 different names of 1 to 256 characters";
    COMPLETED: "AAEP-4.1.2-1" error/error @7 "agent.session.completed must have a summary_normal";
    COMPLETED_FORM: "AAEP-4.1.2s-1" error/warning @7
        "duration_ms must be 0 to 86400000, tool_invocations_count at least 0, output_summary at most 16384 characters, result_uri a URI"
        decisions ["C-A17"];
    ERRORED: "AAEP-4.1.3-1" error/error @7 "agent.session.errored must have an error_category and a summary_normal";
    ERROR_CATEGORY: "AAEP-4.1.3-2" error/warning @7 "error_category must be transient, permanent, requires_user or unknown"
        decisions ["C-B16", "C-J2"];
    ERRORED_CRITICAL: "AAEP-4.1.3-4" error/warning @7 "agent.session.errored must have the urgency critical" decisions ["C-A8"];
    ERRORED_FORM: "AAEP-4.1.3s-1" error/warning @7
        "error_code must be a capital followed by 1 to 63 capitals, digits or _, remediation_hint must have 1 to 4096 characters, error_uri must be a URI"
        decisions ["C-A17"];
    CANCELLED: "AAEP-4.1.4-1" error/error @7 "agent.session.cancelled must have a cancelled_by and a summary_normal";
    CANCELLED_BY: "AAEP-4.1.4-2" error/warning @7 "cancelled_by must be user, producer, timeout or system"
        decisions ["C-B16", "C-J2"];
    CANCELLED_FORM: "AAEP-4.1.4s-1" error/warning @7
        "cancellation_reason must be a lower-case letter followed by 1 to 63 lower-case letters, digits or _, partial_result must have at most 16384 characters"
        decisions ["C-A17"];

    // Reasoning state (§4.2)
    STATE: "AAEP-4.2.1-1" error/error @7 "agent.state.changed must have a from_state and a to_state";
    STATE_FORM: "AAEP-4.2.1s-1" error/warning @7 "from_state and to_state must have 1 to 64 characters" decisions ["C-A17"];
    PROGRESS: "AAEP-4.2.2-1" error/error @7 "agent.progress.updated must have a progress object";
    PROGRESS_NOT_EMPTY: "AAEP-4.2.2-2" error/warning @7
        "progress must contain at least one of percent, step, total_steps and description";
    PERCENT: "AAEP-4.2.2-3" error/warning @7 "percent must be a number from 0 to 100";
    PROGRESS_FORM: "AAEP-4.2.2s-1" error/warning @7
        "progress must have no members other than percent, step, total_steps and description; step and total_steps must be at least 1, description must have 1 to 4096 characters; eta_ms must be 0 to 86400000";
    STEP_ORDER: "AAEP-4.2.2s-2" error/warning @7 "step must not be greater than total_steps";

    // Tools and output (§4.3)
    INVOKED: "AAEP-4.3.1-1" error/error @7 "agent.tool.invoked must have a tool and a summary_normal";
    RISK: "AAEP-4.3.1-6" error/warning @7 "risk_level must be low, medium or high, irreversible must be true or false"
        decisions ["C-J2"];
    TOOL_FORM: "AAEP-4.3.1s-1" error/warning @7
        "tool must be a letter or _ followed by up to 255 letters, digits, _ . or -, description must have 1 to 4096 characters, args_summary at most 16384"
        decisions ["C-A17"];
    CALL_ID: "AAEP-4.3.1s-2" error/warning @7 "tool_call_id must be call_ followed by 1 to 64 ASCII letters or digits"
        decisions ["C-A17"];
    TOOL_RESULT: "AAEP-4.3.2-1" error/error @7
        "agent.tool.completed must have a tool and a status, and status must be success, error or timeout" decisions ["C-J2"];
    ERROR_MESSAGE: "AAEP-4.3.2s-1" error/warning @7
        "error_message must have 1 to 4096 characters and should be present unless status is success";
    OUTPUT: "AAEP-4.3.3-1" error/error @7 "agent.output.streaming must have chunk, position and complete";
    OUTPUT_HINT: "AAEP-4.3.3-7" error/warning @7 "coalesce_hint must be none, word, sentence, paragraph or completion"
        decisions ["C-J2"];
    OUTPUT_HINT_REQUIRED: "AAEP-9.3.1-5" error/warning @7
        "a chunk that ends within a sentence must have a coalesce_hint" decisions ["C-J7"];
    OUTPUT_FORM: "AAEP-4.3.3s-1" error/warning @7
        "chunk must have at most 16384 characters, position must be at least 0, output_id must be out_ followed by 1 to 64 ASCII letters or digits"
        decisions ["C-A17", "C-A19"];
    OUTPUT_TYPE: "AAEP-4.3.3s-3" error/warning @7
        "content_type must be type/subtype without parameters, language must be a BCP 47 tag" decisions ["C-A15", "C-A17"];

    // Questions (§4.4, §6.4)
    CONFIRMATION: "AAEP-4.4.1-2" error/error @7
        "agent.awaiting.confirmation must have action, consequence, reply_token, timeout_seconds and default_decision";
    DEFAULT_DECISION: "AAEP-4.4.1-3" error/warning @7 "default_decision must be accept or reject";
    CONFIRMATION_CRITICAL: "AAEP-4.4.1-7" error/warning @7 "agent.awaiting.confirmation must have the urgency critical"
        decisions ["C-A8"];
    REVERSIBILITY: "AAEP-4.4.1-10" error/warning @7
        "reversibility must be reversible, reversible_with_effort or irreversible" decisions ["C-J2"];
    TIMEOUT: "AAEP-4.4.1s-1" error/warning @7 "timeout_seconds must be an integer from 1 to 86400" decisions ["C-A17"];
    CONFIRMATION_FORM: "AAEP-4.4.1s-2" error/warning @7
        "action and consequence must have 1 to 16384 characters, allowed_replies 1 to 32 different strings, extra_context must be an object";
    REPLY_TOKEN: "AAEP-6.2.1-1" error/warning @7 "reply_token must be rpl_ followed by 1 to 64 ASCII letters or digits";
    REPLY_TOKEN_RANDOM: "AAEP-6.2.1-2" warning/warning @7
        "reply_token should be 128 random bits as 32 hexadecimal digits, not a counter";
    HIGH_RISK_DEFAULT: "AAEP-6.4.1-1" error/error @7
        "the default for an irreversible action with high or unspecified risk must be reject"
        decisions ["C-B2", "C-B5"] aliases ["AAEP-4.4.1-6", "AAEP-6.4.1-5"];
    MEDIUM_RISK_DEFAULT: "AAEP-6.4.1-2" error/error @7 "the default for an irreversible action with medium risk must be reject"
        decisions ["C-B6"] aliases ["AAEP-4.4.1s-3"];
    LOW_RISK_DEFAULT: "AAEP-6.4.1-3" warning/warning @7
        "the default for an irreversible action with low risk should be reject, because silence is not consent"
        decisions ["C-B2"];
    REVERSIBLE_DEFAULT: "AAEP-6.4.1-4" warning/warning @7
        "the default for a high-risk action should be reject, even if it can be undone";
    REVERSIBILITY_AGREES: "C-B5" error/warning @7 "irreversible and reversibility must not contradict each other";
    ALLOWED_REPLIES: "C-D5" error/warning @7
        "allowed_replies must be accept, reject or both, and must contain the default_decision";
    CLARIFICATION: "AAEP-4.4.2-1" error/error @7
        "agent.awaiting.clarification must have question, reply_token and timeout_seconds";
    CLARIFICATION_CRITICAL: "AAEP-4.4.2-3" error/warning @7 "agent.awaiting.clarification must have the urgency critical"
        decisions ["C-A8"];
    RESPONSE_KINDS: "AAEP-4.4.2-4" error/warning @7
        "accepted_response_kinds may only contain freetext, yes_no, multiple_choice and numeric" decisions ["C-J2"];
    CHOICES: "AAEP-4.4.2s-1" error/warning @7
        "choices must be 2 to 32 different pairs of value (1 to 256 characters) and label (1 to 1024), and multiple_choice requires them"
        decisions ["C-D6"] aliases ["AAEP-9.4.1-2"];
    CLARIFICATION_FORM: "AAEP-4.4.2s-2" error/warning @7
        "accepted_response_kinds must have 1 to 4 different items, question 1 to 16384 characters, context 1 to 4096, default_response at most 4096";
    HANDOFF: "AAEP-4.4.3-1" error/error @7 "agent.handoff.requested must have a reason and a target_kind";
    HANDOFF_TARGET: "AAEP-4.4.3-2" error/warning @7
        "target_kind must be human, specialist_agent or escalation_queue, urgency_for_handoff must be low, medium or high"
        decisions ["C-J2"];
    HANDOFF_CRITICAL: "AAEP-4.4.3-3" error/warning @7 "agent.handoff.requested must have the urgency critical"
        decisions ["C-A8"];
    HANDOFF_FORM: "AAEP-4.4.3s-1" error/warning @7
        "reason must have 1 to 16384 characters, target_uri must be a URI, packaged_context must be an object";
}

/// The rule for `expected_duration_ms`, which three event types have. It is part of [`STARTED_FORM`].
pub(crate) const EXPECTED_DURATION: super::Rule = STARTED_FORM;
/// The rule for `duration_ms`, which two event types have. It is part of [`COMPLETED_FORM`].
pub(crate) const DURATION: super::Rule = COMPLETED_FORM;
