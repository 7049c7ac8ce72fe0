//! Signed statements of agents that they endorse other agents.

use seal::json::{JsonValue, Tape, write_object};
use seal::jws::{self, JwsError, JwsHeader, JwsSigner};
use seal::{AgentKeys, CanonicalError, CanonicalWriter, Jwk, Timestamp};
use thiserror::Error;

use crate::agent_card::AgentCard;
use crate::id::AgentUri;

/// The value of the member `type`, so that no other signed object counts as an endorsement.
const TYPE: &str = "sayso:endorsement";

/// A statement of an agent that it endorses another one, whose signature was verified with the endorser's card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedEndorsement {
    endorser: AgentUri,
    endorsed: AgentUri,
    issued_at: Timestamp,
    text: Box<str>,
}

/// Why an endorsement does not count.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndorsementError {
    /// The text is too long.
    #[error("it is longer than {} bytes", SignedEndorsement::MAX_BYTES)]
    TooLong,
    /// The text is not JSON, or has no canonical form.
    #[error("it is not JSON with a canonical form")]
    NotCanonical(#[source] Option<CanonicalError>),
    /// A member is missing or has an invalid value.
    #[error("the member {0} is missing or invalid")]
    InvalidMember(&'static str),
    /// The card of the endorser is not known.
    #[error("the card of its endorser {0} is not pinned")]
    UnknownEndorser(AgentUri),
    /// The endorser's key did not sign it.
    #[error("the signature is invalid: the JWS {0}")]
    InvalidSignature(#[source] JwsError),
}

impl SignedEndorsement {
    /// Maximum size of the text, in bytes.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Signs an endorsement with the keys of the endorser.
    pub fn sign(
        endorser: &AgentCard,
        endorsed: &AgentUri,
        issued_at: Timestamp,
        keys: &AgentKeys,
    ) -> Result<Self, EndorsementError> {
        let to_json = |signature: Option<&str>| {
            write_object(|writer| {
                writer.text_members([
                    ("type", TYPE),
                    ("endorser", endorser.agent_id().as_str()),
                    ("endorsed", endorsed.as_str()),
                    ("issuedAt", &issued_at.to_string()),
                ]);
                if let Some(signature) = signature {
                    writer.key("signature").text(signature);
                }
            })
        };
        let mut tape = Tape::default();
        let unsigned = to_json(None);
        let doc = tape.read(&unsigned).map_err(|_| EndorsementError::NotCanonical(None))?;
        let canonical =
            seal::canonicalize(&doc.root()).map_err(|error| EndorsementError::NotCanonical(Some(error)))?;
        let signer = JwsSigner::Ed25519(&keys.signing);
        let signature = jws::sign_detached(signer, &JwsHeader::default(), canonical.as_bytes())
            .map_err(EndorsementError::InvalidSignature)?;
        Self::read(&to_json(Some(&signature)), |_| Some(endorser))
    }

    /// Reads an endorsement, and verifies it with the pinned card of its endorser.
    pub fn read<'c>(
        text: &str,
        find_card: impl FnOnce(&AgentUri) -> Option<&'c AgentCard>,
    ) -> Result<Self, EndorsementError> {
        if text.len() > Self::MAX_BYTES {
            return Err(EndorsementError::TooLong);
        }
        let mut tape = Tape::default();
        let doc = tape.read(text).map_err(|_| EndorsementError::NotCanonical(None))?;
        let root = doc.root();
        if read_text(&root, "type")? != TYPE {
            return Err(EndorsementError::InvalidMember("type"));
        }
        let agent = |name| {
            AgentUri::parse(&read_text(&root, name)?).map_err(|_| EndorsementError::InvalidMember(name))
        };
        let (endorser, endorsed) = (agent("endorser")?, agent("endorsed")?);
        let issued_at = Timestamp::parse(&read_text(&root, "issuedAt")?)
            .map_err(|_| EndorsementError::InvalidMember("issuedAt"))?;
        let Some(card) = find_card(&endorser) else {
            return Err(EndorsementError::UnknownEndorser(endorser));
        };
        if *card.agent_id() != endorser {
            return Err(EndorsementError::UnknownEndorser(endorser));
        }
        let mut writer = CanonicalWriter::default();
        let canonical = writer
            .write(&root, &[&["signature"]], &[])
            .map_err(|error| EndorsementError::NotCanonical(Some(error)))?;
        jws::verify_detached(
            &read_text(&root, "signature")?,
            canonical.text.as_bytes(),
            &Jwk::Ed25519(*card.signing_key()),
        )
        .map_err(EndorsementError::InvalidSignature)?;
        Ok(Self { endorser, endorsed, issued_at, text: text.trim().into() })
    }

    /// Returns the agent that endorses.
    pub fn endorser(&self) -> &AgentUri {
        &self.endorser
    }

    /// Returns the agent that is endorsed.
    pub fn endorsed(&self) -> &AgentUri {
        &self.endorsed
    }

    /// Returns when the endorsement was signed.
    pub fn issued_at(&self) -> &Timestamp {
        &self.issued_at
    }

    /// Returns the signed text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn read_text(root: &JsonValue<'_>, name: &'static str) -> Result<String, EndorsementError> {
    let text = root.member(name).and_then(|value| value.text());
    text.map(std::borrow::Cow::into_owned).ok_or(EndorsementError::InvalidMember(name))
}
