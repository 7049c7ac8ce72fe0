//! The manifests of agents that the operator configures, and the keys that verify manifests.

use std::path::{Path, PathBuf};

use aaep::manifest::{self, ManifestDocument, TrustedKeys};

use super::config::Config;
use super::manifest::AGENT_ID;
use crate::demo;
use crate::file::read;
use crate::manifest::load_trusted_keys;
use crate::output::{describe_io_error, printable};

/// The manifests of agents, and the keys, from the configuration.
#[derive(Default)]
pub(super) struct ConfiguredManifests {
    pub(super) documents: Vec<ManifestDocument>,
    pub(super) keys: Option<TrustedKeys>,
}

/// The endings of manifest files: JSON, or a compact JWS. Other files in the folder are ignored.
const FILE_ENDINGS: [&str; 2] = ["json", "jws"];

/// Loads the keys and every manifest in the folder. A manifest that is signed must be signed with one of the keys, if there
/// are keys.
pub(super) fn load(config: &Config) -> Result<ConfiguredManifests, String> {
    let keys = config.manifest_keys.as_deref().map(load_trusted_keys).transpose();
    let keys = keys.map_err(|error| format!("manifests.keys: {}", error.message()))?;
    let mut documents: Vec<ManifestDocument> = Vec::new();
    for path in config.manifests.as_deref().map(manifest_files).transpose()?.unwrap_or_default() {
        let document = load_manifest(&path, keys.as_ref()).map_err(|problem| {
            format!("manifests.folder: {}: {problem}", printable(&path.to_string_lossy()))
        })?;
        let agent = &document.manifest.agent_id;
        if documents.iter().any(|other| other.manifest.agent_id == *agent) {
            return Err(format!("manifests.folder: there are two manifests of the agent {agent:?}"));
        }
        documents.push(document);
    }
    Ok(ConfiguredManifests { documents, keys })
}

/// Returns digests of the content of the manifests and of the keys, so that the nodes of a cluster can compare them.
#[cfg(feature = "postgres")]
pub(super) fn digests(config: &Config) -> Result<[(String, String); 2], String> {
    let digest = |paths: Vec<PathBuf>| -> Result<String, String> {
        let mut digests = Vec::new();
        for path in paths {
            let bytes = std::fs::read(&path)
                .map_err(|error| format!("cannot read {}: {}", path.display(), describe_io_error(&error)))?;
            digests.push(seal::Digest::of(&bytes).to_string());
        }
        digests.sort();
        Ok(match digests.len() {
            0 => String::new(),
            count => format!("{count} files, {}", seal::Digest::of(digests.concat().as_bytes())),
        })
    };
    let manifests = config.manifests.as_deref().map(manifest_files).transpose()?.unwrap_or_default();
    let keys = config.manifest_keys.clone().into_iter().collect();
    Ok([("manifests.folder".to_owned(), digest(manifests)?), ("manifests.keys".to_owned(), digest(keys)?)])
}

fn manifest_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if ending.is_some_and(|ending| FILE_ENDINGS.contains(&ending)) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    };
    list().map_err(|error| {
        format!("manifests.folder: cannot read {}: {}", folder.display(), describe_io_error(&error))
    })
}

fn load_manifest(path: &Path, keys: Option<&TrustedKeys>) -> Result<ManifestDocument, String> {
    let bytes =
        read(path, manifest::MAX_SIGNED_BYTES as u64, "").map_err(|error| error.message().to_owned())?;
    let text = std::str::from_utf8(&bytes).map_err(|_| "not UTF-8")?;
    let faulty = |error: manifest::ManifestError| format!("the manifest {}", printable(&error.to_string()));
    let document = ManifestDocument::parse(text).map_err(faulty)?;
    if let (Some(signed), Some(keys)) = (&document.signed, keys) {
        manifest::verify(signed, keys).map_err(faulty)?;
    }
    let agent = &document.manifest.agent_id;
    if [AGENT_ID, demo::AGENT_ID].contains(&agent.as_str()) {
        return Err(format!("the agent id {agent:?} is reserved"));
    }
    Ok(document)
}
