//! Bytes in, a message that proves itself out.
//!
//! Authentication comes before understanding: only what a known participant signed is worth an answer (D7).

use std::borrow::Cow;
use std::sync::Arc;

use seal::dpop::{self, DpopError};
use seal::json::{Tape, Value};
use seal::{Canonical, Digest, Timestamp, ed25519};

use super::draft::htu;
use super::envelope::Envelope;
use crate::card::Card;
use crate::error::{Code, Error, Misbehaviour, Refusal};
use crate::id::{AgentUri, MessageId};
use crate::limits::{Limits, PROOF_SECONDS};

/// The cards that are pinned: the only keys that count.
#[derive(Clone, Debug, Default)]
pub struct Cards(Vec<Card>);

impl Cards {
    /// These cards.
    pub fn new(cards: impl IntoIterator<Item = Card>) -> Self {
        Self(cards.into_iter().collect())
    }

    /// The card of that agent.
    pub fn of(&self, agent: &AgentUri) -> Option<&Card> {
        self.find(agent.as_str())
    }

    fn find(&self, agent: &str) -> Option<&Card> {
        self.0.iter().find(|card| card.agent_id().as_str() == agent)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Card> {
        self.0.iter()
    }
}

/// A message whose hash, signature and proof hold; the bytes are as they were received.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// The bytes.
    pub text: Arc<str>,
    /// Its link in the chain.
    pub hash: Digest,
    /// What it says.
    pub envelope: Envelope,
    /// The name of its DPoP proof.
    pub jti: String,
}

/// Authenticates messages; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub struct Authenticator {
    tape: Tape,
    canonical: Canonical,
}

/// What the hash does not cover (D13).
const UNSEALED: [&[&str]; 2] = [&["integrity", "hash"], &["integrity", "signature"]];

impl Authenticator {
    /// Authenticates one message, then reads it. Needs no clock.
    pub fn open(&mut self, text: &str, cards: &Cards, limits: &Limits) -> Result<Sealed, Error> {
        if text.len() > limits.message_bytes {
            return Err(Misbehaviour::TooLong(limits.message_bytes).into());
        }
        let doc = self.tape.read(text).map_err(Misbehaviour::NotJson)?;
        let root = doc.root();
        let sender = inner_text(&root, "sender", "agentId").ok_or(Misbehaviour::Member("sender.agentId"))?;
        let card = cards.find(&sender).ok_or_else(|| Misbehaviour::Stranger(shortened(&sender)))?;
        let form = self
            .canonical
            .write(&root, &UNSEALED, &["sender", "dpopProof"])
            .map_err(Misbehaviour::NotCanonical)?;
        let hash = Digest::of(form.text.as_bytes());
        let claimed = inner_text(&root, "integrity", "hash").ok_or(Misbehaviour::Member("integrity.hash"))?;
        if Digest::parse(&claimed) != Some(hash) {
            return Err(Misbehaviour::Hash.into());
        }
        let signature = inner_text(&root, "integrity", "signature")
            .and_then(|text| ed25519::Signature::parse(&text))
            .ok_or(Misbehaviour::Member("integrity.signature"))?;
        if !card.signing_key().verify(claimed.as_bytes(), &signature) {
            return Err(Misbehaviour::Signature.into());
        }
        let [before, after] = form.without_noted().map(str::as_bytes);
        let jti = check_proof(&root, card, Digest::of_all([before, after]))?;
        let envelope = Envelope::read(&root).map_err(|wrong| {
            let id = root.member("messageId").and_then(|id| MessageId::parse(&id.text()?).ok());
            Refusal { message: id, ..Refusal::new(Code::SchemaUnsupported, wrong.to_string()) }
        })?;
        Ok(Sealed { text: text.into(), hash, envelope, jti })
    }

    /// Reads a message without asking who wrote it: for pictures and listings, never for decisions.
    pub fn read_unproven(&mut self, text: &str) -> Result<Envelope, Error> {
        let doc = self.tape.read(text).map_err(Misbehaviour::NotJson)?;
        Ok(Envelope::read(&doc.root())
            .map_err(|wrong| Refusal::new(Code::SchemaUnsupported, wrong.to_string()))?)
    }
}

/// The link that a message makes in the chain, whoever wrote it.
pub(crate) fn hash_of(canonical: &mut Canonical, root: &Value<'_>) -> Option<Digest> {
    let form = canonical.write(root, &UNSEALED, &[]).ok()?;
    Some(Digest::of(form.text.as_bytes()))
}

/// The proof is of the sender's key, for this performative, this session and this very message (D16).
fn check_proof(root: &Value<'_>, card: &Card, mh: Digest) -> Result<String, Misbehaviour> {
    let proof = inner_text(root, "sender", "dpopProof").ok_or(Misbehaviour::Member("sender.dpopProof"))?;
    let claims = dpop::verify(&proof, card.dpop_key()).map_err(Misbehaviour::Proof)?;
    let wrong = |claim| Err(Misbehaviour::Proof(DpopError::Claim(claim)));
    if claims.mh != Some(mh) {
        return wrong("mh");
    }
    let text = |name| root.member(name).and_then(|member: Value<'_>| member.text());
    if text("performative").as_deref() != Some(claims.htm.as_str()) {
        return wrong("htm");
    }
    if text("sessionId").is_none_or(|id| htu(&id) != claims.htu) {
        return wrong("htu");
    }
    let made = text("timestamp").and_then(|text| Timestamp::parse_rfc3339(&text).ok());
    if made.is_none_or(|made| made.unix_millis().seconds().abs_diff(claims.iat) > PROOF_SECONDS) {
        return wrong("iat");
    }
    Ok(claims.jti)
}

fn inner_text<'d>(root: &Value<'d>, outer: &str, inner: &str) -> Option<Cow<'d, str>> {
    root.member(outer)?.member(inner)?.text()
}

/// A stranger chooses the length of his name; an error need not repeat all of it.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
