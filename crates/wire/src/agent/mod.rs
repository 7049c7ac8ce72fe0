//! Agents on a WebSocket: JSON-RPC 2.0, with the same answers as over HTTP.
//!
//! - `rpc`: what a message of JSON-RPC is, and what is said to one that is none.
//! - `method`: which call means what to the hub.
//! - `socket`: one connection. Calls go to the hub as they come, no more than so many at once; answers go out in the order
//!   in which the hub settles them, and between them what it tells of the sessions that the connection follows.
//!
//! A connection follows every session that it starts or names. What it may have missed it is told when it first names one.

mod method;
mod rpc;
mod socket;

pub(crate) use socket::{Upgrade, run};
