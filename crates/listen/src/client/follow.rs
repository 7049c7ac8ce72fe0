//! Subscribes, receives events, and reconnects after every loss.

use std::process::ExitStatus;
use std::time::Duration;

use ::http::header::{ACCEPT, CACHE_CONTROL, HeaderName};
use aaep::SubscriptionId;
use aaep::json::Tape;
use aaep::message::{Message, ReasonCode, SubscriptionAccepted, SubscriptionClose, SubscriptionRejected};
use client::sse::{SseEvent, SseEventError, SseParser};
use client::{Backoff, HttpResponse};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::address::HubTransport;
use super::manifest::ManifestMonitor;
use super::message_flow::MessageSubscription;
use super::{Address, ConnectionError, SAYSO_PREFIX, http};
use crate::{ManifestPolicy, ManifestStatus};

/// Something that happened on the connection to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The stream is open.
    Open {
        /// The subscription, or `None` if the producer has no subscriptions. Such a producer is not a hub, and receives replies
        /// at another path ([`Address::without_hub`]).
        subscription: Option<SubscriptionId>,
        /// The hub's notes about terms that it reduced.
        notes: Option<String>,
        /// Whether no event was lost: the earlier subscription continues, or the new one starts after the last received event.
        resumed: bool,
    },
    /// The hub's manifest was checked. Sent before the stream is open, and later only if the status changes.
    ManifestChecked(ManifestStatus),
    /// The hub rejected the request for this reason. A smaller request was sent.
    RequestReduced(ConnectionError),
    /// A new subscription was created, with this request and this response, as JSON. Sent before the stream is open.
    Subscribed {
        /// `subscription.request`
        request: String,
        /// `subscription.accepted`
        accepted: String,
    },
    /// An event or a message, as JSON.
    Text(String),
    /// A diagnostic line from the program that is being listened to: standard error, or a line of standard output that is not a message. It is
    /// sanitized.
    Diagnostic(String),
    /// A message was too long and was skipped.
    MessageTooLong,
    /// The connection is lost. The client tries to reconnect.
    Lost(ConnectionLoss),
    /// The connection ended for this reason. No other event follows.
    Ended(ConnectionLoss),
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionLoss {
    /// The hub did not respond, or the connection was closed.
    Unreachable(ConnectionError),
    /// Reconnecting is pointless: the hub refused the connection or closed it for good, its manifest is not acceptable, or it is
    /// not a hub.
    Refused(ConnectionError),
    /// The program that was listened to has ended. Without a status, it closed its output and had to be killed.
    ProgramEnded(Option<ExitStatus>),
}

impl ConnectionLoss {
    /// Returns the reason.
    pub fn error(&self) -> &ConnectionError {
        match self {
            Self::Unreachable(error) | Self::Refused(error) => error,
            Self::ProgramEnded(_) => &ConnectionError::ClosedByHub,
        }
    }
}

/// The first backoff after a lost connection. Each failed attempt doubles it.
const MIN_BACKOFF: Duration = Duration::from_millis(200);
/// The maximum backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(15);
/// A connection that lasted this long resets the backoff.
const STABLE_CONNECTION: Duration = Duration::from_secs(5);
/// How long the hub may be silent. It sends a heartbeat every 15 seconds.
pub(super) const LIVENESS_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum size of a message, in bytes. An event may be up to 1 MiB long.
pub(super) const MAX_MESSAGE_BYTES: usize = 2 * 1024 * 1024;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The facts about earlier subscriptions that the next subscription request depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeContext {
    /// The number of times that the hub closed the subscription because this consumer was too slow (§5.6.2).
    pub slow_consumer_closes: u32,
    /// Whether to request only the required capabilities, without extensions, because the hub rejected the earlier request
    /// (`capabilities_incompatible`, §7.3.1).
    pub requests_minimum: bool,
    /// The event after which to resume, if an earlier subscription has ended.
    pub after_event_id: Option<String>,
    /// Whether to request resume positions, because the transport does not report one with each event.
    pub wants_positions: bool,
}

impl SubscribeContext {
    /// Returns the rate to request: the preferred rate, halved each time that this consumer was too slow.
    pub fn max_events_per_second(&self, preferred: Option<u64>) -> Option<u64> {
        if self.slow_consumer_closes == 0 {
            return preferred;
        }
        Some(
            preferred
                .unwrap_or(ASSUMED_EVENTS_PER_SECOND)
                .checked_shr(self.slow_consumer_closes)
                .unwrap_or(0)
                .max(1),
        )
    }

    /// Records that the hub closed the subscription, and returns what that means for the next one.
    pub(super) fn apply_close(&mut self, close: &SubscriptionClose) -> CloseEffect {
        match close.reason_code.as_deref() {
            Some("producer_shutdown") => return CloseEffect::Resumable,
            Some("replaced") => return CloseEffect::Final(ConnectionError::Replaced),
            Some("token_removed") => return CloseEffect::Final(ConnectionError::TokenRevoked),
            Some("slow_consumer") => {
                self.slow_consumer_closes = self.slow_consumer_closes.saturating_add(1);
            }
            _ => {}
        }
        CloseEffect::Ended
    }
}

/// The effect on the listener when the hub closes the subscription.
pub(super) enum CloseEffect {
    /// The subscription can be resumed.
    Resumable,
    /// A new subscription is needed.
    Ended,
    /// The listener must not reconnect.
    Final(ConnectionError),
}

/// The rate that is halved if there is no preferred rate, in events per second.
const ASSUMED_EVENTS_PER_SECOND: u64 = 100;

/// Follows a hub until it refuses the connection or the receiver is dropped. `request` creates the request for each new subscription. With a
/// `policy`, the hub's manifest is checked before each stream is opened.
///
/// If the first attempt fails, the function returns. After a successful first attempt, it reconnects after every loss: after a
/// growing backoff, or as soon as [`Address::retry_now`] is called.
pub async fn follow(
    address: Address,
    policy: Option<ManifestPolicy>,
    request: impl Fn(SubscribeContext) -> String,
    events: mpsc::Sender<ConnectionEvent>,
) {
    follow_with_backoff(address, policy, request, events, MIN_BACKOFF).await;
}

/// Like [`follow`], with this minimum backoff.
pub(super) async fn follow_with_backoff(
    address: Address,
    policy: Option<ManifestPolicy>,
    request: impl Fn(SubscribeContext) -> String,
    events: mpsc::Sender<ConnectionEvent>,
    min_backoff: Duration,
) {
    let retry_address = address.clone();
    let manifest = ManifestMonitor::new(policy);
    let mut mode = match address.transport {
        HubTransport::Sse => ConnectionMode::Sse(Box::new(SseSubscription {
            address,
            manifest,
            is_hubless: false,
            context: SubscribeContext::default(),
            subscription: None,
            accepted: None,
            last_event_id: None,
            is_resumed: false,
            final_reason: None,
        })),
        _ => ConnectionMode::Messages(Box::new(MessageSubscription::new(address, manifest))),
    };
    let initial_backoff = Backoff::new(min_backoff, MAX_BACKOFF);
    let mut backoff = initial_backoff;
    let mut was_open = false;
    loop {
        let started_at = Instant::now();
        let attempt = async {
            match &mut mode {
                ConnectionMode::Sse(subscription) => subscription.run_once(&request, &events, was_open).await,
                ConnectionMode::Messages(subscription) => {
                    subscription.run_once(&request, &events, was_open).await
                }
            }
        };
        let outcome = tokio::select! {
            outcome = attempt => outcome,
            () = events.closed() => return mode.end().await,
        };
        let loss = match outcome {
            AttemptOutcome::AfterOpen(loss) => {
                was_open = true;
                // The backoff also applies to a hub that accepts the connection and closes it immediately.
                if started_at.elapsed() >= STABLE_CONNECTION {
                    backoff = initial_backoff;
                }
                loss
            }
            AttemptOutcome::BeforeOpen(loss) => loss,
        };
        if matches!(loss, ConnectionLoss::Refused(_) | ConnectionLoss::ProgramEnded(_)) || !was_open {
            let _ = events.send(ConnectionEvent::Ended(loss)).await;
            return;
        }
        if events.send(ConnectionEvent::Lost(loss)).await.is_err() {
            return;
        }
        tokio::select! {
            () = sleep(backoff.delay()) => backoff.grow(),
            // The sleep limits the rate of forced retries.
            () = async { retry_address.wait_for_retry().await; sleep(MIN_BACKOFF).await } => {}
            () = events.closed() => return,
        }
    }
}

enum ConnectionMode {
    Sse(Box<SseSubscription>),
    /// A message transport, on which every connection needs a new subscription.
    Messages(Box<MessageSubscription>),
}

impl ConnectionMode {
    /// Ends the program that was listened to, if there is one.
    async fn end(&mut self) {
        if let Self::Messages(subscription) = self {
            subscription.end().await;
        }
    }
}

struct SseSubscription {
    address: Address,
    manifest: ManifestMonitor,
    /// Whether the address belongs to a producer without a hub, which has no handshake (`docs/interop.md`).
    is_hubless: bool,
    context: SubscribeContext,
    subscription: Option<SubscriptionId>,
    /// The response that accepted the subscription.
    accepted: Option<Box<SubscriptionAccepted>>,
    /// The id of the latest block with an id. A block is one SSE event.
    last_event_id: Option<String>,
    /// Whether the subscription starts after the last event of an earlier one.
    is_resumed: bool,
    /// The hub's reason for a final close.
    final_reason: Option<ConnectionError>,
}

/// The hub's notes, and its complete response.
type AcceptedResponse = (Option<String>, String);

enum SubscribeError {
    /// The hub did not respond.
    Unreachable(ConnectionError),
    /// A later attempt may succeed.
    Temporary(ConnectionError),
    /// The hub cannot grant the request.
    Incompatible(ConnectionError),
    Refused(ConnectionError),
}

/// The outcome of one connection attempt.
pub(super) enum AttemptOutcome {
    AfterOpen(ConnectionLoss),
    BeforeOpen(ConnectionLoss),
}

impl SseSubscription {
    async fn run_once(
        &mut self,
        request: &impl Fn(SubscribeContext) -> String,
        events: &mpsc::Sender<ConnectionEvent>,
        was_open: bool,
    ) -> AttemptOutcome {
        let had_subscription = self.subscription.is_some();
        // Before the first event there is no position to resume from, so events missed until now are lost.
        let mut resumed = had_subscription && (self.last_event_id.is_some() || self.is_resumed);
        let mut notes = None;
        if self.subscription.is_none() && !self.is_hubless {
            let mut requested = request(self.context.clone());
            let mut response = self.subscribe(&requested).await;
            if let Err(SubscribeError::Incompatible(error)) = &response
                && !std::mem::replace(&mut self.context.requests_minimum, true)
            {
                if events.send(ConnectionEvent::RequestReduced(error.clone())).await.is_err() {
                    return AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(
                        ConnectionError::ReceiverClosed,
                    ));
                }
                requested = request(self.context.clone());
                response = self.subscribe(&requested).await;
            }
            match response {
                Ok(None) => {}
                Ok(Some((negotiation_notes, accepted))) => {
                    notes = negotiation_notes;
                    resumed = self.is_resumed;
                    if events
                        .send(ConnectionEvent::Subscribed { request: requested, accepted })
                        .await
                        .is_err()
                    {
                        return AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(
                            ConnectionError::ReceiverClosed,
                        ));
                    }
                }
                // The hub may have capacity later, so a listener that was subscribed before tries again.
                Err(SubscribeError::Temporary(error)) if was_open => {
                    return AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(error));
                }
                Err(SubscribeError::Unreachable(error)) => {
                    return AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(error));
                }
                Err(
                    SubscribeError::Temporary(error)
                    | SubscribeError::Incompatible(error)
                    | SubscribeError::Refused(error),
                ) => {
                    return AttemptOutcome::BeforeOpen(ConnectionLoss::Refused(error));
                }
            }
        }
        if let Err(loss) = self.check_manifest(events).await {
            return AttemptOutcome::BeforeOpen(loss);
        }
        let path = match &self.subscription {
            Some(subscription) => format!("/aaep/v1/events?subscription_id={subscription}"),
            None => "/events".to_owned(),
        };
        let mut headers = vec![(ACCEPT, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
        headers.extend(self.last_event_id.as_deref().map(|last| (LAST_EVENT_ID, last)));
        let mut response = match http::get(&self.address, &path, &headers).await {
            Ok(response) => response,
            Err(error) => return AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(error)),
        };
        if response.status != 200 || !response.is_event_stream() {
            let loss = self.loss_for_status(response.status);
            if had_subscription && loss == ConnectionLoss::Unreachable(ConnectionError::SubscriptionForgotten)
            {
                // The hub is reachable. Only a new subscription is needed.
                self.address.retry_now();
            }
            return AttemptOutcome::BeforeOpen(loss);
        }
        let open = ConnectionEvent::Open { subscription: self.subscription.clone(), notes, resumed };
        if events.send(open).await.is_err() {
            return AttemptOutcome::AfterOpen(ConnectionLoss::Unreachable(ConnectionError::ReceiverClosed));
        }
        AttemptOutcome::AfterOpen(self.read_blocks(&mut response, events).await)
    }

    /// Subscribes. Returns the hub's notes and its complete response, or `None` if there is no hub.
    async fn subscribe(&mut self, request: &str) -> Result<Option<AcceptedResponse>, SubscribeError> {
        let response = http::post(&self.address, "/aaep/v1/subscriptions", request).await;
        let response = response.map_err(SubscribeError::Unreachable)?;
        let status = response.status;
        let retry_after_seconds = response.retry_after().map(|delay| delay.as_secs());
        let body = http::read_body(response).await.map_err(SubscribeError::Unreachable)?;
        match Message::parse(&body) {
            Some(Message::SubscriptionAccepted(accepted)) => {
                self.subscription = Some(accepted.subscription_id.clone());
                self.last_event_id = None;
                self.is_resumed = is_resumed(&accepted, &self.context);
                let notes = accepted.negotiation_notes.clone();
                self.accepted = Some(Box::new(accepted));
                Ok(Some((notes, body)))
            }
            Some(Message::SubscriptionRejected(rejected)) => {
                let error = ConnectionError::from_rejection(&rejected, retry_after_seconds);
                Err(match rejected.reason_code {
                    ReasonCode::CapabilitiesIncompatible => SubscribeError::Incompatible(error),
                    _ if is_temporary(&rejected) => SubscribeError::Temporary(error),
                    _ => SubscribeError::Refused(error),
                })
            }
            _ if matches!(status, 404 | 405) => {
                self.is_hubless = true;
                Ok(None)
            }
            _ if status / 100 == 5 => {
                Err(SubscribeError::Unreachable(ConnectionError::UnexpectedStatus(status)))
            }
            _ => Err(SubscribeError::Refused(ConnectionError::NotAHub(Some(status)))),
        }
    }

    /// Checks the hub's manifest. If this listener refuses the hub, the subscription is closed.
    async fn check_manifest(&mut self, events: &mpsc::Sender<ConnectionEvent>) -> Result<(), ConnectionLoss> {
        let checked = self.manifest.check(&self.address, self.accepted.as_deref(), events).await;
        if let Err(ConnectionLoss::Refused(_)) = &checked
            && let Some(subscription) = self.subscription.take()
        {
            let close = super::close_message(&subscription);
            let _ = http::post(&self.address, self.address.messages_path, &close).await;
        }
        checked
    }

    fn loss_for_status(&mut self, status: u16) -> ConnectionLoss {
        match status {
            _ if self.is_hubless => ConnectionLoss::Refused(ConnectionError::NotAHub(Some(status))),
            401 | 403 => ConnectionLoss::Refused(ConnectionError::TokenRevoked),
            // The hub no longer knows the subscription, so a new one is needed.
            404 | 410 => {
                self.forget_subscription();
                ConnectionLoss::Unreachable(ConnectionError::SubscriptionForgotten)
            }
            other => ConnectionLoss::Unreachable(ConnectionError::UnexpectedStatus(other)),
        }
    }

    async fn read_blocks(
        &mut self,
        response: &mut HttpResponse,
        events: &mpsc::Sender<ConnectionEvent>,
    ) -> ConnectionLoss {
        let mut parser = SseParser::new(MAX_MESSAGE_BYTES);
        let mut blocks = Vec::new();
        loop {
            match timeout(LIVENESS_TIMEOUT, response.chunk()).await {
                Ok(Ok(Some(bytes))) => parser.feed(&bytes, &mut blocks),
                Ok(Ok(None)) => return self.loss_at_end(ConnectionError::ClosedByHub),
                Ok(Err(error)) => return self.loss_at_end(error.into()),
                Err(_) => return self.loss_at_end(ConnectionError::LivenessTimeout),
            }
            for block in blocks.drain(..) {
                let too_long =
                    (block.error == Some(SseEventError::TooLong)).then_some(ConnectionEvent::MessageTooLong);
                let text = self.handle_block(block).map(ConnectionEvent::Text);
                if let Some(event) = too_long.or(text)
                    && events.send(event).await.is_err()
                {
                    return ConnectionLoss::Unreachable(ConnectionError::ReceiverClosed);
                }
            }
        }
    }

    fn loss_at_end(&self, error: ConnectionError) -> ConnectionLoss {
        match &self.final_reason {
            Some(reason) => ConnectionLoss::Refused(reason.clone()),
            None => ConnectionLoss::Unreachable(error),
        }
    }

    /// Returns the text of a block and remembers the block's id, even if the block has no text.
    fn handle_block(&mut self, block: SseEvent) -> Option<String> {
        if let Some(id) = block.id {
            self.last_event_id =
                Some(id).filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        let text = block.data?;
        if block.event_type == "aaep.message"
            && let Some(close) = super::parse_close(&text)
        {
            match self.context.apply_close(&close) {
                CloseEffect::Resumable => {}
                CloseEffect::Final(reason) => self.final_reason = Some(reason),
                CloseEffect::Ended => self.forget_subscription(),
            }
        }
        Some(text)
    }

    /// Discards the subscription. The next one may resume after the last event.
    fn forget_subscription(&mut self) {
        self.subscription = None;
        self.context.after_event_id = self.last_event_id.take().or(self.context.after_event_id.take());
    }
}

/// Whether the hub confirmed that a new subscription starts after the requested event. Hubs other than sayso do not.
pub(super) fn is_resumed(accepted: &SubscriptionAccepted, context: &SubscribeContext) -> bool {
    let mut tape = Tape::default();
    let granted = accepted.honored_capabilities.other.get(SAYSO_PREFIX);
    let root = granted.and_then(|granted| Some(tape.read(granted.as_str()).ok()?.root()));
    match (root.and_then(|root| root.member("after")?.text()), &context.after_event_id) {
        (Some(granted), Some(requested)) => granted == *requested,
        _ => false,
    }
}

/// Whether a later attempt may succeed.
pub(super) fn is_temporary(rejected: &SubscriptionRejected) -> bool {
    matches!(rejected.reason_code, ReasonCode::RateLimit | ReasonCode::TransportUnavailable)
}
