//! Money: exact, in text, never negative.

use std::fmt;

use thiserror::Error;

/// An amount of money: digits, and up to nine more after a point. More than nothing, less than 10^15 (D15).
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

/// A text that is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be {}", Self::WANTED)]
pub struct AmountError;

impl AmountError {
    pub(crate) const WANTED: &'static str =
        "an amount as text: up to 15 digits and up to 9 after a point, more than nothing";
}

impl Amount {
    /// Reads an amount.
    pub fn parse(text: &str) -> Result<Self, AmountError> {
        let (whole, fraction) = match text.split_once('.') {
            Some((_, "")) => return Err(AmountError),
            Some(parts) => parts,
            None => (text, ""),
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let leading = whole.len() > 1 && whole.starts_with('0');
        if !(1..=15).contains(&whole.len())
            || fraction.len() > 9
            || leading
            || !digits(whole)
            || !digits(fraction)
        {
            return Err(AmountError);
        }
        let billionths: u128 = format!("{whole}{fraction:0<9}").parse().map_err(|_| AmountError)?;
        if billionths == 0 { Err(AmountError) } else { Ok(Self { text: text.into(), billionths }) }
    }

    /// The amount in billionths of its currency's unit.
    pub fn billionths(&self) -> u128 {
        self.billionths
    }

    /// The text.
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
