//! Shared support for the property tests: generates valid random recordings, and checks them with the crate.
//!
//! - [`byte_choices`]: the source of a generator's choices.
//! - [`recording_line`]: one event or reply whose members can be read and changed.
//! - [`sample_texts`]: texts of agents in several languages.
//! - [`event_writer`]: writes single valid events and replies.
//! - [`producer_script`]: what one producer does in a session, block by block.
//! - [`sample_messages`]: one of each message that is not a reply.
//! - [`sample_recording`]: sessions interleaved into one recording, with timestamps and sequence numbers.
//! - [`recording_check`]: the crate's findings for a recording.
//! - [`mutation`] and [`member_edits`]: single changes to a recording.
//! - [`reference_rules`]: a second implementation of the protocol's rules that predicts the verdict on a
//!   changed recording.
//! - [`malformed_json`]: JSON that no agent should write.
//! - [`shaping_listener`]: what a subscription receives, and when.

pub(crate) mod byte_choices;
pub(crate) mod event_writer;
pub(crate) mod malformed_json;
pub(crate) mod member_edits;
pub(crate) mod mutation;
pub(crate) mod producer_script;
pub(crate) mod recording_check;
pub(crate) mod recording_line;
pub(crate) mod reference_rules;
pub(crate) mod sample_messages;
pub(crate) mod sample_recording;
pub(crate) mod sample_texts;
pub(crate) mod shaping_listener;

use proptest::prelude::*;

/// Generates the bytes for the choices of one test case. Fewer and smaller bytes make simpler cases, so proptest
/// shrinks well.
pub(crate) fn random_bytes(max_len: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..max_len)
}
