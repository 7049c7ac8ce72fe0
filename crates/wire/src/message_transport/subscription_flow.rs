//! The protocol of a subscription, independent of the transport.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Duration;

use aaep::SubscriptionId;
use aaep::json::{JsonValue, JsonWriter, Tape};
use aaep::message::Message;
use hub::Principal;
use hub::command::{HubCommand, HubReply, SubscriberMessage};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use super::resume_positions::ResumePositionTracker;
use super::{
    CLOSE_TIMEOUT, DisconnectReason, InboundItem, MessageSink, MessageSource, OutboundItem, WireLimits,
};
use crate::outbound_queue::OutboundQueue;
use crate::server::HubHandle;

/// Runs one subscription from its request to its end.
pub(crate) async fn run_subscription(
    hub: &HubHandle,
    principal: &Principal,
    limits: &WireLimits,
    source: &mut (impl MessageSource + Send),
    sink: &mut (impl MessageSink + Send),
) -> DisconnectReason {
    let connection = SubscriberConnection { hub, principal, limits };
    match connection.handshake(source, sink).await {
        Ok(subscribed) => {
            let _shutdown_guard = hub.delay_shutdown();
            connection.exchange_messages(subscribed, source, sink).await
        }
        Err(reason) => {
            let _ = timeout(CLOSE_TIMEOUT, sink.transmit(OutboundItem::Close { reason, subscription: None }))
                .await;
            reason
        }
    }
}

struct SubscriberConnection<'c> {
    hub: &'c HubHandle,
    principal: &'c Principal,
    limits: &'c WireLimits,
}

/// Signals that the hub has closed the subscription, with the reason if the hub gave one.
#[derive(Default)]
struct HubClose {
    signal: Notify,
    reason: OnceLock<DisconnectReason>,
}

/// A subscription and the queue of its frames.
struct ActiveSubscription {
    id: SubscriptionId,
    frames: OutboundQueue,
    resume_positions: ResumePositionTracker,
}

impl SubscriberConnection<'_> {
    /// Receives the subscription request and answers it. Returns the subscription, or the reason to disconnect.
    async fn handshake(
        &self,
        source: &mut impl MessageSource,
        sink: &mut impl MessageSink,
    ) -> Result<ActiveSubscription, DisconnectReason> {
        let deadline = self.limits.first_message_timeout.map(|time| Instant::now() + time);
        loop {
            let received = match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline, source.receive())
                    .await
                    .map_err(|_| DisconnectReason::IdleTimeout)?,
                None => source.receive().await,
            };
            let item = match received {
                InboundItem::Alive => continue,
                InboundItem::End(reason) => return Err(reason),
                InboundItem::TransportReply(text) => OutboundItem::Raw(text),
                InboundItem::Malformed => OutboundItem::InvalidMessage { request_id: None },
                InboundItem::Message { text, request_id } if let Some(request) = parse_request(&text) => {
                    let (json, outcome) = self.subscribe(request).await;
                    // The listener is attached before the answer is sent, so that it misses no event after the answer.
                    let subscribed = match outcome {
                        Ok((subscription, resume_positions)) => {
                            Ok(self.attach(subscription, resume_positions).await)
                        }
                        Err(reason) => Err(reason),
                    };
                    return match (
                        transmit_with_timeout(self.limits, sink, OutboundItem::Reply { json, request_id })
                            .await,
                        subscribed,
                    ) {
                        (Ok(()), subscribed) => subscribed,
                        (Err(reason), subscribed) => {
                            if let Ok(ActiveSubscription { id, .. }) = subscribed {
                                self.close_subscription(&id).await;
                            }
                            Err(reason)
                        }
                    };
                }
                InboundItem::Message { request_id, .. } => OutboundItem::InvalidMessage { request_id },
            };
            // A client whose first message is not a subscription request does not speak this protocol.
            if matches!(item, OutboundItem::InvalidMessage { .. }) && self.limits.max_malformed.is_some() {
                return Err(DisconnectReason::ProtocolViolation);
            }
            transmit_with_timeout(self.limits, sink, item).await?;
        }
    }

    /// Sends a subscription request to the hub. Returns the answer, and the subscription or the reason to disconnect.
    async fn subscribe(
        &self,
        request: HubCommand,
    ) -> (String, Result<(SubscriptionId, ResumePositionTracker), DisconnectReason>) {
        let reply = self.hub.ask(self.principal.clone(), request).await;
        match &reply {
            HubReply::Subscribed { accepted, sends_resume_positions } => {
                let subscription =
                    (accepted.subscription_id.clone(), ResumePositionTracker::new(*sends_resume_positions));
                (reply.to_json().unwrap_or_default(), Ok(subscription))
            }
            other => {
                let (json, code) = rejection_of(other);
                let reason = match code.as_str() {
                    "authentication_required" => DisconnectReason::Unauthenticated,
                    "authorization_denied" => DisconnectReason::Denied,
                    _ => DisconnectReason::Rejected,
                };
                (json, Err(reason))
            }
        }
    }

    async fn attach(
        &self,
        id: SubscriptionId,
        resume_positions: ResumePositionTracker,
    ) -> ActiveSubscription {
        let listener = self.hub.new_listener_id();
        let attach = HubCommand::Attach { subscription: id.clone(), last_event_id: None, listener };
        let (frames, sink) = OutboundQueue::new(self.hub, listener);
        // If attaching fails, the sink is dropped, which also ends the connection.
        if self.hub.ask(self.principal.clone(), attach).await == HubReply::Done {
            self.hub.connect_listener(listener, sink);
        }
        ActiveSubscription { id, frames, resume_positions }
    }

    /// Runs the receive loop and the send loop concurrently until one of them ends.
    async fn exchange_messages(
        &self,
        subscribed: ActiveSubscription,
        source: &mut (impl MessageSource + Send),
        sink: &mut (impl MessageSink + Send),
    ) -> DisconnectReason {
        let ActiveSubscription { id: subscription, frames, resume_positions } = subscribed;
        let subscription = &subscription;
        let (items_sender, items) = mpsc::channel(4);
        let hub_close = HubClose::default();
        let receiving = async {
            let reason = self.receive_loop(subscription, source, &items_sender, &hub_close).await;
            let must_close = !matches!(
                reason,
                DisconnectReason::SubscriptionEnded
                    | DisconnectReason::Replaced
                    | DisconnectReason::TokenRevoked
                    | DisconnectReason::ClosedByPeer
                    | DisconnectReason::SlowConsumer
                    | DisconnectReason::HubStopping
            );
            if must_close {
                self.close_subscription(subscription).await;
            }
            let final_item = OutboundItem::Close { reason, subscription: Some(subscription.clone()) };
            let _ = items_sender.send(final_item).await;
            reason
        };
        let sending = self.send_loop(sink, items, frames, resume_positions, &hub_close);
        tokio::pin!(receiving, sending);
        tokio::select! {
            biased;
            reason = &mut receiving => {
                let _ = timeout(CLOSE_TIMEOUT, sending).await;
                reason
            }
            () = &mut sending => {
                self.close_subscription(subscription).await;
                DisconnectReason::ConnectionLost
            }
        }
    }

    /// Handles messages one after the other until there is a reason to disconnect.
    async fn receive_loop(
        &self,
        subscription: &SubscriptionId,
        source: &mut impl MessageSource,
        items_sender: &mpsc::Sender<OutboundItem>,
        hub_close: &HubClose,
    ) -> DisconnectReason {
        // Four intervals, so that the listener has time to answer the third ping.
        let idle_timeout = self.limits.ping_interval.map_or(Duration::MAX, |ping| ping * 4);
        let mut malformed = 0;
        loop {
            let received = tokio::select! {
                received = timeout(idle_timeout, source.receive()) => received.unwrap_or(InboundItem::End(DisconnectReason::IdleTimeout)),
                () = hub_close.signal.notified() => return hub_close.reason.get().copied().unwrap_or(DisconnectReason::SubscriptionEnded),
            };
            let (item, reason) = match received {
                InboundItem::Alive => continue,
                InboundItem::End(reason) => return reason,
                InboundItem::TransportReply(text) => (Some(OutboundItem::Raw(text)), None),
                InboundItem::Malformed => (Some(OutboundItem::InvalidMessage { request_id: None }), None),
                InboundItem::Message { text, request_id } => {
                    self.handle_message(subscription, &text, request_id).await
                }
            };
            if matches!(item, Some(OutboundItem::InvalidMessage { .. })) {
                malformed += 1;
            }
            if let Some(item) = item
                && items_sender.send(item).await.is_err()
            {
                return DisconnectReason::ConnectionLost;
            }
            if let Some(reason) = reason {
                return reason;
            }
            if self.limits.max_malformed.is_some_and(|max| malformed >= max) {
                return DisconnectReason::ProtocolViolation;
            }
        }
    }

    /// Handles a message after the handshake. A connection may renegotiate or close only its own subscription. All other
    /// messages are passed to the hub, and their outcome is not reported (C-D1).
    async fn handle_message(
        &self,
        subscription: &SubscriptionId,
        text: &str,
        request_id: Option<String>,
    ) -> (Option<OutboundItem>, Option<DisconnectReason>) {
        match parse_message(text, subscription) {
            None => (Some(OutboundItem::InvalidMessage { request_id }), None),
            Some(IncomingMessage::Close) => {
                self.close_subscription(subscription).await;
                (None, Some(DisconnectReason::ClosedByPeer))
            }
            Some(IncomingMessage::Renegotiate(message)) => {
                match self.send_to_hub(subscription, message).await {
                    reply @ (HubReply::Renegotiated(_) | HubReply::SubscriptionRejected(_)) => {
                        let json = reply.to_json().unwrap_or_default();
                        let reason = matches!(reply, HubReply::SubscriptionRejected(_))
                            .then_some(DisconnectReason::Rejected);
                        (Some(OutboundItem::Reply { json, request_id }), reason)
                    }
                    _ => (Some(OutboundItem::InvalidMessage { request_id }), None),
                }
            }
            Some(IncomingMessage::Other(message)) => {
                self.send_to_hub(subscription, message).await;
                (None, None)
            }
        }
    }

    async fn send_to_hub(&self, subscription: &SubscriptionId, message: SubscriberMessage) -> HubReply {
        let subscription = subscription.clone();
        self.hub
            .ask(self.principal.clone(), HubCommand::SendMessageOnSubscription { subscription, message })
            .await
    }

    async fn close_subscription(&self, subscription: &SubscriptionId) {
        self.send_to_hub(subscription, SubscriberMessage::Close(subscription.clone())).await;
    }

    /// Sends answers and events until the final item has been sent or the connection is lost. Answers are sent first.
    async fn send_loop(
        &self,
        sink: &mut impl MessageSink,
        mut items: mpsc::Receiver<OutboundItem>,
        mut frames: OutboundQueue,
        mut resume_positions: ResumePositionTracker,
        hub_close: &HubClose,
    ) {
        let mut pings = tokio::time::interval(self.limits.ping_interval.unwrap_or(CLOSE_TIMEOUT));
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        pings.reset();
        let mut is_queue_open = true;
        loop {
            let item = tokio::select! {
                biased;
                item = items.recv() => match item {
                    Some(item) => item,
                    None => return,
                },
                _ = pings.tick(), if self.limits.ping_interval.is_some() => OutboundItem::Ping,
                frame = frames.next(), if is_queue_open => {
                    let Some(frame) = frame else {
                        is_queue_open = false;
                        hub_close.signal.notify_one();
                        continue;
                    };
                    if let Some(close_reason) = frame.close_reason() {
                        let _ = hub_close.reason.set(DisconnectReason::from_hub(close_reason));
                        continue;
                    }
                    OutboundItem::Frame(frame)
                }
            };
            let is_final = matches!(item, OutboundItem::Close { .. });
            // Heartbeats and the resume positions of SSE are frames without JSON. They are sent only over SSE.
            let frame = if let OutboundItem::Frame(frame) = &item { Some(frame.clone()) } else { None };
            let is_empty = frame.as_ref().is_some_and(|frame| frame.json().is_empty());
            if !is_empty && transmit_with_timeout(self.limits, sink, item).await.is_err() || is_final {
                return;
            }
            let Some(frame) = frame else { continue };
            resume_positions.record(&frame);
            if let Some(resume_position) = resume_positions.take_due(frames.is_empty())
                && transmit_with_timeout(self.limits, sink, OutboundItem::Frame(resume_position))
                    .await
                    .is_err()
            {
                return;
            }
        }
    }
}

pub(super) const SUBSCRIPTION_REQUEST: &str = "subscription.request";
pub(super) const SUBSCRIPTION_RENEGOTIATE: &str = "subscription.renegotiate";
pub(super) const SUBSCRIPTION_CLOSE: &str = "subscription.close";

async fn transmit_with_timeout(
    limits: &WireLimits,
    sink: &mut impl MessageSink,
    item: OutboundItem,
) -> Result<(), DisconnectReason> {
    if timeout(limits.write_timeout, sink.transmit(item)).await.unwrap_or(false) {
        Ok(())
    } else {
        Err(DisconnectReason::ConnectionLost)
    }
}

/// A message after the handshake.
enum IncomingMessage {
    /// A renegotiation, which may be invalid.
    Renegotiate(SubscriberMessage),
    Close,
    Other(SubscriberMessage),
}

/// Parses a message after the handshake. Returns `None` if it has no type, requests a second subscription, or would
/// change another subscription.
fn parse_message(text: &str, subscription: &SubscriptionId) -> Option<IncomingMessage> {
    let mut tape = Tape::default();
    let doc = tape.read(text).ok()?;
    let root = doc.root();
    let own_id = || root.member("subscription_id")?.text().filter(|id| *id == subscription.as_str());
    match &*message_type(root)? {
        SUBSCRIPTION_REQUEST => None,
        SUBSCRIPTION_RENEGOTIATE => {
            own_id().map(|_| IncomingMessage::Renegotiate(SubscriberMessage::read(&doc)))
        }
        SUBSCRIPTION_CLOSE => own_id().map(|_| IncomingMessage::Close),
        _ => Some(IncomingMessage::Other(SubscriberMessage::read(&doc))),
    }
}

/// Parses the first message. Returns `None` if it is not a subscription request.
fn parse_request(text: &str) -> Option<HubCommand> {
    let mut tape = Tape::default();
    let doc = tape.read(text).ok()?;
    (message_type(doc.root())? == SUBSCRIPTION_REQUEST).then(|| HubCommand::subscribe(Message::read(&doc)))
}

/// Returns the type of a message, or `None` if the message is not an object with a type.
pub(super) fn message_type(message: JsonValue<'_>) -> Option<Cow<'_, str>> {
    message.member("type")?.text()
}

/// Returns the `subscription.rejected` message for a rejected request, and its reason code.
pub(crate) fn rejection_of(reply: &HubReply) -> (String, String) {
    let (code, message) = match reply {
        HubReply::SubscriptionRejected(rejected) => {
            return (reply.to_json().unwrap_or_default(), rejected.reason_code.as_str().to_owned());
        }
        HubReply::Forbidden => ("authorization_denied", "This token does not allow that.".to_owned()),
        HubReply::LimitReached(limit) => ("rate_limit", limit.to_string()),
        HubReply::Unavailable(message) => ("transport_unavailable", message.to_string()),
        HubReply::Malformed(message) => ("unknown", message.to_string()),
        _ => ("unknown", "The hub sent an unexpected reply.".to_owned()),
    };
    (rejected_message(code, &message), code.to_owned())
}

/// Writes a `subscription.rejected` message.
pub(crate) fn rejected_message(code: &str, message: &str) -> String {
    write_object(&[("type", "subscription.rejected"), ("reason_code", code), ("reason_message", message)])
}

/// Writes a `subscription.close` message with its reason.
pub(super) fn close_message(subscription: &SubscriptionId, reason: DisconnectReason) -> String {
    let (code, message) = reason.code_and_message();
    write_object(&[
        ("type", SUBSCRIPTION_CLOSE),
        ("subscription_id", subscription.as_str()),
        ("reason_code", code),
        ("reason_message", message),
    ])
}

fn write_object(members: &[(&str, &str)]) -> String {
    let mut writer = JsonWriter::default();
    writer.open_object();
    for (name, text) in members {
        writer.key(name);
        writer.text(text);
    }
    writer.close_object();
    writer.finish()
}
