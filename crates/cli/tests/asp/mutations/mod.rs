//! Changing, dropping, doubling or swapping any message of a transcript is detected; dropping the last one cannot be, and is
//! reported as a session still open.
//!
//! What is exhaustive is so over all transcripts of the demo (one seed), and is done here with the parts that
//! `sayso asp verify` is made of, so that a mutation costs one message and not a process: `Authenticator` and `Record`. A
//! message that stands at the same place in several transcripts, after the same messages, is mutated once. A sample of each
//! kind goes through the binary, which must name the right line (`binary`). Each file says what it covers; every test
//! prints how many mutations it made.

mod binary;
mod bits;
mod fields;
mod grafts;
mod keys;
mod order;
mod tails;

use std::collections::HashSet;
use std::sync::LazyLock;

use asp::message::{Authenticator, Cards, Sealed};
use asp::session::{Judgement, Rules};
use asp::{Admission, Card, Limits, Record};

use crate::asp::talk::{DEMOS, Talk};

/// A transcript that verifies, taken apart.
struct Chain {
    talk: Talk,
    cards: Cards,
    messages: Vec<Sealed>,
    /// The record before each message, and after the last.
    before: Vec<Record>,
}

/// Those of the demo.
static CHAINS: LazyLock<Vec<Chain>> = LazyLock::new(|| DEMOS.iter().map(Chain::of).collect());

impl Chain {
    fn of(talk: &Talk) -> Self {
        let cards = Cards::new(talk.each_card().iter().map(|card| Card::parse(card).unwrap()));
        let mut authenticator = Authenticator::default();
        let open = |text: &String| authenticator.open(text, &cards, &Limits::default()).unwrap();
        let messages: Vec<_> = talk.messages.iter().map(open).collect();
        let mut before = vec![begun(&messages[0], &cards).unwrap()];
        for (message, number) in messages.iter().zip(1..) {
            let mut record = before[number - 1].clone();
            assert!(is_taken(&mut record, message), "{} {number}", talk.name);
            before.push(record);
        }
        Self { talk: talk.clone(), cards, messages, before }
    }

    /// Whether this line would be taken in the place of message `at`.
    fn takes(&self, authenticator: &mut Authenticator, at: usize, line: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(line) else { return false };
        let Ok(message) = authenticator.open(text, &self.cards, &Limits::default()) else { return false };
        let record = if at == 0 { begun(&message, &self.cards) } else { Some(self.before[at].clone()) };
        record.is_some_and(|mut record| is_taken(&mut record, &message))
    }

    /// The first of these messages that is not taken, counted from 0.
    fn first_bad<'m>(&self, messages: impl IntoIterator<Item = &'m Sealed>) -> Option<usize> {
        let mut record = None;
        for (message, at) in messages.into_iter().zip(0..) {
            if record.is_none() {
                record = begun(message, &self.cards);
            }
            let Some(record) = &mut record else { return Some(at) };
            if !is_taken(record, message) {
                return Some(at);
            }
        }
        None
    }
}

fn begun(first: &Sealed, cards: &Cards) -> Option<Record> {
    Record::beginning(&first.envelope, cards, Rules::default(), &Limits::default()).ok()
}

fn is_taken(record: &mut Record, message: &Sealed) -> bool {
    matches!(record.admit(message, Judgement::default(), None), Admission::Taken(_))
}

/// Every message of every transcript, once: its chain and its place.
fn every_message() -> Vec<(&'static Chain, usize)> {
    let mut seen = HashSet::new();
    let all = CHAINS.iter().flat_map(|chain| (0..chain.messages.len()).map(move |at| (chain, at)));
    // A message names the hash of all before it, so the same text has the same past.
    all.filter(|(chain, at)| seen.insert(chain.talk.messages[*at].as_str())).collect()
}
