//! Every way in and out of the hub.
//!
//! - `agent`: agents on a WebSocket, as JSON-RPC.
//! - [`auth`]: tokens, roles, scopes.
//! - `compat`: the dialect of AAEP's own packages, for those who asked for it.
//! - [`fanout`]: the thread that writes to all streaming listeners.
//! - [`http`]: HTTP/1.1 as values.
//! - `listener`: what is said on the wires that carry whole messages: WebSocket, Unix socket, stdio.
//! - [`observe`]: metrics, logs and traces, for whoever runs the hub.
//! - `inbox`: frames for a listener whose bytes somebody else writes.
//! - [`Line`]: an agent's own way to the hub, on which it is told without asking.
//! - [`Tls`]: a certificate and its key.
//! - [`replay`]: a recording, on the routes of a hub.
//! - `sse`: how a stream of events is written.
//! - [`Server`]: connections in, requests to the hub, answers and streams out.

mod agent;
pub mod auth;
mod compat;
pub mod fanout;
pub mod http;
mod inbox;
mod json_rpc;
mod listener;
pub mod observe;
pub mod replay;
mod server;
mod sse;
mod tls;

pub use compat::Limits as DialectLimits;
pub use listener::UnixSocket;
pub use server::{
    Asset, Bridge, Changed, Door, Handler, Handling, Limits, Line, Server, StartSession, Told, clock,
};
pub use tls::{Tls, TlsError};
