//! A server for a service other than the hub, on the connection loop that the hub uses.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hub::Principal;
use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::auth::Tokens;
use crate::http::{HttpResponse, Method, RequestHead, StatusCode};
use crate::http_server::{
    Access, AdmittedRequest, AuthPolicy, ConnectionSlot, ConnectionStream, HandlerFuture, RequestHandler,
    RequestOutcome, SSE_RESPONSE_HEAD, ServerCore, ServerLimits, TokenChanges, Upgrade, accept_connections,
    serve_http, unauthorized, wait_for_disconnect, write_with_timeout,
};
use crate::message_transport::websocket::{accept_key, switch_protocols, upgrade_required};
use crate::message_transport::{CLOSE_TIMEOUT, lingering_close};
use crate::telemetry::{ServiceMetric, Telemetry, TransportKind, route_template};
use crate::{Tls, sse};

/// Handles the requests of an [`HttpServer`].
///
/// For each request, the server checks the head, and then calls [`admit`](Self::admit). It authenticates the caller if that
/// asks for a token, reads the body, and calls [`handle`](Self::handle). A request that is refused before `handle` is
/// answered without reading its body.
pub trait HttpService: Send + Sync + 'static {
    /// A caller that the service authenticates itself. `()` if it authenticates none.
    type Caller: Send;

    /// Decides from the head of a request what it needs before its body is read. Returns the response if the request is
    /// refused. The `Host` and `Origin` headers have already been checked. `peer` is the address of the client; if a
    /// trusted proxy forwards the request, it is the address that the proxy reports.
    fn admit(&self, head: &RequestHead, peer: IpAddr) -> Result<Access<Self::Caller>, HttpResponse>;

    /// Handles a request. The future of a long poll is dropped when the client disconnects or its token is revoked.
    fn handle(&self, request: ServiceRequest<Self::Caller>) -> impl Future<Output = ServiceOutcome> + Send;

    /// Returns the route of a request for metrics and the log, with placeholders for ids, for example
    /// `/v1/asp/sessions/{id}/messages`. Returns `None` if there is no such path.
    fn route_template(&self, head: &RequestHead) -> Option<&'static str>;

    /// Returns whether the connection is watched for a disconnect while the request is handled.
    fn is_long_poll(&self, head: &RequestHead) -> bool {
        let _ = head;
        false
    }

    /// Returns the service's own metrics, which `/metrics` shows after those of the server.
    fn metrics(&self) -> Vec<ServiceMetric> {
        Vec::new()
    }

    /// Returns why the service is not ready, as a sentence for `/readyz`. The server itself reports a failing journal (see
    /// [`Telemetry::instrument_journal`]) and a failed reload.
    fn readiness(&self) -> Result<(), String>;
}

/// A request whose caller has been admitted.
#[derive(Debug)]
pub struct ServiceRequest<C = ()> {
    /// The head.
    pub head: RequestHead,
    /// The holder of the token, if [`HttpService::admit`] asked for one.
    pub principal: Option<Principal>,
    /// The caller that [`HttpService::admit`] authenticated.
    pub caller: Option<C>,
    /// The complete body.
    pub body: Vec<u8>,
    /// The address of the client, as in [`HttpService::admit`].
    pub peer: IpAddr,
}

/// The result of a request to a service.
#[non_exhaustive]
pub enum ServiceOutcome {
    /// A complete response.
    Response(HttpResponse),
    /// Server-sent events. Each item is one or more complete events, with the empty line after each. The stream ends when
    /// the sender is dropped. The sender is closed when the client disconnects or its token is revoked. The server sends a
    /// comment whenever no event was sent for [`ServerLimits::ping_interval`].
    EventStream(mpsc::Receiver<Vec<u8>>),
    /// A WebSocket. If the request is not a valid `GET` upgrade, or does not offer the subprotocol, the server refuses it
    /// and drops `run`.
    WebSocket {
        /// The subprotocol, which the client must offer.
        subprotocol: Option<&'static str>,
        /// Runs the WebSocket. Its future is dropped when the client's token is revoked. It sends pings itself, and ends
        /// with [`close_websocket`].
        run: Box<dyn FnOnce(ServiceWebSocket) -> HandlerFuture<()> + Send>,
    },
}

impl std::fmt::Debug for ServiceOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Response(response) => f.debug_tuple("Response").field(response).finish(),
            Self::EventStream(_) => f.write_str("EventStream"),
            Self::WebSocket { subprotocol, .. } => {
                f.debug_struct("WebSocket").field("subprotocol", subprotocol).finish_non_exhaustive()
            }
        }
    }
}

impl From<HttpResponse> for ServiceOutcome {
    fn from(response: HttpResponse) -> Self {
        Self::Response(response)
    }
}

/// The byte stream of a connection, with or without TLS.
pub trait ServiceStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ServiceStream for S {}

/// A WebSocket of a service. Its messages have at most [`ServerLimits::websocket_bytes`].
pub type ServiceWebSocket = WebSocketStream<Box<dyn ServiceStream>>;

/// Closes a WebSocket with a code and a reason (RFC 6455, section 7.4). Takes a few seconds at most.
pub async fn close_websocket(mut socket: ServiceWebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code: code.into(), reason: reason.into() };
    let _ = timeout(CLOSE_TIMEOUT, socket.close(Some(frame))).await;
    lingering_close(socket.into_inner()).await;
}

/// Serves an [`HttpService`] with the HTTP server of the hub: strict requests, TLS, connection limits, tokens, and metrics.
/// It answers `/healthz`, `/readyz` and `/metrics` itself. Metrics need the token of an admin.
#[derive(Debug)]
pub struct HttpServer<S> {
    /// The service.
    pub service: S,
    core: ServerCore,
}

impl<S: HttpService> HttpServer<S> {
    /// Creates a server. `hosts` are the allowed values of the `Host` header: host names with ports.
    pub fn new(
        service: S,
        policy: AuthPolicy,
        limits: ServerLimits,
        hosts: Vec<String>,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        Self { service, core: ServerCore::new(policy, &limits, hosts, telemetry) }
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

    /// Serves only this user of the machine, as [`Server::with_only_user`](crate::Server::with_only_user) does.
    #[must_use]
    pub fn with_only_user(mut self, user: Option<u32>) -> Self {
        self.core.set_only_user(user);
        self
    }

    /// Trusts the headers `X-Forwarded-For` and `X-Forwarded-Proto` of requests from these networks.
    #[must_use]
    pub fn with_trusted_proxies(mut self, networks: Vec<IpNet>) -> Self {
        self.core.trusted_proxies = networks;
        self
    }

    /// Returns the telemetry of this server.
    pub fn telemetry(&self) -> &Arc<Telemetry> {
        &self.core.telemetry
    }

    /// Returns the limits of this server.
    pub fn limits(&self) -> &ServerLimits {
        &self.core.limits
    }

    /// Accepts connections until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        accept_connections(self, listener, serve_http).await;
    }

    /// Ends all connections after [`Self::serve`] was dropped: idle ones at once, and others after their response. The service
    /// ends its streams itself. Returns when all connections have ended, or after the time limit.
    pub async fn shut_down(&self, time_limit: Duration) {
        let _ = timeout(time_limit, self.core.connections.close_all()).await;
    }

    /// Replaces all tokens. Streams and long polls of tokens that are no longer valid end; others are not affected.
    pub fn replace_tokens(&self, tokens: Tokens) -> TokenChanges {
        self.core.replace_tokens(tokens)
    }
}

impl<S: HttpService> RequestHandler for HttpServer<S> {
    type Caller = S::Caller;
    type Upgrade = ServiceUpgrade;

    fn core(&self) -> &ServerCore {
        &self.core
    }

    fn admit(&self, head: &RequestHead, peer: IpAddr) -> Result<Access<S::Caller>, HttpResponse> {
        self.service.admit(head, self.core.client_address(head, peer))
    }

    fn authenticate(&self, head: &RequestHead) -> Result<Principal, HttpResponse> {
        self.core.authenticate(head, |_| Ok(None))
    }

    async fn handle(&self, request: AdmittedRequest<S::Caller>) -> RequestOutcome<ServiceUpgrade> {
        let AdmittedRequest { head, principal, caller, body, peer } = request;
        let is_long_poll = self.service.is_long_poll(&head);
        let handshake = Handshake::new(&head);
        let peer = self.core.client_address(&head, peer);
        let request = ServiceRequest { head, principal: principal.clone(), caller, body, peer };
        let outcome = tokio::select! {
            biased;
            outcome = self.service.handle(request) => outcome,
            () = self.wait_for_revocation(principal.as_ref()), if is_long_poll => unauthorized().into(),
        };
        let kind = match outcome {
            ServiceOutcome::Response(response) => return RequestOutcome::Response(response),
            ServiceOutcome::EventStream(events) => UpgradeKind::EventStream(events),
            ServiceOutcome::WebSocket { subprotocol, run } => match handshake.accept(subprotocol) {
                Ok(accept) => UpgradeKind::WebSocket { accept, subprotocol, run },
                Err(response) => return RequestOutcome::Response(response),
            },
        };
        RequestOutcome::Upgrade(ServiceUpgrade { principal, kind })
    }

    fn route_template(&self, head: &RequestHead) -> &'static str {
        route_template::operator_route(&head.path)
            .or_else(|| self.service.route_template(head))
            .unwrap_or(route_template::OTHER)
    }

    fn is_long_poll(&self, head: &RequestHead) -> bool {
        self.service.is_long_poll(head)
    }

    fn readiness(&self) -> Result<(), String> {
        self.service.readiness()
    }

    fn service_metrics(&self) -> Vec<ServiceMetric> {
        self.service.metrics()
    }

    async fn run_upgrade(
        &self,
        upgrade: ServiceUpgrade,
        stream: impl ConnectionStream + 'static,
        read_ahead: Vec<u8>,
        _slot: ConnectionSlot,
    ) {
        let ServiceUpgrade { principal, kind } = upgrade;
        let revoked = self.wait_for_revocation(principal.as_ref());
        match kind {
            UpgradeKind::EventStream(events) => {
                write_events(&self.core, events, stream, revoked).await;
            }
            UpgradeKind::WebSocket { accept, subprotocol, run } => {
                let stream: Box<dyn ServiceStream> = Box::new(stream);
                let max_bytes = self.core.limits.websocket_bytes;
                let Some(socket) =
                    switch_protocols(max_bytes, &accept, subprotocol, stream, read_ahead).await
                else {
                    return;
                };
                let _listener_guard = self.core.telemetry.track_listener(TransportKind::WebSocket);
                tokio::select! {
                    () = run(socket) => {}
                    () = revoked => {}
                }
            }
        }
    }
}

impl<S> HttpServer<S> {
    /// Waits until the principal's token is no longer valid. Never returns without a principal.
    async fn wait_for_revocation(&self, principal: Option<&Principal>) {
        match principal {
            Some(principal) => self.core.wait_for_revocation(principal).await,
            None => std::future::pending().await,
        }
    }
}

/// An accepted request of a service to turn its connection into a stream.
pub(crate) struct ServiceUpgrade {
    principal: Option<Principal>,
    kind: UpgradeKind,
}

enum UpgradeKind {
    EventStream(mpsc::Receiver<Vec<u8>>),
    WebSocket {
        /// The value of `Sec-WebSocket-Accept`.
        accept: String,
        subprotocol: Option<&'static str>,
        run: Box<dyn FnOnce(ServiceWebSocket) -> HandlerFuture<()> + Send>,
    },
}

impl Upgrade for ServiceUpgrade {
    fn status(&self) -> u16 {
        match self.kind {
            UpgradeKind::EventStream(_) => 200,
            UpgradeKind::WebSocket { .. } => 101,
        }
    }
}

/// The WebSocket handshake in a request. It is kept while the service owns the head.
enum Handshake {
    NotRequested,
    /// Not a `GET` request.
    WrongMethod,
    Requested {
        accept: Result<String, HttpResponse>,
        subprotocols: Vec<String>,
    },
}

impl Handshake {
    fn new(head: &RequestHead) -> Self {
        match (head.header("upgrade"), head.method) {
            (None, _) => Self::NotRequested,
            (Some(_), Method::Get) => Self::Requested {
                accept: accept_key(head),
                subprotocols: head.list("sec-websocket-protocol").into_iter().map(str::to_owned).collect(),
            },
            (Some(_), _) => Self::WrongMethod,
        }
    }

    /// Returns the value of `Sec-WebSocket-Accept`, or the response if the request is not a valid upgrade.
    fn accept(self, subprotocol: Option<&str>) -> Result<String, HttpResponse> {
        let (accept, subprotocols) = match self {
            Self::NotRequested => {
                return Err(upgrade_required("This address requires a WebSocket upgrade."));
            }
            Self::WrongMethod => return Err(HttpResponse::method_not_allowed("GET")),
            Self::Requested { accept, subprotocols } => (accept?, subprotocols),
        };
        match subprotocol {
            Some(name) if !subprotocols.iter().any(|offered| offered == name) => {
                let title = format!("The subprotocol must be {name}.");
                Err(HttpResponse::problem(StatusCode::BadRequest, &title))
            }
            _ => Ok(accept),
        }
    }
}

/// Number of bytes after which no more events are added to a write.
const MAX_WRITE_BYTES: usize = 16 * 1024;

/// Writes server-sent events until the service ends the stream, the client disconnects, or `revoked` returns.
async fn write_events(
    core: &ServerCore,
    mut events: mpsc::Receiver<Vec<u8>>,
    stream: impl ConnectionStream,
    revoked: impl Future<Output = ()>,
) {
    let _listener_guard = core.telemetry.track_listener(TransportKind::Sse);
    let limits = &core.limits;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let writing = async {
        if !write_with_timeout(&mut writer, SSE_RESPONSE_HEAD, limits.response_timeout).await {
            return;
        }
        loop {
            let mut bytes = match timeout(limits.ping_interval, events.recv()).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return,
                Err(_) => sse::HEARTBEAT.as_bytes().to_vec(),
            };
            while bytes.len() < MAX_WRITE_BYTES
                && let Ok(more) = events.try_recv()
            {
                bytes.extend_from_slice(&more);
            }
            if !write_with_timeout(&mut writer, &bytes, limits.message_write_timeout).await {
                return;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = wait_for_disconnect(&mut reader) => {}
        () = revoked => {}
    }
    drop(events);
    let _ = timeout(CLOSE_TIMEOUT, writer.shutdown()).await;
}
