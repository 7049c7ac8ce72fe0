//! The transcript: the messages of one session, each linked to the previous one by its hash.
//!
//! Each session has one hash chain, and each sender its own sequence numbers (D8). [`Transcript::check_append`] checks
//! whether a message can be appended, and [`Transcript::append`] appends it. [`Transcript::inclusion_proof`] returns a
//! proof that a message is in the chain. Anyone who knows the head can verify it.

use std::collections::HashMap;
use std::sync::Arc;

use seal::json::Tape;
use seal::{CanonicalWriter, Digest, UnixMillis};

use crate::error::{Refusal, RejectCode};
use crate::id::MessageId;
use crate::limits::MAX_CLOCK_SKEW_SECONDS;
use crate::message::AuthenticatedMessage;
use crate::state_machine::Role;

/// The messages of one session and their hash chain.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    entries: Vec<TranscriptEntry>,
    /// For each hash, the index of the message that links to it. The initial hash maps to the first message.
    index_by_previous_hash: HashMap<Digest, usize>,
    /// For each message, its index.
    index_by_id: HashMap<MessageId, usize>,
    /// The position that this transcript continues from.
    start: ChainPosition,
    next_sequence_numbers: [u64; 2],
    /// The size of each side's messages since the start position.
    bytes: [usize; 2],
    discards_texts: bool,
}

#[derive(Clone, Debug)]
struct TranscriptEntry {
    sender: Role,
    /// The size of the message, even if its text was discarded.
    bytes: usize,
    text: Arc<str>,
    hash: Digest,
    id: MessageId,
    sent_at: UnixMillis,
}

/// A position in a chain from which the chain can be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPosition {
    /// The number of messages before this position.
    pub message_count: usize,
    /// The hash of the last message; 64 zeros if there is none.
    pub head: Digest,
    /// The next sequence number of each side.
    pub next_sequence_numbers: [u64; 2],
    /// When the last message was sent; the minimum value if there is none.
    pub last_sent_at: UnixMillis,
}

impl Default for ChainPosition {
    fn default() -> Self {
        Self {
            message_count: 0,
            head: Digest::ZERO,
            next_sequence_numbers: [0, 0],
            last_sent_at: UnixMillis::MIN,
        }
    }
}

/// Why a message cannot be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// The message is refused.
    Refused(Refusal),
    /// The message links to a hash that the chain never had, so the session fails (D7).
    ChainBroken,
}

impl Transcript {
    /// Creates a transcript that continues from a position of another transcript.
    pub fn resume_from(position: ChainPosition) -> Self {
        Self { start: position, next_sequence_numbers: position.next_sequence_numbers, ..Self::default() }
    }

    /// Discards the texts of messages appended from now on and keeps only the chain, for callers that store the texts
    /// elsewhere.
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        self.discards_texts = true;
        self
    }

    /// Returns the current position.
    pub fn position(&self) -> ChainPosition {
        let last_sent_at = self.entries.last().map_or(self.start.last_sent_at, |entry| entry.sent_at);
        ChainPosition {
            message_count: self.len(),
            head: self.head(),
            next_sequence_numbers: self.next_sequence_numbers,
            last_sent_at,
        }
    }

    /// Returns the hash of the last message; 64 zeros if there is none.
    pub fn head(&self) -> Digest {
        self.entries.last().map_or(self.start.head, |entry| entry.hash)
    }

    /// Returns the number of messages, including those before the start position.
    pub fn len(&self) -> usize {
        self.start.message_count + self.entries.len()
    }

    /// Returns whether the transcript has no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sequence number that this side must use next.
    pub fn next_sequence_number(&self, role: Role) -> u64 {
        self.next_sequence_numbers[role.index()]
    }

    /// Returns the size of one side's messages since the start position, in bytes.
    pub fn bytes_of(&self, role: Role) -> usize {
        self.bytes[role.index()]
    }

    /// Returns the messages since the start position, as they were received. Discarded texts are empty.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.text)
    }

    /// Returns the id of the last message.
    pub fn last_message_id(&self) -> Option<MessageId> {
        self.entries.last().map(|entry| entry.id)
    }

    /// Returns whether the transcript contains this message. Messages before the start position are not known.
    pub fn contains(&self, message: &MessageId) -> bool {
        self.index_by_id.contains_key(message)
    }

    /// Returns a message as it was received. Returns `None` if it is not in the transcript or its text was discarded.
    pub fn message(&self, id: &MessageId) -> Option<&Arc<str>> {
        let entry = self.entries.get(*self.index_by_id.get(id)?)?;
        (!entry.text.is_empty()).then_some(&entry.text)
    }

    /// Checks whether a message from `sender` can be appended.
    pub fn check_append(&self, message: &AuthenticatedMessage, sender: Role) -> Result<(), AppendError> {
        let envelope = &message.envelope;
        let refuse = |code, reason: String| Err(AppendError::Refused(Refusal::new(code, reason)));
        if self.contains(&envelope.message_id) {
            return refuse(RejectCode::Duplicate, "this message was received before".to_owned());
        }
        let (number, next) = (envelope.sequence_number, self.next_sequence_numbers[sender.index()]);
        let link = envelope.integrity.previous_hash;
        if link != self.head() {
            return if self.has_seen_hash(&link) {
                refuse(RejectCode::StaleHead, format!("the chain has advanced; its head is {}", self.head()))
            } else {
                Err(AppendError::ChainBroken)
            };
        }
        if number < next {
            return refuse(
                RejectCode::Duplicate,
                format!("sequence number {number} was already used; expected {next}"),
            );
        }
        if number > next {
            let reason = format!("sequence number is {number}; expected {next}");
            return refuse(RejectCode::InvalidStateTransition, reason);
        }
        if envelope.timestamp.unix_millis() < self.position().last_sent_at.saturating_sub(max_clock_skew_ms())
        {
            let reason = format!("sent more than {MAX_CLOCK_SKEW_SECONDS} s before the previous message");
            return refuse(RejectCode::Timeout, reason);
        }
        Ok(())
    }

    /// Appends a message that [`Self::check_append`] accepted.
    pub fn append(&mut self, message: &AuthenticatedMessage, sender: Role) {
        let envelope = &message.envelope;
        self.index_by_previous_hash.insert(self.head(), self.entries.len());
        self.index_by_id.insert(envelope.message_id, self.entries.len());
        self.next_sequence_numbers[sender.index()] = envelope.sequence_number + 1;
        self.bytes[sender.index()] += message.text.len();
        self.entries.push(TranscriptEntry {
            sender,
            bytes: message.text.len(),
            text: if self.discards_texts { Arc::default() } else { message.text.clone() },
            hash: message.hash,
            id: envelope.message_id,
            sent_at: envelope.timestamp.unix_millis(),
        });
    }

    /// Removes all messages after a position, because they lost a race or were refused.
    pub(crate) fn rewind(&mut self, position: &ChainPosition) {
        let remaining_count = position.message_count.saturating_sub(self.start.message_count);
        for entry in self.entries.drain(remaining_count.min(self.entries.len())..) {
            self.index_by_id.remove(&entry.id);
            self.bytes[entry.sender.index()] -= entry.bytes;
        }
        self.index_by_previous_hash.retain(|_, index| *index < remaining_count);
        self.next_sequence_numbers = position.next_sequence_numbers;
    }

    /// Returns a proof that the message at `index` (from 0) is in the chain. The proof consists of that message and all
    /// later ones.
    pub fn inclusion_proof(&self, index: usize) -> Option<InclusionProof> {
        let offset = index.checked_sub(self.start.message_count)?;
        let messages: Vec<_> = self.entries.get(offset..)?.iter().map(|entry| entry.text.clone()).collect();
        (!messages.is_empty() && !self.discards_texts).then_some(InclusionProof { messages })
    }

    /// Returns whether the chain contains this hash, or the chain is empty and this is the initial one.
    pub fn has_hash(&self, hash: &Digest) -> bool {
        *hash == self.head() || self.has_seen_hash(hash)
    }

    /// Returns whether the chain contains this hash. A resumed chain does not know its earlier hashes, so it counts every
    /// hash as seen.
    fn has_seen_hash(&self, link: &Digest) -> bool {
        self.index_by_previous_hash.contains_key(link) || self.start.message_count > 0
    }
}

/// Returns the maximum clock difference between two agents, in milliseconds.
pub(crate) fn max_clock_skew_ms() -> i64 {
    i64::try_from(MAX_CLOCK_SKEW_SECONDS).unwrap_or(i64::MAX).saturating_mul(1000)
}

/// A proof that a message is in a chain with a known head: the message and every later one.
///
/// Each hash covers an entire message, so a verifier needs the complete text of every later message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InclusionProof {
    messages: Vec<Arc<str>>,
}

impl InclusionProof {
    /// Creates a proof from the message and all later ones, as received.
    pub fn new(messages: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        Self { messages: messages.into_iter().map(Into::into).collect() }
    }

    /// Returns the messages, the proven one first.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|text| &**text)
    }

    /// Returns the proven message, if the chain leads from it to this head. This does not check who signed the message; use
    /// an [`Authenticator`](crate::message::Authenticator) for that.
    pub fn verify(&self, head: Digest) -> Option<&str> {
        let mut tape = Tape::default();
        let mut canonical = CanonicalWriter::default();
        let mut link = None;
        for text in &self.messages {
            let doc = tape.read(text).ok()?;
            let integrity = doc.root().member("integrity")?;
            let previous = Digest::parse(&integrity.member("previousHash")?.text()?)?;
            if link.is_some_and(|link| link != previous) {
                return None;
            }
            link = Some(crate::message::message_hash(&mut canonical, &doc.root())?);
        }
        (link? == head).then(|| self.messages.first().map(|text| &**text))?
    }
}
