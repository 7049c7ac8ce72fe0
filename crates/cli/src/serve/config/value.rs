//! Parsing and formatting of configuration values.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::Config;
use super::database_address::DatabaseAddress;
use super::keys::ConfigKey;

// Durations are in milliseconds.
pub(super) const SECOND: u64 = 1000;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
pub(super) const DAY: u64 = 24 * HOUR;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// The type of a value. Numeric types include the minimum and the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Address,
    Path,
    Flag,
    List,
    Language,
    /// A name of at most 100 characters, none of which is a control character.
    Name,
    /// The address of a database. It may contain a password, so it is never printed unchanged.
    Database,
    Count(u64, u64),
    Bytes(u64, u64),
    /// In milliseconds.
    Time(u64, u64),
}

/// A reference to the field that holds a value. Each variant stands for one field type.
pub(super) enum FieldRef<'c> {
    Address(&'c mut SocketAddr),
    OptionalAddress(&'c mut Option<SocketAddr>),
    Path(&'c mut PathBuf),
    OptionalPath(&'c mut Option<PathBuf>),
    Flag(&'c mut bool),
    List(&'c mut Vec<String>),
    Language(&'c mut String),
    OptionalName(&'c mut Option<String>),
    Database(&'c mut Option<DatabaseAddress>),
    Size(&'c mut usize),
    OptionalSize(&'c mut Option<u64>),
    Time(&'c mut Duration),
    Millis(&'c mut i64),
    OptionalMillis(&'c mut Option<i64>),
}

/// A value as it was written, before it is parsed for its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RawValue<'f> {
    /// From the environment or a flag, where every value is a string.
    Strings(Vec<&'f OsStr>),
    /// A string in a file.
    Text(&'f str),
    /// An integer in a file; `None` if it is negative or too large.
    Integer(Option<u64>),
    Flag(bool),
    List(Vec<&'f str>),
    /// The name of a TOML type that no key accepts.
    Other(&'static str),
}

const UNITS_OF_TIME: [(&str, u64); 5] = [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)];
const UNITS_OF_BYTES: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", GIB), ("MiB", MIB), ("KiB", 1024)];

impl ValueKind {
    /// Describes the accepted values.
    fn describe_accepted(self, is_optional: bool) -> String {
        let or_none = if is_optional { ", or none" } else { "" };
        let range = |min, max| format!("from {} to {}", self.format_number(min), self.format_number(max));
        match self {
            Self::Address => "an address with a port, such as 127.0.0.1:8787".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::List => "a list of strings, such as [\"hub.example:8787\"]".to_owned(),
            Self::Language => "a language tag such as en, es or pt-BR".to_owned(),
            Self::Name => "a name of 1 to 100 characters".to_owned(),
            Self::Database => "the address of a database, such as postgres://user@host/database".to_owned(),
            Self::Count(min, max) => format!("a whole number {}{or_none}", range(min, max)),
            Self::Bytes(min, max) => {
                format!("a number of bytes such as 65536, 64KiB or 1MiB, {}{or_none}", range(min, max))
            }
            Self::Time(min, max) => {
                format!("a duration such as 250ms, 30s, 5m, 12h or 7d, {}{or_none}", range(min, max))
            }
        }
    }

    pub(super) fn range(self) -> Option<(String, String)> {
        let (Self::Count(min, max) | Self::Bytes(min, max) | Self::Time(min, max)) = self else {
            return None;
        };
        Some((self.format_number(min), self.format_number(max)))
    }

    /// Formats a number in the largest unit that divides it.
    pub(super) fn format_number(self, number: u64) -> String {
        let units: &[(&str, u64)] = match self {
            Self::Time(..) => &UNITS_OF_TIME,
            Self::Bytes(..) => &UNITS_OF_BYTES,
            _ => &[],
        };
        let divides = |unit: &&(&str, u64)| number >= unit.1 && number.is_multiple_of(unit.1);
        match units.iter().find(divides) {
            Some((name, unit)) => format!("{}{name}", number / unit),
            None if matches!(self, Self::Time(..)) => format!("{number}ms"),
            None => number.to_string(),
        }
    }

    fn parse_number(self, text: &str) -> Option<u64> {
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

/// The longest duration that a command accepts, in milliseconds.
const MAX_DURATION_MS: u64 = 36_500 * DAY;

/// Parses a duration with a unit, such as `90d`, for a command-line flag. Returns milliseconds.
pub(crate) fn parse_duration_ms(text: &str) -> Result<i64, String> {
    let kind = ValueKind::Time(SECOND, MAX_DURATION_MS);
    kind.parse_number(text)
        .filter(|number| (SECOND..=MAX_DURATION_MS).contains(number))
        .and_then(|number| i64::try_from(number).ok())
        .ok_or_else(|| format!("it is not {}", kind.describe_accepted(false)))
}

impl ConfigKey {
    /// Parses a value and stores it in its field. The error describes the accepted values.
    pub(super) fn set(&self, config: &mut Config, raw: &RawValue<'_>) -> Result<(), String> {
        let field = (self.field)(config);
        let is_optional = matches!(field, FieldRef::OptionalSize(_) | FieldRef::OptionalMillis(_));
        let invalid = || format!("{} is not {}", raw.describe(), self.kind.describe_accepted(is_optional));
        match field {
            FieldRef::Address(target) => {
                *target = raw.text().and_then(crate::hub_args::parse_listen_address).ok_or_else(invalid)?;
            }
            FieldRef::OptionalAddress(target) => {
                let address = raw.text().and_then(crate::hub_args::parse_listen_address);
                *target = Some(address.ok_or_else(invalid)?);
            }
            FieldRef::Path(target) => *target = raw.path().ok_or_else(invalid)?,
            FieldRef::OptionalPath(target) => *target = Some(raw.path().ok_or_else(invalid)?),
            FieldRef::Flag(target) => *target = raw.flag().ok_or_else(invalid)?,
            FieldRef::List(target) => *target = raw.list().ok_or_else(invalid)?,
            FieldRef::Language(target) => {
                let tag = raw.text().filter(|text| aaep::grammar::is_language_tag(text));
                tag.ok_or_else(invalid)?.clone_into(target);
            }
            FieldRef::OptionalName(target) => {
                let is_name = |text: &&str| {
                    (1..=100).contains(&text.chars().count()) && !text.contains(char::is_control)
                };
                *target = Some(raw.text().filter(is_name).ok_or_else(invalid)?.to_owned());
            }
            FieldRef::Database(target) => {
                let address = raw.text().and_then(DatabaseAddress::new);
                *target = Some(
                    address
                        .ok_or_else(|| format!("the value is not {}", self.kind.describe_accepted(false)))?,
                );
            }
            FieldRef::OptionalSize(target) if raw.text() == Some("none") => *target = None,
            FieldRef::OptionalMillis(target) if raw.text() == Some("none") => *target = None,
            field => {
                let number = raw.number(self.kind).ok_or_else(invalid)?;
                field.store(number).ok_or_else(invalid)?;
            }
        }
        Ok(())
    }

    /// Returns the value in TOML syntax; `None` if it is not set.
    pub(super) fn to_toml(&self, config: &Config) -> Option<String> {
        let mut config = config.clone();
        let number = |number: u64| match self.kind {
            ValueKind::Count(..) => number.to_string(),
            kind => {
                let text = kind.format_number(number);
                if text.bytes().all(|byte| byte.is_ascii_digit()) { text } else { toml_string(&text) }
            }
        };
        let none = || toml_string("none");
        let millis = |millis: i64| number(u64::try_from(millis).unwrap_or(0));
        Some(match (self.field)(&mut config) {
            FieldRef::Address(address) => toml_string(&address.to_string()),
            FieldRef::OptionalAddress(address) => toml_string(&(*address)?.to_string()),
            FieldRef::Path(path) => toml_string(&path.to_string_lossy()),
            FieldRef::OptionalPath(path) => toml_string(&path.as_ref()?.to_string_lossy()),
            FieldRef::Flag(flag) => flag.to_string(),
            FieldRef::List(list) => {
                format!("[{}]", list.iter().map(|item| toml_string(item)).collect::<Vec<_>>().join(", "))
            }
            FieldRef::Language(language) => toml_string(language),
            FieldRef::OptionalName(name) => toml_string(name.as_ref()?),
            FieldRef::Database(address) => toml_string(&address.as_ref()?.to_string()),
            FieldRef::Size(size) => number(*size as u64),
            FieldRef::OptionalSize(size) => size.map_or_else(none, number),
            FieldRef::Time(time) => number(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            FieldRef::Millis(time) => millis(*time),
            FieldRef::OptionalMillis(time) => time.map_or_else(none, millis),
        })
    }
}

impl FieldRef<'_> {
    fn store(self, number: u64) -> Option<()> {
        match self {
            Self::Size(target) => *target = usize::try_from(number).ok()?,
            Self::OptionalSize(target) => *target = Some(number),
            Self::Time(target) => *target = Duration::from_millis(number),
            Self::Millis(target) => *target = i64::try_from(number).ok()?,
            Self::OptionalMillis(target) => *target = Some(i64::try_from(number).ok()?),
            _ => return None,
        }
        Some(())
    }
}

impl RawValue<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Strings(values) => match values.as_slice() {
                [value] => value.to_str(),
                _ => None,
            },
            _ => None,
        }
    }

    fn path(&self) -> Option<PathBuf> {
        let path = match self {
            Self::Strings(values) => PathBuf::from(values.first()?),
            raw => PathBuf::from(raw.text()?),
        };
        (!path.as_os_str().is_empty()).then_some(path)
    }

    fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            Self::Strings(_) => self.text()?.parse().ok(),
            _ => None,
        }
    }

    /// Returns a list. Values from the environment and from flags are split at commas.
    fn list(&self) -> Option<Vec<String>> {
        let texts: Vec<&str> = match self {
            Self::List(texts) => texts.clone(),
            Self::Strings(values) => {
                let values: Option<Vec<&str>> = values.iter().map(|value| value.to_str()).collect();
                values?.into_iter().flat_map(|value| value.split(',')).collect()
            }
            _ => return None,
        };
        let texts: Vec<String> = texts.into_iter().map(|text| text.trim().to_owned()).collect();
        texts.iter().all(|text| !text.is_empty()).then_some(texts)
    }

    fn number(&self, kind: ValueKind) -> Option<u64> {
        let number = match (self, kind) {
            // A number without a unit is not a duration.
            (Self::Integer(number), ValueKind::Count(..) | ValueKind::Bytes(..)) => (*number)?,
            (Self::Strings(_), _) | (Self::Text(_), ValueKind::Bytes(..) | ValueKind::Time(..)) => {
                kind.parse_number(self.text()?)?
            }
            _ => return None,
        };
        let (ValueKind::Count(min, max) | ValueKind::Bytes(min, max) | ValueKind::Time(min, max)) = kind
        else {
            return None;
        };
        (min..=max).contains(&number).then_some(number)
    }

    /// Describes the value in an error message.
    fn describe(&self) -> String {
        let text = match self {
            Self::Strings(values) => {
                values.iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(", ")
            }
            Self::Text(text) => (*text).to_owned(),
            Self::Integer(Some(number)) => return number.to_string(),
            Self::Integer(None) => return "this number".to_owned(),
            Self::Flag(flag) => return flag.to_string(),
            Self::List(_) => return "a list".to_owned(),
            Self::Other(name) => return (*name).to_owned(),
        };
        format!("\"{}\"", crate::output::printable(&text))
    }
}

/// Formats a string in TOML syntax.
pub(super) fn toml_string(text: &str) -> String {
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

    const TIME: ValueKind = ValueKind::Time(0, u64::MAX);
    const BYTES: ValueKind = ValueKind::Bytes(0, u64::MAX);

    #[test]
    fn numbers_with_units_are_parsed_and_formatted() {
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
            (ValueKind::Count(0, 9), "7", Some(7)),
            (ValueKind::Count(0, 9), "7s", None),
            (ValueKind::Count(0, 9), "+7", None),
            (ValueKind::Count(0, 9), "", None),
        ] {
            assert_eq!(kind.parse_number(text), number, "{text}");
        }
        for (kind, number, text) in [
            (TIME, 300_000, "5m"),
            (TIME, 75_000, "75s"),
            (TIME, 0, "0ms"),
            (BYTES, 1_114_112, "1088KiB"),
            (BYTES, 1000, "1000"),
        ] {
            assert_eq!(kind.format_number(number), text);
            assert_eq!(kind.parse_number(text), Some(number));
        }
    }
}
