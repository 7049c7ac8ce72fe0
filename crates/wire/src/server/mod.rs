//! The server, which accepts connections, passes requests to the hub, and writes responses and streams.
//!
//! - `connection`: one connection, which handles one request at a time until it ends or becomes a stream.
//! - `connection_slots`: the limits on connections, in total, per address, and for callers that have not authenticated.
//! - `stream`: the byte stream of a connection, with or without TLS.
//! - `admission`: the authentication policy, and the handling of changed tokens.
//! - `assets`: static files.
//! - `routes`: maps requests to hub commands.
//! - `forwarded`: the client's address and scheme behind a proxy.
//! - `sign_in`: browser sign-in, which exchanges a token for a session cookie.
//! - `hub_handle`: sends commands to the hub and receives its replies.
//! - `agent_messages`: the queue of replies and notices for an agent connection.
//! - `receipt_signer`: signs the receipts of resolved questions.

mod admission;
mod agent_messages;
mod assets;
mod connection;
mod connection_slots;
mod forwarded;
mod hub_handle;
mod receipt_signer;
mod routes;
mod sign_in;
mod stream;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use admission::{AuthPolicy, TokenChanges};
pub use agent_messages::AgentMessage;
pub use assets::Asset;
pub(crate) use connection::SSE_RESPONSE_HEAD;
pub use connection_slots::ConnectionSlot;
use connection_slots::{ConnectionSlots, is_this_machine};
use hub::Principal;
pub use hub_handle::{AgentConnection, HubHandle};
use ipnet::IpNet;
pub use routes::unix_now;
pub(crate) use routes::{
    check_origin, invitation_not_found, question_not_found, reject_token_in_query, reply_to_response,
    session_not_found, subscription_reply_to_response,
};
pub(crate) use stream::{wait_for_disconnect, write_with_timeout};
use tokio::net::{TcpListener, TcpStream};

use crate::Tls;
use crate::auth::{BrowserSessions, SignInLimiter};
use crate::compat::{self, Compat};
use crate::http::{HttpResponse, RequestHead, RequestLimits};
#[cfg(feature = "grpc")]
use crate::message_transport::grpc;
use crate::message_transport::{CLOSE_TIMEOUT, UnixSocket, stdio, unix};
use crate::telemetry::RequestInProgress;

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
    /// Maximum time that one request of an agent waits for the reply to its question.
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
    pub compat: compat::CompatLimits,
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
            compat: compat::CompatLimits::default(),
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

/// The boxed future that a handler returns.
pub type HandlerFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Handles requests to one path. The caller is already authenticated, and the body is valid UTF-8.
pub type Handler = Box<dyn Fn(Principal, String) -> HandlerFuture<HttpResponse> + Send + Sync>;

/// Starts a session from a person's request and optional user id. Returns the session id, or why it did not
/// start.
pub type StartSession =
    Box<dyn Fn(String, Option<String>) -> HandlerFuture<Result<String, String>> + Send + Sync>;

/// The state that all connections share.
pub struct Server {
    /// The handle to the hub.
    pub hub: HubHandle,
    auth_policy: admission::SharedAuthPolicy,
    /// The limits of this server.
    pub limits: ServerLimits,
    /// The allowed values of the `Host` header: host names with ports. Requests for other hosts are rejected as
    /// misdirected.
    pub hosts: Vec<String>,
    /// The manifest, as JSON.
    pub manifest: String,
    /// The signed manifest, for clients that request it.
    pub signed_manifest: Option<String>,
    pub(crate) compat: Option<Arc<Compat>>,
    handlers: Vec<(&'static str, Handler)>,
    assets: Vec<Asset>,
    tls: Option<Tls>,
    is_behind_proxy: bool,
    trusted_proxies: Vec<IpNet>,
    browser_sessions: BrowserSessions,
    sign_in_limiter: Mutex<SignInLimiter>,
    connections: Arc<ConnectionSlots>,
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
    /// Creates a server for a hub.
    pub fn new(
        hub: HubHandle,
        policy: AuthPolicy,
        limits: ServerLimits,
        hosts: Vec<String>,
        manifest: String,
    ) -> Self {
        let connections = ConnectionSlots::new(&limits, hub.telemetry().clone());
        Self {
            hub,
            auth_policy: admission::SharedAuthPolicy::new(policy),
            limits,
            hosts,
            manifest,
            signed_manifest: None,
            compat: None,
            handlers: Vec::new(),
            assets: Vec::new(),
            tls: None,
            is_behind_proxy: false,
            trusted_proxies: Vec::new(),
            browser_sessions: BrowserSessions::new(&mut seal::SystemRandom),
            sign_in_limiter: Mutex::new(SignInLimiter::new(limits.failed_sign_ins_per_minute)),
            connections,
        }
    }

    /// Also serves the manifest in signed form.
    #[must_use]
    pub fn with_signed_manifest(mut self, signed: String) -> Self {
        self.signed_manifest = Some(signed);
        self
    }

    /// Replaces the browser sessions, for example by ones that survive a restart.
    #[must_use]
    pub fn with_browser_sessions(mut self, browser_sessions: BrowserSessions) -> Self {
        self.browser_sessions = browser_sessions;
        self
    }

    /// Enables compatibility mode for AAEP's own packages. These packages use no handshake. `start` starts the sessions that
    /// people request through them.
    #[must_use]
    pub fn with_compat(mut self, start: StartSession) -> Self {
        self.compat = Some(Arc::new(Compat::new(self.limits.compat, start)));
        self
    }

    /// Adds a handler for `POST` requests to a path.
    #[must_use]
    pub fn with_handler(mut self, path: &'static str, handler: Handler) -> Self {
        self.handlers.push((path, handler));
        self
    }

    /// Returns the handler for a request, with its path.
    fn handler(&self, head: &RequestHead) -> Option<&(&'static str, Handler)> {
        self.handlers.iter().find(|(path, _)| *path == head.path)
    }

    fn begin_request(&self, head: &RequestHead) -> RequestInProgress<'_> {
        self.hub.telemetry().begin_request(head, self.handler(head).map(|(path, _)| *path))
    }

    /// Serves these static files, which make up the listening page.
    #[must_use]
    pub fn with_assets(mut self, assets: Vec<Asset>) -> Self {
        self.assets = assets;
        self
    }

    /// Enables TLS, if a configuration is given. Connections that do not use TLS are then closed.
    #[must_use]
    pub fn with_tls(mut self, tls: Option<Tls>) -> Self {
        self.tls = tls;
        self
    }

    /// States whether clients reach the server through a proxy that terminates TLS.
    #[must_use]
    pub fn with_proxy(mut self, is_behind_proxy: bool) -> Self {
        self.is_behind_proxy = is_behind_proxy;
        self
    }

    /// Returns whether clients connect with TLS, to this server or to the proxy in front of it.
    fn clients_use_tls(&self) -> bool {
        self.tls.is_some() || self.is_behind_proxy
    }

    /// Trusts the headers `X-Forwarded-For` and `X-Forwarded-Proto` of requests from these networks.
    #[must_use]
    pub fn with_trusted_proxies(mut self, networks: Vec<IpNet>) -> Self {
        self.trusted_proxies = networks;
        self
    }

    /// Accepts connections until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        self.accept_connections(listener, |server, stream, peer, slot| async move {
            server.serve_stream(stream, peer, slot).await;
        })
        .await;
    }

    /// Accepts listeners over gRPC until the future is dropped.
    #[cfg(feature = "grpc")]
    pub async fn serve_grpc(self: Arc<Self>, listener: TcpListener) {
        self.accept_connections(listener, |server, stream, _, slot| async move {
            let Some(tls) = server.tls.clone() else {
                return grpc::run(server, stream, slot).await;
            };
            if let Some(stream) = tls.accept_http2(stream, server.limits.head_timeout).await {
                grpc::run(server, stream, slot).await;
            }
        })
        .await;
    }

    /// Accepts connections and serves each in a task.
    async fn accept_connections<F>(
        self: Arc<Self>,
        listener: TcpListener,
        serve: fn(Arc<Self>, TcpStream, IpAddr, ConnectionSlot) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        loop {
            let Ok((stream, peer)) = listener.accept().await else {
                back_off_after_accept_error().await;
                continue;
            };
            let address = Some(peer.ip().to_canonical()).filter(|peer| {
                !self.is_behind_proxy && !is_this_machine(*peer) && !self.is_trusted_proxy(*peer)
            });
            let Some((slot, close_signal)) = self.connections.acquire(address) else { continue };
            let _ = stream.set_nodelay(true);
            let server = self.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = serve(server, stream, peer.ip(), slot) => {}
                    () = close_signal.notified() => {}
                }
            });
        }
    }

    async fn serve_stream(&self, stream: TcpStream, peer: IpAddr, slot: ConnectionSlot) {
        let Some(tls) = &self.tls else {
            return connection::run(self, stream, peer, slot).await;
        };
        if let Some(stream) = tls.accept(stream, self.limits.head_timeout).await {
            connection::run(self, stream, peer, slot).await;
        }
    }

    /// Accepts listeners on a Unix socket until the future is dropped. Only processes of the same user are
    /// accepted.
    pub async fn serve_unix(self: Arc<Self>, socket: UnixSocket) {
        loop {
            let Ok(stream) = socket.accept().await else {
                back_off_after_accept_error().await;
                continue;
            };
            if let Some((mut slot, _)) = self.connections.acquire(None) {
                // The operating system has authenticated the user.
                slot.mark_authenticated();
                let server = self.clone();
                tokio::spawn(async move {
                    unix::run(&server, stream).await;
                    drop(slot);
                });
            }
        }
    }

    /// Serves a single listener on standard input and output until the input ends.
    pub async fn serve_stdio(&self) {
        stdio::run(self, tokio::io::stdin(), tokio::io::stdout()).await;
    }
}

/// Waits before the next accept. The usual cause of the error is a lack of file descriptors, and some may be freed in the
/// meantime.
async fn back_off_after_accept_error() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
