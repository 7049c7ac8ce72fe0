//! Code shared by the tests of bad input, participants and transcripts.
//!
//! - [`editable_json`]: JSON that can be changed member by member, even if it is invalid.
//! - [`test_signer`]: a second implementation of signing, which can also sign incorrectly.
//! - [`test_agents`]: agents with keys and cards.
//! - [`bodies`]: a valid body of each kind.
//! - [`record_harness`]: a record that receives signed messages and must not change when it refuses them.

pub(crate) mod bodies;
pub(crate) mod editable_json;
pub(crate) mod record_harness;
pub(crate) mod test_agents;
pub(crate) mod test_signer;
