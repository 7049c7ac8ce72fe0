//! The limits of a server.

use std::time::Duration;

use crate::CompatLimits;
use crate::http::RequestLimits;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum number of open connections, including event streams.
    pub connections: usize,
    /// Maximum number of open connections from one address. Does not apply to `127.0.0.1` and `::1`, nor behind a proxy,
    /// whose address all clients share.
    pub connections_per_address: usize,
    /// Number of connections that only authenticated callers can hold; at most half of all connections.
    pub reserved_connections: usize,
    /// Maximum size of a request's head, in bytes.
    pub head_bytes: usize,
    /// Maximum number of headers in a request; at most
    /// [`RequestHead::MAX_HEADERS`](crate::http::RequestHead::MAX_HEADERS).
    pub headers: usize,
    /// Maximum size of a request's body, in bytes.
    pub body_bytes: usize,
    /// Maximum size of a message on a WebSocket, in bytes.
    pub websocket_bytes: usize,
    /// Maximum size of a message on a Unix socket, in bytes.
    pub unix_bytes: usize,
    /// Maximum size of a message over gRPC, in bytes.
    pub grpc_bytes: usize,
    /// Maximum number of concurrent streams on one gRPC connection.
    pub grpc_streams: usize,
    /// Maximum length of a line on standard input, in bytes.
    pub stdio_bytes: usize,
    /// Number of malformed messages after which a WebSocket or Unix socket connection is closed.
    pub malformed_messages: usize,
    /// How long writing one message may take.
    pub message_write_timeout: Duration,
    /// Interval between pings on a WebSocket. After three unanswered pings, the connection is closed.
    pub ping_interval: Duration,
    /// How long reading a request's head may take. Also the time limit for the first message on a WebSocket or Unix
    /// socket.
    pub head_timeout: Duration,
    /// How long reading a request's body may take.
    pub body_timeout: Duration,
    /// How long writing a response may take.
    pub response_timeout: Duration,
    /// How long a connection may stay idle between requests.
    pub idle_timeout: Duration,
    /// Maximum time that one request from an agent waits for the reply to its question.
    pub max_reply_wait: Duration,
    /// Number of unanswered calls at which reading from an agent's WebSocket pauses. Also the maximum number of calls in one
    /// batch.
    pub calls_in_flight: usize,
    /// Maximum number of notifications that are queued for an agent's WebSocket, in addition to the replies to its calls.
    pub queued_notifications: usize,
    /// How long a browser stays signed in.
    pub sign_in_lifetime: Duration,
    /// Maximum number of sign-outs to remember per token. One more signs out every browser that uses the token.
    pub sign_outs_per_token: usize,
    /// Maximum number of failed sign-in attempts per minute from one address.
    pub failed_sign_ins_per_minute: usize,
    /// Maximum number of unsent bytes of a stream in the kernel's send buffer, where the system supports it.
    pub unsent_bytes: usize,
    /// Limits on the state that the hub holds for connections of AAEP's own packages.
    pub compat: CompatLimits,
}

/// The default limit for one message or request body: 1 MiB of content, plus 64 KiB for the JSON around it.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024 + 64 * 1024;

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            connections_per_address: 1_024,
            reserved_connections: 1_000,
            head_bytes: 16 * 1024,
            headers: 64,
            body_bytes: MAX_MESSAGE_BYTES,
            websocket_bytes: MAX_MESSAGE_BYTES,
            unix_bytes: MAX_MESSAGE_BYTES,
            grpc_bytes: MAX_MESSAGE_BYTES,
            grpc_streams: 16,
            stdio_bytes: MAX_MESSAGE_BYTES,
            malformed_messages: 8,
            message_write_timeout: Duration::from_mins(1),
            ping_interval: Duration::from_secs(15),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            response_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            max_reply_wait: Duration::from_mins(5),
            calls_in_flight: 64,
            queued_notifications: 1_024,
            sign_in_lifetime: Duration::from_hours(30 * 24),
            sign_outs_per_token: 100,
            failed_sign_ins_per_minute: 10,
            unsent_bytes: 4 * 1024,
            compat: CompatLimits::default(),
        }
    }
}

impl ServerLimits {
    /// Returns the limits of a single request.
    pub(crate) fn request_limits(&self) -> RequestLimits {
        RequestLimits {
            head_bytes: self.head_bytes,
            headers: self.headers,
            body_bytes: self.body_bytes,
            head_timeout: self.head_timeout,
            body_timeout: self.body_timeout,
            response_timeout: self.response_timeout,
            idle_timeout: self.idle_timeout,
        }
    }
}
