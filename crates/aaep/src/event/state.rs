//! The reasoning-state family (§4.2): what the agent is doing, and how far it has come.

use super::State;
use crate::record::{Shape, record};
use crate::rule;

record! {
    /// `aaep:agent.state.changed` (§4.2.1): the agent went from one state to another.
    StateChanged {
        required {
            /// The state that it left.
            from_state: State, Shape::Text { min: 1, max: 64 }, rule::STATE_FORM, rule::STATE;
            /// The state that it is in now.
            to_state: State, Shape::Text { min: 1, max: 64 }, rule::STATE_FORM, rule::STATE;
        }
        optional with summaries {
            /// How long the new state should last.
            expected_duration_ms: u64, Shape::MILLIS, rule::STARTED_FORM;
        }
    }

    /// How far the work has come (§4.2.2): at least one of these.
    Progress {
        required {}
        optional {
            /// Per cent done.
            percent: f64, Shape::Number { min: 0.0, max: 100.0 }, rule::PERCENT;
            /// The step that is being done, counted from 1.
            step: u64, Shape::POSITIVE, rule::PROGRESS_FORM;
            /// How many steps there are.
            total_steps: u64, Shape::POSITIVE, rule::PROGRESS_FORM;
            /// The step in words.
            description: String, Shape::SHORT, rule::PROGRESS_FORM, spoken;
        }
    }

    /// `aaep:agent.progress.updated` (§4.2.2): a long task has moved on.
    ProgressUpdated {
        required {
            /// How far.
            progress: Progress,
                Shape::Record { fields: Progress::FIELDS, closed: Some(rule::PROGRESS_FORM), open_objects: None },
                rule::PROGRESS, rule::PROGRESS;
        }
        optional with summaries {
            /// How long it should still take.
            eta_ms: u64, Shape::MILLIS, rule::PROGRESS_FORM;
        }
    }
}
