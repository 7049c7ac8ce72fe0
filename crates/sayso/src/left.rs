//! The last event of a session that its agent has let go.

use crate::member::{self, Document};
use crate::track::english;

/// How an agent let its session go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Left {
    /// It dropped it.
    Dropped,
    /// It panicked.
    Panicked,
    /// Its own last word was refused.
    Refused,
}

/// Of a yes that nothing came of, as far as was said.
const UNUSED: &str =
    "It had a yes and never said that it used it, so nothing is known to have been done with it.";

impl Left {
    /// The event; who has said yes is not to believe that it was done.
    pub(crate) fn event(self, unused_yes: bool) -> Document {
        let (code, says) = match self {
            Self::Dropped => {
                ("AGENT_LEFT", "The agent stopped in the middle of its work; its session was ended.")
            }
            Self::Panicked => ("AGENT_PANICKED", "The agent broke down; its session was ended."),
            Self::Refused => {
                ("LAST_WORD_REFUSED", "The agent ended its session in a way that breaks the rules.")
            }
        };
        let says = if unused_yes { format!("{says} {UNUSED}") } else { says.to_owned() };
        member::object(|out| {
            let members = [
                ("type", "aaep:agent.session.errored"),
                ("error_category", "unknown"),
                ("error_code", code),
                ("summary_normal", &says),
            ];
            member::all(out, &members);
            out.key("recoverable").boolean(false);
            english(out);
        })
    }
}
