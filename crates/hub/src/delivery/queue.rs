//! The queue of frames that a delivery group shares.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Frame;

/// The frames of one delivery group, newest last. The oldest are dropped when the limits are reached.
#[derive(Debug)]
pub struct DeliveryQueue {
    frames: VecDeque<Arc<Frame>>,
    /// The number of the oldest frame in the queue.
    pub(super) first_number: u64,
    /// The numbers of the critical frames in the queue.
    pub(super) criticals: VecDeque<u64>,
    bytes: usize,
    limits: DeliveryLimits,
}

/// Limits for the frames that wait for a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryLimits {
    /// Maximum number of frames.
    pub frames: usize,
    /// Maximum number of bytes.
    pub bytes: usize,
    /// If more frames than this are waiting for one listener, they are merged.
    pub merge_above_frames: usize,
}

impl Default for DeliveryLimits {
    fn default() -> Self {
        Self { frames: 10_000, bytes: 4 * 1024 * 1024, merge_above_frames: 256 }
    }
}

impl DeliveryQueue {
    /// Creates an empty queue.
    pub fn new(limits: DeliveryLimits) -> Self {
        Self { frames: VecDeque::new(), first_number: 0, criticals: VecDeque::new(), bytes: 0, limits }
    }

    /// Appends a frame.
    pub fn push(&mut self, frame: Arc<Frame>) {
        if frame.is_critical {
            self.criticals.push_back(self.end());
        }
        self.bytes += frame.size();
        self.frames.push_back(frame);
        while self.frames.len() > self.limits.frames
            || self.bytes > self.limits.bytes && self.frames.len() > 1
        {
            if let Some(dropped) = self.frames.pop_front() {
                self.bytes -= dropped.size();
                self.first_number += 1;
            }
        }
        while self.criticals.front().is_some_and(|number| *number < self.first_number) {
            self.criticals.pop_front();
        }
    }

    /// Returns the number that the next frame will get.
    pub fn end(&self) -> u64 {
        self.first_number + self.frames.len() as u64
    }

    /// Returns the fraction of the queue's limits that this many frames of average size use, by count or by bytes, whichever
    /// is larger.
    #[allow(clippy::cast_precision_loss, reason = "a ratio does not need to be exact")]
    pub fn fill_ratio(&self, frames: u64) -> f64 {
        let average = self.bytes as f64 / self.frames.len().max(1) as f64;
        let (frames, max_frames) = (frames as f64, self.limits.frames.max(1) as f64);
        (frames / max_frames).max(frames * average / self.limits.bytes.max(1) as f64)
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<Frame>> {
        usize::try_from(number.checked_sub(self.first_number)?).ok().and_then(|at| self.frames.get(at))
    }
}
