//! What waits for a listener that does not keep up.

use std::sync::Arc;

use aaep::event::{Event, Payload};
use aaep::shape::{Limits, Out, Shaper};
use seal::UnixMillis;

use super::{Frame, LaneLimits, Part};

/// The queue of one slow listener: joined where that loses nothing, criticals in front (C-C18).
#[derive(Debug)]
pub struct Backlog {
    shaper: Shaper<Waiting>,
    /// No less than the bytes that wait.
    bytes: usize,
    limits: LaneLimits,
}

#[derive(Debug)]
struct Waiting {
    event: Arc<Event>,
    frame: Arc<Frame>,
}

impl AsRef<Event> for Waiting {
    fn as_ref(&self) -> &Event {
        &self.event
    }
}

/// What an event weighs beside its text.
const ENVELOPE: usize = 512;

impl Backlog {
    /// An empty one.
    pub fn new(limits: LaneLimits) -> Self {
        Self { shaper: Shaper::backlog(Limits::default()), bytes: 0, limits }
    }

    /// Puts a frame behind what waits, or joins it with that. `false` if more waits now than may.
    #[must_use]
    pub fn push(&mut self, frame: &Arc<Frame>) -> bool {
        // What is no event tells where to resume, and of that there is nothing to tell before it has caught up.
        if let Some(event) = frame.parsed() {
            self.bytes += frame.size();
            self.shaper.push(&Arc::new(Waiting { event, frame: frame.clone() }));
        }
        if self.bytes > self.limits.bytes {
            self.bytes = self.shaper.waiting().map(weight).sum();
        }
        self.len() <= self.limits.frames && self.bytes <= self.limits.bytes
    }

    /// Takes out the next frame.
    pub fn pull(&mut self, now: UnixMillis) -> Option<Arc<Frame>> {
        let Some(out) = self.shaper.pull(now) else {
            self.bytes = 0;
            return None;
        };
        let frame = match &out {
            Out::Same(waiting) => waiting.frame.clone(),
            Out::Made(event) => {
                let (id, session) = (event.envelope.event_id.as_str(), event.envelope.session_id.as_str());
                let frame = Frame::event(id, &event.to_json(), 0, out.is_critical());
                Arc::new(frame.of_session(session, Part::of(event)))
            }
        };
        self.bytes = self.bytes.saturating_sub(frame.size());
        Some(frame)
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.shaper.waits()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn weight(out: &Out<Waiting>) -> usize {
    match out {
        Out::Same(waiting) => waiting.frame.size(),
        Out::Made(event) => match &event.payload {
            Payload::OutputStreaming(chunk) => ENVELOPE + chunk.chunk.len(),
            _ => ENVELOPE,
        },
    }
}
