//! `/aaep/v1/ws` for clients without a subprotocol and without a handshake.

use std::sync::Arc;

use futures_util::StreamExt;
use hub::Principal;
use hub::command::{HubCommand, SubscriberMessage};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use super::Compat;
use super::implicit_subscription::{self, ImplicitSubscription};
use super::message_parser::{self, CompatMessage};
use crate::http::{HttpResponse, RequestHead};
use crate::message_transport::websocket::{accept_key, switch_protocols};
use crate::message_transport::{
    CLOSE_TIMEOUT, DisconnectReason, InboundItem, MessageSink, MessageSource, OutboundItem, lingering_close,
};
use crate::server::{HubHandle, Server};
use crate::telemetry::TransportKind;

/// A valid upgrade request for a WebSocket in compatibility mode.
pub(crate) struct Upgrade {
    compat: Arc<Compat>,
    principal: Principal,
    /// The value of `Sec-WebSocket-Accept`.
    accept: String,
}

impl Upgrade {
    pub(super) fn from_request(
        compat: &Arc<Compat>,
        head: &RequestHead,
        principal: &Principal,
    ) -> Result<Self, HttpResponse> {
        Ok(Self { compat: compat.clone(), principal: principal.clone(), accept: accept_key(head)? })
    }

    /// Runs the WebSocket. `read_ahead` holds the bytes that followed the request head.
    pub(crate) async fn run(
        self,
        server: &Server,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin,
        read_ahead: Vec<u8>,
    ) {
        let Self { compat, principal, accept } = self;
        let max_bytes = server.core.limits.websocket_bytes;
        let Some(socket) = switch_protocols(max_bytes, &accept, None, stream, read_ahead).await else {
            return;
        };
        let (mut sink, mut source) = socket.split();
        let _listener_guard = server.hub.telemetry().track_listener(TransportKind::WebSocket);
        let _shutdown_guard = server.hub.delay_shutdown();
        let reason =
            match ImplicitSubscription::open(&server.hub, &principal, server.core.limits.compat).await {
                Err(_) => DisconnectReason::Rejected,
                Ok(mut implicit) => {
                    let reason =
                        exchange_messages(server, &compat, &principal, &mut implicit, &mut source, &mut sink)
                            .await;
                    implicit.close(&implicit.subscription).await;
                    reason
                }
            };
        let _ =
            timeout(CLOSE_TIMEOUT, sink.transmit(OutboundItem::Close { reason, subscription: None })).await;
        if let Ok(socket) = source.reunite(sink) {
            lingering_close(socket.into_inner()).await;
        }
    }
}

/// Receives and sends messages until there is a reason to disconnect.
async fn exchange_messages(
    server: &Server,
    compat: &Compat,
    principal: &Principal,
    implicit: &mut ImplicitSubscription,
    source: &mut (impl MessageSource + Send),
    sink: &mut (impl MessageSink + Send),
) -> DisconnectReason {
    let limits = &server.core.limits;
    let mut pings = tokio::time::interval(limits.ping_interval);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    pings.reset();
    let idle_timeout = limits.ping_interval * 4;
    let mut idle_deadline = Instant::now() + idle_timeout;
    let mut malformed = 0;
    loop {
        let (items, is_last) = tokio::select! {
            biased;
            received = timeout_at(idle_deadline, source.receive()) => {
                idle_deadline = Instant::now() + idle_timeout;
                let response = match received {
                    Err(_) => return DisconnectReason::IdleTimeout,
                    Ok(InboundItem::End(reason)) => return reason,
                    Ok(InboundItem::Message { text, .. }) => handle_message(&server.hub, compat, principal, implicit, text).await,
                    Ok(InboundItem::Malformed) => Err(()),
                    Ok(InboundItem::Alive | InboundItem::TransportReply(_)) => Ok(None),
                };
                if response.is_err() {
                    malformed += 1;
                    if malformed >= limits.malformed_messages {
                        return DisconnectReason::ProtocolViolation;
                    }
                }
                (response.unwrap_or_default().into_iter().map(OutboundItem::Raw).collect(), false)
            }
            frame = implicit.next() => {
                let Some(frame) = frame else { return DisconnectReason::SubscriptionEnded };
                let rendered = implicit.render(&frame);
                (rendered.messages.into_iter().map(OutboundItem::Raw).collect::<Vec<_>>(), rendered.is_last)
            }
            _ = pings.tick() => (vec![OutboundItem::Ping], false),
        };
        for item in items {
            if !timeout(limits.message_write_timeout, sink.transmit(item)).await.unwrap_or(false) {
                return DisconnectReason::ConnectionLost;
            }
        }
        if is_last {
            return DisconnectReason::SubscriptionEnded;
        }
    }
}

/// Handles a message. Returns the response to send, if any. Fails if the message is not JSON.
async fn handle_message(
    hub: &HubHandle,
    compat: &Compat,
    principal: &Principal,
    implicit: &mut ImplicitSubscription,
    text: String,
) -> Result<Option<String>, ()> {
    Ok(match message_parser::parse(&text).ok_or(())? {
        CompatMessage::UserInput { text, user_id } => {
            match compat.start_session(principal, text, user_id).await {
                Ok(_) => None,
                // These clients have no message type for errors, so they get the problem details that HTTP returns.
                Err(problem) => Some(String::from_utf8_lossy(problem.body_bytes()).into_owned()),
            }
        }
        CompatMessage::Subscribe => {
            let response = implicit_subscription::subscribe(hub, principal, &text).await;
            if let Some(subscription) = &response.subscription {
                implicit.switch_subscription(subscription).await;
            }
            Some(response.json)
        }
        CompatMessage::Renegotiate => {
            implicit_subscription::renegotiate(hub, principal, &text).await.map(|response| response.json)
        }
        CompatMessage::Close => {
            hub.ask(principal.clone(), HubCommand::SendMessage { message: SubscriberMessage::parse(&text) })
                .await;
            None
        }
        CompatMessage::Reply { token } => {
            implicit_subscription::send_reply(
                hub,
                principal,
                Some(implicit.subscription_for_reply(token.as_deref())),
                text,
            )
            .await;
            None
        }
    })
}
