//! Events: the envelope (§3) and the twelve core payloads (§4).
//!
//! [`Event::parse`] is tolerant: it keeps unknown members, so writing the event again loses
//! nothing. Use [`check`](crate::check) to validate an event.

mod enums;
mod envelope;
mod event_type;
mod human_in_the_loop;
mod lifecycle;
mod state;
mod state_definition;
mod tool;

pub use enums::*;
pub use envelope::{Context, Envelope, LocalizationHints, Producer};
pub(crate) use envelope::{FIELDS as ENVELOPE, PRODUCER};
pub(crate) use event_type::is_in_core_namespace;
pub use event_type::{CORE_CONTEXT, EventType};
pub use human_in_the_loop::{AwaitingClarification, AwaitingConfirmation, Choice, HandoffRequested};
pub use lifecycle::{SessionCancelled, SessionCompleted, SessionErrored, SessionStarted};
pub use state::{Progress, ProgressUpdated, StateChanged};
pub use state_definition::{InvalidStates, StateDefinition};
pub use tool::{OutputStreaming, ToolCompleted, ToolInvoked};

use crate::json::{Doc, JsonKind, JsonWriter, Tape, write_object};
use crate::record::{Field, Members};

/// One event: its envelope (producer, time, session) and its payload.
///
/// ```
/// use aaep::event::{Event, Payload};
/// let text = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.tool.invoked",
///   "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z",
///   "producer":{"agent_id":"bank"},"tool":"fetch_balance","summary_normal":"Looking up the balance.",
///   "from_the_future":[1,2]}"#;
/// let event = Event::parse(text).unwrap();
/// let Payload::ToolInvoked(call) = &event.payload else { panic!() };
/// assert_eq!(call.tool.as_str(), "fetch_balance");
/// assert!(event.to_json().contains(r#""from_the_future":[1,2]"#));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The members that every event has.
    pub envelope: Envelope,
    /// The members that the event's type defines.
    pub payload: Payload,
}

impl Event {
    /// Creates an event. The envelope's type is set to the payload's type.
    pub fn new(mut envelope: Envelope, payload: Payload) -> Self {
        if let Some(event_type) = payload.core_type() {
            envelope.event_type = event_type;
        }
        Self { envelope, payload }
    }

    /// Parses an event tolerantly. Returns `None` if the text is not a JSON object, or if a required
    /// member of the envelope is missing or invalid.
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(&Tape::default().read(text).ok()?)
    }

    /// Like [`parse`](Self::parse), for a parsed document.
    pub fn read(doc: &Doc<'_>) -> Option<Self> {
        let root = doc.root();
        if root.kind() != JsonKind::Object {
            return None;
        }
        let (envelope, rest) = Envelope::read(root)?;
        let payload = Payload::read(&envelope.event_type, rest);
        Some(Self { envelope, payload })
    }

    /// Writes the event as compact JSON with its members in the recommended order (§3.6).
    pub fn to_json(&self) -> String {
        write_object(|writer| {
            self.envelope.write_head(writer);
            self.payload.write(writer);
            self.envelope.write_tail(writer);
        })
    }
}

impl Payload {
    /// Returns the summary for a verbosity, or the closest available summary.
    pub fn summary(&self, verbosity: &Verbosity) -> Option<&str> {
        let [terse, normal, detailed] = self.summaries();
        match verbosity {
            Verbosity::Terse => terse.or(normal).or(detailed),
            Verbosity::Detailed => detailed.or(normal).or(terse),
            _ => normal.or(terse).or(detailed),
        }
    }
}

impl AsRef<Event> for Event {
    fn as_ref(&self) -> &Event {
        self
    }
}

macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The payload of an event, by type.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Payload {
            $($(#[$doc])* $name($name),)*
            /// An event of an extension or of an unknown type: its members as received.
            Extension(Members),
            /// A core event whose required members are missing or invalid: its members as received.
            /// If the event is critical, it is announced anyway.
            Malformed(Members),
        }

        impl Payload {
            fn core_type(&self) -> Option<EventType> {
                match self {
                    $(Self::$name(_) => Some(EventType::$name),)*
                    Self::Extension(_) | Self::Malformed(_) => None,
                }
            }

            fn read(event_type: &EventType, members: envelope::PayloadMembers<'_>) -> Self {
                match event_type {
                    $(EventType::$name => match $name::read_members(members.iter().cloned()) {
                        Some(read) => Self::$name(read),
                        None => Self::Malformed(Members::collect_from(members.into_iter())),
                    },)*
                    EventType::Other(_) => Self::Extension(Members::collect_from(members.into_iter())),
                }
            }

            fn write(&self, writer: &mut JsonWriter) {
                match self {
                    $(Self::$name(payload) => payload.write_members(writer),)*
                    Self::Extension(members) | Self::Malformed(members) => members.write(writer),
                }
            }
        }

        impl Payload {
            /// Returns the terse, normal and detailed summaries (§3.3.1).
            pub fn summaries(&self) -> [Option<&str>; 3] {
                match self {
                    $(Self::$name(payload) => payload.summaries(),)*
                    Self::Extension(_) | Self::Malformed(_) => [None; 3],
                }
            }

            /// Returns the members that were not read into fields, as received.
            pub(crate) fn unknown_members(&self) -> &Members {
                match self {
                    $(Self::$name(payload) => &payload.other,)*
                    Self::Extension(members) | Self::Malformed(members) => members,
                }
            }
        }

        impl EventType {
            /// Returns the fields of this type's payload; empty for a type that is not a core type.
            pub(crate) fn fields(&self) -> &'static [Field] {
                match self {
                    $(Self::$name => $name::FIELDS,)*
                    Self::Other(_) => &[],
                }
            }
        }
    };
}

payloads! {
    /// §4.1.1
    SessionStarted,
    /// §4.1.2
    SessionCompleted,
    /// §4.1.3
    SessionErrored,
    /// §4.1.4
    SessionCancelled,
    /// §4.2.1
    StateChanged,
    /// §4.2.2
    ProgressUpdated,
    /// §4.3.1
    ToolInvoked,
    /// §4.3.2
    ToolCompleted,
    /// §4.3.3
    OutputStreaming,
    /// §4.4.1
    AwaitingConfirmation,
    /// §4.4.2
    AwaitingClarification,
    /// §4.4.3
    HandoffRequested,
}
