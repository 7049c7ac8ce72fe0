//! The limits of the internal network and of the router.

use std::time::Duration;

/// The limits of a node's router and of its connections to other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterLimits {
    /// How long a request waits for a shard that runs nowhere or cannot be reached.
    pub hold_time: Duration,
    /// Maximum number of requests that wait for one shard.
    pub held_requests: usize,
    /// Maximum size of a message between nodes, in bytes.
    pub message_bytes: usize,
    /// Maximum number of bytes that wait to be sent to one node. A node that reads more slowly is disconnected.
    pub queued_bytes: usize,
    /// Maximum number of requests of one node that have no reply yet.
    pub pending_requests: usize,
    /// Maximum number of nodes that are connected to the internal port.
    pub connections: usize,
    /// Maximum number of connections to the internal port whose handshake has not ended.
    pub handshakes: usize,
    /// Maximum number of these from one address.
    pub handshakes_per_address: usize,
    /// Time limit for connecting, and for the handshake.
    pub connect_timeout: Duration,
    /// How often a node sends a message if it has nothing else to send.
    pub heartbeat: Duration,
    /// A connection on which nothing arrives for this long is closed.
    pub idle_timeout: Duration,
    /// The longest pause between two attempts to connect.
    pub max_backoff: Duration,
}

impl Default for RouterLimits {
    fn default() -> Self {
        Self {
            hold_time: Duration::from_secs(6),
            held_requests: 10_000,
            message_bytes: 32 * 1024 * 1024,
            queued_bytes: 64 * 1024 * 1024,
            pending_requests: 100_000,
            connections: 256,
            handshakes: 256,
            handshakes_per_address: 16,
            connect_timeout: Duration::from_secs(2),
            heartbeat: Duration::from_millis(500),
            idle_timeout: Duration::from_secs(2),
            max_backoff: Duration::from_secs(1),
        }
    }
}
