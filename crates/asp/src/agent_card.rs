//! The Agent Card: an agent's name and public keys, signed by the agent itself (D17).

use seal::json::{JsonKind, JsonValue, Tape, write_object};
use seal::jws::{self, JwsError, JwsSigner};
use seal::{AgentKeys, CanonicalError, CanonicalWriter, Jwk, JwkError, ed25519, es256};
use thiserror::Error;

use crate::id::{AgentUri, IdError};

seal::string_enum! {
    /// The conformance level that an agent declares (D12).
    ConformanceLevel {
        /// INFORM, QUERY and CLOSE, and the messages that open a session.
        Minimal "minimal",
        /// All thirteen performatives.
        Standard "standard",
        /// All thirteen performatives, plus trust and economic safeguards.
        Full "full",
    }
}

/// An agent card with a valid signature. The signature is verified with the key in the card itself, so it does not
/// prove who issued the card. A receiver trusts only cards that it has pinned.
#[derive(Clone, Debug)]
pub struct AgentCard {
    text: Box<str>,
    canonical: Box<str>,
    agent_id: AgentUri,
    name: Box<str>,
    level: ConformanceLevel,
    signing_key: ed25519::VerifyingKey,
    dpop_key: es256::VerifyingKey,
}

/// Why a text is not a valid card.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AgentCardError {
    /// The card is longer than [`AgentCard::MAX_BYTES`].
    #[error("the card is longer than {} bytes", AgentCard::MAX_BYTES)]
    TooLong,
    /// The card is not a JSON object.
    #[error("the card is not a JSON object")]
    NotAnObject,
    /// The card has no canonical form.
    #[error("the card has no canonical form: {0}")]
    NotCanonical(#[source] CanonicalError),
    /// A member is missing or has the wrong type.
    #[error("the card's {0} is missing or malformed")]
    InvalidMember(&'static str),
    /// `agentId` is not a valid agent URI.
    #[error("the card's agentId {0}")]
    InvalidAgentId(#[source] IdError),
    /// A key is not usable.
    #[error("the card's {0} {1}")]
    InvalidKey(&'static str, #[source] JwkError),
    /// The signature is invalid.
    #[error("the card's signature {0}")]
    InvalidSignature(#[source] JwsError),
}

/// The contents of a card before it is signed.
#[derive(Clone, Debug)]
pub struct AgentProfile {
    /// The agent's URI.
    pub agent_id: AgentUri,
    /// The agent's display name.
    pub name: String,
    /// A description of what the agent does.
    pub description: String,
    /// The organization that operates the agent.
    pub organization: String,
    /// The agent's capabilities, as dotted names such as `negotiate.printing`.
    pub capabilities: Vec<String>,
    /// The conformance level that the agent declares.
    pub level: ConformanceLevel,
}

impl AgentCard {
    /// Maximum size of a card, in bytes.
    pub const MAX_BYTES: usize = 64 * 1024;
    /// The path at which an agent publishes its card.
    pub const WELL_KNOWN_PATH: &'static str = "/.well-known/asp-agent-card.json";

    /// Parses a card and verifies its signature with the key that it contains.
    pub fn parse(text: &str) -> Result<Self, AgentCardError> {
        if text.len() > Self::MAX_BYTES {
            return Err(AgentCardError::TooLong);
        }
        let mut tape = Tape::default();
        let doc = tape.read(text).map_err(|_| AgentCardError::NotAnObject)?;
        let root = doc.root();
        if root.kind() != JsonKind::Object {
            return Err(AgentCardError::NotAnObject);
        }
        let text_member = |name| {
            root.member(name).and_then(|member| member.text()).ok_or(AgentCardError::InvalidMember(name))
        };
        let mut canonical = CanonicalWriter::default();
        let signed =
            canonical.write(&root, &[&["signature"]], &[]).map_err(AgentCardError::NotCanonical)?.text;
        let agent_id = AgentUri::parse(&text_member("agentId")?).map_err(AgentCardError::InvalidAgentId)?;
        let level = text_member("conformanceLevel")?;
        let level = ConformanceLevel::parse(&level);
        let Jwk::Ed25519(signing_key) = read_key(&root, "signingPublicKey")? else {
            return Err(AgentCardError::InvalidKey("signingPublicKey", JwkError::UnsupportedType));
        };
        let Jwk::P256(dpop_key) = read_key(&root, "dpopPublicKey")? else {
            return Err(AgentCardError::InvalidKey("dpopPublicKey", JwkError::UnsupportedType));
        };
        jws::verify_detached(&text_member("signature")?, signed.as_bytes(), &Jwk::Ed25519(signing_key))
            .map_err(AgentCardError::InvalidSignature)?;
        Ok(Self {
            canonical: canonical.write(&root, &[], &[]).map_err(AgentCardError::NotCanonical)?.text.into(),
            name: text_member("name").unwrap_or_default().into(),
            level: level
                .ok_or(AgentCardError::InvalidMember("conformanceLevel (minimal, standard or full)"))?,
            text: text.trim().into(),
            agent_id,
            signing_key,
            dpop_key,
        })
    }

    /// Creates and signs a card.
    pub fn sign(profile: &AgentProfile, keys: &AgentKeys) -> Result<Self, AgentCardError> {
        let unsigned = profile.to_json(keys, None);
        let mut tape = Tape::default();
        let doc = tape.read(&unsigned).map_err(|_| AgentCardError::NotAnObject)?;
        let canonical = seal::canonicalize(&doc.root()).map_err(AgentCardError::NotCanonical)?;
        let signer = JwsSigner::Ed25519(&keys.signing);
        let signature = jws::sign_detached(signer, &jws::JwsHeader::default(), canonical.as_bytes())
            .map_err(AgentCardError::InvalidSignature)?;
        Self::parse(&profile.to_json(keys, Some(&signature)))
    }

    /// Returns whether the JSON value is this card, compared by canonical form (D17).
    pub fn matches(&self, value: &JsonValue<'_>) -> bool {
        seal::canonicalize(value).is_ok_and(|form| *form == *self.canonical)
    }

    /// Returns the card's original text, without surrounding whitespace.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the agent's URI.
    pub fn agent_id(&self) -> &AgentUri {
        &self.agent_id
    }

    /// Returns the agent's display name; empty if the card has none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the conformance level that the agent declares.
    pub fn level(&self) -> ConformanceLevel {
        self.level
    }

    /// Returns the key that signs the agent's messages.
    pub fn signing_key(&self) -> &ed25519::VerifyingKey {
        &self.signing_key
    }

    /// Returns the key that signs the agent's DPoP proofs.
    pub fn dpop_key(&self) -> &es256::VerifyingKey {
        &self.dpop_key
    }
}

fn read_key(root: &JsonValue<'_>, name: &'static str) -> Result<Jwk, AgentCardError> {
    let value = root.member(name).ok_or(AgentCardError::InvalidMember(name))?;
    Jwk::read(&value).map_err(|error| AgentCardError::InvalidKey(name, error))
}

impl AgentProfile {
    fn to_json(&self, keys: &AgentKeys, signature: Option<&str>) -> String {
        write_object(|writer| {
            writer.key("agentId").text(self.agent_id.as_str());
            writer.key("name").text(&self.name);
            writer.key("description").text(&self.description);
            writer.key("organization").text(&self.organization);
            writer
                .key("capabilities")
                .array(|writer| self.capabilities.iter().for_each(|capability| writer.text(capability)));
            writer.key("protocols").raw(r#"["asp/0.1"]"#);
            writer.key("conformanceLevel").text(self.level.as_str());
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
