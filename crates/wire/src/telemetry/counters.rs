//! Counters of the transports.

use hub::telemetry::{LabelledCounter, MetricValue};

#[derive(Debug, Default)]
pub(super) struct WireCounters {
    /// The number of requests, by route and status class.
    pub(super) requests: LabelledCounter,
    pub(super) auth_failures: MetricValue,
    pub(super) connections: MetricValue,
    pub(super) connections_refused: MetricValue,
    pub(super) connections_open: MetricValue,
    /// The number of connected listeners with a writer task, for each transport.
    sse: MetricValue,
    websocket: MetricValue,
    unix: MetricValue,
    stdio: MetricValue,
    #[cfg(feature = "grpc")]
    grpc: MetricValue,
}

impl WireCounters {
    pub(super) fn listeners(&self, transport: TransportKind) -> &MetricValue {
        match transport {
            TransportKind::Sse => &self.sse,
            TransportKind::WebSocket => &self.websocket,
            TransportKind::Unix => &self.unix,
            TransportKind::Stdio => &self.stdio,
            #[cfg(feature = "grpc")]
            TransportKind::Grpc => &self.grpc,
        }
    }
}

/// The transport of a listener that has its own writer task. The fan-out counts the SSE streams that it writes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportKind {
    Sse,
    WebSocket,
    Unix,
    Stdio,
    #[cfg(feature = "grpc")]
    Grpc,
}

impl TransportKind {
    pub(super) const ALL: &'static [Self] = &[
        Self::Sse,
        Self::WebSocket,
        Self::Unix,
        Self::Stdio,
        #[cfg(feature = "grpc")]
        Self::Grpc,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::Unix => "unix",
            Self::Stdio => "stdio",
            #[cfg(feature = "grpc")]
            Self::Grpc => "grpc",
        }
    }
}

/// Counters of the fan-out.
#[derive(Debug, Default)]
pub(crate) struct FanoutCounters {
    pub(crate) frames: MetricValue,
    pub(crate) bytes: MetricValue,
    pub(crate) slow_listeners: MetricValue,
    pub(crate) open_streams: MetricValue,
}
