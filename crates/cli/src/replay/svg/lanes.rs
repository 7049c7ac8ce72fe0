//! What lasts in a lane: from the row where it begins to the row where it ends.

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) key: String,
    pub(super) from: usize,
    /// Nothing where it never ended.
    pub(super) to: Option<usize>,
    /// Its place beside others that last at the same time.
    pub(super) track: usize,
}

/// The spans of one lane. So many are drawn beside each other; further ones share the last track.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) spans: Vec<Span>,
    open: Vec<usize>,
}

/// Tracks beside each other.
pub(super) const TRACKS: usize = 4;

impl Lane {
    pub(super) fn begin(&mut self, key: &str, row: usize) {
        let is_free = |track: &usize| {
            !self.open.iter().any(|at| self.spans.get(*at).is_some_and(|span| span.track == *track))
        };
        let track = (0..TRACKS).find(is_free).unwrap_or(TRACKS - 1);
        self.open.push(self.spans.len());
        self.spans.push(Span { key: key.to_owned(), from: row, to: None, track });
    }

    pub(super) fn is_open(&self, key: &str) -> bool {
        self.open.iter().any(|at| self.spans.get(*at).is_some_and(|span| span.key == key))
    }

    /// Ends the oldest of that name.
    pub(super) fn end(&mut self, key: &str, row: usize) {
        let found = self.open.iter().position(|at| self.spans.get(*at).is_some_and(|span| span.key == key));
        if let Some(at) = found {
            let at = self.open.remove(at);
            if let Some(span) = self.spans.get_mut(at) {
                span.to = Some(row);
            }
        }
    }

    /// The session is over, and so is this.
    pub(super) fn end_all(&mut self, row: usize) {
        for at in std::mem::take(&mut self.open) {
            if let Some(span) = self.spans.get_mut(at) {
                span.to = Some(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_at_the_same_time_stands_beside_each_other() {
        let mut lane = Lane::default();
        lane.begin("a", 0);
        lane.begin("b", 1);
        lane.end("a", 2);
        lane.begin("c", 3);
        lane.end("unknown", 4);
        lane.end_all(5);
        let seen: Vec<_> = lane.spans.iter().map(|it| (it.key.as_str(), it.from, it.to, it.track)).collect();
        assert_eq!(seen, [("a", 0, Some(2), 0), ("b", 1, Some(5), 1), ("c", 3, Some(5), 0)]);
        for at in 0..10 {
            lane.begin("many", at);
        }
        assert!(lane.spans.iter().all(|span| span.track < TRACKS));
    }
}
