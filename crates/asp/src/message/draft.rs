//! Outgoing messages: drafts, and the proof, hash and signature that are added to them.

use std::fmt::Write;

use seal::json::{JsonWriter, Tape};
use seal::{AgentKeys, CanonicalWriter, Digest, Random, Timestamp, base64url, dpop, ed25519};

use super::authentication::AuthenticatedMessage;
use super::body::Body;
use super::codec::{ExtraMembers, JsonCodec};
use super::envelope::{
    self, Constraints, Content, Envelope, Integrity, ProtocolVersion, Recipient, Sender, TrustScore,
};
use crate::error::LocalError;
use crate::id::{AgentUri, MessageId, SessionId};

/// A message that is not signed yet.
#[derive(Clone, Debug)]
pub struct MessageDraft {
    /// Its id.
    pub message_id: MessageId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The sender's sequence number.
    pub sequence_number: u64,
    /// The time of sending.
    pub timestamp: Timestamp,
    /// The sender.
    pub sender: AgentUri,
    /// The sender's organization.
    pub org_id: String,
    /// The trust score that the sender states about itself.
    pub trust_score: TrustScore,
    /// The recipient.
    pub recipient: AgentUri,
    /// The body.
    pub body: Body,
    /// Members of `content` that ASP does not define.
    pub content: Content,
    /// Constraints on the answer.
    pub constraints: Option<Constraints>,
    /// The hash of the previous message, which is the head of the chain.
    pub previous_hash: Digest,
    /// Members that ASP does not define.
    pub other: ExtraMembers,
}

/// Signs drafts. It reuses its buffers.
#[derive(Debug, Default)]
pub struct MessageSigner {
    tape: Tape,
    canonical: CanonicalWriter,
    buffer_capacity: usize,
}

impl MessageSigner {
    /// Adds the proof, then the hash that covers it, then the signature (D13, D14, D16).
    pub fn sign(
        &mut self,
        draft: MessageDraft,
        keys: &AgentKeys,
        random: &mut impl Random,
    ) -> Result<AuthenticatedMessage, LocalError> {
        let (unsigned, slots) = draft.write(self.buffer_capacity);
        self.buffer_capacity = self.buffer_capacity.max(unsigned.len());
        let doc = self.tape.read(&unsigned).map_err(LocalError::NotJson)?;
        let canonical = self
            .canonical
            .write(&doc.root(), &[], &["sender", "dpopProof"])
            .map_err(LocalError::NotCanonical)?;
        // The proof covers the message without the proof itself.
        let [before, after] = canonical.without_marked_member().map(str::as_bytes);
        let mut jti = [0; 16];
        random.fill(&mut jti);
        let claims = dpop::Claims {
            jti: base64url::encode(&jti),
            htm: draft.body.performative().as_str().to_owned(),
            htu: htu(&draft.session_id.to_string()),
            iat: draft.timestamp.unix_millis().seconds(),
            mh: Some(Digest::of_parts([before, after])),
        };
        let proof = dpop::create_proof(&keys.dpop, &claims).map_err(|_| LocalError::NoRandomness)?;
        // The proof replaces the empty string in `sender.dpopProof`. It consists of letters, digits, `-`, `_` and dots, so it
        // needs no escaping.
        let empty_member =
            canonical.marked_range.clone().and_then(|range| canonical.text.get(range)).unwrap_or("");
        let filled_member = empty_member.replace("\"\"", &format!("\"{proof}\""));
        let hash = Digest::of_parts([before, filled_member.as_bytes(), after]);
        let signature = keys.signing.sign(hash.to_string().as_bytes());
        let text = slots.fill(&unsigned, &proof, &hash, &signature).into();
        Ok(AuthenticatedMessage {
            text,
            hash,
            jti: claims.jti,
            signing_key: keys.signing.verifying_key(),
            envelope: draft.into_envelope(proof, hash, signature),
        })
    }
}

impl MessageDraft {
    /// Signs this draft. To sign many drafts, keep a [`MessageSigner`].
    pub fn sign(
        self,
        keys: &AgentKeys,
        random: &mut impl Random,
    ) -> Result<AuthenticatedMessage, LocalError> {
        MessageSigner::default().sign(self, keys, random)
    }

    fn into_envelope(self, dpop_proof: String, hash: Digest, signature: ed25519::Signature) -> Envelope {
        Envelope {
            version: ProtocolVersion::V0_1,
            message_id: self.message_id,
            session_id: self.session_id,
            sequence_number: self.sequence_number,
            timestamp: self.timestamp,
            sender: Sender::new(self.sender, self.org_id, self.trust_score, dpop_proof),
            recipient: Some(Recipient(self.recipient)),
            content: self.content,
            body: self.body,
            integrity: Integrity::new(hash, self.previous_hash, signature),
            constraints: self.constraints,
            other: self.other,
        }
    }

    /// Writes the message in the order of the published example, without the proof, hash and signature. Also returns
    /// the positions at which these three are inserted.
    fn write(&self, capacity: usize) -> (String, SignatureSlots) {
        let mut writer = JsonWriter::with_capacity(capacity);
        writer.open_object();
        writer.key("version").text("asp/0.1");
        writer.key("messageId").text(&self.message_id.to_string());
        writer.key("sessionId").text(&self.session_id.to_string());
        writer.key("sequenceNumber");
        self.sequence_number.write(&mut writer);
        writer.key("timestamp").text(&self.timestamp.to_string());
        writer.key("sender").open_object();
        writer.key("agentId").text(self.sender.as_str());
        writer.key("orgId").text(&self.org_id);
        writer.key("trustScore");
        self.trust_score.write(&mut writer);
        writer.key("dpopProof").text("");
        let proof = writer.len() - 1;
        writer.close_object();
        writer.key("recipient").text(self.recipient.as_str());
        writer.key("performative").text(self.body.performative().as_str());
        writer.key("content");
        self.content.write(&self.body, &mut writer);
        writer.key("integrity").open_object();
        let hash = writer.len();
        writer.key("previousHash").text(&self.previous_hash.to_string());
        let signature = writer.len();
        writer.close_object();
        if let Some(constraints) = &self.constraints {
            writer.key("constraints");
            constraints.write(&mut writer);
        }
        self.other.write(&mut writer, &envelope::KNOWN_MEMBERS);
        writer.close_object();
        (writer.finish(), SignatureSlots { proof, hash, signature })
    }
}

/// The positions at which the proof, hash and signature are inserted, in ascending order.
struct SignatureSlots {
    proof: usize,
    hash: usize,
    signature: usize,
}

impl SignatureSlots {
    fn fill(&self, text: &str, proof: &str, hash: &Digest, signature: &ed25519::Signature) -> String {
        let mut out = String::with_capacity(text.len() + proof.len() + 256);
        out.push_str(&text[..self.proof]);
        out.push_str(proof);
        out.push_str(&text[self.proof..self.hash]);
        let _ = write!(out, "\"hash\":\"{hash}\",");
        out.push_str(&text[self.hash..self.signature]);
        let _ = write!(out, ",\"signature\":\"{signature}\"");
        out.push_str(&text[self.signature..]);
        out
    }
}

/// Returns the `htu` claim of a proof, which names the session (D16).
pub(crate) fn htu(session_id: &str) -> String {
    format!("asp:{session_id}")
}
