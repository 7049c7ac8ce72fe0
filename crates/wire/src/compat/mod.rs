//! Compatibility mode for AAEP's own packages, enabled with `--compat`.
//!
//! These packages send no handshake, expect stream messages without event names, and send replies without valid
//! subscription ids (C-C2). Their messages map to the same hub commands as those of other clients. Everything specific to
//! compatibility mode is in this module:
//!
//! - `implicit_subscription`: a subscription that the hub creates for a connection that has not requested one.
//! - `superseded_subscription`: an earlier subscription, which stays open until its questions are resolved.
//! - `limits`: limits on the state that the hub holds for a connection.
//! - `events`: `GET /events`, an SSE stream of unnamed messages.
//! - `messages`: `POST /messages` and `POST /sessions`.
//! - `socket`: `/aaep/v1/ws` without a subprotocol.
//! - `message_parser`: parses messages in compatibility mode.

mod events;
mod implicit_subscription;
mod limits;
mod message_parser;
mod messages;
mod socket;
mod superseded_subscription;

use std::sync::{Mutex, MutexGuard, PoisonError};

use aaep::SubscriptionId;
pub(crate) use events::CompatStream;
use hub::Principal;
pub use limits::CompatLimits;
pub(crate) use socket::Upgrade;
use tokio::sync::{Notify, mpsc};

use crate::http::{HttpResponse, Method, RequestHead, StatusCode};
use crate::server::{Server, StartSession};

/// The state that all connections in compatibility mode share. It is needed because the reply to a question on an SSE
/// stream arrives on another connection.
pub(crate) struct Compat {
    limits: CompatLimits,
    start_session: StartSession,
    streams: Mutex<Streams>,
    stream_opened: Notify,
}

#[derive(Debug, Default)]
struct Streams {
    /// The open streams, newest last.
    open: Vec<OpenStream>,
    last_id: u64,
}

#[derive(Debug)]
struct OpenStream {
    id: u64,
    /// The name of the principal.
    principal: std::sync::Arc<str>,
    subscription: SubscriptionId,
    /// Reply tokens of the questions sent on the stream, each with the subscription that the question was sent to.
    questions: Vec<(String, SubscriptionId)>,
    responses: mpsc::Sender<SubscriptionResponse>,
}

/// The response to a subscription request or a renegotiation, and the new subscription if the request created one.
#[derive(Debug)]
pub(crate) struct SubscriptionResponse {
    json: String,
    subscription: Option<SubscriptionId>,
}

/// The result of a request in compatibility mode.
pub(crate) enum CompatOutcome {
    Response(HttpResponse),
    EventStream(Box<CompatStream>),
    WebSocket(Upgrade),
}

/// Handles requests that exist only in compatibility mode. Returns `None` for other requests, or if the mode is disabled.
pub(crate) async fn route(
    server: &Server,
    head: &RequestHead,
    parts: &[&str],
    body: &[u8],
    principal: &Principal,
) -> Result<Option<CompatOutcome>, HttpResponse> {
    let Some(compat) = &server.compat else { return Ok(None) };
    let outcome = match (head.method, parts) {
        (Method::Get, ["events"]) => {
            CompatOutcome::EventStream(Box::new(CompatStream::open(server, compat, principal).await?))
        }
        (Method::Post, ["messages"]) => {
            CompatOutcome::Response(messages::post_message(server, compat, body, principal).await?)
        }
        (Method::Post, ["sessions"]) => {
            CompatOutcome::Response(messages::post_session(compat, body, principal).await?)
        }
        (Method::Get, ["aaep", "v1", "ws"]) if head.header("sec-websocket-protocol").is_none() => {
            CompatOutcome::WebSocket(Upgrade::from_request(compat, head, principal)?)
        }
        (_, ["events" | "messages" | "sessions"]) => {
            let title = "Method not allowed.";
            return Err(HttpResponse::problem(StatusCode::MethodNotAllowed, title));
        }
        _ => return Ok(None),
    };
    Ok(Some(outcome))
}

impl Compat {
    pub(crate) fn new(limits: CompatLimits, start_session: StartSession) -> Self {
        Self { limits, start_session, streams: Mutex::default(), stream_opened: Notify::new() }
    }

    /// Starts a session for a person's request. Returns the session id.
    async fn start_session(
        &self,
        principal: &Principal,
        text: String,
        user_id: Option<String>,
    ) -> Result<String, HttpResponse> {
        if !principal.role.can_answer() {
            return Err(HttpResponse::problem(StatusCode::Forbidden, "This token does not allow that."));
        }
        (self.start_session)(text, user_id)
            .await
            .map_err(|reason| HttpResponse::problem(StatusCode::ServiceUnavailable, &reason))
    }

    /// Registers an open stream. Returns its id and the receiver of its subscription responses.
    fn register_stream(
        &self,
        principal: &Principal,
        subscription: &SubscriptionId,
    ) -> (u64, mpsc::Receiver<SubscriptionResponse>) {
        let (sender, responses) = mpsc::channel(self.limits.queued_responses);
        let mut streams = self.lock_streams();
        streams.last_id += 1;
        let id = streams.last_id;
        streams.open.push(OpenStream {
            id,
            principal: principal.name.clone(),
            subscription: subscription.clone(),
            questions: Vec::new(),
            responses: sender,
        });
        drop(streams);
        self.stream_opened.notify_waiters();
        (id, responses)
    }

    fn unregister_stream(&self, id: u64) {
        self.lock_streams().open.retain(|open| open.id != id);
    }

    /// Sets the current subscription of a stream.
    fn set_subscription(&self, id: u64, subscription: &SubscriptionId) {
        if let Some(open) = self.lock_streams().open.iter_mut().find(|open| open.id == id) {
            open.subscription = subscription.clone();
        }
    }

    /// Records that a question was sent on a stream, so that the subscription of its reply is known.
    fn record_question(&self, id: u64, token: &str) {
        if let Some(open) = self.lock_streams().open.iter_mut().find(|open| open.id == id) {
            if open.questions.len() >= self.limits.remembered_questions {
                open.questions.remove(0);
            }
            open.questions.push((token.to_owned(), open.subscription.clone()));
        }
    }

    /// Returns the subscription that a reply belongs to. That is the subscription to which the question was sent, on the
    /// principal's newest stream that received the question. If no stream received it, returns the current subscription of
    /// the newest stream.
    fn subscription_for_reply(&self, principal: &Principal, token: Option<&str>) -> Option<SubscriptionId> {
        let streams = self.lock_streams();
        let mut own = streams.open.iter().rev().filter(|open| open.principal == principal.name);
        let received = own
            .clone()
            .flat_map(|open| &open.questions)
            .find(|(question, _)| Some(question.as_str()) == token);
        received.map(|(_, subscription)| subscription).or_else(|| Some(&own.next()?.subscription)).cloned()
    }

    /// Returns the channel for subscription responses of the principal's newest stream.
    fn newest_stream(&self, principal: &Principal) -> Option<mpsc::Sender<SubscriptionResponse>> {
        let streams = self.lock_streams();
        let own = streams.open.iter().rev().find(|open| open.principal == principal.name);
        own.map(|open| open.responses.clone())
    }

    /// Waits up to `stream_wait` until the principal has a stream.
    async fn wait_for_stream(&self, principal: &Principal) {
        let has_stream = async {
            loop {
                let mut notified = std::pin::pin!(self.stream_opened.notified());
                notified.as_mut().enable();
                if self.newest_stream(principal).is_some() {
                    return;
                }
                notified.await;
            }
        };
        let _ = tokio::time::timeout(self.limits.stream_wait, has_stream).await;
    }

    fn lock_streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed test panics")]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::Instant;

    use super::*;

    fn subscription(id: &str) -> SubscriptionId {
        SubscriptionId::parse(id).unwrap()
    }

    fn compat_state(limits: CompatLimits) -> (Compat, Principal) {
        let start_session =
            Box::new(|_, _| Box::pin(async { Err("unavailable".to_owned()) }) as crate::HandlerFuture<_>);
        (Compat::new(limits, start_session), Principal::local())
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_until_its_stream_opens() {
        let (compat, principal) = compat_state(CompatLimits::default());
        let started = Instant::now();
        let mut waiting = std::pin::pin!(compat.wait_for_stream(&principal));
        assert_eq!(waiting.as_mut().now_or_never(), None, "no stream is open yet");
        let other = Principal { name: "somebody else".into(), ..Principal::local() };
        let _other_stream = compat.register_stream(&other, &subscription("sub_1"));
        assert_eq!(waiting.as_mut().now_or_never(), None, "another principal's stream does not count");
        let (id, _responses) = compat.register_stream(&principal, &subscription("sub_2"));
        assert_eq!(waiting.now_or_never(), Some(()), "the stream has opened");
        assert_eq!(
            compat.wait_for_stream(&principal).now_or_never(),
            Some(()),
            "a later request does not wait"
        );
        compat.unregister_stream(id);
        assert_eq!(compat.wait_for_stream(&principal).now_or_never(), None, "a closed stream does not count");
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_stream_proceeds_after_the_wait() {
        for stream_wait in [CompatLimits::default().stream_wait, Duration::from_secs(7)] {
            let (compat, principal) = compat_state(CompatLimits { stream_wait, ..CompatLimits::default() });
            let started = Instant::now();
            compat.wait_for_stream(&principal).await;
            assert_eq!(started.elapsed().as_secs(), stream_wait.as_secs());
        }
        assert_eq!(CompatLimits::default().stream_wait, Duration::from_secs(2));
    }

    #[test]
    fn subscription_responses_are_queued_up_to_the_limit() {
        for max_queued in [1, CompatLimits::default().queued_responses] {
            let (compat, principal) =
                compat_state(CompatLimits { queued_responses: max_queued, ..CompatLimits::default() });
            let (_, mut responses) = compat.register_stream(&principal, &subscription("sub_1"));
            let stream = compat.newest_stream(&principal).unwrap();
            let response = || SubscriptionResponse { json: String::new(), subscription: None };
            assert_eq!((0..100).filter(|_| stream.try_send(response()).is_ok()).count(), max_queued);
            assert!(
                responses.try_recv().is_ok() && stream.try_send(response()).is_ok(),
                "receiving a response frees a slot"
            );
        }
    }
}
