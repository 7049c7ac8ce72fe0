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
use crate::listener::{UnixSocket, stdio, unix};

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
    /// How often a WebSocket is asked for a sign of life; after three in vain it is let go.
    pub ping_time: Duration,
    /// How long a request's head may take, and the first message on a wire of messages.
    pub head_time: Duration,
    /// How long a request's body may take.
    pub body_time: Duration,
    /// How long a connection may stay idle between requests.
    pub idle_time: Duration,
    /// How long an agent may wait for an answer in one request.
    pub longest_wait: Duration,
    /// Bytes of a stream that the system takes beyond what it can send at once, where it can be told so.
    pub unsent_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            head_bytes: 16 * 1024,
            body_bytes: 1024 * 1024 + 64 * 1024,
            ping_time: Duration::from_secs(15),
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(75),
            longest_wait: Duration::from_mins(5),
            unsent_bytes: 4 * 1024,
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
                after_failure().await;
                continue;
            };
            if let Some(place) = self.place() {
                tokio::spawn(async move { connection::run(&place.0, stream).await });
            }
        }
    }

    /// Takes listeners on a Unix socket until the future is dropped. Only our own user is heard.
    pub async fn serve_unix(self: Arc<Self>, socket: UnixSocket) {
        loop {
            let Ok(stream) = socket.accept().await else {
                after_failure().await;
                continue;
            };
            if let Some(place) = self.place() {
                tokio::spawn(async move { unix::run(&place.0, stream).await });
            }
        }
    }

    /// Serves the one listener at the other end of standard input and output, until the input ends.
    pub async fn serve_stdio(&self) {
        stdio::run(self, tokio::io::stdin(), tokio::io::stdout()).await;
    }

    /// A place for one more connection, if there is one.
    fn place(self: &Arc<Self>) -> Option<Place> {
        let place = Place(self.clone());
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let free = before < self.limits.connections;
        self.bridge.observe().came(free);
        self.bridge.observe().connections(before + 1);
        free.then_some(place)
    }
}

/// A connection's place, which is free again when the connection has ended.
struct Place(Arc<Server>);

impl Drop for Place {
    fn drop(&mut self) {
        let before = self.0.connections.fetch_sub(1, Ordering::Relaxed);
        self.0.bridge.observe().connections(before.saturating_sub(1));
    }
}

/// Out of descriptors, most likely; others may end meanwhile.
async fn after_failure() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
