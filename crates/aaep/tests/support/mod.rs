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

/// The decisions of one generated case. Fewer and smaller bytes make simpler cases, so that proptest shrinks well.
pub(crate) fn decisions(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}
