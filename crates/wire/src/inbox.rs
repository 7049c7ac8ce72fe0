//! What the fan-out has for a listener whose bytes somebody else writes.

use std::sync::Arc;

use hub::ListenerId;
use hub::delivery::Frame;
use tokio::sync::mpsc;

use crate::fanout::Sink;
use crate::server::Bridge;

/// So many frames are handed over before the one who reads must have taken them.
const CAPACITY: usize = 32;

/// Frames out of a small channel. Who does not take them fills it, and then waits in the fan-out alone.
pub(crate) struct Inbox {
    bridge: Bridge,
    listener: ListenerId,
    frames: Option<mpsc::Receiver<Arc<Frame>>>,
    taken: usize,
}

impl Inbox {
    /// The inbox of a listener, and what the fan-out is to be told of it.
    pub(crate) fn new(bridge: &Bridge, listener: ListenerId) -> (Self, Sink) {
        let (sender, frames) = mpsc::channel(CAPACITY);
        let inbox = Self { bridge: bridge.clone(), listener, frames: Some(frames), taken: 0 };
        (inbox, Sink::Channel(sender))
    }

    /// The next frame; none when the fan-out has let go of it. A future that is dropped before it is done loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Arc<Frame>> {
        let frame = self.frames.as_mut()?.recv().await?;
        self.took();
        Some(frame)
    }

    /// The next frame, if it is there already.
    pub(crate) fn at_hand(&mut self) -> Option<Arc<Frame>> {
        let frame = self.frames.as_mut()?.try_recv().ok()?;
        self.took();
        Some(frame)
    }

    /// Whether nothing is there at the moment.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.as_ref().is_none_or(mpsc::Receiver::is_empty)
    }

    /// Only a channel that was full has somebody waiting at its other end, and it takes as many to empty it as it holds.
    fn took(&mut self) {
        self.taken += 1;
        if self.frames.as_ref().is_some_and(mpsc::Receiver::is_empty) {
            if self.taken >= CAPACITY {
                self.bridge.ready(self.listener);
            }
            self.taken = 0;
        }
    }
}

impl Drop for Inbox {
    /// The fan-out looks at once whether anybody is there, and learns that nobody is.
    fn drop(&mut self) {
        self.frames = None;
        self.bridge.ready(self.listener);
    }
}
