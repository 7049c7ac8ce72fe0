//! The hub's transports: HTTP with SSE, WebSocket, Unix socket and stdio, with authentication and TLS. Other services can
//! use the same HTTP server.
//!
//! - `agent`: agents on a WebSocket, with JSON-RPC.
//! - [`auth`]: tokens, roles, scopes and browser sign-in.
//! - `compat`: compatibility mode for AAEP's own packages, enabled with `--compat`.
//! - [`fanout`]: the thread that writes to all streaming listeners.
//! - [`http`]: HTTP/1.1 requests and responses.
//! - `http_server`: the HTTP server that the hub and other services share: connections, TLS, admission, limits, metrics.
//! - [`HttpServer`]: serves an [`HttpService`] other than the hub.
//! - `json_rpc`: the parts of JSON-RPC 2.0 that agents and stdio listeners share.
//! - `message_transport`: the protocol on transports that carry complete messages: WebSocket, Unix socket and stdio.
//! - [`cluster`]: several nodes that serve the shards of one hub.
//! - `outbound_queue`: the frames for a listener that has its own writer task.
//! - [`replay`]: serves a recording on the routes of a hub.
//! - [`Server`]: the hub's server, which passes requests to the hub, and writes responses and streams.
//! - [`HubHandle`]: the handle to the hub's thread. [`AgentConnection`] is one agent's connection to it.
//! - `sse`: the encoding of server-sent events.
//! - [`telemetry`]: metrics and logs for the operator.
//! - [`Tls`]: a certificate and its key.

mod agent;
pub mod auth;
pub mod cluster;
mod compat;
pub mod fanout;
pub mod http;
mod http_server;
mod json_rpc;
mod message_transport;
mod outbound_queue;
pub mod replay;
mod server;
mod service;
mod sse;
pub mod telemetry;
mod tls;

pub use compat::CompatLimits;
pub use http_server::{
    Access, AuthPolicy, ConnectionSlot, HandlerFuture, ServerLimits, TokenChanges, unix_now,
};
pub use ipnet::IpNet;
pub use message_transport::UnixSocket;
pub use server::{
    AgentConnection, AgentMessage, Asset, Handler, HubHandle, Server, ShardLink, ShardOutputs, StartSession,
};
pub use service::{
    HttpServer, HttpService, ServiceOutcome, ServiceRequest, ServiceStream, ServiceWebSocket, close_websocket,
};
pub use telemetry::ServiceMetric;
pub use tls::{Tls, TlsError, TlsFiles};
