//! Decides when an event may be sent, by rate, pace, and pauses for low cognitive load.

use seal::UnixMillis;

use crate::message::CognitiveLoad;
use crate::shaping::ShapingTerms;

/// The pause between mergeable announcements for low cognitive load. With less than about four
/// seconds between them, announcements interrupt each other in screen readers.
const QUIET_PERIOD_MILLIS: i64 = 4000;

/// Releases one event at a time. Times are in milliseconds. Only the times for the rate are in
/// microseconds, to support more than a thousand events per second.
#[derive(Clone, Debug)]
pub(super) struct RateLimiter {
    /// Microseconds between two events.
    interval_micros: Option<i64>,
    /// The earliest time of the next event (GCRA with a burst of one), in microseconds.
    next_slot_micros: i64,
    pace_wpm: Option<i64>,
    /// The time at which all text sent so far will have been spoken.
    speaking_until: UnixMillis,
    has_low_cognitive_load: bool,
    quiet_until: UnixMillis,
    /// Whether events are always queued, even without a rate or a pace, so that they can be merged until
    /// `Shaper::pull` takes them.
    always_queues: bool,
}

/// Properties of an event that affect when it may be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutgoingKind {
    pub(super) is_text: bool,
    /// Whether the event could still be merged with a later event.
    pub(super) is_mergeable: bool,
}

impl RateLimiter {
    pub(super) fn new(terms: &ShapingTerms) -> Self {
        let to_i64 = |number: u64| i64::try_from(number).unwrap_or(i64::MAX).max(1);
        Self {
            interval_micros: terms.max_events_per_second.map(|rate| {
                1_000_000_i64.div_euclid(to_i64(rate)) + i64::from(1_000_000 % to_i64(rate) != 0)
            }),
            next_slot_micros: i64::MIN,
            pace_wpm: terms.pace_wpm.map(to_i64),
            speaking_until: UnixMillis::MIN,
            has_low_cognitive_load: terms.cognitive_load == CognitiveLoad::Low,
            quiet_until: UnixMillis::MIN,
            always_queues: false,
        }
    }

    /// Creates a limiter for a queue that holds all events until the next `Shaper::pull`.
    pub(super) fn for_backlog(terms: &ShapingTerms) -> Self {
        Self { always_queues: true, ..Self::new(terms) }
    }

    /// Applies new terms. Events that were already sent still count.
    pub(super) fn update_terms(&mut self, terms: &ShapingTerms) {
        let previous = self.clone();
        *self = Self {
            next_slot_micros: previous.next_slot_micros,
            speaking_until: previous.speaking_until,
            ..Self::new(terms)
        };
    }

    /// Returns whether events can be held at all.
    pub(super) fn can_hold(&self) -> bool {
        self.interval_micros.is_some()
            || self.pace_wpm.is_some()
            || self.has_low_cognitive_load
            || self.always_queues
    }

    /// Returns whether an event may be sent before an earlier event.
    pub(super) fn may_reorder(&self) -> bool {
        self.pace_wpm.is_some() || self.has_low_cognitive_load
    }

    /// Returns the first millisecond at which this event may be sent.
    pub(super) fn earliest_send_time(&self, kind: OutgoingKind) -> UnixMillis {
        let mut at = if self.interval_micros.is_some() {
            UnixMillis::new(self.next_slot_micros.div_euclid(1000))
        } else {
            UnixMillis::MIN
        };
        if kind.is_text && self.pace_wpm.is_some() {
            at = at.max(self.speaking_until);
        }
        if kind.is_mergeable && self.has_low_cognitive_load {
            at = at.max(self.quiet_until);
        }
        at
    }

    /// Records a sent event and the number of words in its text.
    pub(super) fn record_sent(&mut self, kind: OutgoingKind, words: impl FnOnce() -> usize, now: UnixMillis) {
        if let Some(interval) = self.interval_micros {
            self.next_slot_micros =
                self.next_slot_micros.max(now.get().saturating_mul(1000)).saturating_add(interval);
        }
        if kind.is_text
            && let Some(pace) = self.pace_wpm
        {
            let words = i64::try_from(words()).unwrap_or(i64::MAX);
            let speaking_millis = words.saturating_mul(60_000) / pace;
            self.speaking_until = self.speaking_until.max(now).saturating_add(speaking_millis);
        }
        if self.has_low_cognitive_load {
            self.quiet_until = now.saturating_add(QUIET_PERIOD_MILLIS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: OutgoingKind = OutgoingKind { is_text: false, is_mergeable: false };

    #[test]
    fn no_second_contains_more_events_than_the_rate() {
        for rate in [1, 2, 3, 7, 10, 999, 1000, 1001, 3000, 7777, 100_000] {
            let mut limiter = RateLimiter::new(&ShapingTerms {
                max_events_per_second: Some(rate),
                ..ShapingTerms::default()
            });
            let mut sent = Vec::new();
            for now in (0..3000).map(UnixMillis::new) {
                while limiter.earliest_send_time(PLAIN) <= now {
                    limiter.record_sent(PLAIN, || 0, now);
                    sent.push(now);
                }
            }
            let limit = usize::try_from(rate).unwrap();
            for (first, after) in sent.iter().zip(sent.iter().skip(limit)) {
                assert!(*after - *first >= 1000, "{rate}: too many events from {first} to {after}");
            }
            assert!(sent.len() * 10 >= limit * 27, "{rate}: only {} events in three seconds", sent.len());
        }
    }
}
