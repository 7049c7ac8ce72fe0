//! A listener on a wire that carries whole messages both ways.
//!
//! What is said is the same on all of them and stands here; how a message is framed stands with each wire:
//!
//! - `websocket`: a text frame each (§B.2).
//! - `unix`: a line or a counted run of bytes each (§B.4), in the framings of `frames`.
//! - `stdio`: JSON-RPC, a line each (§B.6).
//!
//! A wire is an [`Ear`] and a [`Mouth`]. The first message asks for a subscription, and its answer is the next one said.
//! From then on two things go on beside each other: the ear's messages go to the hub, one after the other, and the
//! subscription's frames come out of a small channel. Who does not read fills that channel and then waits in the fan-out
//! alone. There is no way back to a subscription whose wire has ended: it is closed (C-C17).

mod flow;
mod frames;
mod places;
pub(crate) mod stdio;
#[cfg(test)]
mod tests;
pub(crate) mod unix;
pub(crate) mod websocket;

use std::sync::Arc;
use std::time::Duration;

use aaep::SubscriptionId;
pub(crate) use flow::{listen, refusal, rejected};
use hub::delivery::{Frame, Reason};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
pub use unix::UnixSocket;

/// Where messages come from.
pub(crate) trait Ear {
    /// The next thing that is heard. A future that is dropped before it is done loses nothing.
    fn hear(&mut self) -> impl Future<Output = Heard> + Send;
}

/// Where messages go to.
pub(crate) trait Mouth {
    /// Says it; `false` if nobody can hear any more.
    fn say(&mut self, word: Word) -> impl Future<Output = bool> + Send;
}

/// What an ear hears.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A message, and what its answer is to name, where the wire has such names.
    Message {
        /// The message.
        text: String,
        /// The name of the request, as JSON.
        to: Option<String>,
    },
    /// Nothing but a sign of life.
    Alive,
    /// Something that is no message.
    Malformed,
    /// Something that concerns the wire alone, and what is to be said to it.
    Aside(String),
    /// The end.
    End(Ending),
}

/// What a mouth says.
#[derive(Debug)]
pub(crate) enum Word {
    /// An event.
    Event(Arc<Frame>),
    /// The answer to a message.
    Answer {
        /// The answer.
        json: String,
        /// The name of the request.
        to: Option<String>,
    },
    /// A message was of no form that has an answer.
    Refused {
        /// The name of the request.
        to: Option<String>,
    },
    /// What the ear wanted said.
    Aside(String),
    /// Whether somebody is there.
    Ping,
    /// The last word.
    End {
        /// Why it ends.
        ending: Ending,
        /// The subscription, if there was one.
        subscription: Option<SubscriptionId>,
    },
}

/// Why it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The hub has ended the subscription.
    Over,
    /// Another connection has taken it over.
    Replaced,
    /// The token that was shown holds no more.
    Dismissed,
    /// It did not read what it was sent.
    Slow,
    /// The hub stops.
    Stopping,
    /// The handshake said no.
    Rejected,
    /// It said no because it is not known who asks.
    Unauthenticated,
    /// It said no because the one who asks may not.
    Denied,
    /// The other side did what it must not.
    Violation,
    /// The other side has closed its subscription.
    Closed,
    /// A message was longer than is taken.
    TooLarge,
    /// The framing broke.
    Broken,
    /// No sign of life came.
    Silent,
    /// The wire has ended.
    Gone,
}

impl Ending {
    /// Why the hub let go.
    fn because(reason: Reason) -> Self {
        match reason {
            Reason::SlowConsumer => Self::Slow,
            Reason::ProducerShutdown => Self::Stopping,
            Reason::Replaced => Self::Replaced,
            Reason::TokenRemoved => Self::Dismissed,
            _ => Self::Over,
        }
    }

    /// The reason code and message of a `subscription.close`.
    pub(crate) fn reason(self) -> (&'static str, &'static str) {
        let told = |reason: Reason| (reason.code(), reason.message());
        match self {
            Self::Slow => told(Reason::SlowConsumer),
            Self::Stopping => told(Reason::ProducerShutdown),
            Self::Replaced => told(Reason::Replaced),
            Self::Dismissed => told(Reason::TokenRemoved),
            Self::Over => ("ended", "The subscription has ended."),
            Self::Rejected | Self::Unauthenticated => ("rejected", "The subscription was refused."),
            Self::Denied => ("authorization_denied", "This is not for you to hear."),
            Self::Violation => ("violation", "Too much was said that is no message here."),
            Self::Closed => ("closed", "The subscription was closed, as you asked."),
            Self::TooLarge => ("too_large", "A message was longer than is taken."),
            Self::Broken => ("broken", "The framing broke."),
            Self::Silent => ("silent", "There was no sign of life."),
            Self::Gone => ("gone", "The connection has ended."),
        }
    }
}

/// What a wire is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// How long the first message may take.
    pub(crate) first: Option<Duration>,
    /// How often a sign of life is asked for; after three in vain it ends.
    pub(crate) ping: Option<Duration>,
    /// How many messages may be malformed before it ends; any number where each gets an answer.
    pub(crate) malformed: Option<usize>,
    /// How long the other side may take to take one message.
    pub(crate) patience: Duration,
}

/// How long the last word may take, and the hanging up.
pub(crate) const FAREWELL: Duration = Duration::from_secs(5);

/// Reads over what still comes, a little of it: a socket that is dropped with something unread takes back what was said.
pub(crate) async fn hang_up(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let read = async {
        let _ = stream.shutdown().await;
        let mut rest = [0; 4096];
        for _ in 0..1024 {
            if stream.read(&mut rest).await.unwrap_or(0) == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(FAREWELL, read).await;
}
