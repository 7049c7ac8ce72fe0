//! Points in time as AAEP writes them (§3.2.5).

use std::cmp::Ordering;
use std::fmt;

use thiserror::Error;

use crate::UnixMillis;

/// An RFC 3339 timestamp that knows how it was written: its offset and its fraction digits, up to nine, stay.
///
/// Order is order in time, whatever the offsets; equality is equality of the text.
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
    /// Seconds since 1970-01-01T00:00:00Z; a leap second counts as the second before it.
    seconds: i64,
    /// Nanoseconds into that second; from 1,000,000,000 on, it is a leap second.
    nanos: u32,
    digits: u8,
    offset: Offset,
    lower_t: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Offset {
    Zulu,
    LowerZulu,
    /// `-00:00`, which RFC 3339 gives the meaning "offset unknown".
    Unknown,
    Minutes(i16),
}

/// Why a text is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// Not `YYYY-MM-DDTHH:MM:SS`, a fraction, and `Z` or an offset.
    #[error("must be YYYY-MM-DDTHH:MM:SS, with Z or an offset")]
    Form,
    /// RFC 3339, but with a lower-case `t` or `z`, which §3.2.5 does not allow.
    #[error("must have a capital T and Z")]
    Case,
    /// RFC 3339, but with a number of fraction digits other than 0, 3 or 6.
    #[error("must have 0, 3 or 6 digits of a second's fraction")]
    Digits,
    /// No such day, hour, minute, second or leap second.
    #[error("is not a time that ever was or will be")]
    NoSuchTime,
}

impl Timestamp {
    /// Reads the form that §3.2.5 allows an event: capital letters, 0, 3 or 6 fraction digits.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let read = Self::parse_rfc3339(text)?;
        if read.lower_t || read.offset == Offset::LowerZulu {
            return Err(TimestampError::Case);
        }
        if !matches!(read.digits, 0 | 3 | 6) {
            return Err(TimestampError::Digits);
        }
        Ok(read)
    }

    /// Reads any RFC 3339 timestamp: what a reply may carry (§6.3.1, C-A6), and what a receiver copes with. A fraction
    /// may have any number of digits; those after the ninth are dropped.
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimestampError> {
        let bytes = text.as_bytes();
        let [year @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
            bytes.get(..19).ok_or(TimestampError::Form)?
        else {
            return Err(TimestampError::Form);
        };
        let year = i64::from(number(year)?);
        let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
        if marks.iter().any(|(at, mark)| bytes[*at] != *mark) || !matches!(bytes[10], b'T' | b't') {
            return Err(TimestampError::Form);
        }
        let month = number(&bytes[5..7])?;
        let day = number(&bytes[8..10])?;
        let hour = number(&bytes[11..13])?;
        let minute = number(&bytes[14..16])?;
        let second = number(&bytes[17..19])?;
        let mut rest = &bytes[19..];
        let mut nanos = 0;
        let mut digits = 0;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let written = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if written == 0 {
                return Err(TimestampError::Form);
            }
            digits = written.min(9);
            nanos = number(&fraction[..digits])? * 10_u32.pow(9 - u32::try_from(digits).unwrap_or(9));
            rest = &fraction[written..];
        }
        let offset = match rest {
            b"Z" => Offset::Zulu,
            b"z" => Offset::LowerZulu,
            [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
                let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
                if hours > 23 || minutes > 59 {
                    return Err(TimestampError::NoSuchTime);
                }
                let total = i16::try_from(hours * 60 + minutes).unwrap_or(0);
                match (sign, total) {
                    (b'-', 0) => Offset::Unknown,
                    (b'-', total) => Offset::Minutes(-total),
                    (_, total) => Offset::Minutes(total),
                }
            }
            _ => return Err(TimestampError::Form),
        };
        if !(1..=12).contains(&month)
            || day < 1
            || day > days_in(year, month)
            || hour > 23
            || minute > 59
            || second > 60
        {
            return Err(TimestampError::NoSuchTime);
        }
        let of_day = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second.min(59));
        let seconds = days_from_epoch(year, month, day) * 86_400 + of_day - offset.minutes() * 60;
        if second == 60 {
            if !is_leap_second(seconds) {
                return Err(TimestampError::NoSuchTime);
            }
            nanos += 1_000_000_000;
        }
        let digits = u8::try_from(digits).unwrap_or(9);
        Ok(Self { seconds, nanos, digits, offset, lower_t: bytes[10] == b't' })
    }

    /// Makes one in UTC with three fraction digits, the form that §3.2.5 advises. Nothing before the year 0 or after
    /// 9999 can be written.
    pub fn from_unix_millis(at: UnixMillis) -> Option<Self> {
        let millis = at.get();
        let seconds = millis.div_euclid(1000);
        let nanos = u32::try_from(millis.rem_euclid(1000)).ok()? * 1_000_000;
        (-62_167_219_200..253_402_300_800).contains(&seconds).then_some(Self {
            seconds,
            nanos,
            digits: 3,
            offset: Offset::Zulu,
            lower_t: false,
        })
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, leap seconds counted as the second before them.
    pub fn unix_millis(&self) -> UnixMillis {
        UnixMillis::new(self.seconds * 1000 + i64::from(self.nanos.min(999_999_999) / 1_000_000))
    }

    /// Which is earlier, whatever their offsets.
    pub fn cmp_instant(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }

    /// How many fraction digits it was written with.
    pub fn fraction_digits(&self) -> u8 {
        self.digits
    }

    /// A stand-in rather than a time: before 1970 or on its first day, or in the last year that can be written
    /// (§3.2.5 wants a real instant).
    pub fn is_placeholder(&self) -> bool {
        self.seconds < 86_400 || self.seconds >= 253_370_764_800
    }
}

/// Writes a number into all of a place, with zeros in front.
fn put(place: &mut [u8], mut number: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.seconds + self.offset.minutes() * 60;
        let (year, month, day) = date_of(local.div_euclid(86_400));
        let of_day = local.rem_euclid(86_400);
        let leap = self.nanos >= 1_000_000_000;
        let t = if self.lower_t { b't' } else { b'T' };
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60 + i64::from(leap));
        // By hand: this stands in every event, and the formatter's way costs many times as much.
        let mut text = *b"0000-00-00T00:00:00.000000000";
        put(&mut text[0..4], year);
        put(&mut text[5..7], month);
        put(&mut text[8..10], day);
        text[10] = t;
        put(&mut text[11..13], hour);
        put(&mut text[14..16], minute);
        put(&mut text[17..19], second);
        put(&mut text[20..29], i64::from(self.nanos % 1_000_000_000));
        let end = if self.digits == 0 { 19 } else { 20 + usize::from(self.digits) };
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

fn number(digits: &[u8]) -> Result<u32, TimestampError> {
    digits.iter().try_fold(0, |sum, byte| match byte {
        b'0'..=b'9' => Ok(sum * 10 + u32::from(byte - b'0')),
        _ => Err(TimestampError::Form),
    })
}

fn days_in(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01, by counting 400-year cycles from 1 March of the year 0.
fn days_from_epoch(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let cycle = year.div_euclid(400);
    let of_cycle = year.rem_euclid(400);
    let of_year = (153 * (i64::from(month) + if month > 2 { -3 } else { 9 }) + 2) / 5 + i64::from(day) - 1;
    cycle * 146_097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let cycle = days.div_euclid(146_097);
    let of_cycle = days.rem_euclid(146_097);
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (cycle * 400 + year + i64::from(month <= 2), month, day)
}

/// The days whose last UTC minute had 61 seconds, as (year, ends of June, ends of December).
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

/// Whether the second after `seconds` (which is a :59) was a leap second.
fn is_leap_second(seconds: i64) -> bool {
    let (year, month, day) = date_of(seconds.div_euclid(86_400));
    let at_midnight = seconds.rem_euclid(86_400) == 86_399;
    at_midnight
        && LEAP_SECONDS.iter().any(|(of, june, december)| {
            *of == year && (*june && (month, day) == (6, 30) || *december && (month, day) == (12, 31))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
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
        let fine = Timestamp::parse_rfc3339("2026-05-24T14:22:11.1234567899Z").expect("any precision (C-A6)");
        assert_eq!(fine.to_string(), "2026-05-24T14:22:11.123456789Z");
    }

    #[test]
    fn only_real_times_in_the_right_form_are_read() {
        use TimestampError::*;
        for (text, why) in [
            ("2026-02-30T14:22:11Z", NoSuchTime),
            ("2025-02-29T14:22:11Z", NoSuchTime),
            ("2026-05-24T24:00:00Z", NoSuchTime),
            ("2026-00-24T14:22:11Z", NoSuchTime),
            ("2026-13-24T14:22:11Z", NoSuchTime),
            ("2026-05-24T14:60:11Z", NoSuchTime),
            ("2026-05-24T14:22:60Z", NoSuchTime),
            ("2026-06-30T23:59:60Z", NoSuchTime),
            ("2026-05-24T14:22:11+24:00", NoSuchTime),
            ("2026-05-24t14:22:11Z", Case),
            ("2026-05-24T14:22:11z", Case),
            ("2026-05-24T14:22:11.1Z", Digits),
            ("2026-05-24T14:22:11.1234Z", Digits),
            ("2026-05-24T14:22:11.1234567890Z", Digits),
            ("2026-05-24 14:22:11Z", Form),
            ("2026-05-24T14:22:11", Form),
            ("2026-05-24T14:22:11.Z", Form),
            ("2026-05-24T14:22Z", Form),
            ("May 24, 2026 14:22:11", Form),
            ("2026-05-24T14:22:11Z\n", Form),
            ("２026-05-24T14:22:11Z", Form),
            ("", Form),
        ] {
            assert_eq!(Timestamp::parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn order_is_order_in_time() {
        let read = |text| Timestamp::parse(text).unwrap();
        let ordered = [
            "2016-12-31T23:59:59.999Z",
            "2016-12-31T23:59:60.000Z",
            "2016-12-31T23:59:60.999Z",
            "2017-01-01T01:00:00.000+01:00",
            "2017-01-01T00:00:00.001Z",
        ];
        for pair in ordered.windows(2) {
            assert!(read(pair[0]).cmp_instant(&read(pair[1])).is_lt(), "{pair:?}");
        }
        assert_eq!(read("1970-01-02T00:00:00.001Z").unix_millis(), UnixMillis::new(86_400_001));
        assert_eq!(
            Timestamp::from_unix_millis(UnixMillis::new(86_400_001)).unwrap().to_string(),
            "1970-01-02T00:00:00.001Z"
        );
        assert_eq!(Timestamp::from_unix_millis(UnixMillis::MAX), None);
    }

    #[test]
    fn every_day_of_four_centuries_survives() {
        for day in -800_000..800_000 {
            let (year, month, of_month) = date_of(day);
            let again =
                days_from_epoch(year, u32::try_from(month).unwrap(), u32::try_from(of_month).unwrap());
            assert_eq!(again, day);
        }
    }

    #[test]
    fn stand_ins_are_known() {
        for text in ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
            assert!(Timestamp::parse(text).unwrap().is_placeholder(), "{text}");
        }
        assert!(!Timestamp::parse("2026-05-24T14:22:11Z").unwrap().is_placeholder());
    }
}
