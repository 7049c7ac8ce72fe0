//! Every way in and out of the hub.
//!
//! - [`auth`]: tokens, roles, scopes.
//! - [`fanout`]: the thread that writes to all streaming listeners.
//! - [`http`]: HTTP/1.1 as values.
//! - [`Server`]: connections in, requests to the hub, answers and streams out.

pub mod auth;
pub mod fanout;
pub mod http;
mod server;

pub use server::{Bridge, Door, Limits, Server, clock};
