//! The lifecycle family (§4.1): where a session begins, and the three ways in which it ends.

use crate::event::{CancelledBy, ErrorCategory};
use crate::form::{is_error_code, is_reason};
use crate::record::{Shape, record};
use crate::rule;

record! {
    /// `aaep:agent.session.started` (§4.1.1): the first event of a session.
    SessionStarted {
        required {
            /// What the session will do.
            summary_normal: String, Shape::LONG, rule::SUMMARIES, rule::STARTED, spoken;
        }
        optional with other summaries {
            /// How long the session should take.
            expected_duration_ms: u64, Shape::MILLIS, rule::STARTED_FORM;
            /// Who asked, like `user:folake`.
            requested_by: String, Shape::NAME, rule::STARTED_FORM;
            /// What the person asked for, in their words; no secrets.
            request_text: String, Shape::LONG_OR_EMPTY, rule::STARTED_FORM, spoken;
            /// The tools that the agent may use.
            tools_available: Vec<String>,
                Shape::List { of: &Shape::NAME, min: 0, max: 256, unique: true, items: None }, rule::TOOLS_AVAILABLE;
        }
    }

    /// `aaep:agent.session.completed` (§4.1.2): the session did what was asked.
    SessionCompleted {
        required {
            /// What was done.
            summary_normal: String, Shape::LONG, rule::SUMMARIES, rule::COMPLETED, spoken;
        }
        optional with other summaries {
            /// How long it took.
            duration_ms: u64, Shape::MILLIS, rule::COMPLETED_FORM;
            /// How many tools were invoked.
            tool_invocations_count: u64, Shape::COUNT, rule::COMPLETED_FORM;
            /// What came out, in short.
            output_summary: String, Shape::LONG_OR_EMPTY, rule::COMPLETED_FORM, spoken;
            /// Where the whole result is.
            result_uri: String, Shape::Uri, rule::COMPLETED_FORM;
        }
    }

    /// `aaep:agent.session.errored` (§4.1.3): the session failed. Always critical.
    SessionErrored {
        required {
            /// What kind of failure it was.
            error_category: ErrorCategory, Shape::Word(ErrorCategory::WORDS), rule::ERROR_CATEGORY, rule::ERRORED;
            /// What went wrong.
            summary_normal: String, Shape::LONG, rule::SUMMARIES, rule::ERRORED, spoken;
        }
        optional with other summaries {
            /// A short code of the producer's.
            error_code: String,
                Shape::Form { is: is_error_code, pattern: "^[A-Z][A-Z0-9_]{1,63}$", called: "a code like AUTH_FAILED" },
                rule::ERRORED_FORM;
            /// Where help is.
            error_uri: String, Shape::Uri, rule::ERRORED_FORM;
            /// Whether trying again could work.
            recoverable: bool, Shape::Bool, rule::SCHEMA;
            /// What the person can do.
            remediation_hint: String, Shape::SHORT, rule::ERRORED_FORM, spoken;
        }
    }

    /// `aaep:agent.session.cancelled` (§4.1.4): the session was ended before it was done.
    SessionCancelled {
        required {
            /// Who ended it.
            cancelled_by: CancelledBy, Shape::Word(CancelledBy::WORDS), rule::CANCELLED_BY, rule::CANCELLED;
            /// Why.
            summary_normal: String, Shape::LONG, rule::SUMMARIES, rule::CANCELLED, spoken;
        }
        optional with other summaries {
            /// A short reason of the producer's.
            cancellation_reason: String,
                Shape::Form { is: is_reason, pattern: "^[a-z][a-z0-9_]{1,63}$", called: "a reason like user_pressed_escape" },
                rule::CANCELLED_FORM;
            /// What had been done by then.
            partial_result: String, Shape::LONG_OR_EMPTY, rule::CANCELLED_FORM, spoken;
        }
    }
}
