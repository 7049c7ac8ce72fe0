//! The type of an event (§3.2.2).

use std::borrow::Cow;
use std::fmt;

/// The core context, first and often only item of `@context` (§3.2.1).
pub const CORE_CONTEXT: &str = "https://aaep-protocol.org/context/v1";

/// What `aaep:` stands for (§2.2.7).
const TYPES: &str = "https://aaep-protocol.org/types/";
/// What the published context file expands it to; accepted on receipt (C-A4).
const VOCABULARY: &str = "https://aaep-protocol.org/vocab/v1#";

macro_rules! event_types {
    ($($name:ident = $local:literal,)*) => {
        /// The type of an event: one of the twelve, or another's.
        ///
        /// The compact and the full-URI form of a core type are the same type (§3.2.2, C-A3):
        ///
        /// ```
        /// use aaep::event::EventType;
        /// assert_eq!(EventType::of("aaep:agent.tool.invoked"), EventType::ToolInvoked);
        /// assert_eq!(EventType::of("https://aaep-protocol.org/types/agent.tool.invoked"), EventType::ToolInvoked);
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EventType {
            $(#[doc = concat!("`aaep:", $local, "`")] $name,)*
            /// A type of an extension, or one that this version does not know.
            Other(Box<str>),
        }

        impl EventType {
            /// The twelve core types.
            pub const CORE: &'static [EventType] = &[$(EventType::$name),*];

            /// Reads a type in either form.
            pub fn of(text: &str) -> Self {
                Self::core(text).unwrap_or_else(|| Self::Other(text.into()))
            }

            /// Reads a core type in either form.
            pub(crate) fn core(text: &str) -> Option<Self> {
                let local = text
                    .strip_prefix("aaep:")
                    .or_else(|| text.strip_prefix(TYPES))
                    .or_else(|| text.strip_prefix(VOCABULARY))?;
                match local {
                    $($local => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The compact form.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => concat!("aaep:", $local),)*
                    Self::Other(text) => text,
                }
            }
        }
    };
}

event_types! {
    SessionStarted = "agent.session.started",
    SessionCompleted = "agent.session.completed",
    SessionErrored = "agent.session.errored",
    SessionCancelled = "agent.session.cancelled",
    StateChanged = "agent.state.changed",
    ProgressUpdated = "agent.progress.updated",
    ToolInvoked = "agent.tool.invoked",
    ToolCompleted = "agent.tool.completed",
    OutputStreaming = "agent.output.streaming",
    AwaitingConfirmation = "agent.awaiting.confirmation",
    AwaitingClarification = "agent.awaiting.clarification",
    HandoffRequested = "agent.handoff.requested",
}

impl EventType {
    /// The types that are critical whatever their urgency says (§4.1.3, §4.4, C-A8).
    pub fn is_critical(&self) -> bool {
        matches!(
            self,
            Self::SessionErrored
                | Self::AwaitingConfirmation
                | Self::AwaitingClarification
                | Self::HandoffRequested
        )
    }

    /// The types that end a session (§4.1).
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::SessionCompleted | Self::SessionErrored | Self::SessionCancelled)
    }

    /// Whether `text` lies in the namespace that only AAEP itself may fill (§3.2.2).
    pub(crate) fn is_reserved(text: &str) -> bool {
        text.starts_with("aaep:") || text.starts_with(TYPES) || text.starts_with(VOCABULARY)
    }

    /// The compact form of a core type, or of a pattern of some; any other text as it is (C-A3).
    pub(crate) fn compact(text: &str) -> Cow<'_, str> {
        match text.strip_prefix(TYPES).or_else(|| text.strip_prefix(VOCABULARY)) {
            Some(local) => Cow::Owned(format!("aaep:{local}")),
            None => Cow::Borrowed(text),
        }
    }

    /// Whether the full form of every core type begins so.
    pub(crate) fn all_begin_with(beginning: &str) -> bool {
        TYPES.starts_with(beginning)
    }

    /// Whether the vocabulary form of C-A4 was used, which is for receiving only.
    pub(crate) fn is_vocabulary_form(text: &str) -> bool {
        text.starts_with(VOCABULARY)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
