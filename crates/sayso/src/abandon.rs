//! The final event of a session that its agent abandoned.

use crate::member::{self, Document};
use crate::session_state::write_english_hint;

/// Why the dispatcher ends a session on behalf of its agent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AbandonReason {
    /// The agent dropped the session.
    Dropped,
    /// The agent panicked.
    Panicked,
    /// The hub rejected the agent's final event.
    FinalEventRejected,
}

/// Appended to the summary if consent was given but never used.
const UNUSED_CONSENT_NOTE: &str =
    "An action was approved, but the agent never reported doing it, so it is not known whether it was done.";

impl AbandonReason {
    /// Builds the final event. If consent was given but not used, the summary says so.
    pub(crate) fn to_event(self, has_unused_consent: bool) -> Document {
        let (code, summary) = match self {
            Self::Dropped => {
                ("AGENT_LEFT", "The agent stopped in the middle of its work, so its session was ended.")
            }
            Self::Panicked => ("AGENT_PANICKED", "The agent crashed, so its session was ended."),
            Self::FinalEventRejected => {
                ("FINAL_EVENT_REJECTED", "The agent ended its session in a way that violates the rules.")
            }
        };
        let summary =
            if has_unused_consent { format!("{summary} {UNUSED_CONSENT_NOTE}") } else { summary.to_owned() };
        member::object(|out| {
            let members = [
                ("type", "aaep:agent.session.errored"),
                ("error_category", "unknown"),
                ("error_code", code),
                ("summary_normal", &summary),
            ];
            member::text_members(out, &members);
            out.key("recoverable").boolean(false);
            write_english_hint(out);
        })
    }
}
