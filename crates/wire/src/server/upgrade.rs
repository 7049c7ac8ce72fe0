//! The streams to which a connection to the hub can be upgraded.

use super::{Server, event_stream};
use crate::http_server::{ConnectionSlot, ConnectionStream, Upgrade};
use crate::message_transport::websocket;
use crate::{agent, compat};

/// An accepted request to turn its connection into a stream.
pub(crate) enum HubUpgrade {
    /// A listener's SSE stream.
    EventStream(hub::ListenerId),
    /// A listener's WebSocket.
    WebSocket(websocket::Upgrade),
    /// An agent's WebSocket.
    AgentWebSocket(agent::Upgrade),
    /// An SSE stream in compatibility mode.
    CompatStream(Box<compat::CompatStream>),
    /// A WebSocket in compatibility mode.
    CompatWebSocket(compat::Upgrade),
}

impl Upgrade for HubUpgrade {
    fn status(&self) -> u16 {
        match self {
            Self::EventStream(_) | Self::CompatStream(_) => 200,
            Self::WebSocket(_) | Self::AgentWebSocket(_) | Self::CompatWebSocket(_) => 101,
        }
    }
}

impl HubUpgrade {
    /// Runs the stream until it ends. The fan-out takes the slot of an SSE stream that it writes itself; the other streams
    /// hold it until they end.
    pub(super) async fn run(
        self,
        server: &Server,
        stream: impl ConnectionStream,
        read_ahead: Vec<u8>,
        slot: ConnectionSlot,
    ) {
        match self {
            Self::EventStream(listener) => event_stream::run(server, stream, listener, slot).await,
            Self::WebSocket(upgrade) => websocket::run(server, upgrade, stream, read_ahead).await,
            Self::AgentWebSocket(upgrade) => agent::run(server, upgrade, stream, read_ahead).await,
            Self::CompatStream(compat) => compat.run(server, stream).await,
            Self::CompatWebSocket(upgrade) => upgrade.run(server, stream, read_ahead).await,
        }
    }
}
