//! How a value is written, and read.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::Config;
use super::keys::Key;

/// Times are in milliseconds.
pub(super) const SECOND: u64 = 1000;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
pub(super) const DAY: u64 = 24 * HOUR;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// What may stand there; numbers with the least and the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Address,
    Path,
    Flag,
    List,
    Count(u64, u64),
    Bytes(u64, u64),
    /// In milliseconds.
    Time(u64, u64),
}

pub(super) enum Place<'c> {
    Address(&'c mut SocketAddr),
    Path(&'c mut PathBuf),
    MaybePath(&'c mut Option<PathBuf>),
    Flag(&'c mut bool),
    List(&'c mut Vec<String>),
    Size(&'c mut usize),
    MaybeSize(&'c mut Option<u64>),
    Time(&'c mut Duration),
    Millis(&'c mut i64),
    MaybeMillis(&'c mut Option<i64>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found<'f> {
    /// In the environment or a flag, where everything is a word.
    Words(Vec<&'f OsStr>),
    /// A text in a file.
    Text(&'f str),
    /// A whole number in a file, unless it is too large for any use.
    Integer(Option<u64>),
    Flag(bool),
    List(Vec<&'f str>),
    /// Something that stands nowhere here, by its name.
    Other(&'static str),
}

const UNITS_OF_TIME: [(&str, u64); 5] = [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)];
const UNITS_OF_BYTES: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", GIB), ("MiB", MIB), ("KiB", 1024)];

impl Kind {
    /// What would be right.
    fn right(self, optional: bool) -> String {
        let or_none = if optional { ", or none" } else { "" };
        let range = |least, most| format!("from {} to {}", self.number(least), self.number(most));
        match self {
            Self::Address => "an address with its port, such as 127.0.0.1:8787".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::List => "a list of texts, such as [\"hub.example:8787\"]".to_owned(),
            Self::Count(least, most) => format!("a whole number {}{or_none}", range(least, most)),
            Self::Bytes(least, most) => {
                format!("a number of bytes such as 65536, 64KiB or 1MiB, {}{or_none}", range(least, most))
            }
            Self::Time(least, most) => {
                format!("a duration such as 250ms, 30s, 5m, 12h or 7d, {}{or_none}", range(least, most))
            }
        }
    }

    pub(super) fn range(self) -> Option<(String, String)> {
        let (Self::Count(least, most) | Self::Bytes(least, most) | Self::Time(least, most)) = self else {
            return None;
        };
        Some((self.number(least), self.number(most)))
    }

    /// How a number of this kind is written: in the largest unit that leaves nothing over.
    pub(super) fn number(self, number: u64) -> String {
        let units: &[(&str, u64)] = match self {
            Self::Time(..) => &UNITS_OF_TIME,
            Self::Bytes(..) => &UNITS_OF_BYTES,
            _ => &[],
        };
        let fits = |unit: &&(&str, u64)| number >= unit.1 && number.is_multiple_of(unit.1);
        match units.iter().find(fits) {
            Some((name, unit)) => format!("{}{name}", number / unit),
            None if matches!(self, Self::Time(..)) => format!("{number}ms"),
            None => number.to_string(),
        }
    }

    fn read_number(self, text: &str) -> Option<u64> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let number: u64 = digits.parse().ok()?;
        let units: &[(&str, u64)] = match self {
            Self::Time(..) => &UNITS_OF_TIME,
            Self::Bytes(..) if unit.is_empty() => &[("", 1)],
            Self::Bytes(..) => &UNITS_OF_BYTES,
            _ => &[("", 1)],
        };
        let (_, unit) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
        number.checked_mul(*unit)
    }
}

impl Key {
    /// Puts a value where it goes. The error says what would be right.
    pub(super) fn set(&self, config: &mut Config, found: &Found<'_>) -> Result<(), String> {
        let place = (self.place)(config);
        let optional = matches!(place, Place::MaybeSize(_) | Place::MaybeMillis(_));
        let wrong = || format!("{} is not {}", found.shown(), self.kind.right(optional));
        match place {
            Place::Address(to) => *to = found.text().and_then(crate::way::socket).ok_or_else(wrong)?,
            Place::Path(to) => *to = found.path().ok_or_else(wrong)?,
            Place::MaybePath(to) => *to = Some(found.path().ok_or_else(wrong)?),
            Place::Flag(to) => *to = found.flag().ok_or_else(wrong)?,
            Place::List(to) => *to = found.list().ok_or_else(wrong)?,
            Place::MaybeSize(to) if found.text() == Some("none") => *to = None,
            Place::MaybeMillis(to) if found.text() == Some("none") => *to = None,
            number => {
                let found = found.number(self.kind).ok_or_else(wrong)?;
                number.store(found).ok_or_else(wrong)?;
            }
        }
        Ok(())
    }

    /// The value as a file would have it; `None` if there is none.
    pub(super) fn shown(&self, config: &Config) -> Option<String> {
        let mut config = config.clone();
        let number = |number: u64| match self.kind {
            Kind::Count(..) => number.to_string(),
            kind => {
                let text = kind.number(number);
                if text.bytes().all(|byte| byte.is_ascii_digit()) { text } else { quoted(&text) }
            }
        };
        let none = || quoted("none");
        let millis = |millis: i64| number(u64::try_from(millis).unwrap_or(0));
        Some(match (self.place)(&mut config) {
            Place::Address(address) => quoted(&address.to_string()),
            Place::Path(path) => quoted(&path.to_string_lossy()),
            Place::MaybePath(path) => quoted(&path.as_ref()?.to_string_lossy()),
            Place::Flag(flag) => flag.to_string(),
            Place::List(list) => {
                format!("[{}]", list.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", "))
            }
            Place::Size(size) => number(*size as u64),
            Place::MaybeSize(size) => size.map_or_else(none, number),
            Place::Time(time) => number(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            Place::Millis(time) => millis(*time),
            Place::MaybeMillis(time) => time.map_or_else(none, millis),
        })
    }
}

impl Place<'_> {
    fn store(self, number: u64) -> Option<()> {
        match self {
            Self::Size(to) => *to = usize::try_from(number).ok()?,
            Self::MaybeSize(to) => *to = Some(number),
            Self::Time(to) => *to = Duration::from_millis(number),
            Self::Millis(to) => *to = i64::try_from(number).ok()?,
            Self::MaybeMillis(to) => *to = Some(i64::try_from(number).ok()?),
            _ => return None,
        }
        Some(())
    }
}

impl Found<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Words(words) => match words.as_slice() {
                [word] => word.to_str(),
                _ => None,
            },
            _ => None,
        }
    }

    fn path(&self) -> Option<PathBuf> {
        let path = match self {
            Self::Words(words) => PathBuf::from(words.first()?),
            found => PathBuf::from(found.text()?),
        };
        (!path.as_os_str().is_empty()).then_some(path)
    }

    fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            Self::Words(_) => self.text()?.parse().ok(),
            _ => None,
        }
    }

    /// Words are parted by commas, too.
    fn list(&self) -> Option<Vec<String>> {
        let texts: Vec<&str> = match self {
            Self::List(texts) => texts.clone(),
            Self::Words(words) => {
                let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
                words?.into_iter().flat_map(|word| word.split(',')).collect()
            }
            _ => return None,
        };
        let texts: Vec<String> = texts.into_iter().map(|text| text.trim().to_owned()).collect();
        texts.iter().all(|text| !text.is_empty()).then_some(texts)
    }

    fn number(&self, kind: Kind) -> Option<u64> {
        let number = match (self, kind) {
            // A bare number is no duration: nobody would know of what.
            (Self::Integer(number), Kind::Count(..) | Kind::Bytes(..)) => (*number)?,
            (Self::Words(_), _) | (Self::Text(_), Kind::Bytes(..) | Kind::Time(..)) => {
                kind.read_number(self.text()?)?
            }
            _ => return None,
        };
        let (Kind::Count(least, most) | Kind::Bytes(least, most) | Kind::Time(least, most)) = kind else {
            return None;
        };
        (least..=most).contains(&number).then_some(number)
    }

    /// For an error.
    fn shown(&self) -> String {
        let text = match self {
            Self::Words(words) => {
                words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(", ")
            }
            Self::Text(text) => (*text).to_owned(),
            Self::Integer(Some(number)) => return number.to_string(),
            Self::Integer(None) => return "this number".to_owned(),
            Self::Flag(flag) => return flag.to_string(),
            Self::List(_) => return "a list".to_owned(),
            Self::Other(name) => return (*name).to_owned(),
        };
        format!("\"{}\"", crate::print::printable(&text))
    }
}

/// A text as TOML writes it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.extend(format!("\\u{:04X}", u32::from(c)).chars()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Kind = Kind::Time(0, u64::MAX);
    const BYTES: Kind = Kind::Bytes(0, u64::MAX);

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (kind, text, number) in [
            (TIME, "300s", Some(300_000)),
            (TIME, "5m", Some(300_000)),
            (TIME, "250ms", Some(250)),
            (TIME, "1h", Some(3_600_000)),
            (TIME, "7 d", Some(7 * DAY)),
            (TIME, "300", None),
            (TIME, "5min", None),
            (TIME, "-1s", None),
            (TIME, "1.5s", None),
            (TIME, "s", None),
            (TIME, "99999999999999999d", None),
            (BYTES, "1MiB", Some(1 << 20)),
            (BYTES, "64 KiB", Some(65_536)),
            (BYTES, "12", Some(12)),
            (BYTES, "1MB", None),
            (BYTES, "1k", None),
            (BYTES, "99999999999999TiB", None),
            (Kind::Count(0, 9), "7", Some(7)),
            (Kind::Count(0, 9), "7s", None),
            (Kind::Count(0, 9), "+7", None),
            (Kind::Count(0, 9), "", None),
        ] {
            assert_eq!(kind.read_number(text), number, "{text}");
        }
        for (kind, number, text) in [
            (TIME, 300_000, "5m"),
            (TIME, 75_000, "75s"),
            (TIME, 0, "0ms"),
            (BYTES, 1_114_112, "1088KiB"),
            (BYTES, 1000, "1000"),
        ] {
            assert_eq!(kind.number(number), text);
            assert_eq!(kind.read_number(text), Some(number));
        }
    }
}
