//! The playback speed of a recording, and a clock that waits accordingly.

use std::time::{Duration, Instant};

use seal::UnixMillis;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speed {
    /// This many times as fast as real time.
    Factor(f64),
    /// Without pauses.
    Max,
}

impl Speed {
    /// Parses a positive number, or `max`.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse::<f64>() {
            Ok(factor) if (0.001..=100_000.0).contains(&factor) => Ok(Self::Factor(factor)),
            _ => Err("it must be a number from 0.001 to 100000, or max"),
        }
    }

    /// Returns how long a pause of `millis` milliseconds in the recording lasts at this speed.
    pub(super) fn scale_pause(self, millis: i64) -> Duration {
        match self {
            Self::Max => Duration::ZERO,
            #[allow(clippy::cast_precision_loss, reason = "the rounding error is too small to notice")]
            Self::Factor(factor) => {
                Duration::try_from_secs_f64(millis.max(0) as f64 / 1000.0 / factor).unwrap_or(Duration::MAX)
            }
        }
    }
}

/// Maps times in a recording to this machine's clock, and waits for them.
pub(super) struct PlaybackClock {
    speed: Speed,
    /// The time of the first event, on this machine's clock and on the recording's.
    started_at: Option<(Instant, UnixMillis)>,
}

impl PlaybackClock {
    pub(super) fn new(speed: Speed) -> Self {
        Self { speed, started_at: None }
    }

    /// Waits until playback reaches the time `at` in the recording. Returns immediately if it has passed.
    pub(super) fn wait_until(&mut self, at: UnixMillis) {
        let (started, first) = *self.started_at.get_or_insert_with(|| (Instant::now(), at));
        let pause = self.speed.scale_pause(at.millis_since(first));
        let remaining = pause.saturating_sub(started.elapsed());
        if !remaining.is_zero() {
            std::thread::sleep(remaining);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_scaled_by_the_speed() {
        assert_eq!(Speed::Factor(1.0).scale_pause(1500), Duration::from_millis(1500));
        assert_eq!(Speed::Factor(10.0).scale_pause(1500), Duration::from_millis(150));
        assert_eq!(Speed::Factor(0.5).scale_pause(1500), Duration::from_secs(3));
        assert_eq!(Speed::Factor(1.0).scale_pause(-1), Duration::ZERO);
        assert_eq!(Speed::Max.scale_pause(i64::MAX), Duration::ZERO);
        assert!(Speed::Factor(0.001).scale_pause(i64::MAX) > Duration::from_hours(24));
    }

    #[test]
    fn a_speed_is_a_number_or_max() {
        assert_eq!(Speed::parse("max"), Ok(Speed::Max));
        assert_eq!(Speed::parse("2.5"), Ok(Speed::Factor(2.5)));
        for text in ["0", "-1", "NaN", "inf", "1e9", "fast", ""] {
            assert!(Speed::parse(text).is_err(), "{text}");
        }
    }
}
