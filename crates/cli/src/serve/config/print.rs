//! What is in force, and what there is.

use std::fmt::Write;

use super::keys::KEYS;
use super::{Config, Loaded};

impl Loaded {
    /// The configuration as a file that would make it so, with where each value came from.
    pub(crate) fn print(&self) -> String {
        let mut out = String::from("# What is in force; after each value, where it came from.\n");
        let mut section = "";
        for key in KEYS {
            let (of, name) = key.name.split_once('.').unwrap_or(("", key.name));
            if of != section {
                section = of;
                let _ = writeln!(out, "\n[{section}]");
            }
            let origin = crate::print::printable(&self.origin(key.name).to_string());
            let _ = match key.shown(&self.config) {
                Some(value) => writeln!(out, "{name} = {value} # {origin}"),
                None => writeln!(out, "# {name} is not set"),
            };
        }
        out
    }
}

/// All keys as the table of `docs/configuration.md`.
pub(crate) fn list() -> String {
    let config = Config::default();
    let mut out = String::from("| key | default | least, most | meaning |\n|---|---|---|---|\n");
    for key in KEYS {
        let default = key.shown(&config).map_or_else(String::new, |value| format!("`{value}`"));
        let range = key.kind.range().map_or_else(String::new, |(least, most)| format!("{least}, {most}"));
        let _ = writeln!(out, "| `{}` | {default} | {range} | {} |", key.name, key.meaning);
    }
    out
}
