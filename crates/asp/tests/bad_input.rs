//! Bad input: each case is refused with its code or dropped, and changes nothing.

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
