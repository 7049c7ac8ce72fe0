//! The transcript: the messages of one session as they were received, each linked to the one before.
//!
//! There is one chain for the session and one count for each sender (D8). [`Transcript::check`] says whether a message fits
//! on the end; [`Transcript::append`] puts it there. [`Transcript::proof`] shows somebody who knows the head that a message
//! is in the chain.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use seal::json::Tape;
use seal::{Canonical, Digest, UnixMillis};

use crate::error::{Code, Refusal};
use crate::id::MessageId;
use crate::limits::PROOF_SECONDS;
use crate::machine::Role;
use crate::message::Sealed;

/// The messages of one session, and the chain that they make.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    entries: Vec<Entry>,
    /// Where each link stands; what the chain began with stands before all.
    links: HashMap<Digest, usize>,
    ids: HashSet<MessageId>,
    start: Point,
    next: [u64; 2],
    forgets: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    text: Arc<str>,
    hash: Digest,
    id: MessageId,
    at: UnixMillis,
}

/// A point in a chain from which it can be taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// How many messages came before.
    pub messages: usize,
    /// The head.
    pub head: Digest,
    /// The next sequence number of each side.
    pub next: [u64; 2],
    /// When the last message was sent; the least number where there is none.
    pub at: UnixMillis,
}

impl Default for Point {
    fn default() -> Self {
        Self { messages: 0, head: Digest::ZERO, next: [0, 0], at: UnixMillis::MIN }
    }
}

/// Why a message does not fit on the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A plain refusal.
    Refused(Refusal),
    /// It links to nothing that the chain has ever had: the session fails (D7).
    Broken,
}

impl Transcript {
    /// A transcript that goes on from a point of another.
    pub fn from(point: Point) -> Self {
        Self { start: point, next: point.next, ..Self::default() }
    }

    /// Forgets the messages' texts from now on, and keeps only the chain: for whoever has the texts elsewhere.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.forgets = true;
        self
    }

    /// Where it is.
    pub fn point(&self) -> Point {
        let at = self.entries.last().map_or(self.start.at, |entry| entry.at);
        Point { messages: self.len(), head: self.head(), next: self.next, at }
    }

    /// The last link.
    pub fn head(&self) -> Digest {
        self.entries.last().map_or(self.start.head, |entry| entry.hash)
    }

    /// How many messages there are, those before the start included.
    pub fn len(&self) -> usize {
        self.start.messages + self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sequence number that this side uses next.
    pub fn next_number(&self, role: Role) -> u64 {
        self.next[role.index()]
    }

    /// The messages since the start, as they were received.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &*entry.text)
    }

    /// The last message.
    pub fn last(&self) -> Option<MessageId> {
        self.entries.last().map(|entry| entry.id)
    }

    /// Whether that message is in it, since the start.
    pub fn has(&self, message: &MessageId) -> bool {
        self.ids.contains(message)
    }

    /// Whether a message of that side fits on the end.
    pub fn check(&self, message: &Sealed, sender: Role) -> Result<(), Misfit> {
        let envelope = &message.envelope;
        let refuse = |code, why: String| Err(Misfit::Refused(Refusal::new(code, why)));
        if self.has(&envelope.message_id) {
            return refuse(Code::Duplicate, "this message was received before".to_owned());
        }
        let (number, next) = (envelope.sequence_number, self.next[sender.index()]);
        let link = envelope.integrity.previous_hash;
        if link != self.head() {
            return if self.has_had(&link) {
                refuse(Code::StaleHead, format!("the chain went on meanwhile; its head is {}", self.head()))
            } else {
                Err(Misfit::Broken)
            };
        }
        if number < next {
            return refuse(Code::Duplicate, format!("sequence number {number} was used; {next} comes next"));
        }
        if number > next {
            let why = format!("sequence number {number} where {next} comes next");
            return refuse(Code::InvalidStateTransition, why);
        }
        if envelope.timestamp.unix_millis() < self.point().at.saturating_sub(skew()) {
            let why = format!("sent more than {PROOF_SECONDS} s before the message that it follows");
            return refuse(Code::Timeout, why);
        }
        Ok(())
    }

    /// Puts a message on the end that [`Self::check`] has let pass.
    pub fn append(&mut self, message: &Sealed, sender: Role) {
        let envelope = &message.envelope;
        self.links.insert(self.head(), self.entries.len());
        self.ids.insert(envelope.message_id);
        self.next[sender.index()] = envelope.sequence_number + 1;
        self.entries.push(Entry {
            text: if self.forgets { Arc::default() } else { message.text.clone() },
            hash: message.hash,
            id: envelope.message_id,
            at: envelope.timestamp.unix_millis(),
        });
    }

    /// Takes back all messages after a point of this transcript: they lost a race, or were refused.
    pub(crate) fn rewind(&mut self, point: &Point) {
        let keep = point.messages.saturating_sub(self.start.messages);
        for entry in self.entries.drain(keep.min(self.entries.len())..) {
            self.ids.remove(&entry.id);
        }
        self.links.retain(|_, at| *at < keep);
        self.next = point.next;
    }

    /// Shows that message `index`, counted from 0, is in the chain: that message and all after it.
    pub fn proof(&self, index: usize) -> Option<Proof> {
        let at = index.checked_sub(self.start.messages)?;
        let messages: Vec<_> = self.entries.get(at..)?.iter().map(|entry| entry.text.clone()).collect();
        (!messages.is_empty() && !self.forgets).then_some(Proof { messages })
    }

    /// Whether the chain has had this link. One that goes on from a point cannot know what came before it, and takes no
    /// stranger link for a broken chain.
    fn has_had(&self, link: &Digest) -> bool {
        self.links.contains_key(link) || self.start.messages > 0
    }
}

/// Clocks of two agents may differ by so much, in milliseconds.
pub(crate) fn skew() -> i64 {
    i64::try_from(PROOF_SECONDS).unwrap_or(i64::MAX).saturating_mul(1000)
}

/// A proof that a message is in a chain whose head is known: the message, and every message after it.
///
/// Every link covers the whole message before it, so nothing shorter can show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    messages: Vec<Arc<str>>,
}

impl Proof {
    /// Takes the message and those after it, as received from whoever would prove something.
    pub fn new(messages: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        Self { messages: messages.into_iter().map(Into::into).collect() }
    }

    /// The messages, the proven one first.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|text| &**text)
    }

    /// The proven message, if the chain leads from it to that head. Who signed it is for an
    /// [`Authenticator`](crate::message::Authenticator) to say.
    pub fn verify(&self, head: Digest) -> Option<&str> {
        let mut tape = Tape::default();
        let mut canonical = Canonical::default();
        let mut link = None;
        for text in &self.messages {
            let doc = tape.read(text).ok()?;
            let integrity = doc.root().member("integrity")?;
            let previous = Digest::parse(&integrity.member("previousHash")?.text()?)?;
            if link.is_some_and(|link| link != previous) {
                return None;
            }
            link = Some(crate::message::hash_of(&mut canonical, &doc.root())?);
        }
        (link? == head).then(|| self.messages.first().map(|text| &**text))?
    }
}
