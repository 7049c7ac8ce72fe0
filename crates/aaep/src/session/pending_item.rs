//! The items that a session waits for, in a form that can be shown to a person.

use std::fmt;

use seal::UnixMillis;

/// Something that a session still waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PendingItem {
    /// The start of the session.
    Start,
    /// A person's answer.
    Answer {
        /// The question's token.
        token: Box<str>,
        /// The text of the action or the question.
        text: Box<str>,
        /// The deadline, if it is known.
        deadline: Option<UnixMillis>,
    },
    /// An event that shows how a question was resolved.
    ResolutionNotice {
        /// The question's token.
        token: Box<str>,
    },
    /// The completion of a tool call.
    Tool {
        /// The tool's name.
        tool: Box<str>,
        /// The call id.
        call_id: Option<Box<str>>,
    },
    /// The rest of an output.
    Output {
        /// The output id.
        output_id: Option<Box<str>>,
    },
    /// The end of the session.
    End,
}

impl fmt::Display for PendingItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => write!(f, "agent.session.started"),
            Self::Answer { text, .. } => write!(f, "an answer to {text:?}"),
            Self::ResolutionNotice { token } => write!(f, "an event that shows how {token} was resolved"),
            Self::Tool { tool, call_id: Some(call) } => write!(f, "the completion of {tool} ({call})"),
            Self::Tool { tool, call_id: None } => write!(f, "the completion of {tool}"),
            Self::Output { output_id: Some(id) } => write!(f, "the rest of {id}"),
            Self::Output { output_id: None } => write!(f, "the rest of the output"),
            Self::End => write!(f, "its terminal event"),
        }
    }
}
