//! Where a listener is, on wires that do not tell with each event: SSE has ids, these have a message now and then.

use std::sync::Arc;

use aaep::EventId;
use aaep::json::Writer;
use hub::delivery::Frame;

/// At the latest after so many frames.
const AT_LEAST: usize = 32;

/// What there is to tell of places.
#[derive(Default)]
pub(super) struct Places {
    /// It was asked for.
    wanted: bool,
    /// The last place that is not told yet.
    last: Option<Arc<Frame>>,
    /// Frames since one was told.
    since: usize,
}

impl Places {
    /// Tells nothing unless it is `wanted`.
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// A frame was said.
    pub(super) fn note(&mut self, frame: &Arc<Frame>) {
        if !self.wanted {
            return;
        }
        self.since += 1;
        // A place in the log alone means nothing to who comes back to another log.
        if frame.id().is_some_and(|id| EventId::parse(id).is_ok()) {
            self.last = Some(frame.clone());
        }
    }

    /// What is to be told of it, now that nothing waits, or after a while.
    pub(super) fn due(&mut self, nothing_waits: bool) -> Option<Arc<Frame>> {
        if self.last.is_none() || !nothing_waits && self.since < AT_LEAST {
            return None;
        }
        self.since = 0;
        let last = self.last.take()?;
        let mut writer = Writer::default();
        writer.open_object();
        for (name, text) in [("type", "sayso:place"), ("last_event_id", last.id()?)] {
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

    fn told(place: Option<Arc<Frame>>) -> Option<String> {
        place.map(|place| place.json().to_owned())
    }

    fn at(id: &str) -> String {
        format!(r#"{{"type":"sayso:place","last_event_id":"{id}"}}"#)
    }

    #[test]
    fn what_overtook_others_is_no_place() {
        let mut places = Places::new(true);
        places.note(&event("evt_1"));
        places.note(&event("evt_3").nameless());
        assert_eq!(told(places.due(true)), Some(at("evt_1")));
        places.note(&event("evt_4").nameless());
        places.note(&Arc::new(Frame::mark("at_9")));
        places.note(&Arc::new(Frame::mark("behind")));
        assert_eq!(told(places.due(true)), None, "each is told once");
    }

    #[test]
    fn it_is_told_when_nothing_waits_or_after_a_while() {
        let mut places = Places::new(true);
        for number in 1..AT_LEAST {
            places.note(&event(&format!("evt_{number}")));
            assert_eq!(told(places.due(false)), None);
        }
        places.note(&event("evt_32"));
        assert_eq!(told(places.due(false)), Some(at("evt_32")));
        places.note(&event("evt_33"));
        assert_eq!(told(places.due(true)), Some(at("evt_33")));
    }

    #[test]
    fn who_did_not_ask_is_not_told() {
        let mut places = Places::new(false);
        places.note(&event("evt_1"));
        assert_eq!(told(places.due(true)), None);
    }
}
