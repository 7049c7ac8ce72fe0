//! When something may leave: the rate, the pace, and pauses for who has little room for more.

use seal::UnixMillis;

use crate::message::CognitiveLoad;
use crate::shape::Wants;

/// Between announcements that could have been joined, for who wants the fewest of them. Screen readers found about four
/// seconds to be what announcements need not to cut each other off.
const QUIET_MILLIS: i64 = 4000;

/// Opens for one event at a time. Time is in milliseconds; the rate is kept in microseconds, so that rates beyond a
/// thousand work.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// Microseconds between two events.
    interval: Option<i64>,
    /// The instant of the next event (GCRA with a burst of one), in microseconds.
    next: i64,
    pace_wpm: Option<i64>,
    /// Until when the text that has left is being spoken.
    speaking_until: UnixMillis,
    low: bool,
    quiet_until: UnixMillis,
    /// Whoever pulls says when; nothing else does.
    by_hand: bool,
}

/// What leaves, as far as the gate cares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) is_text: bool,
    /// It could still be joined with what comes.
    pub(super) is_open: bool,
}

impl Gate {
    pub(super) fn new(wants: &Wants) -> Self {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX).max(1);
        Self {
            interval: wants
                .rate
                .map(|rate| 1_000_000_i64.div_euclid(whole(rate)) + i64::from(1_000_000 % whole(rate) != 0)),
            next: i64::MIN,
            pace_wpm: wants.pace_wpm.map(whole),
            speaking_until: UnixMillis::MIN,
            low: wants.cognitive_load == CognitiveLoad::Low,
            quiet_until: UnixMillis::MIN,
            by_hand: false,
        }
    }

    /// One that holds everything until it is pulled, and then lets it go.
    pub(super) fn by_hand(wants: &Wants) -> Self {
        Self { by_hand: true, ..Self::new(wants) }
    }

    /// New terms: what has been sent still counts.
    pub(super) fn renew(&mut self, wants: &Wants) {
        let before = self.clone();
        *self = Self { next: before.next, speaking_until: before.speaking_until, ..Self::new(wants) };
    }

    /// Whether anything can ever be held here.
    pub(super) fn holds(&self) -> bool {
        self.interval.is_some() || self.pace_wpm.is_some() || self.low || self.by_hand
    }

    /// Whether some events may pass before others that came first.
    pub(super) fn is_choosy(&self) -> bool {
        self.pace_wpm.is_some() || self.low
    }

    /// The first millisecond at which it opens for this.
    pub(super) fn opens_at(&self, leaving: Leaving) -> UnixMillis {
        let mut at = if self.interval.is_some() {
            UnixMillis::new(self.next.div_euclid(1000))
        } else {
            UnixMillis::MIN
        };
        if leaving.is_text && self.pace_wpm.is_some() {
            at = at.max(self.speaking_until);
        }
        if leaving.is_open && self.low {
            at = at.max(self.quiet_until);
        }
        at
    }

    /// Takes note of what leaves, and of the words of text in it.
    pub(super) fn pass(&mut self, leaving: Leaving, words: impl FnOnce() -> usize, now: UnixMillis) {
        if let Some(interval) = self.interval {
            self.next = self.next.max(now.get().saturating_mul(1000)).saturating_add(interval);
        }
        if leaving.is_text
            && let Some(pace) = self.pace_wpm
        {
            let words = i64::try_from(words()).unwrap_or(i64::MAX);
            let takes = words.saturating_mul(60_000) / pace;
            self.speaking_until = self.speaking_until.max(now).saturating_add(takes);
        }
        if self.low {
            self.quiet_until = now.saturating_add(QUIET_MILLIS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Leaving = Leaving { is_text: false, is_open: false };

    #[test]
    fn no_second_ever_holds_more_than_the_rate() {
        for rate in [1, 2, 3, 7, 10, 999, 1000, 1001, 3000, 7777, 100_000] {
            let mut gate = Gate::new(&Wants { rate: Some(rate), ..Wants::default() });
            let mut sent = Vec::new();
            for now in (0..3000).map(UnixMillis::new) {
                while gate.opens_at(ANY) <= now {
                    gate.pass(ANY, || 0, now);
                    sent.push(now);
                }
            }
            let most = usize::try_from(rate).unwrap();
            for (first, after) in sent.iter().zip(sent.iter().skip(most)) {
                assert!(*after - *first >= 1000, "{rate}: more than that many from {first} to {after}");
            }
            assert!(sent.len() * 10 >= most * 27, "{rate}: only {}", sent.len());
        }
    }
}
