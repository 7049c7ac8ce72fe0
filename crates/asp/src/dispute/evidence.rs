//! Evidence: references to messages of the transcript.

use std::collections::HashMap;

use seal::Digest;
use seal::json::Tape;

use super::record::FilingError;
use crate::id::{AgentUri, CommitmentId, MessageId, Reference};
use crate::message::{Body, Envelope, InformType};
use crate::transcript::Transcript;

/// A message of the transcript, with its hash. The hash chain makes it impossible to replace the message later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EvidenceMessage {
    /// The id of the message.
    pub message_id: MessageId,
    /// Its `integrity.hash`.
    pub hash: Digest,
}

/// The messages that prove what was agreed and what was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The COMMIT.
    pub agreed_terms: EvidenceMessage,
    /// The ACCEPT of the COMMIT.
    pub acceptance: EvidenceMessage,
    /// The last INFORM(result) of the accused agent before the dispute was filed, if there is one.
    pub delivered_result: Option<EvidenceMessage>,
    /// Further messages that the complaining agent named.
    pub messages: Vec<EvidenceMessage>,
}

impl Evidence {
    /// Maximum number of further messages.
    pub const MAX_MESSAGES: usize = 64;

    /// Collects the evidence from the transcript.
    pub(super) fn collect(
        transcript: &Transcript,
        commitment: &CommitmentId,
        accused: &AgentUri,
        named: &[MessageId],
    ) -> Result<Self, FilingError> {
        let index = MessageIndex::new(transcript, commitment, accused);
        let named = named.iter().map(|id| index.by_id.get(id).copied());
        let messages: Option<Vec<_>> = named.collect();
        match (index.terms, index.acceptance, messages) {
            (Some(agreed_terms), Some(acceptance), Some(messages))
                if messages.len() <= Self::MAX_MESSAGES =>
            {
                let delivered_result = index.results.last().copied();
                Ok(Self { agreed_terms, acceptance, delivered_result, messages })
            }
            _ => Err(FilingError::EvidenceNotInTranscript),
        }
    }

    /// Checks that each message is in the transcript, with this hash and this role. A later result of the accused agent makes
    /// no difference, because it may have arrived after the dispute was filed.
    pub(super) fn check(
        &self,
        transcript: &Transcript,
        commitment: &CommitmentId,
        accused: &AgentUri,
    ) -> Result<(), FilingError> {
        let index = MessageIndex::new(transcript, commitment, accused);
        let is_valid = index.terms == Some(self.agreed_terms)
            && index.acceptance == Some(self.acceptance)
            && self.delivered_result.is_none_or(|result| index.results.contains(&result))
            && self.messages.len() <= Self::MAX_MESSAGES
            && self.messages.iter().all(|message| index.by_id.get(&message.message_id) == Some(message));
        if is_valid { Ok(()) } else { Err(FilingError::EvidenceNotInTranscript) }
    }
}

/// The messages of a transcript, by their role in a dispute. It is empty for a transcript that discards its texts.
#[derive(Default)]
struct MessageIndex {
    terms: Option<EvidenceMessage>,
    acceptance: Option<EvidenceMessage>,
    results: Vec<EvidenceMessage>,
    by_id: HashMap<MessageId, EvidenceMessage>,
}

impl MessageIndex {
    fn new(transcript: &Transcript, commitment: &CommitmentId, accused: &AgentUri) -> Self {
        let (mut index, mut tape) = (Self::default(), Tape::default());
        for text in transcript.messages() {
            let Ok(doc) = tape.read(text) else { continue };
            let Ok(envelope) = Envelope::read(&doc.root()) else { continue };
            let message = EvidenceMessage { message_id: envelope.message_id, hash: envelope.integrity.hash };
            match &envelope.body {
                Body::Commit(body) if body.commitment_id == *commitment => index.terms = Some(message),
                Body::Accept(body) if body.reference == Reference::from(commitment) => {
                    index.acceptance = Some(message);
                }
                Body::Inform(body)
                    if body.kind == InformType::Result && envelope.sender.agent_id == *accused =>
                {
                    index.results.push(message);
                }
                _ => {}
            }
            index.by_id.insert(message.message_id, message);
        }
        index
    }
}
