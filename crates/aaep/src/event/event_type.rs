//! The type of an event (§3.2.2).

use std::borrow::Cow;
use std::fmt;

/// The core context, which is the first and often the only item of `@context` (§3.2.1).
pub const CORE_CONTEXT: &str = "https://aaep-protocol.org/context/v1";

/// The expansion of `aaep:` (§2.2.7).
const TYPE_URI_PREFIX: &str = "https://aaep-protocol.org/types/";

/// Returns whether a URI is in the namespace of AAEP, which extensions must not use (§7.2).
pub(crate) fn is_in_core_namespace(uri: &str) -> bool {
    uri.starts_with("aaep:") || uri.starts_with(TYPE_URI_PREFIX)
}
/// The expansion of `aaep:` in the published context file; accepted on receipt (C-A4).
const VOCABULARY_URI_PREFIX: &str = "https://aaep-protocol.org/vocab/v1#";

macro_rules! event_types {
    ($($name:ident = $local:literal,)*) => {
        /// The type of an event: one of the twelve core types, or any other type.
        ///
        /// The compact and the full-URI form of a core type are the same type (§3.2.2, C-A3):
        ///
        /// ```
        /// use aaep::event::EventType;
        /// assert_eq!(EventType::parse("aaep:agent.tool.invoked"), EventType::ToolInvoked);
        /// assert_eq!(EventType::parse("https://aaep-protocol.org/types/agent.tool.invoked"), EventType::ToolInvoked);
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EventType {
            $(#[doc = concat!("`aaep:", $local, "`")] $name,)*
            /// A type of an extension, or a type that this version does not know.
            Other(Box<str>),
        }

        impl EventType {
            /// The twelve core types.
            pub const CORE: &'static [EventType] = &[$(EventType::$name),*];

            /// Parses a type in compact or full-URI form.
            pub fn parse(text: &str) -> Self {
                Self::parse_core(text).unwrap_or_else(|| Self::Other(text.into()))
            }

            /// Parses a core type in compact or full-URI form.
            pub(crate) fn parse_core(text: &str) -> Option<Self> {
                let local = text
                    .strip_prefix("aaep:")
                    .or_else(|| text.strip_prefix(TYPE_URI_PREFIX))
                    .or_else(|| text.strip_prefix(VOCABULARY_URI_PREFIX))?;
                match local {
                    $($local => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns the compact form.
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
    /// Returns whether events of this type are critical regardless of their urgency (§4.1.3, §4.4,
    /// C-A8).
    pub fn is_critical(&self) -> bool {
        matches!(
            self,
            Self::SessionErrored
                | Self::AwaitingConfirmation
                | Self::AwaitingClarification
                | Self::HandoffRequested
        )
    }

    /// Returns whether events of this type end a session (§4.1).
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::SessionCompleted | Self::SessionErrored | Self::SessionCancelled)
    }

    /// Returns whether `text` is in the namespace that is reserved for AAEP (§3.2.2).
    pub(crate) fn is_reserved(text: &str) -> bool {
        text.starts_with("aaep:")
            || text.starts_with(TYPE_URI_PREFIX)
            || text.starts_with(VOCABULARY_URI_PREFIX)
    }

    /// Returns the compact form of a core type or of a pattern for core types, and any other text
    /// unchanged (C-A3).
    pub(crate) fn compact(text: &str) -> Cow<'_, str> {
        match text.strip_prefix(TYPE_URI_PREFIX).or_else(|| text.strip_prefix(VOCABULARY_URI_PREFIX)) {
            Some(local) => Cow::Owned(format!("aaep:{local}")),
            None => Cow::Borrowed(text),
        }
    }

    /// Returns whether the full form of every core type starts with this prefix.
    pub(crate) fn all_start_with(prefix: &str) -> bool {
        TYPE_URI_PREFIX.starts_with(prefix)
    }

    /// Returns whether `text` uses the vocabulary form of C-A4, which is accepted only on receipt.
    pub(crate) fn is_vocabulary_form(text: &str) -> bool {
        text.starts_with(VOCABULARY_URI_PREFIX)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
