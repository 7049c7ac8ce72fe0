//! Who a hub is, as far as its manifest shows it (§6.9, §10.4.2).

use aaep::manifest::{self, ManifestError, Misfit, Trusted};
use aaep::message::{Manifest, SubscriptionAccepted};
use aaep::rule::Face;
use seal::jws::JwsError;

use crate::client::Why;
use crate::{Limits, Phrases, plain};

/// As `transports_supported` has it: manifests are looked at on this wire only.
const TRANSPORT: &str = "sse";

/// How a hub's manifest is looked at.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// The keys by one of which it must be signed; without them no signature proves anything.
    pub trusted: Option<Trusted>,
    /// Whether only who has a manifest that is signed so is listened to.
    pub signed_only: bool,
    /// How much and how long is read.
    pub limits: Limits,
}

/// What is known of who a hub is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// Its manifest is signed with a key that is trusted, and fits what it offers: it is this agent.
    Proven(String),
    /// Its manifest says that it is this agent, and fits what it offers; it is not signed.
    Unsigned(String),
    /// The same, and there was no key to check it with.
    Claimed(String),
    /// It has no manifest.
    Absent,
    /// It says that its manifest is elsewhere.
    Elsewhere,
    /// Its manifest could not be had.
    Unread(Why),
    /// What it gives is no manifest.
    NotUnderstood,
    /// Its manifest is signed wrongly, or contradicts what it offers.
    Wrong(Fault),
}

/// What is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Its signature is not of a key that is trusted.
    Signature,
    /// It was signed before, and is not now.
    NoLonger,
    /// It contradicts what is offered.
    Misfit(Misfit),
}

impl Standing {
    /// Whether it was caught in a lie. Nothing is allowed there.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }

    /// What is found, for a person.
    pub fn sentence(&self, phrases: &Phrases) -> String {
        match self {
            Self::Wrong(_) => format!("{} {}", self.found(phrases), phrases.only_no),
            _ => self.found(phrases),
        }
    }

    /// Why nothing is heard from it where only a proof will do.
    pub(crate) fn refusal(&self, phrases: &Phrases) -> String {
        format!("{} {}", phrases.only_proven, self.found(phrases))
    }

    fn found(&self, phrases: &Phrases) -> String {
        match self {
            Self::Proven(agent) => phrases.hub_proven(&plain(agent, true)),
            Self::Unsigned(agent) => phrases.hub_unsigned(&plain(agent, true)),
            Self::Claimed(agent) => phrases.hub_claims(&plain(agent, true)),
            Self::Absent => phrases.manifest_absent.to_owned(),
            Self::Elsewhere => phrases.manifest_elsewhere.to_owned(),
            Self::Unread(why) => phrases.manifest_unread(&why.in_words(phrases)),
            Self::NotUnderstood => phrases.manifest_not_understood.to_owned(),
            Self::Wrong(fault) => phrases.hub_wrong(&fault.in_words(phrases)),
        }
    }
}

impl Fault {
    fn in_words(&self, phrases: &Phrases) -> String {
        match self {
            Self::Signature => phrases.fault_signature.to_owned(),
            Self::NoLonger => phrases.fault_no_longer.to_owned(),
            Self::Misfit(Misfit::Agent { manifest, offer }) => {
                phrases.fault_agent(&plain(manifest, true), &plain(offer, true))
            }
            Self::Misfit(Misfit::Level(level)) => phrases.fault_level(*level),
            Self::Misfit(
                Misfit::Version(what)
                | Misfit::Transport(what)
                | Misfit::Language(what)
                | Misfit::Extension(what),
            ) => phrases.fault_claim(&plain(what, true)),
            Self::Misfit(other) => phrases.fault_claim(&plain(&other.to_string(), true)),
        }
    }
}

impl Checks {
    /// What a manifest, plain or signed, says of who made this offer; without a handshake there is none.
    pub fn judge(&self, text: &str, offer: Option<&SubscriptionAccepted>) -> Standing {
        let Some(trusted) = &self.trusted else {
            return compared(manifest::read(text, Face::Receive), offer, Standing::Claimed);
        };
        match manifest::verify(text, trusted) {
            Err(ManifestError::Unsigned) => {
                compared(manifest::read(text, Face::Receive), offer, Standing::Unsigned)
            }
            Err(ManifestError::BringsKey | ManifestError::UnknownKey(_)) => Standing::Wrong(Fault::Signature),
            // A page for people is no signature that does not hold.
            Err(ManifestError::Jws(why)) if why != JwsError::Form => Standing::Wrong(Fault::Signature),
            verified => compared(verified, offer, Standing::Proven),
        }
    }
}

fn compared(
    read: Result<Manifest, ManifestError>,
    offer: Option<&SubscriptionAccepted>,
    good: impl FnOnce(String) -> Standing,
) -> Standing {
    let Ok(manifest) = read else { return Standing::NotUnderstood };
    match offer.map(|offer| manifest::compare(&manifest, offer, TRANSPORT)) {
        Some(Err(misfit)) => Standing::Wrong(Fault::Misfit(misfit)),
        Some(Ok(())) | None => good(manifest.agent_id),
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
    fn a_manifest_proves_who_it_is_or_does_not() {
        let [ours, other] = [(); 2].map(|()| SigningKey::generate(&mut seal::SystemRandom));
        let trusted = Some(Trusted::key(Jwk::P256(ours.verifying_key().clone())));
        let pinned = Checks { trusted, ..Checks::default() };
        let open = Checks::default();
        let [good, foreign] = [&ours, &other].map(|key| manifest::sign(BANK, key).unwrap());
        let (bank, evil, more) = (offer("bank", 2), offer("evil", 2), offer("bank", 3));
        let agent = || "bank".to_owned();
        for (text, checks, offer, expected) in [
            (good.as_str(), &pinned, Some(&bank), Standing::Proven(agent())),
            (&good, &pinned, None, Standing::Proven(agent())),
            (BANK, &pinned, Some(&bank), Standing::Unsigned(agent())),
            (BANK, &open, Some(&bank), Standing::Claimed(agent())),
        ] {
            assert_eq!(checks.judge(text, offer), expected);
        }
        for (text, checks, offer, part) in [
            (foreign.as_str(), &pinned, &bank, "its manifest is not signed with a key that you trust"),
            (&good, &pinned, &evil, "its manifest is that of bank, but evil is who answers"),
            (&good, &pinned, &more, "does not claim level 3, which it offers"),
            (BANK, &pinned, &evil, "its manifest is that of bank"),
            (BANK, &open, &evil, "its manifest is that of bank"),
            (BANK, &open, &more, "does not claim level 3"),
        ] {
            let standing = checks.judge(text, Some(offer));
            let said = standing.sentence(Phrases::of(&[]));
            assert!(standing.is_wrong() && said.contains(part), "{said}");
        }
        for (text, checks) in [
            (good.as_str(), &open),
            ("<!doctype html>", &pinned),
            ("<!doctype html>", &open),
            ("", &pinned),
            ("{}", &pinned),
            (r#"{"name":"an agent"}"#, &open),
        ] {
            let standing = checks.judge(text, Some(&bank));
            assert_eq!(standing, Standing::NotUnderstood, "{text}");
        }
    }
}
