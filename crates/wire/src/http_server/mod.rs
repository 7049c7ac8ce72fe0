//! The HTTP server that the hub and other services share: it accepts connections, reads strict requests, admits their
//! callers and writes responses. It knows nothing about sessions.
//!
//! - [`ServerCore`]: the configuration and the connection slots of one server.
//! - [`RequestHandler`]: the part of a server that the core calls. The hub's `Server` and `HttpServer` implement it.
//! - `accept`: accepts TCP connections, with or without TLS.
//! - `connection`: one connection, which handles one request at a time until it ends or becomes a stream.
//! - `connection_slots`: the limits on connections, in total, per address, and for callers that have not authenticated.
//! - `admission`: decides from the head of a request whether its body is read.
//! - `auth_policy`: the authentication policy, and the handling of changed tokens.
//! - `operator_routes`: `/healthz`, `/readyz` and `/metrics`.
//! - `forwarded`: the client's address and scheme behind a proxy.
//! - `limits`: the limits of a server.
//! - `peer_user`: which user a connection on this machine comes from.
//! - `stream`: the byte stream of a connection, with or without TLS.

mod accept;
mod admission;
mod auth_policy;
mod connection;
mod connection_slots;
mod forwarded;
mod limits;
mod operator_routes;
mod peer_user;
mod stream;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) use accept::{accept_connections, back_off_after_accept_error, serve_http};
pub use admission::Access;
pub(crate) use admission::{check_origin, reject_token_in_query, unauthorized};
pub use auth_policy::{AuthPolicy, TokenChanges};
pub(crate) use connection::serve_connection;
pub use connection_slots::ConnectionSlot;
use connection_slots::ConnectionSlots;
use hub::Principal;
use ipnet::IpNet;
pub use limits::ServerLimits;
use seal::UnixMillis;
pub(crate) use stream::{ConnectionStream, SSE_RESPONSE_HEAD, wait_for_disconnect, write_with_timeout};
use tokio::sync::Semaphore;

use self::auth_policy::SharedAuthPolicy;
use crate::Tls;
use crate::http::{HttpResponse, RequestHead};
use crate::telemetry::{ServiceMetric, Telemetry};

/// The configuration and the connection slots of one server.
#[derive(Debug)]
pub(crate) struct ServerCore {
    pub(crate) auth_policy: SharedAuthPolicy,
    pub(crate) limits: ServerLimits,
    /// The allowed values of the `Host` header: host names with ports. Requests for other hosts are rejected as
    /// misdirected.
    pub(crate) hosts: Vec<String>,
    pub(crate) tls: Option<Tls>,
    pub(crate) is_behind_proxy: bool,
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// If set, only TCP connections of this user are served. The semaphore limits how many are looked up at the same time.
    pub(crate) only_user: Option<(u32, Semaphore)>,
    pub(crate) connections: Arc<ConnectionSlots>,
    pub(crate) telemetry: Arc<Telemetry>,
}

/// Maximum number of connections whose user is looked up at the same time.
const CONCURRENT_USER_LOOKUPS: usize = 2;

impl ServerCore {
    pub(crate) fn new(
        policy: AuthPolicy,
        limits: &ServerLimits,
        hosts: Vec<String>,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        Self {
            auth_policy: SharedAuthPolicy::new(policy),
            limits: *limits,
            hosts,
            tls: None,
            is_behind_proxy: false,
            trusted_proxies: Vec::new(),
            only_user: None,
            connections: ConnectionSlots::new(limits, telemetry.clone()),
            telemetry,
        }
    }

    pub(crate) fn set_only_user(&mut self, user: Option<u32>) {
        self.only_user = user.map(|user| (user, Semaphore::new(CONCURRENT_USER_LOOKUPS)));
    }

    /// Returns whether clients connect with TLS, to this server or to the proxy in front of it.
    pub(crate) fn clients_use_tls(&self) -> bool {
        self.tls.is_some() || self.is_behind_proxy
    }
}

/// A request whose caller has been admitted. `C` is the caller that the handler itself identified.
pub(crate) struct AdmittedRequest<C> {
    pub(crate) head: RequestHead,
    /// The caller, if a token identified it.
    pub(crate) principal: Option<Principal>,
    /// The caller, if the handler identified it.
    pub(crate) caller: Option<C>,
    pub(crate) body: Vec<u8>,
    /// The address at the other end of the connection, which may be a proxy.
    pub(crate) peer: IpAddr,
}

/// The result of a request.
pub(crate) enum RequestOutcome<U> {
    /// A complete response.
    Response(HttpResponse),
    /// The connection becomes a stream, which the handler runs.
    Upgrade(U),
}

/// An accepted request to turn its connection into a stream.
pub(crate) trait Upgrade: Send {
    /// The status of the response that starts the stream.
    fn status(&self) -> u16;
}

/// The part of a server that [`ServerCore`] calls. For each request, the connection loop calls `admit` and, if that or the route
/// requires a token, `authenticate`. Only then does it read the body and call `handle`.
pub(crate) trait RequestHandler: Send + Sync + 'static {
    /// A caller that [`Self::admit`] identified by means other than a token.
    type Caller: Send;
    /// What a connection can become.
    type Upgrade: Upgrade;

    fn core(&self) -> &ServerCore;

    /// Refuses requests from web pages of another origin, and requests for a host that the server does not serve.
    fn check_origin(&self, head: &RequestHead) -> Result<(), HttpResponse> {
        let core = self.core();
        let has_proxy = core.is_behind_proxy || !core.trusted_proxies.is_empty();
        check_origin(&core.hosts, core.clients_use_tls(), has_proxy, head)
    }

    /// Decides from the head of a request whether its body is read. Returns the response if the request is refused. The
    /// `Host` and `Origin` headers have already been checked.
    fn admit(&self, head: &RequestHead, peer: IpAddr) -> Result<Access<Self::Caller>, HttpResponse>;

    /// Identifies the caller of a request that requires a token.
    fn authenticate(&self, head: &RequestHead) -> Result<Principal, HttpResponse>;

    /// Handles a request. The future is dropped if the client of a long poll disconnects.
    fn handle(
        &self,
        request: AdmittedRequest<Self::Caller>,
    ) -> impl Future<Output = RequestOutcome<Self::Upgrade>> + Send;

    /// Returns the route of a request for metrics and the log. It must not contain ids.
    fn route_template(&self, head: &RequestHead) -> &'static str;

    /// Returns whether the connection is watched for a disconnect while the request is handled.
    fn is_long_poll(&self, head: &RequestHead) -> bool;

    /// Returns why the server is not ready, apart from what [`Telemetry`] knows.
    fn readiness(&self) -> Result<(), String>;

    /// Returns the metrics of what the server serves, apart from those that [`Telemetry`] knows.
    fn service_metrics(&self) -> Vec<ServiceMetric> {
        Vec::new()
    }

    /// Runs the stream that a connection has become. `read_ahead` holds the bytes that followed the request.
    fn run_upgrade(
        &self,
        upgrade: Self::Upgrade,
        stream: impl ConnectionStream + 'static,
        read_ahead: Vec<u8>,
        slot: ConnectionSlot,
    ) -> impl Future<Output = ()> + Send;
}

/// The boxed future that a handler returns.
pub type HandlerFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Returns the current time of the system clock.
pub fn unix_now() -> UnixMillis {
    std::time::SystemTime::now().into()
}
