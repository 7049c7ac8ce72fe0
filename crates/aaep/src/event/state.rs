//! The reasoning-state events (§4.2): the agent's state and its progress. The first rule of a required
//! field is for a wrong value, the second for a missing one; see `record!`.

use super::AgentState;
use crate::record::{FieldType, record};
use crate::rule;

record! {
    /// `aaep:agent.state.changed` (§4.2.1): the agent changed its state.
    StateChanged {
        required {
            /// The previous state.
            from_state: AgentState, FieldType::Text { min: 1, max: 64 }, rule::STATE_FORM, rule::STATE;
            /// The new state.
            to_state: AgentState, FieldType::Text { min: 1, max: 64 }, rule::STATE_FORM, rule::STATE;
        }
        optional with summaries {
            /// The expected duration of the new state, in milliseconds.
            expected_duration_ms: u64, FieldType::MILLIS, rule::EXPECTED_DURATION;
        }
    }

    /// The progress of a task (§4.2.2). At least one member is required.
    Progress {
        required {}
        optional {
            /// The completed percentage.
            percent: f64, FieldType::Number { min: 0.0, max: 100.0 }, rule::PERCENT;
            /// The current step, starting at 1.
            step: u64, FieldType::POSITIVE, rule::PROGRESS_FORM;
            /// The number of steps.
            total_steps: u64, FieldType::POSITIVE, rule::PROGRESS_FORM;
            /// A description of the current step.
            description: String, FieldType::SHORT_TEXT, rule::PROGRESS_FORM, spoken;
        }
    }

    /// `aaep:agent.progress.updated` (§4.2.2): reports progress of a long task.
    ProgressUpdated {
        required {
            /// The progress.
            progress: Progress,
                FieldType::Record { fields: Progress::FIELDS, unknown_member_rule: Some(rule::PROGRESS_FORM), non_object_member_rule: None },
                rule::PROGRESS, rule::PROGRESS;
        }
        optional with summaries {
            /// The expected remaining time in milliseconds.
            eta_ms: u64, FieldType::MILLIS, rule::PROGRESS_FORM;
        }
    }
}
