//! The protocol on the message transports (WebSocket, Unix socket, gRPC and standard input and output), from the handshake to
//! the end of the connection.
//!
//! A subscription ends with its connection (C-C17), so each connection creates a new subscription. It starts after the last resume
//! position that the hub reported, if the hub supports that. Replies and other messages go out on the same connection.

use std::time::Duration;

use aaep::json::Tape;
use aaep::message::{Message, ReasonCode, SubscriptionAccepted};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::follow::{
    AttemptOutcome, CloseEffect, ConnectionEvent, ConnectionLoss, LIVENESS_TIMEOUT, SubscribeContext,
    is_resumed, is_temporary,
};
use super::manifest::ManifestMonitor;
use super::message_transport::{Incoming, MessageConnection, MessageReader, MessageWriter, ProducerProcess};
use super::outgoing::OutgoingMessage;
use super::{Address, ConnectionError, http};

/// How long to wait for the last messages after a write failed. They may say why the hub closed the subscription.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A subscription on a message transport. It subscribes again on each connection.
pub(super) struct MessageSubscription {
    address: Address,
    manifest: ManifestMonitor,
    context: SubscribeContext,
    /// The producer, if the listener has started it.
    process: Option<ProducerProcess>,
}

/// An open connection with a subscription request and its response.
struct OpenSubscription {
    connection: MessageConnection,
    request: String,
    response: String,
    /// The terms of an accepted subscription. `None` if the response is the first event of a producer without a handshake.
    terms: Option<Box<SubscriptionAccepted>>,
}

impl MessageSubscription {
    pub(super) fn new(address: Address, manifest: ManifestMonitor) -> Self {
        let context = SubscribeContext { wants_positions: true, ..SubscribeContext::default() };
        Self { address, manifest, context, process: None }
    }

    /// Runs one connection until it is lost. If the listener launched the producer as a program, its end is reported as
    /// `ProgramEnded`, and the caller does not retry.
    pub(super) async fn run_once(
        &mut self,
        request: &impl Fn(SubscribeContext) -> String,
        events: &mpsc::Sender<ConnectionEvent>,
        was_open: bool,
    ) -> AttemptOutcome {
        let outcome = self.run_connection(request, events, was_open).await;
        let Some(process) = self.process.take() else { return outcome };
        let status = process.finish().await;
        match outcome {
            AttemptOutcome::BeforeOpen(ConnectionLoss::Unreachable(
                ConnectionError::ClosedBeforeResponse | ConnectionError::ConnectionReset,
            )) => AttemptOutcome::BeforeOpen(ConnectionLoss::ProgramEnded(status)),
            AttemptOutcome::AfterOpen(ConnectionLoss::Unreachable(_)) => {
                AttemptOutcome::AfterOpen(ConnectionLoss::ProgramEnded(status))
            }
            other => other,
        }
    }

    /// Waits until the program has ended, if there is one. Its input is closed by now.
    pub(super) async fn end(&mut self) {
        if let Some(process) = self.process.take() {
            process.finish().await;
        }
    }

    async fn run_connection(
        &mut self,
        request: &impl Fn(SubscribeContext) -> String,
        events: &mpsc::Sender<ConnectionEvent>,
        was_open: bool,
    ) -> AttemptOutcome {
        let subscribed = match self.connect(request, events, was_open).await {
            Ok(subscribed) => subscribed,
            Err(loss) => return AttemptOutcome::BeforeOpen(loss),
        };
        let OpenSubscription { connection, request, response, terms } = subscribed;
        let (before_open, after_open) = match &terms {
            Some(_) => (Some(ConnectionEvent::Subscribed { request, accepted: response }), None),
            None => (None, Some(ConnectionEvent::Text(response))),
        };
        if let Err(loss) = report_all(events, before_open).await {
            return AttemptOutcome::BeforeOpen(loss);
        }
        if let Err(refusal) = self.manifest.check(&self.address, terms.as_deref(), events).await {
            return AttemptOutcome::BeforeOpen(refusal);
        }
        let open = ConnectionEvent::Open {
            resumed: terms.as_ref().is_some_and(|terms| is_resumed(terms, &self.context)),
            notes: terms.as_ref().and_then(|terms| terms.negotiation_notes.clone()),
            subscription: terms.map(|terms| terms.subscription_id),
        };
        let (queue, _guard) = self.address.outgoing.open();
        if let Err(loss) = report_all(events, std::iter::once(open).chain(after_open)).await {
            return AttemptOutcome::AfterOpen(loss);
        }
        AttemptOutcome::AfterOpen(self.exchange(connection, queue, events).await)
    }

    /// Connects and subscribes. A request that the hub cannot grant is sent once more with only the required capabilities.
    async fn connect(
        &mut self,
        request: &impl Fn(SubscribeContext) -> String,
        events: &mpsc::Sender<ConnectionEvent>,
        was_open: bool,
    ) -> Result<OpenSubscription, ConnectionLoss> {
        let mut open_connection = None;
        loop {
            let request = request(self.context.clone());
            let handshake = async {
                let mut connection = if let Some(connection) = open_connection.take() {
                    connection
                } else {
                    let (connection, process) = MessageConnection::open(&self.address, events).await?;
                    self.process = process;
                    connection
                };
                let response = shake_hands(&mut connection, &request, events).await?;
                Ok((connection, response))
            };
            let (connection, response) = timeout(http::REQUEST_TIMEOUT, handshake)
                .await
                .unwrap_or(Err(ConnectionLoss::Unreachable(ConnectionError::TimedOut)))?;
            let rejected = match Message::parse(&response) {
                Some(Message::SubscriptionAccepted(terms)) => {
                    return Ok(OpenSubscription {
                        connection,
                        request,
                        response,
                        terms: Some(Box::new(terms)),
                    });
                }
                Some(Message::SubscriptionRejected(rejected)) => rejected,
                // A program that only prints events (C-E11).
                _ if self.process.is_some() => {
                    return Ok(OpenSubscription { connection, request, response, terms: None });
                }
                _ => return Err(ConnectionLoss::Refused(ConnectionError::NotAHub(None))),
            };
            let error = ConnectionError::from_rejection(&rejected, None);
            if rejected.reason_code == ReasonCode::CapabilitiesIncompatible
                && !std::mem::replace(&mut self.context.requests_minimum, true)
            {
                report(events, ConnectionEvent::RequestReduced(error)).await?;
                // A program waits for the next request. A hub closes the connection.
                open_connection = Some(connection).filter(|_| self.process.is_some());
                continue;
            }
            // The hub may have capacity later, so a listener that was subscribed before tries again.
            return Err(if was_open && is_temporary(&rejected) {
                ConnectionLoss::Unreachable(error)
            } else {
                ConnectionLoss::Refused(error)
            });
        }
    }

    /// Sends and receives at the same time until the connection is lost.
    async fn exchange(
        &mut self,
        connection: MessageConnection,
        queue: mpsc::Receiver<OutgoingMessage>,
        events: &mpsc::Sender<ConnectionEvent>,
    ) -> ConnectionLoss {
        let MessageConnection { mut reader, mut writer } = connection;
        let (replies, reply_queue) = mpsc::channel(1);
        let sending = send_messages(&mut writer, queue, reply_queue);
        let receiving = self.receive_messages(&mut reader, &replies, events);
        tokio::pin!(sending, receiving);
        tokio::select! {
            loss = &mut receiving => loss,
            error = &mut sending => {
                timeout(DRAIN_TIMEOUT, receiving).await.unwrap_or(ConnectionLoss::Unreachable(error))
            }
        }
    }

    async fn receive_messages(
        &mut self,
        reader: &mut MessageReader,
        replies: &mpsc::Sender<String>,
        events: &mpsc::Sender<ConnectionEvent>,
    ) -> ConnectionLoss {
        let mut final_reason = None;
        loop {
            let event = match next_before_timeout(reader).await {
                Ok(Incoming::Alive | Incoming::CallFailed(_)) => continue,
                Ok(Incoming::TransportReply(text)) => {
                    // A failed write ends the connection anyway.
                    let _ = replies.send(text).await;
                    continue;
                }
                Ok(Incoming::Diagnostic(line)) => ConnectionEvent::Diagnostic(crate::sanitize(&line, true)),
                Ok(Incoming::TooLong) => ConnectionEvent::MessageTooLong,
                Ok(Incoming::Message(text)) => {
                    if let Some(event_id) = parse_position(&text) {
                        self.context.after_event_id = Some(event_id);
                        continue;
                    }
                    if let Some(close) = super::parse_close(&text)
                        && let CloseEffect::Final(reason) = self.context.apply_close(&close)
                    {
                        final_reason = Some(reason);
                    }
                    ConnectionEvent::Text(text)
                }
                Ok(Incoming::End) => {
                    let closed = ConnectionLoss::Unreachable(ConnectionError::ClosedByHub);
                    return final_reason.map_or(closed, ConnectionLoss::Refused);
                }
                Err(error) => {
                    return final_reason.map_or(ConnectionLoss::Unreachable(error), ConnectionLoss::Refused);
                }
            };
            if let Err(loss) = report(events, event).await {
                return loss;
            }
        }
    }
}

/// Sends the subscription request and returns the response.
async fn shake_hands(
    connection: &mut MessageConnection,
    request: &str,
    events: &mpsc::Sender<ConnectionEvent>,
) -> Result<String, ConnectionLoss> {
    connection.writer.send(request).await.map_err(ConnectionLoss::Unreachable)?;
    loop {
        let received = connection.reader.next().await.map_err(|error| match error {
            ConnectionError::TokenRequired | ConnectionError::NotAHub(_) => ConnectionLoss::Refused(error),
            error => ConnectionLoss::Unreachable(error),
        });
        match received? {
            Incoming::Message(response) => return Ok(response),
            Incoming::Alive | Incoming::TooLong => {}
            Incoming::TransportReply(text) => {
                connection.writer.send_transport_reply(&text).await.map_err(ConnectionLoss::Unreachable)?;
            }
            Incoming::Diagnostic(line) => {
                report(events, ConnectionEvent::Diagnostic(crate::sanitize(&line, true))).await?;
            }
            Incoming::CallFailed(message) => {
                let error = ConnectionError::Rejected(ReasonCode::UnknownReason, message, None);
                return Err(ConnectionLoss::Refused(error));
            }
            Incoming::End => return Err(ConnectionLoss::Unreachable(ConnectionError::ClosedBeforeResponse)),
        }
    }
}

/// Writes messages until a write fails.
async fn send_messages(
    writer: &mut MessageWriter,
    mut queue: mpsc::Receiver<OutgoingMessage>,
    mut transport_replies: mpsc::Receiver<String>,
) -> ConnectionError {
    loop {
        let result = tokio::select! {
            Some(OutgoingMessage { text, outcome }) = queue.recv() => {
                let write = timeout(http::REQUEST_TIMEOUT, writer.send(&text));
                let result = write.await.unwrap_or(Err(ConnectionError::TimedOut));
                let _ = outcome.send(result.clone());
                result
            }
            Some(text) = transport_replies.recv() => {
                let write = timeout(http::REQUEST_TIMEOUT, writer.send_transport_reply(&text));
                write.await.unwrap_or(Err(ConnectionError::TimedOut))
            }
            // Both queues stay open as long as the connection.
            else => std::future::pending().await,
        };
        if let Err(error) = result {
            return error;
        }
    }
}

async fn next_before_timeout(reader: &mut MessageReader) -> Result<Incoming, ConnectionError> {
    if !reader.has_heartbeats() {
        return reader.next().await;
    }
    timeout(LIVENESS_TIMEOUT, reader.next()).await.unwrap_or(Err(ConnectionError::LivenessTimeout))
}

async fn report(
    events: &mpsc::Sender<ConnectionEvent>,
    event: ConnectionEvent,
) -> Result<(), ConnectionLoss> {
    events.send(event).await.map_err(|_| ConnectionLoss::Unreachable(ConnectionError::ReceiverClosed))
}

async fn report_all(
    events: &mpsc::Sender<ConnectionEvent>,
    all: impl IntoIterator<Item = ConnectionEvent>,
) -> Result<(), ConnectionLoss> {
    for event in all {
        report(events, event).await?;
    }
    Ok(())
}

/// Returns the resume position that a message reports, if it is a `sayso:position` message.
fn parse_position(text: &str) -> Option<String> {
    if !text.contains("sayso:position") {
        return None;
    }
    let mut tape = Tape::default();
    let root = tape.read(text).ok()?.root();
    let is_position = root.member("type")?.is_text("sayso:position");
    is_position.then(|| Some(root.member("last_event_id")?.text()?.into_owned())).flatten()
}
