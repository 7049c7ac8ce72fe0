//! Clocks: an enum and an array (D9). Some can stand still.

use seal::UnixMillis;

use crate::machine::Timer;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Clock {
    #[default]
    Off,
    Until(UnixMillis),
    /// Standing still with so many milliseconds left.
    Frozen(i64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Timers([Clock; 4]);

impl Timers {
    pub(super) fn start(&mut self, timer: Timer, at: UnixMillis) {
        self.0[timer as usize] = Clock::Until(at);
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = Clock::Off;
    }

    pub(super) fn stop_all(&mut self) {
        self.0 = Default::default();
    }

    /// All that run stand still.
    pub(super) fn freeze(&mut self, now: UnixMillis) {
        for clock in &mut self.0 {
            if let Clock::Until(at) = *clock {
                *clock = Clock::Frozen(at.millis_since(now).max(0));
            }
        }
    }

    /// All that stand still go on.
    pub(super) fn thaw(&mut self, now: UnixMillis) {
        for clock in &mut self.0 {
            if let Clock::Frozen(left) = *clock {
                *clock = Clock::Until(now.saturating_add(left));
            }
        }
    }

    pub(super) fn deadline(&self, timer: Timer) -> Option<UnixMillis> {
        match self.0[timer as usize] {
            Clock::Until(at) => Some(at),
            Clock::Off | Clock::Frozen(_) => None,
        }
    }

    pub(super) fn is_set(&self, timer: Timer) -> bool {
        self.0[timer as usize] != Clock::Off
    }

    pub(super) fn next(&self) -> Option<(UnixMillis, Timer)> {
        Timer::ALL.into_iter().filter_map(|timer| Some((self.deadline(timer)?, timer))).min()
    }
}
