//! Whether a manifest fits what its producer offers (§10.4.2).

use thiserror::Error;

use crate::message::{Level, Manifest, SubscriptionAccepted};

/// Where a manifest and an offer contradict each other; its text is the end of a sentence that begins with the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The manifest is somebody else's.
    #[error("is the manifest of {manifest}, but {offer} is who answers")]
    Agent {
        /// Whose it is.
        manifest: String,
        /// Who made the offer.
        offer: String,
    },
    /// A level is offered that the manifest does not claim.
    #[error("does not claim level {0}, which is offered")]
    Level(Level),
    /// A version is offered that the manifest does not claim.
    #[error("does not claim AAEP {0}, which is offered")]
    Version(String),
    /// It is spoken to in a way that the manifest does not claim.
    #[error("does not claim {0}, by which it is heard")]
    Transport(String),
    /// A language is offered that the manifest does not claim.
    #[error("does not claim the language {0}, which is offered")]
    Language(String),
    /// An extension is offered that the manifest does not claim.
    #[error("does not claim the extension {0}, which is offered")]
    Extension(String),
}

/// Compares a manifest with the offer that its producer made, on a transport (`sse`, `websocket` …): the first
/// contradiction, the agent's name before all else. What a manifest leaves out, it does not deny.
pub fn compare(manifest: &Manifest, offer: &SubscriptionAccepted, transport: &str) -> Result<(), Misfit> {
    let (ours, theirs) = (&manifest.agent_id, &offer.producer.agent_id);
    if ours != theirs {
        return Err(Misfit::Agent { manifest: ours.clone(), offer: theirs.clone() });
    }
    let honored = &offer.honored_capabilities;
    // A level includes those below it (§9.2).
    let claimed = manifest.conformance_levels_supported.iter().max();
    if let Some(level) = honored.supported_conformance_levels.iter().flatten().max()
        && claimed.is_none_or(|claimed| level > claimed)
    {
        return Err(Misfit::Level(*level));
    }
    if !manifest.aaep_versions_supported.contains(&offer.aaep_version) {
        return Err(Misfit::Version(offer.aaep_version.clone()));
    }
    // There is no list of names: `http+sse` is `sse`, too.
    let wanted = transport.to_ascii_lowercase();
    if !manifest.transports_supported.iter().any(|name| name.to_ascii_lowercase().contains(&wanted)) {
        return Err(Misfit::Transport(transport.to_owned()));
    }
    if let Some(claimed) = manifest.languages_supported.as_ref().filter(|tags| !tags.is_empty()) {
        let unknown = |tag: &&String| !claimed.iter().any(|claimed| language(claimed) == language(tag));
        if let Some(tag) = honored.languages.iter().flatten().find(unknown) {
            return Err(Misfit::Language(tag.clone()));
        }
    }
    if let Some(claimed) = &manifest.extensions_supported
        && let Some(uri) = honored.supported_extensions.iter().flatten().find(|uri| !claimed.contains(uri))
    {
        return Err(Misfit::Extension(uri.clone()));
    }
    Ok(())
}

/// The language of a tag, without script and region.
fn language(tag: &str) -> String {
    tag.split('-').next().unwrap_or(tag).to_ascii_lowercase()
}
