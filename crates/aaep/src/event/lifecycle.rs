//! The lifecycle events (§4.1): one start and three kinds of end.

use crate::event::{CancelledBy, ErrorCategory};
use crate::grammar::{is_error_code, is_reason};
use crate::record::{FieldType, record};
use crate::rule;

record! {
    /// `aaep:agent.session.started` (§4.1.1): the first event of a session.
    SessionStarted {
        required {
            /// What the session will do.
            summary_normal: String, FieldType::LONG_TEXT, rule::SUMMARIES, rule::STARTED, spoken;
        }
        optional with other summaries {
            /// The expected duration in milliseconds.
            expected_duration_ms: u64, FieldType::MILLIS, rule::STARTED_FORM;
            /// The requester, such as `user:folake`.
            requested_by: String, FieldType::NAME, rule::STARTED_FORM;
            /// The person's request in their own words, without secrets.
            request_text: String, FieldType::LONG_OR_EMPTY_TEXT, rule::STARTED_FORM, spoken;
            /// The tools that the agent may use.
            tools_available: Vec<String>,
                FieldType::List { item: &FieldType::NAME, min: 0, max: 256, unique: true, item_rule: None }, rule::TOOLS_AVAILABLE;
        }
    }

    /// `aaep:agent.session.completed` (§4.1.2): the session finished its task.
    SessionCompleted {
        required {
            /// What was done.
            summary_normal: String, FieldType::LONG_TEXT, rule::SUMMARIES, rule::COMPLETED, spoken;
        }
        optional with other summaries {
            /// The duration in milliseconds.
            duration_ms: u64, FieldType::MILLIS, rule::COMPLETED_FORM;
            /// The number of tool calls.
            tool_invocations_count: u64, FieldType::COUNT, rule::COMPLETED_FORM;
            /// A short summary of the result.
            output_summary: String, FieldType::LONG_OR_EMPTY_TEXT, rule::COMPLETED_FORM, spoken;
            /// The URI of the full result.
            result_uri: String, FieldType::Uri, rule::COMPLETED_FORM;
        }
    }

    /// `aaep:agent.session.errored` (§4.1.3): the session failed. Always critical.
    SessionErrored {
        required {
            /// The category of the error.
            error_category: ErrorCategory, FieldType::Enum(ErrorCategory::VALUES), rule::ERROR_CATEGORY, rule::ERRORED;
            /// What went wrong.
            summary_normal: String, FieldType::LONG_TEXT, rule::SUMMARIES, rule::ERRORED, spoken;
        }
        optional with other summaries {
            /// A short error code of the producer.
            error_code: String,
                FieldType::Grammar { matches: is_error_code, pattern: "^[A-Z][A-Z0-9_]{1,63}$", description: "a code like AUTH_FAILED" },
                rule::ERRORED_FORM;
            /// The URI of a help page.
            error_uri: String, FieldType::Uri, rule::ERRORED_FORM;
            /// Whether a retry could succeed.
            recoverable: bool, FieldType::Bool, rule::SCHEMA;
            /// What the person can do.
            remediation_hint: String, FieldType::SHORT_TEXT, rule::ERRORED_FORM, spoken;
        }
    }

    /// `aaep:agent.session.cancelled` (§4.1.4): the session ended before its task was finished.
    SessionCancelled {
        required {
            /// Who cancelled the session.
            cancelled_by: CancelledBy, FieldType::Enum(CancelledBy::VALUES), rule::CANCELLED_BY, rule::CANCELLED;
            /// Why the session was cancelled.
            summary_normal: String, FieldType::LONG_TEXT, rule::SUMMARIES, rule::CANCELLED, spoken;
        }
        optional with other summaries {
            /// A short reason code of the producer.
            cancellation_reason: String,
                FieldType::Grammar { matches: is_reason, pattern: "^[a-z][a-z0-9_]{1,63}$", description: "a reason like user_pressed_escape" },
                rule::CANCELLED_FORM;
            /// The result up to the cancellation.
            partial_result: String, FieldType::LONG_OR_EMPTY_TEXT, rule::CANCELLED_FORM, spoken;
        }
    }
}
