//! Rules about the payloads of the twelve core events: chapters 4 and 6.4, and the published schemas' limits.

use super::rules;

rules! {
    SCHEMA: "AAEP-9.3.1-6" error/warning @7 "an event has the form that its published schema gives" also ["AAEP-3.9-7"];
    SUMMARIES: "AAEP-4.1.1s-1" error/warning @7
        "summary_normal and summary_detailed have 1 to 16384 characters, summary_terse 1 to 4096" follows ["C-A14", "C-A18"];
    SUMMARY_NORMAL: "AAEP-9.3.1-7" warning/warning @7 "an event that a person may hear has a summary_normal"
        follows ["C-B18", "C-J7"];
    SUMMARY_LEVELS: "AAEP-2.2.8-2" warning/warning @7
        "an event that is announced should offer more than one of summary_terse, summary_normal and summary_detailed";

    // Lifecycle (§4.1)
    STARTED: "AAEP-4.1.1-1" error/error @7 "agent.session.started has a summary_normal";
    STARTED_FORM: "AAEP-4.1.1s-2" error/warning @7
        "expected_duration_ms is 0 to 86400000, requested_by has 1 to 256 characters, request_text at most 16384" follows ["C-A17"];
    TOOLS_AVAILABLE: "AAEP-4.1.1s-3" error/warning @7
        "tools_available has at most 256 different names of 1 to 256 characters";
    COMPLETED: "AAEP-4.1.2-1" error/error @7 "agent.session.completed has a summary_normal";
    COMPLETED_FORM: "AAEP-4.1.2s-1" error/warning @7
        "duration_ms is 0 to 86400000, tool_invocations_count from 0 on, output_summary at most 16384 characters, result_uri a URI"
        follows ["C-A17"];
    ERRORED: "AAEP-4.1.3-1" error/error @7 "agent.session.errored has an error_category and a summary_normal";
    ERROR_CATEGORY: "AAEP-4.1.3-2" error/warning @7 "error_category is transient, permanent, requires_user or unknown"
        follows ["C-B16", "C-J2"];
    ERRORED_CRITICAL: "AAEP-4.1.3-4" error/warning @7 "agent.session.errored says urgency critical" follows ["C-A8"];
    ERRORED_FORM: "AAEP-4.1.3s-1" error/warning @7
        "error_code is a capital and 1 to 63 capitals, digits or _, remediation_hint has 1 to 4096 characters, error_uri is a URI"
        follows ["C-A17"];
    CANCELLED: "AAEP-4.1.4-1" error/error @7 "agent.session.cancelled has a cancelled_by and a summary_normal";
    CANCELLED_BY: "AAEP-4.1.4-2" error/warning @7 "cancelled_by is user, producer, timeout or system"
        follows ["C-B16", "C-J2"];
    CANCELLED_FORM: "AAEP-4.1.4s-1" error/warning @7
        "cancellation_reason is a small letter and 1 to 63 small letters, digits or _, partial_result has at most 16384 characters"
        follows ["C-A17"];

    // Reasoning state (§4.2)
    STATE: "AAEP-4.2.1-1" error/error @7 "agent.state.changed has a from_state and a to_state";
    STATE_FORM: "AAEP-4.2.1s-1" error/warning @7 "from_state and to_state have 1 to 64 characters" follows ["C-A17"];
    PROGRESS: "AAEP-4.2.2-1" error/error @7 "agent.progress.updated has a progress object";
    PROGRESS_SAYS: "AAEP-4.2.2-2" error/warning @7
        "progress holds at least one of percent, step, total_steps and description";
    PERCENT: "AAEP-4.2.2-3" error/warning @7 "percent is a number from 0 to 100";
    PROGRESS_FORM: "AAEP-4.2.2s-1" error/warning @7
        "progress holds percent, step and total_steps from 1 on, description of 1 to 4096 characters, and nothing else; eta_ms is 0 to 86400000";
    STEP_ORDER: "AAEP-4.2.2s-2" error/warning @7 "step is not greater than total_steps";

    // Tools and output (§4.3)
    INVOKED: "AAEP-4.3.1-1" error/error @7 "agent.tool.invoked has a tool and a summary_normal";
    RISK: "AAEP-4.3.1-6" error/warning @7 "risk_level is low, medium or high, irreversible is true or false"
        follows ["C-J2"];
    TOOL_FORM: "AAEP-4.3.1s-1" error/warning @7
        "tool is a letter or _ and up to 255 letters, digits, _ . or -, description has 1 to 4096 characters, args_summary at most 16384"
        follows ["C-A17"];
    CALL_ID: "AAEP-4.3.1s-2" error/warning @7 "tool_call_id is call_ followed by 1 to 64 ASCII letters or digits"
        follows ["C-A17"];
    TOOL_DONE: "AAEP-4.3.2-1" error/error @7
        "agent.tool.completed has a tool and a status, and status is success, error or timeout" follows ["C-J2"];
    ERROR_MESSAGE: "AAEP-4.3.2s-1" error/warning @7
        "error_message has 1 to 4096 characters and is expected when status is not success";
    OUTPUT: "AAEP-4.3.3-1" error/error @7 "agent.output.streaming has a chunk, a position and complete";
    OUTPUT_HINT: "AAEP-4.3.3-7" error/warning @7 "coalesce_hint is none, word, sentence, paragraph or completion"
        follows ["C-J2"];
    OUTPUT_HINTED: "AAEP-9.3.1-5" error/warning @7
        "a chunk that ends before a sentence does carries a coalesce_hint" follows ["C-J7"];
    OUTPUT_FORM: "AAEP-4.3.3s-1" error/warning @7
        "chunk has at most 16384 characters, position is from 0 on, output_id is out_ followed by 1 to 64 ASCII letters or digits"
        follows ["C-A17", "C-A19"];
    OUTPUT_TYPE: "AAEP-4.3.3s-3" error/warning @7
        "content_type is type/subtype without parameters, language is a BCP 47 tag" follows ["C-A15", "C-A17"];

    // Questions (§4.4, §6.4)
    CONFIRMATION: "AAEP-4.4.1-2" error/error @7
        "agent.awaiting.confirmation has action, consequence, reply_token, timeout_seconds and default_decision";
    DEFAULT_DECISION: "AAEP-4.4.1-3" error/warning @7 "default_decision is accept or reject";
    CONFIRMATION_CRITICAL: "AAEP-4.4.1-7" error/warning @7 "agent.awaiting.confirmation says urgency critical"
        follows ["C-A8"];
    REVERSIBILITY: "AAEP-4.4.1-10" error/warning @7
        "reversibility is reversible, reversible_with_effort or irreversible" follows ["C-J2"];
    TIMEOUT: "AAEP-4.4.1s-1" error/warning @7 "timeout_seconds is an integer from 1 to 86400" follows ["C-A17"];
    CONFIRMATION_FORM: "AAEP-4.4.1s-2" error/warning @7
        "action and consequence have 1 to 16384 characters, allowed_replies 1 to 32 different strings, extra_context is an object";
    REPLY_TOKEN: "AAEP-6.2.1-1" error/warning @7 "reply_token is rpl_ followed by 1 to 64 ASCII letters or digits";
    REPLY_TOKEN_RANDOM: "AAEP-6.2.1-2" warning/warning @7
        "reply_token should be 128 random bits as 32 hexadecimal digits, not a counter";
    HIGH_DEFAULT: "AAEP-6.4.1-1" error/error @7
        "the default for what is irreversible and of high risk (or of a risk not named) is reject"
        follows ["C-B2", "C-B5"] also ["AAEP-4.4.1-6", "AAEP-6.4.1-5"];
    MEDIUM_DEFAULT: "AAEP-6.4.1-2" error/error @7 "the default for what is irreversible and of medium risk is reject"
        follows ["C-B6"] also ["AAEP-4.4.1s-3"];
    LOW_DEFAULT: "AAEP-6.4.1-3" warning/warning @7
        "the default for what is irreversible and of low risk should be reject: nothing irreversible is done on silence"
        follows ["C-B2"];
    REVERSIBLE_DEFAULT: "AAEP-6.4.1-4" warning/warning @7
        "the default for what is of high risk should be reject, also where it can be undone";
    REVERSIBILITY_AGREES: "C-B5" error/warning @7 "irreversible and reversibility say the same";
    ALLOWED_REPLIES: "C-D5" error/warning @7
        "allowed_replies is accept, reject or both, and holds the default_decision";
    CLARIFICATION: "AAEP-4.4.2-1" error/error @7
        "agent.awaiting.clarification has question, reply_token and timeout_seconds";
    CLARIFICATION_CRITICAL: "AAEP-4.4.2-3" error/warning @7 "agent.awaiting.clarification says urgency critical"
        follows ["C-A8"];
    RESPONSE_KINDS: "AAEP-4.4.2-4" error/warning @7
        "accepted_response_kinds are freetext, yes_no, multiple_choice or numeric" follows ["C-J2"];
    CHOICES: "AAEP-4.4.2s-1" error/warning @7
        "choices are 2 to 32 different pairs of value (1 to 256 characters) and label (1 to 1024), and multiple_choice has them"
        follows ["C-D6"] also ["AAEP-9.4.1-2"];
    CLARIFICATION_FORM: "AAEP-4.4.2s-2" error/warning @7
        "accepted_response_kinds are 1 to 4 different ones, question has 1 to 16384 characters, context 1 to 4096, default_response at most 4096";
    HANDOFF: "AAEP-4.4.3-1" error/error @7 "agent.handoff.requested has a reason and a target_kind";
    HANDOFF_TARGET: "AAEP-4.4.3-2" error/warning @7
        "target_kind is human, specialist_agent or escalation_queue, urgency_for_handoff is low, medium or high"
        follows ["C-J2"];
    HANDOFF_CRITICAL: "AAEP-4.4.3-3" error/warning @7 "agent.handoff.requested says urgency critical"
        follows ["C-A8"];
    HANDOFF_FORM: "AAEP-4.4.3s-1" error/warning @7
        "reason has 1 to 16384 characters, target_uri is a URI, packaged_context is an object";
}
