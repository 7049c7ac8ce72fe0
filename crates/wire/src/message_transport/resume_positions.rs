//! Resume positions for all transports except SSE. SSE sends an id with each event. On the other transports, a separate
//! message reports the last event id from time to time.

use std::sync::Arc;

use aaep::EventId;
use aaep::json::JsonWriter;
use hub::ResumeCursor;
use hub::delivery::{Frame, FrameKind};

/// Maximum number of frames between two resume positions.
const MAX_FRAMES_BETWEEN: usize = 32;

/// Decides when to send a resume position.
#[derive(Default)]
pub(super) struct ResumePositionTracker {
    /// Whether the listener asked for resume positions.
    is_enabled: bool,
    /// The last event after which the listener can resume, until it is sent as a resume position.
    pending: Option<String>,
    /// For a listener of several shards: the position in each shard from which a new subscription can resume.
    cursor: ResumeCursor,
    /// Number of frames since the last resume position was sent.
    frames_since_last: usize,
}

impl ResumePositionTracker {
    /// Creates a tracker. A disabled tracker never returns a resume position.
    pub(super) fn new(is_enabled: bool) -> Self {
        Self { is_enabled, ..Self::default() }
    }

    /// Records a frame that was sent.
    pub(super) fn record(&mut self, frame: &Arc<Frame>) {
        if !self.is_enabled {
            return;
        }
        self.frames_since_last += 1;
        // Only event ids are used, because a journal position would mean nothing to a hub with another journal.
        let Some(id) = frame.id() else { return };
        if EventId::parse(id).is_ok() {
            self.pending = Some(id.to_owned());
        } else if let Some(cursor) = ResumeCursor::parse(id) {
            self.cursor.advance_to(&cursor);
            if frame.kind() == FrameKind::Event {
                self.pending = Some(self.cursor.to_string());
            }
        }
    }

    /// Returns a resume position if one is due, which is when the queue is empty or after [`MAX_FRAMES_BETWEEN`] frames.
    pub(super) fn take_due(&mut self, queue_is_empty: bool) -> Option<Arc<Frame>> {
        if self.pending.is_none() || !queue_is_empty && self.frames_since_last < MAX_FRAMES_BETWEEN {
            return None;
        }
        self.frames_since_last = 0;
        let last = self.pending.take()?;
        let mut writer = JsonWriter::default();
        writer.open_object();
        for (name, text) in [("type", "sayso:position"), ("last_event_id", &*last)] {
            writer.key(name);
            writer.text(text);
        }
        writer.close_object();
        Some(Arc::new(Frame::message(&writer.finish())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str) -> Arc<Frame> {
        Arc::new(Frame::event(id, &format!(r#"{{"event_id":"{id}"}}"#), 1, true))
    }

    fn json_of(frame: Option<Arc<Frame>>) -> Option<String> {
        frame.map(|frame| frame.json().to_owned())
    }

    fn place_message(id: &str) -> String {
        format!(r#"{{"type":"sayso:position","last_event_id":"{id}"}}"#)
    }

    #[test]
    fn frames_without_an_event_id_are_no_resume_positions() {
        let mut tracker = ResumePositionTracker::new(true);
        tracker.record(&event("evt_1"));
        tracker.record(&event("evt_3").without_id());
        assert_eq!(json_of(tracker.take_due(true)), Some(place_message("evt_1")));
        tracker.record(&event("evt_4").without_id());
        tracker.record(&Arc::new(Frame::resume_position("at_9")));
        tracker.record(&Arc::new(Frame::resume_position("behind")));
        assert_eq!(json_of(tracker.take_due(true)), None, "none of these frames is a resume position");
    }

    #[test]
    fn a_resume_position_is_due_when_the_queue_is_empty_or_after_enough_frames() {
        let mut tracker = ResumePositionTracker::new(true);
        for number in 1..MAX_FRAMES_BETWEEN {
            tracker.record(&event(&format!("evt_{number}")));
            assert_eq!(json_of(tracker.take_due(false)), None);
        }
        tracker.record(&event("evt_32"));
        assert_eq!(json_of(tracker.take_due(false)), Some(place_message("evt_32")));
        tracker.record(&event("evt_33"));
        assert_eq!(json_of(tracker.take_due(true)), Some(place_message("evt_33")));
    }

    #[test]
    fn a_disabled_tracker_sends_nothing() {
        let mut tracker = ResumePositionTracker::new(false);
        tracker.record(&event("evt_1"));
        assert_eq!(json_of(tracker.take_due(true)), None);
    }
}
