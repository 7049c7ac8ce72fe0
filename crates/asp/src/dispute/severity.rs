//! The severity of a dispute.

use seal::json::{JsonValue, JsonWriter};

use crate::message::{JsonCodec, MalformedMessage};

/// The severity of a dispute, from 1 (minor) to 5 (fraud). 3 is moderate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Severity(u8);

impl Severity {
    /// A moderate breach, for example a result that was never delivered.
    pub const MODERATE: Self = Self(3);
    /// A serious breach, for example money that was taken without a result.
    pub const SERIOUS: Self = Self(4);

    /// Creates a severity. Returns `None` unless it is from 1 to 5.
    pub fn new(severity: u8) -> Option<Self> {
        (1..=5).contains(&severity).then_some(Self(severity))
    }

    /// Returns the number.
    pub fn get(self) -> u8 {
        self.0
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0) - 1
    }
}

impl JsonCodec for Severity {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let number = value.as_number().and_then(|number| number.as_i64());
        let severity = number.and_then(|number| u8::try_from(number).ok()).and_then(Self::new);
        severity.ok_or_else(|| MalformedMessage::expected("a whole number from 1 to 5"))
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.integer(i64::from(self.0));
    }
}
