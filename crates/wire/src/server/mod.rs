//! The server: connections in, requests to the hub, answers and streams out.
//!
//! - `connection`: one connection, a request at a time, until it becomes a stream or ends.
//! - `stream`: what it is made of, plain or under TLS.
//! - `door`: who is let in, and who no more.
//! - `assets`: files that it gives as they are.
//! - `routes`: which request means what.
//! - `sign_in`: a browser's cookie in place of its token.
//! - `bridge`: requests to the hub and answers back.
//! - `told`: what a line is told and has not taken.

mod assets;
mod bridge;
mod connection;
mod door;
mod routes;
mod sign_in;
mod stream;
mod told;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use assets::Asset;
pub use bridge::{Bridge, Line};
pub(crate) use connection::STREAM_HEAD;
pub use door::{Changed, Door};
use hub::Principal;
pub use routes::clock;
pub(crate) use routes::{check_origin, no_token, not_found, response};
pub(crate) use stream::{hung_up, written};
use tokio::net::TcpListener;
pub use told::Told;

use crate::Tls;
use crate::auth::{Attempts, Passes};
use crate::compat::{self, Compat};
use crate::http::{Head, RequestLimits, Response};
use crate::listener::{FAREWELL, UnixSocket, stdio, unix};

/// What a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Headers of a request; never more than [`Head::MOST_HEADERS`](crate::http::Head::MOST_HEADERS).
    pub headers: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of a message on a WebSocket.
    pub websocket_bytes: usize,
    /// Bytes of a message on a Unix socket.
    pub unix_bytes: usize,
    /// Bytes of a line on standard input.
    pub stdio_bytes: usize,
    /// So many things that are no message end a WebSocket or a connection on a Unix socket.
    pub malformed: usize,
    /// How long the other side may take to take one message.
    pub message_time: Duration,
    /// How often a WebSocket is asked for a sign of life; after three in vain it is let go.
    pub ping_time: Duration,
    /// How long a request's head may take, and the first message on a wire of messages.
    pub head_time: Duration,
    /// How long a request's body may take.
    pub body_time: Duration,
    /// How long the other side may take to take an answer.
    pub answer_time: Duration,
    /// How long a connection may stay idle between requests.
    pub idle_time: Duration,
    /// How long an agent may wait for an answer in one request.
    pub longest_wait: Duration,
    /// Calls of an agent's WebSocket that are not answered yet, and calls in one batch; no more is read meanwhile.
    pub calls: usize,
    /// What an agent's WebSocket may be told that it has not taken.
    pub untold: usize,
    /// How long a browser stays signed in.
    pub sign_in_time: Duration,
    /// How many attempts to sign in may fail in a minute from one address.
    pub sign_in_attempts: usize,
    /// Bytes of a stream that the system takes beyond what it can send at once, where it can be told so.
    pub unsent_bytes: usize,
    /// What a connection of AAEP's own packages may make the hub remember.
    pub dialect: compat::Limits,
}

/// The longest event (§3.7), and its wrapping.
const LONGEST: usize = 1024 * 1024 + 64 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            head_bytes: 16 * 1024,
            headers: 64,
            body_bytes: LONGEST,
            websocket_bytes: LONGEST,
            unix_bytes: LONGEST,
            stdio_bytes: LONGEST,
            malformed: 8,
            message_time: Duration::from_mins(1),
            ping_time: Duration::from_secs(15),
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            answer_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(75),
            longest_wait: Duration::from_mins(5),
            calls: 64,
            untold: 1_024,
            sign_in_time: Duration::from_hours(30 * 24),
            sign_in_attempts: 10,
            unsent_bytes: 4 * 1024,
            dialect: compat::Limits::default(),
        }
    }
}

impl Limits {
    /// Those of a request.
    pub(crate) fn requests(&self) -> RequestLimits {
        RequestLimits {
            head_bytes: self.head_bytes,
            headers: self.headers,
            body_bytes: self.body_bytes,
            head_time: self.head_time,
            body_time: self.body_time,
            answer_time: self.answer_time,
            idle_time: self.idle_time,
        }
    }
}

/// What a handler comes to.
pub type Handling<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Answers requests in place of the server: whoever asks has been admitted, and the body is text.
pub type Handler = Box<dyn Fn(Principal, String) -> Handling<Response> + Send + Sync>;

/// Starts a session for what was asked and by whom; its id, or why none began.
pub type StartSession = Box<dyn Fn(String, Option<String>) -> Handling<Result<String, String>> + Send + Sync>;

/// What all connections share.
pub struct Server {
    /// The way to the hub.
    pub bridge: Bridge,
    door: door::Watched,
    /// How much is taken.
    pub limits: Limits,
    /// The hosts under which it may be addressed, with their ports; a request for another is misdirected.
    pub hosts: Vec<String>,
    /// The manifest, as JSON.
    pub manifest: String,
    /// The manifest, signed, for those who ask for it so.
    pub signed_manifest: Option<String>,
    pub(crate) compat: Option<Arc<Compat>>,
    handlers: Vec<(&'static str, Handler)>,
    assets: Vec<Asset>,
    tls: Option<Tls>,
    passes: Passes,
    attempts: Mutex<Attempts>,
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
        Self {
            bridge,
            door: door::Watched::new(door),
            limits,
            hosts,
            manifest,
            signed_manifest: None,
            compat: None,
            handlers: Vec::new(),
            assets: Vec::new(),
            tls: None,
            passes: Passes::new(&mut seal::SystemRandom),
            attempts: Mutex::new(Attempts::new(limits.sign_in_attempts)),
            connections: AtomicUsize::new(0),
        }
    }

    /// With a signed manifest beside the plain one.
    #[must_use]
    pub fn with_signed_manifest(mut self, signed: String) -> Self {
        self.signed_manifest = Some(signed);
        self
    }

    /// With passes that outlive a restart.
    #[must_use]
    pub fn with_passes(mut self, passes: Passes) -> Self {
        self.passes = passes;
        self
    }

    /// With the dialect of AAEP's own packages, which know no handshake and let people ask for something.
    #[must_use]
    pub fn with_compat(mut self, start: StartSession) -> Self {
        self.compat = Some(Arc::new(Compat::new(self.limits.dialect, start)));
        self
    }

    /// With a handler for `POST` requests to a path.
    #[must_use]
    pub fn with_handler(mut self, path: &'static str, handler: Handler) -> Self {
        self.handlers.push((path, handler));
        self
    }

    /// The handler that a request is for, and its path.
    fn handler(&self, head: &Head) -> Option<&(&'static str, Handler)> {
        self.handlers.iter().find(|(path, _)| *path == head.path)
    }

    /// With files to give: the listening page.
    #[must_use]
    pub fn with_assets(mut self, assets: Vec<Asset>) -> Self {
        self.assets = assets;
        self
    }

    /// With TLS: whoever connects speaks it, or is let go.
    #[must_use]
    pub fn with_tls(mut self, tls: Option<Tls>) -> Self {
        self.tls = tls;
        self
    }

    /// Takes connections until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, peer)) = listener.accept().await else {
                after_failure().await;
                continue;
            };
            if let Some(place) = self.place() {
                let _ = stream.set_nodelay(true);
                tokio::spawn(async move {
                    let server = &*place.0;
                    let Some(tls) = &server.tls else {
                        return connection::run(server, stream, peer.ip()).await;
                    };
                    if let Some(stream) = tls.accept(stream, server.limits.head_time).await {
                        connection::run(server, stream, peer.ip()).await;
                    }
                });
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
