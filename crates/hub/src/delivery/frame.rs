//! One event as it goes out.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use aaep::event::{Event, Payload};
use aaep::json::Writer;

/// One event as it goes to listeners: encoded once, shared by all.
#[derive(Debug)]
pub struct Frame {
    bytes: Box<[u8]>,
    json: (u32, u32),
    /// Where the id stands.
    id: (u32, u32),
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
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.position == other.position
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
            Payload::StateChanged(change) if change.to_state == "awaiting_input" => Self::Question,
            _ if event.envelope.event_type.is_terminal() => Self::Last,
            _ => Self::Other,
        }
    }
}

/// How a message begins for SSE.
const MESSAGE: &str = "event: aaep.message\ndata: ";

impl Frame {
    /// Frames an event for SSE (B.1.3); the JSON inside is what every other wire sends. The JSON must be on one line.
    pub fn event(id: &str, json: &str, position: u64, critical: bool) -> Self {
        let head = format!("event: aaep.event\nid: {id}\ndata: ");
        let mut bytes = Vec::with_capacity(head.len() + json.len() + 2);
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(json.as_bytes());
        bytes.extend_from_slice(b"\n\n");
        let mut frame = Self::new(bytes, head.len(), json.len(), position, critical);
        let from = "event: aaep.event\nid: ".len();
        frame.id = (place(from), place(from + id.len()));
        frame
    }

    /// Frames a message of the handshake; it has no id, so that nobody resumes from it.
    pub fn message(json: &str) -> Self {
        let bytes = format!("{MESSAGE}{json}\n\n").into_bytes();
        Self::new(bytes, MESSAGE.len(), json.len(), 0, true)
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

    /// A comment that keeps a connection from falling asleep.
    pub fn heartbeat() -> Self {
        Self::new(b":\n\n".to_vec(), 0, 0, 0, false)
    }

    /// Tells a client of SSE from where it would resume, and nothing else: it has no data, so that no event comes of it.
    pub fn mark(id: &str) -> Self {
        let mut frame = Self::new(format!("id: {id}\n\n").into_bytes(), 0, 0, 0, false);
        frame.id = (4, place(4 + id.len()));
        frame
    }

    fn new(bytes: Vec<u8>, from: usize, length: usize, position: u64, critical: bool) -> Self {
        Self {
            bytes: bytes.into(),
            json: (place(from), place(from + length)),
            id: (0, 0),
            position,
            critical,
            session: 0,
            part: Part::Other,
            closes: None,
            parsed: OnceLock::new(),
            nameless: OnceLock::new(),
        }
    }

    /// Whether it is a message, and no event.
    pub fn is_message(&self) -> bool {
        self.bytes.starts_with(MESSAGE.as_bytes())
    }

    /// The id from which a client of SSE would resume after it.
    pub fn id(&self) -> Option<&str> {
        let bytes = self.bytes.get(self.id.0 as usize..self.id.1 as usize)?;
        std::str::from_utf8(bytes).ok().filter(|id| !id.is_empty())
    }

    /// The same event without an id for SSE, for who gets it ahead of others: nobody resumes from it.
    pub fn nameless(&self) -> Arc<Self> {
        let make = || {
            let head = "event: aaep.event\ndata: ";
            let json = self.json();
            let bytes = format!("{head}{json}\n\n").into_bytes();
            let frame = Self::new(bytes, head.len(), json.len(), self.position, self.critical);
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

    /// The frame as SSE sends it.
    pub fn sse(&self) -> &[u8] {
        &self.bytes
    }

    /// The event alone, as the other wires send it; empty for a heartbeat.
    pub fn json(&self) -> &str {
        let bytes = self.bytes.get(self.json.0 as usize..self.json.1 as usize).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or("")
    }
}

fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(0)
}
