//! Authentication of received messages.
//!
//! A message is authenticated before it is parsed, because only messages signed by a known participant are answered
//! (D7).

use std::borrow::Cow;
use std::sync::Arc;

use seal::dpop::{self, DpopError};
use seal::json::{JsonValue, Tape};
use seal::{CanonicalWriter, Digest, Timestamp, ed25519};

use super::draft::htu;
use super::envelope::Envelope;
use crate::agent_card::AgentCard;
use crate::error::{AspError, AuthenticationError, Refusal, RejectCode};
use crate::id::{AgentUri, MessageId};
use crate::limits::{AspLimits, MAX_CLOCK_SKEW_SECONDS};

/// The pinned cards, which hold the only trusted keys. A clone shares the cards.
#[derive(Clone, Debug, Default)]
pub struct PinnedCards(Arc<[AgentCard]>);

impl PinnedCards {
    /// Pins these cards.
    pub fn new(cards: impl IntoIterator<Item = AgentCard>) -> Self {
        Self(cards.into_iter().collect())
    }

    /// Returns the card of an agent.
    pub fn get(&self, agent: &AgentUri) -> Option<&AgentCard> {
        self.find(agent.as_str())
    }

    fn find(&self, agent: &str) -> Option<&AgentCard> {
        self.0.iter().find(|card| card.agent_id().as_str() == agent)
    }

    /// Returns all pinned cards.
    pub fn iter(&self) -> impl Iterator<Item = &AgentCard> {
        self.0.iter()
    }
}

/// A message with a valid hash, signature and proof.
#[derive(Clone, Debug)]
pub struct AuthenticatedMessage {
    /// The message as it was received.
    pub text: Arc<str>,
    /// Its hash, which the next message links to.
    pub hash: Digest,
    /// The parsed message.
    pub envelope: Envelope,
    /// The id of its DPoP proof.
    pub jti: String,
    /// The key that its signature was verified with, or that signed it.
    pub signing_key: ed25519::VerifyingKey,
}

/// Authenticates messages. It reuses its buffers.
#[derive(Debug, Default)]
pub struct Authenticator {
    tape: Tape,
    canonical: CanonicalWriter,
}

/// The members that the hash does not cover (D13).
const UNHASHED_MEMBERS: [&[&str]; 2] = [&["integrity", "hash"], &["integrity", "signature"]];

impl Authenticator {
    /// Authenticates a message, then parses it. This needs no clock.
    pub fn authenticate(
        &mut self,
        text: &str,
        cards: &PinnedCards,
        limits: &AspLimits,
    ) -> Result<AuthenticatedMessage, AspError> {
        if text.len() > limits.max_message_bytes {
            return Err(AuthenticationError::TooLong(limits.max_message_bytes).into());
        }
        let doc = self.tape.read(text).map_err(AuthenticationError::NotJson)?;
        let root = doc.root();
        let sender = nested_text(&root, "sender", "agentId")
            .ok_or(AuthenticationError::InvalidMember("sender.agentId"))?;
        let card = cards
            .find(&sender)
            .ok_or_else(|| AuthenticationError::UnknownSender(truncate_for_error(&sender)))?;
        let canonical = self
            .canonical
            .write(&root, &UNHASHED_MEMBERS, &["sender", "dpopProof"])
            .map_err(AuthenticationError::NotCanonical)?;
        let hash = Digest::of(canonical.text.as_bytes());
        let claimed = nested_text(&root, "integrity", "hash")
            .ok_or(AuthenticationError::InvalidMember("integrity.hash"))?;
        if Digest::parse(&claimed) != Some(hash) {
            return Err(AuthenticationError::HashMismatch.into());
        }
        let signature = nested_text(&root, "integrity", "signature")
            .and_then(|text| ed25519::Signature::parse(&text))
            .ok_or(AuthenticationError::InvalidMember("integrity.signature"))?;
        if !card.signing_key().verify(claimed.as_bytes(), &signature) {
            return Err(AuthenticationError::InvalidSignature.into());
        }
        // The proof covers the message without the proof itself.
        let [before, after] = canonical.without_marked_member().map(str::as_bytes);
        let jti = check_proof(&root, card, Digest::of_parts([before, after]))?;
        let envelope = Envelope::read(&root).map_err(|error| {
            let id = root.member("messageId").and_then(|id| MessageId::parse(&id.text()?).ok());
            Refusal { message_id: id, ..Refusal::new(RejectCode::SchemaUnsupported, error.to_string()) }
        })?;
        Ok(AuthenticatedMessage { text: text.into(), hash, envelope, jti, signing_key: *card.signing_key() })
    }

    /// Parses a message without authentication. Use it to display messages, never for decisions.
    pub fn parse_unauthenticated(&mut self, text: &str) -> Result<Envelope, AspError> {
        let doc = self.tape.read(text).map_err(AuthenticationError::NotJson)?;
        Ok(Envelope::read(&doc.root())
            .map_err(|error| Refusal::new(RejectCode::SchemaUnsupported, error.to_string()))?)
    }
}

/// Returns the hash of a message, without checking its sender.
pub(crate) fn message_hash(canonical: &mut CanonicalWriter, root: &JsonValue<'_>) -> Option<Digest> {
    let canonical = canonical.write(root, &UNHASHED_MEMBERS, &[]).ok()?;
    Some(Digest::of(canonical.text.as_bytes()))
}

/// Checks that the proof was made with the sender's key for this message, at about the time of the message (D16). Returns the
/// id of the proof.
fn check_proof(root: &JsonValue<'_>, card: &AgentCard, mh: Digest) -> Result<String, AuthenticationError> {
    let proof = nested_text(root, "sender", "dpopProof")
        .ok_or(AuthenticationError::InvalidMember("sender.dpopProof"))?;
    let claims = dpop::verify(&proof, card.dpop_key()).map_err(AuthenticationError::InvalidProof)?;
    let invalid_claim = |claim| Err(AuthenticationError::InvalidProof(DpopError::InvalidClaim(claim)));
    if claims.mh != Some(mh) {
        return invalid_claim("mh");
    }
    let text = |name| root.member(name).and_then(|member: JsonValue<'_>| member.text());
    if text("performative").as_deref() != Some(claims.htm.as_str()) {
        return invalid_claim("htm");
    }
    if text("sessionId").is_none_or(|id| htu(&id) != claims.htu) {
        return invalid_claim("htu");
    }
    let sent_at = text("timestamp").and_then(|text| Timestamp::parse_rfc3339(&text).ok());
    if sent_at
        .is_none_or(|sent_at| sent_at.unix_millis().seconds().abs_diff(claims.iat) > MAX_CLOCK_SKEW_SECONDS)
    {
        return invalid_claim("iat");
    }
    Ok(claims.jti)
}

fn nested_text<'d>(root: &JsonValue<'d>, outer: &str, inner: &str) -> Option<Cow<'d, str>> {
    root.member(outer)?.member(inner)?.text()
}

/// Shortens a name that an unknown sender chose, for use in an error text.
fn truncate_for_error(text: &str) -> String {
    text.chars().take(80).collect()
}
