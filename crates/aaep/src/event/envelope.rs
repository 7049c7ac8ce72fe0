//! The envelope, which every event has (§3).

use std::borrow::Cow;
use std::sync::Arc;

use crate::event::event_type::CORE_CONTEXT;
use crate::event::{EventType, TextDirection, Urgency, Verbosity};
use crate::grammar::{is_script, is_version};
use crate::id::{EventId, SessionId};
use crate::json::{JsonKind, JsonValue, JsonWriter, RawJson};
use crate::record::{Field, FieldType, FieldValue, decoded_members, record};
use crate::rule;
use seal::Timestamp;

record! {
    /// The producer of an event (§3.2.6).
    Producer {
        required {
            /// The agent's machine-readable name, which is the same across its versions.
            agent_id: String, FieldType::NON_EMPTY_TEXT, rule::AGENT_ID, rule::PRODUCER;
        }
        optional {
            /// The agent's version.
            agent_version: String, FieldType::NON_EMPTY_TEXT, rule::PRODUCER_TEXT;
            /// The agent's display name.
            agent_name: String, FieldType::NON_EMPTY_TEXT, rule::PRODUCER_TEXT;
            /// The AI model that the agent uses.
            model: String, FieldType::NON_EMPTY_TEXT, rule::PRODUCER_TEXT;
            /// The URI of the agent's manifest.
            manifest_uri: String, FieldType::Uri, rule::MANIFEST_URI;
        }
    }
}

pub(crate) const PRODUCER: FieldType = FieldType::Record {
    fields: Producer::FIELDS,
    unknown_member_rule: Some(rule::PRODUCER_MEMBERS),
    non_object_member_rule: None,
};

record! {
    /// The language of an event's text (§3.3.3, §11.1).
    LocalizationHints {
        required {}
        optional {
            /// The language of the text.
            primary_language: String, FieldType::LanguageTag, rule::LANGUAGE_TAG;
            /// The direction of the text; left to right if absent.
            text_direction: TextDirection, FieldType::Enum(TextDirection::VALUES), rule::TEXT_DIRECTION;
            /// Other available languages.
            available_languages: Vec<String>,
                FieldType::List { item: &FieldType::LanguageTag, min: 0, max: 32, unique: true, item_rule: None }, rule::HINTS_LISTS;
            /// Fallback languages in order of preference.
            fallback_chain: Vec<String>,
                FieldType::List { item: &FieldType::LanguageTag, min: 0, max: 16, unique: false, item_rule: None }, rule::HINTS_LISTS;
            /// The script (ISO 15924).
            script: String,
                FieldType::Grammar { matches: is_script, pattern: "^[A-Z][a-z]{3}$", description: "a script like Latn" }, rule::SCRIPT;
            /// The calendar for dates.
            calendar: String, FieldType::ANY_TEXT, rule::SCHEMA;
        }
    }
}

const LOCALIZATION_HINTS: FieldType = FieldType::Record {
    fields: LocalizationHints::FIELDS,
    unknown_member_rule: Some(rule::HINTS_MEMBERS),
    non_object_member_rule: None,
};

/// The vocabularies of an event: the core context and the contexts of its extensions (§3.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// Only the core context. Used if the event has no extension (C-A20).
    Core,
    /// A list as received or built. Its first item should be the core context.
    List(Vec<String>),
}

impl Context {
    /// Returns the core context plus the context URI of an extension.
    pub fn with_extension(uri: &str) -> Self {
        Self::List(vec![CORE_CONTEXT.to_owned(), uri.to_owned()])
    }
}

impl FieldValue for Context {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        match value.kind() {
            JsonKind::Text if value.text()? == CORE_CONTEXT => Some(Self::Core),
            // The core context comes first, so that a vocabulary cannot replace it (§3.2.1).
            JsonKind::Array if value.items().next()?.is_text(CORE_CONTEXT) => {
                Some(Self::List(FieldValue::read(value)?))
            }
            _ => None,
        }
    }

    fn write(&self, writer: &mut JsonWriter) {
        match self {
            Self::Core => writer.text(CORE_CONTEXT),
            Self::List(items) => items.write(writer),
        }
    }
}

impl FieldValue for EventType {
    fn read(value: JsonValue<'_>) -> Option<Self> {
        value.text().map(|text| Self::parse(&text))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(self.as_str());
    }
}

/// The members of an event that are not part of its envelope, with their names.
pub(crate) type PayloadMembers<'d> = Vec<(Cow<'d, str>, JsonValue<'d>)>;

/// The envelope of an event (§3.2 to §3.4). Events of one session share the parts that do not
/// change.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Envelope {
    /// The vocabularies that the event uses.
    pub context: Context,
    /// The version of AAEP.
    pub aaep_version: Option<Arc<str>>,
    /// The event's type.
    pub event_type: EventType,
    /// The event's id.
    pub event_id: EventId,
    /// The session of the event.
    pub session_id: SessionId,
    /// The event's position in the session, starting at 0, if events are numbered.
    pub sequence_number: Option<u64>,
    /// When the event was created.
    pub timestamp: Timestamp,
    /// The agent that created the event.
    pub producer: Arc<Producer>,
    /// The verbosity for which the event's text is written.
    pub verbosity: Option<Verbosity>,
    /// How urgent the event is.
    pub urgency: Option<Urgency>,
    /// The language of the event's text.
    pub localization_hints: Option<Arc<LocalizationHints>>,
    /// Links the event to external traces.
    pub correlation_id: Option<String>,
    /// Data of extensions, an object of objects.
    pub extensions: Option<RawJson>,
}

/// The envelope's fields in the recommended order of §3.6: name, field type, rule, and rule for a
/// missing value. The payload goes between `correlation_id` and `extensions`.
pub(crate) const FIELDS: &[Field] = &[
    field("@context", FieldType::Context, rule::CONTEXT_CORE, Some(rule::CONTEXT_PRESENT)),
    field(
        "aaep_version",
        FieldType::Grammar {
            matches: is_version,
            pattern: "^[0-9]+\\.[0-9]+\\.[0-9]+(-[A-Za-z0-9.-]+)?$",
            description: "a version like 1.0.0",
        },
        rule::VERSION_FORM,
        None,
    ),
    field("type", FieldType::NON_EMPTY_TEXT, rule::TYPE_PRESENT, Some(rule::TYPE_PRESENT)),
    field("event_id", EventId::FIELD_TYPE, rule::EVENT_ID, Some(rule::REQUIRED_MEMBERS)),
    field("session_id", SessionId::FIELD_TYPE, rule::SESSION_ID, Some(rule::REQUIRED_MEMBERS)),
    field("sequence_number", FieldType::COUNT, rule::SEQUENCE_NUMBER, None),
    field(
        "timestamp",
        FieldType::Timestamp { any_rfc3339: false },
        rule::TIME_FORM,
        Some(rule::REQUIRED_MEMBERS),
    ),
    field("producer", PRODUCER, rule::PRODUCER, Some(rule::REQUIRED_MEMBERS)),
    field("verbosity", FieldType::Enum(Verbosity::VALUES), rule::VERBOSITY, None),
    field("urgency", FieldType::Enum(Urgency::VALUES), rule::URGENCY, None),
    field("localization_hints", LOCALIZATION_HINTS, rule::HINTS_MEMBERS, None),
    field("correlation_id", FieldType::ANY_TEXT, rule::CORRELATION_ID, None),
    field("extensions", FieldType::Extensions, rule::EXTENSION_OBJECT, None),
];

const fn field(
    name: &'static str,
    field_type: FieldType,
    rule: rule::Rule,
    missing_rule: Option<rule::Rule>,
) -> Field {
    Field { name, value_type: field_type, rule, missing_rule, is_spoken: false }
}

impl Envelope {
    /// Creates an envelope from the required members, with AAEP version 1.0.0 (C-A11). The event
    /// type is a placeholder that [`Event::new`](crate::event::Event::new) replaces.
    pub fn new(
        event_id: EventId,
        session_id: SessionId,
        timestamp: Timestamp,
        producer: impl Into<Arc<Producer>>,
    ) -> Self {
        Self {
            context: Context::Core,
            aaep_version: Some("1.0.0".into()),
            event_type: EventType::StateChanged,
            event_id,
            session_id,
            sequence_number: None,
            timestamp,
            producer: producer.into(),
            verbosity: None,
            urgency: None,
            localization_hints: None,
            correlation_id: None,
            extensions: None,
        }
    }

    /// Reads the envelope of an event. Returns it with the remaining members, or `None` if a
    /// required member is missing or invalid.
    pub(crate) fn read(root: JsonValue<'_>) -> Option<(Self, PayloadMembers<'_>)> {
        let mut context = None;
        let mut event_type = None;
        let mut event_id = None;
        let mut session_id = None;
        let mut timestamp = None;
        let mut producer = None;
        let mut aaep_version = None;
        let mut sequence_number = None;
        let mut verbosity = None;
        let mut urgency = None;
        let mut localization_hints = None;
        let mut correlation_id = None;
        let mut extensions = None;
        let mut rest = Vec::new();
        for (name, value) in decoded_members(root) {
            let was_read = match &*name {
                "@context" => read_into(&mut context, value),
                "aaep_version" => read_into(&mut aaep_version, value),
                "type" => read_into(&mut event_type, value),
                "event_id" => read_into(&mut event_id, value),
                "session_id" => read_into(&mut session_id, value),
                "sequence_number" => read_into(&mut sequence_number, value),
                "timestamp" => read_into(&mut timestamp, value),
                "producer" => read_into(&mut producer, value),
                "verbosity" => read_into(&mut verbosity, value),
                "urgency" => read_into(&mut urgency, value),
                "localization_hints" => read_into(&mut localization_hints, value),
                "correlation_id" => read_into(&mut correlation_id, value),
                "extensions" => read_into(&mut extensions, value),
                _ => false,
            };
            if !was_read {
                rest.push((name, value));
            }
        }
        let envelope = Self {
            context: context?,
            aaep_version,
            event_type: event_type?,
            event_id: event_id?,
            session_id: session_id?,
            sequence_number,
            timestamp: timestamp?,
            producer: producer?,
            verbosity,
            urgency,
            localization_hints,
            correlation_id,
            extensions,
        };
        Some((envelope, rest))
    }

    /// Writes the members before the payload.
    pub(crate) fn write_head(&self, writer: &mut JsonWriter) {
        self.context.write_member("@context", writer);
        write_optional(self.aaep_version.as_ref(), "aaep_version", writer);
        self.event_type.write_member("type", writer);
        self.event_id.write_member("event_id", writer);
        self.session_id.write_member("session_id", writer);
        write_optional(self.sequence_number.as_ref(), "sequence_number", writer);
        self.timestamp.write_member("timestamp", writer);
        self.producer.write_member("producer", writer);
        write_optional(self.verbosity.as_ref(), "verbosity", writer);
        write_optional(self.urgency.as_ref(), "urgency", writer);
        write_optional(self.localization_hints.as_ref(), "localization_hints", writer);
        write_optional(self.correlation_id.as_ref(), "correlation_id", writer);
    }

    /// Writes the members after the payload.
    pub(crate) fn write_tail(&self, writer: &mut JsonWriter) {
        write_optional(self.extensions.as_ref(), "extensions", writer);
    }
}

fn read_into<T: FieldValue>(slot: &mut Option<T>, value: JsonValue<'_>) -> bool {
    let read = T::read(value);
    let was_read = read.is_some();
    if was_read {
        *slot = read;
    }
    was_read
}

fn write_optional<T: FieldValue>(value: Option<&T>, name: &str, writer: &mut JsonWriter) {
    if let Some(value) = value {
        value.write_member(name, writer);
    }
}
