//! One event as it goes out.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use aaep::event::{Event, Payload, State};
use aaep::json::Writer;

/// One event or message on its way to listeners, shared by all of them.
#[derive(Debug)]
pub struct Frame {
    kind: FrameKind,
    /// The id, and then the JSON.
    text: Box<str>,
    id_bytes: usize,
    /// The place of the event in the hub's log.
    pub position: u64,
    /// It overtakes.
    pub critical: bool,
    /// The session that it belongs to, as a number; 0 for none.
    pub(super) session: u64,
    /// What it is in its session.
    pub(super) part: Part,
    /// Why a subscription ends with it.
    closes: Option<Reason>,
    /// The event, for who needs it again.
    parsed: OnceLock<Option<Arc<Event>>>,
    /// The same without an id.
    nameless: OnceLock<Arc<Frame>>,
    /// What a wire made of it.
    encoded: OnceLock<Box<[u8]>>,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// An event.
    Event,
    /// A message of the handshake; it has no id.
    Message,
    /// The id from which a client would resume, and nothing else.
    ResumePoint,
    /// A sign of life; it is empty.
    Heartbeat,
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.text == other.text && self.position == other.position
    }
}

impl Eq for Frame {}

/// Why the hub ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It does not read what it is sent, and too much waits.
    SlowConsumer,
    /// The hub stops. The subscription and the questions stay open.
    ProducerShutdown,
    /// Another connection listens on this subscription now.
    Replaced,
    /// The token by which it was let in holds no more.
    TokenRemoved,
}

impl Reason {
    /// Its code in a `subscription.close`.
    pub fn code(self) -> &'static str {
        match self {
            Self::SlowConsumer => "slow_consumer",
            Self::ProducerShutdown => "producer_shutdown",
            Self::Replaced => "replaced",
            Self::TokenRemoved => "token_removed",
        }
    }

    /// The same in words.
    pub fn message(self) -> &'static str {
        match self {
            Self::SlowConsumer => "Too much waited that was not read.",
            Self::ProducerShutdown => "The hub stops. Open questions stay open; come back.",
            Self::Replaced => "Another connection listens on this subscription now.",
            Self::TokenRemoved => "The token that was shown is not known any more.",
        }
    }
}

/// What an event is in its session, as far as order cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text or progress: a question may overtake it.
    Text,
    /// A question, or the state that leads to it: it takes with it what tells the state of its session.
    Question,
    /// Anything else; where it is critical, it takes with it all that its session said before.
    Other,
    /// Likewise, and nothing follows it.
    Last,
}

impl Part {
    /// What an event is.
    pub fn of(event: &Event) -> Self {
        match &event.payload {
            Payload::OutputStreaming(_) | Payload::ProgressUpdated(_) => Self::Text,
            Payload::AwaitingConfirmation(_) | Payload::AwaitingClarification(_) => Self::Question,
            Payload::StateChanged(change) if change.to_state == State::AwaitingInput => Self::Question,
            _ if event.envelope.event_type.is_terminal() => Self::Last,
            _ => Self::Other,
        }
    }
}

/// What a stream adds to an event.
const FRAMING_BYTES: usize = 31;

impl Frame {
    /// An event. Its JSON must be on one line.
    pub fn event(id: &str, json: &str, position: u64, critical: bool) -> Self {
        Self { position, critical, ..Self::new(FrameKind::Event, id, json) }
    }

    /// A message of the handshake. It has no id, so that nobody resumes from it.
    pub fn message(json: &str) -> Self {
        Self { critical: true, ..Self::new(FrameKind::Message, "", json) }
    }

    /// The last word to a connection: a `subscription.close`.
    pub fn close(subscription: &str, reason: Reason) -> Self {
        let mut writer = Writer::default();
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
        Self { closes: Some(reason), ..Self::message(&writer.finish()) }
    }

    /// A sign of life, which keeps a connection from being closed.
    pub fn heartbeat() -> Self {
        Self::new(FrameKind::Heartbeat, "", "")
    }

    /// The id from which a client would resume, and nothing else: no event comes of it.
    pub fn mark(id: &str) -> Self {
        Self::new(FrameKind::ResumePoint, id, "")
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
            critical: false,
            session: 0,
            part: Part::Other,
            closes: None,
            parsed: OnceLock::new(),
            nameless: OnceLock::new(),
            encoded: OnceLock::new(),
        }
    }

    /// What it is.
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// The id from which a client would resume after it.
    pub fn id(&self) -> Option<&str> {
        self.text.get(..self.id_bytes).filter(|id| !id.is_empty())
    }

    /// The same event without an id, for a listener that gets it ahead of others: nobody resumes from it.
    pub fn nameless(&self) -> Arc<Self> {
        let make = || {
            let frame = Self::event("", self.json(), self.position, self.critical);
            Arc::new(Self { session: self.session, part: self.part, ..frame })
        };
        self.nameless.get_or_init(make).clone()
    }

    /// Why the connection ends with it, if it does.
    pub fn closes(&self) -> Option<Reason> {
        self.closes
    }

    /// The event in it, if there is one.
    pub fn parsed(&self) -> Option<Arc<Event>> {
        let read = || Event::parse(self.json()).map(Arc::new);
        self.parsed.get_or_init(read).clone()
    }

    /// Says which session it belongs to, and what it is there.
    #[must_use]
    pub fn of_session(mut self, session: &str, part: Part) -> Self {
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        (self.session, self.part) = (hasher.finish() | 1, part);
        self
    }

    /// Whether an earlier frame goes in front of this one when it overtakes: what its session said before. Only a question
    /// leaves text behind.
    pub(super) fn takes_along(&self, earlier: &Self) -> bool {
        self.session != 0
            && earlier.session == self.session
            && (self.part != Part::Question || earlier.part != Part::Text)
    }

    /// The event or message as JSON; empty if there is none.
    pub fn json(&self) -> &str {
        self.text.get(self.id_bytes..).unwrap_or_default()
    }

    /// About how many bytes a wire sends for it.
    pub fn size(&self) -> usize {
        self.text.len() + FRAMING_BYTES
    }

    /// The bytes that a wire sends for it: made by the first call, and shared by all listeners from then on. One wire has
    /// use of that, so `encode` is always the same function.
    pub fn encoded(&self, encode: fn(&Self) -> Box<[u8]>) -> &[u8] {
        self.encoded.get_or_init(|| encode(self))
    }
}
