//! The frames of one shape.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Frame;

/// The frames of one shape, the newest last; the oldest are forgotten as the limits say.
#[derive(Debug)]
pub struct Lane {
    frames: VecDeque<Arc<Frame>>,
    /// The number of the first frame that is kept.
    pub(super) first: u64,
    /// The numbers of the critical ones among those kept.
    pub(super) criticals: VecDeque<u64>,
    bytes: usize,
    limits: LaneLimits,
}

/// How far a listener may fall behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLimits {
    /// Frames.
    pub frames: usize,
    /// Bytes.
    pub bytes: usize,
    /// Frames, before what waits is joined.
    pub merge: usize,
}

impl Default for LaneLimits {
    fn default() -> Self {
        Self { frames: 10_000, bytes: 4 * 1024 * 1024, merge: 256 }
    }
}

impl Lane {
    /// An empty lane.
    pub fn new(limits: LaneLimits) -> Self {
        Self { frames: VecDeque::new(), first: 0, criticals: VecDeque::new(), bytes: 0, limits }
    }

    /// Puts a frame on the end.
    pub fn push(&mut self, frame: Arc<Frame>) {
        if frame.critical {
            self.criticals.push_back(self.end());
        }
        self.bytes += frame.size();
        self.frames.push_back(frame);
        while self.frames.len() > self.limits.frames
            || self.bytes > self.limits.bytes && self.frames.len() > 1
        {
            if let Some(gone) = self.frames.pop_front() {
                self.bytes -= gone.size();
                self.first += 1;
            }
        }
        while self.criticals.front().is_some_and(|number| *number < self.first) {
            self.criticals.pop_front();
        }
    }

    /// The number that the next frame will have.
    pub fn end(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// How much of what a lane may hold so many of its newest frames are, by number or by their average weight.
    #[allow(clippy::cast_precision_loss, reason = "a share need not be exact")]
    pub fn share_behind(&self, frames: u64) -> f64 {
        let average = self.bytes as f64 / self.frames.len().max(1) as f64;
        let (frames, most) = (frames as f64, self.limits.frames.max(1) as f64);
        (frames / most).max(frames * average / self.limits.bytes.max(1) as f64)
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<Frame>> {
        usize::try_from(number.checked_sub(self.first)?).ok().and_then(|at| self.frames.get(at))
    }
}
