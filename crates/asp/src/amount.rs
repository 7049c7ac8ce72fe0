//! Exact, positive amounts of money.

use std::fmt;

use thiserror::Error;

/// A positive amount of money, with up to 15 digits before the decimal point and up to 9 after it (D15).
///
/// ```
/// use asp::Amount;
/// let price = Amount::parse("12.50").unwrap();
/// assert_eq!(price.to_string(), "12.50");
/// assert_eq!(price.billionths(), 12_500_000_000);
/// for wrong in ["-1", "0", "1e3", "NaN", "1.0000000001", "1000000000000000", "1 USD", "01", ""] {
///     assert!(Amount::parse(wrong).is_err(), "{wrong}");
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Amount {
    text: Box<str>,
    billionths: u128,
}

/// The text is not a valid amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be {}", Self::EXPECTED)]
pub struct AmountError;

impl AmountError {
    pub(crate) const EXPECTED: &'static str =
        "a positive amount as text, with up to 15 digits and up to 9 decimal places";
}

impl Amount {
    /// Parses an amount.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let (integer, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(AmountError),
            Some(parts) => parts,
            None => (text, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let has_leading_zero = integer.len() > 1 && integer.starts_with('0');
        if !(1..=15).contains(&integer.len())
            || fraction.len() > 9
            || has_leading_zero
            || !is_digits(integer)
            || !is_digits(fraction)
        {
            return Err(AmountError);
        }
        let billionths: u128 = format!("{integer}{fraction:0<9}").parse().map_err(|_| AmountError)?;
        if billionths == 0 { Err(AmountError) } else { Ok(Self { text: text.into(), billionths }) }
    }

    /// Returns the amount in billionths of the currency unit.
    pub fn billionths(&self) -> u128 {
        self.billionths
    }

    /// Returns the amount as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
