//! The wire's numbers.

use hub::watch::{Count, Labelled};

#[derive(Debug, Default)]
pub(super) struct Counters {
    /// By route and class of status.
    pub(super) requests: Labelled,
    pub(super) logins_refused: Count,
    pub(super) connections: Count,
    pub(super) connections_refused: Count,
    pub(super) connections_open: Count,
    websocket: Count,
    unix: Count,
    stdio: Count,
}

impl Counters {
    pub(super) fn listeners(&self, wire: Wire) -> &Count {
        match wire {
            Wire::WebSocket => &self.websocket,
            Wire::Unix => &self.unix,
            Wire::Stdio => &self.stdio,
        }
    }
}

/// A wire of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    WebSocket,
    Unix,
    Stdio,
}

impl Wire {
    pub(super) const ALL: [Self; 3] = [Self::WebSocket, Self::Unix, Self::Stdio];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Unix => "unix",
            Self::Stdio => "stdio",
        }
    }
}

/// What the fan-out has done.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) frames: Count,
    pub(crate) bytes: Count,
    pub(crate) too_slow: Count,
    pub(crate) streams: Count,
}
