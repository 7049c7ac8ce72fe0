//! The envelope: what every event carries, whatever it says (§3).

use std::borrow::Cow;
use std::sync::Arc;

use crate::event::kind::CORE_CONTEXT;
use crate::event::{EventType, TextDirection, Urgency, Verbosity};
use crate::form::{is_script, is_version};
use crate::id::{EventId, SessionId};
use crate::json::{Kind, Raw, Value, Writer};
use crate::record::{Field, Part, Shape, members_of, record};
use crate::rule;
use seal::Timestamp;

record! {
    /// Who emits an event (§3.2.6).
    Producer {
        required {
            /// The agent's name for machines, the same across its versions.
            agent_id: String, Shape::SOME, rule::AGENT_ID, rule::PRODUCER;
        }
        optional {
            /// The agent's version.
            agent_version: String, Shape::SOME, rule::PRODUCER_TEXT;
            /// The agent's name for people.
            agent_name: String, Shape::SOME, rule::PRODUCER_TEXT;
            /// The model behind it.
            model: String, Shape::SOME, rule::PRODUCER_TEXT;
            /// Where its manifest is.
            manifest_uri: String, Shape::Uri, rule::MANIFEST_URI;
        }
    }
}

pub(crate) const PRODUCER: Shape =
    Shape::Record { fields: Producer::FIELDS, closed: Some(rule::PRODUCER_CLOSED), open_objects: None };

record! {
    /// What language an event's text is in (§3.3.3, §11.1).
    LocalizationHints {
        required {}
        optional {
            /// The language of the text.
            primary_language: String, Shape::Tag, rule::TAG;
            /// Which way it runs; left to right if not said.
            text_direction: TextDirection, Shape::Word(TextDirection::WORDS), rule::DIRECTION;
            /// Other languages that could be had.
            available_languages: Vec<String>,
                Shape::List { of: &Shape::Tag, min: 0, max: 32, unique: true, items: None }, rule::HINTS_LISTS;
            /// Languages to try, in this order.
            fallback_chain: Vec<String>,
                Shape::List { of: &Shape::Tag, min: 0, max: 16, unique: false, items: None }, rule::HINTS_LISTS;
            /// The script (ISO 15924).
            script: String,
                Shape::Form { is: is_script, pattern: "^[A-Z][a-z]{3}$", called: "a script like Latn" }, rule::SCRIPT;
            /// The calendar for dates.
            calendar: String, Shape::ANY, rule::SCHEMA;
        }
    }
}

const HINTS: Shape =
    Shape::Record { fields: LocalizationHints::FIELDS, closed: Some(rule::HINTS_CLOSED), open_objects: None };

/// The vocabularies that an event uses: always the core, and those of its extensions (§3.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// The core alone: what is emitted where there is no extension (C-A20).
    Core,
    /// A list as received or built; the core context should be its first.
    List(Vec<String>),
}

impl Context {
    /// The core, and the context URI of an extension.
    pub fn with_extension(uri: &str) -> Self {
        Self::List(vec![CORE_CONTEXT.to_owned(), uri.to_owned()])
    }
}

impl Part for Context {
    fn read(value: Value<'_>) -> Option<Self> {
        match value.kind() {
            Kind::Text if value.text()? == CORE_CONTEXT => Some(Self::Core),
            Kind::Array => Some(Self::List(Part::read(value)?)),
            _ => None,
        }
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Core => writer.text(CORE_CONTEXT),
            Self::List(items) => items.write(writer),
        }
    }
}

impl Part for EventType {
    fn read(value: Value<'_>) -> Option<Self> {
        value.text().map(|text| Self::of(&text))
    }

    fn write(&self, writer: &mut Writer) {
        writer.text(self.as_str());
    }
}

/// The members of an event that are not its envelope's, with their names.
pub(crate) type Rest<'d> = Vec<(Cow<'d, str>, Value<'d>)>;

/// What every event carries (§3.2 to §3.4). What is the same in all events of a session is shared by those that are made of
/// them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Envelope {
    /// The vocabularies in use.
    pub context: Context,
    /// The version of AAEP.
    pub aaep_version: Option<Arc<str>>,
    /// The event's type.
    pub event_type: EventType,
    /// The event's id.
    pub event_id: EventId,
    /// Its session.
    pub session_id: SessionId,
    /// Its place in the session, from 0 on, where events are numbered.
    pub sequence_number: Option<u64>,
    /// When it was made.
    pub timestamp: Timestamp,
    /// Who made it.
    pub producer: Arc<Producer>,
    /// For which verbosity its text is written.
    pub verbosity: Option<Verbosity>,
    /// How urgent it is.
    pub urgency: Option<Urgency>,
    /// The language of its text.
    pub localization_hints: Option<Arc<LocalizationHints>>,
    /// Ties it to traces elsewhere.
    pub correlation_id: Option<String>,
    /// Data of extensions, an object of objects.
    pub extensions: Option<Raw>,
}

/// `(member's name, field of Envelope, its shape, its rule, rule of its absence)`, in the advised order of §3.6; the
/// payload stands between `correlation_id` and `extensions`.
pub(crate) const FIELDS: &[Field] = &[
    field("@context", Shape::Context, rule::CONTEXT_CORE, Some(rule::CONTEXT_PRESENT)),
    field(
        "aaep_version",
        Shape::Form {
            is: is_version,
            pattern: "^[0-9]+\\.[0-9]+\\.[0-9]+(-[A-Za-z0-9.-]+)?$",
            called: "a version like 1.0.0",
        },
        rule::VERSION_FORM,
        None,
    ),
    field("type", Shape::SOME, rule::TYPE_PRESENT, Some(rule::TYPE_PRESENT)),
    field("event_id", EventId::SHAPE, rule::EVENT_ID, Some(rule::REQUIRED)),
    field("session_id", SessionId::SHAPE, rule::SESSION_ID, Some(rule::REQUIRED)),
    field("sequence_number", Shape::COUNT, rule::SEQUENCE_NUMBER, None),
    field("timestamp", Shape::Time { any: false }, rule::TIME_FORM, Some(rule::REQUIRED)),
    field("producer", PRODUCER, rule::PRODUCER, Some(rule::REQUIRED)),
    field("verbosity", Shape::Word(Verbosity::WORDS), rule::VERBOSITY, None),
    field("urgency", Shape::Word(Urgency::WORDS), rule::URGENCY, None),
    field("localization_hints", HINTS, rule::HINTS_CLOSED, None),
    field("correlation_id", Shape::ANY, rule::CORRELATION, None),
    field("extensions", Shape::Extensions, rule::EXTENSION_OBJECT, None),
];

const fn field(name: &'static str, shape: Shape, rule: rule::Rule, missing: Option<rule::Rule>) -> Field {
    Field { name, shape, rule, missing, spoken: false }
}

impl Envelope {
    /// Makes one of what is required; it says that AAEP 1.0.0 is spoken (C-A11).
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

    /// Reads the envelope's members off an event, and returns the others; nothing if a required one is missing.
    pub(crate) fn read(root: Value<'_>) -> Option<(Self, Rest<'_>)> {
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
        for (name, value) in members_of(root) {
            let held = match &*name {
                "@context" => hold(&mut context, value),
                "aaep_version" => hold(&mut aaep_version, value),
                "type" => hold(&mut event_type, value),
                "event_id" => hold(&mut event_id, value),
                "session_id" => hold(&mut session_id, value),
                "sequence_number" => hold(&mut sequence_number, value),
                "timestamp" => hold(&mut timestamp, value),
                "producer" => hold(&mut producer, value),
                "verbosity" => hold(&mut verbosity, value),
                "urgency" => hold(&mut urgency, value),
                "localization_hints" => hold(&mut localization_hints, value),
                "correlation_id" => hold(&mut correlation_id, value),
                "extensions" => hold(&mut extensions, value),
                _ => false,
            };
            if !held {
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

    /// Writes what stands before the payload.
    pub(crate) fn write_head(&self, writer: &mut Writer) {
        self.context.write_member("@context", writer);
        write_some(self.aaep_version.as_ref(), "aaep_version", writer);
        self.event_type.write_member("type", writer);
        self.event_id.write_member("event_id", writer);
        self.session_id.write_member("session_id", writer);
        write_some(self.sequence_number.as_ref(), "sequence_number", writer);
        self.timestamp.write_member("timestamp", writer);
        self.producer.write_member("producer", writer);
        write_some(self.verbosity.as_ref(), "verbosity", writer);
        write_some(self.urgency.as_ref(), "urgency", writer);
        write_some(self.localization_hints.as_ref(), "localization_hints", writer);
        write_some(self.correlation_id.as_ref(), "correlation_id", writer);
    }

    /// Writes what stands after it.
    pub(crate) fn write_tail(&self, writer: &mut Writer) {
        write_some(self.extensions.as_ref(), "extensions", writer);
    }
}

fn hold<T: Part>(slot: &mut Option<T>, value: Value<'_>) -> bool {
    let read = T::read(value);
    let held = read.is_some();
    if held {
        *slot = read;
    }
    held
}

fn write_some<T: Part>(value: Option<&T>, name: &str, writer: &mut Writer) {
    if let Some(value) = value {
        value.write_member(name, writer);
    }
}
