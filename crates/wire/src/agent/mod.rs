//! Agents on a WebSocket: JSON-RPC 2.0, with the same replies as over HTTP.
//!
//! - `rpc`: parses JSON-RPC messages and writes responses.
//! - `methods`: maps methods to hub commands.
//! - `socket`: one connection. It passes calls to the hub as they arrive, up to a maximum number of calls in flight.
//!   Responses are sent in the order in which the hub replies, interleaved with notices about the sessions that the
//!   connection follows.
//!
//! A connection follows every session that it starts or mentions in a call. When it first mentions a session, it
//! receives the notices that it may have missed.

mod methods;
mod rpc;
mod socket;

pub(crate) use socket::{Upgrade, run};
