//! The spans of a lane: from the row where something begins to the row where it ends.

#[derive(Debug, PartialEq, Eq)]
pub(super) struct LaneSpan {
    pub(super) key: String,
    pub(super) start: usize,
    /// `None` while the span is open.
    pub(super) end: Option<usize>,
    /// The horizontal position among spans that overlap in time.
    pub(super) track: usize,
}

/// The spans of one lane. At most [`MAX_TRACKS`] are drawn side by side; further ones share the last track.
#[derive(Default)]
pub(super) struct LaneSpans {
    pub(super) spans: Vec<LaneSpan>,
    open_indices: Vec<usize>,
}

/// Maximum number of tracks side by side.
pub(super) const MAX_TRACKS: usize = 4;

impl LaneSpans {
    pub(super) fn begin(&mut self, key: &str, row: usize) {
        let is_free = |track: &usize| {
            !self
                .open_indices
                .iter()
                .any(|index| self.spans.get(*index).is_some_and(|span| span.track == *track))
        };
        let track = (0..MAX_TRACKS).find(is_free).unwrap_or(MAX_TRACKS - 1);
        self.open_indices.push(self.spans.len());
        self.spans.push(LaneSpan { key: key.to_owned(), start: row, end: None, track });
    }

    pub(super) fn is_open(&self, key: &str) -> bool {
        self.open_indices.iter().any(|index| self.spans.get(*index).is_some_and(|span| span.key == key))
    }

    /// Ends the oldest open span with this key.
    pub(super) fn end(&mut self, key: &str, row: usize) {
        let position = self
            .open_indices
            .iter()
            .position(|index| self.spans.get(*index).is_some_and(|span| span.key == key));
        if let Some(position) = position {
            let index = self.open_indices.remove(position);
            if let Some(span) = self.spans.get_mut(index) {
                span.end = Some(row);
            }
        }
    }

    /// Ends all open spans, because the session is over.
    pub(super) fn end_all(&mut self, row: usize) {
        for index in std::mem::take(&mut self.open_indices) {
            if let Some(span) = self.spans.get_mut(index) {
                span.end = Some(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_get_separate_tracks() {
        let mut lane = LaneSpans::default();
        lane.begin("a", 0);
        lane.begin("b", 1);
        lane.end("a", 2);
        lane.begin("c", 3);
        lane.end("unknown", 4);
        lane.end_all(5);
        let spans: Vec<_> =
            lane.spans.iter().map(|span| (span.key.as_str(), span.start, span.end, span.track)).collect();
        assert_eq!(spans, [("a", 0, Some(2), 0), ("b", 1, Some(5), 1), ("c", 3, Some(5), 0)]);
        for row in 0..10 {
            lane.begin("many", row);
        }
        assert!(lane.spans.iter().all(|span| span.track < MAX_TRACKS));
    }
}
