//! What a listener does on any wire, and how each of the five ways to speak looks.

use std::collections::VecDeque;

use serde_json::Value;

use crate::stage::Hub;
use crate::{sse, stdio, unix, websocket};

/// A connection of one listener.
pub(crate) trait Wire {
    /// Sends a request for a subscription; its answer.
    fn subscribe(&mut self, request: &str) -> Value;

    /// Says something that has no answer.
    fn say(&mut self, message: &str);

    /// Says something that has an answer, which is returned.
    fn ask(&mut self, message: &str) -> Value;

    /// The next thing that is heard.
    fn next(&mut self) -> Heard;

    /// How the end looks that comes now, or the refusal that just came.
    fn sign(&mut self) -> Sign;

    /// Waits for a sign of life, or asks for one; `false` where the wire has none and needs none.
    fn is_alive(&mut self) -> bool;

    /// The hub or the connection is gone, and the listener comes back in the way of its wire.
    fn come_back(&mut self, hub: &mut Hub, request: &str) -> Back;

    /// Loses the connection without a word, if that can be done without ending the hub.
    fn lose(&mut self) -> bool;
}

/// What is heard.
#[derive(Debug)]
pub(crate) enum Heard {
    Event(Value),
    Message(Value),
    Alive,
    End(Sign),
}

/// How an end or a refusal looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The status of an HTTP answer.
    Status(u16),
    /// The code with which a WebSocket is closed.
    Code(u16),
    /// The stream ends.
    End,
    /// The wire stays open.
    Stays,
}

/// How a listener came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// Its subscription goes on.
    Resumed,
    /// It has a new one, of this id.
    Afresh(String),
}

/// A wire, and on the Unix socket its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sse,
    WebSocket,
    Lines,
    Counted,
    Stdio,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Sse, Self::WebSocket, Self::Lines, Self::Counted, Self::Stdio];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::Lines => "unix_lines",
            Self::Counted => "unix_counted",
            Self::Stdio => "stdio",
        }
    }

    /// Connects with that token, where the wire takes one; the status if it is not let in.
    pub(crate) fn connect(self, hub: &mut Hub, token: &str) -> Result<Box<dyn Wire>, u16> {
        Ok(match self {
            Self::Sse => Box::new(sse::Listener::new(&hub.address, token)),
            Self::WebSocket => Box::new(websocket::Socket::connect(&hub.address, token)?),
            Self::Lines | Self::Counted => Box::new(unix::Talk::connect(&hub.socket, self == Self::Lines)),
            Self::Stdio => Box::new(stdio::Parent::new(hub)),
        })
    }

    /// Whether a token says who is there; on the others it is the user who started the hub.
    pub(crate) fn has_tokens(self) -> bool {
        matches!(self, Self::Sse | Self::WebSocket)
    }

    /// This wire's own sign among those of all.
    pub(crate) fn pick(self, sse: Sign, websocket: Sign, unix: Sign, stdio: Sign) -> Sign {
        match self {
            Self::Sse => sse,
            Self::WebSocket => websocket,
            Self::Lines | Self::Counted => unix,
            Self::Stdio => stdio,
        }
    }
}

/// What a message is: an event, or one of the handshake.
pub(crate) fn sorted(json: Value) -> Heard {
    if json["type"].as_str().unwrap().starts_with("aaep:agent.") {
        Heard::Event(json)
    } else {
        Heard::Message(json)
    }
}

/// The next message on a wire that mixes answers and events; what is heard before it is kept.
pub(crate) fn answer(kept: &mut VecDeque<Heard>, mut next: impl FnMut() -> Heard) -> Value {
    loop {
        match next() {
            Heard::Message(message) => return message,
            Heard::End(sign) => panic!("it ended instead of an answer: {sign:?}"),
            other => kept.push_back(other),
        }
    }
}

impl dyn Wire {
    /// The next event; nothing else may come before it.
    pub(crate) fn event(&mut self) -> Value {
        loop {
            match self.next() {
                Heard::Event(event) => return event,
                Heard::Alive => {}
                other => panic!("no event: {other:?}"),
            }
        }
    }

    /// The next message; no event may come before it.
    pub(crate) fn message(&mut self) -> Value {
        loop {
            match self.next() {
                Heard::Message(message) => return message,
                Heard::Alive => {}
                other => panic!("no message: {other:?}"),
            }
        }
    }

    /// All events up to the first for which this holds.
    pub(crate) fn until(&mut self, last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut heard = Vec::new();
        while heard.last().is_none_or(|event| !last(event)) {
            heard.push(self.event());
        }
        heard
    }

    /// All events up to the first of that type.
    pub(crate) fn until_type(&mut self, name: &str) -> Vec<Value> {
        self.until(|event| event["type"] == format!("aaep:agent.{name}"))
    }

    /// The resolution of that question, over whatever else is heard.
    pub(crate) fn resolution(&mut self, token: &str) -> Value {
        self.until(|event| {
            event["type"] == "aaep:agent.state.changed"
                && event["extensions"]["sayso"]["reply_token"] == token
        })
        .pop()
        .unwrap()
    }
}
