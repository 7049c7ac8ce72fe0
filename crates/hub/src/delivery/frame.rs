//! Frames: events and messages on their way to listeners.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use aaep::event::{AgentState, Event, Payload};
use aaep::json::JsonWriter;
use serde::{Deserialize, Serialize};

/// One event or message on its way to listeners, which share it.
#[derive(Debug)]
pub struct Frame {
    kind: FrameKind,
    /// The id, followed by the JSON.
    text: Box<str>,
    id_bytes: usize,
    /// The event's position in the hub's log.
    pub position: u64,
    /// Whether the frame is critical. A critical frame overtakes other frames.
    pub is_critical: bool,
    /// A hash of the session id; 0 if the frame has no session.
    pub(super) session_hash: u64,
    /// How the frame is ordered within its session.
    pub(super) ordering: OrderingClass,
    /// Why the connection ends with this frame, if it does.
    close_reason: Option<CloseReason>,
    /// Whether the frame says that events are missing.
    is_gap: bool,
    /// The frame whose JSON this one shares, if this one has another id.
    body: Option<Arc<Frame>>,
    /// The parsed event, created on first use.
    parsed_event: OnceLock<Option<Arc<Event>>>,
    /// The same frame without an id, created on first use.
    without_id: OnceLock<Arc<Frame>>,
    /// The bytes that a transport sends, created on first use.
    encoded: OnceLock<Box<[u8]>>,
}

/// A frame on its way to another node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FrameForm {
    kind: FrameKind,
    #[serde(default)]
    id: Box<str>,
    #[serde(default)]
    json: Box<str>,
    #[serde(default)]
    position: u64,
    #[serde(default)]
    is_critical: bool,
    #[serde(default)]
    session_hash: u64,
    ordering: OrderingClass,
    #[serde(default)]
    close_reason: Option<CloseReason>,
    #[serde(default)]
    is_gap: bool,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameKind {
    /// An event.
    Event,
    /// A message that is not an event, such as a `subscription.close`; it has no id.
    Message,
    /// A frame that consists only of an id, from which a client can resume.
    ResumePosition,
    /// An empty frame that keeps the connection open.
    Heartbeat,
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.id() == other.id()
            && self.json() == other.json()
            && self.position == other.position
    }
}

impl Eq for Frame {}

/// Why the hub closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CloseReason {
    /// The listener reads too slowly, and too many frames are waiting for it.
    SlowConsumer,
    /// The hub is shutting down. The subscription and its questions stay open.
    ProducerShutdown,
    /// Another connection now uses the subscription.
    Replaced,
    /// The token of the connection is no longer valid.
    TokenRemoved,
}

impl CloseReason {
    /// Returns the reason code for a `subscription.close`.
    pub fn code(self) -> &'static str {
        match self {
            Self::SlowConsumer => "slow_consumer",
            Self::ProducerShutdown => "producer_shutdown",
            Self::Replaced => "replaced",
            Self::TokenRemoved => "token_removed",
        }
    }

    /// Returns the reason message for a `subscription.close`.
    pub fn message(self) -> &'static str {
        match self {
            Self::SlowConsumer => "The client reads too slowly, and too many events are waiting for it.",
            Self::ProducerShutdown => "The hub is shutting down. Open questions stay open; reconnect later.",
            Self::Replaced => "Another connection now uses this subscription.",
            Self::TokenRemoved => "The token is no longer valid.",
        }
    }
}

/// How an event is ordered within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderingClass {
    /// Output or progress: a question may overtake it.
    Text,
    /// A question, or the state change that precedes it. If it overtakes, it pulls along all earlier frames of its
    /// session except `Text`.
    Question,
    /// Any other event. If it is critical, it pulls along all earlier frames of its session.
    Other,
    /// Like `Other`, but it is the last event of its session.
    Terminal,
}

impl OrderingClass {
    /// Returns the ordering class of an event.
    pub fn of(event: &Event) -> Self {
        match &event.payload {
            Payload::OutputStreaming(_) | Payload::ProgressUpdated(_) => Self::Text,
            Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_) => Self::Question,
            Payload::StateChanged(change) if change.to_state == AgentState::AwaitingInput => Self::Question,
            _ if event.envelope.event_type.is_terminal() => Self::Terminal,
            _ => Self::Other,
        }
    }
}

/// Approximate number of bytes that SSE framing adds to an event.
const FRAMING_BYTES: usize = 31;

impl Frame {
    /// Creates an event frame. The JSON must be on one line.
    pub fn event(id: &str, json: &str, position: u64, is_critical: bool) -> Self {
        Self { position, is_critical, ..Self::new(FrameKind::Event, id, json) }
    }

    /// Creates a message that is not an event. It has no id, so that no client resumes from it.
    pub fn message(json: &str) -> Self {
        Self { is_critical: true, ..Self::new(FrameKind::Message, "", json) }
    }

    /// Creates the last frame of a connection, a `subscription.close`.
    pub fn close(subscription: &str, reason: CloseReason) -> Self {
        let mut writer = JsonWriter::default();
        writer.open_object();
        for (name, text) in [
            ("type", "subscription.close"),
            ("subscription_id", subscription),
            ("reason_code", reason.code()),
            ("reason_message", reason.message()),
        ] {
            writer.key(name);
            writer.text(text);
        }
        writer.close_object();
        Self { close_reason: Some(reason), ..Self::message(&writer.finish()) }
    }

    /// Creates the message which says that events are missing.
    pub fn gap(json: &str) -> Self {
        Self { is_gap: true, ..Self::message(json) }
    }

    /// Returns the same event with another id, for one listener. Both share the event and its encoding.
    #[must_use]
    pub fn with_own_id(self: &Arc<Self>, id: &str) -> Self {
        let body = (self.kind == FrameKind::Event).then(|| self.without_id());
        Self {
            position: self.position,
            is_critical: self.is_critical,
            session_hash: self.session_hash,
            ordering: self.ordering,
            body,
            ..Self::new(self.kind, id, "")
        }
    }

    /// Creates a heartbeat, which keeps a connection open.
    pub fn heartbeat() -> Self {
        Self::new(FrameKind::Heartbeat, "", "")
    }

    /// Creates a frame that consists only of an id to resume from. Clients do not treat this frame as an event.
    pub fn resume_position(id: &str) -> Self {
        Self::new(FrameKind::ResumePosition, id, "")
    }

    fn new(kind: FrameKind, id: &str, json: &str) -> Self {
        let mut text = String::with_capacity(id.len() + json.len());
        text.push_str(id);
        text.push_str(json);
        Self {
            kind,
            text: text.into_boxed_str(),
            id_bytes: id.len(),
            position: 0,
            is_critical: false,
            session_hash: 0,
            ordering: OrderingClass::Other,
            close_reason: None,
            is_gap: false,
            body: None,
            parsed_event: OnceLock::new(),
            without_id: OnceLock::new(),
            encoded: OnceLock::new(),
        }
    }

    /// Returns the form that is sent to another node.
    pub(crate) fn to_form(&self) -> FrameForm {
        FrameForm {
            kind: self.kind,
            id: self.id().unwrap_or_default().into(),
            json: self.json().into(),
            position: self.position,
            is_critical: self.is_critical,
            session_hash: self.session_hash,
            ordering: self.ordering,
            close_reason: self.close_reason,
            is_gap: self.is_gap,
        }
    }

    /// Creates a frame that came from another node.
    pub(crate) fn from_form(form: FrameForm) -> Self {
        Self {
            position: form.position,
            is_critical: form.is_critical,
            session_hash: form.session_hash,
            ordering: form.ordering,
            close_reason: form.close_reason,
            is_gap: form.is_gap,
            ..Self::new(form.kind, &form.id, &form.json)
        }
    }

    /// Returns the kind of the frame.
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// Returns the id from which a client can resume after this frame.
    pub fn id(&self) -> Option<&str> {
        self.text.get(..self.id_bytes).filter(|id| !id.is_empty())
    }

    /// Returns the same event without an id, for delivery before earlier frames. Clients cannot resume from this frame.
    pub fn without_id(&self) -> Arc<Self> {
        if let Some(body) = &self.body {
            return body.clone();
        }
        let build = || {
            let frame = Self::event("", self.json(), self.position, self.is_critical);
            Arc::new(Self { session_hash: self.session_hash, ordering: self.ordering, ..frame })
        };
        self.without_id.get_or_init(build).clone()
    }

    /// Returns the frame with the same event that all listeners share, if this one has an id of its own.
    pub fn shared_body(&self) -> Option<&Arc<Self>> {
        self.body.as_ref()
    }

    /// Whether the frame says that events are missing.
    pub fn is_gap(&self) -> bool {
        self.is_gap
    }

    /// Returns why the connection ends with this frame, if it does.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason
    }

    /// Returns the parsed event, if the frame holds one.
    pub fn parsed_event(&self) -> Option<Arc<Event>> {
        if let Some(body) = &self.body {
            return body.parsed_event();
        }
        let parse = || Event::parse(self.json()).map(Arc::new);
        self.parsed_event.get_or_init(parse).clone()
    }

    /// Sets the session and the ordering class.
    #[must_use]
    pub fn with_session(mut self, session: &str, ordering: OrderingClass) -> Self {
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        (self.session_hash, self.ordering) = (hasher.finish() | 1, ordering);
        self
    }

    /// Whether `earlier` must be delivered before this frame even if this frame overtakes others. This is true for
    /// frames of the same session, except that a question may overtake text.
    pub(super) fn must_follow(&self, earlier: &Self) -> bool {
        self.session_hash != 0
            && earlier.session_hash == self.session_hash
            && (self.ordering != OrderingClass::Question || earlier.ordering != OrderingClass::Text)
    }

    /// Returns the event or message as JSON; empty if there is none.
    pub fn json(&self) -> &str {
        match &self.body {
            Some(body) => body.json(),
            None => self.text.get(self.id_bytes..).unwrap_or_default(),
        }
    }

    /// Returns approximately how many bytes a transport sends for the frame.
    pub fn size(&self) -> usize {
        self.text.len() + self.body.as_ref().map_or(FRAMING_BYTES, |body| body.size())
    }

    /// Returns the bytes that a transport sends for the frame. The first call encodes the frame; later calls share the
    /// result. Only one transport calls this, so `encode` is always the same function.
    pub fn encoded_with(&self, encode: fn(&Self) -> Box<[u8]>) -> &[u8] {
        self.encoded.get_or_init(|| encode(self))
    }
}
