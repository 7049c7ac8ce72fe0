//! Who speaks for all sessions of a hub.
//!
//! Orders come in from sessions; each session has one call on its way at a time, and the others wait in their order. What is
//! open in a session is noted when the hub has answered, here and not in the agent's futures: whatever becomes of those, the
//! desk knows how to end a session honestly.
//!
//! - `sessions`: the desk itself: orders and what the hub tells go in, calls and answers come out.
//! - `thread`: the desk on a thread of its own, for hubs that take their time to answer.
//! - `here`: the desk where the order is given, for a hub in this process that answers on the spot.
//! - `orders`: the way to either.

#[cfg(feature = "embedded")]
mod here;
mod orders;
mod sessions;
mod thread;

use std::time::Instant;

use aaep::SessionId;
use tokio::sync::{oneshot, watch};

#[cfg(feature = "embedded")]
pub(crate) use here::Here;
#[cfg(feature = "client")]
pub(crate) use orders::gone;
pub(crate) use orders::{LONGEST, Orders};
pub(crate) use sessions::Desk;
pub(crate) use thread::run;

use crate::error::{Error, Stop};
use crate::left::Left;
use crate::line::Reply;
use crate::member::Document;
use crate::redact::Cleaner;
use crate::track::{Intent, Last};

/// Who is told what came of an order: the hub's reply, or for a question its outcome.
pub(crate) type ReplySender = oneshot::Sender<Result<Reply, Error>>;

type StartReply = oneshot::Sender<Result<Started, Error>>;

/// What the desk is asked for.
pub(crate) enum Order {
    /// Starts a session.
    Start { body: Document, cleaner: Cleaner, reply: StartReply },
    /// Says something in a session.
    Do { session: SessionId, intent: Intent, reply: Option<ReplySender> },
    /// Takes back what is asked in a session and nobody waits for.
    Withdraw { session: SessionId },
    /// Tells when all that was ordered is done.
    Settle(oneshot::Sender<()>),
}

/// A session that has begun. Who lets it go ends it.
pub(crate) struct Started {
    pub(crate) id: SessionId,
    pub(crate) stop: watch::Receiver<Option<Stop>>,
    pub(crate) orders: Orders,
    pub(crate) at: Instant,
    /// Its agent has ended it, or is about to.
    pub(crate) ended: bool,
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.orders.order(Order::Do { session: self.id.clone(), intent: left(), reply: None });
    }
}

/// A question whose asker may stop waiting.
pub(crate) struct Asking<'s>(pub(crate) &'s Started);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.orders.order(Order::Withdraw { session: self.0.id.clone() });
    }
}

/// The end of a session whose agent has let it go.
fn left() -> Intent {
    let how = if std::thread::panicking() { Left::Panicked } else { Left::Dropped };
    Intent::End { last: Last::Left(how), why: LEFT }
}

/// What is said of a tool that its agent did not wait for.
pub(crate) const LEFT: &str = "The agent did not wait for the tool's end; whether it was done is not known.";
