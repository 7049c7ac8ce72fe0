//! Bad input. Each message is dropped or refused with a specific code and does not change the session. The exception is a
//! participant's message that breaks the chain: it fails the session (D7).

mod agent_cards;
mod bodies;
mod chain;
mod commitments;
mod envelope;
mod invalid_json;
mod limits;
mod message_proofs;
mod test_signer_matches_crate;
mod unknown_senders;
