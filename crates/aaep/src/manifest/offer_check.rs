//! Comparison of a manifest with its producer's offer, the `subscription.accepted` message (§10.4.2).

use thiserror::Error;

use crate::message::{ConformanceLevel, Manifest, SubscriptionAccepted};

/// A contradiction between a manifest and an offer. The message continues a sentence whose subject
/// is the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OfferMismatch {
    /// The manifest belongs to another agent.
    #[error("is the manifest of {manifest}, but {offer} accepted the subscription")]
    Agent {
        /// The agent of the manifest.
        manifest: String,
        /// The agent that accepted the subscription.
        offer: String,
    },
    /// The offer has a level that the manifest does not claim.
    #[error("does not claim level {0}, which is offered")]
    Level(ConformanceLevel),
    /// The offer has a version that the manifest does not claim.
    #[error("does not claim AAEP {0}, which is offered")]
    Version(String),
    /// The producer uses a transport that the manifest does not claim.
    #[error("does not claim the transport {0}, which is used")]
    Transport(String),
    /// The offer has a language that the manifest does not claim.
    #[error("does not claim the language {0}, which is offered")]
    Language(String),
    /// The offer has an extension that the manifest does not claim.
    #[error("does not claim the extension {0}, which is offered")]
    Extension(String),
}

/// Compares a manifest with its producer's offer on a transport (`sse`, `websocket` …). Returns the
/// first contradiction; the agent ids are compared first. A member that is absent from the manifest
/// contradicts nothing.
pub fn check_offer(
    manifest: &Manifest,
    offer: &SubscriptionAccepted,
    transport: &str,
) -> Result<(), OfferMismatch> {
    let (manifest_agent, offer_agent) = (&manifest.agent_id, &offer.producer.agent_id);
    if manifest_agent != offer_agent {
        return Err(OfferMismatch::Agent { manifest: manifest_agent.clone(), offer: offer_agent.clone() });
    }
    let honored = &offer.honored_capabilities;
    // A level includes all levels below it (§9.2).
    let claimed = manifest.conformance_levels_supported.iter().max();
    if let Some(level) = honored.supported_conformance_levels.iter().flatten().max()
        && claimed.is_none_or(|claimed| level > claimed)
    {
        return Err(OfferMismatch::Level(*level));
    }
    if !manifest.aaep_versions_supported.contains(&offer.aaep_version) {
        return Err(OfferMismatch::Version(offer.aaep_version.clone()));
    }
    // Transport names are not standardized: `http+sse` also means `sse`.
    let transport_name = transport.to_ascii_lowercase();
    if !manifest.transports_supported.iter().any(|name| name.to_ascii_lowercase().contains(&transport_name)) {
        return Err(OfferMismatch::Transport(transport.to_owned()));
    }
    if let Some(claimed) = manifest.languages_supported.as_ref().filter(|tags| !tags.is_empty()) {
        let is_unclaimed =
            |tag: &&String| !claimed.iter().any(|claimed| primary_subtag(claimed) == primary_subtag(tag));
        if let Some(tag) = honored.languages.iter().flatten().find(is_unclaimed) {
            return Err(OfferMismatch::Language(tag.clone()));
        }
    }
    if let Some(claimed) = &manifest.extensions_supported
        && let Some(uri) = honored.supported_extensions.iter().flatten().find(|uri| !claimed.contains(uri))
    {
        return Err(OfferMismatch::Extension(uri.clone()));
    }
    Ok(())
}

/// Returns the language of a tag, without its script and region.
fn primary_subtag(tag: &str) -> String {
    tag.split('-').next().unwrap_or(tag).to_ascii_lowercase()
}
