//! The queue of a listener that does not keep up.

use std::sync::Arc;

use aaep::event::{Event, Payload};
use aaep::shaping::{OutgoingEvent, Shaper, ShaperLimits};
use seal::UnixMillis;

use super::{DeliveryLimits, Frame, OrderingClass};

/// The queue of one slow listener. It merges events if no information is lost, and delivers critical events first
/// (C-C18).
#[derive(Debug)]
pub struct Backlog {
    shaper: Shaper<BacklogEntry>,
    /// An upper bound for the number of waiting bytes.
    bytes: usize,
    limits: DeliveryLimits,
}

#[derive(Debug)]
struct BacklogEntry {
    event: Arc<Event>,
    frame: Arc<Frame>,
}

impl AsRef<Event> for BacklogEntry {
    fn as_ref(&self) -> &Event {
        &self.event
    }
}

/// Estimated size of an event without its text, in bytes.
const ENVELOPE_BYTES: usize = 512;

impl Backlog {
    /// Creates an empty backlog.
    pub fn new(limits: DeliveryLimits) -> Self {
        Self { shaper: Shaper::for_backlog(ShaperLimits::default()), bytes: 0, limits }
    }

    /// Appends a frame or merges it with waiting frames. Returns `false` if the backlog now exceeds its limits.
    #[must_use]
    pub fn push(&mut self, frame: &Arc<Frame>) -> bool {
        // A frame without an event is a resume position. It is dropped, because the listener cannot resume from it until
        // it has caught up.
        if let Some(event) = frame.parsed_event() {
            self.bytes += frame.size();
            self.shaper.push(&Arc::new(BacklogEntry { event, frame: frame.clone() }));
        }
        if self.bytes > self.limits.bytes {
            self.bytes = self.shaper.queued_events().map(byte_size).sum();
        }
        self.len() <= self.limits.frames && self.bytes <= self.limits.bytes
    }

    /// Removes the next frame.
    pub fn pull(&mut self, now: UnixMillis) -> Option<Arc<Frame>> {
        let Some(out) = self.shaper.pull(now) else {
            self.bytes = 0;
            return None;
        };
        let frame = match &out {
            OutgoingEvent::Unchanged(entry) => entry.frame.clone(),
            OutgoingEvent::Rewritten(event) => {
                let (id, session) = (event.envelope.event_id.as_str(), event.envelope.session_id.as_str());
                let frame = Frame::event(id, &event.to_json(), 0, out.is_critical());
                Arc::new(frame.with_session(session, OrderingClass::of(event)))
            }
        };
        self.bytes = self.bytes.saturating_sub(frame.size());
        Some(frame)
    }

    /// Returns the number of waiting events.
    pub fn len(&self) -> usize {
        self.shaper.pending_count()
    }

    /// Whether no events are waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn byte_size(out: &OutgoingEvent<BacklogEntry>) -> usize {
    match out {
        OutgoingEvent::Unchanged(entry) => entry.frame.size(),
        OutgoingEvent::Rewritten(event) => match &event.payload {
            Payload::OutputStreaming(chunk) => ENVELOPE_BYTES + chunk.chunk.len(),
            _ => ENVELOPE_BYTES,
        },
    }
}
