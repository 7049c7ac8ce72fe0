//! A JSON number with its source text.

/// A parsed number, with its source text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JsonNumber<'d> {
    pub(super) text: &'d str,
    pub(super) is_float: bool,
    pub(super) is_unsafe_integer: bool,
    pub(super) is_out_of_range: bool,
}

impl<'d> JsonNumber<'d> {
    /// Returns the number as it is written in the source.
    #[inline]
    pub fn source(&self) -> &'d str {
        self.text
    }

    /// Returns whether the number is written as an integer, without a fraction or an exponent (C-A19).
    #[inline]
    pub fn is_integer(&self) -> bool {
        !self.is_float
    }

    /// Returns whether the number is an integer beyond ±2^53 (§3.8).
    #[inline]
    pub fn is_unsafe_integer(&self) -> bool {
        self.is_unsafe_integer
    }

    /// Returns whether the number is beyond the range of a double (§3.8).
    #[inline]
    pub fn is_out_of_range(&self) -> bool {
        self.is_out_of_range
    }

    /// Returns the value as an integer, if it is one and fits into an `i64`. `4.0` is the integer 4. A value with a fraction or
    /// an exponent must also be within ±2^53.
    #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        if !self.is_float {
            return self.text.parse().ok();
        }
        let value = self.as_f64();
        (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
    }

    /// Returns the value as a double. The double is infinite if the number is out of range.
    #[inline]
    pub fn as_f64(&self) -> f64 {
        self.text.parse().unwrap_or(f64::INFINITY)
    }
}
