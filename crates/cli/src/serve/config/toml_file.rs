//! Reads a TOML file as a list of keys with line numbers.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{ConfigKey, KEYS};
use super::value::RawValue;

pub(super) struct ConfigEntry<'f> {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) value: RawValue<'f>,
}

/// Maximum size of a configuration file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    use std::io::Read;
    let io_error =
        |error: std::io::Error| format!("{}: {}", path.display(), crate::output::describe_io_error(&error));
    let mut text = String::new();
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(io_error)?,
    };
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(io_error)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("{}: longer than {MAX_FILE_BYTES} bytes", path.display()));
    }
    Ok(Some(text))
}

/// Calls `each` for every key in file order. Returns the first error with its line number.
pub(super) fn parse(
    text: &str,
    each: &mut dyn FnMut(&ConfigEntry<'_>) -> Result<(), String>,
) -> Result<(), (usize, String)> {
    let line_at = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(span.start));
        (line, format!("not TOML: {}", error.message().trim().replace('\n', "; ")))
    })?;
    let mut entries = Vec::new();
    collect_entries("", table.get_ref(), &line_at, &mut entries);
    entries.sort_by_key(|entry: &ConfigEntry<'_>| entry.line);
    entries.iter().try_for_each(|entry| each(entry).map_err(|error| (entry.line, error)))
}

fn collect_entries<'t>(
    section: &str,
    table: &'t DeTable<'_>,
    line_at: &dyn Fn(usize) -> usize,
    entries: &mut Vec<ConfigEntry<'t>>,
) {
    for (key, value) in table {
        let name = if section.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{section}.{}", key.get_ref())
        };
        let prefix = format!("{name}.");
        let is_section = KEYS.iter().any(|key| key.name.starts_with(&prefix));
        match value.get_ref() {
            DeValue::Table(inner) if is_section || !inner.is_empty() && ConfigKey::find(&name).is_none() => {
                collect_entries(&name, inner, line_at, entries);
            }
            value => {
                entries.push(ConfigEntry { name, line: line_at(key.span().start), value: raw_value(value) });
            }
        }
    }
}

fn raw_value<'v>(value: &'v DeValue<'_>) -> RawValue<'v> {
    match value {
        DeValue::String(text) => RawValue::Text(text),
        DeValue::Integer(number) => {
            RawValue::Integer(u64::from_str_radix(number.as_str(), number.radix()).ok())
        }
        DeValue::Boolean(flag) => RawValue::Flag(*flag),
        DeValue::Array(items) => {
            let texts: Option<Vec<&str>> =
                items.iter().map(|item: &Spanned<_>| item.get_ref().as_str()).collect();
            texts.map_or(RawValue::Other("a list with values other than strings"), RawValue::List)
        }
        DeValue::Float(_) => RawValue::Other("a decimal number"),
        DeValue::Datetime(_) => RawValue::Other("a date"),
        DeValue::Table(_) => RawValue::Other("a section"),
    }
}
