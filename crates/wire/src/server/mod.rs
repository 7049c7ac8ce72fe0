//! The hub's server: it passes requests to the hub, and writes responses and streams. Its connections are served by
//! [`http_server`](crate::http_server).
//!
//! - `assets`: static files.
//! - `routes`: maps requests to hub commands.
//! - `upgrade`: what a connection to the hub can become.
//! - `event_stream`: listeners on SSE streams.
//! - `sign_in`: browser sign-in, which exchanges a token for a session cookie.
//! - `token_changes`: tells the hub which tokens are valid.
//! - `local_http`: HTTP on a Unix socket, whose user the operating system has authenticated.
//! - `hub_handle`: sends commands to the hub and receives its replies.
//! - `shards`: the front of all shards, which routes requests.
//! - `agent_messages`: the queue of replies and notices for an agent connection.
//! - `receipt_signer`: signs the receipts of resolved questions.

mod agent_messages;
mod assets;
mod event_stream;
mod hub_handle;
mod local_http;
mod receipt_signer;
mod routes;
mod shards;
mod sign_in;
mod token_changes;
mod upgrade;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

pub use agent_messages::AgentMessage;
pub use assets::Asset;
use hub::Principal;
pub use hub_handle::{AgentConnection, HubHandle};
use ipnet::IpNet;
pub(crate) use local_http::serve_local_http;
pub(crate) use routes::{
    invitation_not_found, question_not_found, reply_to_response, session_not_found,
    subscription_reply_to_response,
};
pub use shards::{ShardLink, ShardOutputs};
use tokio::net::TcpListener;

use self::upgrade::HubUpgrade;
use crate::Tls;
use crate::auth::{BrowserSessions, SignInLimiter};
use crate::cluster::ShardRouter;
use crate::compat::Compat;
use crate::http::{HttpResponse, RequestHead};
use crate::http_server::{
    Access, AdmittedRequest, AuthPolicy, ConnectionSlot, ConnectionStream, HandlerFuture, RequestHandler,
    RequestOutcome, ServerCore, ServerLimits, accept_connections, back_off_after_accept_error, serve_http,
};
#[cfg(feature = "grpc")]
use crate::message_transport::grpc;
use crate::message_transport::{UnixSocket, stdio, unix};
use crate::telemetry::{ServiceMetric, route_template};

/// Handles requests to one path. The caller is already authenticated, and the body is valid UTF-8.
pub type Handler = Box<dyn Fn(Principal, String) -> HandlerFuture<HttpResponse> + Send + Sync>;

/// Starts a session from a person's request and optional user id. Returns the session id, or why it did not
/// start.
pub type StartSession =
    Box<dyn Fn(String, Option<String>) -> HandlerFuture<Result<String, String>> + Send + Sync>;

/// The hub's server: the state that all connections share.
pub struct Server {
    /// The handle to the hub.
    pub hub: HubHandle,
    pub(crate) core: ServerCore,
    /// The manifest, as JSON.
    pub manifest: String,
    /// The signed manifest, for clients that request it.
    pub signed_manifest: Option<String>,
    pub(crate) compat: Option<Arc<Compat>>,
    handlers: Vec<(&'static str, Handler)>,
    assets: Vec<Asset>,
    browser_sessions: BrowserSessions,
    /// The router of a node of a cluster.
    router: Option<ShardRouter>,
    sign_in_limiter: Mutex<SignInLimiter>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("hosts", &self.core.hosts)
            .field("limits", &self.core.limits)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Creates a server for a hub. `hosts` are the allowed values of the `Host` header: host names with ports.
    pub fn new(
        hub: HubHandle,
        policy: AuthPolicy,
        limits: ServerLimits,
        hosts: Vec<String>,
        manifest: String,
    ) -> Self {
        let core = ServerCore::new(policy, &limits, hosts, hub.telemetry().clone());
        Self {
            hub,
            core,
            manifest,
            signed_manifest: None,
            compat: None,
            handlers: Vec::new(),
            assets: Vec::new(),
            browser_sessions: BrowserSessions::new(&mut seal::SystemRandom),
            router: None,
            sign_in_limiter: Mutex::new(SignInLimiter::new(limits.failed_sign_ins_per_minute)),
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

    /// Reports in `/readyz` and in the metrics which shards can be reached, for a node of a cluster.
    #[must_use]
    pub fn with_router(mut self, router: ShardRouter) -> Self {
        self.router = Some(router);
        self
    }

    /// Enables compatibility mode for AAEP's own packages. These packages use no handshake. `start` starts the sessions that
    /// people request through them.
    #[must_use]
    pub fn with_compat(mut self, start: StartSession) -> Self {
        self.compat = Some(Arc::new(Compat::new(self.core.limits.compat, start)));
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

    /// Serves these static files, which make up the listening page.
    #[must_use]
    pub fn with_assets(mut self, assets: Vec<Asset>) -> Self {
        self.assets = assets;
        self
    }

    /// Enables TLS, if a configuration is given. Connections that do not use TLS are then closed.
    #[must_use]
    pub fn with_tls(mut self, tls: Option<Tls>) -> Self {
        self.core.tls = tls;
        self
    }

    /// States whether clients reach the server through a proxy that terminates TLS.
    #[must_use]
    pub fn with_proxy(mut self, is_behind_proxy: bool) -> Self {
        self.core.is_behind_proxy = is_behind_proxy;
        self
    }

    /// Trusts the headers `X-Forwarded-For` and `X-Forwarded-Proto` of requests from these networks.
    #[must_use]
    pub fn with_trusted_proxies(mut self, networks: Vec<IpNet>) -> Self {
        self.core.trusted_proxies = networks;
        self
    }

    /// Serves only this user of the machine. The kernel determines which user a connection comes from; if it cannot, the
    /// connection is refused.
    #[must_use]
    pub fn with_only_user(mut self, user: Option<u32>) -> Self {
        self.core.set_only_user(user);
        self
    }

    /// Accepts connections until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        accept_connections(self, listener, serve_http).await;
    }

    /// Accepts listeners over gRPC until the future is dropped.
    #[cfg(feature = "grpc")]
    pub async fn serve_grpc(self: Arc<Self>, listener: TcpListener) {
        accept_connections(self, listener, |server, stream, _, slot| async move {
            let Some(tls) = server.core.tls.clone() else {
                return grpc::run(server, stream, slot).await;
            };
            if let Some(stream) = tls.accept_http2(stream, server.core.limits.head_timeout).await {
                grpc::run(server, stream, slot).await;
            }
        })
        .await;
    }

    /// Accepts listeners and HTTP requests on a Unix socket until the future is dropped. Only processes of the same user are
    /// accepted, and they need no token.
    pub async fn serve_unix(self: Arc<Self>, socket: UnixSocket) {
        loop {
            let Ok(stream) = socket.accept().await else {
                back_off_after_accept_error().await;
                continue;
            };
            if let Some((slot, _)) = self.core.connections.acquire(None) {
                let server = self.clone();
                tokio::spawn(async move { unix::run(&server, stream, slot).await });
            }
        }
    }

    /// Serves a single listener on standard input and output until the input ends.
    pub async fn serve_stdio(&self) {
        stdio::run(self, tokio::io::stdin(), tokio::io::stdout()).await;
    }
}

impl RequestHandler for Server {
    /// The hub identifies every caller by a token or a cookie.
    type Caller = ();
    type Upgrade = HubUpgrade;

    fn core(&self) -> &ServerCore {
        &self.core
    }

    fn admit(&self, head: &RequestHead, _peer: IpAddr) -> Result<Access, HttpResponse> {
        Ok(routes::access(self, head))
    }

    fn authenticate(&self, head: &RequestHead) -> Result<Principal, HttpResponse> {
        routes::authenticate(self, head)
    }

    async fn handle(&self, request: AdmittedRequest<()>) -> RequestOutcome<HubUpgrade> {
        routes::route(self, request).await.unwrap_or_else(RequestOutcome::Response)
    }

    fn route_template(&self, head: &RequestHead) -> &'static str {
        let handler = self.handler(head).map(|(path, _)| *path);
        handler.unwrap_or_else(|| route_template::template(&head.path))
    }

    fn is_long_poll(&self, head: &RequestHead) -> bool {
        routes::is_long_poll(head)
    }

    /// The hub is ready unless its journal fails, which its telemetry reports. A node of a cluster must also reach every shard.
    fn readiness(&self) -> Result<(), String> {
        self.router.as_ref().map_or(Ok(()), ShardRouter::readiness)
    }

    fn service_metrics(&self) -> Vec<ServiceMetric> {
        self.router.as_ref().map(ShardRouter::metrics).unwrap_or_default()
    }

    async fn run_upgrade(
        &self,
        upgrade: HubUpgrade,
        stream: impl ConnectionStream + 'static,
        read_ahead: Vec<u8>,
        slot: ConnectionSlot,
    ) {
        upgrade.run(self, stream, read_ahead, slot).await;
    }
}
