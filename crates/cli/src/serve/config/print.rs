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

/// Settings that nodes of a cluster may have for themselves. The number of shards is in the database, and the manifests are compared by
/// their content.
#[cfg(feature = "postgres")]
const OF_ONE_NODE: [&str; 18] = [
    "listen",
    "data",
    "journal",
    "journal_connections",
    "cluster_node",
    "cluster_listen",
    "cluster_address",
    "cluster_drain_delay",
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "threads",
    "http.trusted_proxies",
    "http.connections",
    "http.reserved_connections",
    "hub.shards",
    "manifests.folder",
    "manifests.keys",
];

#[cfg(feature = "postgres")]
impl Config {
    /// Returns the names and values of the settings that must be the same at every node of a cluster.
    pub(in crate::serve) fn shared_values(&self) -> impl Iterator<Item = (&'static str, String)> {
        let is_shared = |name: &str| {
            !OF_ONE_NODE.contains(&name)
                && !["journal", "backup", "demo"].iter().any(|section| is_in(name, section))
        };
        KEYS.iter()
            .filter(move |key| is_shared(key.name))
            .map(|key| (key.name, key.to_toml(self).unwrap_or_default()))
    }
}

#[cfg(feature = "postgres")]
fn is_in(name: &str, section: &str) -> bool {
    name.split_once('.').is_some_and(|(first, _)| first == section)
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
