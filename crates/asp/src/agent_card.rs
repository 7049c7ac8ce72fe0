//! The Agent Card: an agent's name and public keys, signed by the agent itself (D17).

use std::net::Ipv4Addr;

use seal::json::{JsonKind, JsonValue, JsonWriter, Tape, write_object};
use seal::jws::{self, JwsError, JwsSigner};
use seal::{AgentKeys, CanonicalError, CanonicalWriter, Jwk, JwkError, ed25519, es256};
use thiserror::Error;

use crate::amount::Amount;
use crate::id::{AgentUri, Currency, IdError};

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
    previous_signing_key: Option<ed25519::VerifyingKey>,
    organization: Box<str>,
    capabilities: Vec<Box<str>>,
    endpoint: Option<Box<str>>,
    max_transaction_value: Option<Amount>,
    currency: Option<Currency>,
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
    #[error("the card's signature is invalid: the JWS {0}")]
    InvalidSignature(#[source] JwsError),
    /// The signature of the previous key is invalid.
    #[error("the card's previousSignature is invalid: the JWS {0}")]
    InvalidPreviousSignature(#[source] JwsError),
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
    /// The URLs at which the agent can be reached.
    pub endpoints: AgentEndpoints,
    /// The largest amount that the agent may commit to.
    pub max_transaction_value: Option<Amount>,
    /// The currency of that amount.
    pub currency: Option<Currency>,
}

/// The URLs at which an agent can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentEndpoints {
    /// The base URL of the agent's ASP node. Without it, the URL is derived from the agent's URI
    /// ([`AgentCard::endpoint`]).
    pub asp: Option<String>,
}

/// The members that the signature of the previous key does not cover.
const SIGNATURES: [&[&str]; 2] = [&["signature"], &["previousSignature"]];

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
        let previous_signing_key = read_previous_key(&root, &mut canonical)?;
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
        if previous_signing_key == Some(signing_key) {
            return Err(AgentCardError::InvalidMember(
                "previousSigningPublicKey (a key other than the current one)",
            ));
        }
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
            previous_signing_key,
            organization: text_member("organization").unwrap_or_default().into(),
            capabilities: root.member("capabilities").map(|list| read_texts(&list)).unwrap_or_default(),
            endpoint: read_endpoint(&root)?,
            max_transaction_value: read_optional(&root, "maxTransactionValue", |value| {
                // The published example has a number; we write a string (D15).
                let number = || (value.kind() == JsonKind::Number).then(|| value.source().to_owned());
                Amount::parse(&value.text().map(Into::into).or_else(number)?).ok()
            })?,
            currency: read_optional(&root, "currency", |value| Currency::parse(&value.text()?).ok())?,
        })
    }

    /// Creates and signs a card.
    pub fn sign(profile: &AgentProfile, keys: &AgentKeys) -> Result<Self, AgentCardError> {
        let signature = sign_text(&profile.to_json(keys, None, &[]), keys)?;
        Self::parse(&profile.to_json(keys, None, &[("signature", &signature)]))
    }

    /// Creates a card with new keys and signs it with the old and the new key. A receiver that has pinned the old card can
    /// check it with [`Self::is_successor_of`].
    pub fn rotate(
        profile: &AgentProfile,
        old_keys: &AgentKeys,
        new_keys: &AgentKeys,
    ) -> Result<Self, AgentCardError> {
        let old_key = Some(old_keys.signing.verifying_key());
        let previous = sign_text(&profile.to_json(new_keys, old_key, &[]), old_keys)?;
        let with_previous = [("previousSignature", &*previous)];
        let signature = sign_text(&profile.to_json(new_keys, old_key, &with_previous), new_keys)?;
        let [previous] = with_previous;
        Self::parse(&profile.to_json(new_keys, old_key, &[previous, ("signature", &signature)]))
    }

    /// Returns whether the owner of `old` has replaced it with this card: both cards name the same agent, and the old key
    /// signed this card.
    pub fn is_successor_of(&self, old: &Self) -> bool {
        self.agent_id == old.agent_id && self.previous_signing_key == Some(old.signing_key)
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

    /// Returns the organization that operates the agent; empty if the card has none.
    pub fn organization(&self) -> &str {
        &self.organization
    }

    /// Returns the agent's capabilities.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        self.capabilities.iter().map(|capability| &**capability)
    }

    /// Returns the base URL of the agent's node, without a slash at the end: the card's `endpoints.asp`, or a URL with the
    /// authority of the agent's URI. That URL has the scheme `http` if the host is a loopback address or `localhost`, and
    /// `https` otherwise.
    pub fn endpoint(&self) -> String {
        match &self.endpoint {
            Some(endpoint) => endpoint.to_string(),
            None => self.agent_id.default_endpoint(),
        }
    }

    /// Returns the largest amount that the agent may commit to, if the card states one.
    pub fn max_transaction_value(&self) -> Option<&Amount> {
        self.max_transaction_value.as_ref()
    }

    /// Returns the currency of [`Self::max_transaction_value`], if the card states one.
    pub fn currency(&self) -> Option<&Currency> {
        self.currency.as_ref()
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

/// Reads the key that this card replaces, and verifies that it signed the card. A card has both members or neither.
fn read_previous_key(
    root: &JsonValue<'_>,
    canonical: &mut CanonicalWriter,
) -> Result<Option<ed25519::VerifyingKey>, AgentCardError> {
    let signature = root.member("previousSignature");
    if signature.is_none() && root.member("previousSigningPublicKey").is_none() {
        return Ok(None);
    }
    let Jwk::Ed25519(key) = read_key(root, "previousSigningPublicKey")? else {
        return Err(AgentCardError::InvalidKey("previousSigningPublicKey", JwkError::UnsupportedType));
    };
    let signature = signature.and_then(|signature| signature.text());
    let signature = signature.ok_or(AgentCardError::InvalidMember("previousSignature"))?;
    let signed = canonical.write(root, &SIGNATURES, &[]).map_err(AgentCardError::NotCanonical)?.text;
    jws::verify_detached(&signature, signed.as_bytes(), &Jwk::Ed25519(key))
        .map_err(AgentCardError::InvalidPreviousSignature)?;
    Ok(Some(key))
}

fn read_optional<T>(
    root: &JsonValue<'_>,
    name: &'static str,
    read: impl Fn(&JsonValue<'_>) -> Option<T>,
) -> Result<Option<T>, AgentCardError> {
    let member = root.member(name);
    member.map(|value| read(&value).ok_or(AgentCardError::InvalidMember(name))).transpose()
}

fn read_texts(list: &JsonValue<'_>) -> Vec<Box<str>> {
    list.items().filter_map(|item| item.text().map(Into::into)).collect()
}

/// Reads `endpoints.asp`, without slashes at the end.
fn read_endpoint(root: &JsonValue<'_>) -> Result<Option<Box<str>>, AgentCardError> {
    let Some(endpoints) = root.member("endpoints") else { return Ok(None) };
    if endpoints.kind() != JsonKind::Object {
        return Err(AgentCardError::InvalidMember("endpoints"));
    }
    let Some(endpoint) = endpoints.member("asp") else { return Ok(None) };
    let text = endpoint.text().filter(|text| is_base_url(text));
    let text = text.ok_or(AgentCardError::InvalidMember("endpoints.asp"))?;
    Ok(Some(text.trim_end_matches('/').into()))
}

/// Returns whether the text is an HTTP URL with a host, and without user information, query or fragment.
fn is_base_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        (1..=512).contains(&rest.len())
            && !rest.starts_with(['/', ':'])
            && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@\\\"<>".contains(&byte))
    })
}

/// Derives the URL of an agent's node from the authority of the agent's URI, without user information.
impl AgentUri {
    /// Returns the base URL of the agent's node if its card states none ([`AgentCard::endpoint`]).
    pub fn default_endpoint(&self) -> String {
        derive_endpoint(self.as_str())
    }
}

fn derive_endpoint(agent: &str) -> String {
    let rest = agent.strip_prefix("agent://").unwrap_or(agent);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let is_loopback = host.eq_ignore_ascii_case("localhost")
        || host == "[::1]"
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    format!("{}://{authority}", if is_loopback { "http" } else { "https" })
}

/// Signs the canonical form of a card.
fn sign_text(card: &str, keys: &AgentKeys) -> Result<String, AgentCardError> {
    let mut tape = Tape::default();
    let doc = tape.read(card).map_err(|_| AgentCardError::NotAnObject)?;
    let canonical = seal::canonicalize(&doc.root()).map_err(AgentCardError::NotCanonical)?;
    jws::sign_detached(JwsSigner::Ed25519(&keys.signing), &jws::JwsHeader::default(), canonical.as_bytes())
        .map_err(AgentCardError::InvalidSignature)
}

impl AgentProfile {
    /// Writes the card with the public keys, the key that it replaces, and the signatures.
    fn to_json(
        &self,
        keys: &AgentKeys,
        previous_key: Option<ed25519::VerifyingKey>,
        signatures: &[(&str, &str)],
    ) -> String {
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
            self.write_optional_members(writer);
            writer.key("dpopPublicKey");
            Jwk::P256(keys.dpop.verifying_key().clone()).write(writer);
            writer.key("signingPublicKey");
            Jwk::Ed25519(keys.signing.verifying_key()).write(writer);
            if let Some(key) = previous_key {
                writer.key("previousSigningPublicKey");
                Jwk::Ed25519(key).write(writer);
            }
            writer.text_members(signatures.iter().copied());
        })
    }

    fn write_optional_members(&self, writer: &mut JsonWriter) {
        if let Some(amount) = &self.max_transaction_value {
            writer.key("maxTransactionValue").text(amount.as_str());
        }
        if let Some(currency) = &self.currency {
            writer.key("currency").text(currency.as_str());
        }
        if let Some(endpoint) = &self.endpoints.asp {
            writer.key("endpoints").open_object();
            writer.key("asp").text(endpoint);
            writer.close_object();
        }
    }
}
