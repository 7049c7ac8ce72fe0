//! gRPC (§B.5): a stream of `AaepMessage` in both directions, over HTTP/2.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aaep::json::Tape;
use futures_util::{Stream, stream};
use grpc::tonic::codegen::Service;
use grpc::tonic::{self, Request, Response, Status, Streaming};
use grpc::{AaepMessage, AaepService, AaepServiceServer, GetManifestRequest, Manifest};
use hub::Principal;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedRwLockReadGuard, mpsc, watch};
use tokio::time::timeout;

use super::subscription_flow::{close_message, message_type};
use super::{
    CLOSE_TIMEOUT, DisconnectReason, InboundItem, MessageSink, MessageSource, OutboundItem, WireLimits,
    run_subscription,
};
use crate::http_server::ConnectionSlot;
use crate::server::Server;
use crate::telemetry::TransportKind;

/// Maximum number of bytes of one stream that HTTP/2 buffers. Further messages wait in the listener's queue.
const SEND_BUFFER_BYTES: usize = 16 * 1024;

/// The method that checks the caller's token before it reads a message.
const SUBSCRIBE_PATH: &str = "/aaep.v1.AaepService/Subscribe";

/// Delays the shutdown of the hub until the last message is written.
type ShutdownGuard = Option<OwnedRwLockReadGuard<()>>;

/// Serves one connection until it ends, or has no stream for too long.
pub(crate) async fn run(
    server: Arc<Server>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    slot: ConnectionSlot,
) {
    let limits = server.core.limits;
    let (open_streams, stream_count) = watch::channel(0);
    let (stop, mut stopped) = mpsc::channel(1);
    let connection = Arc::new(GrpcConnection { server, slot: Mutex::new(slot), open_streams, stop });
    let service = AaepServiceServer::from_arc(connection);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        // tonic buffers the message of a method with a single one before the method runs. Such a method needs no token.
        let checks_token_first = request.uri().path() == SUBSCRIBE_PATH;
        let max_bytes = if checks_token_first { limits.grpc_bytes } else { limits.head_bytes };
        service.clone().max_decoding_message_size(max_bytes).call(request)
    });
    let max_streams = u32::try_from(limits.grpc_streams).unwrap_or(u32::MAX);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.ping_interval)
        .keep_alive_timeout(limits.ping_interval * 3)
        .max_concurrent_streams(max_streams)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER_BYTES);
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let _guard: ShutdownGuard = tokio::select! {
        _ = serving.as_mut() => return,
        () = wait_until_unused(stream_count, limits.head_timeout, limits.idle_timeout) => None,
        guard = stopped.recv() => guard.flatten(),
    };
    serving.as_mut().graceful_shutdown();
    let _ = timeout(CLOSE_TIMEOUT, serving).await;
}

/// Returns when the connection has had no authenticated stream for too long: at first for `first`, later for `idle`.
async fn wait_until_unused(mut streams: watch::Receiver<usize>, first: Duration, idle: Duration) {
    let mut limit = first;
    while timeout(limit, streams.wait_for(|count| *count > 0)).await.is_ok() {
        let _ = streams.wait_for(|count| *count == 0).await;
        limit = idle;
    }
}

struct GrpcConnection {
    server: Arc<Server>,
    slot: Mutex<ConnectionSlot>,
    /// Number of open streams whose callers have authenticated.
    open_streams: watch::Sender<usize>,
    /// Ends the connection because the hub is stopping.
    stop: mpsc::Sender<ShutdownGuard>,
}

impl GrpcConnection {
    fn authenticate<T>(&self, request: &Request<T>) -> Result<Principal, Status> {
        let metadata = request.metadata();
        // Only browsers send `Origin`, and no page needs this service.
        if metadata.contains_key("origin") {
            return Err(Status::permission_denied("Requests from web pages are not allowed."));
        }
        // A proxy could check another one of several headers.
        let mut headers = metadata.get_all("authorization").iter();
        let header = headers.next().and_then(|value| value.to_str().ok());
        let token = header.filter(|_| headers.next().is_none()).and_then(|header| {
            let (scheme, token) = header.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let principal = self.server.authenticate_token(token).ok_or_else(|| {
            self.server.hub.telemetry().record_auth_failure("grpc");
            Status::unauthenticated("A valid token is required.")
        })?;
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).mark_authenticated();
        Ok(principal)
    }
}

/// Counts an open stream until it is dropped.
struct StreamGuard(watch::Sender<usize>);

impl StreamGuard {
    fn new(open_streams: &watch::Sender<usize>) -> Self {
        open_streams.send_modify(|count| *count += 1);
        Self(open_streams.clone())
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

type MessageStream = Pin<Box<dyn Stream<Item = Result<AaepMessage, Status>> + Send>>;

#[tonic::async_trait]
impl AaepService for GrpcConnection {
    type SubscribeStream = MessageStream;

    async fn subscribe(
        &self,
        request: Request<Streaming<AaepMessage>>,
    ) -> Result<Response<MessageStream>, Status> {
        let principal = self.authenticate(&request)?;
        let stream_guard = StreamGuard::new(&self.open_streams);
        let (sender, receiver) = mpsc::channel(1);
        let mut source =
            GrpcSource { messages: request.into_inner(), has_ended: false, sender: sender.clone() };
        let mut sink =
            GrpcSink { sender, shutdown_guard: self.server.hub.delay_shutdown(), stop: self.stop.clone() };
        let server = self.server.clone();
        tokio::spawn(async move {
            let _stream_guard = stream_guard;
            let _listener_guard = server.hub.telemetry().track_listener(TransportKind::Grpc);
            let limits = WireLimits {
                first_message_timeout: Some(server.core.limits.head_timeout),
                // HTTP/2 has its own pings.
                ping_interval: None,
                max_malformed: Some(server.core.limits.malformed_messages),
                write_timeout: server.core.limits.message_write_timeout,
            };
            tokio::select! {
                _ = run_subscription(&server.hub, &principal, &limits, &mut source, &mut sink) => {}
                // The hub normally closes the subscription itself first, with a reason.
                () = async { server.wait_for_revocation(&principal).await; tokio::time::sleep(CLOSE_TIMEOUT).await } => {}
            }
        });
        let messages = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<_>| {
            receiver.recv().await.map(|item| (item, receiver))
        });
        Ok(Response::new(Box::pin(messages)))
    }

    /// Returns the manifest to anyone, as over HTTP.
    async fn get_manifest(&self, _: Request<GetManifestRequest>) -> Result<Response<Manifest>, Status> {
        Ok(Response::new(Manifest { json: self.server.manifest.clone().into_bytes() }))
    }
}

struct GrpcSource {
    messages: Streaming<AaepMessage>,
    /// Whether the caller sends no more messages. It may still receive.
    has_ended: bool,
    /// Closed when the caller receives no more messages.
    sender: mpsc::Sender<Result<AaepMessage, Status>>,
}

impl MessageSource for GrpcSource {
    async fn receive(&mut self) -> InboundItem {
        if !self.has_ended {
            match self.messages.message().await {
                Ok(Some(message)) => {
                    return match String::from_utf8(message.json) {
                        Ok(text) => InboundItem::Message { text, request_id: None },
                        Err(_) => InboundItem::Malformed,
                    };
                }
                Ok(None) => self.has_ended = true,
                Err(status) if status.code() == tonic::Code::OutOfRange => {
                    return InboundItem::End(DisconnectReason::TooLarge);
                }
                Err(_) => return InboundItem::End(DisconnectReason::ConnectionLost),
            }
        }
        self.sender.closed().await;
        InboundItem::End(DisconnectReason::ConnectionLost)
    }
}

struct GrpcSink {
    sender: mpsc::Sender<Result<AaepMessage, Status>>,
    shutdown_guard: ShutdownGuard,
    stop: mpsc::Sender<ShutdownGuard>,
}

impl GrpcSink {
    async fn send(&self, json: &str) -> bool {
        let mut tape = Tape::default();
        let kind = tape.read(json).ok().and_then(|doc| message_type(doc.root()));
        let message_type = kind.map(std::borrow::Cow::into_owned).unwrap_or_default();
        self.sender.send(Ok(AaepMessage { json: json.as_bytes().to_vec(), message_type })).await.is_ok()
    }
}

impl MessageSink for GrpcSink {
    async fn transmit(&mut self, item: OutboundItem) -> bool {
        match item {
            OutboundItem::Frame(frame) => self.send(frame.json()).await,
            OutboundItem::Reply { json, .. } | OutboundItem::Raw(json) => self.send(&json).await,
            OutboundItem::Ping | OutboundItem::InvalidMessage { .. } => !self.sender.is_closed(),
            OutboundItem::Close { reason, subscription } => {
                if let Some(subscription) = subscription.filter(|_| reason != DisconnectReason::ClosedByPeer)
                {
                    self.send(&close_message(&subscription, reason)).await;
                }
                if let Some(code) = status_code(reason) {
                    let status = Status::new(code, reason.code_and_message().1);
                    let _ = self.sender.send(Err(status)).await;
                }
                if reason == DisconnectReason::HubStopping {
                    let _ = self.stop.try_send(self.shutdown_guard.take());
                }
                true
            }
        }
    }
}

/// Returns the status with which a stream ends, or `None` if it ends with success.
fn status_code(reason: DisconnectReason) -> Option<tonic::Code> {
    Some(match reason {
        DisconnectReason::SubscriptionEnded | DisconnectReason::Replaced | DisconnectReason::ClosedByPeer => {
            return None;
        }
        DisconnectReason::Rejected => tonic::Code::FailedPrecondition,
        DisconnectReason::Unauthenticated | DisconnectReason::TokenRevoked => tonic::Code::Unauthenticated,
        DisconnectReason::Denied => tonic::Code::PermissionDenied,
        DisconnectReason::ProtocolViolation | DisconnectReason::SlowConsumer => {
            tonic::Code::ResourceExhausted
        }
        DisconnectReason::TooLarge => tonic::Code::OutOfRange,
        DisconnectReason::FramingError => tonic::Code::InvalidArgument,
        DisconnectReason::IdleTimeout => tonic::Code::DeadlineExceeded,
        DisconnectReason::HubStopping | DisconnectReason::ConnectionLost => tonic::Code::Unavailable,
    })
}
