//! Creates the core of each shard from its journal.

use std::sync::Arc;

use hub::{Core, HubLimits, Shard};
use journal::Journal;
use seal::{Random, SystemRandom};
use wire::telemetry::Telemetry;

use super::agent_manifests::ConfiguredManifests;
use super::manifest;
use crate::demo;

/// What all shards of a hub have in common.
pub(super) struct CoreFactory {
    /// All shards, by number.
    pub(super) shards: Vec<Shard>,
    pub(super) telemetry: Arc<Telemetry>,
    pub(super) limits: HubLimits,
    pub(super) language: String,
    /// The origin under which clients reach the hub, if it is known.
    pub(super) origin: Option<String>,
    /// The hub's own manifest.
    pub(super) signed_manifest: String,
    pub(super) manifests: ConfiguredManifests,
}

impl CoreFactory {
    /// Restores the core of a shard from its journal.
    pub(super) fn create(&self, index: u16, journal: Box<dyn Journal>) -> Result<Core, String> {
        let shard = self.shards.get(usize::from(index)).cloned().unwrap_or_default();
        let number = (!shard.map.is_single()).then_some(index);
        let describe = |error: journal::JournalError| match number {
            Some(number) => format!("shard {number}: {error}"),
            None => error.to_string(),
        };
        let journal = self.telemetry.instrument_journal_of(number, journal);
        let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
        let now = wire::unix_now();
        let core = Core::in_shard(shard, journal, manifest::hub_producer(), self.limits, random, now);
        let mut core = core.map_err(describe)?;
        core.set_default_language(&self.language);
        // The demo agent runs in this process, so its sessions from an earlier process no longer have an agent.
        core.orphan_sessions_of(demo::AGENT_ID, now);
        let manifest_uri =
            self.origin.as_ref().map(|origin| format!("{origin}/.well-known/aaep-manifest.json"));
        core.set_hub_manifest(manifest_uri, self.signed_manifest.clone());
        let ConfiguredManifests { documents, keys } = &self.manifests;
        core.set_manifests(self.origin.clone(), keys.clone(), documents.clone()).map_err(describe)?;
        Ok(core)
    }
}
