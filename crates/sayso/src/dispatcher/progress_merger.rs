//! Merges quick progress updates of a speaker (§4.2.2).

use std::time::{Duration, Instant};

use crate::member::Document;

/// The difference in percent from which an update is sent at once.
const PERCENT_STEP: f64 = 5.0;
/// The longest time that an update waits.
const MAX_INTERVAL: Duration = Duration::from_hours(1);

/// What decides whether an update says more than the one before it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgressMark {
    percent: f64,
    /// The event without its digits. Updates that differ in anything else are never merged.
    words: String,
    /// How long an update that says little more waits for the next one.
    interval: Duration,
}

impl ProgressMark {
    /// Returns the mark of an update with this percentage.
    pub(crate) fn new(event: &Document, percent: f64, interval: Duration) -> Self {
        let words = event.source().chars().filter(|c| !c.is_numeric() && *c != '.').collect();
        Self { percent, words, interval: interval.min(MAX_INTERVAL) }
    }

    /// Whether this update says enough more than an earlier one to be sent at once: the task is done, or it has moved by a step.
    fn says_more_than(&self, earlier: &Self) -> bool {
        self.percent >= 100.0 || (self.percent - earlier.percent).abs() >= PERCENT_STEP
    }
}

/// What to do with an update.
#[derive(Debug)]
pub(super) enum ProgressStep {
    /// It waits. The deadline is new if nothing was waiting before.
    Hold { new_deadline: Option<Instant> },
    /// It is sent now, after an earlier one that was held.
    Send { earlier: Option<Document>, update: Document },
}

/// Holds an update that says little more than one that was just sent. The next update with the same words replaces it. It is sent when
/// its time is over, or before anything else that the speaker reports, so the last update is never lost.
#[derive(Debug, Default)]
pub(super) struct ProgressMerger {
    /// The last update that was sent, and when.
    sent: Option<(ProgressMark, Instant)>,
    held: Option<(Document, ProgressMark)>,
}

impl ProgressMerger {
    /// Adds an update.
    pub(super) fn push(&mut self, event: Document, mark: ProgressMark, now: Instant) -> ProgressStep {
        let comparable = self.sent.as_ref().filter(|(sent, _)| sent.words == mark.words);
        let Some((sent, sent_at)) = comparable else {
            let earlier = self.release(now);
            self.sent = Some((mark, now));
            return ProgressStep::Send { earlier, update: event };
        };
        let until = *sent_at + mark.interval;
        if until <= now || mark.says_more_than(sent) {
            self.held = None;
            self.sent = Some((mark, now));
            return ProgressStep::Send { earlier: None, update: event };
        }
        let is_first = self.held.replace((event, mark)).is_none();
        ProgressStep::Hold { new_deadline: is_first.then_some(until) }
    }

    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the held update, because something else follows it or its time is over.
    pub(super) fn release(&mut self, now: Instant) -> Option<Document> {
        let (event, mark) = self.held.take()?;
        self.sent = Some((mark, now));
        Some(event)
    }

    /// Returns the held update if its time is over.
    pub(super) fn release_due(&mut self, now: Instant) -> Option<Document> {
        let (sent, sent_at) = self.sent.as_ref()?;
        if *sent_at + sent.interval > now {
            return None;
        }
        self.release(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member;

    fn update(text: &str, percent: f64) -> (Document, ProgressMark) {
        let event = member::object(|out| {
            out.key("percent").number(percent);
            member::text(out, "text", text);
        });
        let mark = ProgressMark::new(&event, percent, Duration::from_secs(1));
        (event, mark)
    }

    /// Adds an update and returns what is sent.
    fn push(merger: &mut ProgressMerger, text: &str, percent: f64, now: Instant) -> Vec<String> {
        let (event, mark) = update(text, percent);
        let was_holding = merger.is_holding();
        match merger.push(event, mark, now) {
            ProgressStep::Hold { new_deadline } => {
                assert_eq!(new_deadline.is_none(), was_holding);
                Vec::new()
            }
            ProgressStep::Send { earlier, update } => {
                earlier.into_iter().chain([update]).map(|event| event.source().to_owned()).collect()
            }
        }
    }

    fn source(text: &str, percent: f64) -> String {
        update(text, percent).0.source().to_owned()
    }

    #[test]
    fn an_update_that_says_little_more_waits_for_the_next_one() {
        let (mut merger, start) = (ProgressMerger::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(push(&mut merger, "Page 1.", 10.0, at(0)), [source("Page 1.", 10.0)]);
        assert!(push(&mut merger, "Page 2.", 11.0, at(100)).is_empty());
        assert!(push(&mut merger, "Page 3.", 14.9, at(999)).is_empty());
        assert!(merger.release_due(at(999)).is_none());
        assert_eq!(merger.release_due(at(1000)).unwrap().source(), source("Page 3.", 14.9));
        // The next second starts.
        assert!(push(&mut merger, "Page 4.", 16.0, at(1001)).is_empty());
        assert!(merger.release_due(at(1999)).is_none());
        assert_eq!(merger.release(at(1999)).unwrap().source(), source("Page 4.", 16.0));
        assert!(merger.release(at(1999)).is_none());
    }

    #[test]
    fn an_interval_has_a_maximum() {
        let (mut merger, now) = (ProgressMerger::default(), Instant::now());
        let (event, _) = update("Reading.", 10.0);
        let mark = ProgressMark::new(&event, 10.0, Duration::MAX);
        merger.push(event.clone(), mark.clone(), now);
        merger.push(event, mark, now);
        assert!(merger.release_due(now).is_none());
        assert!(merger.release_due(now + MAX_INTERVAL).is_some());
    }

    #[test]
    fn a_step_of_five_percent_the_end_and_other_words_are_sent_at_once() {
        let (mut merger, now) = (ProgressMerger::default(), Instant::now());
        push(&mut merger, "Reading.", 10.0, now);
        assert!(push(&mut merger, "Reading.", 11.0, now).is_empty());
        // The held update is superseded.
        assert_eq!(push(&mut merger, "Reading.", 15.0, now), [source("Reading.", 15.0)]);
        assert!(push(&mut merger, "Reading.", 12.0, now).is_empty());
        assert_eq!(push(&mut merger, "Reading.", 9.0, now), [source("Reading.", 9.0)]);
        push(&mut merger, "Reading.", 97.0, now);
        assert_eq!(push(&mut merger, "Reading.", 100.0, now), [source("Reading.", 100.0)]);
        push(&mut merger, "Reading.", 99.0, now);
        assert!(push(&mut merger, "Reading.", 98.0, now).is_empty());
        // Other words do not supersede it.
        let sent = push(&mut merger, "Writing.", 98.0, now);
        assert_eq!(sent, [source("Reading.", 98.0), source("Writing.", 98.0)]);
    }

    #[test]
    fn without_an_interval_every_update_is_sent() {
        let (mut merger, now) = (ProgressMerger::default(), Instant::now());
        for percent in [1.0, 1.1, 1.2] {
            let (event, mut mark) = update("Reading.", percent);
            mark.interval = Duration::ZERO;
            assert!(matches!(merger.push(event, mark, now), ProgressStep::Send { earlier: None, .. }));
        }
    }
}
