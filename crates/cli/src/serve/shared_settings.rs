//! The settings that must be the same at every node of a cluster, because a shard takes those of the node that runs it.

use std::collections::BTreeMap;

use journal::{ClusterTable, JournalError};

use super::agent_manifests;
use super::config::Config;
use crate::output::{print_stderr, printable};

/// The settings of a node, by the names of their keys, as TOML. The manifests and their keys appear as digests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SharedSettings(BTreeMap<String, String>);

impl SharedSettings {
    pub(super) fn of(config: &Config) -> Result<Self, String> {
        let mut settings: BTreeMap<_, _> =
            config.shared_values().map(|(name, value)| (name.to_owned(), value)).collect();
        settings.extend(agent_manifests::digests(config)?);
        Ok(Self(settings))
    }

    /// Reads what a node has stored.
    pub(crate) fn parse(text: &str) -> Self {
        let settings = text.lines().filter_map(|line| line.split_once(" = "));
        Self(settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    fn to_text(&self) -> String {
        let lines: Vec<_> = self.0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        lines.join("\n")
    }

    /// Returns the names of the settings that differ. A setting that only one version of sayso has does not count.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&str> {
        let differs = |(name, value): &(&String, &String)| {
            other.0.get(*name).is_some_and(|other_value| other_value != *value)
        };
        self.0.iter().filter(differs).map(|(name, _)| name.as_str()).collect()
    }

    /// Stores the settings of this node, and warns if they differ from those of another live node. Nodes with different settings
    /// can run side by side, because operators change the settings of one node after the other.
    pub(super) fn publish(&self, table: &ClusterTable, node: &str) -> Result<(), JournalError> {
        table.publish_settings(node, &self.to_text())?;
        for (name, text) in table.settings()?.iter().filter(|(name, _)| name != node) {
            let others = Self::parse(text);
            let differences: Vec<_> =
                self.differences(&others).iter().map(|key| self.compare(&others, key)).collect();
            if !differences.is_empty() {
                print_stderr(&format!(
                    "warning: these settings differ from those of node {}, but must be the same at every node: {}",
                    printable(name),
                    differences.join(", ")
                ));
            }
        }
        Ok(())
    }

    fn compare(&self, other: &Self, key: &str) -> String {
        let value = |settings: &Self| match settings.0.get(key).map(String::as_str) {
            None | Some("") => "none".to_owned(),
            Some(value) => printable(value),
        };
        format!("{key} ({} here, {} there)", value(self), value(other))
    }
}
