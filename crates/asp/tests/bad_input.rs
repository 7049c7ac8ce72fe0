//! Bad input. Each case is either refused with a specific code or dropped, and does not change the session.

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
