//! The manifests of agents that the hub publishes (§5.10).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, PoisonError, RwLock};

use aaep::manifest::ManifestDocument;

/// The path below which the hub serves the manifests of agents.
pub const MANIFEST_FOLDER: &str = "/.well-known/aaep-manifests/";

/// A manifest of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentManifest {
    /// The document as its author wrote it.
    pub document: ManifestDocument,
    /// Who vouches for the document.
    pub trust: ManifestTrust,
}

impl AgentManifest {
    /// Creates a manifest that the operator, or the program that runs the hub, vouches for.
    pub fn configured(document: ManifestDocument) -> Self {
        Self { document, trust: ManifestTrust::Configured }
    }
}

/// Who vouches for a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestTrust {
    /// Nobody: the agent published it.
    Unverified,
    /// It is signed with a key that the operator trusts.
    Signature,
    /// The operator, or the program that runs the hub, configured it.
    Configured,
}

impl ManifestTrust {
    /// Returns the value of `verified_by` for listeners; `None` if nobody vouches for the manifest.
    pub(crate) fn verified_by(self) -> Option<&'static str> {
        match self {
            Self::Unverified => None,
            Self::Signature => Some("signature"),
            Self::Configured => Some("hub"),
        }
    }
}

/// A shared view of the manifests, for the server that serves them.
#[derive(Clone, Debug, Default)]
pub struct PublishedManifests(Arc<RwLock<BTreeMap<String, Arc<AgentManifest>>>>);

impl PublishedManifests {
    /// Returns the manifest with this file name below [`MANIFEST_FOLDER`].
    pub fn get(&self, file_name: &str) -> Option<Arc<AgentManifest>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(file_name).cloned()
    }

    pub(crate) fn replace(&self, manifests: impl Iterator<Item = Arc<AgentManifest>>) {
        let named = manifests.map(|manifest| (file_name(&manifest.document.manifest.agent_id), manifest));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = named.collect();
    }
}

/// Returns the file name of an agent's manifest: the percent-encoded id (RFC 3986) and `.json`.
pub(crate) fn file_name(agent: &str) -> String {
    let mut name = String::with_capacity(agent.len() + 5);
    for byte in agent.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name + ".json"
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_file_name_is_one_path_segment() {
        assert_eq!(file_name("bank-2.a_~"), "bank-2.a_~.json");
        assert_eq!(file_name("a/b?c=é %"), "a%2Fb%3Fc%3D%C3%A9%20%25.json");
    }
}
