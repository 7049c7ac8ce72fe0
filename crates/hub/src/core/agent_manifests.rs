//! Publishes the manifests of agents, and adds what a manifest says about an agent to the events of its sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep::check::has_visible_character;
use aaep::event::StateDefinition;
use aaep::json::{JsonWriter, OwnedDoc, Tape, TapeWriter};
use aaep::manifest::{self, ManifestDocument, ManifestError, TrustedKeys};
use journal::{DamageLocation, JournalError};

use super::quotas::UsageAccount;
use super::restore::unreadable;
use super::{Core, OwnedEntry, PostCommit, TurnContext};
use crate::command::{HubReply, LimitReached, MalformedRequest};
use crate::compose::{AgentVerification, ManifestNote};
use crate::manifests::{AgentManifest, MANIFEST_FOLDER, ManifestTrust, PublishedManifests, file_name};
use crate::{AgentNaming, Principal};

/// The manifests of all agents.
#[derive(Default)]
pub(super) struct ManifestRegistry {
    /// The operator's manifests. An agent cannot replace them.
    configured: BTreeMap<Arc<str>, Arc<AgentManifest>>,
    /// The manifests that agents sent.
    from_agents: BTreeMap<Arc<str>, Arc<AgentManifest>>,
    /// The keys that the operator trusts. An agent's manifest that is signed with one of them is verified.
    keys: Option<TrustedKeys>,
    /// The hub's origin, such as `https://hub.example`, if it is known.
    origin: Option<Box<str>>,
    /// The manifests that the server serves: the configured ones, and those of agents for which none is configured.
    served: PublishedManifests,
}

impl ManifestRegistry {
    fn get(&self, agent: &str) -> Option<&Arc<AgentManifest>> {
        self.configured.get(agent).or_else(|| self.from_agents.get(agent))
    }

    fn uri(&self, agent: &str) -> Option<String> {
        Some(format!("{}{MANIFEST_FOLDER}{}", self.origin.as_deref()?, file_name(agent)))
    }

    fn update_served(&self) {
        let is_overridden = |agent: &Arc<str>| self.configured.contains_key(agent);
        let from_agents = self.from_agents.iter().filter(|(agent, _)| !is_overridden(agent));
        self.served.replace(from_agents.chain(&self.configured).map(|(_, manifest)| manifest.clone()));
    }

    /// Reads a document that an agent published, and checks its signature if it has one and there are keys.
    fn verify(&self, text: &str) -> Result<AgentManifest, ManifestError> {
        let document = ManifestDocument::parse(text)?;
        let trust = match (&document.signed, &self.keys) {
            (Some(signed), Some(keys)) => {
                manifest::verify(signed, keys)?;
                ManifestTrust::Signature
            }
            _ => ManifestTrust::Unverified,
        };
        Ok(AgentManifest { document, trust })
    }
}

/// A change to the registry, applied once it is stored.
pub(super) struct ManifestChange {
    agent: Arc<str>,
    manifest: Option<Arc<AgentManifest>>,
}

impl Core {
    /// Sets what the hub needs to publish manifests: its origin, the keys that the operator trusts to sign agents' manifests,
    /// and the manifests that the operator configured. Call it before the first turn.
    pub fn set_manifests(
        &mut self,
        origin: Option<String>,
        keys: Option<TrustedKeys>,
        configured: Vec<ManifestDocument>,
    ) -> Result<(), JournalError> {
        let by_agent = |document: ManifestDocument| {
            let agent = document.manifest.agent_id.as_str().into();
            (agent, Arc::new(AgentManifest::configured(document)))
        };
        self.manifests.configured = configured.into_iter().map(by_agent).collect();
        (self.manifests.origin, self.manifests.keys) = (origin.map(Into::into), keys);
        let stored = self.journal.restore()?.manifests;
        self.restore_manifests(&stored)
    }

    /// Returns a view of the manifests, for the server that serves them.
    pub fn published_manifests(&self) -> PublishedManifests {
        self.manifests.served.clone()
    }

    /// Handles `HubCommand::FindManifest`.
    pub(super) fn find_manifest(&self, file_name: &str) -> HubReply {
        let manifest = self.manifests.served.get(file_name);
        manifest.map_or(HubReply::NotFound, |manifest| HubReply::ManifestFound {
            json: manifest.document.json.clone(),
            signed: manifest.document.signed.clone(),
        })
    }

    /// Restores the manifests that agents published. If the operator no longer trusts the key that signed a manifest, it is
    /// published as unverified.
    pub(super) fn restore_manifests(
        &mut self,
        stored: &[journal::stored::StoredManifest],
    ) -> Result<(), JournalError> {
        let mut from_agents = BTreeMap::new();
        for stored in stored {
            let unreadable = || unreadable(DamageLocation::Manifest, &stored.agent);
            let text = read_record(&stored.record).ok_or_else(unreadable)?;
            let manifest = self.manifests.verify(&text).or_else(|_| {
                let document = ManifestDocument::parse(&text).map_err(|_| unreadable())?;
                Ok::<_, JournalError>(AgentManifest { document, trust: ManifestTrust::Unverified })
            })?;
            from_agents.insert(stored.agent.as_str().into(), Arc::new(manifest));
        }
        self.manifests.from_agents = from_agents;
        self.manifests.update_served();
        Ok(())
    }

    /// Handles `PUT /agent/v1/manifest`.
    pub(super) fn publish_manifest_of_agent(
        &mut self,
        principal: &Principal,
        text: &str,
        context: &TurnContext,
    ) -> HubReply {
        if !principal.can_publish() {
            return HubReply::Forbidden;
        }
        if let Some(reply) = self.begin_keyed_request(principal, None) {
            return reply;
        }
        let max = self.limits.manifest_bytes;
        if text.len() > max {
            return MalformedRequest::ManifestTooLarge { max }.into();
        }
        let manifest = match self.manifests.verify(text) {
            Ok(manifest) => manifest,
            Err(ManifestError::RuleViolations(findings)) if !findings.is_empty() => {
                return HubReply::RuleViolations(findings);
            }
            Err(error) => return MalformedRequest::InvalidManifest(Box::new(error)).into(),
        };
        let agent: Arc<str> = manifest.document.manifest.agent_id.as_str().into();
        let account = UsageAccount::of(principal, &agent);
        if let Err(limit) = self.check_byte_rate(&account, context) {
            return limit.into();
        }
        if let Err(refusal) = self.check_manifest_allowed(principal, &agent, &manifest) {
            return refusal;
        }
        let (manifest_uri, is_verified) =
            (self.manifests.uri(&agent), manifest.trust != ManifestTrust::Unverified);
        if self.manifests.from_agents.get(&agent).is_none_or(|known| **known != manifest) {
            let record = write_record(manifest.document.signed.as_ref().unwrap_or(&manifest.document.json));
            self.staged.bytes += record.len();
            self.stage_manifest(agent.clone(), Some((manifest, record)));
        }
        let reply = HubReply::ManifestPublished { agent_id: agent, manifest_uri, is_verified };
        self.finish_request(principal, &account, None, &reply, context);
        reply
    }

    /// Handles `DELETE /agent/v1/manifest`. Only the manifest of the token's own agent can be deleted.
    pub(super) fn delete_manifest_of_agent(&mut self, principal: &Principal) -> HubReply {
        let Some(agent) = principal.agent_id.clone().filter(|_| principal.can_publish()) else {
            return HubReply::Forbidden;
        };
        if self.manifests.from_agents.contains_key(&agent) || self.is_manifest_staged(&agent) {
            self.stage_manifest(agent, None);
        }
        HubReply::Done
    }

    /// Returns the manifests that agents published, each with its agent and as its author wrote it.
    pub fn documents_of_agents(&self) -> Vec<(Arc<str>, String)> {
        let text = |manifest: &AgentManifest| {
            manifest.document.signed.clone().unwrap_or_else(|| manifest.document.json.clone())
        };
        self.manifests.from_agents.iter().map(|(agent, manifest)| (agent.clone(), text(manifest))).collect()
    }

    /// Makes the manifests that agents published the same as those of another shard. Call it before the first turn.
    pub fn adopt_documents_of_agents(
        &mut self,
        documents: &[(Arc<str>, String)],
    ) -> Result<(), JournalError> {
        let own = self.documents_of_agents();
        for (agent, _) in own.iter().filter(|(agent, _)| !documents.iter().any(|(other, _)| other == agent)) {
            self.replicate_manifest(agent, None);
        }
        for (agent, document) in documents.iter().filter(|document| !own.contains(document)) {
            self.replicate_manifest(agent, Some(document));
        }
        let staged = std::mem::take(&mut self.staged);
        self.write_batch(&staged.writes)?;
        for action in staged.post_commit {
            if let PostCommit::ApplyManifest(change) = action {
                self.apply_manifest(change);
            }
        }
        Ok(())
    }

    /// Handles `HubCommand::ReplicateManifest`. The shard that decided about the manifest has checked it.
    pub(super) fn replicate_manifest(&mut self, agent: &str, document: Option<&str>) -> HubReply {
        let agent: Arc<str> = agent.into();
        let Some(text) = document else {
            self.stage_manifest(agent, None);
            return HubReply::Done;
        };
        let unverified = || {
            Some(AgentManifest {
                document: ManifestDocument::parse(text).ok()?,
                trust: ManifestTrust::Unverified,
            })
        };
        let Some(manifest) = self.manifests.verify(text).ok().or_else(unverified) else {
            return HubReply::NotFound;
        };
        let record = write_record(text);
        self.stage_manifest(agent, Some((manifest, record)));
        HubReply::Done
    }

    /// Checks that the token may publish a manifest of this agent, that the operator has configured none for it, that the
    /// name in the manifest is acceptable, and that the limit on manifests is not reached.
    fn check_manifest_allowed(
        &self,
        principal: &Principal,
        agent: &str,
        manifest: &AgentManifest,
    ) -> Result<(), HubReply> {
        let is_hub = *agent == *self.offer.producer.agent_id;
        if is_hub || principal.agent_id.as_deref().is_some_and(|own| own != agent) {
            return Err(MalformedRequest::ManifestOfOtherAgent.into());
        }
        if self.manifests.configured.contains_key(agent) {
            return Err(MalformedRequest::ManifestConfigured.into());
        }
        let max = self.limits.shared_member_chars;
        let name = manifest.document.manifest.agent_name.as_deref();
        if name.is_some_and(|name| name.chars().count() > max || !has_visible_character(name)) {
            return Err(MalformedRequest::ManifestName { max }.into());
        }
        let max = self.limits.manifests;
        let is_known = |agent: &str| self.manifests.from_agents.contains_key(agent);
        let staged = self.staged.writes.iter().filter(
            |write| matches!(write, OwnedEntry::ManifestStored { agent, record: Some(_) } if !is_known(agent)),
        );
        if !is_known(agent) && self.manifests.from_agents.len() + staged.count() >= max {
            return Err(LimitReached::Manifests { max }.into());
        }
        Ok(())
    }

    fn is_manifest_staged(&self, agent: &str) -> bool {
        let is_of_agent = |write: &OwnedEntry| matches!(write, OwnedEntry::ManifestStored { agent: of, .. } if **of == *agent);
        self.staged.writes.iter().any(is_of_agent)
    }

    fn stage_manifest(&mut self, agent: Arc<str>, manifest: Option<(AgentManifest, String)>) {
        let (manifest, record) = manifest.map(|(manifest, record)| (Arc::new(manifest), record)).unzip();
        self.staged.writes.push(OwnedEntry::ManifestStored { agent: agent.clone(), record });
        self.staged.post_commit.push(PostCommit::ApplyManifest(ManifestChange { agent, manifest }));
    }

    pub(super) fn apply_manifest(&mut self, change: ManifestChange) {
        match change.manifest {
            Some(manifest) => self.manifests.from_agents.insert(change.agent, manifest),
            None => self.manifests.from_agents.remove(&change.agent),
        };
        self.manifests.update_served();
    }

    /// Adds to a session's producer what the manifest of its agent says: the address of the manifest and, if the manifest
    /// is verified, the name in it. Also returns what is verified about the agent. A caller that needs no token can use
    /// any agent id, so a manifest proves nothing about it.
    pub(super) fn identify_producer(
        &self,
        principal: &Principal,
        agent: &str,
        producer: OwnedDoc,
    ) -> (OwnedDoc, AgentVerification) {
        let mut verification = AgentVerification {
            has_verified_name: principal.naming != AgentNaming::SelfDeclared,
            manifest: None,
        };
        let Some(published) = self.manifests.get(agent) else { return (producer, verification) };
        let manifest = &published.document.manifest;
        let verified_by =
            published.trust.verified_by().filter(|_| principal.agent_id.as_deref() == Some(agent));
        verification.manifest = verified_by.map(|verified_by| ManifestNote {
            verified_by,
            contact: manifest.contact.clone().filter(|contact| self.is_short(contact)),
        });
        let name = manifest.agent_name.as_deref().filter(|name| {
            verified_by.is_some() && principal.naming == AgentNaming::SelfDeclared && self.is_short(name)
        });
        verification.has_verified_name |= name.is_some();
        let producer = with_members(
            &producer,
            &[("agent_name", name), ("manifest_uri", self.manifests.uri(agent).as_deref())],
        );
        (producer, verification)
    }

    /// Returns the states that the manifest of an agent documents, for sessions that define none.
    pub(super) fn manifest_states(&self, agent: &str) -> Vec<StateDefinition> {
        self.manifests
            .get(agent)
            .map(|manifest| manifest.document.extension.states.clone())
            .unwrap_or_default()
    }

    fn is_short(&self, text: &str) -> bool {
        text.chars().count() <= self.limits.shared_member_chars
    }
}

/// Returns a copy of an object with these members. A member that the object already has is replaced.
fn with_members(object: &OwnedDoc, members: &[(&str, Option<&str>)]) -> OwnedDoc {
    let mut out = TapeWriter::default();
    out.open_object();
    for (name, value) in object.doc().root().members() {
        if !members.iter().any(|(replaced, new)| new.is_some() && name.is_text(replaced)) {
            out.copy_key(&name);
            out.copy(&value);
        }
    }
    for (name, value) in members {
        if let Some(value) = value {
            out.key(name);
            out.text(value);
        }
    }
    out.close_object();
    out.doc().map_or_else(|_| object.clone(), |doc| OwnedDoc::from_doc(&doc))
}

fn write_record(document: &str) -> String {
    let mut writer = JsonWriter::default();
    writer.object(|writer| {
        writer.key("document");
        writer.text(document);
    });
    writer.finish()
}

fn read_record(record: &[u8]) -> Option<String> {
    let mut tape = Tape::default();
    let doc = tape.read(std::str::from_utf8(record).ok()?).ok()?;
    Some(doc.root().member("document")?.text()?.into_owned())
}
