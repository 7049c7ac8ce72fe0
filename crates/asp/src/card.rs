//! The Agent Card: who an agent is, by which keys, signed by itself (D17).

use seal::json::{Kind, Tape, Value, object};
use seal::jws::{self, JwsError, Signer};
use seal::{Canonical, Jwk, JwkError, Keys, NotCanonical, ed25519, es256};
use thiserror::Error;

use crate::id::{AgentUri, IdError};

seal::word_enum! {
    /// What an agent can do, as it declares (D12).
    Level word {
        /// INFORM, QUERY and CLOSE, and what it takes to open a session.
        Minimal "minimal",
        /// All thirteen performatives.
        Standard "standard",
        /// Those, and trust and economic safeguards.
        Full "full",
    }
}

/// A card whose signature holds. That alone proves nothing: whose card it is, is known by having pinned it.
#[derive(Clone, Debug)]
pub struct Card {
    text: Box<str>,
    canonical: Box<str>,
    agent_id: AgentUri,
    name: Box<str>,
    level: Level,
    signing_key: ed25519::VerifyingKey,
    dpop_key: es256::VerifyingKey,
}

/// Why a text is no card.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CardError {
    /// Longer than [`Card::LONGEST`].
    #[error("a card has at most {} bytes", Card::LONGEST)]
    TooLong,
    /// Not a JSON object.
    #[error("a card is a JSON object")]
    NotJson,
    /// No canonical form.
    #[error("the card has no canonical form: {0}")]
    NotCanonical(#[source] NotCanonical),
    /// A member is missing or of another kind.
    #[error("the card's {0} is missing or not of its form")]
    Member(&'static str),
    /// `agentId` is no agent's name.
    #[error("the card's agentId {0}")]
    AgentId(#[source] IdError),
    /// A key cannot be used.
    #[error("the card's {0} {1}")]
    Key(&'static str, #[source] JwkError),
    /// The signature does not hold.
    #[error("the card's signature {0}")]
    Signature(#[source] JwsError),
}

/// What an agent says of itself, before it is signed.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name on the network.
    pub agent_id: AgentUri,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Whose it is.
    pub organization: String,
    /// What it can do, as dotted words.
    pub capabilities: Vec<String>,
    /// How much of the protocol it speaks.
    pub level: Level,
}

impl Card {
    /// No card is longer.
    pub const LONGEST: usize = 64 * 1024;
    /// Where an agent publishes its card.
    pub const WELL_KNOWN: &'static str = "/.well-known/asp-agent-card.json";

    /// Reads a card and verifies its signature with its own key.
    pub fn parse(text: &str) -> Result<Self, CardError> {
        if text.len() > Self::LONGEST {
            return Err(CardError::TooLong);
        }
        let mut tape = Tape::default();
        let doc = tape.read(text).map_err(|_| CardError::NotJson)?;
        let root = doc.root();
        if root.kind() != Kind::Object {
            return Err(CardError::NotJson);
        }
        let word = |name| root.member(name).and_then(|member| member.text()).ok_or(CardError::Member(name));
        let mut canonical = Canonical::default();
        let signed = canonical.write(&root, &[&["signature"]], &[]).map_err(CardError::NotCanonical)?.text;
        let agent_id = AgentUri::parse(&word("agentId")?).map_err(CardError::AgentId)?;
        let level = word("conformanceLevel")?;
        let level = Level::parse(&level);
        let Jwk::Ed25519(signing_key) = key(&root, "signingPublicKey")? else {
            return Err(CardError::Key("signingPublicKey", JwkError::Kind));
        };
        let Jwk::P256(dpop_key) = key(&root, "dpopPublicKey")? else {
            return Err(CardError::Key("dpopPublicKey", JwkError::Kind));
        };
        jws::verify_detached(&word("signature")?, signed.as_bytes(), &Jwk::Ed25519(signing_key))
            .map_err(CardError::Signature)?;
        Ok(Self {
            canonical: canonical.write(&root, &[], &[]).map_err(CardError::NotCanonical)?.text.into(),
            name: word("name").unwrap_or_default().into(),
            level: level.ok_or(CardError::Member("conformanceLevel (minimal, standard or full)"))?,
            text: text.trim().into(),
            agent_id,
            signing_key,
            dpop_key,
        })
    }

    /// Signs a card.
    pub fn issue(profile: &Profile, keys: &Keys) -> Result<Self, CardError> {
        let unsigned = profile.write(keys, None);
        let mut tape = Tape::default();
        let doc = tape.read(&unsigned).map_err(|_| CardError::NotJson)?;
        let form = seal::canonical(&doc.root()).map_err(CardError::NotCanonical)?;
        let signer = Signer::Ed25519(&keys.signing);
        let signature = jws::sign_detached(signer, &jws::Header::default(), form.as_bytes())
            .map_err(CardError::Signature)?;
        Self::parse(&profile.write(keys, Some(&signature)))
    }

    /// Whether that JSON value is this very card, however it is spelled (D17).
    pub fn is(&self, value: &Value<'_>) -> bool {
        seal::canonical(value).is_ok_and(|form| *form == *self.canonical)
    }

    /// The card as it was read.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whose card it is.
    pub fn agent_id(&self) -> &AgentUri {
        &self.agent_id
    }

    /// The agent's name for people; empty where the card gives none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much of the protocol it speaks.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The key that signs its messages.
    pub fn signing_key(&self) -> &ed25519::VerifyingKey {
        &self.signing_key
    }

    /// The key that signs its proofs.
    pub fn dpop_key(&self) -> &es256::VerifyingKey {
        &self.dpop_key
    }
}

fn key(root: &Value<'_>, name: &'static str) -> Result<Jwk, CardError> {
    let value = root.member(name).ok_or(CardError::Member(name))?;
    Jwk::read(&value).map_err(|why| CardError::Key(name, why))
}

impl Profile {
    fn write(&self, keys: &Keys, signature: Option<&str>) -> String {
        object(|writer| {
            writer.key("agentId").text(self.agent_id.as_str());
            writer.key("name").text(&self.name);
            writer.key("description").text(&self.description);
            writer.key("organization").text(&self.organization);
            writer
                .key("capabilities")
                .array(|writer| self.capabilities.iter().for_each(|one| writer.text(one)));
            writer.key("protocols").raw(r#"["asp/0.1"]"#);
            writer.key("conformanceLevel").text(self.level.word());
            writer.key("dpopPublicKey");
            Jwk::P256(keys.dpop.verifying_key().clone()).write(writer);
            writer.key("signingPublicKey");
            Jwk::Ed25519(keys.signing.verifying_key()).write(writer);
            if let Some(signature) = signature {
                writer.key("signature").text(signature);
            }
        })
    }
}
