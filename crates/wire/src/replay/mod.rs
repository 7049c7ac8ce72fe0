//! A recording, served on a hub's own routes for listeners: whoever subscribes hears it from its start.
//!
//! - `player`: a recording in its time, shaped by one listener's terms.
//! - `routes`: which request means what; `socket`: the same on a WebSocket.
//!
//! There is no hub behind it, and nobody who waits: what is answered has no effect, and that is said in the handshake.

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
use aaep::shape::Wants;
use aaep::{Received, SubscriptionId};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::http::RequestLimits;

/// An event of a recording.
pub type Recorded = Arc<Received<Event>>;

/// The events of a recording, in their order.
pub type Events = Box<dyn Iterator<Item = Recorded> + Send>;

/// What is played, and how.
pub struct Recording {
    /// Opens the recording at its start.
    pub open: Box<dyn Fn() -> io::Result<Events> + Send + Sync>,
    /// How long to wait for what came so many milliseconds later.
    pub pause: Box<dyn Fn(i64) -> Duration + Send + Sync>,
}

/// How much a replay takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; further ones are let go.
    pub connections: usize,
    /// Subscriptions that are known; beyond, a new one is refused.
    pub subscriptions: usize,
    /// How much a request may have. A message on a WebSocket may have as much as a body, and the first may take as long as
    /// a head.
    pub requests: RequestLimits,
    /// How long a listener may take to take one event.
    pub write_time: Duration,
    /// How often a quiet stream gives a sign of life.
    pub alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            subscriptions: 1000,
            requests: RequestLimits { body_bytes: 64 * 1024, ..crate::Limits::default().requests() },
            write_time: Duration::from_mins(1),
            alive: Duration::from_secs(15),
        }
    }
}

/// What every listener is told.
pub const NOTE: &str = "This is a recording: its questions are history and cannot be answered.";

/// A recording with listeners.
pub struct Replay {
    recording: Recording,
    limits: Limits,
    /// The hosts under which it may be addressed, with their ports.
    hosts: Vec<String>,
    subscriptions: Mutex<HashMap<SubscriptionId, Arc<Subscription>>>,
    connections: AtomicUsize,
}

/// One listener's terms, which may change while it listens.
struct Subscription {
    terms: Mutex<Terms>,
    wants: watch::Sender<Arc<Wants>>,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Replay {
    /// Plays a recording to those who address it by one of these hosts.
    pub fn new(recording: Recording, limits: Limits, hosts: Vec<String>) -> Self {
        Self {
            recording,
            limits,
            hosts,
            subscriptions: Mutex::new(HashMap::new()),
            connections: AtomicUsize::new(0),
        }
    }

    /// Takes connections until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let place = Place(Arc::clone(&self));
            if self.connections.fetch_add(1, Ordering::Relaxed) >= self.limits.connections {
                continue;
            }
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move { routes::run(&place.0, stream).await });
        }
    }

    /// Answers a request: the subscription and the message, or the refusal.
    fn subscribe(
        &self,
        request: &SubscriptionRequest,
    ) -> Result<(SubscriptionId, Arc<Subscription>, String), SubscriptionRejected> {
        let id = SubscriptionId::generate(&mut seal::SystemRandom);
        let (mut accepted, terms) = negotiate::answer(request, &offer(), id.clone())?;
        accepted.negotiation_notes = Some(match accepted.negotiation_notes.take() {
            Some(notes) => format!("{NOTE} {notes}"),
            None => NOTE.to_owned(),
        });
        let mut known = self.known();
        if known.len() >= self.limits.subscriptions {
            let code = aaep::message::ReasonCode::RateLimit;
            return Err(SubscriptionRejected::new(code, "There are as many listeners as can be."));
        }
        let wants = watch::Sender::new(Arc::new(Wants::from(&terms)));
        let subscription = Arc::new(Subscription { terms: Mutex::new(terms), wants });
        known.insert(id.clone(), Arc::clone(&subscription));
        Ok((id, subscription, Message::SubscriptionAccepted(accepted).to_json()))
    }

    /// New terms for a subscription that is known.
    fn renegotiate(&self, wish: &SubscriptionRenegotiate) -> Option<Result<String, SubscriptionRejected>> {
        let subscription = self.known().get(&wish.subscription_id).cloned()?;
        let mut terms = subscription.terms.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Some(match negotiate::renegotiate(&terms, wish, &offer()) {
            Ok((accepted, new)) => {
                subscription.wants.send_replace(Arc::new(Wants::from(&new)));
                *terms = new;
                Ok(Message::SubscriptionAccepted(accepted).to_json())
            }
            Err(rejected) => {
                drop(terms);
                self.known().remove(&wish.subscription_id);
                Err(rejected)
            }
        })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<SubscriptionId, Arc<Subscription>>> {
        self.subscriptions.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Who hears questions must say that it can answer; so that is offered, though nobody waits.
fn offer() -> Offer {
    let mut producer = Producer::new("sayso-replay");
    producer.agent_name = Some("A recording".to_owned());
    Offer::new(producer)
}

/// A connection's place, which is free again when the connection has ended.
struct Place(Arc<Replay>);

impl Drop for Place {
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

    fn replay(limits: Limits) -> Replay {
        let open = || Ok(Box::new(std::iter::empty()) as Events);
        let recording = Recording { open: Box::new(open), pause: Box::new(|_| Duration::ZERO) };
        Replay::new(recording, limits, vec!["here".to_owned()])
    }

    #[test]
    fn there_are_no_more_subscriptions_than_may_be() {
        let replay = replay(Limits { subscriptions: 2, ..Limits::default() });
        let request = SubscriptionRequest::new("1.0.0", "test", Capabilities::new());
        let first = replay.subscribe(&request).unwrap();
        assert!(first.2.contains(NOTE), "{}", first.2);
        assert!(replay.subscribe(&request).is_ok());
        let refused = replay.subscribe(&request).err().unwrap();
        assert_eq!(refused.reason_code, ReasonCode::RateLimit);
        replay.known().remove(&first.0);
        assert!(replay.subscribe(&request).is_ok());
    }

    #[tokio::test]
    async fn there_are_no_more_connections_than_may_be() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let replay = Arc::new(replay(Limits { connections: 1, ..Limits::default() }));
        tokio::spawn(replay.serve(listener));
        // One after the other: the first is answered, so it has its place when the second comes.
        let ask = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(ask).await.unwrap();
        let mut answer = [0; 12];
        first.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 404");
        let mut second = TcpStream::connect(address).await.unwrap();
        let _ = second.write_all(ask).await;
        assert_eq!(second.read(&mut answer).await.unwrap_or(0), 0, "it was let in");
        drop(first);
        loop {
            let mut third = TcpStream::connect(address).await.unwrap();
            let _ = third.write_all(ask).await;
            if third.read_exact(&mut answer).await.is_ok() {
                break;
            }
        }
    }
}
