//! RFC 3339 timestamps as AAEP uses them (§3.2.5).

use std::cmp::Ordering;
use std::fmt;

use thiserror::Error;

use crate::UnixMillis;

/// An RFC 3339 timestamp that preserves its notation: its offset, up to nine fraction digits, and the case of `T` and `Z`.
///
/// [`Timestamp::cmp_instant`] compares points in time, regardless of the offsets. `==` also compares the notation.
///
/// ```
/// use seal::Timestamp;
/// let noon = Timestamp::parse("2026-05-24T12:00:00.000Z").unwrap();
/// let same = Timestamp::parse("2026-05-24T13:00:00+01:00").unwrap();
/// assert!(noon.cmp_instant(&same).is_eq());
/// assert_eq!(same.to_string(), "2026-05-24T13:00:00+01:00");
/// assert!(Timestamp::parse("2026-02-30T12:00:00Z").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z. A leap second counts as the second before it.
    seconds: i64,
    /// Nanoseconds within that second. A value of 1,000,000,000 or more marks a leap second.
    nanos: u32,
    fraction_digits: u8,
    offset: Offset,
    has_lower_case_t: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Offset {
    Zulu,
    LowerZulu,
    /// `-00:00`, which in RFC 3339 means "offset unknown".
    Unknown,
    Minutes(i16),
}

/// Why a text is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// The text is not `YYYY-MM-DDTHH:MM:SS`, optionally a fraction, and `Z` or an offset.
    #[error("must be YYYY-MM-DDTHH:MM:SS, with Z or an offset")]
    Malformed,
    /// The text is RFC 3339, but has a lower-case `t` or `z`, which §3.2.5 does not allow.
    #[error("must have a capital T and Z")]
    LowerCase,
    /// The text is RFC 3339, but the number of fraction digits is not 0, 3 or 6.
    #[error("must have 0, 3 or 6 digits after the decimal point of the seconds")]
    FractionDigits,
    /// There is no such day, hour, minute, second or leap second.
    #[error("is not a date and time that exists")]
    NoSuchTime,
}

impl Timestamp {
    /// Parses the form that §3.2.5 allows in an event: capital letters, and 0, 3 or 6 fraction digits.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let parsed = Self::parse_rfc3339(text)?;
        if parsed.has_lower_case_t || parsed.offset == Offset::LowerZulu {
            return Err(TimestampError::LowerCase);
        }
        if !matches!(parsed.fraction_digits, 0 | 3 | 6) {
            return Err(TimestampError::FractionDigits);
        }
        Ok(parsed)
    }

    /// Parses a timestamp in any RFC 3339 form. Replies and received events may use any of these forms (§6.3.1, C-A6). A
    /// fraction may have any number of digits; digits after the ninth are dropped.
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimestampError> {
        let bytes = text.as_bytes();
        if bytes.len() < 19 {
            return Err(TimestampError::Malformed);
        }
        let year = i64::from(parse_digits(&bytes[..4])?);
        let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
        if separators.iter().any(|(at, separator)| bytes[*at] != *separator)
            || !matches!(bytes[10], b'T' | b't')
        {
            return Err(TimestampError::Malformed);
        }
        let month = parse_digits(&bytes[5..7])?;
        let day = parse_digits(&bytes[8..10])?;
        let hour = parse_digits(&bytes[11..13])?;
        let minute = parse_digits(&bytes[14..16])?;
        let second = parse_digits(&bytes[17..19])?;
        let mut rest = &bytes[19..];
        let mut nanos = 0;
        let mut fraction_digits = 0;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let digit_count = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digit_count == 0 {
                return Err(TimestampError::Malformed);
            }
            fraction_digits = digit_count.min(9);
            let scale = 10_u32.pow(9 - u32::try_from(fraction_digits).unwrap_or(9));
            nanos = parse_digits(&fraction[..fraction_digits])? * scale;
            rest = &fraction[digit_count..];
        }
        let offset = match rest {
            b"Z" => Offset::Zulu,
            b"z" => Offset::LowerZulu,
            [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
                let (hours, minutes) = (parse_digits(&[*h1, *h2])?, parse_digits(&[*m1, *m2])?);
                if hours > 23 || minutes > 59 {
                    return Err(TimestampError::NoSuchTime);
                }
                let total_minutes = i16::try_from(hours * 60 + minutes).unwrap_or(0);
                match (sign, total_minutes) {
                    (b'-', 0) => Offset::Unknown,
                    (b'-', _) => Offset::Minutes(-total_minutes),
                    _ => Offset::Minutes(total_minutes),
                }
            }
            _ => return Err(TimestampError::Malformed),
        };
        if !(1..=12).contains(&month)
            || day < 1
            || day > days_in_month(year, month)
            || hour > 23
            || minute > 59
            || second > 60
        {
            return Err(TimestampError::NoSuchTime);
        }
        let second_of_day = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second.min(59));
        let seconds = days_from_epoch(year, month, day) * 86_400 + second_of_day - offset.minutes() * 60;
        if second == 60 {
            if !is_leap_second(seconds) {
                return Err(TimestampError::NoSuchTime);
            }
            nanos += 1_000_000_000;
        }
        let fraction_digits = u8::try_from(fraction_digits).unwrap_or(9);
        Ok(Self { seconds, nanos, fraction_digits, offset, has_lower_case_t: bytes[10] == b't' })
    }

    /// Creates a timestamp in UTC with three fraction digits, the form that §3.2.5 recommends. Returns `None` before the
    /// year 0 and after 9999.
    pub fn from_unix_millis(at: UnixMillis) -> Option<Self> {
        let millis = at.get();
        let seconds = millis.div_euclid(1000);
        let nanos = u32::try_from(millis.rem_euclid(1000)).ok()? * 1_000_000;
        (-62_167_219_200..253_402_300_800).contains(&seconds).then_some(Self {
            seconds,
            nanos,
            fraction_digits: 3,
            offset: Offset::Zulu,
            has_lower_case_t: false,
        })
    }

    /// Returns the milliseconds since 1970-01-01T00:00:00Z. A leap second counts as the second before it.
    pub fn unix_millis(&self) -> UnixMillis {
        UnixMillis::new(self.seconds * 1000 + i64::from(self.nanos.min(999_999_999) / 1_000_000))
    }

    /// Compares two points in time, regardless of their offsets.
    pub fn cmp_instant(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }

    /// Returns the number of fraction digits, at most nine.
    pub fn fraction_digits(&self) -> u8 {
        self.fraction_digits
    }

    /// Returns whether this is a placeholder, that is, before 1970-01-02 or in the year 9999. §3.2.5 requires real times.
    pub fn is_placeholder(&self) -> bool {
        self.seconds < 86_400 || self.seconds >= 253_370_764_800
    }
}

/// Fills `field` with a number, padded with zeros.
fn write_padded(field: &mut [u8], mut number: i64) {
    for digit in field.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.seconds + self.offset.minutes() * 60;
        let (year, month, day) = date_from_days(local.div_euclid(86_400));
        let second_of_day = local.rem_euclid(86_400);
        let is_leap_second = self.nanos >= 1_000_000_000;
        let t = if self.has_lower_case_t { b't' } else { b'T' };
        let (hour, minute, second) =
            (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60 + i64::from(is_leap_second));
        // Formatted by hand, because every event contains timestamps and `write!` is many times slower.
        let mut text = *b"0000-00-00T00:00:00.000000000";
        write_padded(&mut text[0..4], year);
        write_padded(&mut text[5..7], month);
        write_padded(&mut text[8..10], day);
        text[10] = t;
        write_padded(&mut text[11..13], hour);
        write_padded(&mut text[14..16], minute);
        write_padded(&mut text[17..19], second);
        write_padded(&mut text[20..29], i64::from(self.nanos % 1_000_000_000));
        let end = if self.fraction_digits == 0 { 19 } else { 20 + usize::from(self.fraction_digits) };
        f.write_str(str::from_utf8(&text[..end]).map_err(|_| fmt::Error)?)?;
        match self.offset {
            Offset::Zulu => f.write_str("Z"),
            Offset::LowerZulu => f.write_str("z"),
            Offset::Unknown => f.write_str("-00:00"),
            Offset::Minutes(minutes) => {
                let sign = if minutes < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
        }
    }
}

impl std::str::FromStr for Timestamp {
    type Err = TimestampError;
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        Self::parse(text)
    }
}

impl Offset {
    fn minutes(self) -> i64 {
        match self {
            Self::Minutes(minutes) => i64::from(minutes),
            _ => 0,
        }
    }
}

fn parse_digits(digits: &[u8]) -> Result<u32, TimestampError> {
    digits.iter().try_fold(0, |sum, byte| match byte {
        b'0'..=b'9' => Ok(sum * 10 + u32::from(byte - b'0')),
        _ => Err(TimestampError::Malformed),
    })
}

fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days since 1970-01-01. Counts from 0000-03-01, which is 719,468 days earlier, in cycles of 400 years. A year
/// starts on 1 March here, so that a leap day is the last day of its year.
fn days_from_epoch(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let day_of_year =
        (153 * (i64::from(month) + if month > 2 { -3 } else { 9 }) + 2) / 5 + i64::from(day) - 1;
    cycle * 146_097 + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year - 719_468
}

/// Returns the year, month and day. The inverse of [`days_from_epoch`].
fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let cycle = days.div_euclid(146_097);
    let day_of_cycle = days.rem_euclid(146_097);
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (cycle * 400 + year_of_cycle + i64::from(month <= 2), month, day)
}

/// The years with leap seconds, and whether there was one at the end of June and at the end of December.
const LEAP_SECONDS: [(i64, bool, bool); 26] = [
    (1972, true, true),
    (1973, false, true),
    (1974, false, true),
    (1975, false, true),
    (1976, false, true),
    (1977, false, true),
    (1978, false, true),
    (1979, false, true),
    (1981, true, false),
    (1982, true, false),
    (1983, true, false),
    (1985, true, false),
    (1987, false, true),
    (1989, false, true),
    (1990, false, true),
    (1992, true, false),
    (1993, true, false),
    (1994, true, false),
    (1995, false, true),
    (1997, true, false),
    (1998, false, true),
    (2005, false, true),
    (2008, false, true),
    (2012, true, false),
    (2015, true, false),
    (2016, false, true),
];

/// Returns whether a leap second followed this second.
fn is_leap_second(seconds: i64) -> bool {
    let (year, month, day) = date_from_days(seconds.div_euclid(86_400));
    let is_last_of_day = seconds.rem_euclid(86_400) == 86_399;
    is_last_of_day
        && LEAP_SECONDS.iter().any(|(leap_year, june, december)| {
            *leap_year == year && (*june && (month, day) == (6, 30) || *december && (month, day) == (12, 31))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_reproduces_the_parsed_text() {
        for text in [
            "2026-05-24T14:22:11Z",
            "2026-05-24T14:22:11.342Z",
            "2026-05-24T14:22:11.342001+05:30",
            "2024-02-29T00:00:00-00:00",
            "0001-01-01T00:00:00Z",
            "2016-12-31T23:59:60.500Z",
            "2017-01-01T05:29:60+05:30",
            "2026-05-24T14:22:11-11:59",
            "9999-12-31T23:59:59.999999+00:00",
        ] {
            assert_eq!(Timestamp::parse(text).expect(text).to_string(), text);
        }
        for text in ["2026-05-24t14:22:11.3z", "2026-05-24T14:22:11.123456789Z"] {
            assert_eq!(Timestamp::parse_rfc3339(text).expect(text).to_string(), text);
        }
        let precise =
            Timestamp::parse_rfc3339("2026-05-24T14:22:11.1234567899Z").expect("any precision (C-A6)");
        assert_eq!(precise.to_string(), "2026-05-24T14:22:11.123456789Z");
    }

    #[test]
    fn only_existing_times_in_the_right_form_are_parsed() {
        use TimestampError::*;
        for (text, error) in [
            ("2026-02-30T14:22:11Z", NoSuchTime),
            ("2025-02-29T14:22:11Z", NoSuchTime),
            ("2026-05-24T24:00:00Z", NoSuchTime),
            ("2026-00-24T14:22:11Z", NoSuchTime),
            ("2026-13-24T14:22:11Z", NoSuchTime),
            ("2026-05-24T14:60:11Z", NoSuchTime),
            ("2026-05-24T14:22:60Z", NoSuchTime),
            ("2026-06-30T23:59:60Z", NoSuchTime),
            ("2026-05-24T14:22:11+24:00", NoSuchTime),
            ("2026-05-24t14:22:11Z", LowerCase),
            ("2026-05-24T14:22:11z", LowerCase),
            ("2026-05-24T14:22:11.1Z", FractionDigits),
            ("2026-05-24T14:22:11.1234Z", FractionDigits),
            ("2026-05-24T14:22:11.1234567890Z", FractionDigits),
            ("2026-05-24 14:22:11Z", Malformed),
            ("2026-05-24T14:22:11", Malformed),
            ("2026-05-24T14:22:11.Z", Malformed),
            ("2026-05-24T14:22Z", Malformed),
            ("May 24, 2026 14:22:11", Malformed),
            ("2026-05-24T14:22:11Z\n", Malformed),
            ("２026-05-24T14:22:11Z", Malformed),
            ("", Malformed),
        ] {
            assert_eq!(Timestamp::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn timestamps_are_ordered_by_instant() {
        let parsed = |text| Timestamp::parse(text).unwrap();
        let ordered = [
            "2016-12-31T23:59:59.999Z",
            "2016-12-31T23:59:60.000Z",
            "2016-12-31T23:59:60.999Z",
            "2017-01-01T01:00:00.000+01:00",
            "2017-01-01T00:00:00.001Z",
        ];
        for pair in ordered.windows(2) {
            assert!(parsed(pair[0]).cmp_instant(&parsed(pair[1])).is_lt(), "{pair:?}");
        }
        assert_eq!(parsed("1970-01-02T00:00:00.001Z").unix_millis(), UnixMillis::new(86_400_001));
        assert_eq!(
            Timestamp::from_unix_millis(UnixMillis::new(86_400_001)).unwrap().to_string(),
            "1970-01-02T00:00:00.001Z"
        );
        assert_eq!(Timestamp::from_unix_millis(UnixMillis::MAX), None);
    }

    #[test]
    fn every_day_of_four_millennia_round_trips() {
        for day in -800_000..800_000 {
            let (year, month, day_of_month) = date_from_days(day);
            let restored =
                days_from_epoch(year, u32::try_from(month).unwrap(), u32::try_from(day_of_month).unwrap());
            assert_eq!(restored, day);
        }
    }

    #[test]
    fn placeholders_are_recognized() {
        for text in ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
            assert!(Timestamp::parse(text).unwrap().is_placeholder(), "{text}");
        }
        assert!(!Timestamp::parse("2026-05-24T14:22:11Z").unwrap().is_placeholder());
    }
}
