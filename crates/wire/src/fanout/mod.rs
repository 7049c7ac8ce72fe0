//! Fan-out: one thread that writes to all streaming listeners.
//!
//! After a stream's head is sent, its socket comes here and costs a cursor and a place in the poll from then on. The thread
//! works in rounds: it takes all orders that have come in, puts their frames on the lanes, and writes to each listener of a
//! lane that grew as much as its socket takes, many frames in one call. What comes in meanwhile goes out together in the
//! next round. A socket that takes no more waits for its turn in the poll; nobody waits for it.

mod listener;
mod round;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hub::delivery::{Frame, LaneLimits};
use hub::{LaneId, ListenerId};
use mio::{Poll, Waker};

use crate::observe::Sent;
use round::{Round, WAKE};

/// How far listeners may be behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What waits for them.
    pub lanes: LaneLimits,
    /// So many bytes at most are taken out of a listener's queue before its socket has taken them: a critical frame waits
    /// for no more than that.
    pub in_hand: usize,
    /// Who catches up within that time is not slow: what waits for it stays as it is.
    pub burst: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        LaneLimits::default().into()
    }
}

impl From<LaneLimits> for Limits {
    fn from(lanes: LaneLimits) -> Self {
        Self { lanes, in_hand: 16 * 1024, burst: Duration::from_millis(500) }
    }
}

/// What the thread is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Order {
    /// Frames, each for a lane; lanes come into being by being named.
    Frames(Vec<(LaneId, Arc<Frame>)>),
    /// A listener joins a lane, with what is for it alone.
    Attach {
        /// Which.
        listener: ListenerId,
        /// Where.
        lane: LaneId,
        /// How it is reached.
        sink: Sink,
        /// What it is given first.
        own: Vec<Arc<Frame>>,
        /// The place in the log from which it would resume, if it knows of none.
        from: Option<u64>,
    },
    /// A listener goes over to another lane; what it has not been given of the old one comes first.
    Move {
        /// Which.
        listener: ListenerId,
        /// Where to.
        lane: LaneId,
    },
    /// A listener that was attached without a sink has one now.
    Connect {
        /// Which.
        listener: ListenerId,
        /// How it is reached.
        sink: Sink,
    },
    /// Something for one listener.
    Give {
        /// Which.
        listener: ListenerId,
        /// What.
        frame: Arc<Frame>,
    },
    /// The listener is to be let go, once it has been given what is its own.
    Close(ListenerId),
    /// The listener behind a channel has taken what was in it, or is gone.
    Ready(ListenerId),
    /// Everybody gets a comment, so that connections do not fall asleep and dead ones are noticed.
    Heartbeat,
    /// Somebody waits until there is no listener any more.
    Empty(tokio::sync::oneshot::Sender<()>),
    /// The end.
    Stop,
}

/// How a listener is reached.
#[derive(Debug)]
pub enum Sink {
    /// Not yet: what is for it waits.
    Pending,
    /// A socket whose stream is SSE.
    Socket(mio::net::TcpStream),
    /// Somebody who frames for himself, and says when he can take more.
    Channel(tokio::sync::mpsc::Sender<Arc<Frame>>),
}

/// What the thread tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// A listener is gone.
    Gone(ListenerId),
    /// A listener could not keep up and was let go.
    TooSlow(ListenerId),
}

/// A handle to the thread.
#[derive(Clone, Debug)]
pub struct Fanout {
    orders: Sender<Order>,
    waker: Arc<Waker>,
    /// Somebody has woken the thread, and it has not looked since: whatever is ordered meanwhile it finds by itself.
    woken: Arc<AtomicBool>,
    sent: Arc<Sent>,
}

impl Fanout {
    /// Starts the thread. What it has to tell goes to `news`.
    pub fn start(
        limits: impl Into<Limits>,
        news: impl FnMut(News) + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let (orders, inbox) = channel();
        let sent: Arc<Sent> = Arc::default();
        let woken: Arc<AtomicBool> = Arc::default();
        let thread = Round::new(poll, (inbox, woken.clone()), limits.into(), Box::new(news), sent.clone());
        let handle = std::thread::Builder::new().name("fan-out".to_owned()).spawn(move || thread.run())?;
        Ok((Self { orders, waker, woken, sent }, handle))
    }

    /// What it has done.
    pub(crate) fn sent(&self) -> Arc<Sent> {
        self.sent.clone()
    }

    /// Gives an order. One given after the end is lost, as it should be.
    pub fn order(&self, order: Order) {
        if self.orders.send(order).is_ok() && !self.woken.swap(true, Ordering::AcqRel) {
            let _ = self.waker.wake();
        }
    }
}
