//! Every changed, dropped, duplicated or swapped message of a transcript is detected, with two exceptions. If the last message
//! is dropped, the other messages are valid, and the session is reported as still open. The last message can also be replaced
//! with a different message that its sender signed on top of the same history.
//!
//! The exhaustive tests mutate all transcripts of the demo with one seed. Most call `Authenticator` and `SessionRecord`
//! directly, as `sayso asp verify` does, so a mutation costs one message check instead of a process start. A sample of each
//! kind of mutation runs through the binary, which must name the right line (`through_binary.rs`). Each file says what it
//! covers. The exhaustive tests print how many mutations they tried.

mod bit_flips;
mod fields;
mod reordering;
mod spliced_messages;
mod through_binary;
mod truncation;
mod wrong_keys;

use std::collections::HashSet;
use std::sync::LazyLock;

use asp::message::{AuthenticatedMessage, Authenticator, PinnedCards};
use asp::session::{ReceiverChecks, SessionRules};
use asp::{Admission, AgentCard, AspLimits, SessionRecord};

use crate::asp::transcripts::{DEMOS, TestTranscript};

/// A transcript that verifies, with its parsed messages.
struct TranscriptChain {
    transcript: TestTranscript,
    cards: PinnedCards,
    messages: Vec<AuthenticatedMessage>,
    /// The record before each message, and after the last one.
    records: Vec<SessionRecord>,
}

/// The chains of all demo transcripts.
static CHAINS: LazyLock<Vec<TranscriptChain>> =
    LazyLock::new(|| DEMOS.iter().map(TranscriptChain::new).collect());

impl TranscriptChain {
    fn new(transcript: &TestTranscript) -> Self {
        let cards =
            PinnedCards::new(transcript.each_card().iter().map(|card| AgentCard::parse(card).unwrap()));
        let mut authenticator = Authenticator::default();
        let authenticate =
            |text: &String| authenticator.authenticate(text, &cards, &AspLimits::default()).unwrap();
        let messages: Vec<_> = transcript.messages.iter().map(authenticate).collect();
        let mut records = vec![start_record(&messages[0], &cards).unwrap()];
        for (message, number) in messages.iter().zip(1..) {
            let mut record = records[number - 1].clone();
            assert!(is_accepted(&mut record, message), "{} {number}", transcript.name);
            records.push(record);
        }
        Self { transcript: transcript.clone(), cards, messages, records }
    }

    /// Returns whether this line would be accepted in place of message `at`.
    fn accepts(&self, authenticator: &mut Authenticator, at: usize, line: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(line) else { return false };
        let Ok(message) = authenticator.authenticate(text, &self.cards, &AspLimits::default()) else {
            return false;
        };
        let record =
            if at == 0 { start_record(&message, &self.cards) } else { Some(self.records[at].clone()) };
        record.is_some_and(|mut record| is_accepted(&mut record, &message))
    }

    /// Returns the index of the first rejected message, from 0.
    fn first_rejected<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m AuthenticatedMessage>,
    ) -> Option<usize> {
        let mut record = None;
        for (message, at) in messages.into_iter().zip(0..) {
            if record.is_none() {
                record = start_record(message, &self.cards);
            }
            let Some(record) = &mut record else { return Some(at) };
            if !is_accepted(record, message) {
                return Some(at);
            }
        }
        None
    }
}

fn start_record(first: &AuthenticatedMessage, cards: &PinnedCards) -> Option<SessionRecord> {
    SessionRecord::from_invitation(&first.envelope, cards, SessionRules::default(), &AspLimits::default())
        .ok()
}

fn is_accepted(record: &mut SessionRecord, message: &AuthenticatedMessage) -> bool {
    matches!(record.admit(message, ReceiverChecks::PASSED, None), Admission::Accepted(_))
}

/// Returns every distinct message of all transcripts, as its chain and index.
fn every_message() -> Vec<(&'static TranscriptChain, usize)> {
    let mut seen = HashSet::new();
    let all = CHAINS.iter().flat_map(|chain| (0..chain.messages.len()).map(move |at| (chain, at)));
    // A message contains the hash of all messages before it, so equal texts have equal histories.
    all.filter(|(chain, at)| seen.insert(chain.transcript.messages[*at].as_str())).collect()
}
