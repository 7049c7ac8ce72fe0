//! Prints the effective configuration, and the table of all keys.

use std::fmt::Write;

use super::keys::KEYS;
use super::{Config, LoadedConfig};

impl LoadedConfig {
    /// Returns the configuration as a TOML file, with the source of each value as a comment.
    pub(crate) fn to_toml(&self) -> String {
        let mut out =
            String::from("# The effective configuration. The comment after each value names its source.\n");
        let mut section = "";
        for key in KEYS {
            let (key_section, name) = key.name.split_once('.').unwrap_or(("", key.name));
            if key_section != section {
                section = key_section;
                let is_replaced = section == "journal" && self.config.database.is_some();
                let _ = writeln!(out, "\n{}[{section}]", if is_replaced { "# " } else { "" });
            }
            if key_section == "journal" && self.config.database.is_some() {
                // The key of the database's address is `journal`, and TOML does not permit a value and a section with the same name.
                let _ = writeln!(out, "# {name} has no effect, because the journal is in a database");
                continue;
            }
            let origin = crate::output::printable(&self.origin(key.name).to_string());
            let _ = match key.to_toml(&self.config) {
                Some(value) => writeln!(out, "{name} = {value} # {origin}"),
                None => writeln!(out, "# {name} is not set"),
            };
        }
        out
    }
}

/// Returns all keys as the Markdown table of `docs/configuration.md`.
pub(crate) fn key_table_markdown() -> String {
    let config = Config::default();
    let mut out = String::from("| key | default | range | meaning |\n|---|---|---|---|\n");
    for key in KEYS {
        let default = key.to_toml(&config).map_or_else(String::new, |value| format!("`{value}`"));
        let range = key.kind.range().map_or_else(String::new, |(min, max)| format!("{min} to {max}"));
        let _ = writeln!(out, "| `{}` | {default} | {range} | {} |", key.name, key.description);
    }
    out
}
