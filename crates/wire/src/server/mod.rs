//! The server: connections in, requests to the hub, answers and streams out.
//!
//! - `connection`: one TCP connection, a request at a time, until it becomes a stream or ends.
//! - `routes`: which request means what.
//! - `bridge`: requests to the hub's thread and answers back.

mod bridge;
mod connection;
mod routes;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub use bridge::Bridge;
pub use routes::clock;
use tokio::net::TcpListener;

use crate::auth::Tokens;

/// Who is let in.
#[derive(Debug)]
pub enum Door {
    /// Whoever has a token.
    Tokens(Tokens),
    /// Everybody; only for loopback.
    Open,
}

/// What a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// How long a request's head may take.
    pub head_time: Duration,
    /// How long a request's body may take.
    pub body_time: Duration,
    /// How long a connection may stay idle between requests.
    pub idle_time: Duration,
    /// How long an agent may wait for an answer in one request.
    pub longest_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            head_bytes: 16 * 1024,
            body_bytes: 1024 * 1024 + 64 * 1024,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(75),
            longest_wait: Duration::from_mins(5),
        }
    }
}

/// What all connections share.
pub struct Server {
    /// The way to the hub.
    pub bridge: Bridge,
    /// Who is let in.
    pub door: Door,
    /// How much is taken.
    pub limits: Limits,
    /// The hosts under which it may be addressed, with their ports; a request for another is misdirected.
    pub hosts: Vec<String>,
    /// The manifest, as JSON.
    pub manifest: String,
    connections: AtomicUsize,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("hosts", &self.hosts)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server over a hub.
    pub fn new(bridge: Bridge, door: Door, limits: Limits, hosts: Vec<String>, manifest: String) -> Self {
        Self { bridge, door, limits, hosts, manifest, connections: AtomicUsize::new(0) }
    }

    /// Takes connections until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, most likely; others may end meanwhile.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            if self.connections.fetch_add(1, Ordering::Relaxed) >= self.limits.connections {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let server = self.clone();
            tokio::spawn(async move {
                connection::run(&server, stream).await;
                server.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}
