//! How fast a recording is told.

use std::time::{Duration, Instant};

use seal::UnixMillis;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speed {
    /// So many times as fast as it happened.
    Times(f64),
    /// Without any pause.
    Max,
}

impl Speed {
    /// A number above nothing, or the word max.
    pub(super) fn parse(word: &str) -> Result<Self, &'static str> {
        if word == "max" {
            return Ok(Self::Max);
        }
        match word.parse::<f64>() {
            Ok(times) if (0.001..=100_000.0).contains(&times) => Ok(Self::Times(times)),
            _ => Err("a speed is a number from 0.001 to 100000, or max"),
        }
    }

    /// How long to wait for what came so many milliseconds later.
    pub(super) fn pause(self, millis: i64) -> Duration {
        match self {
            Self::Max => Duration::ZERO,
            #[allow(clippy::cast_precision_loss, reason = "nobody hears the difference")]
            Self::Times(times) => {
                Duration::try_from_secs_f64(millis.max(0) as f64 / 1000.0 / times).unwrap_or(Duration::MAX)
            }
        }
    }
}

/// Waits for the times of a recording.
pub(super) struct Clock {
    speed: Speed,
    /// When the first thing was told, by this clock and by the recording's.
    begun: Option<(Instant, UnixMillis)>,
}

impl Clock {
    pub(super) fn new(speed: Speed) -> Self {
        Self { speed, begun: None }
    }

    /// Waits until it is that time in the recording. What has passed is not waited for.
    pub(super) fn wait_until(&mut self, at: UnixMillis) {
        let (begun, first) = *self.begun.get_or_insert_with(|| (Instant::now(), at));
        let pause = self.speed.pause(at.millis_since(first));
        let left = pause.saturating_sub(begun.elapsed());
        if !left.is_zero() {
            std::thread::sleep(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_as_they_were_or_scaled_or_none() {
        assert_eq!(Speed::Times(1.0).pause(1500), Duration::from_millis(1500));
        assert_eq!(Speed::Times(10.0).pause(1500), Duration::from_millis(150));
        assert_eq!(Speed::Times(0.5).pause(1500), Duration::from_secs(3));
        assert_eq!(Speed::Times(1.0).pause(-1), Duration::ZERO);
        assert_eq!(Speed::Max.pause(i64::MAX), Duration::ZERO);
        assert!(Speed::Times(0.001).pause(i64::MAX) > Duration::from_hours(24));
    }

    #[test]
    fn a_speed_is_a_number_or_max() {
        assert_eq!(Speed::parse("max"), Ok(Speed::Max));
        assert_eq!(Speed::parse("2.5"), Ok(Speed::Times(2.5)));
        for word in ["0", "-1", "NaN", "inf", "1e9", "fast", ""] {
            assert!(Speed::parse(word).is_err(), "{word}");
        }
    }
}
