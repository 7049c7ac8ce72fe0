//! The queue between the fan-out and the writer task of one listener.

use std::sync::Arc;

use hub::ListenerId;
use hub::delivery::Frame;
use tokio::sync::mpsc;

use crate::fanout::ListenerSink;
use crate::server::HubHandle;

/// Maximum number of frames in the channel.
const CAPACITY: usize = 32;

/// A bounded channel of frames. If its reader stops reading, the channel fills and further frames wait in the
/// fan-out.
pub(crate) struct OutboundQueue {
    hub: HubHandle,
    listener: ListenerId,
    frames: Option<mpsc::Receiver<Arc<Frame>>>,
    received_since_empty: usize,
}

impl OutboundQueue {
    /// Creates the queue of a listener, and the sink that the fan-out writes to.
    pub(crate) fn new(hub: &HubHandle, listener: ListenerId) -> (Self, ListenerSink) {
        let (sender, frames) = mpsc::channel(CAPACITY);
        let queue = Self { hub: hub.clone(), listener, frames: Some(frames), received_since_empty: 0 };
        (queue, ListenerSink::Channel(sender))
    }

    /// Returns the next frame, or `None` after the fan-out has closed the channel. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Arc<Frame>> {
        let frame = self.frames.as_mut()?.recv().await?;
        self.record_received();
        Some(frame)
    }

    /// Returns the next frame if one is queued.
    pub(crate) fn try_next(&mut self) -> Option<Arc<Frame>> {
        let frame = self.frames.as_mut()?.try_recv().ok()?;
        self.record_received();
        Some(frame)
    }

    /// Returns whether the queue currently holds no frame.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.as_ref().is_none_or(mpsc::Receiver::is_empty)
    }

    /// Counts a received frame. The fan-out waits only on channels that were full, so it is notified when a channel
    /// that may have been full has been emptied. Emptying a full channel takes at least [`CAPACITY`] frames.
    fn record_received(&mut self) {
        self.received_since_empty += 1;
        if self.frames.as_ref().is_some_and(mpsc::Receiver::is_empty) {
            if self.received_since_empty >= CAPACITY {
                self.hub.listener_ready(self.listener);
            }
            self.received_since_empty = 0;
        }
    }
}

impl Drop for OutboundQueue {
    /// Closes the channel and wakes the fan-out, which then removes the listener.
    fn drop(&mut self) {
        self.frames = None;
        self.hub.listener_ready(self.listener);
    }
}
