//! A message on its way out: what is to be said, and the proof, hash and signature that make it one.

use std::fmt::Write;

use seal::json::{Tape, Writer};
use seal::{Canonical, Digest, Keys, Random, Timestamp, base64url, dpop, ed25519};

use super::authentic::Sealed;
use super::body::Body;
use super::envelope::{
    self, Constraints, Content, Envelope, Integrity, Recipient, Sender, TrustScore, Version,
};
use super::part::{Others, Part};
use crate::error::Misuse;
use crate::id::{AgentUri, MessageId, SessionId};

/// A message that is not signed yet.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Its name.
    pub message_id: MessageId,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The sender's count.
    pub sequence_number: u64,
    /// Now.
    pub timestamp: Timestamp,
    /// Who sends.
    pub sender: AgentUri,
    /// The sender's organisation.
    pub org_id: String,
    /// What the sender says of its trust.
    pub trust_score: TrustScore,
    /// Who is meant.
    pub recipient: AgentUri,
    /// What is said.
    pub body: Body,
    /// Members of `content` that ASP does not name.
    pub content: Content,
    /// What is asked of the answer.
    pub constraints: Option<Constraints>,
    /// The head of the chain.
    pub previous_hash: Digest,
    /// Members that ASP does not name.
    pub other: Others,
}

/// Seals drafts; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub struct Sealer {
    tape: Tape,
    canonical: Canonical,
    longest: usize,
}

impl Sealer {
    /// Makes the proof, then the hash that covers it, then the signature (D13, D14, D16).
    pub fn seal(&mut self, draft: Draft, keys: &Keys, random: &mut impl Random) -> Result<Sealed, Misuse> {
        let (unsigned, gaps) = draft.write(self.longest);
        self.longest = self.longest.max(unsigned.len());
        let doc = self.tape.read(&unsigned).map_err(Misuse::NotJson)?;
        let form =
            self.canonical.write(&doc.root(), &[], &["sender", "dpopProof"]).map_err(Misuse::NotCanonical)?;
        let [before, after] = form.without_noted().map(str::as_bytes);
        let mut jti = [0; 16];
        random.fill(&mut jti);
        let claims = dpop::Claims {
            jti: base64url::encode(&jti),
            htm: draft.body.performative().word().to_owned(),
            htu: htu(&draft.session_id.to_string()),
            iat: draft.timestamp.unix_millis().seconds(),
            mh: Some(Digest::of_all([before, after])),
        };
        let proof = dpop::prove(&keys.dpop, &claims).map_err(|_| Misuse::NoRandomness)?;
        // The proof takes the place of the empty string that stood for it: letters, digits, -, _ and dots need no escape.
        let noted = form.noted.clone().and_then(|range| form.text.get(range)).unwrap_or("");
        let member = noted.replace("\"\"", &format!("\"{proof}\""));
        let hash = Digest::of_all([before, member.as_bytes(), after]);
        let signature = keys.signing.sign(hash.to_string().as_bytes());
        let text = gaps.fill(&unsigned, &proof, &hash, &signature).into();
        Ok(Sealed { text, hash, jti: claims.jti, envelope: draft.into_envelope(proof, hash, signature) })
    }
}

impl Draft {
    /// Seals this one alone; whoever has many to seal keeps a [`Sealer`].
    pub fn seal(self, keys: &Keys, random: &mut impl Random) -> Result<Sealed, Misuse> {
        Sealer::default().seal(self, keys, random)
    }

    fn into_envelope(self, dpop_proof: String, hash: Digest, signature: ed25519::Signature) -> Envelope {
        Envelope {
            version: Version::V0_1,
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

    /// Writes the message in the order of the published example, with gaps for what is not known yet.
    fn write(&self, room: usize) -> (String, Gaps) {
        let mut writer = Writer::with_capacity(room);
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
        writer.key("performative").text(self.body.performative().word());
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
        self.other.write(&mut writer, &envelope::KNOWN);
        writer.close_object();
        (writer.finish(), Gaps { proof, hash, signature })
    }
}

/// Where a message waits for its proof, its hash and its signature; each comes after the one before.
struct Gaps {
    proof: usize,
    hash: usize,
    signature: usize,
}

impl Gaps {
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

/// The target that a proof names: the session (D16).
pub(crate) fn htu(session_id: &str) -> String {
    format!("asp:{session_id}")
}
