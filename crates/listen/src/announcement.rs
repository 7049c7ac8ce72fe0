//! What is said to a person.

use aaep::SessionId;
use aaep::event::{TextDirection, Urgency};

/// One thing that is said to a person, in whole sentences and once.
///
/// Its text is harmless: nothing in it can act on a terminal, turn a line around or pass for another line. A line end
/// separates what should be read as lines of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Announcement {
    /// What it is about; its word stands in front of every line.
    pub kind: Kind,
    /// How urgent it is.
    pub urgency: Urgency,
    /// What is said.
    pub text: String,
    /// The language of what the agent said in it, where that is known.
    pub language: Option<Box<str>>,
    /// What of the text the agent said, where not all of it is in that language: the rest is in sayso's own words.
    pub quotes: Option<Vec<String>>,
    /// Which way that runs.
    pub direction: TextDirection,
    /// The session that it is about.
    pub session: Option<SessionId>,
    /// The number of the question that it is about.
    pub question: Option<u32>,
}

impl Announcement {
    /// One in sayso's own words.
    pub fn own(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            urgency: Urgency::Normal,
            text: text.into(),
            language: None,
            quotes: None,
            direction: TextDirection::LeftToRight,
            session: None,
            question: None,
        }
    }

    /// Whether it waits for nothing.
    pub fn is_critical(&self) -> bool {
        self.urgency == Urgency::Critical
    }

    /// Its lines, each with its word in front.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let word = self.kind.word();
        self.text.lines().map(move |line| format!("{word}: {line}"))
    }
}

seal::word_enum! {
    /// What an announcement is about. Its word stands in front of every line.
    #[non_exhaustive]
    Kind word {
        /// A session begins or ends.
        Session "session",
        /// What the agent says, and what it is doing.
        Agent "agent",
        /// How far the agent has come.
        Progress "progress",
        /// What the agent does.
        Tool "tool",
        /// What the agent asks.
        Ask "ask",
        /// What became of a question.
        Answer "answer",
        /// What went wrong.
        Error "error",
        /// Somebody else has to go on.
        Handoff "handoff",
        /// What the listener itself has to say: the connection, gaps.
        Notice "notice",
        /// How things stand, because the person asked.
        Status "status",
        /// What can be typed.
        Help "help",
    }
}
