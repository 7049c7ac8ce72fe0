//! One message for a person.

use aaep::SessionId;
use aaep::event::{TextDirection, Urgency};

use crate::{AnnouncementText, Phrases};

/// One message for a person, in complete sentences.
///
/// Its text is sanitized: it cannot control a terminal, reverse a line or imitate another line's label. A newline in it
/// starts a new line for the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Announcement {
    /// What it is about. The name of the kind is the label in front of every line.
    pub kind: AnnouncementKind,
    /// How urgent it is.
    pub urgency: Urgency,
    /// The text.
    pub text: AnnouncementText,
    /// The language of the agent's parts of the text, if known. sayso's own parts are in the listener's language.
    pub language: Option<Box<str>>,
    /// The direction of the agent's text.
    pub direction: TextDirection,
    /// The session that it belongs to.
    pub session_id: Option<SessionId>,
    /// The id of the agent that speaks, if the announcement is about what an agent says or does.
    pub agent_id: Option<Box<str>>,
    /// The number of the question that it belongs to.
    pub question_number: Option<u32>,
    /// The URI of a result, a help page or the target of a hand-off. A person hears only its host.
    pub link: Option<Box<str>>,
    /// Whether it is about a step of the agent's work. Speech skips a step when the agent's text, a question or the end of the session
    /// follows it.
    pub is_step: bool,
}

impl Announcement {
    /// Creates an announcement with normal urgency. Text with no author set is attributed to sayso.
    pub fn new(kind: AnnouncementKind, text: impl Into<AnnouncementText>) -> Self {
        Self {
            kind,
            urgency: Urgency::Normal,
            text: text.into(),
            language: None,
            direction: TextDirection::LeftToRight,
            session_id: None,
            agent_id: None,
            question_number: None,
            link: None,
            is_step: false,
        }
    }

    /// Whether its urgency is critical.
    pub fn is_critical(&self) -> bool {
        self.urgency == Urgency::Critical
    }

    /// Returns its lines, each with the English label in front.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.lines_with(self.kind.as_str())
    }

    /// Returns its lines, each with the label in the language of the phrases in front.
    pub fn lines_in(&self, phrases: &Phrases) -> impl Iterator<Item = String> {
        self.lines_with(phrases.kind_label(self.kind))
    }

    fn lines_with(&self, label: &'static str) -> impl Iterator<Item = String> {
        self.text.lines().map(move |line| format!("{label}: {line}"))
    }

    /// Whether speech skips the waiting steps of the same session.
    pub(crate) fn supersedes_steps(&self) -> bool {
        let is_news = matches!(self.kind, AnnouncementKind::Agent | AnnouncementKind::Session);
        !self.is_step && (is_news || self.is_critical())
    }
}

seal::string_enum! {
    /// What an announcement is about. The name of the kind is the label in front of every line.
    #[non_exhaustive]
    AnnouncementKind {
        /// The start or end of a session.
        Session "session",
        /// The agent's output or its state.
        Agent "agent",
        /// The agent's progress.
        Progress "progress",
        /// A tool call by the agent, or its result.
        Tool "tool",
        /// A question from the agent.
        Ask "ask",
        /// The outcome of a question.
        Answer "answer",
        /// A failure.
        Error "error",
        /// The hand-off of the task to somebody else.
        Handoff "handoff",
        /// A message from the listener program itself, for example about the connection or a gap.
        Notice "notice",
        /// The current status, at the person's request.
        Status "status",
        /// The commands that can be typed.
        Help "help",
    }
}
