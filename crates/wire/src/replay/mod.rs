//! Serves a recording on the routes that a hub has for listeners. A new subscription starts at the first event.
//!
//! - `player`: plays a recording at the recorded pace, shaped by one listener's terms.
//! - `routes`: handles HTTP requests.
//! - `socket`: handles WebSocket connections.
//!
//! There is no hub and no agent, so replies have no effect. A note in the answer to the handshake says so.

mod player;
mod routes;
mod socket;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aaep::event::{Event, Producer};
use aaep::message::{Message, SubscriptionRejected, SubscriptionRenegotiate, SubscriptionRequest};
use aaep::negotiate::{self, Offer, Terms};
use aaep::shaping::ShapingTerms;
use aaep::{ParsedDocument, SubscriptionId};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::http::RequestLimits;

/// An event of a recording.
pub type RecordedEvent = Arc<ParsedDocument<Event>>;

/// The events of a recording, in order.
pub type RecordedEvents = Box<dyn Iterator<Item = RecordedEvent> + Send>;

/// The recording to play, and its pace.
pub struct ReplaySource {
    /// Opens the recording at its start.
    pub open: Box<dyn Fn() -> io::Result<RecordedEvents> + Send + Sync>,
    /// Maps the time since the start of the recording, in milliseconds, to the delay since the start of the replay.
    pub delay: Box<dyn Fn(i64) -> Duration + Send + Sync>,
}

/// The limits of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Maximum number of connections. Further ones are closed.
    pub connections: usize,
    /// Maximum number of subscriptions. Further ones are rejected.
    pub subscriptions: usize,
    /// The limits of a request. On a WebSocket, a message may be as large as a request body, and the first message may
    /// take as long as a request head.
    pub requests: RequestLimits,
    /// How long writing one event may take.
    pub write_timeout: Duration,
    /// Interval between heartbeats on a quiet stream.
    pub heartbeat_interval: Duration,
}

impl Default for ReplayLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            subscriptions: 1000,
            requests: RequestLimits {
                body_bytes: 64 * 1024,
                ..crate::ServerLimits::default().request_limits()
            },
            write_timeout: Duration::from_mins(1),
            heartbeat_interval: Duration::from_secs(15),
        }
    }
}

/// The note that every listener gets in the handshake.
pub const REPLAY_NOTE: &str = "This is a recording: its questions cannot be answered.";

/// A recording that is served to listeners.
pub struct Replay {
    source: ReplaySource,
    limits: ReplayLimits,
    /// The allowed values of the `Host` header: host names with ports.
    hosts: Vec<String>,
    subscriptions: Mutex<HashMap<SubscriptionId, Arc<ReplaySubscription>>>,
    connections: AtomicUsize,
}

/// One listener's terms, which may change while it listens.
struct ReplaySubscription {
    terms: Mutex<Terms>,
    shaping_terms: watch::Sender<Arc<ShapingTerms>>,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Replay {
    /// Creates a replay that is served under these hosts.
    pub fn new(source: ReplaySource, limits: ReplayLimits, hosts: Vec<String>) -> Self {
        Self {
            source,
            limits,
            hosts,
            subscriptions: Mutex::new(HashMap::new()),
            connections: AtomicUsize::new(0),
        }
    }

    /// Accepts connections until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let slot = ReplayConnectionSlot(Arc::clone(&self));
            if self.connections.fetch_add(1, Ordering::Relaxed) >= self.limits.connections {
                continue;
            }
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move { routes::run(&slot.0, stream).await });
        }
    }

    /// Handles a subscription request. Returns the subscription and the answer, or the rejection.
    fn subscribe(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<(SubscriptionId, Arc<ReplaySubscription>, String), SubscriptionRejected> {
        let id = SubscriptionId::generate(&mut seal::SystemRandom);
        let (mut accepted, terms) = negotiate::answer_request(request, &offer(), id.clone())?;
        accepted.negotiation_notes = Some(match accepted.negotiation_notes.take() {
            Some(notes) => format!("{REPLAY_NOTE} {notes}"),
            None => REPLAY_NOTE.to_owned(),
        });
        let mut subscriptions = self.lock_subscriptions();
        if subscriptions.len() >= self.limits.subscriptions {
            let code = aaep::message::ReasonCode::RateLimit;
            return Err(SubscriptionRejected::new(code, "There are too many listeners. Try again later."));
        }
        let shaping_terms = watch::Sender::new(Arc::new(ShapingTerms::from(&terms)));
        let subscription = Arc::new(ReplaySubscription { terms: Mutex::new(terms), shaping_terms });
        subscriptions.insert(id.clone(), Arc::clone(&subscription));
        Ok((id, subscription, Message::SubscriptionAccepted(accepted).to_json()))
    }

    /// Changes the terms of a subscription. Returns `None` if the subscription does not exist.
    fn renegotiate(&self, request: &SubscriptionRenegotiate) -> Option<Result<String, SubscriptionRejected>> {
        let subscription = self.lock_subscriptions().get(&request.subscription_id).cloned()?;
        let mut terms = subscription.terms.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Some(match negotiate::renegotiate(&terms, request, &offer()) {
            Ok((accepted, new)) => {
                subscription.shaping_terms.send_replace(Arc::new(ShapingTerms::from(&new)));
                *terms = new;
                Ok(Message::SubscriptionAccepted(accepted).to_json())
            }
            Err(rejected) => {
                drop(terms);
                self.lock_subscriptions().remove(&request.subscription_id);
                Err(rejected)
            }
        })
    }

    fn lock_subscriptions(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<SubscriptionId, Arc<ReplaySubscription>>> {
        self.subscriptions.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Returns the capabilities on offer. Replies are offered although they have no effect, because only listeners that can
/// reply are sent questions.
fn offer() -> Offer {
    let mut producer = Producer::new("sayso-replay");
    producer.agent_name = Some("A recording".to_owned());
    Offer::new(producer)
}

/// A connection's slot. Dropping it frees the slot.
struct ReplayConnectionSlot(Arc<Replay>);

impl Drop for ReplayConnectionSlot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use aaep::message::{Capabilities, ReasonCode};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    fn replay(limits: ReplayLimits) -> Replay {
        let open = || Ok(Box::new(std::iter::empty()) as RecordedEvents);
        let source = ReplaySource { open: Box::new(open), delay: Box::new(|_| Duration::ZERO) };
        Replay::new(source, limits, vec!["here".to_owned()])
    }

    #[test]
    fn the_number_of_subscriptions_is_limited() {
        let replay = replay(ReplayLimits { subscriptions: 2, ..ReplayLimits::default() });
        let request = SubscriptionRequest::new("1.0.0", "test", Capabilities::new());
        let first = replay.subscribe(&request).unwrap();
        assert!(first.2.contains(REPLAY_NOTE), "{}", first.2);
        assert!(replay.subscribe(&request).is_ok());
        let rejected = replay.subscribe(&request).err().unwrap();
        assert_eq!(rejected.reason_code, ReasonCode::RateLimit);
        replay.lock_subscriptions().remove(&first.0);
        assert!(replay.subscribe(&request).is_ok());
    }

    #[tokio::test]
    async fn the_number_of_connections_is_limited() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let replay = Arc::new(replay(ReplayLimits { connections: 1, ..ReplayLimits::default() }));
        tokio::spawn(replay.serve(listener));
        // Waits for the first response, so that the first connection holds its slot when the second one arrives.
        let http_request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(http_request).await.unwrap();
        let mut status_line = [0; 12];
        first.read_exact(&mut status_line).await.unwrap();
        assert_eq!(&status_line, b"HTTP/1.1 404");
        let mut second = TcpStream::connect(address).await.unwrap();
        let _ = second.write_all(http_request).await;
        assert_eq!(second.read(&mut status_line).await.unwrap_or(0), 0, "the second connection is closed");
        drop(first);
        loop {
            let mut third = TcpStream::connect(address).await.unwrap();
            let _ = third.write_all(http_request).await;
            if third.read_exact(&mut status_line).await.is_ok() {
                break;
            }
        }
    }
}
