//! The dialect that AAEP's own packages speak, for those who asked for it with `--compat`.
//!
//! They know no handshake, no name for a stream's messages and no subscription to answer for (C-C2). What they say comes down
//! to the same commands of the hub as everybody's; all that is theirs alone stands here:
//!
//! - `bare`: a connection that hears without having asked, and what is told it twice.
//! - `kept`: a subscription that was left for other terms, until its questions are answered.
//! - `limits`: what a connection may make the hub remember.
//! - `events`: `GET /events`, a stream of unnamed messages.
//! - `messages`: `POST /messages` and `POST /sessions`.
//! - `socket`: `/aaep/v1/ws` without a subprotocol.
//! - `words`: what a message of the dialect is.

mod bare;
mod events;
mod kept;
mod limits;
mod messages;
mod socket;
mod words;

use std::sync::{Mutex, MutexGuard, PoisonError};

use aaep::SubscriptionId;
pub(crate) use events::Stream;
use hub::Principal;
pub use limits::Limits;
pub(crate) use socket::Upgrade;
use tokio::sync::{Notify, mpsc};

use crate::http::{Head, Method, Response, Status};
use crate::server::{Server, StartSession};

/// What the dialect's connections share: an answer comes on another connection than its question went out on.
pub(crate) struct Compat {
    limits: Limits,
    start: StartSession,
    streams: Mutex<Streams>,
    came: Notify,
}

#[derive(Debug, Default)]
struct Streams {
    open: Vec<Open>,
    made: u64,
}

/// A stream that is open, the newest last.
#[derive(Debug)]
struct Open {
    id: u64,
    principal: std::sync::Arc<str>,
    subscription: SubscriptionId,
    /// Questions that it was told, and over which subscription.
    questions: Vec<(String, SubscriptionId)>,
    handover: mpsc::Sender<Handover>,
}

/// The answer to a handshake, and the subscription that a stream has from then on.
#[derive(Debug)]
pub(crate) struct Handover {
    answer: String,
    subscription: Option<SubscriptionId>,
}

/// What a request of the dialect comes to.
pub(crate) enum Routed {
    Whole(Response),
    Stream(Box<Stream>),
    Socket(Upgrade),
}

/// Answers what the dialect alone knows; `None` if that is nothing of it, or if nobody asked for it.
pub(crate) async fn route(
    server: &Server,
    head: &Head,
    parts: &[&str],
    body: &[u8],
    who: &Principal,
) -> Result<Option<Routed>, Response> {
    let Some(compat) = &server.compat else { return Ok(None) };
    let routed = match (head.method, parts) {
        (Method::Get, ["events"]) => Routed::Stream(Box::new(Stream::open(server, compat, who).await?)),
        (Method::Post, ["messages"]) => Routed::Whole(messages::message(server, compat, body, who).await?),
        (Method::Post, ["sessions"]) => Routed::Whole(messages::session(compat, body, who).await?),
        (Method::Get, ["aaep", "v1", "ws"]) if head.header("sec-websocket-protocol").is_none() => {
            Routed::Socket(Upgrade::asked(compat, head, who)?)
        }
        (_, ["events" | "messages" | "sessions"]) => {
            let why = "This address takes another method.";
            return Err(Response::problem(Status::MethodNotAllowed, why));
        }
        _ => return Ok(None),
    };
    Ok(Some(routed))
}

impl Compat {
    pub(crate) fn new(limits: Limits, start: StartSession) -> Self {
        Self { limits, start, streams: Mutex::default(), came: Notify::new() }
    }

    /// Starts a session for what a person asks for; its id.
    async fn start(&self, who: &Principal, text: String, user: Option<String>) -> Result<String, Response> {
        if !who.role.answers() {
            return Err(Response::problem(Status::Forbidden, "This token is not for that."));
        }
        (self.start)(text, user).await.map_err(|why| Response::problem(Status::Unavailable, &why))
    }

    /// A stream is open; its name, and where it is handed answers.
    fn open(&self, who: &Principal, subscription: &SubscriptionId) -> (u64, mpsc::Receiver<Handover>) {
        let (handover, handed) = mpsc::channel(self.limits.answers);
        let mut streams = self.streams();
        streams.made += 1;
        let id = streams.made;
        streams.open.push(Open {
            id,
            principal: who.name.clone(),
            subscription: subscription.clone(),
            questions: Vec::new(),
            handover,
        });
        drop(streams);
        self.came.notify_waiters();
        (id, handed)
    }

    fn close(&self, id: u64) {
        self.streams().open.retain(|open| open.id != id);
    }

    /// A stream has another subscription now.
    fn moved(&self, id: u64, subscription: &SubscriptionId) {
        if let Some(open) = self.streams().open.iter_mut().find(|open| open.id == id) {
            open.subscription = subscription.clone();
        }
    }

    /// A stream was told a question, and may answer it.
    fn told(&self, id: u64, token: &str) {
        if let Some(open) = self.streams().open.iter_mut().find(|open| open.id == id) {
            if open.questions.len() >= self.limits.questions {
                open.questions.remove(0);
            }
            open.questions.push((token.to_owned(), open.subscription.clone()));
        }
    }

    /// For which subscription somebody answers: the one over which the newest of his streams was told the question.
    fn replier(&self, who: &Principal, token: Option<&str>) -> Option<SubscriptionId> {
        let streams = self.streams();
        let mut own = streams.open.iter().rev().filter(|open| open.principal == who.name);
        let told = own.clone().flat_map(|open| &open.questions).find(|(one, _)| Some(one.as_str()) == token);
        told.map(|(_, subscription)| subscription).or_else(|| Some(&own.next()?.subscription)).cloned()
    }

    /// Where the newest stream of somebody is handed answers.
    fn newest(&self, who: &Principal) -> Option<mpsc::Sender<Handover>> {
        let streams = self.streams();
        let own = streams.open.iter().rev().find(|open| open.principal == who.name);
        own.map(|open| open.handover.clone())
    }

    /// Waits a little until somebody hears.
    async fn ear(&self, who: &Principal) {
        let heard = async {
            loop {
                let mut came = std::pin::pin!(self.came.notified());
                came.as_mut().enable();
                if self.newest(who).is_some() {
                    return;
                }
                came.await;
            }
        };
        let _ = tokio::time::timeout(self.limits.patience, heard).await;
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::Instant;

    use super::*;

    fn subscription(id: &str) -> SubscriptionId {
        SubscriptionId::parse(id).unwrap()
    }

    fn dialect(limits: Limits) -> (Compat, Principal) {
        let start =
            Box::new(|_, _| Box::pin(async { Err("nobody".to_owned()) }) as crate::server::Handling<_>);
        (Compat::new(limits, start), Principal::anybody())
    }

    #[tokio::test(start_paused = true)]
    async fn a_wish_waits_for_its_stream_and_not_a_moment_longer() {
        let (compat, who) = dialect(Limits::default());
        let begun = Instant::now();
        let mut waits = std::pin::pin!(compat.ear(&who));
        assert_eq!(waits.as_mut().now_or_never(), None, "nobody hears yet");
        let other = Principal { name: "somebody else".into(), ..Principal::anybody() };
        let _theirs = compat.open(&other, &subscription("sub_1"));
        assert_eq!(waits.as_mut().now_or_never(), None, "somebody else's stream is not his");
        let (id, _handed) = compat.open(&who, &subscription("sub_2"));
        assert_eq!(waits.now_or_never(), Some(()), "his stream has come");
        assert_eq!(compat.ear(&who).now_or_never(), Some(()), "and who comes after it waits for nothing");
        compat.close(id);
        assert_eq!(compat.ear(&who).now_or_never(), None, "a stream that is gone hears nothing");
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wish_that_nobody_hears_is_granted_after_a_while() {
        for patience in [Limits::default().patience, Duration::from_secs(7)] {
            let (compat, who) = dialect(Limits { patience, ..Limits::default() });
            let begun = Instant::now();
            compat.ear(&who).await;
            assert_eq!(begun.elapsed().as_secs(), patience.as_secs());
        }
        assert_eq!(Limits::default().patience, Duration::from_secs(2));
    }

    #[test]
    fn answers_to_a_handshake_wait_for_their_stream_up_to_the_limit() {
        for answers in [1, Limits::default().answers] {
            let (compat, who) = dialect(Limits { answers, ..Limits::default() });
            let (_, mut handed) = compat.open(&who, &subscription("sub_1"));
            let stream = compat.newest(&who).unwrap();
            let answer = || Handover { answer: String::new(), subscription: None };
            assert_eq!((0..100).filter(|_| stream.try_send(answer()).is_ok()).count(), answers);
            assert!(handed.try_recv().is_ok() && stream.try_send(answer()).is_ok(), "a place is free again");
        }
    }
}
