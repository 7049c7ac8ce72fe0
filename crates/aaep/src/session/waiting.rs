//! What a session is waiting for, so that a person can be told.

use std::fmt;

use seal::UnixMillis;

/// One thing that has to happen before a session can end well.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// For its start.
    Start,
    /// For a person's answer.
    Answer {
        /// The question's token.
        token: Box<str>,
        /// The action or the question, in words.
        about: Box<str>,
        /// When its time is over, in milliseconds since 1970, if that is known.
        deadline: Option<UnixMillis>,
    },
    /// For an event that shows how a question was resolved.
    FollowUp {
        /// The question's token.
        token: Box<str>,
    },
    /// For a tool to be completed.
    Tool {
        /// The tool.
        tool: Box<str>,
        /// The call.
        call: Option<Box<str>>,
    },
    /// For the rest of an output.
    Output {
        /// The output.
        id: Option<Box<str>>,
    },
    /// For its end.
    End,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => write!(f, "agent.session.started"),
            Self::Answer { about, .. } => write!(f, "an answer to {about:?}"),
            Self::FollowUp { token } => write!(f, "an event that shows how {token} was resolved"),
            Self::Tool { tool, call: Some(call) } => write!(f, "the completion of {tool} ({call})"),
            Self::Tool { tool, call: None } => write!(f, "the completion of {tool}"),
            Self::Output { id: Some(id) } => write!(f, "the rest of {id}"),
            Self::Output { id: None } => write!(f, "the rest of the output"),
            Self::End => write!(f, "its terminal event"),
        }
    }
}
