//! The timers of a session (D9, D21). They can be paused.

use seal::UnixMillis;

use crate::state_machine::Timer;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum TimerState {
    #[default]
    Off,
    /// Running, and expires at this time.
    Running(UnixMillis),
    /// Paused, with this many milliseconds remaining.
    Paused(i64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Timers([TimerState; Timer::ALL.len()]);

impl Timers {
    pub(super) fn start(&mut self, timer: Timer, expires_at: UnixMillis) {
        self.0[timer as usize] = TimerState::Running(expires_at);
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = TimerState::Off;
    }

    pub(super) fn stop_all(&mut self) {
        self.0 = Default::default();
    }

    /// Pauses all running timers.
    pub(super) fn pause_all(&mut self, now: UnixMillis) {
        for timer in &mut self.0 {
            if let TimerState::Running(expires_at) = *timer {
                *timer = TimerState::Paused(expires_at.millis_since(now).max(0));
            }
        }
    }

    /// Resumes all paused timers.
    pub(super) fn resume_all(&mut self, now: UnixMillis) {
        for timer in &mut self.0 {
            if let TimerState::Paused(remaining_ms) = *timer {
                *timer = TimerState::Running(now.saturating_add(remaining_ms));
            }
        }
    }

    pub(super) fn deadline(&self, timer: Timer) -> Option<UnixMillis> {
        match self.0[timer as usize] {
            TimerState::Running(expires_at) => Some(expires_at),
            TimerState::Off | TimerState::Paused(_) => None,
        }
    }

    pub(super) fn is_set(&self, timer: Timer) -> bool {
        self.0[timer as usize] != TimerState::Off
    }

    pub(super) fn next_expiry(&self) -> Option<(UnixMillis, Timer)> {
        Timer::ALL.into_iter().filter_map(|timer| Some((self.deadline(timer)?, timer))).min()
    }
}
