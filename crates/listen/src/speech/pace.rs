//! How fast is spoken.

use std::fmt;

/// How fast is spoken, from -100, the slowest, over 0, the usual, to 100, the fastest: the scale of speech-dispatcher.
///
/// ```
/// use listen::speech::Pace;
/// assert_eq!(Pace::new(30).unwrap().to_string(), "30");
/// assert!(Pace::new(101).is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace(i8);

impl Pace {
    /// The slowest and the fastest.
    pub const BOUNDS: (i8, i8) = (-100, 100);
    const STEP: i8 = 10;

    /// A pace, if it is one.
    pub fn new(pace: i8) -> Option<Self> {
        (Self::BOUNDS.0..=Self::BOUNDS.1).contains(&pace).then_some(Self(pace))
    }

    /// The next faster or slower one; none where there is none.
    pub fn step(self, faster: bool) -> Option<Self> {
        let next = if faster { self.0 + Self::STEP } else { self.0 - Self::STEP };
        let next = next.clamp(Self::BOUNDS.0, Self::BOUNDS.1);
        (next != self.0).then_some(Self(next))
    }

    /// In words a minute, as espeak-ng counts: 80 to 450, and 170 in the middle.
    pub(super) fn words_per_minute(self) -> u16 {
        let pace = i32::from(self.0);
        let words = if pace < 0 { 170 + pace * 90 / 100 } else { 170 + pace * 280 / 100 };
        u16::try_from(words).unwrap_or(170)
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_stays_within_its_bounds() {
        let all = |from: i8, faster| std::iter::successors(Pace::new(from), move |pace| pace.step(faster));
        assert_eq!(all(-100, true).last(), Pace::new(100));
        assert_eq!(all(95, false).last(), Pace::new(-100));
        assert_eq!(all(-100, true).count(), 21);
        let words: Vec<_> = all(-100, true).map(Pace::words_per_minute).collect();
        assert_eq!((words.first(), words.get(10), words.last()), (Some(&80), Some(&170), Some(&450)));
        assert!(words.is_sorted());
    }
}
