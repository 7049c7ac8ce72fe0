//! What a hub's manifest proves about its identity (§6.9, §10.4.2).

use aaep::manifest::{self, ManifestError, OfferMismatch, TrustedKeys};
use aaep::message::{Manifest, SubscriptionAccepted};
use aaep::rule::ValidationMode;
use seal::jws::JwsError;

use crate::client::ConnectionError;
use crate::{Phrases, SubscriberLimits, sanitize};

/// How a hub's manifest is checked.
#[derive(Clone, Debug, Default)]
pub struct ManifestPolicy {
    /// The trusted keys. The manifest must be signed with one of them. If `None`, signatures are not checked.
    pub trusted_keys: Option<TrustedKeys>,
    /// Whether to accept only hubs whose manifest is signed with a trusted key.
    pub signed_only: bool,
    /// Limits on the size of the manifest and the time to read it.
    pub limits: SubscriberLimits,
}

/// The known facts about a hub's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestStatus {
    /// The manifest names this agent, matches the offer and is signed with a trusted key.
    Verified(String),
    /// The manifest names this agent and matches the offer, but it is not signed.
    Unsigned(String),
    /// The manifest names this agent and matches the offer, but there was no key to check it with.
    Unverified(String),
    /// The hub has no manifest.
    Missing,
    /// The hub redirects to another address for its manifest. Redirects are not followed.
    Redirected,
    /// The manifest could not be fetched.
    Unavailable(ConnectionError),
    /// The response is not a manifest.
    Malformed,
    /// The manifest's signature is invalid, or the manifest contradicts the offer.
    Invalid(ManifestFault),
}

/// The reason why a manifest is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestFault {
    /// It is not signed with a trusted key.
    UntrustedSignature,
    /// It was signed with a trusted key earlier, and no longer is.
    SignatureRemoved,
    /// It contradicts the offer.
    Mismatch(OfferMismatch),
}

impl ManifestStatus {
    /// Whether the manifest is invalid. The listener sends no consent to a hub with an invalid manifest.
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid(_))
    }

    /// Describes the finding for a person.
    pub fn describe(&self, phrases: &Phrases) -> String {
        match self {
            Self::Invalid(_) => {
                format!("{} {}", self.describe_finding(phrases), phrases.only_rejections_sent)
            }
            _ => self.describe_finding(phrases),
        }
    }

    /// Explains that the listener does not use the hub, because the policy requires a verified manifest.
    pub(crate) fn describe_refusal(&self, phrases: &Phrases) -> String {
        format!("{} {}", phrases.verified_hub_required, self.describe_finding(phrases))
    }

    fn describe_finding(&self, phrases: &Phrases) -> String {
        match self {
            Self::Verified(agent) => phrases.hub_verified(&sanitize(agent, true)),
            Self::Unsigned(agent) => phrases.hub_unsigned(&sanitize(agent, true)),
            Self::Unverified(agent) => phrases.hub_claims(&sanitize(agent, true)),
            Self::Missing => phrases.manifest_absent.to_owned(),
            Self::Redirected => phrases.manifest_redirected.to_owned(),
            Self::Unavailable(why) => phrases.manifest_not_fetched(&why.describe(phrases)),
            Self::Malformed => phrases.manifest_not_understood.to_owned(),
            Self::Invalid(fault) => phrases.hub_not_verified(&fault.describe(phrases)),
        }
    }
}

impl ManifestFault {
    fn describe(&self, phrases: &Phrases) -> String {
        match self {
            Self::UntrustedSignature => phrases.fault_signature.to_owned(),
            Self::SignatureRemoved => phrases.fault_signature_removed.to_owned(),
            Self::Mismatch(OfferMismatch::Agent { manifest, offer }) => {
                phrases.fault_agent(&sanitize(manifest, true), &sanitize(offer, true))
            }
            Self::Mismatch(OfferMismatch::Level(level)) => phrases.fault_level(*level),
            Self::Mismatch(
                OfferMismatch::Version(what)
                | OfferMismatch::Transport(what)
                | OfferMismatch::Language(what)
                | OfferMismatch::Extension(what),
            ) => phrases.fault_claim(&sanitize(what, true)),
            Self::Mismatch(other) => phrases.fault_claim(&sanitize(&other.to_string(), true)),
        }
    }
}

impl ManifestPolicy {
    /// Checks a signed or unsigned manifest against the hub's offer, which is `None` without a handshake. `transport` is the
    /// transport in use, as a manifest names it.
    pub fn verify(
        &self,
        text: &str,
        offer: Option<&SubscriptionAccepted>,
        transport: &str,
    ) -> ManifestStatus {
        let Some(trusted) = &self.trusted_keys else {
            return compare_to_offer(
                manifest::parse(text, ValidationMode::Receive),
                offer,
                transport,
                ManifestStatus::Unverified,
            );
        };
        match manifest::verify(text, trusted) {
            Err(ManifestError::Unsigned) => compare_to_offer(
                manifest::parse(text, ValidationMode::Receive),
                offer,
                transport,
                ManifestStatus::Unsigned,
            ),
            Err(ManifestError::EmbeddedKey | ManifestError::UnknownKey(_)) => {
                ManifestStatus::Invalid(ManifestFault::UntrustedSignature)
            }
            // Text that is not a manifest at all, such as an HTML page, is malformed rather than wrongly signed.
            Err(ManifestError::Jws(why)) if why != JwsError::Malformed => {
                ManifestStatus::Invalid(ManifestFault::UntrustedSignature)
            }
            verified => compare_to_offer(verified, offer, transport, ManifestStatus::Verified),
        }
    }
}

fn compare_to_offer(
    parsed: Result<Manifest, ManifestError>,
    offer: Option<&SubscriptionAccepted>,
    transport: &str,
    on_match: impl FnOnce(String) -> ManifestStatus,
) -> ManifestStatus {
    let Ok(manifest) = parsed else { return ManifestStatus::Malformed };
    match offer.map(|offer| manifest::check_offer(&manifest, offer, transport)) {
        Some(Err(mismatch)) => ManifestStatus::Invalid(ManifestFault::Mismatch(mismatch)),
        Some(Ok(())) | None => on_match(manifest.agent_id),
    }
}

#[cfg(test)]
mod tests {
    use aaep::message::Message;
    use seal::Jwk;
    use seal::es256::SigningKey;

    use super::*;

    const BANK: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2],"transports_supported":["sse"]}"#;

    fn offer(agent: &str, level: u64) -> SubscriptionAccepted {
        let text = format!(
            r#"{{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{{"agent_id":"{agent}"}},"honored_capabilities":{{"supported_conformance_levels":[{level}]}}}}"#
        );
        let Some(Message::SubscriptionAccepted(accepted)) = Message::parse(&text) else { panic!("{text}") };
        accepted
    }

    #[test]
    fn a_manifest_is_verified_against_the_trusted_keys_and_the_offer() {
        let [ours, other] = [(); 2].map(|()| SigningKey::generate(&mut seal::SystemRandom));
        let trusted = Some(TrustedKeys::from_key(Jwk::P256(ours.verifying_key().clone())));
        let pinned = ManifestPolicy { trusted_keys: trusted, ..ManifestPolicy::default() };
        let without_keys = ManifestPolicy::default();
        let [good, foreign] = [&ours, &other].map(|key| manifest::sign(BANK, key).unwrap());
        let (bank, evil, more) = (offer("bank", 2), offer("evil", 2), offer("bank", 3));
        let agent = || "bank".to_owned();
        for (text, policy, offer, expected) in [
            (good.as_str(), &pinned, Some(&bank), ManifestStatus::Verified(agent())),
            (&good, &pinned, None, ManifestStatus::Verified(agent())),
            (BANK, &pinned, Some(&bank), ManifestStatus::Unsigned(agent())),
            (BANK, &without_keys, Some(&bank), ManifestStatus::Unverified(agent())),
        ] {
            assert_eq!(policy.verify(text, offer, "sse"), expected);
        }
        for (text, policy, offer, fragment) in [
            (foreign.as_str(), &pinned, &bank, "its manifest is not signed with a key you trust"),
            (&good, &pinned, &evil, "its manifest belongs to bank, but the hub calls itself evil"),
            (&good, &pinned, &more, "it offers level 3, but its manifest does not claim it"),
            (BANK, &pinned, &evil, "its manifest belongs to bank"),
            (BANK, &without_keys, &evil, "its manifest belongs to bank"),
            (BANK, &without_keys, &more, "it offers level 3, but its manifest"),
        ] {
            let status = policy.verify(text, Some(offer), "sse");
            let description = status.describe(Phrases::for_languages(&[]));
            assert!(status.is_invalid() && description.contains(fragment), "{description}");
        }
        for (text, policy) in [
            (good.as_str(), &without_keys),
            ("<!doctype html>", &pinned),
            ("<!doctype html>", &without_keys),
            ("", &pinned),
            ("{}", &pinned),
            (r#"{"name":"an agent"}"#, &without_keys),
        ] {
            let status = policy.verify(text, Some(&bank), "sse");
            assert_eq!(status, ManifestStatus::Malformed, "{text}");
        }
    }
}
