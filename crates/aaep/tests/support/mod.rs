//! What the property tests share: lawful random recordings, and how the core judges them.
//!
//! - [`choices`]: where a generator's decisions come from.
//! - [`line`]: one event or reply that can be read and changed member by member.
//! - [`words`]: what agents say, in several languages.
//! - [`scribe`]: writes single lawful events and replies.
//! - [`track`]: what one producer does in a session, block by block.
//! - [`messages`]: one of every message that is no reply.
//! - [`recording`]: sessions woven into one recording, with times and numbers.
//! - [`judge`]: what the core finds in a recording.
//! - [`mutation`] and [`edits`]: every single change that can be made to a recording.
//! - [`reading`]: what a changed recording must still be, read a second time from the protocol.
//! - [`odd`]: JSON that no agent should write.
//! - [`shaping`]: what a subscription hears, and when.

#![allow(dead_code, reason = "each test file uses a part of this")]

pub(crate) mod choices;
pub(crate) mod edits;
pub(crate) mod judge;
pub(crate) mod line;
pub(crate) mod messages;
pub(crate) mod mutation;
pub(crate) mod odd;
pub(crate) mod reading;
pub(crate) mod recording;
pub(crate) mod scribe;
pub(crate) mod shaping;
pub(crate) mod track;
pub(crate) mod words;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The decisions of one generated case. Fewer and smaller bytes make simpler cases, so that proptest shrinks well.
pub(crate) fn decisions(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

/// So many cases, or `PROPERTY_TIMES` times as many, and no file of old failures: a failing case is turned into a test
/// with a name instead. They are the same cases in every run, so that nobody's change goes red by chance;
/// `PROPERTY_SEED` draws others.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok()).unwrap_or(1);
    ProptestConfig {
        cases: cases * number("PROPERTY_TIMES"),
        rng_seed: RngSeed::Fixed(u64::from(number("PROPERTY_SEED"))),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
