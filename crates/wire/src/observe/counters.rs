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
    sse: Count,
    websocket: Count,
    unix: Count,
    stdio: Count,
}

impl Counters {
    pub(super) fn listeners(&self, wire: Wire) -> &Count {
        match wire {
            Wire::Sse => &self.sse,
            Wire::WebSocket => &self.websocket,
            Wire::Unix => &self.unix,
            Wire::Stdio => &self.stdio,
        }
    }
}

/// A wire on which a task speaks to a listener. Plain streams are the fan-out's, which counts them itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Sse,
    WebSocket,
    Unix,
    Stdio,
}

impl Wire {
    pub(super) const ALL: [Self; 4] = [Self::Sse, Self::WebSocket, Self::Unix, Self::Stdio];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Sse => "sse",
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
