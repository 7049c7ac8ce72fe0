//! A JSON number, as it was written.

/// A number that was read: its digits as they stood, and what they come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number<'d> {
    pub(super) text: &'d str,
    pub(super) float: bool,
    pub(super) big: bool,
    pub(super) huge: bool,
}

impl<'d> Number<'d> {
    /// The digits as they were written.
    #[inline]
    pub fn source(&self) -> &'d str {
        self.text
    }

    /// Written as an integer: no fraction, no exponent (C-A19).
    #[inline]
    pub fn is_integer(&self) -> bool {
        !self.float
    }

    /// An integer beyond ±2^53 (§3.8).
    #[inline]
    pub fn is_big(&self) -> bool {
        self.big
    }

    /// Beyond the range of a double (§3.8).
    #[inline]
    pub fn is_huge(&self) -> bool {
        self.huge
    }

    /// The value, where a 64-bit integer holds it exactly; `4.0` is 4.
    #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        if !self.float {
            return self.text.parse().ok();
        }
        let value = self.as_f64();
        (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
    }

    /// The value as a double; infinite where it does not fit.
    #[inline]
    pub fn as_f64(&self) -> f64 {
        self.text.parse().unwrap_or(f64::INFINITY)
    }
}
