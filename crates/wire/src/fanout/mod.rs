//! The fan-out: one thread that writes to all streaming listeners.
//!
//! After the response head of a stream has been sent, its socket is handed to this thread, where it costs only a cursor
//! and a poll registration. The thread works in rounds. It processes all queued commands, appends their frames to the
//! queues of the delivery groups, and writes to each listener of a changed group as much as its socket accepts, with many
//! frames per system call. Frames that arrive during a round are written together in the next round. A socket that
//! accepts no more is polled for writability; other listeners do not wait for it.

mod event_loop;
mod listener;
#[cfg(test)]
mod tests;
mod write_budget;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hub::delivery::{DeliveryLimits, Frame};
use hub::{DeliveryGroupId, ListenerId};
use mio::{Poll, Waker};
use rustc_hash::FxHashMap;

use crate::telemetry::FanoutCounters;
use event_loop::{FanoutLoop, WAKE_TOKEN};

/// Limits on how far listeners may fall behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutLimits {
    /// The limits of the queues.
    pub delivery: DeliveryLimits,
    /// Number of bytes that are taken from a listener's queue ahead of writing. The last frame may exceed it. A critical frame
    /// waits until these bytes are written.
    pub in_flight_bytes: usize,
    /// How long a listener may be behind before its waiting frames are merged.
    pub burst_grace: Duration,
}

impl Default for FanoutLimits {
    fn default() -> Self {
        DeliveryLimits::default().into()
    }
}

impl From<DeliveryLimits> for FanoutLimits {
    fn from(delivery: DeliveryLimits) -> Self {
        Self { delivery, in_flight_bytes: 16 * 1024, burst_grace: Duration::from_millis(500) }
    }
}

/// A command to the fan-out thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum FanoutCommand {
    /// Appends frames to groups. A group is created when it is first named.
    Frames(Vec<(DeliveryGroupId, Arc<Frame>)>),
    /// Attaches a listener to a group. A listener that already has a group of another shard then has both.
    Attach {
        /// The listener.
        listener: ListenerId,
        /// The group.
        group: DeliveryGroupId,
        /// The listener's sink.
        sink: ListenerSink,
        /// Frames for this listener only, which it receives first.
        private_frames: Vec<Arc<Frame>>,
        /// Where the listener resumes if it disconnects before it has received a frame with an event id: a position in the
        /// journal.
        resume_position: Option<u64>,
        /// The same for a listener of several shards: the id from which it resumes the shard of this group.
        origin_id: Option<Box<str>>,
    },
    /// Moves a listener to another group of the same shard. It first receives the remaining frames of the old group.
    Move {
        /// The listener.
        listener: ListenerId,
        /// The new group.
        group: DeliveryGroupId,
    },
    /// Sets the sink of a listener that was attached without one.
    Connect {
        /// The listener.
        listener: ListenerId,
        /// The listener's sink.
        sink: ListenerSink,
    },
    /// Sends a frame to one listener.
    SendTo {
        /// The listener.
        listener: ListenerId,
        /// The frame.
        frame: Arc<Frame>,
    },
    /// Closes a listener after it has received its private frames.
    Close(ListenerId),
    /// Takes all listeners out of the groups of this shard, because its owner has changed. They still receive the frames that are
    /// in their queues. When a listener is attached to a group of the shard again, it receives that group's frames after them.
    Park {
        /// The shard.
        shard: u16,
        /// Receives the id after which each of these listeners resumes in the shard, if there is one.
        positions: Sender<FxHashMap<ListenerId, Option<String>>>,
    },
    /// Removes a listener.
    Remove(ListenerId),
    /// Reports that a listener has emptied its channel, or has closed it.
    Ready(ListenerId),
    /// Sends a heartbeat to every listener. Heartbeats keep connections open and detect dead ones.
    Heartbeat,
    /// Sends a signal on this channel when no listener is left.
    NotifyWhenEmpty(tokio::sync::oneshot::Sender<()>),
    /// Stops the thread.
    Stop,
}

/// How a listener is reached.
#[derive(Debug)]
pub enum ListenerSink {
    /// Not yet connected; frames wait.
    Pending,
    /// A socket with an SSE stream, and its slot among the server's connections.
    Socket(mio::net::TcpStream, Option<crate::ConnectionSlot>),
    /// A channel to a task that encodes and writes the frames itself, and reports when it is ready for more.
    Channel(tokio::sync::mpsc::Sender<Arc<Frame>>),
}

/// A report of the fan-out thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FanoutReport {
    /// A listener disconnected.
    Disconnected(ListenerId),
    /// A listener could not keep up and is being disconnected.
    TooSlow(ListenerId),
}

/// A handle to the fan-out thread.
#[derive(Clone, Debug)]
pub struct Fanout {
    commands: Sender<FanoutCommand>,
    waker: Arc<Waker>,
    /// Whether the thread has been woken and has not read its commands since. If so, it will find new commands without
    /// another wake-up.
    is_wake_pending: Arc<AtomicBool>,
    counters: Arc<FanoutCounters>,
}

impl Fanout {
    /// Starts the thread, which passes its reports to `report`.
    pub fn start(
        limits: impl Into<FanoutLimits>,
        report: impl FnMut(FanoutReport) + Send + 'static,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE_TOKEN)?);
        let (commands, receiver) = channel();
        let counters: Arc<FanoutCounters> = Arc::default();
        let is_wake_pending: Arc<AtomicBool> = Arc::default();
        let event_loop = FanoutLoop::new(
            poll,
            (receiver, is_wake_pending.clone()),
            limits.into(),
            Box::new(report),
            counters.clone(),
        );
        let handle =
            std::thread::Builder::new().name("fan-out".to_owned()).spawn(move || event_loop.run())?;
        Ok((Self { commands, waker, is_wake_pending, counters }, handle))
    }

    /// Returns the counters of the fan-out.
    pub(crate) fn counters(&self) -> Arc<FanoutCounters> {
        self.counters.clone()
    }

    /// Sends a command. A command sent after the thread has stopped is ignored.
    pub fn send(&self, command: FanoutCommand) {
        if self.commands.send(command).is_ok() && !self.is_wake_pending.swap(true, Ordering::AcqRel) {
            let _ = self.waker.wake();
        }
    }
}
