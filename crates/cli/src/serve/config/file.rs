//! A file's keys, with their lines.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{KEYS, Key};
use super::value::Found;

pub(super) struct Entry<'f> {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) found: Found<'f>,
}

/// No file of settings is longer.
const LONGEST: u64 = 1 << 20;

/// The text of a file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    use std::io::Read;
    let wrong = |error: std::io::Error| format!("{}: {}", path.display(), crate::print::in_words(&error));
    let mut text = String::new();
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(wrong)?,
    };
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(wrong)?;
    if text.len() as u64 > LONGEST {
        return Err(format!("{}: longer than {LONGEST} bytes", path.display()));
    }
    Ok(Some(text))
}

/// Calls `each` for each key, in the order of the file. An error has its line before it.
pub(super) fn parse(
    text: &str,
    each: &mut dyn FnMut(&Entry<'_>) -> Result<(), String>,
) -> Result<(), (usize, String)> {
    let line_at = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(span.start));
        (line, format!("not TOML: {}", error.message().trim().replace('\n', "; ")))
    })?;
    let mut entries = Vec::new();
    gather("", table.get_ref(), &line_at, &mut entries);
    entries.sort_by_key(|entry: &Entry<'_>| entry.line);
    entries.iter().try_for_each(|entry| each(entry).map_err(|why| (entry.line, why)))
}

fn gather<'t>(
    section: &str,
    table: &'t DeTable<'_>,
    line_at: &dyn Fn(usize) -> usize,
    entries: &mut Vec<Entry<'t>>,
) {
    for (key, value) in table {
        let name = if section.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{section}.{}", key.get_ref())
        };
        let begins = format!("{name}.");
        let is_section = KEYS.iter().any(|key| key.name.starts_with(&begins));
        match value.get_ref() {
            DeValue::Table(inner) if is_section || !inner.is_empty() && Key::named(&name).is_none() => {
                gather(&name, inner, line_at, entries);
            }
            value => {
                entries.push(Entry { name, line: line_at(key.span().start), found: found(value) });
            }
        }
    }
}

fn found<'v>(value: &'v DeValue<'_>) -> Found<'v> {
    match value {
        DeValue::String(text) => Found::Text(text),
        DeValue::Integer(number) => Found::Integer(u64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Boolean(flag) => Found::Flag(*flag),
        DeValue::Array(items) => {
            let texts: Option<Vec<&str>> =
                items.iter().map(|item: &Spanned<_>| item.get_ref().as_str()).collect();
            texts.map_or(Found::Other("a list of other things"), Found::List)
        }
        DeValue::Float(_) => Found::Other("a fraction"),
        DeValue::Datetime(_) => Found::Other("a date"),
        DeValue::Table(_) => Found::Other("a section"),
    }
}
