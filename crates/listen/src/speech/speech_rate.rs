//! The speed of speech.

use std::fmt;

/// The speed of speech on speech-dispatcher's scale: from -100 (slowest) through 0 (default) to 100 (fastest).
///
/// ```
/// use listen::speech::SpeechRate;
/// assert_eq!(SpeechRate::new(30).unwrap().to_string(), "30");
/// assert!(SpeechRate::new(101).is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeechRate(i8);

impl SpeechRate {
    /// The minimum and the maximum rate.
    pub const RANGE: (i8, i8) = (-100, 100);
    const STEP: i8 = 10;

    /// Creates a rate. Returns `None` if it is out of range.
    pub fn new(rate: i8) -> Option<Self> {
        (Self::RANGE.0..=Self::RANGE.1).contains(&rate).then_some(Self(rate))
    }

    /// Returns the next faster or slower rate, or `None` at the end of the range.
    pub fn step(self, faster: bool) -> Option<Self> {
        let next = if faster { self.0 + Self::STEP } else { self.0 - Self::STEP };
        let next = next.clamp(Self::RANGE.0, Self::RANGE.1);
        (next != self.0).then_some(Self(next))
    }

    /// Converts the rate to words per minute for espeak-ng: 80 to 450, with 170 in the middle.
    pub(super) fn words_per_minute(self) -> u16 {
        let rate = i32::from(self.0);
        let words_per_minute = if rate < 0 { 170 + rate * 90 / 100 } else { 170 + rate * 280 / 100 };
        u16::try_from(words_per_minute).unwrap_or(170)
    }
}

impl fmt::Display for SpeechRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_stays_within_its_range() {
        let rates =
            |from: i8, faster| std::iter::successors(SpeechRate::new(from), move |rate| rate.step(faster));
        assert_eq!(rates(-100, true).last(), SpeechRate::new(100));
        assert_eq!(rates(95, false).last(), SpeechRate::new(-100));
        assert_eq!(rates(-100, true).count(), 21);
        let words_per_minute: Vec<_> = rates(-100, true).map(SpeechRate::words_per_minute).collect();
        assert_eq!(
            (words_per_minute.first(), words_per_minute.get(10), words_per_minute.last()),
            (Some(&80), Some(&170), Some(&450))
        );
        assert!(words_per_minute.is_sorted());
    }
}
